#!/bin/bash
# Installs what building and testing needs and the machine lacks, by apt-get (Debian 12 or later). Does
# nothing if all is there. As root, or with sudo. Rust (1.88 or later) must be there: it is only checked.
set -euo pipefail

packages=(
    openmpi-bin libopenmpi-dev libhwloc-dev     # Open MPI with its internal headers
    gcc libc6-dev make pkg-config libclang-dev  # the C shim; bindgen
    autoconf automake libtool                   # configure and make install
    strace                                      # what the component opens: ci/test-mpi.sh
    iproute2 ethtool procps util-linux          # several nodes on one machine: ci/test-nodes.sh
    python3 python3-dev python3-venv            # ci/test-mpi4py.sh
    mpich libmpich-dev                          # mpiperf with another MPI library: ci/test-mpiperf.sh
)

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
    echo "install-deps: missing: ${missing[*]}"
    if ! command -v apt-get >/dev/null; then
        echo "install-deps: there is no apt-get here; install the packages of the same meaning by hand" >&2
        exit 1
    fi
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "install-deps: neither root nor sudo; as root run: apt-get install ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}")
    # The lists may be old or absent: read them anew, but let an install from old lists do if that fails.
    "${as_root[@]}" apt-get update -qq || true
    if ! output=$("${as_root[@]}" "${install[@]}" 2>&1); then
        printf '%s\n' "$output" >&2
        echo "install-deps: apt-get install failed" >&2
        exit 1
    fi
    echo "install-deps: installed"
fi

# MPICH has the same commands, by Debian's alternatives: mpicc and mpiexec must stay Open MPI's.
if ! mpicc --showme:version 2>&1 | grep -q 'Open MPI' || ! mpiexec --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then
    echo "install-deps: mpicc or mpiexec is not Open MPI's; choose them: update-alternatives --set mpi /usr/bin/mpicc.openmpi;" \
        "update-alternatives --set mpirun /usr/bin/mpirun.openmpi" >&2
    exit 1
fi

if ! command -v cargo >/dev/null; then
    echo "install-deps: there is no cargo; install Rust 1.88 or later, for example with rustup" >&2
    exit 1
fi
