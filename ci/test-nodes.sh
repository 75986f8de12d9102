#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The component on a cluster of four nodes and two switches (tests/nodes/cluster.sh): how many bytes cross
# between the switches, whether results are right, and how fast it is when the link between the switches is
# slow. Needs root; where the machine does not allow it, says so and ends well. Ends with "N passed, M
# failed".
#
#   ci/test-nodes.sh            the same as --quick
#   ci/test-nodes.sh --quick    counts of Bcast and Reduce for a few roots; results; times of operations with
#                               blocks, not judged
#   ci/test-nodes.sh --full     counts of all roots and speed, two shapes of job, as tables in Markdown
#   ci/test-nodes.sh --costs    what a message costs between nodes and within one, without building ours
#                               (src/select/cost.rs)
#   ci/test-nodes.sh --stock    the tables of Open MPI's own components, without building ours
#     --only REGEX              only the jobs whose title, shape and mapping match
#     --dso FOLDER              take mca_coll_rust.so from there instead of building it
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/nodes/cluster.sh

mode=--quick variants=tuned,han,rust only=. folder=
while [ $# -gt 0 ]; do
    case $1 in
    --quick | --full) mode=$1 ;;
    --stock | --costs) mode=$1 variants=tuned,han ;;
    --only) only=$2 && shift ;;
    --dso) folder=$(cd "$2" && pwd) && shift ;;
    *)
        sed -n '3,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
rate=200 # Mbit/s of the uplink in the speed test

obstacle=$(cluster_obstacle)
if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then obstacle=${obstacle:-no Open MPI}; fi
if [ -n "$obstacle" ]; then
    echo "skipped: nodes cannot be made on this machine: $obstacle"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

if [ "$mode" != --stock ] && [ "$mode" != --costs ]; then
    [ -n "$folder" ] || folder=$(COLL_RUST_SKIP_MPIPERF=1 scripts/build.sh | tail -n 1)
    [ -e "$folder/mca_coll_rust.so" ] || { echo "test-nodes: no component in '$folder'" >&2; exit 1; }
    exports=$(COLL_RUST_OUT=$folder scripts/env.sh)
    eval "$exports"
fi

passed=0
failed=0

# Whether a job is wanted: title, shape, mapping.
wanted() {
    grep -qE -- "$only" <<<"$1 $2 $3"
}

# A job: title, shape, mapping, seconds, mpirun's further arguments and the program.
ran=0
job() {
    local title=$1 shape=$2 by=$3 seconds=$4 code=0
    shift 4
    ran=0
    wanted "$title" "$shape" "$by" || return 0
    ran=1
    by=$(cluster_mapping "$by" "$shape")
    printf '\n### %s, %s ranks per node, mapped by %s\n\n' "$title" "${shape//,/+}" "$by"
    cluster_run "$shape" "$seconds" --map-by "$by" --mca coll_han_priority 20 "$@" >"$CLUSTER_WORK/log" 2>&1 || code=$?
    tally $code "$CLUSTER_WORK/log"
}

# The last job's output has one line with each of these.
shown() {
    local pattern
    [ $ran = 1 ] || return 0
    for pattern; do
        if [ "$(grep -acE -- "$pattern" "$CLUSTER_WORK/log")" = 1 ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL: not shown once: $pattern"
        fi
    done
}

# Every operation of the last job was served by the component, and none was passed on.
served() {
    local operation
    [ $ran = 1 ] || return 0
    for operation in allgather allgatherv alltoall alltoallv alltoallw exscan gather gatherv reduce_scatter reduce_scatter_block scan scatter \
        scatterv; do
        if grep -aq "coll_rust report:.*: $operation handled=[1-9][0-9]* passed=0" "$CLUSTER_WORK/log" &&
            ! grep -aq "coll_rust report:.*: $operation handled=[0-9]* passed=[1-9]" "$CLUSTER_WORK/log"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL: $operation was not served by the component"
        fi
    done
}

cluster_guard

# Before our own cluster is up: the sweep it tests must find only its own run's folder.
if wanted "What a killed run leaves" 2,2,2,2 slot; then
    cleanup_log=$(mktemp)
    code=0
    bash tests/nodes/cleanup.sh >"$cleanup_log" 2>&1 || code=$?
    tally $code "$cleanup_log"
    rm -f "$cleanup_log"
fi

cluster_up
bin=$CLUSTER_WORK/bin
mkdir "$bin"
for program in count speed correct torus inside within costs; do
    mpicc -O2 -Wall -Wextra -Werror -o "$bin/$program" "tests/nodes/$program.c"
done
mpicc -O2 -Wall -Wextra -Werror -o "$bin/vector" tests/mpi/vector.c -lm
mpicc -std=gnu11 -O2 -Wall -Wextra -o "$bin/neighbor" tests/mpi/neighbor.c -lm -lpthread
network=(--mca coll_rust_network_file "$CLUSTER_WORK/network.txt")
slurm=(--mca coll_rust_network_file "$CLUSTER_WORK/topology.conf")
[ "$mode" != --stock ] || network=()

if [ "$mode" = --costs ]; then
    for shape in 1,1 2; do
        printf '%s: ' "$([ $shape = 2 ] && echo within a node || echo between nodes)"
        cluster_run $shape 60 --map-by node "$bin/costs" 2>/dev/null
    done
    exit 0
fi

case $mode in
--quick)
    job "Bytes across the uplink" 3,2,1,2 slot 100 "${network[@]}" \
        "$bin/count" "$CLUSTER_WORK/uplink" tuned,rust Bcast,Reduce 0,2,4,5,7 3
    ;;
*)
    for shape in 3,2,1,2 2,2,2,2; do
        job "Bytes across the uplink" $shape slot 300 "${network[@]}" \
            "$bin/count" "$CLUSTER_WORK/uplink" $variants Bcast,Reduce,Allreduce all 10
    done
    ;;
esac

if [ "$mode" != --stock ]; then
    job "Results, network file" 3,2,1,2 slot 100 "${network[@]}" "$bin/correct" rust
    job "Results, Slurm's network file" 3,2,1,2 node 100 "${slurm[@]}" "$bin/correct" rust
    # What Slurm would tell each task of its place; and where one node lacks it.
    cat >"$CLUSTER_WORK/slurm" <<'SLURM'
node=$(hostname)
if [ "$node" != "$1" ]; then
    export SLURM_TOPOLOGY_ADDR="top.sw$((${node#node} % 2)).$node" SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node
fi
shift
exec "$@"
SLURM
    show=(--mca coll_rust_show hierarchy sh "$CLUSTER_WORK/slurm")
    job "Results, Slurm's addresses" 2,2,2,2 slot 100 "${show[@]}" all "$bin/correct" rust
    shown 'switch2 top: ranks 0,[24], leader 0' 'switch1 sw0: ranks 0,[24], leader 0' 'switch1 sw1: ranks [24],6, leader [24]'
    job "Results, one node without an address" 2,2,2,2 slot 100 "${show[@]}" node3 "$bin/correct" rust
    shown '1 of 4 nodes have no SLURM_TOPOLOGY_ADDR .*: node3\. They are placed' 'switch1 sw0: ranks 0,[24], leader 0' 'cluster: ranks 0,6, leader 0'
    job "Results, no network file" 3,2,1,2 slot 100 "$bin/correct" rust
    # The operations with a block for each rank. Where ranks describe the same data by different datatypes,
    # Open MPI's coll/tuned hangs, and its coll/han gets results wrong.
    blocks=(--mca coll ^tuned,han --mca coll_rust_report ranks "$bin/vector")
    job "Blocks, network file" 3,2,1,2 slot 200 "${network[@]}" "${blocks[@]}" --quick
    served
    job "Blocks, no network file" 2,2,2,2 node 200 "${blocks[@]}" --tiny --seed 2
    served
    job "Blocks, the second algorithms" 2,1,2,1 node 200 --mca coll_rust_gather_algorithm knomial --mca coll_rust_gatherv_algorithm knomial \
        --mca coll_rust_scatter_algorithm knomial --mca coll_rust_scatterv_algorithm knomial --mca coll_rust_allgather_algorithm bruck \
        --mca coll_rust_allgatherv_algorithm linear --mca coll_rust_alltoall_algorithm bruck/3 --mca coll_rust_alltoallv_algorithm pairwise \
        --mca coll_rust_reduce_scatter_algorithm recursive_halving --mca coll_rust_reduce_scatter_block_algorithm ring \
        --mca coll_rust_scan_algorithm linear "${blocks[@]}" --tiny --seed 3
    served
    # What stays within the nodes: shared memory, on all of them, on some, on none, named; and what a dead
    # rank leaves.
    job "Within the nodes" 3,2,1,2 slot 100 "${network[@]}" "$bin/inside" shared
    job "Within the nodes, in files" 2,2,2,2 node 100 --mca coll_rust_shm_backing /dev/shm "$bin/inside" shared
    job "Within the nodes, by name" 3,2,1,2 slot 100 --mca coll_rust_levels numa,node --mca coll_rust_bcast_algorithm node:shm,cluster:chain \
        --mca coll_rust_allreduce_algorithm node:shm,ring --mca coll_rust_reduce_algorithm shm --mca coll_rust_barrier_algorithm shm \
        "$bin/inside" shared
    job "Within the nodes, without shared memory" 3,2,1,2 slot 100 --mca coll_rust_shm_node_limit 0 "$bin/inside" messages
    job "Within the nodes, with little" 3,2,1,2 slot 100 --mca coll_rust_shm_node_limit 1m "$bin/inside" any
    nsenter --target "${CLUSTER_PID[node0]}" --mount --pid mkdir "$CLUSTER_WORK/local/shm"
    job "Within the nodes, on one only" 3,2,1,2 slot 100 --mca coll_rust_shm_backing "$CLUSTER_WORK/local/shm" "$bin/inside" any
    job "Blocks within the nodes" 3,2,1,2 slot 100 "${network[@]}" "$bin/within" shared
    job "Blocks within the nodes, without shared memory" 3,2,1,2 slot 100 --mca coll_rust_shm_node_limit 0 "$bin/within" messages
    job "Blocks within the nodes, on one only" 3,2,1,2 node 100 --mca coll_rust_shm_backing "$CLUSTER_WORK/local/shm" "$bin/within" any
    for program in inside within; do
        wanted "A killed rank, $program" 3,2,1,2 slot || continue
        cluster_run 3,2,1,2 100 --mca coll_rust_shm_backing /dev/shm "$bin/$program" kill >"$CLUSTER_WORK/log" 2>&1 || true
        # With 5.0, a rank on another node may be the first to notice, and abort.
        if ! grep -aq FAIL "$CLUSTER_WORK/log" && grep -aqE 'signal 9|Socket closed' "$CLUSTER_WORK/log" && [ -z "$(cluster_leftovers)" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL: a rank that was killed did not end its job, or left something: $program"
            cat "$CLUSTER_WORK/log"
        fi
    done
    job "Results, levels = node" 2,2,2,2 node 100 "${network[@]}" --mca coll_rust_levels node "$bin/correct" rust
    job "Results, levels = none" 3,2,1,2 node 100 "${network[@]}" --mca coll_rust_levels none "$bin/correct" rust
    # Through leaders, whatever the choice would be.
    through=()
    for operation in gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv alltoallw reduce_scatter \
        reduce_scatter_block scan exscan; do
        through+=(--mca "coll_rust_${operation}_algorithm" hierarchical)
    done
    job "Blocks, through leaders" 3,2,1,2 node 200 "${network[@]}" "${through[@]}" "${blocks[@]}" --tiny --seed 4
    served
    job "Blocks, through leaders, levels = node" 2,2,2,2 slot 200 --mca coll_rust_levels node "${through[@]}" "${blocks[@]}" --tiny --seed 5
    served
fi

bundles=()
for operation in allgather allgatherv alltoall alltoallv alltoallw; do
    bundles+=(--mca "coll_rust_neighbor_${operation}_algorithm" aggregated)
done
if [ "$mode" != --stock ]; then
    job "Neighbours" 3,2,1,2 slot 200 "${network[@]}" "$bin/neighbor" --tiny --seed 6
    job "Neighbours, in bundles" 3,2,1,2 slot 200 "${network[@]}" "${bundles[@]}" "$bin/neighbor" --tiny --seed 3
    job "Neighbours, in bundles, often acknowledged" 3,2,1,2 slot 200 --mca coll_rust_flow_limit 4 "${bundles[@]}" "$bin/neighbor" --tiny --seed 7
    job "Neighbours on a torus, in bundles" 2,2,2,2 node 100 "${bundles[@]}" "$bin/torus" rust 3
fi

if [ "$mode" = --quick ]; then
    cluster_rate ${rate}mbit
    job "Times with blocks, $rate Mbit/s between the switches" 2,2,2,2 node 100 "${network[@]}" \
        "$bin/speed" tuned,rust ${rate}e6 $((CLUSTER_BURST * 1024)) few
    cluster_rate off
else
    printf '\nLoad of the machine before the next jobs: %s on %s cores\n' "$(cut -d' ' -f1 /proc/loadavg)" "$(nproc)"
    job "Neighbours on a torus" 2,2,2,2 node 100 "$bin/torus" $variants 21
    [ "$mode" = --stock ] || job "Neighbours on a torus, in bundles" 2,2,2,2 node 100 "${bundles[@]}" "$bin/torus" $variants 21
    cluster_rate ${rate}mbit
    for shape in 3,2,1,2 2,2,2,2; do
        # Times mean little where other programs want the cores too.
        printf '\nLoad of the machine before the next job: %s on %s cores\n' "$(cut -d' ' -f1 /proc/loadavg)" "$(nproc)"
        job "Speed, $rate Mbit/s between the switches" $shape node 900 "${network[@]}" "$bin/speed" $variants ${rate}e6 $((CLUSTER_BURST * 1024)) whole
        job "Speed with blocks, $rate Mbit/s between the switches" $shape node 900 "${network[@]}" \
            "$bin/speed" $variants ${rate}e6 $((CLUSTER_BURST * 1024)) blocks
        job "Speed of neighbours on a torus, $rate Mbit/s between the switches" $shape node 300 "${network[@]}" \
            "$bin/speed" $variants ${rate}e6 $((CLUSTER_BURST * 1024)) torus
    done
    cluster_rate off
fi

left=$(cluster_leftovers)
if [ -z "$left" ]; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    printf '\nFAIL: the jobs left this on the nodes:\n%s\n' "$left"
fi

printf '\n%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]
