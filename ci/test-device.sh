#!/bin/bash
# Device memory: runs operations on buffers in the memory of a stand-in for an accelerator
# (tests/accelerator), which the CPU cannot access, with Open MPI 5.0. Device buffers on no, some and all
# ranks, on the send side, the receive side or both; 22 operations in three modes; np 2 and 4.
#
#   ci/test-device.sh --dso FOLDER [--quick | --full] [--only REGEX]
#
# It wants mpicc and mpiexec of Open MPI 5.0 (ci/test-ompi5.sh calls it in Debian 13). REGEX: only the jobs
# whose line matches.
set -uo pipefail
cd "$(dirname "$0")/.."

full=0 dso='' only=.
while [ $# -gt 0 ]; do
    case $1 in
    --dso) dso=$(cd "$2" && pwd) && shift || exit 1 ;;
    --quick) ;;
    --full) full=1 ;;
    --only) only=$2 && shift ;;
    *)
        sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
        exit 2
        ;;
    esac
    shift
done
[ -n "$dso" ] || exec "$0" --help

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
variables=$(COLL_RUST_OUT=$dso ci/env.sh) || exit 1
eval "$variables"
pmix=$(pkg-config --cflags-only-I pmix 2>/dev/null || true)
# shellcheck disable=SC2086 # one word for each flag
mpicc -std=gnu11 -O2 -fPIC -shared -fvisibility=hidden -mcx16 -Wall -Wextra -Werror $pmix \
    "-I/usr/lib/$(gcc -print-multiarch)/pmix2/include" -idirafter ompi-glue/compat -o "$scratch/mca_accelerator_standin.so" \
    tests/accelerator/standin.c || exit 1
for source in tests/mpi/sizes.c tests/accelerator/device.c tests/accelerator/count.c; do
    mpicc -std=gnu11 -O2 -Wall -Wextra -o "$scratch/$(basename "$source" .c)" "$source" -lm -lpthread || exit 1
done
# Every call of these jobs is to be the component's own, from the first one on.
export OMPI_MCA_coll_rust_first_calls=0
export OMPI_MCA_opal_mca_base_component_path=$scratch:$OMPI_MCA_opal_mca_base_component_path

passed=0 failed=0

# job NP SETTINGS PROGRAM ARGUMENT...: the program must find everything right, and the component must have
# handled calls at every rank.
job() {
    local np=$1 settings=$2 program=$3 word problem="" code=0
    shift 3
    [[ "$program $* np=$np $settings" =~ $only ]] || return 0
    local environment=(OMPI_MCA_accelerator=standin OMPI_MCA_coll_rust_report=1)
    for word in $settings; do
        environment+=("OMPI_MCA_coll_rust_$word")
    done
    env "${environment[@]}" timeout -k 5 300 mpiexec --oversubscribe --mca mpi_yield_when_idle 1 --mca btl self,sm -n "$np" \
        "$scratch/$program" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
    if [ $code != 0 ]; then
        problem="exit code $code"
    elif ! grep -qE "^$program: [1-9][0-9]* passed, 0 failed" "$scratch/out"; then
        problem="no good closing line"
    elif [ "$(grep -cE 'coll_rust report:.* (allreduce|barrier) handled=[1-9]' "$scratch/err")" -lt "$np" ]; then
        problem="the component did not run"
    fi
    if [ -z "$problem" ]; then
        passed=$((passed + 1))
        echo "ok      $program $* np=$np $settings ($(tail -n 1 "$scratch/out"))"
    else
        failed=$((failed + 1))
        echo "FAILED  $program $* np=$np $settings: $problem"
        grep -hE 'FAILED| hangs in| crashes in|coll/rust|panicked' "$scratch/out" "$scratch/err" | grep -v 'coll_rust report' | head -n 12 | sed 's/^/        /'
    fi
}

# What it takes a short call on host memory that an accelerator is active: instructions, counted by single
# steps. At most 10 where buffers are the program's data or come from its heap, and 15 where they are on its
# stack or in place. About other memory the accelerator is asked.
counts() {
    OMPI_MCA_accelerator=$1 timeout -k 5 120 mpiexec --oversubscribe --mca mpi_yield_when_idle 1 --mca btl self,sm -n 2 \
        "$scratch/count" 2>"$scratch/err" </dev/null | sed -n 's/^count: \([a-z]* [a-z ]*\) \([0-9]*\)$/\1,\2/p' | sort
}
if [ "$(uname -m)" = x86_64 ]; then
    counts null >"$scratch/null"
    counts standin >"$scratch/standin"
    while IFS=, read -r what before now; do
        most=10
        case $what in
        *mapped) continue ;;
        *stack | *"in place") most=15 ;;
        esac
        if [ $((now - before)) -le $most ]; then
            passed=$((passed + 1))
            echo "ok      $what: $before instructions, $now with an accelerator"
        else
            failed=$((failed + 1))
            echo "FAILED  $what: $before instructions, $now with an accelerator, more than $most"
        fi
    done < <(join -t, "$scratch/null" "$scratch/standin")
    [ "$passed" -ge 7 ] || { echo "FAILED  instructions were not counted" && failed=$((failed + 1)); }
fi

# Through shared memory, read from other processes where that is possible, and by messages alone.
messages="shm_limit=0"
# What goes through the queue, or by messages in segments, is pipelined.
queue="shm_zero_copy=off"
pieces="$messages allreduce_segment_size=64k reduce_segment_size=64k"
job 2 "$queue" device --device all --long 1 --pipelined allreduce,reduce,scan,reduce_scatter_block
job 4 "$queue" device --device all --long 1 --pipelined allreduce,reduce,scan,reduce_scatter_block
job 4 "$pieces" device --device all --long 1 --pipelined allreduce,reduce
if [ $full = 0 ]; then
    job 2 "" device --device odd --sides send --long 1
    job 3 "shm_zero_copy_min=1" device --device even --long 1
    job 2 "" device --device odd
    job 4 "" device --device odd --sides recv
    job 4 "$messages" device --device all
    job 2 "" sizes --device odd --sample 24 --most 300000
    job 2 "shm_zero_copy_min=1" sizes --device all --sides send --sample 48 --most 1100000
    job 4 "shm_zero_copy_min=1" sizes --device even --sides both --sample 160 --most 1100000
    job 4 "$messages" sizes --device odd --sides recv --sample 160 --most 300000
else
    for np in 2 4; do
        for settings in "" "shm_zero_copy_min=1" "shm_zero_copy=off" "$messages" "levels=numa,socket,node allreduce_algorithm=shm"; do
            for whose in none odd even all; do
                for sides in both send recv; do
                    [ "$whose $sides" = "none $sides" ] && [ $sides != both ] && continue
                    job $np "$settings" device --device $whose --sides $sides
                    job $np "$settings" sizes --device $whose --sides $sides --sample $((np * np * 4)) --most 4200000
                done
            done
        done
    done
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
