#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the tests of mpi4py with the component in the job: chosen by its priority, again in an explicit list
# without coll/tuned, two modules with zero copy off and with messages of all lengths read so, and some on a
# synthetic machine of 8 cores. Each module is a job of its own. A module that fails is run again without the
# component, to say whose failure it is.
#
#   ci/test-mpi4py.sh [--quick|--full] [NP...]   quick: the modules about collectives, four of them also
#                                                in an explicit list, one on the synthetic machine; NP 3
#                                                (default)
#                                                full: all modules, NP 1 2 3 5 8
#     --listed                                   only in the explicit list, but all modules that full or quick
#                                                has
#     --nodes N                                  on N of the four nodes of tests/nodes/cluster.sh instead:
#                                                neighbouring
#                                                ranks on one node where it is chosen by its priority, dealt
#                                                out in turns
#                                                in the list; NP 4 (default), with --full 4 8. Needs root, and
#                                                Open MPI 4.1
#                                                in PATH; where the machine allows no nodes, says so and ends
#                                                well
#     --only REGEX                               only the modules whose name matches
#     --limit SECONDS                            each module may last so long (default 180)
#     --dso FOLDER                               take mca_coll_rust.so from there instead of building it
#     --stock                                    without the component
#     --download VERSION                         only fetch what building mpi4py for Python VERSION takes,
#                                                such as 3.13
#
# mpi4py is built once and kept in ${XDG_CACHE_HOME:-~/.cache}/coll-rust; MPI4PY names its version.
set -uo pipefail
cd "$(dirname "$0")/.."

full=0 listed=0 nodes=0 limit=180 only=. dso="" stock=0 nps=() download=
while [ $# -gt 0 ]; do
    case $1 in
    --quick) ;;
    --full) full=1 ;;
    --listed) listed=1 ;;
    --stock) stock=1 ;;
    --download) download=$2 && shift ;;
    --nodes) nodes=$2 && shift ;;
    --limit) limit=$2 && shift ;;
    --only) only=$2 && shift ;;
    --dso) dso=$2 && shift ;;
    [1-9] | [1-9][0-9]) nps+=("$1") ;;
    *)
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
        exit 2
        ;;
    esac
    shift
done
if [ ${#nps[@]} = 0 ]; then
    case $((nodes > 0))$full in
    00) nps=(3) ;;
    01) nps=(1 2 3 5 8) ;;
    10) nps=(4) ;;
    11) nps=(4 8) ;;
    esac
fi

machine=real
if [ "$nodes" != 0 ]; then
    . tests/nodes/cluster.sh
    [[ $nodes =~ ^[1-9]$ ]] && [ "$nodes" -le $CLUSTER_NODES ] || { echo "test-mpi4py: --nodes is 1 to $CLUSTER_NODES" >&2; exit 2; }
    obstacle=$(cluster_obstacle)
    if [ -n "$obstacle" ]; then
        echo "skipped: nodes cannot be made on this machine: $obstacle"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    fi
    machine=$nodes-nodes
fi

version=${MPI4PY:-4.1.2}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# ---------------------------------------------------------------- mpi4py

python3 -m venv "$scratch/venv" || { echo "test-mpi4py: python3 cannot make a venv: install python3-venv" >&2; exit 1; }
pip=("$scratch/venv/bin/python" -m pip -q --disable-pip-version-check)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/coll-rust
python=${download:-$("$scratch/venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')}
sources=$cache/mpi4py-$version-sources-cp${python/./}
if [ ! -e "$sources/complete" ]; then
    mkdir -p "$sources"
    "${pip[@]}" download --no-deps --no-binary=mpi4py -d "$sources" "mpi4py==$version" &&
        "${pip[@]}" download --only-binary=:all: -d "$sources" --implementation cp --python-version "$python" numpy setuptools build cython &&
        touch "$sources/complete" || { echo "test-mpi4py: mpi4py cannot be fetched" >&2; exit 1; }
fi
[ -z "$download" ] || exit 0

mpicc=$(command -v "${MPICC:-mpicc}") || { echo "test-mpi4py: there is no ${MPICC:-mpicc}" >&2; exit 1; }
mpiexec=${MPIEXEC:-mpiexec}
# Every call is to be the component's own, from the first one on.
export OMPI_MCA_coll_rust_first_calls=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpi=$("$mpiexec" --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
cache=$cache/mpi4py-$version-cp${python/./}-openmpi-$mpi
if [ ! -e "$cache/complete" ]; then
    echo "building mpi4py $version for Open MPI $mpi; this takes a while, once"
    mkdir -p "$cache"
    # Not optimised: half a minute instead of some, and what is tested is not mpi4py.
    MPICC=$mpicc CFLAGS=-O0 PIP_NO_INDEX=1 PIP_FIND_LINKS=$sources nice "${pip[@]}" wheel --no-deps -w "$cache" \
        "$sources/mpi4py-$version.tar.gz" &&
        cp "$sources"/numpy-*.whl "$cache" && touch "$cache/complete" || { echo "test-mpi4py: mpi4py cannot be built" >&2; exit 1; }
fi
"${pip[@]}" install --no-index "$cache"/*.whl || exit 1
tar -xzf "$sources/mpi4py-$version.tar.gz" -C "$scratch" || exit 1
tests=$scratch/mpi4py-$version/test
gcc -O2 -Wall -shared -fPIC -o "$scratch/fakebind.so" tests/mpi/fakebind.c || exit 1

# ---------------------------------------------------------------- the component

if [ $stock = 0 ]; then
    if [ -z "$dso" ]; then
        dso=$(COLL_RUST_SKIP_MPIPERF=1 scripts/build.sh | tail -n 1) && [ -n "$dso" ] || exit 1
    fi
    variables=$(COLL_RUST_OUT=$dso scripts/env.sh) || exit 1
    eval "$variables"
fi
btl=self,vader
[ "${mpi%%.*}" -lt 5 ] || btl=self,sm

passed=0 failed=0 foreign=0 total=0
declare -A empty=()
: >"$scratch/reports"

# Ranks per node, as evenly as it goes, for cluster_run.
shape() {
    local np=$1 node list=""
    for ((node = 0; node < nodes && node < np; node++)); do
        list+=${list:+,}$(((np + nodes - 1 - node) / nodes))
    done
    echo "$list"
}

# launch MACHINE SELECTION NP MODULE: runs one module; each rank's output goes to a file of its own,
# $scratch/rank.<rank>, then all of it to $scratch/err.
launch() {
    local machine=$1 selection=$2 np=$3 module=$4 more=(--wdir "$tests") run=(timeout -k 5 "$limit") environment=() code=0
    [ $stock = 1 ] || [ "$selection" = without ] || more+=(--mca coll_rust_report ranks)
    case $selection in
    list) more+=(--mca coll rust,basic,libnbc,inter,self) ;;
    queues) more+=(--mca coll_rust_shm_zero_copy off) ;;
    reads) more+=(--mca coll_rust_shm_zero_copy cma --mca coll_rust_shm_zero_copy_min 1) ;;
    without) more+=(--mca coll ^rust) ;;
    esac
    case $machine in
    *-nodes)
        run=(cluster_run "$(shape "$np")" "$limit" --oversubscribe --mca coll_rust_network_file "$CLUSTER_WORK/network.txt")
        [ "$selection" = list ] && more+=(--map-by node) || more+=(--map-by slot)
        ;;
    synthetic)
        environment=(HWLOC_THISSYSTEM=1 "HWLOC_SYNTHETIC=pack:2 l3:2 numa:1 l2:2 l1d:1 core:1 pu:1" "LD_PRELOAD=$scratch/fakebind.so")
        more+=(--bind-to core --map-by core)
        ;;
    *) more+=(--oversubscribe) ;;
    esac
    [[ $machine == *-nodes ]] ||
        run=(env "${environment[@]}" "${run[@]}" "$mpiexec" --mca btl "$btl,tcp" --mca mpi_yield_when_idle 1 -n "$np")
    rm -f "$scratch"/rank.*
    # shellcheck disable=SC2016 # for the shell of the rank
    "${run[@]}" "${more[@]}" \
        sh -c 'out=$1; shift; exec "$@" >"$out.${OMPI_COMM_WORLD_RANK:-0}" 2>&1' sh "$scratch/rank" \
        "$scratch/venv/bin/python" main.py -q -i "(^|/)$module[.]py" >"$scratch/launcher" 2>&1 </dev/null || code=$?
    cat "$scratch"/rank.* "$scratch/launcher" >"$scratch/err" 2>/dev/null
    return $code
}

# How many tests ran without a failure, by the rank that skipped most: empty if not every rank says that all
# went well.
good() {
    local np=$1 rank ran skipped least=""
    for ((rank = 0; rank < np; rank++)); do
        grep -qsE '^OK' "$scratch/rank.$rank" || return 0
        ran=$(sed -nE 's/^Ran ([0-9]+) tests? .*/\1/p' "$scratch/rank.$rank" | tail -n 1)
        skipped=$(sed -nE 's/^OK .*skipped=([0-9]+).*/\1/p' "$scratch/rank.$rank" | tail -n 1)
        ran=$((${ran:-0} - ${skipped:-0}))
        [ -n "$least" ] && [ "$least" -le "$ran" ] || least=$ran
    done
    echo "$least"
}

module() {
    local machine=$1 selection=$2 np=$3 module=$4 code=0 count problem="" started=$SECONDS ranks
    local line="$module np=$np $machine $selection"
    [ -z "${empty[$module.$np]:-}" ] || return 0
    launch "$@" || code=$?
    count=$(good "$np")
    grep 'coll_rust report' "$scratch/err" | sed "s/^/np=$np /" >>"$scratch/reports"
    if [ $code != 0 ] || [ -z "$count" ]; then
        problem="exit code $code$([ $code != 124 ] || echo ' (over its time limit)')"
    elif [ $stock = 0 ] && [ "$np" -gt 1 ] && [[ $module == test_cco* && $module != *_inter && $count != 0 ]]; then
        ranks=$(sed -nE 's/.*coll_rust report:.*rank ([0-9]+).* handled=[1-9].*/\1/p' "$scratch/err" | sort -u | wc -l)
        [ "$ranks" -ge "$np" ] || problem="only $ranks of $np ranks report that the component handled anything"
        [ "$selection" != reads ] || grep -q 'coll_rust report.* zero copy by cma bytes=[1-9]' "$scratch/err" || problem="no rank reports that it has read anything"
    fi
    if [ -z "$problem" ] && [ "$count" = 0 ] && [ "$np" -gt 1 ]; then
        empty[$module.$np]=1
        echo "EMPTY   $line: mpi4py skips all tests in it, with Open MPI $mpi"
        return
    fi
    if [ -z "$problem" ]; then
        passed=$((passed + 1))
        total=$((total + count))
        echo "ok      $line: $count tests ($((SECONDS - started)) s)"
        return
    fi
    cp "$scratch/err" "$scratch/first"
    if [ $stock = 0 ] && [ $code != 0 ] && ! { launch "$machine" without "$np" "$module" && [ -n "$(good "$np")" ]; }; then
        foreign=$((foreign + 1))
        echo "FOREIGN $line: $problem, and it fails without the component too"
        return
    fi
    failed=$((failed + 1))
    echo "FAILED  $line: $problem"
    grep -vE 'coll_rust report|^$|^-----' "$scratch/first" | head -n 25 | cut -c1-200 | sed 's/^/        /'
}

# ---------------------------------------------------------------- the runs

mapfile -t modules < <(cd "$tests" && ls test_*.py | sed 's/\.py$//' | grep -E -- "$only")
[ $full = 1 ] || mapfile -t modules < <(printf '%s\n' "${modules[@]}" \
    | grep -E '^test_(cco_.*|comm.*|op|request|win|threads|util_pkl5)$')
mapfile -t few < <(printf '%s\n' "${modules[@]}" | grep -E '^test_cco_(buf|nb_buf|obj|pr_buf)$')
mapfile -t plain < <(printf '%s\n' "${modules[@]}" | grep -E '^test_cco_(buf|vec)$')
mapfile -t collective < <(printf '%s\n' "${modules[@]}" | grep -E '^test_(cco_.*|comm_topo)$')

if [ "$nodes" != 0 ]; then
    cluster_guard
    trap 'cluster_down; rm -rf "$scratch"' EXIT
    cluster_up || exit 1
fi
for np in "${nps[@]}"; do
    for m in $([ $listed = 1 ] || echo "${modules[@]}"); do
        module "$machine" priority "$np" "$m"
    done
    [ $stock = 0 ] || continue
    for m in $([ $full$listed != 00 ] && echo "${modules[@]}" || echo "${few[@]}"); do
        module "$machine" list "$np" "$m"
    done
    # Through queues alone, and read from the other process wherever that is possible.
    for m in $([ $listed$nodes != 00 ] || echo "${plain[@]}"); do
        module "$machine" queues "$np" "$m"
        module "$machine" reads "$np" "$m"
    done
done
# The synthetic machine has eight ranks: in short, what tests/mpi does not have there.
[ $full = 1 ] || mapfile -t collective < <(printf '%s\n' "${modules[@]}" | grep -x test_cco_obj)
[ $listed$nodes = 00 ] || collective=()
for m in "${collective[@]}"; do
    module synthetic priority 8 "$m"
done

# Each operation was handled somewhere, since a pass alone proves nothing, and none was passed on: the
# components below get what the component is not asked for (inter-communicators, processes alone). Some
# modules alone need not use every operation.
if [ $stock = 0 ]; then
    for operation in bcast reduce allreduce barrier allgather allgatherv alltoall alltoallv alltoallw exscan gather gatherv neighbor_allgather neighbor_allgatherv \
        neighbor_alltoall neighbor_alltoallv neighbor_alltoallw reduce_scatter reduce_scatter_block scan scatter scatterv; do
        handled=$(grep -v '^np=1 ' "$scratch/reports" | sed -nE "s/.*[ :]$operation handled=([0-9]+).*/\1/p" | awk '{ n += $1 } END { print n + 0 }')
        below=$(sed -nE "s/.*[ :]$operation handled=[0-9]+ passed=([0-9]+).*/\1/p" "$scratch/reports" | awk '{ n += $1 } END { print n + 0 }')
        [ "$handled$below" != 00 ] || [ "$only" = . ] || continue
        if [ "$handled" -gt 0 ] && [ "$below" = 0 ]; then
            passed=$((passed + 1))
            echo "ok      $operation was handled $handled times, and never passed on"
        else
            failed=$((failed + 1))
            echo "FAILED  $operation was handled $handled times, and passed on $below times"
        fi
    done
fi
if [ "$nodes" != 0 ]; then
    left=$(cluster_leftovers)
    if [ -z "$left" ]; then
        passed=$((passed + 1))
        echo "ok      the jobs left nothing on the nodes"
    else
        failed=$((failed + 1))
        printf 'FAILED  the jobs left this on the nodes:\n%s\n' "$left"
    fi
fi
[ $foreign = 0 ] || echo "$foreign modules fail with and without the component"
echo "$total tests of mpi4py ran well, on all ranks"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
