# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by scripts that compare in jobs of mpiperf: takes their options --np and --jobs, of which the script
# gives the defaults as np and jobs, from the command line; and its own options without a value, `switches`:
# that of --apart sets apart.

script=$(realpath "$0")

# Shows the comment at the script's head, and what is wrong.
usage() {
    sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$script" >&2
    [ $# -eq 0 ] || echo "$(basename "$script" .sh): $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --np | --jobs)
        [ $# -gt 1 ] || usage "$1 needs a value"
        [[ $2 =~ ^[1-9][0-9]*$ ]] || usage "$1 $2: must be a number from 1 on"
        if [ "$1" = --np ]; then np=$2; else jobs=$2; fi
        shift 2
        ;;
    -*)
        [[ " ${switches-} " == *" $1 "* ]] || usage "$1: accepted before all else: --np, --jobs${switches:+, ${switches// /, }}"
        printf -v "${1#--}" 1
        shift
        ;;
    *) break ;;
    esac
done

# Goes to the source, and sets `target`, cargo's folder, with this one in it.
enter_source() {
    target=${CARGO_TARGET_DIR:-$(dirname "${BASH_SOURCE[0]}")/../target}
    mkdir -p "$target/$1"
    target=$(cd "$target" && pwd)
    cd "$(dirname "${BASH_SOURCE[0]}")/.."
    # With these what is built would lie elsewhere, or the tool be an old one.
    unset COLL_RUST_STATICLIB COLL_RUST_SKIP_MPIPERF COLL_RUST_OUT
}

# Builds coll/rust in this folder, and sets `mpiperf`, the tool.
build_tools() {
    CARGO_TARGET_DIR=$target COLL_RUST_SKIP_MPIPERF=1 bash scripts/build.sh "$1" >/dev/null
    mpiperf=$(CARGO_TARGET_DIR=$target scripts/build-mpiperf.sh | tail -n 1)
}

# Sets `launch`, by which the tool runs, and the environment: coll/rust from the first folder, other
# components from the second.
prepare_jobs() {
    local variables variable
    variables=$(COLL_RUST_OUT=$1 scripts/env.sh)
    eval "$variables"
    # One of the two is what scripts/env.sh sets, by the release of Open MPI.
    for variable in OMPI_MCA_mca_base_component_path OMPI_MCA_opal_mca_base_component_path; do
        [ -z "${!variable:-}" ] || export "$variable=$2:${!variable}"
    done
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    launch=(timeout 3600 "${MPIEXEC:-mpiexec}" --mca btl 'self,vader' -n "$np")
    if [ "$np" -gt "$(nproc)" ]; then
        launch+=(--oversubscribe --mca mpi_yield_when_idle 1)
    else
        launch+=(--bind-to core)
    fi
}
