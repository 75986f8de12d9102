#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The protocols of shared memory under the model checker; then the same with the source broken on purpose, one
# place at a time: the model named beside each change must fail, and say so. In a copy of the source that is
# made in the same way, but for the change, all these models must pass.
#
#   ci/test-loom.sh             all
#   ci/test-loom.sh --part      all models, those of three members for 5 s instead of 20, and the others for
#                               20 s instead of to their end; but only an eighth of the broken copies:
#                               another one after each commit, within eight all of them
#   ci/test-loom.sh --models    without the broken copies
#   ci/test-loom.sh --changes   only whether every change still finds its place in the source, and its model
#                               (a second)
#
# Broken copies are built in a copy of the target folder, which goes with them. Cargo takes for fresh what was
# built after its files were last written, wherever they lie: in a folder that both use, the source would be
# tested by what the last broken copy left.
set -euo pipefail
cd "$(dirname "$0")/.."

# name | file | a model that notices it, in less than a second | sed expression
mutants='
relaxed publication     | src/shm/protocol/team/waking.rs | a_slot_is_used_again_only_when_it_has_been_read | s/word.store(next, Ordering::Release)/word.store(next, Ordering::Relaxed)/
relaxed look            | src/shm/protocol/reach.rs       | a_payload_arrives_with_its_flag                 | s/self.word.load(Ordering::Acquire)/self.word.load(Ordering::Relaxed)/
no look before sleeping | src/shm/protocol/team/waking.rs | no_wake_up_is_lost_at_the_end_of_an_operation   | s/let seen = word.load(Ordering::Relaxed);/let seen = word.load(Ordering::Relaxed); fence(Ordering::SeqCst); asleep.store(place(member, word, half), Ordering::Relaxed);/; s/^        asleep.store(place(member, word, half), Ordering::Relaxed);//
sleeps elsewhere        | src/shm/protocol/team/waking.rs | no_wake_up_is_lost                              | s/asleep.store(place(member, word, half)/asleep.store(place(member, word, Half::High)/
no fence at the writer  | src/shm/protocol/team/waking.rs | no_wake_up_is_lost                              | /SYNC(asleep): either/,/fence/s/fence(Ordering::SeqCst);//
sleeper not counted     | src/shm/protocol/team/waking.rs | no_wake_up_is_lost                              | s/self.sleepers().fetch_add(1, Ordering::Relaxed);//; s/self.sleepers().fetch_sub(1, Ordering::Relaxed);//
sleeper counted late    | src/shm/protocol/team/waking.rs | no_wake_up_is_lost                              | s/self.sleepers().fetch_add(1, Ordering::Relaxed);/fence(Ordering::SeqCst);/; /SYNC(asleep): see/,/fence(/s/fence(Ordering::SeqCst);/self.sleepers().fetch_add(1, Ordering::Relaxed);/
sleeper not counted on  | src/shm/protocol/team/waking.rs | no_wake_up_is_lost                              | s/fetch_add(1, Ordering::Relaxed)/store(1, Ordering::Relaxed)/; s/fetch_sub(1, Ordering::Relaxed)/store(0, Ordering::Relaxed)/
relaxed last step       | src/shm/protocol/turn/view.rs   | a_payload_arrives_with_its_flag                 | s/line.store(last, Ordering::Release)/line.store(last, Ordering::Relaxed)/
relaxed end             | src/shm/protocol/turn/view.rs   | a_line_is_used_again_only_when_all_have_read_it | s/read.store(word(next, 0), Ordering::Release)/read.store(word(next, 0), Ordering::Relaxed)/
no wake for the line    | src/shm/protocol/turn/view.rs   | no_wake_up_is_lost_where_the_end_wakes          | s/, (line, self.line_before(), last)//
no wake for readers     | src/shm/protocol/turn/view.rs   | no_wake_up_is_lost_at_the_end_of_an_operation   | s/.through.);$/[]);/
line not awaited        | src/shm/protocol/turn/slots.rs  | a_line_is_used_again_only_when_all_have_read_it | s/(self.op.wrapping_sub(rooms - 1), 0)/(self.op.wrapping_sub(rooms), 0)/
set not awaited         | src/shm/protocol/turn/slots.rs  | a_set_holds_another_whole_message_only_when_all_have_read_it | s/_ => (config.sets.into(), true),/_ => (config.lines, true),/
set kept too long       | src/shm/protocol/turn/slots.rs  | a_set_holds_another_whole_message_only_when_all_have_read_it | s/!self.known(word(last.wrapping_add(1), 0))/false/
set not told            | src/shm/protocol/turn/view.rs   | a_set_holds_another_whole_message_only_when_all_have_read_it | s/self.said, self.stream.set.load(Ordering::Relaxed))/self.said, 0)/
short slot not awaited  | src/shm/protocol/turn/slots.rs  | a_short_slot_is_used_again_only_when_all_have_read_it | s/(config.shorts.into(), false),/(config.lines, false),/
rotating not awaited    | src/shm/protocol/turn/slots.rs  | what_is_short_and_rotates_lies_where_something_was_that_has_been_read | s/config.still as usize => (config.shorts/config.short => (config.shorts/
rotating goes before    | src/shm/protocol/turn/slots.rs  | what_is_short_and_rotates_waits_for_a_set_that_was_gone_on_in | s/if wants_set \&\& config.rotates {/if wants_set \&\& config.rotates \&\& len > config.short {/
exchange goes before    | src/shm/op/block.rs    | a_set_holds_another_short_exchange_only_when_all_have_read_it | s/_ => longest,/_ => SHORTEST,/
share not awaited       | src/shm/op/block.rs    | a_short_slot_holds_another_exchange_only_when_all_have_read_it | s/=> SHORTEST,/=> LINE,/
piece not awaited       | src/shm/op/pipeline.rs | a_relay_combines_half                           | s/read(reader, before + 1)/read(reader, before)/
relay overwrites        | src/shm/op/pipeline.rs | a_relay_combines_half                           | s/run.free(step).await?;//
relaxed glance          | src/shm/protocol/turn/alike.rs  | two_exchange_lines                              | s/reached(word.load(Ordering::Acquire), self.target)/reached(word.load(Ordering::Relaxed), self.target)/
short not awaited       | src/shm/op/short.rs    | a_set_holds_another_short_exchange_only_when_all_have_read_it | s/|| !first.has(source)/\&\& !first.has(source)/
exchange not awaited    | src/shm/op/alltoall/places.rs | a_set_holds_another_exchange_only_when_all_have_read_it | s/false => want_set(.*$/false => 0,/
ring not awaited        | src/shm/op/scatter.rs  | all_places_are_used_again_only_when_all_have_read | s/room_free(want_set(.*$/room_free(0).await?;/
block told too early    | src/shm/op/dealt.rs    | a_block_arrives_before_the_next_one_is_there      | s/turn.publish(dealer.count as u32 + 1);$/turn.publish(dealer.count as u32 + 2);/
portion not awaited     | src/shm/op/dealt.rs    | a_place_is_used_again_only_when_its_reader_has_read | s/read: k as u32 + 1/read: k as u32/
gather not awaited      | src/shm/op/gather.rs   | a_piece_of_a_block_stays_until_the_root_has_read_it | s/count(&turn, before, index(root, me))/& - 1/
half not awaited        | src/shm/op/gather.rs   | a_half_of_a_set_stays_until_the_root_has_read_it | s/count(&turn, before, index(root, me))/& - 1/
length not compared     | src/shm/protocol/turn/lengths.rs | who_has_another_length_learns_it_with_the_flag  | s/self.said_by(member) != said(len) || (len > LINE \&\& self.differs_at_once(member, len))/false/
length not noted        | src/shm/protocol/turn/lengths.rs | who_has_another_length_learns_it_with_the_flag  | s/if len > LINE {$/if len > LINE + 4 {/
block not compared      | src/shm/op/told.rs     | who_has_another_block_learns_it_with_the_flag   | s/if found != said {$/if false {/
block not noted         | src/shm/op/told.rs     | who_has_another_block_learns_it_with_the_flag   | s/view.note(len, if short(len)/view.note(len + 1, if short(len)/
number not compared     | src/shm/op/told.rs     | who_has_another_block_than_others_learns_it_with_the_flag | s/TABLE => entry_of(view, member) != Some(number),/TABLE => false,/
number not noted        | src/shm/op/told.rs     | who_has_another_block_than_others_learns_it_with_the_flag | s/at.write(number(len, short(len)))/at.write(0)/
numbers over blocks     | src/shm/protocol/turn/lengths.rs | who_has_another_block_than_others_learns_it_with_the_flag | s/LINE - size_of::<u16>() \* (self.size() - 1)/0/
relaxed failure         | src/shm/protocol/team.rs        | who_fails_reads_no_more                         | s/failed.load(Ordering::Acquire) != 0/failed.load(Ordering::Relaxed) != 0/
flip not counted        | src/shm/pool/mailbox.rs     | what_is_counted_is_seen                         | s/store(self.news, Ordering::Release)/store(self.news, Ordering::Relaxed)/
relaxed flip            | src/shm/pool/mailbox.rs     | two_groups_in_two_words                         | s/store(self.written.index., Ordering::Release)/store(self.written[index], Ordering::Relaxed)/
next set not awaited    | src/shm/protocol/turn/rotation.rs | a_set_that_was_gone_on_in_is_used_again_only_when_it_has_been_read | s/(1..u32::from(sets)).contains(&since)/false/
slot not awaited        | src/shm/protocol/turn/slots.rs  | a_slot_is_used_again_only_when_it_has_been_read | s/word(self.op, before + 1)/word(self.op, before)/
lock: reader goes past  | src/sync/rwlock/two_mutexes.rs | who_writes_2n_mutex_is_alone | s/let entered = main.lock();/let entered = Ok::<_, Error>(());/
lock: newcomers kept    | src/sync/rwlock/two_mutexes.rs | who_writes_2n_mutex_is_alone | s/area.mutex(reader, SIGNALLING).unlock();//
signal: mutex not taken | src/sync/rwlock/mutex_signal.rs | who_writes_n_mutex_signal_is_alone | s/area.mutex(reader, MAIN).lock()?;//
signal: mutex kept      | src/sync/rwlock/mutex_signal.rs | who_writes_n_mutex_signal_is_alone | /^fn release/,/^}/s/area.mutex(reader, MAIN).unlock();//
signal: stays up        | src/sync/rwlock/mutex_signal.rs | the_dead_of_n_mutex_signal_keep_nobody_waiting | s/area.readers().for_each(|reader| tell(area.word(reader, SIGNAL), DOWN));/let _ = area;/
queue: relaxed entry    | src/sync/rwlock/mcs.rs | who_writes_n_mcs_is_alone | s/fetch_add(one, Ordering::AcqRel)/fetch_add(one, Ordering::Relaxed)/
queue: relaxed turn     | src/sync/rwlock/waiting.rs | who_writes_n_mcs_is_alone | s/word.swap(value, Ordering::Release)/word.swap(value, Ordering::Relaxed)/
queue: dead hands over  | src/sync/rwlock/mcs.rs | the_dead_of_n_mcs_keep_nobody_waiting | s/false => Some(gone.other().count(queue)).filter(|count| is_in(\*count)),/false => None,/
queue: dead stays       | src/sync/rwlock/mcs.rs | the_dead_of_n_mcs_keep_nobody_waiting | s/true => leave(area, reader, gone),/true => None,/
'
# Each line of the table that has a file, as name, file, model and change.
each_mutant() {
    while IFS='|' read -r name file model change; do
        [ -z "${file:-}" ] ||
            printf '%s\t%s\t%s\t%s\n' "$(sed 's/ *$//' <<<"$name")" "$(tr -d ' ' <<<"$file")" "$(tr -d ' ' <<<"$model")" "$change"
    done <<<"$mutants"
}

models=$(grep -h -A 1 '^#\[test\]' tests/loom/*.rs)
lost=0
while IFS=$'\t' read -r name file model change; do
    if [ ! -f "$file" ] || sed "$change" "$file" | cmp -s "$file" -; then
        echo "mutant '$name' changes nothing in $file: adapt the table of ci/test-loom.sh to the source" >&2
        lost=$((lost + 1))
    fi
    if ! grep -q "^fn $model() {" <<<"$models"; then
        echo "mutant '$name': no model is called '$model': adapt the table of ci/test-loom.sh to tests/loom" >&2
        lost=$((lost + 1))
    fi
done < <(each_mutant)
[ "$lost" -eq 0 ] || exit 1
if [ "${1:-}" = --part ]; then
    # Without a history, as in an archive, always the same.
    part=$(($(git rev-list --count HEAD 2>/dev/null || echo 0) % 8))
    mutants=$(grep '|' <<<"$mutants" | awk -v part=$part 'NR % 8 == part')
    export LOOM_SECONDS=5 LOOM_SECONDS_WHOLE=20
    echo "of the broken copies, part $part of 8: $(wc -l <<<"$mutants")"
fi
[ "${1:-}" != --changes ] || exit 0

# The stack of a model's thread does not hold what collects a trace: a failure would end in a signal.
export RUST_BACKTRACE=0
export RUSTFLAGS="--cfg loom" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/loom
timeout 900 cargo test --quiet --release --test loom
[ "${1:-}" != --models ] || exit 0

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/source log=$scratch/log
mkdir "$copy"
cp -r Cargo.toml Cargo.lock build.rs src tests mpiperf gateway coll-rust ompi-glue "$copy"
cp -a "$CARGO_TARGET_DIR" "$scratch/target"
# Only what a change affects is compiled again.
export CARGO_TARGET_DIR=$scratch/target CARGO_INCREMENTAL=1

# Builds the copy and prints where the program is; fails where it is not of the copy as it is now.
build() {
    local built ended=0
    built=$(cd "$copy" && timeout 600 cargo build --quiet --release --test loom --message-format=json 2>"$log") || ended=$?
    [ "$ended" -ne 124 ] || echo "cargo was not through in 600 s" >>"$log"
    [ "$ended" -eq 0 ] || return 1
    if ! grep '"name":"coll_rust"' <<<"$built" | grep -q '"fresh":false'; then
        echo "cargo has not built it anew" >"$log"
        return 1
    fi
    sed -n 's/.*"name":"loom".*"executable":"\([^"]*\)".*/\1/p' <<<"$built"
}

# Runs a model of the program that was built last, and sets `outcome`: passed, failed (which it must have said
# itself), or what happened instead.
try() {
    local test ended=0
    test=loom::$(basename "$(grep -l "^fn $1() {" tests/loom/*.rs)" .rs)::$1
    timeout 300 "$program" --exact "$test" >"$log" 2>&1 || ended=$?
    if [ "$ended" -eq 0 ] && grep -qx "test $test ... ok" "$log"; then
        outcome=passed
    elif [ "$ended" -eq 101 ] && grep -qx "test $test ... FAILED" "$log" && grep -q "^thread '$test'.* panicked at " "$log"; then
        outcome=failed
    elif [ "$ended" -eq 134 ] && grep -q "^thread '$test'.* panicked at " "$log" && grep -q '^thread caused non-unwinding panic' "$log"; then
        outcome=failed # once more while it was failing
    elif [ "$ended" -eq 124 ]; then
        outcome="was not through in 300 s"
    elif ! grep -qx 'running 1 test' "$log"; then
        outcome="did not run"
    else
        outcome="ended with code $ended and did not say that it failed"
    fi
}

# Each time only the first interleavings: loom looks at this limit after every 20,000. A change is noticed
# within a few.
export LOOM_MAX_PERMUTATIONS=20000

while IFS=$'\t' read -r _ file _ _; do
    sed '' "$file" >"$copy/$file"
done < <(each_mutant)
if ! program=$(build); then
    tail -n 20 "$log" >&2
    echo "the unchanged copy could not be built" >&2
    exit 1
fi
while read -r model; do
    try "$model"
    if [ "$outcome" != passed ]; then
        tail -n 20 "$log" >&2
        echo "the unchanged copy, $model: $outcome" >&2
        exit 1
    fi
done < <(each_mutant | cut -f 3 | sort -u)
echo "the unchanged copy passes"

missed=0
while IFS=$'\t' read -r name file model change; do
    sed "$change" "$file" >"$copy/$file"
    if program=$(build); then
        try "$model"
    else
        outcome="could not be built"
    fi
    case $outcome in
    failed) echo "mutant '$name' noticed" ;;
    passed)
        echo "mutant '$name': not noticed by $model" >&2
        missed=$((missed + 1))
        ;;
    *)
        tail -n 20 "$log" >&2
        echo "mutant '$name', $model: $outcome" >&2
        missed=$((missed + 1))
        ;;
    esac
    cp "$file" "$copy/$file"
done < <(each_mutant)
[ "$missed" -eq 0 ]
