#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian 13 (Open MPI 5.0.7) in a folder, for checks against Open MPI 5.0 on a machine that has 4.1.
#
#   ci/ompi5-root.sh prepare                                  make the folder; does nothing if it is ready
#   ci/ompi5-root.sh run [--bind FROM:TO]... [--] COMMAND...  run a command in it, as root; with --throwaway
#                                                             first, what it changes
#                                                             is gone afterwards
#   ci/ompi5-root.sh clean                                    remove the folder
#   ci/ompi5-root.sh path                                     print the folder's name
#
# The folder is $COLL_RUST_OMPI5_ROOT (default /tmp/ompi5), about 1 GB. Needs root, or sudo.
# COLL_RUST_ROOT_SUITE and COLL_RUST_ROOT_PACKAGES name another release of Debian and other packages for
# another folder (ci/test-install.sh).
#
# A command runs in name spaces of its own for mounts and processes: every mount disappears and every process
# that is left over dies with the command, whatever way it ends. It sees a /dev/shm of its own and the
# caller's network. FROM is a folder or file outside, TO its absolute name inside; TO is made where it does
# not exist.
set -euo pipefail

root=${COLL_RUST_OMPI5_ROOT:-/tmp/ompi5}
suite=${COLL_RUST_ROOT_SUITE:-trixie}
stamp=$root/.coll-rust-ready
packages="gcc libc6-dev make pkg-config openmpi-bin libopenmpi-dev libhwloc-dev iproute2 procps ethtool hostname"
packages+=" python3 python3-dev python3-venv nftables"
packages=${COLL_RUST_ROOT_PACKAGES:-$packages}

die() {
    echo "ompi5-root: $*" >&2
    exit 1
}

usage() {
    sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    exit 2
}

[ $# -gt 0 ] || usage
case $root in
/ | "" | *:* | *[[:space:]]*) die "COLL_RUST_OMPI5_ROOT='$root' will not do" ;;
/*) ;;
*) die "COLL_RUST_OMPI5_ROOT='$root' is not an absolute name" ;;
esac

if [ "$(id -u)" -ne 0 ] && [ "$1" != path ]; then
    command -v sudo >/dev/null || die "needs root, and there is no sudo"
    exec sudo -- env COLL_RUST_OMPI5_ROOT="$root" COLL_RUST_ROOT_SUITE="$suite" COLL_RUST_ROOT_PACKAGES="$packages" "$0" "$@"
fi

# The Debian mirror that this machine's apt uses: of the archive itself, not of its security updates.
mirror() {
    local list
    list=$(apt-get indextargets --format '$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages')
    awk -F'|' '$1 == "Debian" && $2 == "main" { print $3; exit }' <<<"$list"
}

# Runs "$@" in mount and process name spaces of its own. Process 1 in there is a shell that only waits: a
# process 1 without handlers ignores SIGTERM. When it ends, the kernel ends the rest.
in_namespaces() {
    unshare --mount --propagation private --pid --fork --kill-child bash -c '
        trap "exit 143" TERM
        trap "exit 130" INT
        "$@" <&0 &
        wait $!' ompi5-root "$@"
}

# In the name spaces: mounts, then the command. Arguments: binds, "--", command. The folder becomes the root
# of the mount name space, and not of the command only: whoever enters the name spaces of a process in there
# sees the same.
enter() {
    if [ "$1" = --throwaway ]; then
        shift
        # On the folder itself: no other one is needed, and what it covers is the lower layer all the same.
        local layers
        layers=$(mktemp -d)
        mount -t tmpfs tmpfs "$layers"
        mkdir "$layers/upper" "$layers/work"
        mount -t overlay -o "lowerdir=$root,upperdir=$layers/upper,workdir=$layers/work" overlay "$root"
        umount --lazy "$layers"
        rmdir "$layers"
    else
        mount --bind "$root" "$root"
    fi
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    # PRRTE names its session folders by process numbers, which begin anew in each name space: what an aborted
    # job has left there would end a later one at its start.
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mount --rbind /sys "$root/sys"
    while [ "$1" != -- ]; do
        local from=${1%%:*} to=$root/${1#*:}
        if [ -d "$from" ]; then
            mkdir -p "$to"
        else
            mkdir -p "$(dirname "$to")"
            [ -e "$to" ] || : >"$to"
        fi
        mount --rbind "$from" "$to"
        shift
    done
    shift
    cd "$root"
    pivot_root . mnt
    umount --lazy /mnt
    exec chroot . /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$@"
}

prepare() {
    mkdir -p "$root"
    exec 9>"$root.lock"
    flock 9
    local wanted="$suite $packages"
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
        return
    fi
    export DEBIAN_FRONTEND=noninteractive
    if ! command -v debootstrap >/dev/null; then
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
    fi
    local from
    from=$(mirror)
    if [ -z "$from" ]; then
        apt-get update -qq
        from=$(mirror)
    fi
    [ -n "$from" ] || die "apt knows no Debian mirror on this machine"
    if [ ! -x "$root/usr/bin/apt-get" ] || [ -d "$root/debootstrap" ]; then
        echo "ompi5-root: Debian $suite into $root" >&2
        rm -rf --one-file-system "${root:?}"
        mkdir -p "$root"
        in_namespaces debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$from" \
            >"$root.log" 2>&1 9>&- || die "debootstrap failed; see $root.log"
    fi
    echo "ompi5-root: packages into $root" >&2
    # shellcheck disable=SC2086
    in_namespaces "$0" enter -- sh -c 'export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" && apt-get clean' sh $packages \
        >>"$root.log" 2>&1 9>&- || die "installing the packages failed; see $root.log"
    echo "$wanted" >"$stamp"
    rm -f "$root.log"
}

command=$1
shift
case $command in
prepare)
    [ $# -eq 0 ] || usage
    prepare
    ;;
run)
    binds=()
    if [ "${1:-}" = --throwaway ]; then
        binds+=("$1")
        shift
    fi
    while [ $# -gt 0 ]; do
        case $1 in
        --bind)
            [ $# -ge 2 ] || usage
            [[ $2 == /*:/* ]] || die "--bind wants FROM:TO, both absolute: '$2'"
            [ -e "${2%%:*}" ] || die "--bind: there is no '${2%%:*}'"
            binds+=("$2")
            shift 2
            ;;
        --)
            shift
            break
            ;;
        *) break ;;
        esac
    done
    [ $# -gt 0 ] || usage
    [ -f "$stamp" ] || die "$root is not ready; run '$0 prepare' first"
    in_namespaces "$0" enter "${binds[@]}" -- "$@"
    ;;
enter) enter "$@" ;; # only from above: it mounts in the name space that it is called in
clean)
    [ $# -eq 0 ] || usage
    if [ -e "$root" ] && [ ! -e "$stamp" ] && [ ! -d "$root/debootstrap" ]; then
        die "$root does not look like a folder of this script; remove it by hand"
    fi
    rm -rf --one-file-system "${root:?}"
    rm -f "$root.lock" "$root.log"
    ;;
path) echo "$root" ;;
*) usage ;;
esac
