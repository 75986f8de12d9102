#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Device memory: runs operations on buffers in the memory of a stand-in for an accelerator
# (tests/accelerator), which the CPU cannot access, with Open MPI 5.0. Device buffers on no, some and all
# ranks, on the send side, the receive side or both; 22 operations in three modes; np 2 and 4.
#
#   ci/test-device.sh --dso FOLDER [--quick | --full] [--only REGEX]
#
# It wants mpicc and mpiexec of Open MPI 5.0 (ci/test-ompi5.sh calls it in Debian 13), or 6
# (ci/test-ompi6.sh). REGEX: only the jobs whose line matches. Some run on several nodes
# (tests/nodes/cluster.sh), where the machine allows it, and say so where not.
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
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
        exit 2
        ;;
    esac
    shift
done
[ -n "$dso" ] || exec "$0" --help

scratch=$(mktemp -d)
. tests/nodes/cluster.sh
unset OMPI_MCA_coll_rust_first_calls
cluster_guard
trap 'cluster_down; rm -rf "$scratch"' EXIT
variables=$(COLL_RUST_OUT=$dso scripts/env.sh) || exit 1
eval "$variables"
pmix=$(pkg-config --cflags-only-I pmix 2>/dev/null || true)
standin=tests/accelerator/standin.c
case $(mpicc --showme:version 2>&1) in
# Its coll/accelerator stands above ours and stages blocking reductions: ours would see host memory.
*"Open MPI"*" 6."* | *"Open MPI v6."*) standin=tests/accelerator/standin6.c && export OMPI_MCA_coll=^accelerator ;;
esac
# shellcheck disable=SC2086 # one word for each flag
mpicc -std=gnu11 -O2 -fPIC -shared -fvisibility=hidden -mcx16 -Wall -Wextra -Werror $pmix \
    "-I/usr/lib/$(gcc -print-multiarch)/pmix2/include" -idirafter ompi-glue/compat -o "$scratch/mca_accelerator_standin.so" "$standin" ||
    exit 1
for source in tests/mpi/sizes.c tests/accelerator/device.c tests/accelerator/count.c; do
    mpicc -std=gnu11 -O2 -Wall -Wextra -o "$scratch/$(basename "$source" .c)" "$source" -lm -lpthread || exit 1
done
export OMPI_MCA_opal_mca_base_component_path=$scratch:$OMPI_MCA_opal_mca_base_component_path

passed=0 failed=0

# job NP SETTINGS PROGRAM ARGUMENT...: the program must find everything right, and the component must have
# handled calls at every rank, and passed some where SETTINGS say so. NP: or, on several nodes, so many on
# each ("2,2"). Every call is to be the component's own, from the first one on, unless SETTINGS name
# first_calls ("default": as users have it).
job() {
    local np=$1 settings=$2 program=$3 word problem="" code=0 title ran='handled=[1-9]'
    shift 3
    title="$program $* np=$np $settings"
    [[ $title =~ $only ]] || return 0
    local environment=(OMPI_MCA_accelerator=standin OMPI_MCA_coll_rust_report=1)
    [[ $settings != *first_calls=* && $settings != *fallback* ]] || ran='handled=[0-9]+ passed=[1-9]'
    [[ $settings == *first_calls=* ]] || environment+=(OMPI_MCA_coll_rust_first_calls=0)
    for word in $settings; do
        [ "$word" = first_calls=default ] || environment+=("OMPI_MCA_coll_rust_$word")
    done
    if [[ $np == *,* ]]; then
        [ -n "$CLUSTER_WORK" ] || cluster_up
        (export "${environment[@]}" && cluster_run "$np" 300 "$scratch/$program" "$@") >"$scratch/out" 2>"$scratch/err" || code=$?
        np=$((${np//,/+}))
    else
        env "${environment[@]}" timeout -k 5 300 mpiexec --oversubscribe --mca mpi_yield_when_idle 1 --mca btl self,sm -n "$np" \
            "$scratch/$program" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
    fi
    if [ $code != 0 ]; then
        problem="exit code $code"
    elif ! grep -qE "^$program: [1-9][0-9]* passed, 0 failed" "$scratch/out"; then
        problem="no good closing line"
    elif [ "$(grep -cE "coll_rust report:.* (allreduce|barrier) $ran" "$scratch/err")" -lt "$np" ]; then
        problem="the component did not run, or passed nothing"
    fi
    if [ -z "$problem" ]; then
        passed=$((passed + 1))
        echo "ok      $title ($(tail -n 1 "$scratch/out"))"
    else
        failed=$((failed + 1))
        echo "FAILED  $title: $problem"
        {
            grep -ahE 'FAILED| hangs in| crashes in|coll/rust|panicked' "$scratch/out" "$scratch/err" || tail -n 8 "$scratch/err"
        } | grep -av 'coll_rust report' | head -n 12 | sed 's/^/        /'
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
# Calls that go to the component below, which combines by the CPU: a communicator's first blocking ones, all
# of them, and those that are left to it, in three modes.
first=first_calls=1000000 left=''
for operation in allreduce exscan reduce reduce_scatter reduce_scatter_block scan; do
    left+="${operation}_algorithm=fallback "
done
reductions="--ops allreduce,exscan,reduce,reduce_scatter,reduce_scatter_block,scan"
if [ $full = 0 ]; then
    job 2 first_calls=default device --device all --long 1
    job 2 first_calls=default device --device odd --sides send --long 1
    job 3 first_calls=default device --device even --sides recv --long 1
    job 4 $first sizes --device odd --sample 48 --most 300000
    job 3 "$left" device --device odd --long 1
    # shellcheck disable=SC2086 # two words
    job 4 "$left" sizes --device all --sides recv --sample 48 --most 1100000 $reductions
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
        for settings in "" "shm_zero_copy_min=1" "shm_zero_copy=off" "$messages" "levels=numa,socket,node allreduce_algorithm=shm" first_calls=default $first "$left"; do
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

# On several nodes, where levels and messages between them come in: along trees, rings and leaders.
obstacle=$(cluster_obstacle)
if [ -n "$obstacle" ]; then
    echo "SKIPPED nodes: they cannot be made on this machine: $obstacle"
elif [ $full = 0 ]; then
    job 2,2 "" device --device odd --long 1
    job 2,1,1 "" sizes --device all --sample 160 --most 1100000
    job 2,2 $first device --device odd --long 1
else
    for shape in 2,2 2,1,1 1,1,1,1; do
        for settings in "" "$messages" "levels=node" $first; do
            for whose in odd even all; do
                job $shape "$settings" device --device $whose
                # Below is han there, which gets results wrong where ranks describe the same data by different
                # datatypes.
                [ "$settings" = $first ] || job $shape "$settings" sizes --device $whose --sample 64 --most 1100000
            done
        done
    done
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
