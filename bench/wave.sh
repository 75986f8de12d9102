#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The wave equation (examples/wave2d.c) over two clusters, through gateways (ci/test-clusters.sh --wave), into
# bench/data/wave.json; then makes the pages. Needs root, as that does. Run it while nothing else runs.
#
#   bench/wave.sh [--runs N] [--delays "MS..."] [--dso FOLDER] [--gateway PROGRAM]
#
#   --runs N           so many times (default: 3), 15 seconds for each delay
#   --delays           milliseconds each way between the clusters (default: "10 20")
#   --dso, --gateway   take mca_coll_rust.so from this folder, and this coll-rust-gateway, built before
set -euo pipefail
cd "$(dirname "$0")/.."

runs=3 delays="10 20" more=() gateway=
while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=$2 ;;
    --delays) delays=$2 ;;
    --dso) more=(--dso "$2") ;;
    --gateway) gateway=$2 ;;
    *)
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done
if [ -z "$gateway" ]; then
    cargo build --quiet --release -p coll-rust-gateway
    gateway=${CARGO_TARGET_DIR:-target}/release/coll-rust-gateway
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for _ in $(seq "$runs"); do
    for delay in $delays; do
        ci/test-clusters.sh --wave "$delay" "${more[@]}" --gateway "$gateway" | tee -a "$log"
    done
done
commit=$(git log -1 --format=%h --abbrev=12 -- src ompi-glue gateway)
git diff --quiet HEAD -- src ompi-glue gateway || commit+=-dirty
python3 - "$log" bench/data/wave.json "$commit" "$(ompi_info --version | head -n 1)" <<'PYTHON'
import json, os, re, sys
log, path, commit, library = sys.argv[1:]
runs, processor = [], "unknown"
with open(log, errors="replace") as file:
    for line in file:
        if found := re.match(r"### (\d+) x \d+, (\d+) ms each way", line):
            runs.append({"delay": int(found[2]), "side": int(found[1])})
        elif found := re.match(r"wave2d: (blocking|nonblocking) +([0-9.]+) ms a step", line):
            runs[-1][found[1]] = float(found[2])
        elif "wave2d: nonblocking takes" in line:
            runs[-1]["same"] = "the results are the same" in line
bad = [run for run in runs if not run.get("same")]
if bad or not runs:
    sys.exit(f"wave: did not end, or the results differ: {bad}")
with open("/proc/cpuinfo") as file:
    processor = next((line.split(": ")[1].strip() for line in file if line.startswith("model name")), processor)
about = {"commit": commit, "library": library.replace(" v", " "), "processor": processor, "cores": os.cpu_count(), "load": list(os.getloadavg()),
         "ranks": 4, "steps": 50, "unit": "ms"}
lines = ",\n".join(json.dumps(run) for run in runs)
with open(path, "w") as file:
    file.write('{\n"format": "wave",\n"about": ' + json.dumps(about) + ',\n"runs": [\n' + lines + "\n]\n}\n")
PYTHON
bench/pages.py
