#!/bin/bash
# The component on two clusters of two nodes each (tests/nodes/cluster.sh), of which one node each reaches the
# other cluster: routes forbid all other ways, so that a message between other nodes ends the job. Needs root;
# where the machine does not allow it, says so and ends well. Ends with "N passed, M failed".
#
#   ci/test-clusters.sh [--only REGEX] [--dso FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/nodes/cluster.sh

only=. folder=
while [ $# -gt 0 ]; do
    case $1 in
    --only) only=$2 && shift ;;
    --dso) folder=$(cd "$2" && pwd) && shift ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done

obstacle=$(cluster_obstacle)
if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then obstacle=${obstacle:-no Open MPI}; fi
if [ -n "$obstacle" ]; then
    echo "skipped: nodes cannot be made on this machine: $obstacle"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
[ -n "$folder" ] || folder=$(COLL_RUST_SKIP_MPIPERF=1 ci/build.sh | tail -n 1)
[ -e "$folder/mca_coll_rust.so" ] || { echo "test-clusters: no component in '$folder'" >&2; exit 1; }
exports=$(COLL_RUST_OUT=$folder ci/env.sh)
eval "$exports"

passed=0
failed=0
cluster_guard
cluster_up
bin=$CLUSTER_WORK/bin
mkdir "$bin"
mpicc -O2 -Wall -Wextra -Werror -o "$bin/cross" tests/clusters/cross.c

# North: node0 and node2, behind one switch; south: node1 and node3. The gateways are not the first nodes.
cat >"$CLUSTER_WORK/clusters.txt" <<'TABLE'
node0 sw0 cluster:north
node1 sw1 cluster:south
node2 sw0 cluster:north gateway
node3 sw1 cluster:south gateway
TABLE
cat >"$CLUSTER_WORK/south.conf" <<'SLURM'
SwitchName=sw1 Nodes=node[1,3]
SLURM
cat >"$CLUSTER_WORK/clusters.conf" <<'SLURM'
ClusterName=north Nodes=node[0,2] Gateways=node2
ClusterName=south TopologyFile=south.conf Gateways=node3
SLURM

# Forbids a node the ways to others; or, by "del", allows them again.
routes() {
    local verb=$1 node=$2 other
    shift 2
    for other; do
        nsenter --target "${CLUSTER_PID[node$node]}" --net ip route "$verb" prohibit "10.77.0.$((other + 1))/32"
    done
}
firewall() {
    routes "$1" 0 1 3
    routes "$1" 1 0 2
    routes "$1" 2 1
    routes "$1" 3 0
}

# A job: title, shape, mapping, mpirun's further arguments and the program, which ends with its numbers.
ran=0
job() {
    local title=$1 shape=$2 by=$3 code=0 good bad
    shift 3
    ran=0
    grep -qE -- "$only" <<<"$title $shape $by" || return 0
    ran=1
    printf '\n### %s, %s ranks per node, mapped by %s\n' "$title" "$shape" "$by"
    cluster_run "$shape" 100 --map-by "$by" --mca coll ^tuned,han --mca coll_rust_report ranks "$@" >"$CLUSTER_WORK/log" 2>&1 || code=$?
    grep -av '^coll_rust report' "$CLUSTER_WORK/log" || true
    good=$(tr -d '\0' <"$CLUSTER_WORK/log" | sed -n 's/^[a-z]*: \([0-9]*\) passed, \([0-9]*\) failed$/\1/p' | tail -n 1)
    bad=$(tr -d '\0' <"$CLUSTER_WORK/log" | sed -n 's/^[a-z]*: \([0-9]*\) passed, \([0-9]*\) failed$/\2/p' | tail -n 1)
    if [ -z "$good" ] || { [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
        echo "FAIL: ended with exit code $code"
        bad=$((${bad:-0} + 1))
    fi
    passed=$((passed + ${good:-0}))
    failed=$((failed + bad))
    # What the component does not serve would go from rank to rank.
    verdict "no call was passed on" "$(grep -ac '^coll_rust report:.* passed=[1-9]' "$CLUSTER_WORK/log" || true)" 0
}

verdict() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL: $1: $2, expected $3"
    fi
}

# Messages between clusters of an operation in the last job.
crossed() {
    awk -v operation="$1" '/^coll_rust report:/ && $5 == operation {
        for (i = 6; i < NF; i++) if ($i == "grid:") { sub("messages=", "", $(i + 1)); sum += $(i + 1) }
    } END { print sum + 0 }' "$CLUSTER_WORK/log"
}
count() {
    [ $ran = 0 ] || verdict "messages of $1 between clusters" "$(crossed "$1")" "$2"
}

firewall add
network=(--mca coll_rust_network_file "$CLUSTER_WORK/clusters.txt")
for by in slot node; do
    job "Counted" 2,2,2,2 $by "${network[@]}" --mca coll_rust_flow_limit 0 "$bin/cross" 3
    # From or to each of 8 ranks, three times; two clusters. The last Allreduce sums up the results.
    for operation in bcast gather scatter; do count $operation $((8 * 3)); done
    count reduce $((2 * 8 * 3)) # and Ireduce
    count allreduce $((2 * (3 + 1)))
    count alltoall $((2 * 3))
    count scan $((2 * 3))
    count barrier $((2 * 3))
done
slurm=(--mca coll_rust_network_file "$CLUSTER_WORK/clusters.conf")
job "Reproducible, Slurm's files" 2,2,2,2 node "${slurm[@]}" --mca coll_rust_reproducible 1 "$bin/cross" 1
firewall del
left=$(cluster_leftovers)
verdict "what the jobs left on the nodes" "$left" ""
printf '\n%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]
