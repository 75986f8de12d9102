#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The component on two clusters of two nodes each (tests/nodes/cluster.sh). First, one node each reaches the
# other cluster; then none does, but each reaches the head node of its cluster, where a gateway runs. Routes
# forbid all other ways, so that a message between other nodes ends the job. Needs root; where the machine
# does not allow it, says so and ends well. Ends with "N passed, M failed".
#
#   ci/test-clusters.sh [--only REGEX] [--dso FOLDER] [--gateway PROGRAM]
#   ci/test-clusters.sh --wave MS    only examples/wave2d, through gateways so many milliseconds apart
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/nodes/cluster.sh

only=. folder= gateway= wave=
while [ $# -gt 0 ]; do
    case $1 in
    --only) only=$2 && shift ;;
    --dso) folder=$(cd "$2" && pwd) && shift ;;
    --wave) wave=$2 only='^Wave' && shift ;;
    --gateway) gateway=$(realpath "$2") && shift ;;
    *)
        sed -n '3,/^set/s/^# \{0,1\}//p' "$0" >&2
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
[ -n "$folder" ] || folder=$(COLL_RUST_SKIP_MPIPERF=1 scripts/build.sh | tail -n 1)
[ -e "$folder/mca_coll_rust.so" ] || { echo "test-clusters: no component in '$folder'" >&2; exit 1; }
if [ -z "$gateway" ] && [ -d gateway ]; then
    cargo build --quiet -p coll-rust-gateway
    gateway=$(realpath "${CARGO_TARGET_DIR:-target}/debug/coll-rust-gateway")
fi
exports=$(COLL_RUST_OUT=$folder scripts/env.sh)
eval "$exports"

passed=0
failed=0
cluster_guard
cluster_up
bin=$CLUSTER_WORK/bin
mkdir "$bin"
mpicc -O2 -Wall -Wextra -Werror -o "$bin/cross" tests/clusters/cross.c
mpicc -O3 -Wall -Wextra -Werror -o "$bin/wave2d" examples/wave2d.c -lm
gcc -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -o "$bin/delay" tests/clusters/delay.c
for program in matrix vector neighbor; do
    mpicc -std=gnu11 -O2 -Wall -Wextra -o "$bin/$program" "tests/mpi/$program.c" -lm -lpthread
done

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
    printf '\n### %s, %s ranks per node, mapped by %s (from second %d on)\n' "$title" "$shape" "$by" $SECONDS
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

counts() {
    # From or to each of 8 ranks, three times; two clusters. The last Allreduce sums up the results.
    for operation in bcast gather scatter; do count $operation $((8 * 3)); done
    count reduce $((2 * 8 * 3)) # and Ireduce
    count allreduce $((2 * (3 + 1)))
    count alltoall $((2 * 3))
    count scan $((2 * 3))
    count barrier $((2 * 3))
}

firewall add
network=(--mca coll_rust_network_file "$CLUSTER_WORK/clusters.txt")
for by in slot node; do
    job "Counted" 2,2,2,2 $by "${network[@]}" --mca coll_rust_flow_limit 0 "$bin/cross" 3
    counts
done
slurm=(--mca coll_rust_network_file "$CLUSTER_WORK/clusters.conf")
job "Reproducible, Slurm's files" 2,2,2,2 node "${slurm[@]}" --mca coll_rust_reproducible 1 "$bin/cross" 1
firewall del

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

# The head nodes: head0 (of north, behind sw0) and head1.
declare -A gateway_pid=()
for head in 0 1; do
    cluster_boot "head$head" "--net --uts --mount"
    cluster_cable "head$head" "sw$head" "10.77.0.$((101 + head))"
done
key=$CLUSTER_WORK/test.key
(umask 077 && od -An -vtx1 -N32 /dev/urandom | tr -d ' \n' >"$key")
clusters=(north south)

# Starts the gateway of a head node.
gateway_start() {
    local head=$1 other=$((1 - $1)) address
    # North connects to south, by a link that takes time if there is to be one.
    address="address = \"10.77.0.102:7001\""
    [ -z "$wave" ] || address="address = \"10.77.0.101:7002\""
    [ "$head" = 0 ] || address=
    cat >"$CLUSTER_WORK/head$head.toml" <<TOML
cluster = "${clusters[head]}"
inside = "10.77.0.$((101 + head)):7000"
outside = "10.77.0.$((101 + head)):7001"
keys = ["$key"]
[peers.${clusters[other]}]
$address
TOML
    nsenter --target "${CLUSTER_PID[head$head]}" --net --uts --mount setpriv --pdeathsig KILL "$gateway" "$CLUSTER_WORK/head$head.toml" \
        >"$CLUSTER_WORK/head$head.log" 2>&1 &
    gateway_pid[$head]=$!
    for _ in $(seq 100); do
        ! grep -q '^inside' "$CLUSTER_WORK/head$head.log" || return 0
        sleep 0.1
    done
    cat "$CLUSTER_WORK/head$head.log" >&2
    return 1
}

routes add 0 1 3 101
routes add 2 1 3 101
routes add 1 0 2 100
routes add 3 0 2 100
cat >"$CLUSTER_WORK/heads.txt" <<'TABLE'
node0 sw0 cluster:north
node1 sw1 cluster:south
node2 sw0 cluster:north
node3 sw1 cluster:south
TABLE
table=(--mca coll_rust_network_file "$CLUSTER_WORK/heads.txt")
heads=("${table[@]}" --mca coll_rust_gateway_key "$key")
pair="north=10.77.0.101:7000,south=10.77.0.102:7000"
through=("${heads[@]}" --mca coll_rust_gateway "$pair")
export COLL_RUST_TEST_COLLECTIVE_SUM=1
all=(-x COLL_RUST_TEST_COLLECTIVE_SUM "${through[@]}")
if [ -n "$wave" ]; then
    nsenter --target "${CLUSTER_PID[head0]}" --net setpriv --pdeathsig KILL "$bin/delay" 10.77.0.101 7002 10.77.0.102 7001 "$wave" &
fi
gateway_start 0
gateway_start 1
if [ -n "$wave" ]; then
    for size in 400 800 1200 1600; do
        printf '\n### %d x %d, %d ms each way\n' $size $size "$wave"
        cluster_run 1,1,1,1 100 --map-by node "${through[@]}" "$bin/wave2d" --size $size --steps 50
    done
    exit
fi
for by in slot node; do
    job "Through gateways, counted" 2,2,2,2 $by "${through[@]}" --mca coll_rust_flow_limit 0 "$bin/cross" 3
    counts
done
job "Through gateways, four operations" 2,1,1,2 node "${all[@]}" "$bin/matrix" --tiny --no-reference --max-count 3000
# The datatype that goes wrong there is in docs/guide/clusters.md.
job "Through gateways, blocks" 2,1,1,2 slot "${all[@]}" "$bin/vector" --tiny --no-reference --below scan,exscan
job "Through gateways, neighbours" 2,2,1,1 node "${all[@]}" "$bin/neighbor" --tiny --clusters

# A job that is to fail: title, what it says, seconds that it may take from now on (or, with a number of
# seconds before it, from when the gateway of the south is killed), mpirun's arguments and the program.
fails() {
    local title=$1 says=$2 wait=$3 began code=0
    shift 3
    grep -qE -- "$only" <<<"$title" || return 0
    began=$SECONDS
    printf '\n### %s (from second %d on)\n' "$title" "$began"
    if [ "$wait" -gt 0 ]; then
        (
            sleep "$wait"
            kill -KILL "${gateway_pid[1]}"
        ) &
    fi
    cluster_run 2,2,2,2 60 --mca coll ^tuned,han "$@" >"$CLUSTER_WORK/log" 2>&1 || code=$?
    verdict "it fails" "$([ $code = 0 ] || [ $code = 124 ] && echo "no: $code" || echo yes)" yes
    verdict "within 10 s" "$([ $((SECONDS - began - wait)) -le 11 ] && echo yes || echo "$((SECONDS - began - wait)) s")" yes
    verdict "it says why" "$(grep -acE -- "$says" "$CLUSTER_WORK/log" | sed 's/^[1-9].*/yes/')" yes
    verdict "and what to do" "$(grep -ac 'is set by' "$CLUSTER_WORK/log" | sed 's/^[1-9].*/yes/')" yes
    [ "${bad_before:-0}" = "$failed" ] || cat "$CLUSTER_WORK/log"
    bad_before=$failed
}
bad_before=$failed
fails "No gateway" 'cannot be reached.*refused' 0 "${heads[@]}" --mca coll_rust_gateway \
    "north=10.77.0.101:7009,south=10.77.0.102:7009" "$bin/cross" 1
fails "No route to it" 'cannot be reached' 0 "${heads[@]}" --mca coll_rust_gateway \
    "north=10.77.0.102:7000,south=10.77.0.101:7000" "$bin/cross" 1
fails "A cluster without one" 'names no gateway for cluster south' 0 "${heads[@]}" --mca coll_rust_gateway \
    "north=10.77.0.101:7000" "$bin/cross" 1
(umask 077 && od -An -vtx1 -N32 /dev/urandom | tr -d ' \n' >"$CLUSTER_WORK/other.key" && cp "$key" "$CLUSTER_WORK/open.key")
fails "A key that it does not know" 'refuses this process' 0 "${table[@]}" --mca coll_rust_gateway "$pair" --mca coll_rust_gateway_key \
    "$CLUSTER_WORK/other.key" "$bin/cross" 1
chmod 644 "$CLUSTER_WORK/open.key"
fails "A key that others may read" 'chmod 0600' 0 "${table[@]}" --mca coll_rust_gateway "$pair" --mca coll_rust_gateway_key \
    "$CLUSTER_WORK/open.key" "$bin/cross" 1
fails "A gateway is killed" 'closed the connection|connection with it is lost' 4 "${through[@]}" "$bin/cross" 1000000
kill "${gateway_pid[0]}" 2>/dev/null || true
finish
