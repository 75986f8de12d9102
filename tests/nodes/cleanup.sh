#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Does the cluster of cluster.sh go without a trace when its run ends by a signal in the middle of a job?
# Ends with "cleanup: N passed, M failed".
set -uo pipefail
. "$(dirname "$0")/cluster.sh"

if [ "${1:-}" = hold ]; then # the run that is going to be killed; $2: the file to write the work folder's name to
    cluster_guard
    cluster_up || exit 1
    echo "$CLUSTER_WORK" >"$2.new"
    mv "$2.new" "$2"
    cluster_run 2,2,2,2 60 sh -c "sleep 0.1; : >>$CLUSTER_WORK/started; sleep 50" >/dev/null 2>&1
    exit 1 # not reached: the signal comes first
fi

passed=0
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What the machine itself sees of networks and mounts.
machine() {
    ip netns list
    ip -o link | awk '{ print $2 }'
    ls -A /etc/netns 2>/dev/null
    grep -c . /proc/self/mountinfo
}

# The processes in any of the network namespaces of a list.
inhabitants() {
    local process
    for process in /proc/[0-9]*; do
        [[ " $* " == *" $(readlink "$process/ns/net" 2>/dev/null || echo none) "* ]] && echo "${process#/proc/}"
    done
}

check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL: $what"
    fi
}

try_signal() {
    local signal=$1 run work= namespaces=() i before
    before=$(machine)
    rm -f "$scratch/work"
    set -m # else the shell would have the run ignore INT
    bash "$0" hold "$scratch/work" &
    run=$!
    set +m
    for i in $(seq 200); do
        [ -s "$scratch/work" ] && work=$(cat "$scratch/work") && [ -e "$work/started" ] && break
        sleep 0.1
    done
    if [ -z "$work" ] || [ ! -e "$work/started" ]; then
        check "the run to be killed by $signal does not start" false
        kill -TERM "$run" 2>/dev/null
        wait "$run" 2>/dev/null
        return
    fi
    for i in fabric front node0 node1 node2 node3; do
        namespaces+=("$(readlink "/proc/$(cat "$work/pid.$i")/ns/net")")
    done
    check "the processes of the cluster are not found" [ -n "$(inhabitants "${namespaces[@]}")" ]
    kill "-$signal" "$run"
    wait "$run" 2>/dev/null
    for i in $(seq 50); do
        [ -n "$(inhabitants "${namespaces[@]}")" ] || break
        sleep 0.1
    done
    check "processes are left after $signal: $(inhabitants "${namespaces[@]}" | tr '\n' ' ')" \
        [ -z "$(inhabitants "${namespaces[@]}")" ]
    [ "$signal" != KILL ] || cluster_sweep # as the next run does
    check "the work folder is left after $signal" [ ! -e "$work" ]
    check "the machine's networks or mounts changed by $signal" [ "$before" = "$(machine)" ]
}

for signal in TERM INT KILL; do try_signal $signal; done
echo "cleanup: $passed passed, $failed failed"
[ $failed -eq 0 ]
