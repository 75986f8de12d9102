#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures this machine, and two ranks on it, for bench/predicted.py: writes machines/two-cores.toml and
# bench/data/calibration.*.json, then makes docs/design/calibration.md. Stores to queues go through the
# caches, since that is what the model knows.
#
#   bench/calibrate.sh
#
#   SIZES               message sizes (default: 8:1m)
#   DSO                 folder of mca_coll_rust.so: then nothing is built, and the tools are those of
#                       target/release
#   CARGO_TARGET_DIR    cargo's target folder (default: target)
#   MPICC, MPIEXEC      compiler wrapper and launcher of the Open MPI to use (default: mpicc, mpiexec)
#
# Run it while nothing else runs. It takes three minutes after what it builds. A virtual machine may move its
# cores to other caches meanwhile: so the hand-over of a line is measured before and after each operation, and
# what was measured on a machine that is not like the file is measured again.
set -euo pipefail

np=2 jobs=1
. "$(dirname "${BASH_SOURCE[0]}")/compare-jobs.sh"
[ $# -eq 0 ] || usage "$1: what is measured is fixed"
[ "$np $jobs" = "2 1" ] || usage "two ranks, one job: the page is about these"
enter_source calibrate
if [ -n "${DSO:-}" ]; then
    mpiperf=$target/release/mpiperf
    mkdir -p "$target/calibrate"
else
    build_tools "$target/calibrate"
    CARGO_TARGET_DIR=$target cargo build --quiet --release -p coll-rust-command
fi
prepare_jobs "${DSO:-$target/calibrate}" "$target/calibrate"
new=$target/calibrate/new

# The nanoseconds of a hand-over by the machine file $1.
hand_over() {
    python3 -c 'import sys, tomllib; print(list(tomllib.load(open(sys.argv[1], "rb"))["handover"].values())[-1])' "$1"
}

# Whether the machine is like its file now.
is_like() {
    "${launch[@]:0:3}" -n 1 "$mpiperf" machine -o "$new.toml" >/dev/null
    python3 -c 'import sys; one, other = map(float, sys.argv[1:]); sys.exit(not 0.85 < one / other < 1.18)' \
        "$(hand_over "$new.toml")" "$(hand_over machines/two-cores.toml)"
}

# measure NAME SIZES PARAMETER VALUE OPERATION...
measure() {
    local name=$1 sizes=$2 parameter=$3 value=$4 operation files=() tries
    shift 4
    for operation; do
        files+=("$new.$operation.json")
        for tries in $(seq 20); do
            is_like || continue
            "${launch[@]}" --mca coll_rust_shm_stores cached --mca "$parameter" "$value" "$mpiperf" run "$operation" \
                --sizes "$sizes" --datatype double --calls 2000 --correct 100 --time-limit 1 --json "${files[-1]}" >/dev/null
            ! is_like || continue 2
        done
        echo "calibrate: $operation: $tries times the machine was not like its file; begin anew" >&2
        exit 1
    done
    python3 - "bench/data/calibration.$name.json" "${files[@]}" <<'PYTHON'
import json, sys
rows = []
for name in sys.argv[2:]:
    found = json.load(open(name))
    for row in found["rows"]:
        if row["summary"] is None:
            sys.exit(f"calibrate: no valid call of {row['setting']}; run it while nothing else runs")
        rows.append({"operation": row["setting"]["operation"], "bytes": row["setting"]["bytes"],
                     "median": row["summary"]["percentiles"][2]})
about = {key: found["about"][key] for key in ("mpiperf", "commit", "date", "library", "processor", "cores", "kernel")}
lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
open(sys.argv[1], "w").write(f'{{"about": {json.dumps(about)},\n"rows": [\n{lines}\n]}}\n')
PYTHON
}

"${launch[@]}" "$mpiperf" machine --name "two cores of a virtual machine" -o machines/two-cores.toml
measure queues "${SIZES:-8:1m}" coll_rust_shm_zero_copy off barrier bcast reduce allreduce gather gatherv scatter \
    scatterv allgather allgatherv alltoall alltoallv
# Of Bcast, Gather and Scatter both sides would copy, which the clock does not do.
measure reads 8k:1m coll_rust_shm_zero_copy_min 8192 allgather alltoall allreduce
[ -n "${DSO:-}" ] || COLL_RUST=$target/release/coll-rust bench/predicted.py
