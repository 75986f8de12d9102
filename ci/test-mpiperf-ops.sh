#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs every operation of mpiperf, blocking, nonblocking and persistent, with all datatypes, reductions,
# counts, in place, warm and cold, at several sizes, and verifies every result and that a spoilt one is
# noticed. One MPI library at a time:
#
#   ci/test-mpiperf-ops.sh [--full] [OPERATION]     Open MPI in PATH, at 2, 3 and 5 processes
#   MPICC=mpicc.mpich MPIEXEC=mpiexec.mpich ci/test-mpiperf-ops.sh
#   RANKS="2 4" LIMIT=600 ci/test-mpiperf-ops.sh       other numbers of processes; seconds for each of them
#
# Each line: processes, cases, how many hit bugs that the library is known for, failures. Exit status 1 if any
# failed.
set -uo pipefail
cd "$(dirname "$0")/.."

size=quick
[ "${1:-}" = --full ] && size=full && shift
case ${1:-} in
-*)
    sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    exit 2
    ;;
esac

export MPICC=${MPICC:-mpicc}
mpiexec=${MPIEXEC:-mpiexec}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
# More ranks than cores: whoever waits gives its core away (MPICH 4.0 hardly does: some 0.3 s for each of
# 4,000 cases).
export MPIR_CVAR_POLLS_BEFORE_YIELD=1 I_MPI_WAIT_MODE=1 I_MPI_THREAD_YIELD=2
# A target folder for each library: the bindings of one are no use to another. Contents are made and verified
# fast enough.
wrapper=$(command -v "$MPICC") || { echo "test-mpiperf-ops: there is no $MPICC: name a compiler wrapper with MPICC" >&2; exit 1; }
target=${CARGO_TARGET_DIR:-$PWD/target}/mpiperf-ops${wrapper//\//-}
CARGO_PROFILE_DEV_OPT_LEVEL=2 CARGO_TARGET_DIR=$target cargo build -q -p mpiperf --example verify || exit 1

launch=("$mpiexec")
case $("$mpiexec" --version 2>/dev/null | head -n 1) in
*" 5."*) launch+=(--oversubscribe --mca btl self,sm --mca mpi_yield_when_idle 1) ;;
*OpenRTE* | *"Open MPI"*) launch+=(--oversubscribe --mca btl self,vader --mca mpi_yield_when_idle 1) ;;
esac

status=0
for ranks in ${RANKS:-2 3 5}; do
    echo -n "$ranks processes: "
    timeout "${LIMIT:-3600}" "${launch[@]}" -n "$ranks" "$target/debug/examples/verify" "$size" "$@" 2>&1 || status=1
done
[ $status = 0 ] || echo "test-mpiperf-ops: failed" >&2
exit $status
