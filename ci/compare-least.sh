#!/bin/bash
# What is left to gain in short calls: coll/rust, and in its place the least that a component can be (ci/least/least.c: flags and copies alone), both by mpiperf compare
# against Open MPI's own choice, call by call by turns; then the means of all jobs.
#
#   ci/compare-least.sh [--np N] [--jobs N] OPERATION... [OPTIONS OF mpiperf compare]
#
#   --np N      processes, 2 to 8 (default: 4); more than there are cores are oversubscribed and yield
#   --jobs N    so many jobs one after the other (default: 3)
#   OPERATION   barrier, gather, gatherv, scatter, scatterv, alltoall, alltoallv; blocks of up to 16 KiB (default: --sizes 8:16k)
#
#   CARGO_TARGET_DIR    cargo's target folder (default: target)
#   MPICC, MPIEXEC      compiler wrapper and launcher of the Open MPI to use (default: mpicc, mpiexec)
set -euo pipefail

np=4 jobs=3
. "$(dirname "${BASH_SOURCE[0]}")/compare-jobs.sh"
[ $# -gt 0 ] || usage "which operation?"
[[ $np =~ ^[2-8]$ ]] || usage "--np $np: must be from 2 to 8"
[[ " $* " == *" --sizes"* ]] || set -- "$@" --sizes 8:16k

enter_source least
out=$target/least
build_tools "$out/rust"
flags=(-std=gnu11 -O2 -g -DNDEBUG -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror -idirafter ompi-glue/compat)
[ "$(uname -m)" != x86_64 ] || flags+=(-mcx16)
"${MPICC:-mpicc}" "${flags[@]}" ci/least/least.c -o "$out/mca_coll_least.so"

prepare_jobs "$out/rust" "$out"
files=()
for job in $(seq "$jobs"); do
    files+=("$out/$job.txt")
    "${launch[@]}" "$mpiperf" compare --a '^rust,least' --b rust --b least "$@" | tee "$out/$job.txt"
done

# Columns are at least two spaces apart; the ninth is the interval. What the row compares comes last.
means='
    $9 ~ /^[0-9.]+\.\.[0-9.]+$/ { if (!($1 in seen)) { seen[$1]; order[++n] = $1 }; of = $0; sub(/.*; /, "", of); logs[$1, of] += log($8); rows[$1, of]++ }
    END { for (i = 1; i <= n; i++) { rust = logs[order[i], "rust"] / rows[order[i], "rust"]; least = logs[order[i], "least"] / rows[order[i], "least"]
            printf "%-10s rust %.3f  least %.3f  rust/least %.3f\n", order[i], exp(rust), exp(least), exp(rust - least) } }
'
echo
echo "Geometric means over sizes and jobs of the time relative to Open MPI's own choice:"
awk -F '  +' "$means" "${files[@]}"
