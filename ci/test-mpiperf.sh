#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests the program mpiperf: every command on every MPI library that is there, and what it says to wrong
# usage. The last line is "N passed, N failed".
#
#   ci/test-mpiperf.sh [--short]   short: one job of each kind, without limits, bare ways and wrong usage
#
#   MPIPERF            the program for mpiexec (default: built by scripts/build-mpiperf.sh)
#   MPIEXEC            launcher (default: mpiexec)
#   CARGO_TARGET_DIR   cargo's target folder (default: target)
set -uo pipefail
cd "$(dirname "$0")/.."

short=0
[ "${1:-}" != --short ] || short=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

program=${MPIPERF:-$(scripts/build-mpiperf.sh | tail -n 1)}
[ -x "$program" ] || { echo "test-mpiperf: there is no program '$program'" >&2; echo "0 passed, 1 failed"; exit 1; }
mpiexec=${MPIEXEC:-mpiexec}
open=() blind=()
case $("$mpiexec" --version 2>&1) in
*"Open MPI) 5."*)
    open=(--oversubscribe --mca btl self,sm --mca mpi_yield_when_idle 1)
    blind=(--mca smsc ^cma)
    ;;
*"Open MPI"* | *OpenRTE*)
    open=(--oversubscribe --mca btl self,vader --mca mpi_yield_when_idle 1)
    blind=(--mca btl_vader_single_copy_mechanism none)
    ;;
esac

# Runs a command line, for no longer than $limit seconds; keeps what it wrote and how it ended.
try() {
    timeout -k 5 "${limit:-60}" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
}
job() {
    local n=$1
    shift
    try "$mpiexec" "${open[@]}" -n "$n" "$program" "$@"
}

good() {
    passed=$((passed + 1))
}
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    echo "    exit code $status; standard output and error end with:"
    tail -n 6 "$scratch/out" "$scratch/err" | sed 's/^/    /'
}

# Ended well, and standard output has these.
succeeds() {
    local what=$1 text
    shift
    [ "$status" -eq 0 ] || { bad "$what"; return; }
    for text in "$@"; do
        grep -q -- "$text" "$scratch/out" || { bad "$what: no '$text'"; return; }
    done
    good
}

# Ended with a code other than 0 before the time limit, and said why once.
refuses() {
    local what=$1 text=$2 times
    times=$(grep -c "^mpiperf: .*$text" "$scratch/err")
    case $status in
    0 | 124 | 137) bad "$what: not refused" ;;
    *) if [ "$times" -eq 1 ]; then good; else bad "$what: '$text' said $times times"; fi ;;
    esac
}

# A rank that dies ends the job, and nobody waits for it.
died() {
    local what=$1 child job start=$SECONDS
    shift
    timeout -k 5 60 "$@" run allreduce --sizes 1m --calls 1000000 --correct 1000000 --time-limit 50 >"$scratch/out" 2>"$scratch/err" &
    job=$!
    for _ in $(seq 100); do
        grep -q '^operation' "$scratch/out" && break
        sleep 0.1
    done
    sleep 0.5
    child=$(descendants "$job" | while read -r pid; do
        [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "${!#}")" ] && echo "$pid"
    done | tail -n 1)
    [ -z "$child" ] || kill -KILL "$child"
    wait "$job"
    status=$?
    # Launchers end with the signal's code, as timeout does: the time tells.
    if [ -n "$child" ] && [ "$status" -ne 0 ] && [ $((SECONDS - start)) -lt 40 ]; then good; else bad "$what"; fi
}
descendants() {
    local pid
    for pid in $(pgrep -P "$1"); do
        echo "$pid"
        descendants "$pid"
    done
}
# ---------------------------------------------------------------- without MPI

try "$program" --help
succeeds "help" Usage: compare
try "$program" list
succeeds "list" '^  allreduce ' '^  ibarrier ' '^Reductions'
try "$program" nothing
refuses "unknown command" "unrecognized subcommand 'nothing'"
try "$program" merge "$scratch/none.json"
refuses "missing file" "none.json"
try "$program" locks --readers 2,3 --writes 20 --milliseconds 5 --runs 3 -o "$scratch/locks.svg"
succeeds "locks" '^3 readers, .*: taking the write lock' '^  N(mutex+signal) .*\[' '^  N-MCS .*\[' '^  parking_lot, threads .*\['
[ -s "$scratch/locks.svg" ] && good || bad "picture of the locks"
echo hello >"$scratch/wrong.json"
try "$program" plot "$scratch/wrong.json" -o "$scratch/x.svg"
refuses "file of another kind" "no results file of mpiperf"

# ---------------------------------------------------------------- measuring

few=(--calls 40 --correct 8 --least 4 --time-limit 5)
job 2 run bcast allreduce barrier --sizes 8,4k "${few[@]}" --ordinary --per-rank --samples --label one \
    --json "$scratch/one.json" --csv "$scratch/one.csv"
succeeds "run" 'bcast  *8 B' 'allreduce  *4 KiB' 'barrier  *-' 'rank 1'
[ "$(wc -l <"$scratch/one.csv")" -ge 16 ] && good || bad "rows of the CSV file"
python3 - "$scratch/one.json" <<'PYTHON' && good || bad "fields of the JSON file"
import json, sys
found = json.load(open(sys.argv[1]))
about = found["about"]
assert found["format"] == "mpiperf" and len(found["rows"]) == 5, found["rows"]
assert about["processes"] == 2 and len(about["ranks"]) == 2 and about["library"] and about["command"], about
for row in found["rows"]:
    verdicts = [sample["verdict"] for sample in row["samples"]]
    assert row["calls"] == len(verdicts) - verdicts.count("first"), row
    assert (row["summary"] is None) == (verdicts.count("correct") == 0), row
PYTHON
job 2 run bcast allreduce barrier --sizes 8,4k "${few[@]}" --ordinary --label one --json "$scratch/two.json"
succeeds "second run"
try "$program" repro "$scratch/one.json" "$scratch/two.json"
succeeds "repro" 'lower than the ordinary loop'
job 2 run bcast allreduce barrier --sizes 8,4k "${few[@]}" --label other --json "$scratch/three.json"
try "$program" merge "$scratch/one.json" "$scratch/three.json" --json "$scratch/merged.json"
succeeds "merge" 'a = one' 'b = other'
for kind in svg png; do
    try "$program" plot "$scratch/merged.json" -o "$scratch/picture.$kind"
    [ -s "$scratch/picture.$kind" ] && succeeds "plot to $kind" || bad "plot to $kind: no picture"
done
job 4 run bcast reduce allgatherv neighbor_alltoall comm_dup --sizes 1k --root rotate --counts random --arrival random:20us "${few[@]}"
succeeds "four ranks" 'allgatherv  *1 KiB' 'comm_dup  *-'
job 2 run ibcast --sizes 64k --overlap --test-every 5 "${few[@]}"
succeeds "overlap" 'hidden'
job 2 run barrier --passes 3 --calls 8 --correct 8 --least 1 --wide
succeeds "passes" "barrier  *- *[2-9][0-9] "
# ---------------------------------------------------------------- check: a baseline, and what is slower

# The rows of a file with made-up times, as on a calm machine: all of 1 µs, the first of so many seconds.
made_up() {
    python3 - "$1" "$2" "$3" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
for i, row in enumerate(found["rows"]):
    mean = 1e-6 if i else float(sys.argv[3])
    times = {"correct": 30, "kept": 16, "mean": mean, "min": mean, "max": mean, "percentiles": [mean] * 6}
    row["summary"] = dict(times, **{name: mean / 100 for name in ("error", "error_untrimmed", "interval")})
    row["budget"] = {"clock": 1e-8, "resolution": 1e-8, "sampling": mean / 100}
json.dump(found, open(sys.argv[2], "w"))
PYTHON
}
# Ended with this code.
ends() {
    if [ "$status" -eq "$2" ]; then good; else bad "$1: not with code $2"; fi
}
made_up "$scratch/one.json" "$scratch/old.json" 1e-6
made_up "$scratch/one.json" "$scratch/slow.json" 1e-5
try "$program" check "$scratch/old.json" "$scratch/same.json"
refuses "check of a file that is not there" "same.json"
cp "$scratch/old.json" "$scratch/same.json"
try "$program" check "$scratch/old.json" "$scratch/same.json" --tolerance 0 --junit "$scratch/junit.xml" --markdown "$scratch/check.md"
ends "check of the same" 0
succeeds "check of the same" '^bcast  *2  *8 B .* no difference shown' '^none of 5 cases is shown to be slower'
try "$program" check --baseline "$scratch/old.json" "$scratch/slow.json" --junit "$scratch/junit.xml" --markdown "$scratch/check.md"
ends "check of what is slower" 4
grep -q '^bcast  *2  *8 B .* 10.0000 .* slower$' "$scratch/out" && good || bad "check: the row of what is slower"
grep -q '^| bcast  *| *2 | .* \*\*slower\*\*' "$scratch/check.md" && good || bad "check: Markdown"
python3 - "$scratch/junit.xml" <<'PYTHON' && good || bad "check: JUnit"
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
cases = suite.findall("testcase")
assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "1", "0"), suite.attrib
assert len(cases) == 5 and "10.000 times" in cases[0].find("failure").get("message"), cases
PYTHON
# Measured again; a time that no machine has shows however busy this one is.
made_up "$scratch/one.json" "$scratch/fast.json" 1e-20
job 2 check --baseline "$scratch/fast.json" --json "$scratch/now.json"
ends "check that measures" 4
job 2 check --baseline "$scratch/merged.json"
refuses "check of ratios that measures" "holds ratios"

# ---------------------------------------------------------------- habits: other columns, fewer ranks, pairs

job 4 run bcast barrier --sizes 8 --ranks 2,3,4 "${few[@]}" --json "$scratch/ranks.json"
succeeds "ranks one after the other" ': 2 processes' ': 3 processes' ': 4 processes'
python3 -c "import json; found = json.load(open('$scratch/ranks.json'))
assert [row['processes'] for row in found['rows']] == [2, 2, 3, 3, 4, 4] and found['about']['processes'] == 4, found" && good || bad "rows of the ranks"
job 2 run bcast --sizes 8 --ranks 2,5
refuses "more ranks than there are" "from 2 to the 2 ranks"
job 4 run pingpong stream exchange --sizes 8,1k "${few[@]}" --window 16 --json "$scratch/pairs.json"
succeeds "pairs" 'pingpong  *8 B' '2 pairs: .* one way' '2 pairs: .* MB/s, .* messages/s'
job 4 run stream --sizes 8 --pairs 3
refuses "more pairs than there are" "4 ranks are 2 pairs"
job 2 run bcast pingpong stream --sizes 8,4k "${few[@]}" --format osu
succeeds "columns of other benchmarks" '^# Size  *Avg Latency(us)  *Min' '^8  *[0-9.]* *[0-9.]* *[0-9.]* *[0-9]*$' '^# Size  *Latency (us)$' \
    '^# Size  *MB/s  *Messages/s$' '^4096  *[0-9.]*$'
schema=docs/reference/mpiperf.schema.json
try ci/schema.py "$schema" "$scratch"/{one,three,merged,now,ranks,pairs}.json bench/data/rust.*.json
succeeds "files against the schema"
python3 -c "import json; found = json.load(open('$scratch/one.json')); found['rows'][0]['calls'] = 'many'; json.dump(found, open('$scratch/bad.json', 'w'))"
try ci/schema.py "$schema" "$scratch/bad.json"
ends "a wrong file against the schema" 1
try "$program" schema
cmp -s "$scratch/out" "$schema" && good || bad "the schema that the program prints is not the published one"

if [ $short = 1 ]; then
    job 2 compare bcast --a tuned --b ^tuned --sizes 8 --setups 3 "${few[@]}" --json "$scratch/compared.json"
    succeeds "compare" 'a = tuned, b = ^tuned' 'bcast  *8 B'
    job 2 run broadcast
    refuses "unknown operation" "no operation 'broadcast'"
    died "a rank that dies" "$mpiexec" "${open[@]}" -n 2 "$program"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
fi
job 2 machine --name here -o "$scratch/machine.toml"
succeeds "machine" 'machine.toml is written'
python3 - "$scratch/machine.toml" machines/epyc-9654-2s.toml <<'PYTHON' && good || bad "keys of the machine file"
import sys, tomllib
here, other = (tomllib.load(open(name, "rb")) for name in sys.argv[1:])
far = {"l2", "l3", "numa", "socket", "node"}
for name, section in other.items():
    if name in ("name", "network"):
        continue
    assert set(section) - far == set(here[name]) - far, (name, section, here[name])
    assert all(value > 0 for key, value in here[name].items() if key not in ("page", "queued", "wrong_guess")), here[name]
text = open(sys.argv[1]).read()
assert "# Messages to a process of its node: L " in text, text
PYTHON
# Where other programs have the cores each of its 61 cases takes a second.
limit=120 job 2 limits --sizes 8,2k,16k --correct 10 --json "$scratch/limits.json"
succeeds "limits" 'one line from core to core' '16 KiB  ' 'floor of  *bcast, gather, scatter'
python3 - "$scratch/limits.json" <<'PYTHON' && good || bad "numbers of the limits"
import json, sys
found = json.load(open(sys.argv[1]))
sizes = [8, 2048, 16384]
median = {}
for one in found["limits"]:
    assert one["summary"]["percentiles"][2] > 0, one
    key = one["way"], one["bytes"]
    median[key] = min(median.get(key, 1e9), one["summary"]["percentiles"][2])
ways = "copy one_queue one_owned both_queue both_owned combine_all combine_owned combine_shared".split()
if not found["refused"]:
    ways += "one_read one_divided both_read combine_direct".split()
for way in ways:
    assert median[way, 16384] > median[way, 8], (way, median)
    assert all((way, size) in median for size in sizes), (way, median)
assert found["basics"]["timer"] > 0 and found["basics"]["held"] > 0, found["basics"]
groups = sorted({floor["operations"] for floor in found["floors"]})
assert len(groups) == 3, groups
for group in groups:
    floors = [floor for floor in found["floors"] if floor["operations"] == group]
    assert [floor["bytes"] for floor in floors] == sizes, floors
    times = [floor["time"] for floor in floors]
    assert 0 < times[0] <= times[1] < times[2], floors
PYTHON
printf '0 5\n5 0\n' >"$scratch/arrivals"
job 2 run bcast --sizes 8 --arrival "file:$scratch/arrivals" --sync ring --timer monotonic --cache cold "${few[@]}"
succeeds "replayed arrivals" 'timer monotonic' 'ring (± '
if [ ${#open[@]} -gt 0 ]; then
    job 2 compare bcast --a tuned --b ^tuned --sizes 8 --setups 3 "${few[@]}" --json "$scratch/compared.json"
    succeeds "compare" 'a = tuned, b = ^tuned' 'bcast  *8 B'
    job 2 compare bcast --a tuned --b ^tuned --b tuned --b basic --sizes 8 --setups 3 --wide "${few[@]}" --json "$scratch/several.json"
    succeeds "compare several" 'a = tuned, b = ^tuned, c = tuned, d = basic' 'bcast .*; tuned (c)$' 'bcast .*; basic$'
    python3 - "$scratch/several.json" >"$scratch/out" 2>"$scratch/err" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))["comparisons"]
assert [(c["a"], c["b"]) for c in found] == [("tuned (a)", other) for other in ("^tuned", "tuned (c)", "basic")], found
PYTHON
    status=$?
    succeeds "a comparison for each variant"
    job 2 compare bcast --a tuned --b ^tuned --b basic --sizes 8 --slow-b 5
    refuses "which of several to slow" "--slow-b is for one --b; there are 2"
    job 2 compare bcast --a tuned --b ^tuned --b nothere --sizes 8
    refuses "unknown component of several" "no collective component 'nothere'"
    # Bare ways: contents are verified as those of MPI are. In lines, beside them, and in pieces; not
    # divisible by the number of ranks.
    all_bare=(barrier bcast reduce allreduce gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv)
    limit=240 job 3 compare "${all_bare[@]}" --a tuned --b tuned --bare --datatype int32 --sizes 8,56,60,40k --root rotate --setups 3 \
        --calls 12 --correct 6 --wide --json "$scratch/bare.json"
    succeeds "bare ways" 'bcast .*; bare copies$'
    python3 - "$scratch/bare.json" >"$scratch/out" 2>"$scratch/err" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))["comparisons"]
ways = {(c["setting"]["operation"], c["setting"]["bytes"], c["b"]) for c in found}
both = [(operation, bytes, "bare copies") for operation in
        "bcast reduce allreduce gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv".split()
        for bytes in (8, 56, 60, 40 << 10)]
both += [(operation, bytes, "bare copies, shared work") for operation in ("reduce", "allreduce") for bytes in (8, 56, 60, 40 << 10)]
both += [("barrier", 0, "bare copies")]
both += [(operation, bytes, "bare copies after an empty call") for operation, bytes, way in both if way == "bare copies"]
assert ways >= set(both), ways
# Where the system allows it, of all that move data.
direct = {operation for operation, bytes, way in ways if way == "bare direct copies"}
assert len(direct) in (0, 9), direct
assert all(c["a"] == "tuned (a)" and c["processes"] == 3 for c in found), found[0]
PYTHON
    status=$?
    succeeds "a comparison for each bare way"
    job 2 compare bcast allreduce --a tuned --b tuned --bare=after-empty,shared-work --sizes 8 --setups 3 --calls 12 --correct 6 --wide
    succeeds "chosen bare ways" 'allreduce .*; bare copies, shared work$'
    if [[ $(grep -c '; bare ' "$scratch/out") == 3 ]]; then good; else bad "chosen bare ways: not those three"; fi
    job 2 compare allreduce bcast --a tuned --b tuned --bare=shared-work --sizes 8
    refuses "bare way that the operation does not have" "--bare=shared-work: bcast has copies,after-empty,direct"
    job 2 compare bcast --a tuned --b tuned --bare=copy --sizes 8
    refuses "unknown bare way" "invalid value 'copy' for '--bare"
    job 2 compare ibcast --a tuned --b tuned --bare --sizes 8
    refuses "bare form of a nonblocking operation" "ibcast: has no bare form"
    job 2 compare scan --a tuned --b tuned --bare --sizes 8
    refuses "bare form of a scan" "scan: has no bare form"
    job 2 compare allreduce --a tuned --b tuned --bare --in-place --sizes 8
    refuses "bare form in place" "and not in place"
    job 2 compare bcast --a tuned --b ^nothere --sizes 8
    refuses "unknown component" "no collective component 'nothere'"
    # A rank that may not read the other one's memory.
    try "${CC:-cc}" -o "$scratch/noread" tests/mpi/noread.c
    succeeds "launcher that takes rights away"
    try "$mpiexec" "${open[@]}" "${blind[@]}" -n 2 "$scratch/noread" "$program" limits --sizes 8 --correct 10
    succeeds "limits without reading memory" 'direct stay empty: process_vm_readv' '^ *8 B  ' '^floor of'
    try "$mpiexec" "${open[@]}" "${blind[@]}" -n 2 "$scratch/noread" "$program" compare bcast --a tuned --b tuned --bare \
        --sizes 8 --setups 3 "${few[@]}"
    succeeds "bare ways without reading memory" '; bare copies$'
    if grep -q 'direct' "$scratch/out"; then bad "bare ways without reading memory: a direct one"; else good; fi
fi

# ---------------------------------------------------------------- the cold start: it starts jobs itself

launch="$mpiexec ${open[*]} -n 2"
try "$program" start barrier allreduce --jobs 2 --communicators 3 --launch "$launch" --json "$scratch/start.json"
succeeds "start" '^job that does nothing  ' '^first barrier  ' '^first allreduce after dup  ' '^first allreduce after split  ' \
    '^memory (RSS) .* MiB '
try python3 -c "import json; rows = json.load(open('$scratch/start.json'))['start']
assert all(r['min'] <= r['median'] <= r['max'] and r['min'] > 0 and r['jobs'] in (2, 4) for r in rows if 'Finalize' not in r['measure'] and 'communicator' not in r['measure']), rows"
succeeds "start: its file"
try "$program" start allreduce --jobs 1 --communicators 2 --pattern --rounds 3 --turnover 100000 --launch "$launch"
succeeds "start: the pattern" '^fourth allreduce after dup  ' '^memory (PSS) of a communicator  ' '^pattern: allreduce, of who comes last  ' \
    '^pattern: allreduce, with waiting  ' '^pattern: a round of all  '
try "$program" start scan --launch "$launch"
refuses "start of an operation that it does not time" "no operation 'scan'"
try "$program" start barrier --launch "$scratch/nowhere"
refuses "start of a launcher that is not there" "cannot be started"

# ---------------------------------------------------------------- wrong usage

job 2 run broadcast
refuses "unknown operation" "no operation 'broadcast'"
job 2 run bcast --sizes 64,8
refuses "sizes out of order" "8 comes after 64"
job 2 run bcast --sizes 8,8
refuses "repeated size" "8 is there twice"
job 2 run bcast --sizes 900g
refuses "more memory than there is" "900 GiB are more than"
job 1 run bcast
refuses "one process" "nobody to communicate with"
job 1 limits
refuses "limits of one process" "this job has 1"
job 3 limits
refuses "limits of three processes" "this job has 3"
job 2 limits --sizes 8,10
refuses "limits of no whole numbers" "multiples of 4"
case $("$mpiexec" --version 2>&1) in
*"Open MPI"* | *OpenRTE*)
    job 2 locks --profile
    succeeds "profile of a read" '^N-MCS  ' '^PMIx_Get pmix.locstr: [0-9]'
    ;;
esac
job 1 machine -o "$scratch/no/machine.toml"
refuses "a machine file that cannot be written" "no/machine.toml"
job 2 limits --sizes 8 --json "$scratch/no/folder.json"
refuses "limits to a file that cannot be written" "cannot be written"
job 2 run bcast --root 2
refuses "root beyond the last rank" "ranks end at 1"
job 2 run bcast --trim 60%
refuses "wrong share" "from 0 to below 0.5"
job 2 run bcast --overlap
refuses "overlap of a blocking operation" "bcast blocks"
job 2 run bcast --json "$scratch/no/folder.json"
refuses "file that cannot be written" "cannot be written"
job 2 run bcast --arrival "file:$scratch/none"
refuses "file that cannot be read" "cannot be read"
job 2 compare bcast --a tuned --b tuned --slow-b fast
refuses "wrong percentage" "must be a percentage"

died "a rank that dies" "$mpiexec" "${open[@]}" -n 2 "$program"

# ---------------------------------------------------------------- MPICH, if it is there

if [ -z "${MPIPERF:-}" ] && command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null; then
    if mpich=$(MPICC=mpicc.mpich MPIPERF_PROFILE=dev scripts/build-mpiperf.sh 2>"$scratch/build" | tail -n 1) && [ -x "$mpich" ]; then
        try mpiexec.mpich -n 2 "$mpich" run bcast allreduce barrier --sizes 8,4k "${few[@]}" --json "$scratch/mpich.json"
        succeeds "MPICH: run" MPICH 'allreduce  *4 KiB'
        try "$program" merge "$scratch/one.json" "$scratch/mpich.json"
        succeeds "MPICH beside Open MPI" 'b = MPICH'
        try mpiexec.mpich -n 2 "$mpich" limits --sizes 8,4k --correct 10
        succeeds "MPICH: limits" '^ *4 KiB  ' '^floor of'
        try mpiexec.mpich -n 2 "$mpich" run broadcast
        refuses "MPICH: unknown operation" "no operation 'broadcast'"
        died "MPICH: a rank that dies" mpiexec.mpich -n 2 "$mpich"
    else
        status=1
        tail -n 20 "$scratch/build" >"$scratch/err"
        bad "MPICH: build"
    fi
else
    echo "MPICH: left out (not here, or MPIPERF names the program)"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
