#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks of the project, one after the other; continues after a failure. Installs what is missing. Prints how
# each check ended, and at last how many tests passed and failed. Exits with 1 if any failed.
#
#   ci/test.sh              all checks
#   ci/test.sh NAME...      only these
#   ci/test.sh --quick      those marked "quick": five minutes on two cores, without root. Installs nothing
#   ci/test.sh --list       what each does, its seconds last time, what it needs
#   ci/test.sh --record ... as without it, and keeps the seconds in ci/seconds.txt, for --list
set -uo pipefail
cd "$(dirname "$0")/.."

# name | time limit in seconds | needs | command | what it checks
#
# Those marked & use one core for most of their time, and measure nothing: they run one after the other beside
# those above them, and are waited for at their place. Checks that measure time, or count what a job has left
# on the machine, stand below them. Needs: mpi: Open MPI with its internal headers; root: name spaces and
# mounts; debs: Debian's packages from a mirror, at the first time; python: mpi4py is built; miri: a nightly
# Rust that has it, else the check is skipped. Rust is needed by all but "mutants". quick: a part of --quick.
checks='
format      |   60 | quick         | cargo fmt --all --check | layout of the Rust files
mutants     |   60 | quick         | ci/test-loom.sh --changes | that every broken copy for the model checker still finds its place
licences    |   60 | quick         | ci/test-licences.sh | licences of all crates, one version everywhere
clippy      |  900 | quick         | cargo clippy --quiet --workspace --all-targets -- -D warnings | lints, all members
clippy-ompi |  600 |               | cargo clippy --quiet --lib --features ompi -- -D warnings | lints of the part that talks to Open MPI
rustdoc     |  300 |               | cargo doc --quiet --workspace --no-deps --document-private-items --features ompi | links of the doc comments
units       |  900 | quick         | cargo test --no-fail-fast | the component without MPI: simulator, shared memory, rules of style
miri        |  900 | miri          | ci/test-miri.sh | undefined behaviour, with ranks as threads
build &     |  900 | mpi           | scripts/build.sh | the component and mpiperf, for the Open MPI of mpicc
gateway &   |  600 |               | cargo test -p coll-rust-gateway --no-fail-fast -- --test-threads=8 | the daemon between clusters
book &      |  600 |               | ci/test-book.sh | mdBook builds the pages, and their links lead somewhere
install     |  600 | mpi root debs | ci/test-install.sh | the documented install in bare Debian 12 and 13 folders
autotools   |  600 | mpi           | ci/test-autotools.sh | configure, make, install, uninstall, distribution
versions    |  300 | mpi           | ci/test-versions.sh | other releases of Open MPI, other builds of the component
demo        |  300 | mpi quick     | scripts/demo.sh --smoke | that a job uses the component and has right results
matrix      |  400 | mpi           | ci/test-matrix.sh | operations, algorithms and parameters drawn at random, results compared
mpi4py      |  600 | mpi python    | ci/test-mpi4py.sh | the tests of mpi4py about collectives
loom &      | 1500 |               | ci/test-loom.sh --part | orders of memory accesses by the model checker, and broken copies
units-perf & |  900 | mpi           | cargo test -p mpiperf -p coll-rust-command --no-fail-fast | mpiperf and coll-rust without mpiexec: statistics, files, pictures, causes
clock &     |  600 |               | cargo test --lib --features clock --no-fail-fast -- sim::clock | the simulated clock: windows, critical paths
mpiperf     |  600 | mpi           | ci/test-mpiperf.sh | the benchmark under mpiexec, also of MPICH
mpi         |  900 | mpi           | ci/test-mpi.sh | programs of tests/mpi under mpiexec on one node
nodes       |  600 | mpi root      | ci/test-nodes.sh | several nodes, made of name spaces
clusters    |  200 | mpi root      | ci/test-clusters.sh | several clusters and gateways, made of name spaces
faults      |  600 | mpi           | ci/test-faults.sh | wrong parameters, killed ranks, full memory, what is left behind
doctor      |  200 | mpi           | ci/test-doctor.sh | coll-rust doctor names the causes in set-ups broken on purpose
commands    |  200 | mpi           | ci/test-commands.sh | every command of README.md and docs/guide, as it stands there
ompi5       |  900 | mpi root debs | ci/test-ompi5.sh | the same with Open MPI 5.0, in a Debian 13 folder
'
trim() { sed 's/^ *//;s/ *$//'; }
# Column $2 of the row of check $1.
column() { awk -F'|' -v name="$1" -v column="$2" '{ key = $1; gsub(/[ &]/, "", key); if (key == name) print $column }' <<<"$checks" | trim; }
names=$(awk -F'|' 'NF > 1 { gsub(/[ &]/, "", $1); print $1 }' <<<"$checks")
kept=ci/seconds.txt

quick=0 record=0
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=1 ;;
    --record) record=1 ;;
    --list)
        printf '%-11s %7s  %-13s  %s\n' check seconds needs 'what it checks'
        for name in $names; do
            printf '%-11s %7s  %-13s  %s\n' "$name" "$(awk -v name="$name" '$1 == name { print $2 }' $kept)" "$(column "$name" 3)" "$(column "$name" 5)"
        done
        echo "Seconds were taken on: $(cut -d' ' -f3- $kept | sort -u | paste -sd';')"
        exit 0
        ;;
    -*)
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
        exit 2
        ;;
    *) break ;;
    esac
    shift
done
wanted=("$@")
if [ $# -eq 0 ]; then
    mapfile -t wanted < <(for name in $names; do [ $quick = 0 ] || [[ " $(column "$name" 3) " == *" quick "* ]] || continue; echo "$name"; done)
fi
for name in "${wanted[@]}"; do
    grep -qx -- "$name" <<<"$names" || { echo "test: no check is called '$name'; see --list" >&2; exit 2; }
done

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [ $quick = 1 ]; then
    scripts/install-deps.sh --check || exit 1
else
    scripts/install-deps.sh --tests || exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

passed=0
failed=0
notes=()
times=()
ended=() # those that passed, for --record

# Adds up the tests of one check from its output: "N passed, M failed" at its end, or cargo's "test result"
# lines. A check that tells no numbers counts as one test.
count() {
    local code=$1 log=$2 good bad
    if grep -q '^test result:' "$log"; then
        read -r good bad < <(awk '/^test result:/ { good += $4; bad += $6 } END { print good + 0, bad + 0 }' "$log")
    else
        read -r good bad < <(tail -n 5 "$log" | sed -n 's/^\(.*[^0-9]\)\{0,1\}\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed.*/\2 \3/p' | tail -n 1) ||
            if [ "$code" -eq 0 ]; then good=1 bad=0; else good=0 bad=1; fi
    fi
    [ "$code" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
    passed=$((passed + good))
    failed=$((failed + bad))
}

# Its line of the table: the time limit, the command, or whether it is marked.
limit_of() { column "$1" 2; }
command_of() { column "$1" 4; }
beside() { awk -F'|' -v name="$1" '{ key = $1; gsub(/ /, "", key); if (key == name "&") found = 1 } END { exit !found }' <<<"$checks"; }

# Runs a check; its output goes to NAME.log, its exit code and its seconds to NAME.end.
run() {
    local name=$1 code=0 started=$SECONDS
    # shellcheck disable=SC2046
    timeout -k 20 "$(limit_of "$name")" $(command_of "$name") >"$scratch/$name.log" 2>&1 </dev/null || code=$?
    echo "$code $((SECONDS - started))" >"$scratch/$name.ended"
    mv "$scratch/$name.ended" "$scratch/$name.end"
}

# Prints how a check ended, and adds up its tests.
tell() {
    local name=$1 log=$scratch/$1.log code seconds
    read -r code seconds <"$scratch/$name.end"
    times+=("$name $seconds s")
    [ "$code" != 0 ] || ended+=("$name $seconds $(date +%Y-%m-%d), $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)")
    case $code in
    0)
        grep '^test result:' "$log" || tail -n 3 "$log"
        echo "    ok, $seconds s"
        ;;
    77)
        tail -n 1 "$log"
        notes+=("$name: skipped")
        return
        ;;
    *)
        # What failed may stand far above the end.
        grep -nE '^(FAILED|test .* FAILED|error)|panicked at' "$log" | head -n 20
        tail -n 80 "$log"
        [ "$code" -ne 124 ] || echo "    over its limit of $(limit_of "$name") s"
        echo "    FAILED with exit code $code, $seconds s"
        notes+=("$name: FAILED")
        ;;
    esac
    count "$code" "$log"
}

lane=
if [ ${#wanted[@]} -gt 1 ]; then
    for name in "${wanted[@]}"; do ! beside "$name" || run "$name"; done &
    lane=$!
    trap 'kill $lane 2>/dev/null; rm -rf "$scratch"' EXIT
fi
for name in "${wanted[@]}"; do
    echo "--- $name: $(command_of "$name")"
    if [ -n "$lane" ] && beside "$name"; then
        while [ ! -f "$scratch/$name.end" ] && kill -0 "$lane" 2>/dev/null; do sleep 1; done
        [ -f "$scratch/$name.end" ] || echo "125 0" >"$scratch/$name.end"
    else
        run "$name"
    fi
    tell "$name"
done

echo
(IFS=,; echo "${times[*]}")
if [ $record = 1 ]; then
    {
        for name in $names; do
            printf '%s\n' ${ended[@]+"${ended[@]}"} | grep "^$name " || grep -s "^$name " $kept || true
        done
    } >"$scratch/seconds" && cp "$scratch/seconds" $kept
fi
[ ${#notes[@]} -eq 0 ] || printf '%s\n' "${notes[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
