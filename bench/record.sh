#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Records what bench/pages.py makes the pages of: coll/rust beside Open MPI's own choice, by mpiperf compare,
# into bench/data; then makes the pages. What is not committed is not recorded: the files name the commit.
#
#   bench/record.sh [--jobs N]
#
#   --jobs N    so many jobs one after the other (default: 3), of two ranks with a core each
#
#   SIZES               message sizes (default: 8,64,512,4k,16k,64k,256k,1m)
#   CARGO_TARGET_DIR    cargo's target folder (default: target)
#   MPICC, MPIEXEC      compiler wrapper and launcher of the Open MPI to use (default: mpicc, mpiexec)
#
# Run it while nothing else runs: where two ranks have to share their cores, long messages find no valid call.
set -euo pipefail

np=2 jobs=3
. "$(dirname "${BASH_SOURCE[0]}")/compare-jobs.sh"
[ $# -eq 0 ] || usage "$1: what is recorded is fixed"
[ "$np" = 2 ] || usage "--np $np: the pages are of two ranks"
enter_source record
[ -z "$(git status --porcelain --untracked-files=no)" ] || usage "commit first: the files name a commit"
build_tools "$target/record"
prepare_jobs "$target/record" "$target/record"
operations=(barrier bcast reduce allreduce gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv)
for job in $(seq "$jobs"); do
    file=bench/data/rust.$job.json
    "${launch[@]}" "$mpiperf" compare --a '^rust' --b rust "${operations[@]}" \
        --sizes "${SIZES:-8,64,512,4k,16k,64k,256k,1m}" --time-limit 10 --json "$target/record/new.json"
    # A line for each row keeps the files short.
    python3 - "$target/record/new.json" "$file" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
# Where it was built and started is nobody's business.
found["about"]["command"][0] = "mpiperf"
found["about"]["command"] = [word if not word.startswith("/") else "new.json" for word in found["about"]["command"]]
found["about"]["environment"] = [pair for pair in found["about"]["environment"] if "path" not in pair[0]]
found["about"]["ranks"] = [dict(rank, host="host") for rank in found["about"]["ranks"]]
parts = []
for name, value in found.items():
    if isinstance(value, list):
        value = "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in value) + "\n]"
    else:
        value = json.dumps(value, ensure_ascii=False)
    parts.append(f"{json.dumps(name)}: {value}")
open(sys.argv[2], "w").write("{\n" + ",\n".join(parts) + "\n}\n")
PYTHON
    echo "record: wrote $file" >&2
done
bench/pages.py
