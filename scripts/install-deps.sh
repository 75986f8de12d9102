#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Sees what building and testing needs, and installs what the machine lacks by its package manager: apt-get,
# dnf or zypper, as root or with sudo. Does nothing where all is there, whoever put it there. Rust (1.88 or
# later) must be there: it is only checked.
#
#   scripts/install-deps.sh            what building the component and the demonstration need
#   scripts/install-deps.sh --tests    what ci/test.sh needs, too
#   scripts/install-deps.sh --check    says what is missing, installs nothing; exit code 1 if anything is
#
# apt-get is tested (Debian 12 and 13); the names for dnf and zypper were not tried there.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=0 check=0
for argument; do
    case $argument in
    --tests) tests=1 ;;
    --check) check=1 ;;
    *)
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
        exit 2
        ;;
    esac
done

# As root, mpiexec refuses even to say its version.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

open_mpi() { [[ $(mpicc --showme:version 2>&1) =~ "Open MPI" && $(mpiexec --version 2>&1) =~ "Open MPI"|OpenRTE ]]; }
headers() { scripts/build.sh --check >/dev/null 2>&1; }
libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] || compgen -G '/usr/lib*/libclang*.so*' >/dev/null ||
        compgen -G '/usr/lib/*/libclang*.so*' >/dev/null || compgen -G '/usr/lib*/llvm*/lib*/libclang*.so*' >/dev/null
}
compiles() { echo 'int main(void) { return 0; }' | gcc -x c - -o /dev/null; }
python() { python3 -c 'import ensurepip, sysconfig, os; assert os.path.exists(sysconfig.get_paths()["include"] + "/Python.h")'; }
there() { command -v "$1" >/dev/null; }

# what for | how to see that it is there | packages of apt-get | of dnf | of zypper
needs='
build | open_mpi          | openmpi-bin libopenmpi-dev | openmpi openmpi-devel | openmpi4 openmpi4-devel
build | headers           | libopenmpi-dev libhwloc-dev | openmpi-devel hwloc-devel pmix-devel | openmpi4-devel hwloc-devel
build | compiles          | gcc libc6-dev | gcc glibc-devel | gcc glibc-devel
build | there make        | make | make | make
build | there pkg-config  | pkg-config | pkgconf-pkg-config | pkg-config
build | libclang          | libclang-dev | clang-devel | clang-devel
tests | there autoreconf  | autoconf | autoconf | autoconf
tests | there automake    | automake | automake | automake
tests | there libtoolize  | libtool | libtool | libtool
tests | there strace      | strace | strace | strace
tests | there ip          | iproute2 | iproute | iproute2
tests | there ethtool     | ethtool | ethtool | ethtool
tests | there ps          | procps | procps-ng | procps
tests | there unshare     | util-linux | util-linux | util-linux
tests | python            | python3 python3-dev python3-venv | python3 python3-devel | python3 python3-devel
tests | there mpicc.mpich | mpich libmpich-dev | - | -
'

case $(for tool in apt-get dnf zypper; do ! there $tool || { echo $tool; break; }; done) in
apt-get) column=1 install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends) ;;
dnf) column=2 install=(dnf install -y -q) ;;
zypper) column=3 install=(zypper --non-interactive --quiet install --no-recommends) ;;
*) column=1 install=() ;;
esac

# The packages for what is missing, in one line.
missing() {
    local group probe names
    while IFS='|' read -r group probe names; do
        [ -n "$probe" ] || continue
        [ "$tests" = 1 ] || [ "${group// /}" = build ] || continue
        # shellcheck disable=SC2086 # a function and its argument
        $probe >/dev/null 2>&1 || cut -d'|' -f"$column" <<<"$names"
    done <<<"$needs" | tr ' ' '\n' | grep -vx -e '' -e - | sort -u | paste -sd' ' || true
}

lacks=$(missing)
if [ -n "$lacks" ]; then
    echo "install-deps: missing: $lacks"
    [ $check = 0 ] || exit 1
    if [ ${#install[@]} -eq 0 ]; then
        echo "install-deps: neither apt-get, dnf nor zypper is here; install what holds the same by hand" >&2
        exit 1
    fi
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        there sudo || { echo "install-deps: neither root nor sudo; as root run: ${install[*]} $lacks" >&2; exit 1; }
        as_root=(sudo)
    fi
    # The lists may be old or absent: read them again, but let an install from old lists do if that fails.
    [ $column != 1 ] || "${as_root[@]}" apt-get update -qq || true
    # shellcheck disable=SC2086 # one word for each package
    if ! output=$("${as_root[@]}" "${install[@]}" $lacks 2>&1); then
        printf '%s\n' "$output" >&2
        echo "install-deps: ${install[0]} failed; as root run: ${install[*]} $lacks" >&2
        exit 1
    fi
    echo "install-deps: installed"
fi

# MPICH has the same commands, by Debian's alternatives: mpicc and mpiexec must stay Open MPI's.
if ! open_mpi; then
    echo "install-deps: mpicc or mpiexec is not Open MPI's; put its folder first in PATH (module load openmpi), or on Debian:" \
        "update-alternatives --set mpi /usr/bin/mpicc.openmpi; update-alternatives --set mpirun /usr/bin/mpirun.openmpi" >&2
    exit 1
fi
if ! why=$(scripts/build.sh --check 2>&1); then
    echo "install-deps: $why" >&2
    exit 1
fi
if ! there cargo; then
    echo "install-deps: there is no cargo; install Rust 1.88 or later, for example with rustup" >&2
    exit 1
fi
