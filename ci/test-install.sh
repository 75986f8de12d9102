#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The install path of docs/guide/install.md in bare folders of Debian 12 (Open MPI 4.1) and Debian 13 (5.0),
# with the packages that the page names and no others: from autoreconf to `mpiexec -n 2 ./program` with
# nothing exported, by make install and by make install-user; uninstalling leaves nothing. Each folder is
# made once (about two minutes, 1 GB) and stays; what a test changes in it is gone afterwards.
#
#   ci/test-install.sh            with the Rust half that is built already (or is built by this machine's
#                                 cargo); exit code 77 where the
#                                 machine does not allow mounts
#   ci/test-install.sh --full     make builds the Rust half, mpiperf and coll-rust, with this machine's Rust
#                                 and the crates that it has
#     --only SUITE                bookworm or trixie
#     --clean                     removes the folders
set -euo pipefail
cd "$(dirname "$0")/.."

suites=(bookworm trixie) full=0
roots=${COLL_RUST_BARE_ROOTS:-/tmp/coll-rust-bare}
in_root() {
    local suite=$1
    shift
    COLL_RUST_OMPI5_ROOT=$roots/$suite COLL_RUST_ROOT_SUITE=$suite COLL_RUST_ROOT_PACKAGES=$packages ci/ompi5-root.sh "$@"
}

# ---------------------------------------------------------------- in the folder

passed=0 failed=0
good() {
    passed=$((passed + 1))
    echo "ok      $suite: $*"
}
bad() {
    failed=$((failed + 1))
    echo "FAILED  $suite: $*"
}

# step NAME COMMAND...: must end well; its output is in /tmp/log.
step() {
    local name=$1
    shift
    if "$@" >/tmp/log 2>&1; then
        good "$name"
    else
        bad "$name"
        tail -n 30 /tmp/log | sed 's/^/        /'
        return 1
    fi
}

# uses WHO "coll/rust"|"another component": who serves a plain job of this user, which must say nothing else.
uses() {
    local who=$1 whose=$2 said
    if [ "$who" = root ]; then
        said=$(cd /srv/work && mpiexec -n 2 ./program 2>&1)
    else
        said=$(su - "$who" -c 'cd /srv/work && mpiexec -n 2 ./program' 2>&1)
    fi
    # Of the networks of the machine at hand Open MPI may have something to say.
    said=$(grep -v '^$\|btl_tcp_proc.c\|Unable to find reachable pairing' <<<"$said" | sort)
    if [ "$said" = "rank 0 of 2: $whose"$'\n'"rank 1 of 2: $whose" ]; then
        good "a plain job of $who uses $whose"
    else
        bad "a plain job of $who does not use $whose:"
        sed 's/^/        /' <<<"$said"
    fi
}

files() {
    find /etc /usr /opt /var /root /home -xdev \( -path '/var/*/apt' -o -path /root/.cache \) -prune -o -print | sort
}

# step_says PATTERN: what the last step has printed.
step_says() {
    if grep -q -- "$1" /tmp/log; then good "it says '$1'"; else bad "it does not say '$1'"; fi
}

inside() {
    suite=$1 full=$2
    local programs=()
    # mpiperf and coll-rust take minutes to build.
    [ "$full" = 1 ] || programs=(--disable-programs)
    export PATH=/opt/rust/bin:$PATH CARGO_HOME=/srv/cargo CARGO_NET_OFFLINE=true
    useradd --create-home --shell /bin/bash user
    cp -r /mnt/source /srv/source
    cd /srv/source
    step "autoreconf" autoreconf -i || return
    step "configure" ./configure "${programs[@]}" || return
    if [ "$full" = 0 ]; then
        mkdir -p target/release
        cp /mnt/out/libcoll_rust.a target/release/
    fi
    step "make" make || return
    mkdir /srv/work
    mpicc -O2 -Wall -o /srv/work/program tests/install/uses.c
    chmod -R a+rX /srv
    uses root "another component"
    files >/tmp/before

    step "make install" make install || return
    step_says 'coll/rust: loaded by the processes that .*mpiexec starts'
    step "make installcheck" make installcheck || true
    uses root "coll/rust"
    uses user "coll/rust"
    step "make uninstall" make uninstall || true
    files >/tmp/after
    step "uninstalling leaves nothing" diff /tmp/before /tmp/after || true
    uses user "another component"
    if make installcheck >/tmp/log 2>&1; then bad "make installcheck without the component"; else good "make installcheck says no"; fi
    step_says 'coll/rust: NOT loaded'

    chown -R user /srv/source
    step "make install-user" su - user -c 'cd /srv/source && make install-user' || return
    step_says 'coll/rust: loaded by the processes that .*mpiexec starts'
    uses user "coll/rust"
    uses root "another component"
    step "make uninstall-user" su - user -c 'cd /srv/source && make uninstall-user' || true
    files >/tmp/after
    step "uninstalling the user's leaves nothing" diff /tmp/before /tmp/after || true

    # A parameter file of the user's stays as it was.
    # shellcheck disable=SC2016 # for the user's shell
    step "a user with parameters" su - user -c 'mkdir -p .openmpi && echo "mpi_show_mca_params = 0" >.openmpi/mca-params.conf &&
        cp .openmpi/mca-params.conf kept && cd /srv/source && make install-user' || true
    uses user "coll/rust"
    step "a user with parameters has them back" su - user -c '(cd /srv/source && make uninstall-user) && cmp kept .openmpi/mca-params.conf' || true
}

if [ "${1:-}" = --inside ]; then
    inside "$2" "$3" || true
    echo "$passed passed, $failed failed"
    exit
fi

# ---------------------------------------------------------------- outside

clean=0
while [ $# -gt 0 ]; do
    case $1 in
    --full) full=1 ;;
    --only) suites=("$2") && shift ;;
    --clean) clean=1 ;;
    *)
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
        exit 2
        ;;
    esac
    shift
done
# As the page has them.
packages=$(sed -n 's/^    apt-get install \(.*openmpi.*\)/\1/p' docs/guide/install.md | head -n 1)
[ -n "$packages" ] || { echo "test-install: docs/guide/install.md names no packages" >&2; exit 1; }
if [ $clean = 1 ]; then
    for suite in "${suites[@]}"; do in_root "$suite" clean; done
    exit
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
if ! "${as_root[@]}" unshare --mount --pid --fork mount -t tmpfs none /mnt 2>/dev/null; then
    echo "test-install: SKIPPED: mounting is not allowed here"
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/source" "$scratch/out" "$roots"
git ls-files -z | xargs -0 cp --parents -t "$scratch/source"
if [ $full = 0 ]; then
    target=${CARGO_TARGET_DIR:-$PWD/target}
    [ -f "${COLL_RUST_STATICLIB:-}" ] || cargo rustc --quiet --release --lib --crate-type staticlib --features ompi -- -C llvm-args=-inline-threshold=50
    cp "${COLL_RUST_STATICLIB:-$target/release/libcoll_rust.a}" "$scratch/out/libcoll_rust.a"
fi
rust=$(dirname "$(dirname "$(rustup which cargo 2>/dev/null || command -v cargo)")")
crates=${CARGO_HOME:-$HOME/.cargo}/registry
mkdir -p "$crates"

for suite in "${suites[@]}"; do
    started=$SECONDS
    in_root "$suite" prepare
    code=0
    in_root "$suite" run --throwaway --bind "$scratch/source:/mnt/source" --bind "$scratch/out:/mnt/out" --bind "$rust:/opt/rust" \
        --bind "$crates:/srv/cargo/registry" -- bash /mnt/source/ci/test-install.sh --inside "$suite" $full </dev/null 2>&1 |
        tee "$scratch/log" || code=$?
    good='' bad=''
    read -r good bad < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$scratch/log" | tail -n 1) || true
    [ $code = 0 ] && [ -n "$good" ] || bad=$((${bad:-0} + 1))
    passed=$((passed + ${good:-0}))
    failed=$((failed + bad))
    echo "    $suite: $((SECONDS - started)) s"
done
echo "test-install: $passed passed, $failed failed"
[ $failed -eq 0 ]
