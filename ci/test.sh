#!/bin/bash
# Every check of the project, one after the other; continues after a failure. Installs what is missing. Prints
# how each check ended, and at last how many tests passed and failed. Exits with 1 if any failed.
#
#   ci/test.sh              all checks
#   ci/test.sh NAME...      only these
#   ci/test.sh --list       their names
set -uo pipefail
cd "$(dirname "$0")/.."

# name | time limit in seconds | command
#
# Those marked & use one core for most of their time, and measure nothing: they run one after the other beside
# those above them, and are waited for at their place. Checks that measure time, or count what a job has left
# on the machine, stand below them.
checks='
format      |   60 | cargo fmt --all --check
mutants     |   60 | ci/test-loom.sh --changes
clippy      |  900 | cargo clippy --quiet --workspace --all-targets -- -D warnings
clippy-ompi |  600 | cargo clippy --quiet --lib --features ompi -- -D warnings
units       |  900 | cargo test --no-fail-fast
miri        |  900 | ci/test-miri.sh
units-perf  |  900 | cargo test -p mpiperf --no-fail-fast
build &     |  900 | scripts/build.sh
gateway &   |  600 | cargo test -p coll-rust-gateway --no-fail-fast -- --test-threads=8
install     |  600 | ci/test-install.sh
autotools   |  600 | ci/test-autotools.sh
versions    |  300 | ci/test-versions.sh
demo        |  300 | scripts/demo.sh --smoke
matrix      |  400 | ci/test-matrix.sh
mpi4py      |  600 | ci/test-mpi4py.sh
loom &      | 1500 | ci/test-loom.sh --part
mpiperf     |  600 | ci/test-mpiperf.sh
mpi         |  900 | ci/test-mpi.sh
nodes       |  600 | ci/test-nodes.sh
clusters    |  200 | ci/test-clusters.sh
faults      |  600 | ci/test-faults.sh
ompi5       |  900 | ci/test-ompi5.sh
'
trim() { sed 's/^ *//;s/ *$//'; }
names=$(awk -F'|' 'NF > 1 { gsub(/[ &]/, "", $1); print $1 }' <<<"$checks")

if [ "${1:-}" = --list ]; then
    echo "$names"
    exit 0
fi
wanted=("$@")
[ $# -gt 0 ] || mapfile -t wanted <<<"$names"
for name in "${wanted[@]}"; do
    grep -qx -- "$name" <<<"$names" || { echo "test: no check is called '$name'; see --list" >&2; exit 2; }
done

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
scripts/install-deps.sh || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

passed=0
failed=0
notes=()
times=()

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
limit_of() { awk -F'|' -v name="$1" '{ key = $1; gsub(/[ &]/, "", key); if (key == name) print $2 }' <<<"$checks" | trim; }
command_of() { awk -F'|' -v name="$1" '{ key = $1; gsub(/[ &]/, "", key); if (key == name) print $3 }' <<<"$checks" | trim; }
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
[ ${#notes[@]} -eq 0 ] || printf '%s\n' "${notes[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
