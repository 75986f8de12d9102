#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds mpiperf for one MPI library and prints the path of the program as the last line.
#
#   scripts/build-mpiperf.sh
#
#   MPICC               compiler wrapper of the MPI library to build for: Open MPI 4.1 or 5.0, MPICH, Intel
#                       MPI. Without it
#                       (mpicc) the program is <target folder>/release/mpiperf, with it
#                       <target folder>/mpiperf/<library>-<version>/mpiperf
#   CARGO_TARGET_DIR    cargo's target folder (default: target)
#   MPIPERF_PROFILE     cargo's profile (default: release)
#   I_MPI_ROOT          folder of Intel MPI (default: the one that MPICC is in)
set -euo pipefail

die() {
    echo "build-mpiperf: $*" >&2
    exit 1
}

if [ $# -gt 0 ]; then
    sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
fi

absolute() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$PWD/$1" ;;
    esac
}
target=${CARGO_TARGET_DIR:-}
[ -z "$target" ] || target=$(absolute "$target")
mpicc=$(command -v "${MPICC:-mpicc}") || die "there is no ${MPICC:-mpicc}: install an MPI library with its compiler wrapper" \
    "(libopenmpi-dev, libmpich-dev, or impi-devel of PyPI), or name a wrapper with MPICC"
mpicc=$(absolute "$mpicc")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${target:-$PWD/target}
profile=${MPIPERF_PROFILE:-release}
command -v cargo >/dev/null || die "there is no cargo: install Rust 1.88 or later (rustup)"

# Intel's wrapper looks for its files where it was packed, unless told where they are now.
if [ -x "$(dirname "$mpicc")/mpigcc" ] && [ -z "${I_MPI_ROOT:-}" ]; then
    I_MPI_ROOT=$(dirname "$(dirname "$mpicc")")
fi
[ -z "${I_MPI_ROOT:-}" ] || export I_MPI_ROOT

# ---------------------------------------------------------------- which library

marks='#include <mpi.h>
open=OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION
intel=I_MPI_VERSION
mpich=MPICH_VERSION
'
expanded=$("$mpicc" -E -P -x c - <<<"$marks" 2>/dev/null | tr -d ' "') \
    || die "$mpicc does not find mpi.h: install the development package of its MPI library"
version() {
    sed -n "s/^$1=\([0-9][0-9.a-z]*\)\$/\1/p" <<<"$expanded"
}
library=
for name in open intel mpich; do
    number=$(version "$name")
    if [ -n "$number" ]; then
        library=$name-$number
        break
    fi
done
case $library in
open-*) library=openmpi-${library#open-} ;;
intel-*) library=intelmpi-${library#intel-} ;;
mpich-*) ;;
*) die "$mpicc is of no library known here: Open MPI, MPICH and Intel MPI are" ;;
esac

# ---------------------------------------------------------------- build

folder=$target
if [ -n "${MPICC:-}" ]; then
    # One folder for each library: the bindings are made from its header.
    folder=$target/mpiperf/$library/build
    # Libraries that the loader does not know by itself are found again at run time. Packages must not hold a
    # path that is not needed.
    known=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | sed -n 's/.* => \(.*libmpi.*\)/\1/p' | xargs -r realpath) || true
    for flag in $("$mpicc" -show | tr -d '"' | tr ' ' '\n' | sed -n 's/^-L//p'); do
        for file in "$flag"/libmpi*.so; do
            ! grep -qxF -- "$(realpath -- "$file")" <<<"$known" || continue 2
        done
        RUSTFLAGS="${RUSTFLAGS:-} -C link-arg=-Wl,-rpath,$flag"
    done
    export RUSTFLAGS
fi
# What is timed is in the MPI library: optimising over crates would only make the build slow.
export CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
commit=$(git describe --always --dirty --abbrev=12 2>/dev/null || true)
echo "build-mpiperf: for $library ($mpicc), with $(cargo --version)" >&2
MPICC=$mpicc CARGO_TARGET_DIR=$folder MPIPERF_COMMIT=$commit cargo build --locked -p mpiperf --profile "$profile" >&2

case $profile in
dev) built=$folder/debug/mpiperf ;;
*) built=$folder/$profile/mpiperf ;;
esac
program=$built
if [ -n "${MPICC:-}" ]; then
    program=$target/mpiperf/$library/mpiperf
    # In one step: a job that is running keeps the old file.
    cp "$built" "$program.$$"
    mv -f "$program.$$" "$program"
fi
echo "build-mpiperf: built $program" >&2
echo "$program"
