#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a user gets wrong and what goes wrong: every bad input ends the job with a message that names it, with
# a non-zero exit code, without a hang, and leaves nothing behind: no process, no file in /dev/shm, no session
# folder of Open MPI. What a job can live with (no room in /dev/shm, a process that is stopped for a while or
# cannot read the others' memory) changes no result.
#
#   ci/test-faults.sh
#     --only REGEX    only the cases whose name matches
#     --dso FOLDER    take mca_coll_rust.so from there instead of building it
set -uo pipefail
cd "$(dirname "$0")/.."

options="--only --dso" programs="hello stream waits comms sizes noread frugal halves userop"
. ci/mpi-jobs.sh

mpirun=("${several[@]}" "$mpiexec" --oversubscribe --mca btl "$btl" --mca mpi_yield_when_idle 1)

# Session folders of our own, so that other jobs on the machine do not disturb the comparison. The name is
# short: Unix sockets in it have little room.
export TMPDIR=$scratch/t
mkdir "$TMPDIR"

# What is left: processes of our programs, files in /dev/shm, files in session folders. An empty folder is no
# leak: Open MPI 4.1 itself leaves one per user and host.
leftovers() {
    local file
    pgrep -f "^$scratch/(hello|stream|waits|comms|sizes|frugal|halves)" | sed 's/^/process /'
    # What a living process maps or holds is another job's: ours are gone, or were named just now.
    for file in $(find /dev/shm -mindepth 1 -newer "$scratch/before"); do
        if ! grep -qsF "$file" /proc/[0-9]*/maps && ! find /proc/[0-9]*/fd -lname "$file" 2>/dev/null | grep -q . && [ -e "$file" ]; then
            echo "file $file"
        fi
    done
    find "$TMPDIR" -mindepth 1 ! -type d | sed 's/^/file /'
}

# verdict NAME CODE PATTERN...: judges $scratch/out and $scratch/err of a run. Every pattern must match a line
# of stderr.
verdict() {
    local name=$1 code=$2 problem="" left pattern
    shift 2
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then
        problem="hangs"
    elif [ "$code" = 0 ]; then
        problem="the job ended with 0"
    elif grep -q 'panicked\|SIGSEGV\|Segmentation\|SIGBUS\|Bus error' "$scratch/err"; then
        problem="crashed"
    fi
    for pattern; do
        [ -n "$problem" ] || grep -qE -- "$pattern" "$scratch/err" || problem="no message that matches '$pattern'"
    done
    for _ in 1 2 3 4 5 6 7 8 9 10; do # killed processes take a moment to go
        left=$(leftovers)
        [ -n "$left" ] || break
        sleep 0.2
    done
    [ -n "$problem" ] || [ -z "$left" ] || problem="left behind: $(head -n 3 <<<"$left" | paste -sd' ')"
    rm -rf "${TMPDIR:?}"/*
    if [ -z "$problem" ]; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name: $problem (exit code $code)"
        grep -v '^$\|^---' "$scratch/err" | head -n 8 | cut -c1-200 | sed 's/^/        /'
    fi
}

# A message must come once, not once per rank.
once() {
    local name=$1 pattern=$2 n
    n=$(grep -cE -- "$pattern" "$scratch/err")
    [ "$n" = 1 ] || { failed=$((failed + 1)); echo "FAILED  $name: its message came $n times"; }
}

wanted() {
    grep -qE -- "$only" <<<"$1"
}

# refuse NAME PATTERN SETTING... -- COMMAND...: the job must not run.
refuse() {
    local name=$1 pattern=$2 code=0 environment=()
    shift 2
    wanted "$name" || return 0
    while [ "$1" != -- ]; do
        environment+=("$1")
        shift
    done
    shift
    touch "$scratch/before"
    env "${environment[@]}" timeout -k 5 40 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
    verdict "$name" $code "$pattern"
    once "$name" "$pattern"
}

# survive NAME PATTERN SETTING... -- COMMAND...: the job must end well, as its last line says, with a message
# (or any, by '').
survive() {
    local name=$1 pattern=$2 code=0 problem="" left environment=() out
    shift 2
    wanted "$name" || return 0
    while [ "$1" != -- ]; do
        environment+=("$1")
        shift
    done
    shift
    out=$(mktemp -d -p "$scratch")
    [ "${together:-0}" = 1 ] || touch "$scratch/before"
    env "${environment[@]}" timeout -k 5 60 "$@" >"$out/out" 2>"$out/err" </dev/null || code=$?
    if [ $code = 124 ]; then
        problem="hangs"
    elif [ $code != 0 ] || ! grep -qE '^[a-z]*: [1-9][0-9]* passed, 0 failed' "$out/out"; then
        problem="exit code $code"
    elif ! grep -qE -- "$pattern" "$out/err" "$out/out"; then
        problem="no message that matches '$pattern'"
    elif [ "${together:-0}" = 0 ]; then
        left=$(leftovers)
        [ -z "$left" ] || problem="left behind: $(head -n 3 <<<"$left" | paste -sd' ')"
    fi
    [ "${together:-0}" = 1 ] || rm -rf "${TMPDIR:?}"/*
    if [ -z "$problem" ]; then
        echo "ok      $name"
    else
        echo "FAILED  $name: $problem"
        cat "$out/out" "$out/err" | grep -v '^$\|^---' | head -n 8 | cut -c1-200 | sed 's/^/        /'
    fi >"$out/verdict"
    cat "$out/verdict"
    # In the background, whoever waits counts.
    [ "${together:-0}" = 1 ] || count "$out/verdict"
}

count() {
    passed=$((passed + $(cat "$@" | grep -c '^ok')))
    failed=$((failed + $(cat "$@" | grep -c '^FAILED')))
}

# ---------------------------------------------------------------- a good job, so that refusals mean something

touch "$scratch/before"
code=0
timeout -k 5 60 env OMPI_MCA_coll_rust_report=ranks "${mpirun[@]}" -n 2 "$scratch/hello" >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
if [ $code = 0 ] && grep -q 'coll_rust report.*allreduce handled=[1-9]' "$scratch/err" && [ -z "$(leftovers)" ]; then
    passed=$((passed + 1))
    echo "ok      a good job runs with the component and leaves nothing"
else
    failed=$((failed + 1))
    echo "FAILED  a good job (exit code $code)"
    cat "$scratch/err"
    leftovers
fi

# ---------------------------------------------------------------- parameters

# As ompi_info lists them; three of them are Open MPI's own version numbers, and some are earlier names.
info=$(dirname "$(command -v "$mpiexec")")/ompi_info
[ -x "$info" ] || info=ompi_info
"$info" --param coll rust --level 9 --parsable >"$scratch/info"
mapfile -t parameters < <(sed -n 's/^mca:coll:rust:param:\(coll_rust_[a-z0-9_]*\):deprecated:no$/\1/p' "$scratch/info" | grep -v '_version$' | sort -u)
if [ ${#parameters[@]} -lt 15 ]; then
    failed=$((failed + 1))
    echo "FAILED  ompi_info lists ${#parameters[@]} parameters"
fi
for parameter in "${parameters[@]}"; do
    refuse "wrong value of $parameter" "$parameter.*12abc" "OMPI_MCA_$parameter=12abc" -- "${mpirun[@]}" -n 2 "$scratch/hello"
done
# Each has its type, and those with words have them.
while read -r what; do
    wanted "ompi_info: $what" || continue
    if grep -qxF "mca:coll:rust:param:coll_rust_$what" "$scratch/info"; then
        passed=$((passed + 1))
        echo "ok      ompi_info: $what"
    else
        failed=$((failed + 1))
        echo "FAILED  ompi_info: no $what"
    fi
done <<INFO
window:type:int
window:value:8
bcast_algorithm:type:string
reproducible:type:bool
strict:type:bool
shm_node_limit:type:size_t
shm_zero_copy_min:type:size_t
shm_zero_copy_min:value:unset
shm_zero_copy_min:synonym:name:coll_rust_zero_copy_min
shm_sets:type:int
shm_sets:value:auto
shm_wait:type:int
shm_wait:value:auto
shm_wait:enumerator:value:0:auto
shm_wait:enumerator:value:2:yield
shm_zero_copy:enumerator:value:3:off
wait:synonym_of:name:coll_rust_shm_wait
wait:deprecated:yes
INFO
# What users write reaches the tools as MCA's types have it.
if wanted "ompi_info: values as typed"; then
    OMPI_MCA_coll_rust_shm_zero_copy_min=64k OMPI_MCA_coll_rust_wait=block OMPI_MCA_coll_rust_shm_sets=auto OMPI_MCA_coll_rust_shm_fragments=16 \
        "$info" --param coll rust --level 9 --parsable 2>/dev/null | grep -E '(zero_copy_min|shm_wait|sets|fragments):value:' >"$scratch/out"
    if [ "$(grep -cE 'shm_zero_copy_min:value:65536|shm_wait:value:block|sets:value:auto|fragments:value:16' "$scratch/out")" = 4 ]; then
        passed=$((passed + 1))
        echo "ok      ompi_info: values as typed"
    else
        failed=$((failed + 1))
        echo "FAILED  ompi_info: values as typed"
        sed 's/^/        /' "$scratch/out"
    fi
fi
if wanted "ompi_info lists a wrong value"; then
    if OMPI_MCA_coll_rust_levels=12abc "$info" --param coll rust --level 9 >"$scratch/out" 2>&1 && grep -q 12abc "$scratch/out"; then
        passed=$((passed + 1))
        echo "ok      ompi_info lists a wrong value and does not fail"
    else
        failed=$((failed + 1))
        echo "FAILED  ompi_info with a wrong value"
    fi
fi
[ "$btl" = self,sm ] || refuse "smsc with Open MPI 4.1" 'zero_copy = "smsc".*Accepted here: auto, cma, off' OMPI_MCA_coll_rust_shm_zero_copy=smsc \
    -- "${mpirun[@]}" -n 2 "$scratch/hello"
refuse "wrong value by --mca" 'coll_rust_levels.*numma' -- "${mpirun[@]}" --mca coll_rust_levels numma,node -n 3 "$scratch/hello"
refuse "wrong value in a list per level" 'coll_rust_bcast_algorithm.*ring' OMPI_MCA_coll_rust_bcast_algorithm=numa:flat,node:ring -- \
    "${mpirun[@]}" -n 2 "$scratch/hello"
refuse "wrong radix" 'coll_rust_bcast_algorithm.*knomial/1' OMPI_MCA_coll_rust_bcast_algorithm=knomial/1 -- "${mpirun[@]}" -n 2 "$scratch/hello"
refuse "window out of range" 'coll_rust_window.*99' OMPI_MCA_coll_rust_window=99 -- "${mpirun[@]}" -n 2 "$scratch/hello"
survive "earlier names" 'coll_rust_shm_wait = yield' OMPI_MCA_coll_rust_show=config OMPI_MCA_coll_rust_wait=yield OMPI_MCA_coll_rust_shm_limit=1m OMPI_MCA_coll_rust_bcast_algorithm=below -- \
    "${mpirun[@]}" -n 2 "$scratch/hello"
survive "decisions" 'decision: allreduce of 4 bytes, 2 processes: shm:inline within the node: .* cache line' OMPI_MCA_coll_rust_show=decisions -- \
    "${mpirun[@]}" -n 2 "$scratch/hello"
survive "decisions of a user's operation" 'decision: scan of 56 bytes, 3 processes: shm:inline within the node: operands are packed' \
    OMPI_MCA_coll_rust_show=decisions OMPI_MCA_coll_rust_first_calls=0 -- "${mpirun[@]}" -n 3 "$scratch/userop" --rounds 1
survive "decisions by messages" 'decision: allreduce of 4 bytes, 2 processes: .*ring on top.*: by coll_rust_allreduce_algorithm' OMPI_MCA_coll_rust_show=decisions \
    OMPI_MCA_coll_rust_allreduce_algorithm=node:ring -- "${mpirun[@]}" -n 2 "$scratch/hello"
survive "an algorithm that leaves the node to shared memory" 'decision: allreduce of 4 bytes, 2 processes: shm:inline within the node' OMPI_MCA_coll_rust_show=decisions \
    OMPI_MCA_coll_rust_allreduce_algorithm=ring -- "${mpirun[@]}" -n 2 "$scratch/hello"
survive "a way by name that cannot be" 'decision: allreduce of 4 bytes, 2 processes: shm:inline within the node: .*; shm:tree is not possible here: it needs levels' \
    OMPI_MCA_coll_rust_show=decisions OMPI_MCA_coll_rust_allreduce_algorithm=shm:tree -- "${mpirun[@]}" -n 2 "$scratch/hello"
refuse "a way that the operation has not" 'coll_rust_bcast_algorithm = "shm:ring" .*shm:WAY .*inline, slot, whole, pipeline, single_copy, two_sided' \
    OMPI_MCA_coll_rust_bcast_algorithm=shm:ring -- "${mpirun[@]}" -n 2 "$scratch/hello"
refuse "wrong value of an earlier name" 'coll_rust_shm_zero_copy = "12abc"' OMPI_MCA_coll_rust_zero_copy=12abc -- "${mpirun[@]}" -n 2 "$scratch/hello"
refuse "a number too large for an int" 'coll_rust_window = "99999999999"' OMPI_MCA_coll_rust_window=99999999999 -- "${mpirun[@]}" -n 2 "$scratch/hello"

# A name that does not exist is a warning, or an error: in the environment, on the command line, in files of
# parameters.
unknown='no parameter coll_rust_widnow,.*mean coll_rust_window'
mkdir -p "$scratch/home/.openmpi"
printf 'coll_rust_widnow = 2\n' >"$scratch/unknown.conf"
cp "$scratch/unknown.conf" "$scratch/home/.openmpi/mca-params.conf"
printf -- '--mca coll_rust_widnow 2\n' >"$scratch/tune.conf" # the form that 4.1 and 5.0 both understand
while IFS='|' read -r where setting option; do
    for strict in 0 1; do
        # shellcheck disable=SC2206 # options are words
        settings=(OMPI_MCA_coll_rust_strict=$strict ${setting:+"$setting"}) options=($option)
        case $strict in
        0)
            survive "unknown name in $where" "$unknown" "${settings[@]}" -- "${mpirun[@]}" "${options[@]}" -n 2 "$scratch/hello"
            ;;
        1)
            refuse "unknown name in $where, strict" "$unknown" "${settings[@]}" -- "${mpirun[@]}" "${options[@]}" -n 2 "$scratch/hello"
            ;;
        esac
    done
done <<WHERE
the environment|OMPI_MCA_coll_rust_widnow=2|
the command line||--mca coll_rust_widnow 2
a file of mca_base_param_files|OMPI_MCA_mca_base_param_files=$scratch/unknown.conf|
the user's file|HOME=$scratch/home|
a file for --tune||--tune $scratch/tune.conf
WHERE
printf '# a comment\ncoll_rust_window = 12abc\n' >"$scratch/wrong.conf"
# A launcher that reads the files itself hands their values on in the environment.
refuse "wrong value in a file" 'coll_rust_window = "12abc" .*(wrong.conf, line 2|in the environment)' \
    "OMPI_MCA_mca_base_param_files=$scratch/wrong.conf" -- "${mpirun[@]}" -n 2 "$scratch/hello"

# The ready sets, as the page says: each takes effect.
for file in mca-params/*.conf; do
    survive "set of parameters $file" 'coll_rust report.*allreduce handled=[1-9]' OMPI_MCA_coll_rust_report=ranks -- \
        "${mpirun[@]}" --mca mca_base_param_files "$PWD/$file" -n 2 "$scratch/hello"
done
survive "a set of parameters names levels" 'allreduce handled.* numa: messages=' OMPI_MCA_coll_rust_report=ranks -- \
    "${mpirun[@]}" --bind-to core --mca mca_base_param_files "$PWD/mca-params/numa-node-switch.conf" -n 2 "$scratch/hello"

# ---------------------------------------------------------------- messages

survive "coll_base_verbose" 'coll:rust: rank 1 of 2 in .*selected' -- "${mpirun[@]}" --mca coll_base_verbose 10 -n 2 "$scratch/hello"
if wanted "messages without their file"; then
    mkdir -p "$scratch/alone"
    cp "$dso/mca_coll_rust.so" "$scratch/alone"
    mapfile -t settings < <(COLL_RUST_OUT=$scratch/alone scripts/env.sh | sed 's/^export //')
    refuse "messages without their file" 'coll_rust_window = "12abc"' OMPI_MCA_coll_rust_window=12abc "${settings[@]}" -- \
        "${mpirun[@]}" -n 2 "$scratch/hello"
fi

# ---------------------------------------------------------------- the report

survive "report of all ranks together" '^coll_rust report: sum over 3 of 3 ranks$' OMPI_MCA_coll_rust_report=sum -- "${mpirun[@]}" -n 3 "$scratch/hello"
survive "report of all ranks together, by rows" '^  allreduce +3 +0 +3 +0 +0' OMPI_MCA_coll_rust_report=sum -- "${mpirun[@]}" -n 3 "$scratch/hello"
survive "report of every rank" '^coll_rust report: rank 2: allreduce handled=1 ' OMPI_MCA_coll_rust_report=ranks -- "${mpirun[@]}" -n 3 "$scratch/hello"
mkdir -p "$scratch/json"
survive "report as files" '' "OMPI_MCA_coll_rust_report=json:$scratch/json" -- "${mpirun[@]}" -n 3 "$scratch/hello"
if wanted "report as files"; then
    good=0
    for file in "$scratch"/json/coll_rust.*.json; do
        ! python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["operations"]["allreduce"]["handled"] == 1' "$file" || good=$((good + 1))
    done
    if [ "$good" = 3 ] && [ "$(ls -A "$scratch/json" | wc -l)" = 3 ]; then
        passed=$((passed + 1))
        echo "ok      the files are JSON"
    else
        failed=$((failed + 1))
        echo "FAILED  $good of 3 files are JSON; there are: $(ls -A "$scratch/json" | paste -sd' ')"
    fi
fi
survive "report as files in no folder" 'coll_rust_report: the file in /nowhere' OMPI_MCA_coll_rust_report=json:/nowhere -- "${mpirun[@]}" -n 2 "$scratch/hello"

# ---------------------------------------------------------------- parameters of several ranks

refuse "wrong value, five ranks" 'coll_rust_report.*maybe' OMPI_MCA_coll_rust_report=maybe -- "${mpirun[@]}" -n 5 "$scratch/hello"

for pair in levels:none:node bcast_algorithm:flat:chain allreduce_segment_size:1k:2k window:2:3 reproducible:0:1 priority:45:60; do
    IFS=: read -r key a b <<<"$pair"
    refuse "ranks differ in coll_rust_$key" "coll_rust_$key.*($a|$b).*($a|$b)" -- "${mpirun[@]}" \
        -n 1 env "OMPI_MCA_coll_rust_$key=$a" "$scratch/hello" : -n 1 env "OMPI_MCA_coll_rust_$key=$b" "$scratch/hello"
done
refuse "one of four ranks differs" 'coll_rust_levels.*none' -- "${mpirun[@]}" -n 3 "$scratch/hello" : -n 1 env OMPI_MCA_coll_rust_levels=none "$scratch/hello"
# The first collective compares, and MPI_Init does not: it would have to wait for what others have published.
survive "ranks that differ, and no collective" "" -- "${mpirun[@]}" -n 1 "$scratch/hello" none : -n 1 env OMPI_MCA_coll_rust_levels=none "$scratch/hello" none

# ---------------------------------------------------------------- a rank without the component

missing='rank [0-9]+ .*has the component, but rank %s has not'
for option in -x env; do
    without=("$option" 'OMPI_MCA_coll=^rust')
    # shellcheck disable=SC2059 # the rank goes into the pattern
    refuse "the first of three ranks excludes the component by $option" "$(printf "$missing" 0)" -- "${mpirun[@]}" \
        -n 1 "${without[@]}" "$scratch/hello" : -n 2 "$scratch/hello"
    # shellcheck disable=SC2059
    refuse "the last of three ranks excludes the component by $option" "$(printf "$missing" 2)" -- "${mpirun[@]}" \
        -n 2 "$scratch/hello" : -n 1 "${without[@]}" "$scratch/hello"
done

# ---------------------------------------------------------------- the network file

network() {
    local name=$1 pattern=$2 text=$3 file=$scratch/network
    printf '%b' "$text" >"$file"
    refuse "$name" "$pattern" "OMPI_MCA_coll_rust_network_file=$file" -- "${mpirun[@]}" -n 2 "$scratch/hello"
}
host=$(hostname)
refuse "missing network file" "$scratch/none" "OMPI_MCA_coll_rust_network_file=$scratch/none" -- "${mpirun[@]}" -n 2 "$scratch/hello"
refuse "network file is a folder" "$scratch" "OMPI_MCA_coll_rust_network_file=$scratch" -- "${mpirun[@]}" -n 2 "$scratch/hello"
mkfifo "$scratch/fifo"
refuse "network file is a FIFO" "FIFO, not a file" "OMPI_MCA_coll_rust_network_file=$scratch/fifo" -- "${mpirun[@]}" -n 2 "$scratch/hello"
refuse "network file is a device" "device, not a file" "OMPI_MCA_coll_rust_network_file=/dev/zero" -- "${mpirun[@]}" -n 2 "$scratch/hello"
network "network file of 4 KB that stands for 4 GB" 'too many bytes' "SwitchName=s Nodes=$(printf '%4000s' | tr ' ' x)[1-1048576]\n"
network "malformed network file" "network:2:3: .*'lonely'" "$host s1\n  lonely\n"
network "malformed Slurm file" 'network:2:25: .*\[' "SwitchName=s0 Nodes=$host\nSwitchName=s1 Nodes=node[01-\n"
echo "another-node s1" >"$scratch/others"
survive "node not in the network file" "1 of 1 nodes are not in the network file .*: $host\\. They are placed at the top" \
    "OMPI_MCA_coll_rust_network_file=$scratch/others" -- "${mpirun[@]}" -n 2 "$scratch/hello"
network "cycle in the network file" 'network:[12]:[0-9]+: .*(cycle|itself|loop)' "SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=$host\n"
network "node named twice in the network file" "network:2:1: .*'$host'" "$host s1\n$host s2\n"

# ---------------------------------------------------------------- a component for another Open MPI

if wanted "DSO for another Open MPI"; then
    mkdir -p "$scratch/other"
    # The mark that scripts/build.sh leaves is text in the file: another version of the same length.
    sed 's/\(coll\/rust built for Open MPI \)[0-9]/\19/' "$dso/mca_coll_rust.so" >"$scratch/other/mca_coll_rust.so"
    touch "$scratch/before"
    code=0
    COLL_RUST_OUT=$scratch/other timeout -k 5 60 scripts/env.sh >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
    [ ! -s "$scratch/out" ] || code=0 # there must be nothing to evaluate
    verdict "DSO for another Open MPI" $code 'built for Open MPI 9\.'
fi
refuse "no DSO" 'mca_coll_rust.so' "COLL_RUST_OUT=$scratch/none" -- scripts/env.sh

# ---------------------------------------------------------------- a killed rank

for operation in Bcast Reduce Allreduce Barrier; do
    for count in 1 300000; do
        [ "$operation$count" != Barrier300000 ] || continue
        for victim in 0 2; do
            name="rank $victim of 4 killed in $operation of $count ints"
            wanted "$name" || continue
            touch "$scratch/before"
            code=0
            timeout -k 5 60 "${mpirun[@]}" -n 4 "$scratch/stream" "$operation" $count $victim >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
            # 137 is mpiexec's code for a rank killed so; a real hang is 124.
            [ $code != 137 ] || code=9
            verdict "$name" $code 'kills itself' 'signal 9|SIGKILL|Killed'
        done
    done
done

# Pools have files in a folder: nothing is left whenever a rank dies, before the first collective or in it,
# while others wait there.
for after in 0 50 150 400 1000 3000 10000; do
    name="rank 1 of 3 killed $after us after MPI_Init, pools in /dev/shm"
    wanted "$name" || continue
    touch "$scratch/before"
    code=0
    OMPI_MCA_coll_rust_shm_backing=/dev/shm timeout -k 5 60 "${mpirun[@]}" -n 3 "$scratch/stream" Bcast 3000 1 --after $after \
        >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
    [ $code != 137 ] || code=9
    verdict "$name" $code 'kills itself' 'signal 9|SIGKILL|Killed'
done

# With these, the launcher leaves the others alone when a rank has died. The job may then end with 0.
recover=(--enable-recovery)
[ "$btl" = self,vader ] || recover=(--runtime-options error-nonzero-status=0,recoverable)

# The placement store of the node: its writer, and a reader, killed at their steps there. Before it begins,
# when it has begun, at its first and its last stores, and when the store is there.
export COLL_RUST_TEST_STORE_FROM=2
for victim in "0 1" "0 2" "0 4" "0 20" "0 last" "5 1" "5 2" "5 3"; do
    read -r rank step <<<"$victim"
    name="rank $rank of 6 killed at step $step of the placement store"
    wanted "$name" || continue
    touch "$scratch/before"
    code=0
    # The last one is found by a job in which nobody is killed.
    [ "$step" != last ] || step=$(OMPI_MCA_coll_rust_verbose=2 COLL_RUST_TEST_STORE_KILL=10000 timeout -k 5 60 "${mpirun[@]}" -n 6 "$scratch/hello" 2>&1 \
        | sed -n 's/.*the writer, after \([0-9]*\) steps.*/\1/p')
    fill=(-n 1 env "COLL_RUST_TEST_STORE_KILL=$step" "$scratch/hello")
    case $rank in
    0) fill+=(: -n 5 "$scratch/hello") ;;
    # The reader waits until there is something to read.
    *) fill=(-n 5 "$scratch/hello" : "${fill[@]:0:3}" COLL_RUST_TEST_STORE_PAUSE=0 "${fill[@]:3}") ;;
    esac
    timeout -k 5 60 "${mpirun[@]}" "${fill[@]}" >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
    [ $code != 137 ] || code=9
    verdict "$name" $code "rank $rank kills itself at step $step of the store" 'signal 9|SIGKILL|Killed'
done
survive "the writer of the placement store pauses" 'placement: without the store' OMPI_MCA_coll_rust_verbose=2 \
    COLL_RUST_TEST_STORE_PAUSE=2 -- "${mpirun[@]}" -n 6 "$scratch/hello"

# Those who have nothing to do with the dead one go on, whatever they have of the store.
for step in 0 2 20 --late; do
    name="the writer of the placement store killed at ${step#--} in one half of a job, the other goes on"
    wanted "$name" || continue
    touch "$scratch/before"
    kill=(env "COLL_RUST_TEST_STORE_KILL=$step")
    [ "$step" != --late ] || kill=(env)
    code=0
    timeout -k 5 60 "${mpirun[@]}" "${recover[@]}" -n 1 "${kill[@]}" "$scratch/halves" "$step" : -n 5 "$scratch/halves" "$step" \
        >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
    [ $code != 0 ] || code=$((10 * $(grep -c 'went on' "$scratch/err")))
    [ $code = 30 ] || echo "halves: $code instead of 30: of three ranks" >>"$scratch/err"
    verdict "$name" $code 'kills itself' 'rank 5 of 6 went on'
    [ $code = 30 ] || failed=$((failed + 1))
done
unset COLL_RUST_TEST_STORE_FROM

# Through shared memory, the others need not wait for the runtime: each gets an error.
# While a root or writer has its set full, or has shown its memory, and while readers wait for it, asleep
# or not.
while read -r operation count victim setting where; do
    name="rank $victim of 4 killed in $operation of $count ints, errors return, $setting${where:+, $where}"
    wanted "$name" || continue
    touch "$scratch/before"
    code=0
    env "OMPI_MCA_coll_rust_$setting" timeout -k 5 60 "${mpirun[@]}" "${recover[@]}" -n 4 "$scratch/stream" "$operation" "$count" "$victim" --return \
        ${where:+--$where} >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
    [ $code != 0 ] || code=$((10 * $(grep -c 'got an error' "$scratch/err")))
    [ $code = 30 ] || echo "stream: $code instead of 30: of three ranks" >>"$scratch/err"
    verdict "$name" $code 'kills itself' 'has died, or has failed' 'rank . of 4 got an error'
    [ $code = 30 ] || failed=$((failed + 1))
done <<CASES
Bcast 300000 0 shm_zero_copy=off
Bcast 300000 2 shm_zero_copy_min=1
Allreduce 300000 1 shm_wait=block
Barrier 0 3 shm_wait=spin
Bcast 300000 0 shm_zero_copy=off inside
Bcast 300000 0 shm_zero_copy_min=1 inside
Bcast 300000 2 shm_zero_copy=off inside
Bcast 300000 2 shm_zero_copy=off outside
Bcast 300000 2 shm_wait=block outside
Bcast 300000 0 shm_backing=/dev/shm inside
Allreduce 300000 1 shm_zero_copy=off inside
CASES

# A rank in a PID name space of its own, as in a container: no pidfd shows it. Ranks have different numbers
# there, as Open MPI's own shared memory takes ranks of one number for one process.
if unshare --pid --fork true 2>/dev/null; then
    cat >"$scratch/apart" <<'APART'
#!/bin/sh
i=0
while [ "$i" -lt "$OMPI_COMM_WORLD_RANK" ]; do
    sh -c :
    i=$((i + 1))
done
"$@"
exit $?
APART
    chmod +x "$scratch/apart"
    for wait in spin yield block; do
        name="a rank killed in another PID name space, errors return, wait=$wait"
        wanted "$name" || continue
        touch "$scratch/before"
        code=0
        # Its start and its calls take about two seconds; then a death is to be noticed within five.
        OMPI_MCA_coll_rust_wait=$wait OMPI_MCA_coll_rust_shm_backing=/dev/shm OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma,xpmem timeout -k 5 15 \
            "${mpirun[@]}" "${recover[@]}" -n 2 unshare --pid --fork --kill-child --mount-proc "$scratch/apart" "$scratch/stream" Allreduce 1000 1 \
            --return --outside >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
        [ $code != 0 ] || code=$((10 * $(grep -c 'got an error' "$scratch/err")))
        verdict "$name" $code 'kills itself' 'has died, or has failed' 'rank 0 of 2 got an error'
    done
else
    echo "        (no PID name space: no rank is in another one)"
fi

# A core file holds what the process wrote, not the pools that it shares: with the component it is little
# larger than without.
if grep -qx '[^|/%]*' /proc/sys/kernel/core_pattern; then
    name="a rank's core file holds no pools"
    if wanted "$name"; then
        touch "$scratch/before"
        # The component's job last: how that ended is looked at.
        for priority in -1 45; do
            folder=$scratch/core$priority code=0
            mkdir "$folder"
            (ulimit -c unlimited && exec timeout -k 5 60 "${mpirun[@]}" --wdir "$folder" --mca coll_rust_priority "$priority" \
                -n 4 "$scratch/stream" Allreduce 300000 1 --abort) >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
            file=$(find "$folder" -type f -name "$(cat /proc/sys/kernel/core_pattern)*" | head -n 1)
            size=$(($(stat -c %s "${file:-/dev/null}") >> 10))
            echo "coll_rust_priority=$priority: a core file of $size KiB" >>"$scratch/sizes.of.cores"
            rm -rf "$folder"
        done
        cat "$scratch/sizes.of.cores" >>"$scratch/err"
        # Both were written, and the pools would be many times what is allowed here.
        awk '{ size[NR] = $(NF - 1) } END { exit !(size[1] > 1000 && size[2] > 1000 && size[2] < size[1] + 12288) }' "$scratch/sizes.of.cores" \
            && echo "the core files are alike" >>"$scratch/err"
        verdict "$name" $code 'kills itself' 'the core files are alike'
    fi
else
    echo "        (core files go elsewhere, $(cat /proc/sys/kernel/core_pattern): none is looked at)"
fi

# ---------------------------------------------------------------- what a job can live with

# Mounts are the namespace's own. What the pools may hold is less than the operations would like: first some,
# then nothing.
if unshare -m true 2>/dev/null; then
    for size in 1m 48k; do
        case $size in
        1m) message='for want of shared memory.*No space left' ;;
        *) message='No space left.*|no shared memory: point-to-point' ;;
        esac
        # shellcheck disable=SC2016 # for the inner shell
        survive "$size left in /dev/shm" "$message" OMPI_MCA_coll_rust_shm_backing=/dev/shm OMPI_MCA_coll_rust_verbose=2 -- \
            unshare -m sh -c 'mount -t tmpfs -o "size=$0" none /dev/shm && exec "$@"' $size \
            "${mpirun[@]}" --mca btl_vader_backing_directory "$TMPDIR" --mca btl_sm_backing_directory "$TMPDIR" -n 4 "$scratch/sizes" --sample 120 --most 100000
    done
else
    echo "        (no mount name space: /dev/shm is not made small)"
fi
# A process that may not even open the others' memory, or only not read what they have not shared.
if unshare -Uc true 2>/dev/null; then
    survive "one of three ranks in another user name space" 'cannot open|process_vm_readv' OMPI_MCA_coll_rust_verbose=2 OMPI_MCA_coll_rust_shm_zero_copy_min=1 \
        OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma -- \
        "${mpirun[@]}" -n 2 "$scratch/sizes" --sample 40 --most 300000 : -n 1 unshare -Uc "$scratch/sizes" --sample 40 --most 300000
else
    echo "        (no user name space: no rank is in another one)"
fi
# Two ranks spin only if each of them has a processor for itself, whatever the node has.
bare=("${several[@]}" "$mpiexec" --oversubscribe --bind-to none --mca btl "$btl" --mca coll_rust_verbose 2)
processors=$(taskset -cp $$ | sed 's/.*: //;s/[,-]/ /g')
one=${processors%% *} other=${processors##* }
survive "two ranks on one processor" 'which take turns on fewer processors' -- taskset -c "$one" "${bare[@]}" -n 2 "$scratch/hello"
survive "two ranks bound to one processor" 'which take turns on fewer processors' -- \
    "${bare[@]}" -n 1 taskset -c "$one" "$scratch/hello" : -n 1 taskset -c "$one" "$scratch/hello"
if [ "$one" != "$other" ]; then
    survive "two ranks bound to a processor each" 'with as many processors' -- \
        "${bare[@]}" -n 1 taskset -c "$one" "$scratch/hello" : -n 1 taskset -c "$other" "$scratch/hello"
fi
for folder in /sys/fs/cgroup /sys/fs/cgroup/cpu; do
    group=$folder/coll_rust.$$
    mkdir "$group" 2>/dev/null || continue
    # By the version of control groups. (A plain folder is no control group.)
    quota=$group/cpu.cfs_quota_us text=150000
    [ ! -e "$group/cpu.max" ] || quota=$group/cpu.max text="150000 100000"
    if [ -e "$quota" ] && echo "$text" >"$quota" 2>/dev/null; then
        # shellcheck disable=SC2016 # for the inner shell
        survive "two ranks with a quota of one and a half processors" 'which take turns on fewer processors' -- \
            sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "${bare[@]}" -n 2 "$scratch/hello"
    fi
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        rmdir "$group" 2>/dev/null && break
        sleep 0.2
    done
done
# What a process has closed, locked, or may not have.
survive "ranks that close their standard descriptors" '' -- "${mpirun[@]}" -n 3 "$scratch/frugal" --parts closed
for when in locked later; do # memory that is locked before MPI starts, and afterwards
    survive "ranks whose memory is $when" '' -- "${mpirun[@]}" -n 4 "$scratch/frugal" --parts $when
done
survive "400 communicators of 4 ranks, hardly used" '' -- "${mpirun[@]}" -n 4 "$scratch/frugal" --ints 2 --each 120 --shared 2000
survive "400 communicators of 4 ranks, used once" '' -- "${mpirun[@]}" -n 4 "$scratch/frugal" --ints 250 --shared 12000
for folder in /sys/fs/cgroup /sys/fs/cgroup/memory; do
    group=$folder/coll_rust.$$
    mkdir "$group" 2>/dev/null || continue
    limit=$group/memory.limit_in_bytes
    [ ! -e "$group/memory.max" ] || limit=$group/memory.max
    if [ -e "$limit" ] && echo 250M >"$limit" 2>/dev/null; then
        # shellcheck disable=SC2016 # for the inner shell
        survive "400 communicators of 4 ranks in 250 MB" '' -- \
            sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "${mpirun[@]}" -n 4 "$scratch/frugal" --parts alive --ints 250
    fi
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        rmdir "$group" 2>/dev/null && break
        sleep 0.2
    done
done
survive "a folder for shared memory that does not exist" 'no shared memory.*/no/such/folder' OMPI_MCA_coll_rust_shm_backing=/no/such/folder -- \
    "${mpirun[@]}" -n 3 "$scratch/hello"
for np in 2 4; do
    survive "5000 communicators, and 1000 at a time, of $np ranks" '' -- \
        "${mpirun[@]}" -n $np "$scratch/comms" --parts idle,leak,many --cycles 5000 --alive 1000 --share $(((256 << 20) / np))
done
for way in "$btl" "$btl cma=none" self,tcp; do
    for wait in auto spin yield block; do
        settings=(OMPI_MCA_coll_rust_shm_wait=$wait)
        # Open MPI 5.0 finds no way from a network interface to itself.
        [ "$way" != self,tcp ] || settings+=(OMPI_MCA_btl_tcp_if_include=lo)
        [ "$way" = "${way% *}" ] || settings+=(OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma)
        survive "a large message to a rank in a collective, wait=$wait, $way" '' "${settings[@]}" -- \
            "$mpiexec" --oversubscribe --mca mpi_yield_when_idle 1 --mca btl "${way% *}" -n 3 "$scratch/waits" --parts rendezvous
    done
done
# They take as long as the stop, so at the same time: each with a session folder of its own, as Open MPI 4
# fails where two jobs make the same one at once ("mkdir: File exists").
rm -f "$scratch"/tmp.*/verdict
touch "$scratch/before"
for wait in auto spin yield block; do
    mkdir "$TMPDIR/$wait"
    TMPDIR=$TMPDIR/$wait together=1 survive "a rank is stopped for 5 s, wait=$wait" '' OMPI_MCA_coll_rust_shm_wait=$wait -- "${mpirun[@]}" -n 2 "$scratch/waits" --parts stop &
done
wait
shopt -s nullglob
verdicts=("$scratch"/tmp.*/verdict)
[ ${#verdicts[@]} = 0 ] || count "${verdicts[@]}"

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
