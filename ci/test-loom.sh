#!/bin/bash
# The shared-memory protocol under the model checker; then the same with the source broken on purpose, one place at a time: the
# models must notice each.
#
#   ci/test-loom.sh             all
#   ci/test-loom.sh --models    without the broken copies
#   ci/test-loom.sh --changes   only whether every change still finds its place in the source (a second)
set -euo pipefail
cd "$(dirname "$0")/.."

# name | file | sed expression
mutants='
relaxed publication     | src/shm/team/waking.rs | s/word.store(next, Ordering::Release)/word.store(next, Ordering::Relaxed)/
relaxed look            | src/shm/reach.rs       | s/self.word.load(Ordering::Acquire)/self.word.load(Ordering::Relaxed)/
no look before sleeping | src/shm/team/waking.rs | s/let seen = word.load(Ordering::Relaxed);/let seen = word.load(Ordering::Relaxed); fence(Ordering::SeqCst); asleep.store(1, Ordering::Relaxed);/; s/^        asleep.store(1, Ordering::Relaxed);//
no fence at the writer  | src/shm/team/waking.rs | /SYNC(asleep): either/{n;s/fence(Ordering::SeqCst);//}
line not awaited        | src/shm/turn.rs        | s/(self.op.wrapping_sub(LINES as u32 - 1), 0)/(self.op.wrapping_sub(LINES as u32), 0)/
old answer taken        | src/shm/turn/asking.rs | s/now != before \&\& self.whom/self.whom/
answered twice          | src/shm/turn/asking.rs | s/desk.answered.is_none()/true/
relaxed question        | src/shm/turn/asking.rs | s/read.word.load(Ordering::Acquire)/read.word.load(Ordering::Relaxed)/
slot not awaited        | src/shm/turn.rs        | s/word(self.op, before + 1)/word(self.op, before)/
'
# Each line of the table that has a file, as name, file and change.
each_mutant() {
    while IFS='|' read -r name file change; do
        [ -z "${file:-}" ] || printf '%s\t%s\t%s\n' "$(sed 's/ *$//' <<<"$name")" "$(tr -d ' ' <<<"$file")" "$change"
    done <<<"$mutants"
}

lost=0
while IFS=$'\t' read -r name file change; do
    if [ ! -f "$file" ] || sed "$change" "$file" | cmp -s "$file" -; then
        echo "mutant '$name' changes nothing in $file: adapt the table of ci/test-loom.sh to the source" >&2
        lost=$((lost + 1))
    fi
done < <(each_mutant)
[ "$lost" -eq 0 ] || exit 1
[ "${1:-}" != --changes ] || exit 0

export RUSTFLAGS="--cfg loom" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/loom
timeout 600 cargo test --quiet --release --test loom
[ "${1:-}" != --models ] || exit 0

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r Cargo.toml Cargo.lock build.rs src tests mpiperf ompi-glue "$copy"
missed=0
while IFS=$'\t' read -r name file change; do
    sed "$change" "$file" >"$copy/$file"
    if ! (cd "$copy" && timeout 300 cargo build --quiet --release --test loom 2>/dev/null); then
        echo "mutant '$name' does not compile" >&2
        missed=$((missed + 1))
    else
        ended=0
        (cd "$copy" && timeout 300 cargo test --quiet --release --test loom >/dev/null 2>&1) || ended=$?
        case $ended in
        0) echo "mutant '$name' was not noticed" >&2 && missed=$((missed + 1)) ;;
        124) echo "mutant '$name': the models were not through in 300 s" >&2 && missed=$((missed + 1)) ;;
        *) echo "mutant '$name' noticed" ;;
        esac
    fi
    cp "$file" "$copy/$file"
done < <(each_mutant)
[ "$missed" -eq 0 ]
