#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the component for an Open MPI 6 (its branch main) that is installed, and runs the smoke test, the
# vector forms, data beyond 2 GiB and buffers in a device's memory there. By hand: no distribution has an
# Open MPI 6, so ci/test.sh cannot run this.
#
#   ci/test-ompi6.sh PREFIX     where it is installed, configured --with-devel-headers
#
# Data beyond 2 GiB need 5 GiB of memory. COLL_RUST_STATICLIB: as for scripts/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${1:-}
if [ $# -ne 1 ] || [ ! -x "$prefix/bin/mpicc" ]; then
    sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    exit 2
fi
export PATH=$prefix/bin:$PATH COLL_RUST_SKIP_MPIPERF=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
case $(mpicc --showme:version 2>&1) in
*"Open MPI"*" 6."* | *"Open MPI v6."*) ;;
*)
    echo "test-ompi6: $prefix/bin/mpicc is not of Open MPI 6" >&2
    exit 1
    ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
dso=$(scripts/build.sh "$scratch/dso" | tail -n 1)
passed=0 failed=0
verdict() {
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1)) && echo "ok      $1"
    else
        failed=$((failed + 1)) && echo "FAILED  $1 (exit code $2)"
    fi
}

for np in 2 4; do
    code=0
    timeout -k 10 300 scripts/demo.sh --smoke --np $np --dso "$dso" || code=$?
    verdict "smoke np=$np" $code
done
variables=$(COLL_RUST_OUT=$dso scripts/env.sh)
eval "$variables"
for job in 2:comms 3:comms 2:vector 3:vector 2:persist 3:neighbor 2:big; do
    np=${job%%:*} name=${job#*:} code=0
    if [ "$name" = big ] && [ "$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -lt 6 ]; then
        echo "SKIPPED $name: less than 6 GiB of memory"
        continue
    fi
    mpicc -std=gnu11 -O2 -Wall -Wextra -o "$scratch/$name" "tests/mpi/$name.c" -lm -lpthread
    # coll/tuned, with which results are compared, hangs where ranks describe the same data by different
    # datatypes, which vector.c does.
    timeout -k 10 300 mpiexec --oversubscribe --mca mpi_yield_when_idle 1 --mca coll ^tuned -n "$np" "$scratch/$name" >"$scratch/out" 2>&1 || code=$?
    grep -qE "^$name: [1-9][0-9]* passed, 0 failed" "$scratch/out" || code=$((code == 0 ? 1 : code))
    [ $code = 0 ] || tail -n 20 "$scratch/out"
    verdict "$name np=$np" $code
done
code=0
ci/test-device.sh --dso "$dso" || code=$?
verdict device $code
echo "test-ompi6: $passed passed, $failed failed"
[ $failed -eq 0 ]
