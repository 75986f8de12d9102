# SPDX-License-Identifier: BSD-3-Clause
# What happens to gateways and their link in a stream of operations (stream.c). Sourced (bash) after heads.sh,
# where `through` has mpirun's arguments for gateways.

now() { date +%s.%N; }
since() { awk "BEGIN { printf \"%.1f\", $(now) - $1 }"; }

# Whether ranks of the stream live.
live() { pgrep -f "^$bin/stream " >/dev/null; }

# Begins a stream: title, seconds, then what mpirun gets and the program. Returns when it has begun; false if
# it is not wanted.
stream_begin() {
    local title=$1 seconds=$2 try
    shift 2
    wanted "$title" || return 1
    printf '\n### %s (from second %d on)\n' "$title" $SECONDS
    : >"$CLUSTER_WORK/log"
    (cluster_run "${shape:-2,2,2,2}" 120 --mca coll ^tuned,han "$@" "$bin/stream" "$seconds" ${returned-} >"$CLUSTER_WORK/log" 2>&1) &
    stream=$!
    for try in $(seq 600); do
        ! grep -q 'stream: begun' "$CLUSTER_WORK/log" || break
        kill -0 $stream 2>/dev/null || break
        sleep 0.1
    done
    sleep 1
    happened=$(now)
    [ "$try" -lt 600 ] || verdict "the stream begins" no yes
}

# Ends it: sets `gone`, the seconds from what happened until no rank lived, and `code`.
stream_end() {
    while live; do sleep 0.1; done
    gone=$(since "$happened")
    code=0
    wait $stream || code=$?
    echo "no rank after $gone s, mpirun ended after $(since "$happened") s with $code"
}

longest() { sed -n 's/^stream: the longest round took \(.*\) s$/\1/p' "$CLUSTER_WORK/log"; }

# It has gone on: all was right, and one round took at least so many seconds.
goes_on() {
    stream_end
    grep -a '^stream' "$CLUSTER_WORK/log" || true
    verdict "it goes on to its end" "$code" 0
    verdict "nothing is lost" "$(grep -ac '^stream: [1-9][0-9]* passed, 0 failed$' "$CLUSTER_WORK/log")" 1
    verdict "a round waited ($1 s or more)" "$(awk "BEGIN { print ($(longest) >= $1) ? \"yes\" : \"$(longest)\" }")" yes
}

# It has ended: no rank lives after 10 s, and it says why.
ends() {
    stream_end
    verdict "it fails" "$([ $code = 0 ] || [ $code = 124 ] && echo "no: $code" || echo yes)" yes
    at_most "seconds until no rank lives" "$gone" 10
    verdict "it says why" "$(grep -acE -- "$1" "$CLUSTER_WORK/log" | sed 's/^[1-9].*/yes/')" yes
    verdict "and what to do" "$(grep -ac 'is set by' "$CLUSTER_WORK/log" | sed 's/^[1-9].*/yes/')" yes
    [ "${bad_before:-0}" = "$failed" ] || cat "$CLUSTER_WORK/log"
    bad_before=$failed
}

# The link between the heads of two clusters: what is sent does not arrive (add), or does again (del).
link_cut() { on head0 ip route "$1" blackhole 10.77.0.102/32 && on head1 ip route "$1" blackhole 10.77.0.101/32; }

# Two jobs at once through the same gateways, with a key each, and meanwhile a third one with a key of the
# same name that the gateways do not have.
together() {
    local one two code=0 try
    wanted "Together: two jobs, and a third with another key" || return 0
    printf '\n### Together: two jobs, and a third with another key (from second %d on)\n' $SECONDS
    for job in one two three; do : >"$CLUSTER_WORK/$job.log"; done
    (cluster_run 2,1,1,2 60 --mca coll ^tuned,han "${through[@]}" "$bin/stream" 50 --until "$CLUSTER_WORK/over" >"$CLUSTER_WORK/one.log" 2>&1) &
    one=$!
    (cluster_run 1,2,2,1 60 --mca coll ^tuned,han "${table[@]}" --mca coll_rust_gateway "$pair" --mca coll_rust_gateway_key "$second" \
        "$bin/stream" 50 --until "$CLUSTER_WORK/over" >"$CLUSTER_WORK/two.log" 2>&1) &
    two=$!
    for try in $(seq 600); do
        [ "$(cat "$CLUSTER_WORK"/{one,two}.log | grep -c '^stream: begun')" -lt 2 ] || break
        sleep 0.1
    done
    mkdir -p "$CLUSTER_WORK/false"
    new_key "$CLUSTER_WORK/false/$(basename "$second")"
    cluster_run 1,1 60 --mca coll ^tuned,han "${table[@]}" --mca coll_rust_gateway "$pair" \
        --mca coll_rust_gateway_key "$CLUSTER_WORK/false/$(basename "$second")" "$bin/cross" 1 >"$CLUSTER_WORK/three.log" 2>&1 || code=$?
    verdict "the third job fails" "$([ $code = 0 ] || [ $code = 124 ] && echo "no: $code" || echo yes)" yes
    verdict "each gateway says once at most why" "$(grep -c 'it has another key by this name' "$CLUSTER_WORK/three.log" | sed 's/^[12]$/yes/')" yes
    verdict "both others go on meanwhile" "$(cat "$CLUSTER_WORK"/{one,two}.log | grep -c 'longest round')" 0
    : >"$CLUSTER_WORK/over"
    for job in $one $two; do
        code=0
        wait "$job" || code=$?
        verdict "a job goes on to its end" $code 0
    done
    grep -ah '^stream' "$CLUSTER_WORK"/{one,two}.log || true
    verdict "nothing is lost in both" "$(cat "$CLUSTER_WORK"/{one,two}.log | grep -ac '^stream: [1-9][0-9]* passed, 0 failed$')" 2
}

# What a person runs: more of it.
more_faults() {
    local time
    if stream_begin "Silent: a gateway" 60 "${through[@]}"; then
        kill -STOP "${gateway_pid[1]}"
        ends 'has not been heard of|has not answered'
        kill -CONT "${gateway_pid[1]}"
    fi
    for time in 1 2 3; do
        if stream_begin "Killed, time $time: the other gateway" 60 "${through[@]}"; then
            kill -KILL "${gateway_pid[0]}"
            gateway_start 0
            ends 'closed the connection|connection with it is lost'
        fi
    done
    returned=--return
    if stream_begin "Killed, errors are returned" 60 "${through[@]}"; then
        kill -KILL "${gateway_pid[1]}"
        ends 'closed the connection|connection with it is lost'
        verdict "a rank tells of its error" "$(grep -ac 'stream: rank .* has an error of' "$CLUSTER_WORK/log" | sed 's/^[1-9].*/yes/')" yes
        gateway_start 1
    fi
    returned=
    if stream_begin "Silent: both gateways" 60 "${through[@]}"; then
        kill -STOP "${gateway_pid[0]}" "${gateway_pid[1]}"
        ends 'has not answered for 7 s'
        kill -CONT "${gateway_pid[0]}" "${gateway_pid[1]}"
    fi
    if stream_begin "Silent for 4 s: a gateway" 10 "${through[@]}"; then
        kill -STOP "${gateway_pid[1]}"
        sleep 4
        kill -CONT "${gateway_pid[1]}"
        goes_on 3
    fi
    if stream_begin "Away for too long: the link" 60 "${through[@]}"; then
        link_cut add
        ends 'has not been heard of for 8 s'
        link_cut del
    fi
    for time in 1 2 3; do
        if stream_begin "Away for 5 s, time $time: the link" 14 "${through[@]}"; then
            link_cut add
            sleep 5
            link_cut del
            goes_on 4
        fi
    done
}
