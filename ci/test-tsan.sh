#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What shares memory, with its members as threads, under ThreadSanitizer: accesses that no release and acquire
# put in order, at the speed of the machine, with the real futex and in longer runs than Miri manages
# (ci/test-miri.sh). Then a broken copy, which must be noticed.
#
# Covered: every operation in random sequences, by itself, and with two threads of each member (blocking, and
# polled), two to four members, in every way of waiting; private memory that members read or ask for
# (tests/shm/threads.rs, unreadable.rs); the boards of mailbox.rs. 4 minutes on two cores, most of which is
# the compiler's; SHM_SEEDS makes more runs.
#
# The standard library is built with it, too (its locks would look like races otherwise), so its source must
# be there.
#
# What it does not see: other processes (each has a sanitizer of its own), hence pools and groups; stores that
# go past the cache, and copies of more than 2 KiB to 1 to 63 bytes behind, by vectors (both in
# src/shm/copy/mod.rs), which are written in assembler; and fences. Those between `asleep` and the awaited
# word (src/shm/protocol/team/waking.rs) order atomic accesses only, no contents: without them nothing looks
# like a race. That no wake-up is lost is checked by ci/test-loom.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTUP_AUTO_INSTALL=0
root=$(rustc +nightly --print sysroot 2>/dev/null) || root=
target=$(rustc -vV | sed -n 's/^host: //p')
if [ ! -e "$root/lib/rustlib/src/rust/library/Cargo.lock" ] || [ ! -e "$root/lib/rustlib/$target/lib/librustc-nightly_rt.tsan.a" ]; then
    echo "skipped: no nightly toolchain with ThreadSanitizer and the source of the standard library (rustup toolchain install nightly --component rust-src)"
    exit 77
fi

export RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/tsan
tsan() { SHM_SEEDS=${SHM_SEEDS:-8} nice cargo +nightly test --quiet -Zbuild-std --target "$target" "$@" -- threads mailbox; }

tsan --lib --test shm

# The copy has a target folder of its own, which goes with it: in one that both use, cargo would take what the
# last broken copy left for the source's.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/source
mkdir "$copy"
cp -r Cargo.toml Cargo.lock build.rs src tests mpiperf gateway coll-rust ompi-glue "$copy"
cp -a "$CARGO_TARGET_DIR" "$scratch/target"
file=src/shm/protocol/team/waking.rs
sed 's/word.store(next, Ordering::Release)/word.store(next, Ordering::Relaxed)/' "$file" >"$copy/$file"
if cmp -s "$file" "$copy/$file"; then
    echo "nothing to break in $file: adapt ci/test-tsan.sh to the source" >&2
    exit 1
fi
if log=$(cd "$copy" && CARGO_TARGET_DIR=$scratch/target tsan --test shm 2>&1) || ! grep -q 'ThreadSanitizer: data race' <<<"$log"; then
    echo "a relaxed publication was not noticed" >&2
    exit 1
fi
echo "a relaxed publication is noticed"
