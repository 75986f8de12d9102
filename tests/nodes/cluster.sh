# SPDX-License-Identifier: BSD-3-Clause
# A cluster of four nodes and two switches on one machine. Sourced by the tests of this folder (bash).
#
#     node0  node2        node1  node3
#        \    /              \    /
#  front--sw0 ===== uplink ===== sw1
#
# A node is a set of namespaces of its own: network, host name, System V IPC, mounts (an own /dev/shm) and
# processes, so a wrong belief that two processes share a node cannot work by luck. A switch is a Linux
# bridge; both live in one more network namespace, the fabric. The uplink is the veth pair between them: its
# ends up0 (at sw0) and up1 (at sw1) count the bytes that cross and can be rate limited. mpirun runs on the
# front, which is no node of the jobs.
#
# With CLUSTER_SWITCHES above 2, every switch has an uplink to one more, the core.
#
# The namespaces have no names and hang on the processes that hold them. All processes of the cluster live in
# one process namespace, the site, whose first process dies with the shell that made it (PR_SET_PDEATHSIG),
# even by SIGKILL, and then the kernel kills the others. So nothing is registered in /run/netns, /etc/netns or
# the machine's own network. All that a killed run can leave is its work folder; the next run removes it.

CLUSTER_NODES=${CLUSTER_NODES:-4}
CLUSTER_SWITCHES=${CLUSTER_SWITCHES:-2}
CLUSTER_MTU=9000
CLUSTER_BURST=16 # KiB
CLUSTER_WORK=
CLUSTER_SITE=
CLUSTER_JOB=
# Every call of these jobs is to be the component's own, from the first one on.
export OMPI_MCA_coll_rust_first_calls=0
CLUSTER_LAUNCHER=() # variables for env, then mpirun with what the cluster needs
declare -A CLUSTER_PID=()

# The first reason why this machine cannot hold the cluster; nothing if it can.
cluster_obstacle() {
    local tool
    [ "$(uname -s)" = Linux ] || { echo "not Linux"; return; }
    [ "$(id -u)" = 0 ] || { echo "not root"; return; }
    for tool in ip tc ethtool nsenter unshare setpriv flock timeout; do
        command -v "$tool" >/dev/null || { echo "no program $tool"; return; }
    done
    unshare --net --uts --ipc --mount --pid --fork true 2>/dev/null || { echo "namespaces are not permitted"; return; }
    unshare --net --mount sh -c 'mount -t tmpfs tmpfs /dev/shm' 2>/dev/null || { echo "mounts are not permitted"; return; }
    unshare --net sh -c 'ip link add veth0 type veth peer name veth1 && ip link add br0 type bridge' 2>/dev/null ||
        { echo "veth pairs or bridges are not permitted"; return; }
    unshare --net sh -c 'ip link add veth0 type veth peer name veth1 &&
        tc qdisc add dev veth0 root tbf rate 200mbit burst 32kb latency 50ms' 2>/dev/null || echo "tc has no tbf"
}

# Removes the work folders of dead runs. A live run holds a lock in its folder.
cluster_sweep() {
    local folder pid
    for folder in "${TMPDIR:-/tmp}"/coll-rust-nodes.*; do
        [ -d "$folder" ] && [ -O "$folder" ] || continue
        pid=${folder##*/coll-rust-nodes.}
        pid=${pid%%.*}
        if [ -e "$folder/lock" ]; then
            flock -n "$folder/lock" rm -rf "$folder" || true
        elif [ ! -d "/proc/$pid" ]; then
            rm -rf "$folder"
        fi
    done
}

cluster_switch_of() { echo "sw$(($1 % CLUSTER_SWITCHES))"; }

# Commands in the fabric's network.
cluster_fabric() { nsenter --target "${CLUSTER_PID[fabric]}" --net "$@"; }

# Waits until a machine has booted. Sets CLUSTER_PID[$1]: its first process, as the outer namespace numbers
# it.
cluster_wait() {
    local name=$1 try
    for try in $(seq 200); do
        if [ -s "$CLUSTER_WORK/pid.$name" ]; then
            CLUSTER_PID[$name]=$(cat "$CLUSTER_WORK/pid.$name")
            return
        fi
        sleep 0.05
    done
    echo "cluster: $name does not start" >&2
    cat "$CLUSTER_WORK/boot.log" >&2
    return 1
}

# Boots a machine of the site: $1 its name, $2 the namespaces of its own.
cluster_boot() {
    # shellcheck disable=SC2086
    nsenter --target "${CLUSTER_PID[site]}" --pid \
        unshare $2 --fork sh "$CLUSTER_WORK/boot" "$1" "$CLUSTER_WORK" "${CLUSTER_PID[fabric]-}" \
        </dev/null 2>>"$CLUSTER_WORK/boot.log" &
    cluster_wait "$1"
}

# A pair of interfaces between two switches; what is at one end alone has no switch.
cluster_uplink() {
    local end
    cluster_fabric ip link add "$1" type veth peer name "$3"
    for end in "$1 $2" "$3 ${4-}"; do
        # shellcheck disable=SC2086
        set -- $end
        cluster_fabric ip link set "$1" mtu $CLUSTER_MTU ${2:+master "$2"} up
        cluster_fabric ethtool -K "$1" tso off gso off gro off >/dev/null
    done
}

# Puts long wires in place of the uplinks: $1 the program (tests/clusters/wire.c), $2 milliseconds each way
# between two clusters, $3 Mbit/s. Sets CLUSTER_WIRES, their processes.
CLUSTER_WIRES=()
cluster_wires() {
    local end here=$2
    [ "$CLUSTER_SWITCHES" = 2 ] || here=$(awk "BEGIN { print $2 / 2 }")
    for end in $(seq 0 $((CLUSTER_SWITCHES - 1))); do
        cluster_fabric ip link del "up$end" 2>/dev/null || true
    done
    for end in $(seq 0 $((CLUSTER_SWITCHES - 1))); do
        cluster_uplink "up$end" "sw$end" "in$end"
        [ "$CLUSTER_SWITCHES" = 2 ] || cluster_uplink "core$end" core "out$end"
    done
    if [ "$CLUSTER_SWITCHES" = 2 ]; then set -- "$1" "$3" in0:in1; else
        set -- "$1" "$3" $(seq 0 $((CLUSTER_SWITCHES - 1)) | sed 's/.*/in&:out&/')
    fi
    for end in "${@:3}"; do
        nsenter --target "${CLUSTER_PID[fabric]}" --net setpriv --pdeathsig KILL "$1" "${end%:*}" "${end#*:}" "$here" "$2" &
        CLUSTER_WIRES+=($!)
    done
    for end in "${!CLUSTER_PID[@]}"; do
        case $end in node* | front | head*) cluster_checksum "$end" ;; esac
    done
}

# A cable from a machine's eth0 to a switch of the fabric.
cluster_cable() {
    local name=$1 switch=$2 address=$3
    cluster_fabric ip link add "p-$name" type veth peer name eth0 netns "${CLUSTER_PID[$name]}"
    cluster_fabric ip link set "p-$name" mtu $CLUSTER_MTU master "$switch" up
    # A packet must not be larger than the rate limit's burst, and counted as what a real wire would carry.
    cluster_fabric ethtool -K "p-$name" tso off gso off gro off >/dev/null
    nsenter --target "${CLUSTER_PID[$name]}" --net sh -ec "
        ip link set lo up
        ip link set eth0 mtu $CLUSTER_MTU
        ethtool -K eth0 tso off gso off gro off >/dev/null
        ip addr add $address/24 dev eth0
        ip link set eth0 up"
    [ ${#CLUSTER_WIRES[@]} = 0 ] || cluster_checksum "$name"
}

# A long wire passes what the kernel would else hand over without checksums.
cluster_checksum() { nsenter --target "${CLUSTER_PID[$1]}" --net ethtool -K eth0 tx off >/dev/null; }

cluster_up() {
    local node name switch end
    cluster_sweep
    # The pattern is mktemp's; the process number before it tells the next run whose folder it is.
    CLUSTER_WORK=$(mktemp -d "${TMPDIR:-/tmp}/coll-rust-nodes.$$.XXXXXX")
    exec {CLUSTER_LOCK}>"$CLUSTER_WORK/lock"
    flock -n "$CLUSTER_LOCK"
    mkdir "$CLUSTER_WORK/local"
    : >"$CLUSTER_WORK/uplink"
    {
        echo "127.0.0.1 localhost"
        echo "10.77.0.100 front"
        for node in $(seq 0 $((CLUSTER_NODES - 1))); do echo "10.77.0.$((node + 1)) node$node"; done
    } >"$CLUSTER_WORK/hosts"

    # What every machine does first. All but the nodes keep the outer /proc, to be able to enter the nodes.
    cat >"$CLUSTER_WORK/boot" <<'BOOT'
set -e
name=$1 work=$2 fabric=$3
read -r pid rest </proc/self/stat
case $name in
site | fabric) ;;
*)
    hostname "$name"
    mount --bind "$work/hosts" /etc/hosts
    mount --bind "/proc/$fabric/net/dev" "$work/uplink"
    mount -t tmpfs -o mode=700 tmpfs "$work/local"
    echo 0 >/proc/sys/net/ipv4/tcp_slow_start_after_idle
    echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    [ "$name" = front ] || mount -t proc proc /proc
    ;;
esac
if [ "$name" != site ]; then
    echo 1 2>/dev/null >/proc/sys/net/ipv6/conf/default/disable_ipv6 || true
    echo 1 2>/dev/null >/proc/sys/net/ipv6/conf/all/disable_ipv6 || true
fi
echo "$pid" >"$work/pid.$name.new"
mv "$work/pid.$name.new" "$work/pid.$name"
while :; do sleep 1000; done
BOOT
    setpriv --pdeathsig KILL unshare --pid --fork --kill-child sh "$CLUSTER_WORK/boot" site "$CLUSTER_WORK" \
        </dev/null 2>>"$CLUSTER_WORK/boot.log" &
    CLUSTER_SITE=$!
    cluster_wait site
    cluster_boot fabric --net
    cluster_fabric ip link set lo up
    for switch in $(seq -f sw%g 0 $((CLUSTER_SWITCHES - 1))) core; do
        cluster_fabric ip link add "$switch" type bridge stp_state 0 forward_delay 0 mcast_snooping 0
        cluster_fabric ip link set "$switch" up
    done
    if [ "$CLUSTER_SWITCHES" = 2 ]; then
        cluster_uplink up0 sw0 up1 sw1
    else
        for end in $(seq 0 $((CLUSTER_SWITCHES - 1))); do cluster_uplink "up$end" "sw$end" "core$end" core; done
    fi

    cluster_boot front "--net --uts --mount"
    cluster_cable front sw0 10.77.0.100
    for node in $(seq 0 $((CLUSTER_NODES - 1))); do
        name=node$node
        cluster_boot "$name" "--net --uts --ipc --mount --pid"
        cluster_cable "$name" "$(cluster_switch_of "$node")" "10.77.0.$((node + 1))"
    done

    # The launch agent: what ssh would be. Called as: agent <node> <command> … It runs in the site, by whose
    # numbers nsenter's --target may go: those of the outer namespace's /proc mean other processes there.
    cat >"$CLUSTER_WORK/agent" <<AGENT
#!/bin/sh
node=\$1
shift
ns=/proc/\$(cat "$CLUSTER_WORK/pid.\$node")/ns
exec nsenter --net=\$ns/net --uts=\$ns/uts --ipc=\$ns/ipc --mount=\$ns/mnt --pid=\$ns/pid sh -c "\$*"
AGENT
    chmod +x "$CLUSTER_WORK/agent"

    # Open MPI 5 has a launcher of another project, with parameters of its own.
    case $(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --version 2>/dev/null | head -n 1) in
    *" 4."*)
        CLUSTER_LAUNCHER=(OMPI_MCA_orte_tmpdir_base="$CLUSTER_WORK/local" mpirun --allow-run-as-root
            --mca plm_rsh_agent "$CLUSTER_WORK/agent" --mca oob_tcp_if_include eth0 --mca btl "self,vader,tcp")
        ;;
    *)
        CLUSTER_LAUNCHER=(PRTE_MCA_prte_tmpdir_base="$CLUSTER_WORK/local" mpirun --allow-run-as-root
            --prtemca plm_ssh_agent "$CLUSTER_WORK/agent" --prtemca oob_tcp_if_include eth0
            --pmixmca ptl_tcp_if_include eth0 --mca btl "self,sm,tcp")
        ;;
    esac

    for node in $(seq 0 $((CLUSTER_NODES - 1))); do echo "node$node $(cluster_switch_of "$node")"; done \
        >"$CLUSTER_WORK/network.txt"
    cat >"$CLUSTER_WORK/topology.conf" <<'SLURM'
# Slurm's topology/tree format
SwitchName=sw0 Nodes=node[0,2]
SwitchName=sw1 Nodes=node1,node3
SwitchName=top Switches=sw[0-1]
SLURM
}

# Limits each direction of the uplinks, e.g. to 200mbit; "off" lifts the limit.
cluster_rate() {
    local end
    for end in $(cluster_fabric ip -br link | sed -nE 's/^((up|core)[0-9]+)@.*/\1/p'); do
        cluster_fabric tc qdisc del dev $end root 2>/dev/null || true
        if [ "$1" != off ]; then
            # The burst is less than two packets. The queue is deep enough that it is TCP that slows the
            # senders.
            cluster_fabric tc qdisc add dev $end root tbf rate "$1" burst ${CLUSTER_BURST}kb limit 4mb
        fi
    done
}

# Runs mpirun on the front. $1: ranks per node ("3,2,1,2"), $2: seconds until it is killed; then mpirun's
# arguments. In the foreground of the caller, but a trap of the caller runs at once.
cluster_run() {
    local shape=$1 seconds=$2 node=0 hosts= ranks=0 slots code
    shift 2
    for slots in ${shape//,/ }; do
        hosts+=${hosts:+,}node$node:$slots
        ranks=$((ranks + slots))
        node=$((node + 1))
    done
    timeout -k 10 "$seconds" \
        nsenter --target "${CLUSTER_PID[front]}" --net --uts --mount --pid --wdns="$PWD" \
        env TMPDIR="$CLUSTER_WORK/local" "${CLUSTER_LAUNCHER[@]}" --host "$hosts" -n "$ranks" --bind-to none \
        --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1 "$@" </dev/null &
    CLUSTER_JOB=$!
    code=0
    wait "$CLUSTER_JOB" || code=$?
    CLUSTER_JOB=
    return $code
}

# How to deal out ranks: $1 the wish, $2 ranks per node. Where nodes have unequal numbers of processes and
# these are dealt out by turns, Open MPI 5.0.7 tells some of them now and then no local rank, and MPI_Init
# ends the job ("local rank: Not found"); without the component too.
cluster_mapping() {
    local by=$1
    if [[ "${CLUSTER_LAUNCHER[*]}" == PRTE_MCA* ]] && [ "$(tr , '\n' <<<"$2" | sort -u | wc -l)" -gt 1 ]; then by=slot; fi
    echo "$by"
}

# Adds the numbers of a part that ended with exit code $1 and the output in file $2 to `passed` and `failed`,
# and shows the output.
tally() {
    local code=$1 log=$2 good= bad=
    grep -av '^coll_rust report' "$log" || true
    read -r good bad < <(tr -d '\0' <"$log" | sed -n 's/^[a-z]*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' | tail -n 1) || true
    if [ -z "$good" ] || { [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
        echo "FAIL: ended with exit code $code"
        bad=$((${bad:-0} + 1))
    fi
    passed=$((passed + ${good:-0}))
    failed=$((failed + bad))
}

# What jobs have left on the nodes: processes and shared memory, one line per finding. Waits a little for
# daemons to end.
cluster_leftovers() {
    local node try found=
    for try in $(seq 25); do
        found=$(for node in $(seq 0 $((CLUSTER_NODES - 1))); do
            nsenter --target "${CLUSTER_PID[node$node]}" --mount --pid sh -c '
                ls -A /dev/shm
                for folder in /proc/[0-9]*; do
                    case ${folder#/proc/} in
                    1 | $$) ;;
                    *) [ "$(cat "$folder/comm" 2>/dev/null)" = sleep ] || tr "\0" " " <"$folder/cmdline" ;;
                    esac
                done' 2>/dev/null | sed "s/^/node$node: /"
        done)
        [ -n "$found" ] || return 0
        sleep 0.2
    done
    echo "$found"
}

cluster_down() {
    trap '' INT TERM HUP
    [ ${#CLUSTER_WIRES[@]} = 0 ] || kill -KILL "${CLUSTER_WIRES[@]}" 2>/dev/null || true
    CLUSTER_WIRES=()
    # With the first process of the site, the kernel kills all others. Its parent reaps it and ends.
    if [ -n "$CLUSTER_SITE" ]; then kill -KILL "${CLUSTER_PID[site]:-$CLUSTER_SITE}" 2>/dev/null; fi
    wait 2>/dev/null
    CLUSTER_SITE=
    if [ -n "$CLUSTER_WORK" ]; then rm -rf "$CLUSTER_WORK"; fi
    CLUSTER_WORK=
    CLUSTER_PID=()
}

# To be called before cluster_up: whatever ends the shell takes the cluster down.
cluster_guard() {
    trap cluster_down EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}
