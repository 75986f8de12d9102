#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# That every crate which is linked in has a licence that deny.toml allows, that NOTICE and CITATION.cff are up
# to date, and that the version stands in one place. Without cargo deny, which checks the same list and more.
#
#   ci/test-licences.sh
set -euo pipefail
cd "$(dirname "$0")/.."

cargo metadata --format-version 1 --locked --filter-platform "$(rustc -vV | sed -n 's/^host: //p')" | python3 -c '
import json, pathlib, re, subprocess, sys

crates = json.load(sys.stdin)["packages"]
rules = re.search(r"^allow = \[(.*?)^\]", open("deny.toml").read(), re.S | re.M).group(1)
allowed = set(re.findall(r"\"([^\"]+)\"", rules))


def may(text):
    """Whether one of the choices, all of whose parts hold, is allowed: A OR (B AND C)."""
    text = text.replace("/", " OR ")
    words = re.findall(r"\(|\)|[^\s()]+", text)

    def choice():
        good = both()
        while words and words[0] == "OR":
            words.pop(0)
            good = both() or good
        return good

    def both():
        good = one()
        while words and words[0] == "AND":
            words.pop(0)
            good = one() and good
        return good

    def one():
        word = words.pop(0)
        if word == "(":
            good = choice()
            words.pop(0)
            return good
        if words and words[0] == "WITH":
            word = f"{word} {words.pop(0)} {words.pop(0)}"
        return word in allowed

    return choice()


assert may("GPL-3.0-only OR MIT") and not may("MIT AND GPL-3.0-only"), "the reader of licences is wrong"
bad = []
for crate in crates:
    text = crate["license"] or ""
    if not text or not may(text):
        known = text or "none"
        bad.append("{} {}: licence {}; allow it in deny.toml, or do without the crate".format(crate["name"], crate["version"], known))
version = subprocess.check_output(["scripts/version.sh"], text=True).strip()
own = {c["version"] for c in crates if c["source"] is None}
if own != {version}:
    bad.append(f"members have other versions than {version}: {own}; write version.workspace = true")
if f"\nversion: {version}\n" not in open("CITATION.cff").read():
    bad.append(f"CITATION.cff has another version than {version}")
if f"## {version}" not in open("CHANGELOG.md").read() and "## Unreleased" not in open("CHANGELOG.md").read():
    bad.append(f"CHANGELOG.md does not tell of {version}")
for name, line in {
    "debian/changelog": f"coll-rust ({version}-",
    "rpm/openmpi-coll-rust.spec": f"Version:        {version}\n",
    f"easybuild/coll-rust-{version}-gompi-2025b.eb": f"version = {chr(39)}{version}{chr(39)}\n",
    "spack/spack_repo/coll_rust/packages/coll_rust/package.py": f"version(\"{version}\")\n",
}.items():
    path = pathlib.Path("packaging", name)
    if not path.exists() or line not in path.read_text():
        bad.append(f"{path} is not of version {version}")
fonts = [c["version"] for c in crates if c["name"] == "dejavu"]
if not all(f"version {v[:4]} " in open("NOTICE").read() for v in fonts):
    bad.append(f"NOTICE does not tell of the fonts {fonts}")
print(*bad, sep="\n", end="\n" if bad else "")
print(f"{len(crates) + 7 - len(bad)} passed, {len(bad)} failed")
sys.exit(bool(bad))
'
