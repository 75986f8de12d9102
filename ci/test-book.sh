#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the book of docs/ with mdBook and follows its links: to pages and headings, and to files of the
# source tree. Takes mdbook from PATH, else cargo installs it below target/tools, for the next time too.
# Ends with "N passed, M failed".
#
#   ci/test-book.sh
set -uo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
target=${CARGO_TARGET_DIR:-$PWD/target}
mdbook=$(type -P mdbook || echo "$target/tools/bin/mdbook")
if [ ! -x "$mdbook" ]; then
    # As quickly built as can be: it runs for a second.
    CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --debug --locked --no-default-features --version $version --root "$target/tools" mdbook || exit 1
fi
book=$(mktemp -d)
trap 'rm -rf "$book"' EXIT
if ! "$mdbook" build --dest-dir "$book" >"$book.log" 2>&1 || grep -qE 'WARN|ERROR' "$book.log"; then
    cat "$book.log"
    rm -f "$book.log"
    echo "0 passed, 1 failed"
    exit 1
fi
rm -f "$book.log"

python3 - "$book" <<'PYTHON'
import html.parser, pathlib, sys, urllib.parse

book, docs = pathlib.Path(sys.argv[1]), pathlib.Path("docs")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif value and (name, tag) in {("href", "a"), ("src", "img")}:
                self.links.add(value)


skipped = {"print.html", "toc.html", "404.html"}
pages = {path: Page(path.read_text()) for path in book.rglob("*.html") if path.name not in skipped}
listed = [line.split("](")[1].split(")")[0] for line in (docs / "SUMMARY.md").read_text().splitlines() if "](" in line]
missing = [name for name in listed if book / name.replace("README.md", "index.html").replace(".md", ".html") not in pages]
bad = [f"{name}: has become no page" for name in missing]
good = len(listed) - len(missing)
for path, page in sorted(pages.items()):
    for link in sorted(page.links):
        url = urllib.parse.urlsplit(link)
        if url.scheme or url.netloc:
            continue
        target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
        if target.is_dir():
            target /= "index.html"
        source = (docs / path.relative_to(book).parent / urllib.parse.unquote(url.path)).resolve()
        if target in pages:
            well = not url.fragment or urllib.parse.unquote(url.fragment) in pages[target].ids
        else:
            # mdBook takes every page for one of its own, and calls it .html.
            well = target.exists() or source.exists() or source.with_suffix(".md").exists()
        good += well
        if not well:
            bad.append(f"{path.relative_to(book)}: {link} leads nowhere")
print("\n".join(bad))
print(f"{good} passed, {len(bad)} failed")
sys.exit(bool(bad) or not pages)
PYTHON
