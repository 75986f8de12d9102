#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two, then three clusters of two nodes each, a long way apart: every message between them takes 10 ms, at
# 100 Mbit/s (tests/clusters/wire.c). All operations, right and with the messages that are promised, by
# gateway nodes and through gateways, while a firewall forbids all other ways; what operations cost; and what
# those of coll/tuned and coll/han do without the firewall. For a person to run: 20 minutes. Needs root. Ends
# with "N passed, M failed".
#
#   ci/test-grid.sh [--clusters 2|3] [--only REGEX] [--dso FOLDER] [--gateway PROGRAM] [--save FOLDER]
#   --save   what operations cost, as tables of text in that folder
set -euo pipefail
cd "$(dirname "$0")/.."

only=. folder= gateway= both="2 3" save= rate=100 delay=10
while [ $# -gt 0 ]; do
    case $1 in
    --only) only=$2 && shift ;;
    --clusters) both=$2 && shift ;;
    --dso) folder=$(cd "$2" && pwd) && shift ;;
    --gateway) gateway=$(realpath "$2") && shift ;;
    --save) save=$(realpath "$2") && shift ;;
    *)
        sed -n '3,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
. tests/nodes/cluster.sh
. tests/clusters/heads.sh
prepare test-grid
export COLL_RUST_TEST_COLLECTIVE_SUM=1
patience=300

# What an operation of so many bytes took at least in the last table, in milliseconds: other work on the
# machine makes it longer.
took() { awk -v name="$1" -v bytes="$2" '$1 == name && $2 == bytes { print $3 }' "$CLUSTER_WORK/log"; }

# What operations cost: title, file, mpirun's arguments.
costs() {
    local title=$1 file=$2
    shift 2
    wanted "$title" || return 0
    printf '\n### %s: bytes, ms (least, median), frames and KiB between clusters (from second %d on)\n' "$title" $SECONDS
    cluster_run "$shape" 300 --map-by slot "$@" \
        "$bin/link" "$CLUSTER_WORK/uplink" 7 >"$CLUSTER_WORK/log" 2>&1 || true
    cat "$CLUSTER_WORK/log"
    verdict "$title: right" "$(grep -ac '^link: [1-9][0-9]* passed, 0 failed' "$CLUSTER_WORK/log")" 1
    [ -z "$save" ] || grep -a '^[A-Z].* [0-9.]*$' "$CLUSTER_WORK/log" >"$save/$CLUSTER_SWITCHES-clusters-$file.txt"
}

# The component's own costs, against what the link allows.
bounds() {
    [ $ran = 1 ] || return 0
    at_most "Allreduce of 8 B, ms" "$(took Allreduce 8)" "$(awk "BEGIN { print 1.2 * 2 * $delay }")"
    at_most "Bcast of 1 MiB, ms" "$(took Bcast 1048576)" \
        "$(awk "BEGIN { print 1.2 * ($CLUSTER_SWITCHES - 1) * 8 * 1048576 / (1e3 * $rate) }")"
}

# The messages that are promised: title, mpirun's arguments.
counted() {
    local title=$1
    shift
    for by in slot node; do
        job "$title, counted" "$shape" $by "$@" --mca coll_rust_flow_limit 0 "$bin/cross" 1
        counts 1 $((4 * CLUSTER_SWITCHES))
    done
}

# All operations in three modes: title, mpirun's arguments.
everything() {
    local title=$1
    shift
    set -- "$title" "$few" slot -x COLL_RUST_TEST_COLLECTIVE_SUM "$@"
    job "$1, four operations" "${@:2}" "$bin/matrix" --tiny --no-reference --max-count 3000
    job "$1, blocks" "${@:2}" "$bin/vector" --tiny --no-reference --below scan,exscan
    job "$1, neighbours" "${@:2}" "$bin/neighbor" --tiny --clusters
}

for CLUSTER_SWITCHES in $both; do
    CLUSTER_NODES=$((2 * CLUSTER_SWITCHES))
    printf '\n## %d clusters\n' "$CLUSTER_SWITCHES"
    cluster_guard
    cluster_up
    programs wire link cross matrix vector neighbor
    cluster_wires "$bin/wire" $delay $rate
    # The programs of all operations have communicators of every other rank, and of the first three: these
    # need processes on gateway nodes. In the others the gateways are the second nodes.
    shape=2,2,2,2 few=2,2,1,1 first="0 1" second="2 3"
    [ "$CLUSTER_SWITCHES" = 2 ] || shape=2,2,2,2,2,2 few=2,2,2,1,1,1 first="0 1 2" second="3 4 5"

    costs "coll/tuned" tuned --mca coll ^rust,han
    costs "coll/han" han --mca coll ^rust --mca coll_han_priority 100
    for gates in "$second" "$first"; do
        clusters_table "$gates" >"$CLUSTER_WORK/gates.txt"
        by_nodes=(--mca coll_rust_network_file "$CLUSTER_WORK/gates.txt")
        walls add "$gates"
        if [ "$gates" = "$second" ]; then
            costs "By gateway nodes" nodes --mca coll ^tuned,han "${by_nodes[@]}"
            bounds
            counted "By gateway nodes" "${by_nodes[@]}"
        else
            everything "By gateway nodes" "${by_nodes[@]}"
        fi
        verdict "packets that walls have stopped" "$(stopped)" 0
        walls del "$gates"
    done

    heads_up
    clusters_table >"$CLUSTER_WORK/heads.txt"
    through=(--mca coll_rust_network_file "$CLUSTER_WORK/heads.txt" --mca coll_rust_gateway "$pair" --mca coll_rust_gateway_key "$key")
    walls add
    for head in $(seq 0 $((CLUSTER_SWITCHES - 1))); do gateway_start "$head"; done
    costs "Through gateways" gateways --mca coll ^tuned,han "${through[@]}"
    bounds
    counted "Through gateways" "${through[@]}"
    everything "Through gateways" "${through[@]}"
    verdict "packets that walls have stopped" "$(stopped)" 0
    verdict "what the jobs left on the nodes" "$(cluster_leftovers)" ""
    gateways_stop
    cluster_down
done
printf '\n%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]
