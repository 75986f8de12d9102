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
checks='
format      |   60 | cargo fmt --all --check
mutants     |   60 | ci/test-loom.sh --changes
clippy      |  600 | cargo clippy --quiet --all-targets -- -D warnings
clippy-perf |  600 | cargo clippy --quiet -p mpiperf --all-targets -- -D warnings
clippy-ompi |  600 | cargo clippy --quiet --lib --features ompi -- -D warnings
units       |  900 | cargo test --no-fail-fast
loom        | 1200 | ci/test-loom.sh
miri        |  900 | ci/test-miri.sh
units-perf  |  900 | cargo test -p mpiperf --no-fail-fast
build       |  900 | ci/build.sh
mpiperf     |  600 | ci/test-mpiperf.sh
mpi         |  900 | ci/test-mpi.sh
matrix      |  400 | ci/test-matrix.sh
nodes       |  600 | ci/test-nodes.sh
faults      |  600 | ci/test-faults.sh
versions    |  300 | ci/test-versions.sh
demo        |  300 | ci/demo.sh --smoke
ompi5       |  900 | ci/test-ompi5.sh
install     |  600 | ci/test-install.sh
mpi4py      |  600 | ci/test-mpi4py.sh
autotools   |  600 | ci/test-autotools.sh
'
trim() { sed 's/^ *//;s/ *$//'; }
names=$(awk -F'|' 'NF > 1 { gsub(/ /, "", $1); print $1 }' <<<"$checks")

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
ci/install-deps.sh || exit 1
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

run() {
    local name=$1 limit=$2 log=$scratch/$1.log code=0 started=$SECONDS
    shift 2
    echo "--- $name: $*"
    if [[ $1 == ci/* && ! -x $1 ]]; then
        echo "    there is no $1"
        failed=$((failed + 1))
        return
    fi
    timeout -k 20 "$limit" "$@" >"$log" 2>&1 </dev/null || code=$?
    times+=("$name $((SECONDS - started)) s")
    case $code in
    0)
        grep '^test result:' "$log" || tail -n 3 "$log"
        echo "    ok, $((SECONDS - started)) s"
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
        [ $code -ne 124 ] || echo "    over its limit of $limit s"
        echo "    FAILED with exit code $code, $((SECONDS - started)) s"
        notes+=("$name: FAILED")
        ;;
    esac
    count $code "$log"
}

for name in "${wanted[@]}"; do
    line=$(awk -F'|' -v name="$name" '{ key = $1; gsub(/ /, "", key); if (key == name) print }' <<<"$checks")
    limit=$(cut -d'|' -f2 <<<"$line" | trim)
    command=$(cut -d'|' -f3- <<<"$line" | trim)
    # shellcheck disable=SC2086
    run "$name" "$limit" $command
done

echo
(IFS=,; echo "${times[*]}")
[ ${#notes[@]} -eq 0 ] || printf '%s\n' "${notes[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
