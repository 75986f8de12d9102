#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is left to gain in short calls: coll/rust, and in its place the least that a component can be
# (bench/least/least.c: flags and copies alone), both by mpiperf compare against Open MPI's own choice, call
# by call by turns; then the means of all jobs.
#
#   bench/compare-least.sh [--np N] [--jobs N] [--apart] OPERATION... [OPTIONS OF mpiperf compare]
#
#   --np N      processes, 2 to 8 (default: 4); more than there are cores are oversubscribed and yield
#   --jobs N    so many jobs one after the other (default: 3)
#   --apart     each in jobs of its own, by turns: two components in one job leave less in the caches for Open
#               MPI's own choice, which then takes longer
#   OPERATION   barrier, gather, gatherv, scatter, scatterv, alltoall, alltoallv; blocks of up to 16 KiB
#               (default: --sizes 8:16k)
#
#   CARGO_TARGET_DIR    cargo's target folder (default: target)
#   MPICC, MPIEXEC      compiler wrapper and launcher of the Open MPI to use (default: mpicc, mpiexec)
set -euo pipefail

np=4 jobs=3 apart='' switches=--apart
. "$(dirname "${BASH_SOURCE[0]}")/compare-jobs.sh"
[ $# -gt 0 ] || usage "which operation?"
[[ $np =~ ^[2-8]$ ]] || usage "--np $np: must be from 2 to 8"
[[ -z $apart || " $* " != *" --bare"* ]] || usage "--bare: not with --apart, whose rows are all of the one component"
[[ " $* " == *" --sizes"* ]] || set -- "$@" --sizes 8:16k

enter_source least
out=$target/least
build_tools "$out/rust"
flags=(-std=gnu11 -O2 -g -DNDEBUG -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror -idirafter ompi-glue/compat)
[ "$(uname -m)" != x86_64 ] || flags+=(-mcx16)
"${MPICC:-mpicc}" "${flags[@]}" bench/least/least.c -o "$out/mca_coll_least.so"

prepare_jobs "$out/rust" "$out"
files=()
# Measures these components in one job more, which is written down by their names.
measure() {
    local variants=() component
    for component in "$@"; do
        variants+=(--b "$component")
    done
    files+=("$out/$job.$(IFS=-; echo "$*").txt")
    "${launch[@]}" "$mpiperf" compare --wide --a '^rust,least' "${variants[@]}" "${what[@]}" | tee "${files[-1]}"
}
what=("$@")
for job in $(seq "$jobs"); do
    if [ -n "$apart" ]; then
        measure rust
        measure least
    else
        measure rust least
    fi
done

# Columns are at least two spaces apart; the ninth is the interval. What the row compares comes last, where
# there are two; else the file's name says it.
means='
    function of_row(of) { of = apart ? FILENAME : $0; sub(/.*; /, "", of); sub(/\.txt$/, "", of); sub(/.*\./, "", of); return of }
    $9 ~ /^[0-9.]+\.\.[0-9.]+$/ { if (!($1 in seen)) { seen[$1]; order[++n] = $1 }; of = of_row(); logs[$1, of] += log($8); rows[$1, of]++ }
    END { for (i = 1; i <= n; i++) { rust = logs[order[i], "rust"] / rows[order[i], "rust"]; least = logs[order[i], "least"] / rows[order[i], "least"]
            printf "%-10s rust %.3f  least %.3f  rust/least %.3f\n", order[i], exp(rust), exp(least), exp(rust - least) } }
'
echo
echo "Geometric means over sizes and jobs of the time relative to Open MPI's own choice:"
awk -F '  +' -v apart="$apart" "$means" "${files[@]}"
