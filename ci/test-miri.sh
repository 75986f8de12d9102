#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The shared-memory protocols under Miri, which interprets a program and objects to undefined behaviour:
# accesses that no release and acquire put in order, to freed memory or past its end, against the rules of
# references, of uninitialised or misaligned data. Loads may return values as old as the memory model allows.
#
#   ci/test-miri.sh             the operations with members as threads, and the unit tests of what touches
#                               such memory, on the heap, with few and
#                               short calls; then a broken copy, which must be noticed
#   ci/test-miri.sh --all       all of tests/shm, also what goes wrong, and members as futures of one thread:
#                               long
#   ci/test-miri.sh --seeds N   members as threads in N orders
#
# What cannot run: mmap, memfd and process_vm_readv (pools, groups and what processes do:
# tests/processes), and the futex: the kernel reads half of a word, to Miri a racing access of another size.
# So nobody sleeps here; that no wake-up is lost is checked by ci/test-loom.sh. Copies that go past the cache
# are plain ones here.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTUP_AUTO_INSTALL=0
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "skipped: no nightly toolchain with miri (rustup toolchain install nightly --component miri,rust-src)"
    exit 77
fi
if ! log=$(cargo +nightly miri setup 2>&1); then
    echo "$log" >&2
    echo "skipped: Miri cannot build the standard library here"
    exit 77
fi

# Addresses travel as numbers where members read each other's private memory.
export MIRIFLAGS="-Zmiri-permissive-provenance"
miri() { nice cargo +nightly miri test --quiet "$@"; }

case "${1:-}" in
--all) miri --test shm; exit ;;
--seeds) MIRIFLAGS+=" -Zmiri-many-seeds=0..$2" miri --test shm threads; exit ;;
esac

miri --test shm threads
miri --lib -- shm::copy shm::mailbox shm::team::places

# The copy has a target folder of its own, which goes with it: in one that both use, cargo would take what the
# last broken copy left for the source's.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/source target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir "$copy" "$scratch/target"
cp -r Cargo.toml Cargo.lock build.rs src tests mpiperf gateway coll-rust ompi-glue "$copy"
cp -a "$target/miri" "$scratch/target"

# Whether the race is noticed when one file is changed.
notices() {
    local file=$1 change=$2
    sed "$change" "$file" >"$copy/$file"
    if cmp -s "$file" "$copy/$file"; then
        echo "'$change' changes nothing in $file: adapt ci/test-miri.sh to the source" >&2
        return 1
    fi
    if log=$(cd "$copy" && CARGO_TARGET_DIR=$scratch/target miri --test shm threads::each 2>&1) || ! grep -q 'Undefined Behavior: Data race detected' <<<"$log"; then
        echo "'$change' in $file was not noticed" >&2
        return 1
    fi
    echo "'$change' in $file noticed"
    cp "$file" "$copy/$file"
}
notices src/shm/protocol/team/waking.rs 's/word.store(next, Ordering::Release)/word.store(next, Ordering::Relaxed)/'
