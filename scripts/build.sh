#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds mca_coll_rust.so for one installed Open MPI (4.1, 5.0 or 6), and mpiperf (scripts/build-mpiperf.sh);
# prints the folder of mca_coll_rust.so as the last line.
#
#   scripts/build.sh [FOLDER]     put it into FOLDER; default: <target folder>/coll-rust/<version of Open MPI>
#   scripts/build.sh --check      only say whether the Open MPI will do, and what it lacks; prints its version
#
#   MPICC                    compiler wrapper of the Open MPI to build for (default: mpicc)
#   CARGO_TARGET_DIR         cargo's target folder (default: target)
#   COLL_RUST_STATICLIB      a ready libcoll_rust.a: cargo is not run, mpiperf not built. One library serves
#                            every version of
#                            Open MPI.
#   COLL_RUST_SKIP_MPIPERF   not empty: mpiperf is not built
#   COLL_RUST_DEBUG_INSIDE   not empty: what debuggers read stays in mca_coll_rust.so; packages take it apart
#                            themselves
#   COLL_RUST_OUT            as FOLDER
#   CFLAGS, LDFLAGS          added to those of this script
set -euo pipefail

die() {
    echo "build: $*" >&2
    exit 1
}

say() {
    echo "build: $*" >&2
}

check=0
case ${1:-} in
--check)
    check=1
    shift
    ;;
-*)
    sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
    ;;
esac

# What the caller names relative to its own folder stays where it means.
absolute() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$PWD/$1" ;;
    esac
}
out=${1:-${COLL_RUST_OUT:-}}
[ -z "$out" ] || out=$(absolute "$out")
staticlib=${COLL_RUST_STATICLIB:-}
[ -z "$staticlib" ] || staticlib=$(absolute "$staticlib")
target=${CARGO_TARGET_DIR:-}
[ -z "$target" ] || target=$(absolute "$target")

cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${target:-$PWD/target}
glue=$PWD/ompi-glue

# ---------------------------------------------------------------- what is there

mpicc=$(command -v "${MPICC:-mpicc}") \
    || die "there is no ${MPICC:-mpicc}: install openmpi-bin and libopenmpi-dev, or name a compiler wrapper with MPICC"
version=$({ "$mpicc" --showme:version 2>&1 || true; } | sed -n 's/.*Open MPI v\{0,1\}\([0-9][^ ]*\).*/\1/p' | head -n 1)
[ -n "$version" ] || die "$mpicc is no compiler wrapper of Open MPI: install libopenmpi-dev, or name one with MPICC"
case $version in
4.1.* | 5.* | 6.*) ;;
*) die "$mpicc is of Open MPI $version: 4.1, 5.0 and 6 are supported" ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Whether the preprocessor finds a header.
finds() {
    echo "#include \"$1\"" | "$mpicc" "${@:2}" -E -x c - >/dev/null 2>&1
}

# Whether a program links with these.
links() {
    echo 'int main(void) { return 0; }' | "$mpicc" -x c - -o "$scratch/links" "$@" >/dev/null 2>&1
}

after=(-idirafter "$glue/compat")
internal=$(printf '#include "ompi_config.h"\n#include "ompi/mca/coll/base/coll_tags.h"\n')
if ! echo "$internal" | "$mpicc" "${after[@]}" -E -x c - >/dev/null 2>&1; then
    die "the internal headers of Open MPI $version are missing: install libopenmpi-dev (from source: configure" \
        "--with-devel-headers)"
fi

# Open MPI's own headers include those of hwloc and PMIx where it was built with external ones.
includes=()
if [ "${version%%.*}" -ge 5 ] && ! finds pmix.h; then
    # shellcheck disable=SC2046 # one word for each flag
    set -- $(pkg-config --cflags-only-I pmix 2>/dev/null || true)
    for folder in "$@" "-I/usr/lib/$(gcc -print-multiarch 2>/dev/null)/pmix2/include"; do
        if finds pmix.h "$folder"; then
            includes+=("$folder")
            break
        fi
    done
    [ ${#includes[@]} -gt 0 ] || die "pmix.h is missing: install libpmix-dev"
fi

finds hwloc.h || finds opal/mca/hwloc/base/base.h "${includes[@]}" "${after[@]}" \
    || die "hwloc.h is missing: install libhwloc-dev"

if [ $check = 1 ]; then
    printf '#include "%s"\n' ompi_config.h ompi/mca/coll/coll.h ompi/mca/pml/pml.h \
        | "$mpicc" "${includes[@]}" "${after[@]}" -E -x c - 2>&1 >/dev/null | grep -m 1 'error' >&2 \
        && die "the internal headers of Open MPI $version do not compile"
    echo "$version"
    exit
fi

# ---------------------------------------------------------------- the Rust half

if [ -z "$staticlib" ]; then
    command -v cargo >/dev/null || die "there is no cargo: install Rust 1.88 or later (rustup), or name a ready" \
        "libcoll_rust.a with COLL_RUST_STATICLIB"
    say "the Rust half, with $(cargo --version)"
    # As a static library alone: where a Rust library is made too, every function that another crate might use
    # is called by its address in a table, which short operations wait for. What short calls need is marked as
    # a part of its callers: of the rest LLVM makes less so than it would, which takes a tenth less code.
    CARGO_TARGET_DIR=$target cargo rustc --release --lib --crate-type staticlib --features ompi -- \
        -C llvm-args=-inline-threshold=50 >&2
    staticlib=$target/release/libcoll_rust.a
fi
[ -f "$staticlib" ] || die "there is no $staticlib"

# ---------------------------------------------------------------- the C half

say "the C half, for Open MPI $version ($mpicc)"
# GCC would load the first fields of every call, constants, from memory of their own.
flags=(-std=gnu11 -O2 -fno-tree-slp-vectorize -g -DNDEBUG -fPIC -fvisibility=hidden -Wall -Wextra -Werror)
read -ra numbers < <(scripts/version.sh --flags) || die "Cargo.toml does not tell the version"
flags+=("${numbers[@]}")
# Open MPI's free lists swap 16 bytes at once.
case $("$("$mpicc" --showme:command | cut -d' ' -f1)" -dumpmachine) in
x86_64-*) flags+=(-mcx16) ;;
esac
objects=()
for source in accelerator component datatype layout messages module params request services smsc transfer; do
    # shellcheck disable=SC2086 # CFLAGS is a list
    "$mpicc" "${flags[@]}" ${CFLAGS:-} "${includes[@]}" "${after[@]}" -c "$glue/$source.c" -o "$scratch/$source.o" >&2 \
        || die "$source.c does not compile against Open MPI $version"
    objects+=("$scratch/$source.o")
done

# Where Open MPI brings its own, hwloc and PMIx are part of libopen-pal.
libraries=(-lopen-pal)
for library in hwloc pmix; do
    if links "-l$library"; then
        libraries+=("-l$library")
    fi
done
# Not all linkers take a script beside their own.
order=()
if links "-Wl,-T,$glue/order.ld"; then
    order+=("-Wl,-T,$glue/order.ld")
fi
echo '{ global: mca_coll_rust_component; local: *; };' >"$scratch/exports"
# shellcheck disable=SC2086 # LDFLAGS is a list
"$mpicc" -shared -o "$scratch/mca_coll_rust.so" "${objects[@]}" "$staticlib" \
    -Wl,--version-script="$scratch/exports" "${order[@]}" -Wl,--gc-sections -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,relro -Wl,--as-needed \
    ${LDFLAGS:-} "${libraries[@]}" -lpthread -ldl -lm >&2 || die "mca_coll_rust.so does not link"

exported=$(nm -D --defined-only "$scratch/mca_coll_rust.so" | awk '{ print $NF }')
[ "$exported" = mca_coll_rust_component ] \
    || die "mca_coll_rust.so must export mca_coll_rust_component and nothing else, but exports: ${exported:-nothing}"

out=${out:-$target/coll-rust/$version}
mkdir -p "$out"
# What debuggers read lies apart, where they look for it: most who start a job never need it. Not beside the
# component: Open MPI would take it for another one. Without objcopy it stays inside.
if [ -z "${COLL_RUST_DEBUG_INSIDE:-}" ] && command -v objcopy >/dev/null; then
    mkdir -p "$out/.debug"
    (
        cd "$scratch"
        objcopy --only-keep-debug mca_coll_rust.so mca_coll_rust.so.debug
        objcopy --strip-debug --add-gnu-debuglink=mca_coll_rust.so.debug mca_coll_rust.so
    ) || die "objcopy failed"
    cp "$scratch/mca_coll_rust.so.debug" "$out/.debug/.mca_coll_rust.so.debug.$$"
    mv -f "$out/.debug/.mca_coll_rust.so.debug.$$" "$out/.debug/mca_coll_rust.so.debug"
fi
# In one step: a job that is running keeps the old file.
cp "$scratch/mca_coll_rust.so" "$out/.mca_coll_rust.so.$$"
mv -f "$out/.mca_coll_rust.so.$$" "$out/mca_coll_rust.so"
# The component looks for its messages beside itself.
cp "$glue/help-coll-rust.txt" "$out/help-coll-rust.txt"
say "built $out/mca_coll_rust.so"

if [ -n "${COLL_RUST_STATICLIB:-}${COLL_RUST_SKIP_MPIPERF:-}" ]; then
    say "mpiperf left out"
else
    CARGO_TARGET_DIR=$target scripts/build-mpiperf.sh >&2
fi
echo "$out"
