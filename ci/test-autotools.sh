#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The build by configure and make, from a copy of the files under version control: build, check, trial install
# and uninstall, distribution. Touches nothing outside its scratch folder.
#
#   ci/test-autotools.sh            without make check and make distcheck, which the test run has otherwise,
#                                   and without mpiperf and coll-rust, which take minutes to build
#   ci/test-autotools.sh --full     with them
set -euo pipefail
cd "$(dirname "$0")/.."
full=${1:-}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
mkdir "$scratch/source" "$scratch/build" "$scratch/dest" "$scratch/home"
git ls-files -z | xargs -0 cp --parents -t "$scratch/source"

passed=0
step() {
    local name=$1
    shift
    if ! "$@" >"$scratch/log" 2>&1; then
        tail -n 40 "$scratch/log"
        echo "test-autotools: $name FAILED"
        echo "test-autotools: $passed passed, 1 failed"
        exit 1
    fi
    passed=$((passed + 1))
    echo "test-autotools: $name ok"
}

# What make builds is not measured here: the optimiser may take its ease.
[ "$full" = --full ] || export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1
ready=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release/libcoll_rust.a

cd "$scratch/source"
step "autoreconf" autoreconf -i
cd "$scratch/build"
programs=(--disable-programs)
[ "$full" != --full ] || programs=()
step "configure" ../source/configure "${programs[@]}"
if [ "$full" != --full ] && [ -f "$ready" ]; then
    # The Rust half that scripts/build.sh has built before, for which make would give the same command.
    step "make would build the Rust half" sh -c 'make -n | grep -q "rustc --release --lib --crate-type staticlib --features ompi"'
    mkdir -p target/release
    cp "$ready" target/release/
fi
step "make" make
component=$(ompi_info --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')/mca_coll_rust.so
step "make install" make install DESTDIR="$scratch/dest"
step "the component is installed" test -f "$scratch/dest$component"
step "what debuggers read is installed apart" sh -c 'test -f "${0%/*}/.debug/${0##*/}.debug" && ! objdump -h "$0" | grep -q debug_info' \
    "$scratch/dest$component"
if [ "$full" = --full ]; then
    step "programs have pages and completions" sh -c 'for program in mpiperf coll-rust; do "$0/bin/$program" --version &&
        grep -q "^.TH $program 1" "$0/share/man/man1/$program.1" && bash -n "$0/share/bash-completion/completions/$program" &&
        test -s "$0/share/zsh/site-functions/_$program" && test -s "$0/share/fish/vendor_completions.d/$program.fish" || exit; done' "$scratch/dest/usr/local"
fi
step "make uninstall" make uninstall DESTDIR="$scratch/dest"
step "the component is gone" sh -c 'test ! -e "$0" && test ! -e "${0%/*}/.debug"' "$scratch/dest$component"
step "no file is left" sh -c 'test -z "$(find "$0" -type f)"' "$scratch/dest"
step "make install-user" make install-user HOME="$scratch/home"
step "Open MPI finds the user's" sh -c 'HOME=$0 ompi_info --param coll rust --level 9 | grep -q coll_rust_priority' \
    "$scratch/home"
if [ "$full" = --full ]; then
    step "make check" make check
    step "make distcheck" make distcheck
else
    step "make distdir" make distdir
fi
step "make distclean" make distclean
if [ -f "$ready" ]; then
    step "configure with a ready Rust half, without Rust" ../source/configure --with-rust-library="$ready" CARGO=none
    step "make would not call cargo" sh -c 'make -n >make.log && grep -q "COLL_RUST_STATICLIB=.*libcoll_rust.a" make.log && ! grep "rustc\|cargo " make.log'
    step "configure refuses a library of something else" sh -c '! ../source/configure --with-rust-library=/dev/null'
fi
echo "test-autotools: $passed passed, 0 failed"
