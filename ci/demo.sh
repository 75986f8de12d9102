#!/bin/bash
# Builds the component and shows it at work in a real job: the hierarchy it finds, its results checked against a communicator
# that excludes it, its times beside Open MPI's own, and its report. Fails if a result is wrong or if it did not run.
#
#   ci/demo.sh              the whole demonstration
#   ci/demo.sh --smoke      the checks only
#     --np N                processes (default 4)
#     --dso FOLDER          take mca_coll_rust.so from there instead of building it
#
# MPICC names the compiler wrapper of the Open MPI to use; mpiexec and ompi_info are taken from beside it.
set -euo pipefail
cd "$(dirname "$0")/.."

smoke=()
np=4
dso=
while [ $# -gt 0 ]; do
    case $1 in
    --smoke) smoke=(--smoke) ;;
    --np) np=$2 && shift ;;
    --dso) dso=$2 && shift ;;
    *)
        sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
        exit 2
        ;;
    esac
    shift
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ -z "$dso" ]; then
    ci/install-deps.sh
    ci/build.sh "$scratch/lib"
    dso=$scratch/lib
fi
[ -f "$dso/mca_coll_rust.so" ] || { echo "demo: there is no mca_coll_rust.so in '$dso'" >&2; exit 1; }

mpicc=$(command -v "${MPICC:-mpicc}") || { echo "demo: there is no ${MPICC:-mpicc}" >&2; exit 1; }
bin=$(dirname "$mpicc")
mpiexec=${MPIEXEC:-$bin/mpiexec}
"$mpicc" -O2 -Wall -o "$scratch/demo" tests/demo/demo.c

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Open MPI looks for components in its own folder and in ours. Some builds of Open MPI 5 (Debian's) hand PMIx's folder to
# the processes in the same variable, in place of their own; that one must then reach PMIx under its own name.
installed=$("$bin/ompi_info" --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')
for_pmix=$("$mpiexec" --oversubscribe -n 1 env | sed -n 's/^OMPI_MCA_mca_base_component_path=//p')
if [ -n "$for_pmix" ] && [ -z "${OMPI_MCA_mca_base_component_path:-}" ]; then
    export PMIX_MCA_mca_base_component_path=$for_pmix
fi
export OMPI_MCA_mca_base_component_path=$dso:$installed

export OMPI_MCA_coll_rust_report=1
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
