# SPDX-License-Identifier: BSD-3-Clause
# Clusters of nodes on top of tests/nodes/cluster.sh: who may reach whom, head nodes and their gateways.
# Sourced (bash) where `only`, `folder` and `gateway` are set. The nodes behind a switch are
# a cluster; its head node has the address 10.77.0.(101 + its number).

clusters=(north south east)
declare -A gateway_pid=()
ran=0
passed=0
failed=0

# Finds, or builds, what is to be tested. Where this machine cannot hold nodes, says so and ends well.
prepare() {
    local obstacle exports
    obstacle=$(cluster_obstacle)
    if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then obstacle=${obstacle:-no Open MPI}; fi
    if [ -n "$obstacle" ]; then
        echo "skipped: nodes cannot be made on this machine: $obstacle"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    fi
    [ -n "$folder" ] || folder=$(COLL_RUST_SKIP_MPIPERF=1 scripts/build.sh | tail -n 1)
    [ -e "$folder/mca_coll_rust.so" ] || { echo "$1: no component in '$folder'" >&2; exit 1; }
    if [ -z "$gateway" ] && [ -d gateway ]; then
        cargo build --quiet -p coll-rust-gateway
        gateway=$(realpath "${CARGO_TARGET_DIR:-target}/debug/coll-rust-gateway")
    fi
    exports=$(COLL_RUST_OUT=$folder scripts/env.sh)
    eval "$exports"
}

# Compiles programs into `bin`, a folder of the cluster's.
programs() {
    local program flags="-D_GNU_SOURCE -O2 -Wall -Wextra -Werror"
    bin=$CLUSTER_WORK/bin
    mkdir "$bin"
    for program; do
        # shellcheck disable=SC2086
        case $program in
        wire) gcc $flags -o "$bin/wire" tests/clusters/wire.c ;;
        wave2d) mpicc -O3 -Wall -Wextra -Werror -o "$bin/wave2d" examples/wave2d.c -lm ;;
        cross | stream | link) mpicc $flags -o "$bin/$program" "tests/clusters/$program.c" ;;
        *) mpicc -std=gnu11 -O2 -Wall -Wextra -o "$bin/$program" "tests/mpi/$program.c" -lm -lpthread ;;
        esac
    done
}

# Whether a job of this title is to run.
wanted() {
    ran=0
    ! grep -qE -- "$only" <<<"$1" || ran=1
    [ $ran = 1 ]
}

verdict() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL: $1: $2, expected $3"
    fi
}

# Whether a number is at most another one; both may have fractions.
at_most() { verdict "$1 (at most $3)" "$(awk "BEGIN { print ${2:-1e9} <= $3 ? \"yes\" : \"$2\" }")" yes; }

address_of() { echo "10.77.0.$(($1 + 1))"; }
on() {
    local machine=$1
    shift
    nsenter --target "${CLUSTER_PID[$machine]}" --net "$@"
}

# Forbids (add) a machine the ways to addresses, or allows them again (del). Where nftables are to be had, a
# firewall does, which counts what it stops; else routes do.
wall() {
    local verb=$1 machine=$2 address
    shift 2
    [ $# -gt 0 ] || return 0
    if command -v nft >/dev/null && on "$machine" nft list ruleset >/dev/null 2>&1; then
        if [ "$verb" = del ]; then
            on "$machine" nft delete table inet wall
            return
        fi
        address=$(printf '%s,' "$@")
        on "$machine" nft -f - <<NFT
table inet wall {
    chain out { type filter hook output priority 0; ip daddr { ${address%,} } counter reject; }
    chain in { type filter hook input priority 0; ip saddr { ${address%,} } counter drop; }
}
NFT
        return
    fi
    for address; do on "$machine" ip route "$verb" prohibit "$address/32"; done
}

# What the walls of all nodes have stopped so far, in packets; routes do not count.
stopped() {
    local node
    for node in $(seq 0 $((CLUSTER_NODES - 1))); do
        on "node$node" nft list ruleset 2>/dev/null || true
    done | awk '{ for (i = 1; i < NF; i++) if ($i == "packets") sum += $(i + 1) } END { print sum + 0 }'
}

# All nodes lose, or get back, the ways to other clusters; but nodes that are named ("2 3") keep those to each
# other.
walls() {
    local verb=$1 gates=" ${2-} " node other list
    for node in $(seq 0 $((CLUSTER_NODES - 1))); do
        list=()
        for other in $(seq 0 $((CLUSTER_NODES - 1))); do
            [ "$(cluster_switch_of "$node")" != "$(cluster_switch_of "$other")" ] || continue
            if [[ $gates == *" $node "* && $gates == *" $other "* ]]; then continue; fi
            list+=("$(address_of "$other")")
        done
        # Heads of other clusters, once there are any. The front stands for mpiexec's own way.
        for other in $(seq 0 $((CLUSTER_SWITCHES - 1))); do
            [ "sw$other" = "$(cluster_switch_of "$node")" ] || list+=("10.77.0.$((101 + other))")
        done
        wall "$verb" "node$node" "${list[@]}"
    done
}

# A network file with all clusters; the nodes that are named are marked.
clusters_table() {
    local node gates=" ${1-} "
    for node in $(seq 0 $((CLUSTER_NODES - 1))); do
        echo "node$node $(cluster_switch_of "$node") cluster:${clusters[node % CLUSTER_SWITCHES]}" \
            "$([[ $gates != *" $node "* ]] || echo gateway)"
    done
}

new_key() { (umask 077 && od -An -vtx1 -N32 /dev/urandom | tr -d ' \n' >"$1"); }

heads_up() {
    local head
    for head in $(seq 0 $((CLUSTER_SWITCHES - 1))); do
        cluster_boot "head$head" "--net --uts --mount"
        cluster_cable "head$head" "sw$head" "10.77.0.$((101 + head))"
    done
    key=$CLUSTER_WORK/test.key
    new_key "$key"
    pair=$(for head in $(seq 0 $((CLUSTER_SWITCHES - 1))); do
        printf '%s=10.77.0.%d:7000,' "${clusters[head]}" $((101 + head))
    done)
    pair=${pair%,}
}

# Starts the gateway of a head node. Each connects to those with higher numbers.
gateway_start() {
    local head=$1 other log=$CLUSTER_WORK/head$1.log
    {
        echo "cluster = \"${clusters[head]}\""
        echo "inside = \"10.77.0.$((101 + head)):7000\""
        echo "outside = \"10.77.0.$((101 + head)):7001\""
        echo "keys = [\"$key\"${more_keys-}]"
        for other in $(seq 0 $((CLUSTER_SWITCHES - 1))); do
            [ "$other" != "$head" ] || continue
            echo "[peers.${clusters[other]}]"
            [ "$other" -lt "$head" ] || echo "address = \"10.77.0.$((101 + other)):7001\""
        done
    } >"$CLUSTER_WORK/head$head.toml"
    : >"$log"
    nsenter --target "${CLUSTER_PID[head$head]}" --net --uts --mount setpriv --pdeathsig KILL "$gateway" "$CLUSTER_WORK/head$head.toml" \
        >"$log" 2>&1 &
    gateway_pid[$head]=$!
    disown
    for _ in $(seq 100); do
        ! grep -q '^inside' "$log" || return 0
        sleep 0.1
    done
    cat "$log" >&2
    return 1
}

gateways_stop() {
    local head
    for head in "${!gateway_pid[@]}"; do
        kill -KILL "${gateway_pid[$head]}" 2>/dev/null || true
        unset "gateway_pid[$head]"
    done
}

# A job: title, shape, mapping, mpirun's further arguments and the program, which ends with its numbers.
job() {
    local title=$1 shape=$2 by=$3 code=0
    shift 3
    wanted "$title $shape $by" || return 0
    by=$(cluster_mapping "$by" "$shape")
    printf '\n### %s, %s ranks per node, mapped by %s (from second %d on)\n' "$title" "$shape" "$by" $SECONDS
    cluster_run "$shape" "${patience:-100}" --map-by "$by" --mca coll ^tuned,han --mca coll_rust_report ranks "$@" >"$CLUSTER_WORK/log" 2>&1 || code=$?
    tally $code "$CLUSTER_WORK/log"
    # What the component does not serve would go from rank to rank.
    verdict "no call was passed on" "$(grep -ac '^coll_rust report:.* passed=[1-9]' "$CLUSTER_WORK/log" || true)" 0
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

# What `cross` may send between clusters, in so many rounds with so many ranks. The last Allreduce sums up the
# results.
counts() {
    local times=$1 ranks=$2 others=$((CLUSTER_SWITCHES - 1)) operation
    # From or to each rank: one message for each other cluster.
    for operation in bcast gather scatter; do count $operation $((others * ranks * times)); done
    count reduce $((2 * others * ranks * times)) # and Ireduce
    count alltoall $((others * CLUSTER_SWITCHES * times))
    count scan $((2 * others * times))
    # Recursive doubling: two leaders exchange; a third one hands in, and gets the result.
    count allreduce $((2 * others * (times + 1)))
    # Dissemination: each leader signals once in every step.
    count barrier $((CLUSTER_SWITCHES * others * times))
}
