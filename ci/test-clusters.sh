#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The component on two clusters of two nodes each (tests/nodes/cluster.sh). First, one node each reaches the
# other cluster; then none does, but each reaches the head node of its cluster, where a gateway runs.
# Firewalls (or routes, without nftables) forbid all other ways, so that a message between other nodes ends
# the job. Last, what happens to gateways and their link in a stream of operations. Needs root; where the
# machine does not allow it, says so and ends well. Ends with "N passed, M failed".
#
#   ci/test-clusters.sh [--only REGEX] [--dso FOLDER] [--gateway PROGRAM] [--faults]
#   --faults         more of what can happen to gateways and their link (two and a half minutes)
#   ci/test-clusters.sh --wave MS    only examples/wave2d, through gateways so many milliseconds apart
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/nodes/cluster.sh
. tests/clusters/heads.sh
. tests/clusters/faults.sh

only=. folder= gateway= wave= faults=
while [ $# -gt 0 ]; do
    case $1 in
    --only) only=$2 && shift ;;
    --dso) folder=$(cd "$2" && pwd) && shift ;;
    --wave) wave=$2 only='^Wave' && shift ;;
    --faults) faults=1 only='^(Away|Silent|Killed|Together)' ;;
    --gateway) gateway=$(realpath "$2") && shift ;;
    *)
        sed -n '3,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done

prepare test-clusters
cluster_guard
cluster_up
programs cross wave2d stream wire matrix vector neighbor

# North: node0 and node2, behind one switch; south: node1 and node3. The gateways are not the first nodes.
clusters_table "2 3" >"$CLUSTER_WORK/clusters.txt"
cat >"$CLUSTER_WORK/south.conf" <<'SLURM'
SwitchName=sw1 Nodes=node[1,3]
SLURM
cat >"$CLUSTER_WORK/clusters.conf" <<'SLURM'
ClusterName=north Nodes=node[0,2] Gateways=node2
ClusterName=south TopologyFile=south.conf Gateways=node3
SLURM

walls add "2 3"
network=(--mca coll_rust_network_file "$CLUSTER_WORK/clusters.txt")
for by in slot node; do
    job "Counted" 2,2,2,2 $by "${network[@]}" --mca coll_rust_flow_limit 0 "$bin/cross" 3
    counts 3 8
done
slurm=(--mca coll_rust_network_file "$CLUSTER_WORK/clusters.conf")
job "Reproducible, Slurm's files" 2,2,2,2 node "${slurm[@]}" --mca coll_rust_reproducible 1 "$bin/cross" 1
walls del "2 3"

# ---------------------------------------------------------------- through gateways

finish() {
    left=$(cluster_leftovers)
    verdict "what the jobs left on the nodes" "$left" ""
    printf '\n%d passed, %d failed\n' $passed $failed
    [ $failed -eq 0 ]
    exit
}
if [ -z "$gateway" ]; then
    printf '\nleft out: jobs through gateways, of which there is no program here\n'
    finish
fi

heads_up
walls add
clusters_table >"$CLUSTER_WORK/heads.txt"
table=(--mca coll_rust_network_file "$CLUSTER_WORK/heads.txt")
heads=("${table[@]}" --mca coll_rust_gateway_key "$key")
through=("${heads[@]}" --mca coll_rust_gateway "$pair")
export COLL_RUST_TEST_COLLECTIVE_SUM=1
all=(-x COLL_RUST_TEST_COLLECTIVE_SUM "${through[@]}")
[ -z "$wave" ] || cluster_wires "$bin/wire" "$wave" 10000
second=$CLUSTER_WORK/second.key
new_key "$second"
more_keys=", \"$second\""
gateway_start 0
gateway_start 1
if [ -n "$wave" ]; then
    for size in 400 800 1600; do
        printf '\n### %d x %d, %d ms each way\n' $size $size "$wave"
        cluster_run 1,1,1,1 100 --map-by node "${through[@]}" "$bin/wave2d" --size $size --steps 50
    done
    gateways_stop
    exit
fi
for by in slot node; do
    job "Through gateways, counted" 2,2,2,2 $by "${through[@]}" --mca coll_rust_flow_limit 0 "$bin/cross" 3
    counts 3 8
done
job "Through gateways, four operations" 2,1,1,2 node "${all[@]}" "$bin/matrix" --tiny --no-reference --max-count 3000
# The datatype that goes wrong there is in docs/guide/clusters.md.
job "Through gateways, blocks" 2,1,1,2 slot "${all[@]}" "$bin/vector" --tiny --no-reference --below scan,exscan
job "Through gateways, neighbours" 2,2,1,1 node "${all[@]}" "$bin/neighbor" --tiny --clusters

# A job that is to fail: title, what it says, mpirun's arguments and the program.
fails() {
    local title=$1 says=$2 began=$SECONDS code=0
    shift 2
    wanted "$title" || return 0
    printf '\n### %s (from second %d on)\n' "$title" "$began"
    cluster_run 2,2,2,2 60 --mca coll ^tuned,han "$@" >"$CLUSTER_WORK/log" 2>&1 || code=$?
    verdict "it fails" "$([ $code = 0 ] || [ $code = 124 ] && echo "no: $code" || echo yes)" yes
    # A job takes a second or two to start, and on a busy machine more.
    at_most "seconds until it has failed" $((SECONDS - began)) 20
    verdict "it says why" "$(grep -acE -- "$says" "$CLUSTER_WORK/log" | sed 's/^[1-9].*/yes/')" yes
    verdict "and what to do" "$(grep -ac 'is set by' "$CLUSTER_WORK/log" | sed 's/^[1-9].*/yes/')" yes
    [ "${bad_before:-0}" = "$failed" ] || cat "$CLUSTER_WORK/log"
    bad_before=$failed
}
# Whoever tries to pass a wall where it must not is found out here; what follows tries on purpose.
verdict "packets that walls have stopped" "$(stopped)" 0
bad_before=$failed
fails "No gateway" 'cannot be reached.*refused' "${heads[@]}" --mca coll_rust_gateway \
    "north=10.77.0.101:7009,south=10.77.0.102:7009" "$bin/cross" 1
fails "No route to it" 'cannot be reached' "${heads[@]}" --mca coll_rust_gateway \
    "north=10.77.0.102:7000,south=10.77.0.101:7000" "$bin/cross" 1
fails "A cluster without one" 'names no gateway for cluster south' "${heads[@]}" --mca coll_rust_gateway \
    "north=10.77.0.101:7000" "$bin/cross" 1
(umask 077 && od -An -vtx1 -N32 /dev/urandom | tr -d ' \n' >"$CLUSTER_WORK/other.key" && cp "$key" "$CLUSTER_WORK/open.key")
fails "A key that it does not know" 'refuses this process' "${table[@]}" --mca coll_rust_gateway "$pair" --mca coll_rust_gateway_key \
    "$CLUSTER_WORK/other.key" "$bin/cross" 1
chmod 644 "$CLUSTER_WORK/open.key"
fails "A key that others may read" 'chmod 0600' "${table[@]}" --mca coll_rust_gateway "$pair" --mca coll_rust_gateway_key \
    "$CLUSTER_WORK/open.key" "$bin/cross" 1

# ---------------------------------------------------------------- what happens in a stream of operations

if stream_begin "Away for 5 s: the link" 8 "${through[@]}"; then
    link_cut add
    sleep 5
    link_cut del
    goes_on 4
fi
if stream_begin "Killed and started again: a gateway" 60 "${through[@]}"; then
    kill -KILL "${gateway_pid[1]}"
    gateway_start 1
    ends 'closed the connection|connection with it is lost'
fi
[ -z "$faults" ] || more_faults
together
gateways_stop
finish
