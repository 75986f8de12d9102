#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The packages of packaging/README.md, made from the tarball of `make dist` as the page says. In bare
# folders of Debian 12 (Open MPI 4.1) and Debian 13 (5.0), without Rust and without a network: from the
# tarball and a ready libcoll_rust.a to a job that uses it; from there to a .deb that lintian passes, that a
# job uses once it is installed, and that purging takes away whole. On this machine, where the tools are
# there: RPMs by rpmbuild and rpmlint, the recipes for EasyBuild and Spack by their checks. A person runs
# it: it takes about five minutes, and making the folders takes two minutes and 1 GB each.
#
#   ci/test-packages.sh           with the Rust half that is built already, or is built now
#   ci/test-packages.sh --full    also with the tarball of `make dist-vendor`: this machine's Rust builds
#                                 coll-rust-tools, too (twenty minutes more)
#     --only PART                 bookworm, trixie, rpm, easybuild or spack
#     --clean                     removes the folders
set -euo pipefail
cd "$(dirname "$0")/.."

parts=(bookworm trixie rpm easybuild spack) full=0
passed=0 failed=0
good() {
    passed=$((passed + 1))
    echo "ok      $part: $*"
}
bad() {
    failed=$((failed + 1))
    echo "FAILED  $part: $*"
}
skip() { echo "skipped $part: $*"; }

# step NAME COMMAND...: must end well.
step() {
    local name=$1 log
    log=$(mktemp)
    shift
    if "$@" >"$log" 2>&1 </dev/null; then
        good "$name"
    else
        bad "$name"
        tail -n 30 "$log" | sed 's/^/        /'
        return 1
    fi
}

# uses "coll/rust"|"another component": what serves a plain job, which must say nothing else.
uses() {
    local said
    # Of the networks of the machine at hand Open MPI may have something to say.
    said=$(cd /srv && mpiexec -n 2 ./program 2>&1 | grep -v '^$\|btl_tcp_proc.c\|Unable to find reachable pairing' | sort)
    if [ "$said" = "rank 0 of 2: $1"$'\n'"rank 1 of 2: $1" ]; then
        good "a plain job uses $1"
    else
        bad "a plain job does not use $1:"
        sed 's/^/        /' <<<"$said"
    fi
}

files() {
    find /etc /usr /opt /var /root /home -xdev \( -path '/var/*/apt' -o -path /var/lib/dpkg -o -path '/var/log' -o -path '/var/cache' \) \
        -prune -o -print | sort
}

# ---------------------------------------------------------------- in a folder

# From the tarball: what a user without Rust does.
inside_tarball() {
    part=$1
    local gone
    gone=$(dpkg-query -W -f '${Package}\n' | grep -E '^(autoconf|automake|libtool|libclang.*|libllvm.*)$')
    # shellcheck disable=SC2086 # a list
    dpkg --purge --force-depends $gone >/dev/null 2>&1
    cd /srv
    tar xf /mnt/out/coll-rust-*[0-9].tar.gz
    cd coll-rust-*
    cp /mnt/out/libcoll_rust.a .
    mpicc -O2 -Wall -o /srv/program tests/install/uses.c
    uses "another component"
    files >/tmp/before
    step "the tarball is configured without Rust and network" ./configure || return
    step "make without Rust and network" make || return
    step "make check" make check || true
    step "make install" make install || return
    step "make installcheck" make installcheck || true
    uses "coll/rust"
    step "make uninstall" make uninstall || true
    files >/tmp/after
    step "uninstalling leaves nothing" diff /tmp/before /tmp/after || true
}

# From the tarball to packages: /mnt/out gets them.
inside_build() {
    part=$1
    local what=$2 options=(-b -us -uc)
    cd /srv
    if [ "$what" = ready ]; then
        tar xf /mnt/out/coll-rust-*[0-9].tar.gz
        cd coll-rust-*
        cp /mnt/out/libcoll_rust.a .
        options+=(--build-profiles=pkg.coll-rust.ready)
    else
        export PATH=/opt/rust/bin:$PATH
        tar xf /mnt/out/coll-rust-*-vendored.tar.gz
        cd coll-rust-*
        # Debian's own Rust is too old.
        options+=(-d)
    fi
    cp -r packaging/debian debian
    step "dpkg-buildpackage ($what)" dpkg-buildpackage "${options[@]}" || return
    cp /srv/*.deb /mnt/out/
    step "lintian ($what)" lintian --allow-root --fail-on error /srv/*.changes || true
}

# What was built, in a folder that has Open MPI and no tools for packages.
inside_install() {
    part=$1
    mpicc -O2 -Wall -o /srv/program /mnt/source/tests/install/uses.c
    uses "another component"
    files >/tmp/before
    local overrides
    overrides=$(dpkg --contents /mnt/out/openmpi-coll-rust_*.deb | sed -n 's/.* \.\(.*pmix-mca-params-override.conf\)$/\1/p')
    if [ -n "$overrides" ]; then
        echo 'ptl_base_verbose = 0' >"$overrides"
        step "a file of the site's is not written over" sh -c \
            '! dpkg --install /mnt/out/openmpi-coll-rust_*.deb 2>&1 && grep -qx "ptl_base_verbose = 0" "$0"' "$overrides" || true
        rm "$overrides"
        dpkg --purge openmpi-coll-rust >/dev/null 2>&1 || true
    fi
    step "dpkg --install" dpkg --install /mnt/out/*coll-rust*.deb || return
    uses "coll/rust"
    local packages
    packages=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii *\(.*coll-rust.*\)/\1/p')
    if [ -x /usr/bin/mpiperf ]; then
        step "mpiperf" mpiexec -n 2 mpiperf selfcheck --help || true
        step "coll-rust doctor" coll-rust doctor || true
    fi
    # shellcheck disable=SC2086 # a list
    step "dpkg --purge" dpkg --purge $packages || true
    files >/tmp/after
    step "purging leaves nothing" diff /tmp/before /tmp/after || true
    uses "another component"
}

if [ "${1:-}" = --inside ]; then
    "inside_$2" "${@:3}" || true
    echo "$passed passed, $failed failed"
    exit
fi

# ---------------------------------------------------------------- outside

clean=0
while [ $# -gt 0 ]; do
    case $1 in
    --full) full=1 ;;
    --only) parts=("$2") && shift ;;
    --clean) clean=1 ;;
    *)
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
        exit 2
        ;;
    esac
    shift
done

bare=$(sed -n 's/^    apt-get install \(.*openmpi.*\)/\1/p' docs/guide/install.md | head -n 1)
build=$(sed -n 's/^    apt-get install \(.*debhelper.*\)/\1/p' packaging/README.md | head -n 1)
[ -n "$bare" ] && [ -n "$build" ] || { echo "test-packages: docs/guide/install.md or packaging/README.md names no packages" >&2; exit 1; }
# in_root bare|build SUITE ARGUMENTS...: a folder with what users have, or with what builds packages.
in_root() {
    local roots=${COLL_RUST_BARE_ROOTS:-/tmp/coll-rust-bare} packages=$bare suite=$2
    if [ "$1" = build ]; then
        roots=${COLL_RUST_PACKAGE_ROOTS:-/tmp/coll-rust-packages} packages=$build
    fi
    shift 2
    mkdir -p "$roots"
    COLL_RUST_OMPI5_ROOT=$roots/$suite COLL_RUST_ROOT_SUITE=$suite COLL_RUST_ROOT_PACKAGES=$packages "${network[@]}" ci/ompi5-root.sh "$@"
}
network=()
if [ $clean = 1 ]; then
    for part in bookworm trixie; do
        in_root bare $part clean
        in_root build $part clean
    done
    exit
fi

version=$(scripts/version.sh)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/source" "$scratch/out"
git ls-files -z | xargs -0 cp --parents -t "$scratch/source"
target=${CARGO_TARGET_DIR:-$PWD/target}
[ -f "${COLL_RUST_STATICLIB:-}" ] || cargo rustc --quiet --release --lib --crate-type staticlib --features ompi -- -C llvm-args=-inline-threshold=50
cp "${COLL_RUST_STATICLIB:-$target/release/libcoll_rust.a}" "$scratch/out/libcoll_rust.a"

part=tarball
make_tarball() (
    cd "$scratch/source"
    autoreconf -i && ./configure --disable-programs && make dist && mv coll-rust-*.tar.gz "$scratch/out/" || exit
    [ $full = 0 ] || {
        make dist-vendor && mv coll-rust-*-vendored.tar.gz "$scratch/out/" || exit
        make dist-library && mv "libcoll_rust-$version-$(uname -m).a" "$scratch/out/libcoll_rust.a"
    }
)
step "make dist" make_tarball || exit 1

# in_folder ROOT SUITE WHAT ARGUMENTS...: runs a part of this script in there, without a network, and adds up.
in_folder() {
    local root=$1 suite=$2 log=$scratch/log good='' bad='' code=0
    shift 2
    in_root "$root" "$suite" run --throwaway --bind "$scratch/source:/mnt/source" --bind "$scratch/out:/mnt/out" "${binds[@]}" -- \
        bash /mnt/source/ci/test-packages.sh --inside "$1" "$suite" "${@:2}" </dev/null 2>&1 | tee "$log" || code=$?
    read -r good bad < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$log" | tail -n 1) || true
    [ $code = 0 ] && [ -n "$good" ] || bad=$((${bad:-0} + 1))
    passed=$((passed + ${good:-0}))
    failed=$((failed + bad))
}

debian() {
    if ! unshare --mount --net --pid --fork mount -t tmpfs none /mnt 2>/dev/null; then
        skip "needs root, with mounts and name spaces of networks"
        return
    fi
    network=()
    in_root bare "$part" prepare
    in_root build "$part" prepare
    network=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
    binds=()
    in_folder bare "$part" tarball
    in_folder build "$part" build ready
    in_folder bare "$part" install
    [ $full = 1 ] || return 0
    rm -f "$scratch"/out/*.deb
    binds=(--bind "$(dirname "$(dirname "$(rustup which cargo 2>/dev/null || command -v cargo)")"):/opt/rust")
    in_folder build "$part" build vendored
    in_folder bare "$part" install
}

check_rpm() {
    if ! command -v rpmbuild >/dev/null || ! command -v rpmlint >/dev/null; then
        skip "needs rpmbuild and rpmlint (Debian: rpm, rpmlint)"
        return
    fi
    local top=$scratch/rpm
    mkdir -p "$top/SOURCES"
    cp "$scratch"/out/coll-rust-*[0-9].tar.gz "$top/SOURCES/"
    cp "$scratch/out/libcoll_rust.a" "$top/SOURCES/libcoll_rust-$version-$(uname -m).a"
    # Debian's packages are unknown to rpm.
    step "rpmbuild" rpmbuild -bb --nodeps --define "_topdir $top" --with ready packaging/rpm/openmpi-coll-rust.spec || return 0
    step "rpmlint" rpmlint -c packaging/rpm/rpmlint.toml packaging/rpm/openmpi-coll-rust.spec "$top"/RPMS/*/*.rpm || true
    local component
    component=$(ompi_info --parsable --path pkglibdir | cut -d: -f3)/mca_coll_rust.so
    step "the package has the component and needs this Open MPI" sh -c '
        rpm -qlp "$0"/RPMS/*/*.rpm | grep -qxF "$1" && rpm -q --requires -p "$0"/RPMS/*/*.rpm | grep -qx "openmpi = $2"' \
        "$top" "$component" "$(mpicc --showme:version | sed -n 's/.*Open MPI \([0-9.]*[0-9]\).*/\1/p')" || true
}

check_easybuild() {
    if ! command -v eb >/dev/null; then
        skip "needs eb (pip install easybuild pycodestyle) and environment-modules or Lmod"
        return
    fi
    local file tool top=$scratch/easybuild tarball=coll-rust-${version}-vendored.tar.gz options=()
    file=coll-rust-$version-gompi-2025b.eb
    mkdir -p "$top"
    cp "packaging/easybuild/$file" "$top/"
    # What is checked is the recipe: without --full, a tarball of the name that it asks for is enough.
    cp "$scratch/out/$tarball" "$top/" 2>/dev/null || cp "$scratch/out/coll-rust-$version.tar.gz" "$top/$tarball"
    [ "$(id -u)" -ne 0 ] || options=(--allow-use-as-root-and-accept-consequences)
    tool=EnvironmentModules
    command -v module >/dev/null || . /usr/share/modules/init/bash 2>/dev/null || tool=Lmod
    options+=(--sourcepath="$top" --prefix="$top/prefix" --module-syntax=Tcl --modules-tool=$tool --allow-modules-tool-mismatch)
    step "eb --inject-checksums" eb "${options[@]}" --inject-checksums sha256 "$top/$file" || return 0
    step "eb --check-contrib" eb "${options[@]}" --check-contrib "$top/$file" || true
    step "eb --dry-run" eb "${options[@]}" --dry-run --robot "$top/$file" || true
    step "the hook adds the internal headers" sh -c 'eb "$@" --extended-dry-run | grep -q "/configure .*--with-devel-headers"' \
        sh "${options[@]}" --hooks="$PWD/packaging/easybuild/devel_headers.py" OpenMPI-5.0.8-GCC-14.3.0.eb || true
}

# Spack cannot be had from a registry: where it is, it makes the whole specification.
check_spack() {
    local repository=packaging/spack/spack_repo/coll_rust
    step "Python reads the recipes" python3 -c 'import ast, sys; [ast.parse(open(name).read()) for name in sys.argv[1:]]' \
        "$repository"/packages/*/package.py || true
    step "the recipe is of this release" grep -q "version(\"$version\")" "$repository/packages/coll_rust/package.py" || true
    if ! command -v spack >/dev/null; then
        skip "needs spack for the rest"
        return
    fi
    step "spack spec" spack --config "repos:coll_rust:$PWD/$repository" spec coll-rust || true
}

for part in "${parts[@]}"; do
    case $part in
    bookworm | trixie) debian ;;
    rpm | easybuild | spack) "check_$part" ;;
    *) echo "test-packages: no part is called '$part'" >&2 && exit 2 ;;
    esac
    rm -f "$scratch"/out/*.deb
done
echo "test-packages: $passed passed, $failed failed"
[ $failed -eq 0 ]
