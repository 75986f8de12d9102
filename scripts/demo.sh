#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the component and shows it at work in a real job: the hierarchy it finds, its results checked against
# a communicator that excludes it, its times beside Open MPI's own, and its report. Fails if a result is wrong
# or if it did not run.
#
#   scripts/demo.sh              the whole demonstration
#   scripts/demo.sh --smoke      the checks only
#     --np N                processes (default 4)
#     --dso FOLDER          take mca_coll_rust.so from there instead of building it
#
# MPICC names the compiler wrapper of the Open MPI to use; mpiexec and ompi_info are taken from beside it.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

smoke=()
np=4
dso=
while [ $# -gt 0 ]; do
    case $1 in
    --smoke) smoke=(--smoke) ;;
    --np) np=$2 && shift ;;
    --dso) dso=$(realpath -- "$2") && shift ;;
    *)
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
        exit 2
        ;;
    esac
    shift
done
cd "$here"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ -z "$dso" ]; then
    scripts/install-deps.sh
    dso=$(COLL_RUST_SKIP_MPIPERF=1 scripts/build.sh | tail -n 1)
fi

mpicc=$(command -v "${MPICC:-mpicc}") || { echo "demo: there is no ${MPICC:-mpicc}" >&2; exit 1; }
bin=$(dirname "$mpicc")
mpiexec=${MPIEXEC:-$bin/mpiexec}
"$mpicc" -O2 -Wall -o "$scratch/demo" tests/demo/demo.c

# Every call of these jobs is to be the component's own, from the first one on.
export OMPI_MCA_coll_rust_first_calls=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

paths=$(COLL_RUST_OUT=$dso MPIEXEC=$mpiexec scripts/env.sh)
eval "$paths"
export OMPI_MCA_coll_rust_report=ranks
[ ${#smoke[@]} -gt 0 ] || export OMPI_MCA_coll_rust_show=hierarchy

echo "demo: $np processes on $(nproc) processors"
# The demonstration is about one machine: no network is needed, and none is waited for.
code=0
timeout -k 10 300 "$mpiexec" --oversubscribe --mca mpi_yield_when_idle 1 --mca btl ^tcp -n "$np" \
    "$scratch/demo" "${smoke[@]}" 2>&1 | tee "$scratch/out" || code=$?
if [ $code -ne 0 ]; then
    echo "demo: FAILED (exit code $code)"
    exit 1
fi
# One line of the report per process and operation.
reported=$(grep -c '^coll_rust report: .* handled=[1-9]' "$scratch/out" || true)
if [ "$reported" -ne $((4 * np)) ]; then
    echo "demo: FAILED: the report has $reported lines with calls, not $((4 * np))"
    exit 1
fi
echo "demo: passed"
