#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the component and runs the programs of tests/mpi in real jobs: on this machine and on a synthetic one
# of 2 sockets x 2 NUMA nodes x 2 cores, with many parameter settings. Every job must end well, find no wrong
# result, and say in its report that the component handled the operations on every rank.
#
#   ci/test-mpi.sh [--quick]   a few minutes (default)
#   ci/test-mpi.sh --full      every root, communicator and count; 10,000 restarts and communicators; counts
#                              up to 2^31-1
#     --only REGEX             only the jobs whose line matches
#     --stock                  without the component: proves the programs against Open MPI's own collectives
#     --dso FOLDER             take mca_coll_rust.so from there instead of building it
#
# MPICC and MPIEXEC name another Open MPI than the one in PATH.
set -uo pipefail
cd "$(dirname "$0")/.."

options="--quick --full --only --stock --dso"
. ci/mpi-jobs.sh

# The border between the shim and Rust, without either's other half. Its functions are the same for all
# versions of Open MPI.
border=$scratch/border
case $("$mpicc" --showme:version 2>&1) in
*" 4.1."*)
    "$mpicc" -std=gnu11 -O2 -Wall -Wextra -mcx16 -idirafter ompi-glue/compat -Iompi-glue -o "$border" tests/glue/border.c -lopen-pal \
        || exit 1
    ;;
*) border= ;;
esac

# ---------------------------------------------------------------- the jobs

all=bcast,reduce,allreduce,barrier
extent=--quick restarts=2000 cycles=2000
sizes=(2 3)
[ $full = 0 ] || extent=--full restarts=10000 cycles=10000 sizes=(2 3 8)
matrix_ops=all
[ $stock = 0 ] || matrix_ops=bcast,reduce,allreduce,barrier

job real 1 - "" 60 matrix $extent --ops $matrix_ops
for np in "${sizes[@]}"; do
    job real "$np" $all "" 900 matrix $extent --ops $matrix_ops
done
job real 5 $all "" 1800 matrix $extent --ops $matrix_ops
job real 3 $all "shm_node_limit=0" 1800 matrix --tiny --ops $matrix_ops
job synthetic/core 8 $all "" 300 matrix --tiny --seed 2 --ops $matrix_ops

# The other operations, with shared memory and without, and left to the component below.
blocks=allgather,allgatherv,alltoall,alltoallv,alltoallw,exscan,gather,gatherv,reduce_scatter,reduce_scatter_block,scan,scatter,scatterv
for np in 2 3 5 8; do
    before=$number
    OMPI_MCA_coll=^tuned job real "$np" $blocks "" 900 vector $extent
    met "$before" "$np" $blocks
done
OMPI_MCA_coll=^tuned job synthetic/core 8 $blocks "" 300 vector $extent --seed 2
for np in 2 5; do
    before=$number
    OMPI_MCA_coll=^tuned job real "$np" $blocks "shm_node_limit=0" 900 vector $extent
    met "$before" "$np" $blocks
done
before=$number
OMPI_MCA_coll=^tuned job real 3 - "$(printf '%s_algorithm=fallback ' ${blocks//,/ })" 900 vector $extent --below $blocks
met "$before" 3 $blocks passed
# Every message in pieces.
OMPI_MCA_coll=^tuned job real 3 $blocks "shm_node_limit=0 max_message=64" 900 vector --tiny --seed 6
job real 3 $all "shm_node_limit=0 max_message=64" 300 matrix --tiny --max-count 5000 --seed 7

# Every size where shared memory changes its way, through queues alone, and read from the other process
# wherever that is possible; and where some processes cannot read the others', so that nobody does.
while read -r np sample; do
    [ $full = 0 ] || sample=1
    before=$number
    job real "$np" "bcast,reduce,allreduce,$blocks" "shm_zero_copy=off" 900 sizes --sample "$sample" --seed "$np"
    says_not "$before" 'zero copy by'
    before=$number
    job real "$np" "bcast,reduce,allreduce,$blocks" "shm_zero_copy=cma shm_zero_copy_min=1 verbose=2" 900 sizes --sample "$sample" --seed "$np"
    says_not "$before" process_vm_readv
    says "$before" 'zero copy by cma bytes=[1-9]'
    before=$number
    # Open MPI's own shared memory does not find out by trying.
    launcher=noread OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma \
        job real "$np" "bcast,reduce,allreduce,$blocks" "shm_zero_copy_min=1 verbose=2" 900 sizes --sample "$sample" --seed "$np"
    says "$before" 'process_vm_readv .*[Nn]ot permitted'
    says_not "$before" 'zero copy by cma'
    [ "$btl" = self,sm ] || continue # Open MPI 5.0
    before=$number
    job real "$np" "bcast,reduce,allreduce,$blocks" "shm_zero_copy=smsc shm_zero_copy_min=1 verbose=2" 900 sizes --sample "$sample" --seed "$np"
    says "$before" 'zero copy by smsc bytes=[1-9]'
    before=$number
    OMPI_MCA_smsc=^cma job real "$np" "bcast,reduce,allreduce,$blocks" "shm_zero_copy=smsc shm_zero_copy_min=1 verbose=2" 900 sizes --sample "$sample" --seed "$np"
    says "$before" 'Open MPI has selected no component of smsc'
done <<'NP'
2 4
3 6
5 16
8 60
NP

# What is learned in the first blocking operation counts from there on.
for np in 2 3; do
    before=$number
    job real $np allgather "verbose=2 shm_times=measure" 100 learn
    says "$before" 'shared memory: measured coll_rust_shm_times|which take turns on fewer'
    before=$number
    job real $np allgather "verbose=2 shm_times=measure" 100 learn --never
    says_not "$before" 'shared memory: measured coll_rust_shm_times'
done

# A communicator's first blocking calls, which go to the component below.
for np in 2 3 5; do
    before=$number
    job real $np allreduce "first_calls=3" 60 first --count
    says "$before" ': allreduce handled=[1-9][0-9]* passed=[123] '
    before=$number
    job real $np reduce_scatter "first_calls=3" 60 first --count --shares
    says "$before" ': reduce_scatter handled=[1-9][0-9]* passed=[123] '
    before=$number
    job real $np allreduce "first_calls=3 reproducible=1" 60 first --count
    says_not "$before" ' passed=[1-9]'
    job real $np - "first_calls=3" 100 first
    job real $np - "first_calls=9 shm_node_limit=0" 100 first
done

# Shared memory in small pieces, read from the other process, in another place, waited for in every way; and
# of all sizes from too little for anything to enough for some.
while read -r settings; do
    [ -n "$settings" ] && [ $stock = 0 ] || continue
    OMPI_MCA_coll=^tuned job real 3 $blocks "$settings" 300 vector $extent --seed 3
    job real 5 $all "$settings" 300 matrix --tiny --seed 6 --max-count 70000
    job real 3 - "$settings" 100 doors
    [ $full = 0 ] || OMPI_MCA_coll=^tuned job real 8 $blocks "$settings" 900 vector --full --seed 4
done <<SETTINGS
shm_fragment_size=128 shm_fragments=2
shm_fragment_size=128 shm_fragments=1 shm_sets=1 shm_zero_copy=off shm_wait=yield
shm_zero_copy_min=1 shm_fragment_size=1k
shm_backing=$scratch shm_wait=block
shm_backing=memfd shm_wait=spin
shm_stores=streaming shm_zero_copy=off
shm_node_limit=64k
shm_node_limit=500k flow_limit=3
shm_node_limit=4m
SETTINGS
OMPI_MCA_coll=^tuned job real 3 $blocks "shm_fragment_size=1k" 300 vector --quick --seed 5
for np in 2 3 5; do # among five, blocks of four numbers are longer than a share of a line
    job real $np - "" 100 doors
done
# Open MPI's own reductions spoil memory with datatypes whose data begin behind the origin.
for np in 2 3 8; do
    [ $stock = 1 ] || job real $np "reduce,allreduce,scan,exscan" "" 100 userop --rounds 4
done
job real 3 - "max_tag=32768" 100 doors
if [ -n "$border" ] && [ $stock = 0 ] && grep -qE -- "$only" <<<border; then
    if said=$("$border"); then
        passed=$((passed + 1))
        echo "ok      border ($(tail -n 1 <<<"$said" | sed 's/.*: //'))"
    else
        failed=$((failed + 1))
        echo "FAILED  border:"
        head -n 12 <<<"$said" | sed 's/^/        /'
    fi
fi

# The component is built as a static library alone (scripts/build.sh): short calls go to other functions of
# Rust's by name, and not by the table of addresses.
if [ $stock = 0 ] && [ "$(uname -m)" = x86_64 ] && grep -qE -- "$only" <<<whole; then
    for door in cr_block_gatherv cr_block_reduce; do
        code=$(objdump -d --no-show-raw-insn --disassemble="$door" "$dso/mca_coll_rust.so")
        if grep -qE 'call .*<[^>]*wake_on[0-9a-zA-Z]*>' <<<"$code"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED  whole: $door does not call Team::wake_on by its name"
        fi
    done
fi

# Short calls are a part of their doors, and keep the operation in registers (docs/design/short-calls.md,
# "Operations in registers"): doors hardly copy from the stack by vectors. (Those that did had 10 to 52 such
# loads.)
if [ $stock = 0 ] && [ "$(uname -m)" = x86_64 ] && grep -qE -- "$only" <<<registers; then
    for name in barrier bcast reduce allreduce gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv; do
        code=$(objdump -d --no-show-raw-insn --disassemble="cr_block_$name" "$dso/mca_coll_rust.so")
        length=$(grep -cE '^ +[0-9a-f]+:' <<<"$code" || true)
        copies=$(grep -cE 'mov(ups|dqu|aps|dqa) .*\(%r[a-z0-9]+\),%xmm' <<<"$code" || true)
        if [ "$length" -ge 300 ] && [ "$copies" -le 8 ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED  registers: cr_block_$name has $length instructions (300 or more, if the operation is a part of it), $copies of them vector loads (8 or fewer)"
        fi
    done
fi

# Along the edges of process topologies.
edges=neighbor_allgather,neighbor_allgatherv,neighbor_alltoall,neighbor_alltoallv,neighbor_alltoallw
for np in 2 3 4 6 8; do
    before=$number
    job real "$np" $edges "" 300 neighbor $extent
    met "$before" "$np" $edges
done
job real 4 $edges "shm_node_limit=0 flow_limit=2" 300 neighbor --tiny --seed 2
before=$number
job real 3 - "$(printf '%s_algorithm=fallback ' ${edges//,/ })" 300 neighbor --tiny --below
met "$before" 3 $edges passed

# Ranks that give different lengths for the same data (docs/design/lengths.md says what is covered).
compared=bcast,${blocks},reduce,allreduce,${edges}
if [ $stock = 0 ]; then
    for np in 2 3; do
        job real "$np" - "" 100 guard --quick --only $compared
        job real "$np" - "shm_zero_copy_min=1" 100 guard --quick --only bcast,gather,gatherv,scatter,scatterv,allgather,alltoall,alltoallv,allreduce,neighbor_alltoallv
    done
fi

# The same by messages: sizes for which ranks choose one algorithm, and a root that has less room than comes.
if [ $stock = 0 ]; then
    job real 3 - "shm_node_limit=0" 100 guard --quick --variants shorter,longer --sizes inline,slot --only "$compared"
    job real 3 - "shm_node_limit=0" 100 guard --modes blocking --variants shorter,longer --sizes long --only gather,gatherv,scatter,scatterv
fi

# The ways of calls on plain data: all operations but Alltoallw and Neighbor_alltoallw have one.
if [ $stock = 0 ]; then
    job real 2 "$all,${blocks/,alltoallw/},${edges%,*}" "" 60 lean
    before=$number
    job real 2 "${edges%,*}" "$(printf '%s_algorithm=node:direct ' ${edges//,/ })" 60 lean --messages
    says "$before" 'neighbor_alltoall .*messages=[1-9]'
fi

# Every level, algorithm and segment size at least once, on the machine that has levels. The segment of 1000
# bytes is no multiple of most datatypes.
while read -r settings; do
    [ -n "$settings" ] || continue
    job synthetic/core 8 $all "$settings" 300 matrix --tiny --seed 3 --max-count 70000
    [ $full = 0 ] || job real 3 $all "$settings" 300 matrix --tiny --seed 4
    [ $full = 0 ] || job synthetic/socket 7 $all "$settings" 300 matrix --tiny --seed 5
done <<'SETTINGS'
levels=none bcast_algorithm=flat reduce_algorithm=flat allreduce_algorithm=reduce_bcast barrier_algorithm=tree
levels=none bcast_algorithm=knomial/3 reduce_algorithm=chain allreduce_algorithm=rabenseifner barrier_algorithm=dissemination bcast_segment_size=1k reduce_segment_size=1k
levels=none bcast_algorithm=scatter_allgather reduce_algorithm=reduce_scatter_gather allreduce_algorithm=ring bcast_segment_size=0 reduce_segment_size=0 allreduce_segment_size=0
levels=none bcast_algorithm=chain reduce_algorithm=knomial/4 allreduce_algorithm=recursive_doubling allreduce_segment_size=1000 window=8
levels=numa,node bcast_algorithm=knomial/2 reduce_algorithm=knomial/2 allreduce_algorithm=recursive_doubling barrier_algorithm=tree bcast_segment_size=64k reduce_segment_size=64k allreduce_segment_size=64k
levels=numa,node bcast_algorithm=knomial/4 reduce_algorithm=flat allreduce_algorithm=ring bcast_segment_size=1000 reduce_segment_size=1000 allreduce_segment_size=1k window=1
levels=auto bcast_algorithm=node:scatter_allgather,scatter_allgather reduce_algorithm=node:reduce_scatter_gather,reduce_scatter_gather allreduce_algorithm=node:rabenseifner bcast_segment_size=1k reduce_segment_size=1000 allreduce_segment_size=1k
levels=auto bcast_algorithm=node:flat,flat reduce_algorithm=node:chain,chain allreduce_algorithm=node:reduce_bcast bcast_segment_size=1k reduce_segment_size=1k allreduce_segment_size=1k window=2
levels=auto reproducible=1 reduce_segment_size=1k allreduce_segment_size=1000
SETTINGS

job real 3 $all "" 300 persist --iterations $restarts
# Trees in shared memory, where the ranks of a group are not consecutive; and among many ranks. These take
# none by themselves, as there are fewer cores.
job synthetic/numa 8 reduce,allreduce "levels=numa,node reduce_algorithm=shm allreduce_algorithm=shm" 300 matrix --tiny --seed 6 --ops reduce,allreduce
job wide/core 16 bcast,reduce,allreduce,barrier "" 300 matrix --tiny --seed 7 --max-count 3000 --ops bcast,reduce,allreduce,barrier
job wide/socket 16 bcast,reduce,allreduce,barrier "levels=l3,node bcast_algorithm=shm barrier_algorithm=shm reduce_algorithm=shm allreduce_algorithm=shm" 300 matrix --tiny --seed 8 --max-count 3000 --ops bcast,reduce,allreduce,barrier
job real 2 $all "levels=none bcast_segment_size=1k reduce_segment_size=1k allreduce_segment_size=1k" 300 persist --iterations 500
job synthetic/core 8 $all "" 300 persist --iterations 300
job real 3 bcast,reduce,allreduce "" 60 retain
job real 3 $all "" 200 outstanding
job real 3 $all "shm_node_limit=0" 200 outstanding
job synthetic/core 8 $all "" 300 outstanding --rounds 2
job real 2 $all "flow_limit=1" 200 outstanding --rounds 2
if [ $stock = 0 ]; then
    job real 3 bcast,reduce "" 60 flow
    # Shared memory stops ranks that run ahead by itself.
    job real 3 bcast,reduce "shm_node_limit=0" 60 flow
    job real 2 bcast,reduce "shm_node_limit=0 flow_limit=5" 60 flow --limit 5
    job real 2 bcast,reduce "shm_node_limit=0 flow_limit=0" 60 flow --limit 0
fi
# More operations than there are tags for.
job real 3 $all "max_tag=32768 shm_node_limit=0" 200 outstanding --operations 2400 --rounds 2
job synthetic/core 8 $all "max_tag=32768 shm_node_limit=0" 200 outstanding --operations 1200 --rounds 2
job real 3 $all "max_tag=32768" 200 outstanding --operations 2400 --rounds 2
job real 3 $all "max_tag=32768 shm_node_limit=0" 200 persist --iterations 200
for np in "${sizes[@]}" 5; do
    job real "$np" $all "" 200 identity --parts idup,persistent --iterations $restarts
    job real "$np" $all "shm_node_limit=0" 200 identity --parts idup,persistent --iterations $restarts
done
job synthetic/core 8 $all "" 200 identity --parts idup,persistent --iterations 300
# Requests that are freed leave their place in shared memory to later ones: no operation sends a message.
for np in 2 3 5; do
    before=$number
    job real "$np" $all "" 200 identity --parts few --iterations $restarts
    says_not "$before" ': (barrier|bcast|reduce) .*messages='
done
before=$number
job real 3 $all "max_tag=32768" 200 identity --parts idup,persistent,limit --iterations $restarts
says "$before" '[0-9]+ persistent collectives are alive on one communicator.*free some first'
for np in 2 3 5; do
    job real $np - "levels=none bcast_algorithm=flat bcast_segment_size=64k reduce_algorithm=flat reduce_segment_size=0 window=8" 60 \
        identity --parts bcast_error,reduce_error
done
parts=idle,leak,many,first,overlap,split,inter
[ $stock = 1 ] || parts+=,pending # libnbc crashes where a communicator is freed with operations pending
job tcp 1 - "" 120 comms --cycles 500 --parts $parts,spawn
job tcp 2 $all "" 400 comms --cycles $cycles --parts $parts,spawn
job tcp 5 $all "" 600 comms --cycles $cycles --parts $parts,spawn
job synthetic/core 8 $all "" 300 comms --cycles 200 --alive 50 --parts $parts # spawned processes would find no free core
# Communicators of the same processes share what is known of these: each rank looks them up once.
before=$number
job real 3 - "verbose=2" 100 frugal --parts alive --alive 20
says_times "$before" 'placement: looks up 3 processes' 3
job real 2 $all "" 300 threads
job real 2 $all "shm_node_limit=0" 300 threads
job real 3 $all "" 300 threads --iterations 150
for np in 1 2 5; do
    # Shared memory takes no messages, which this one counts.
    job real $np $([ $np = 1 ] && echo - || echo $all) "shm_node_limit=0" 60 mpit
done
for np in 2 5; do
    job real $np bcast,allreduce "levels=none bcast_algorithm=flat bcast_segment_size=0" 60 errors
done
[ $stock = 0 ] || job real 3 - "" 60 errors
[ $stock = 1 ] || OMPI_MCA_mpi_param_check=0 job real 3 - "" 60 errors --unchecked
# Calls whose arguments do not fit together, and ranks that give different lengths: errors, no panic, and
# nothing written beyond a buffer.
if [ $stock = 0 ]; then
    for np in 2 3; do
        before=$number
        job real $np - "" 60 args
        says_not "$before" 'panicked|internal error'
        for settings in zero_copy_min=1 zero_copy=off; do
            before=$number
            job real $np - "$settings" 100 lengths --quick
            says_not "$before" 'panicked|internal error'
        done
    done
fi

# The same eight ranks in other places, cut in other ways.
first=$((number + 1))
if [ $stock = 0 ]; then
    r=reproducible=1 summing=reduce,allreduce,reduce_scatter,reduce_scatter_block,scan,exscan
    job synthetic/core 8 $summing "$r" 200 repro
    job synthetic/socket 8 $summing "$r" 200 repro
    job synthetic/numa 8 $summing "$r levels=numa,node allreduce_segment_size=1k reduce_segment_size=64k" 200 repro
    job real 8 $summing "$r levels=none allreduce_segment_size=0 reduce_segment_size=1000" 200 repro
    job synthetic/socket 8 $summing "$r reduce_algorithm=flat allreduce_algorithm=ring" 200 repro
    outputs=()
    for ((i = first; i <= number; i++)); do
        outputs+=("$scratch/$i.out")
    done
    [ ${#outputs[@]} -lt 2 ] || same_bits "${outputs[@]}"
else
    job real 3 - "" 100 repro --any-order
fi

if [ $full = 1 ]; then
    for part in bcast reduce allreduce derived; do
        job real 2 - "" 600 large --parts $part
    done
    job real 2 - "shm_node_limit=0" 600 large --parts blocks
    for seed in 11 12 13; do
        job synthetic/socket 8 $all "" 900 matrix --quick --seed $seed
    done
fi

# What opening the component, and leaving it alone, reads and maps: what the job does without it.
if [ $stock = 0 ] && command -v strace >/dev/null; then
    # Files under /sys and /proc that two ranks open, shared memory that they map, descriptors that they make.
    touched() {
        rm -rf "$scratch/traces"
        mkdir "$scratch/traces"
        timeout -k 5 60 "$mpiexec" --mca btl "$btl" --oversubscribe --mca mpi_yield_when_idle 1 "$@" -n 2 \
            strace -ff -qq -e trace=open,openat,mmap,memfd_create -o "$scratch/traces/rank" "$scratch/hello" none >/dev/null 2>&1 </dev/null
        cat "$scratch"/traces/* | grep -v ' = -1 ' | grep -cE '"/(sys|proc)/|MAP_SHARED|memfd_create'
    }
    without=$(touched --mca coll ^rust)
    for settings in "coll_rust_priority -1" "coll_rust_first_calls 9"; do
        # shellcheck disable=SC2086 # a name and a value
        with=$(touched --mca $settings)
        if [ "$without" -gt 0 ] && [ "$with" = "$without" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED  with $settings, two ranks that hardly call collectives open and map $with times, without the component $without times"
        fi
    done
elif [ $stock = 0 ]; then
    echo "what opening the component reads: left out (there is no strace)"
fi

# What it adds to the memory of a program that reduces a few numbers: the code that it calls lies together
# (scripts/order.py). Of a copy, written page by page: the file as a linker has just written it takes up to a
# megabyte more (perhaps since the system maps larger pieces of it).
if [ $stock = 0 ]; then
    mkdir -p "$scratch/copied"
    [ ! -e "$dso/help-coll-rust.txt" ] || cp "$dso/help-coll-rust.txt" "$scratch/copied"
    dd if="$dso/mca_coll_rust.so" of="$scratch/copied/mca_coll_rust.so" bs=4096 status=none
    mapfile -t copied < <(COLL_RUST_OUT=$scratch/copied scripts/env.sh | sed 's/^export //')
    # The least of three jobs, in KiB.
    resident() {
        for _ in 1 2 3; do
            timeout -k 5 60 env "${copied[@]}" "$mpiexec" --mca btl "$btl" --oversubscribe --mca mpi_yield_when_idle 1 "$@" \
                -n 2 "$scratch/few" </dev/null 2>&1
        done | sed -n 's/^resident \([0-9]*\) KiB$/\1/p' | sort -n | head -n 1
    }
    # 2 MB; with Open MPI 5.0, where it is as much, half a megabyte is left for noise.
    most=1953
    [ "$btl" != self,sm ] || most=2441
    without=$(resident --mca coll ^rust) with=$(resident)
    if [ "${without:-0}" -gt 0 ] && [ "${with:-999999}" -le $((without + most)) ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED  a rank that reduces numbers has ${with:-?} KiB with the component, ${without:-?} without it: more than $most KiB more"
    fi
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
