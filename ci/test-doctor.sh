#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# coll-rust doctor on set-ups that were broken on purpose: each must be named by its cause, with its place and
# the exit code 1, and a healthy one must be well. Several nodes need root; without, that case is skipped, and
# so is what the machine forbids. Ends with "N passed, M failed".
#
#   ci/test-doctor.sh
#     --only REGEX    only the cases whose name matches
#     --dso FOLDER    take mca_coll_rust.so from there instead of building it
#
# COLL_RUST_COMMAND names the coll-rust to try; without it, cargo builds one.
set -uo pipefail
cd "$(dirname "$0")/.."

options="--only --dso" programs="noread"
. ci/mpi-jobs.sh

# What these jobs see is what is set here, and nothing of the caller's.
unset OMPI_MCA_coll_rust_first_calls
doctor=${COLL_RUST_COMMAND:-}
if [ -z "$doctor" ]; then
    cargo build --quiet -p coll-rust-command || exit 1
    doctor=${CARGO_TARGET_DIR:-$PWD/target}/debug/coll-rust
fi
export HOME=$scratch/home TMPDIR=$scratch/t
mkdir -p "$HOME/.openmpi" "$TMPDIR"
setting=$(sed -n 's/^export \(OMPI_MCA_[a-z_]*component_path\)=.*/\1/p' <<<"$variables" | head -n 1)
default=${!setting#*:}
original=$dso/mca_coll_rust.so
skipped=0

# examine NAME CODE IDS PATTERN SETTING... -- ARGUMENT...: the doctor ends with that code, finds just these
# wrong (comma list, sorted), and its text matches the pattern. `run` goes in front of the doctor, if it is
# not empty.
run=()
examine() {
    local name=$1 code=$2 ids=$3 pattern=$4 environment=() got=0 found problem="" started=$SECONDS
    shift 4
    grep -qE -- "$only" <<<"$name" || return 0
    while [ "$1" != -- ]; do
        environment+=("$1")
        shift
    done
    shift
    env "${environment[@]}" "${run[@]}" "$doctor" doctor --mpiexec "$mpiexec" --json "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || got=$?
    found=$(python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert report["schema"] == 1 and report["status"] == int(sys.argv[2]), report
wrong = [f for f in report["findings"] if f["weight"] == "wrong"]
for f in wrong:
    assert all(f[key] for key in ("what", "where", "why", "mend")), f
print(",".join(sorted({f["id"] for f in wrong})))' "$scratch/out" "$got" 2>>"$scratch/err") || problem="no report"
    [ "$got" = "$code" ] || problem="exit code $got, not $code"
    [ -n "$problem" ] || [ "$found" = "$ids" ] || problem="found '$found', not '$ids'"
    [ -n "$problem" ] || grep -qE -- "$pattern" "$scratch/out" || problem="nothing matches '$pattern'"
    if [ -z "$problem" ]; then
        passed=$((passed + 1))
        echo "ok      $name ($((SECONDS - started)) s)"
    else
        failed=$((failed + 1))
        echo "FAILED  $name: $problem"
        cat "$scratch/out" "$scratch/err" | cut -c1-200 | tail -n 60 | sed 's/^/        /'
    fi
}

skip() {
    grep -qE -- "$only" <<<"$1" || return 0
    skipped=$((skipped + 1))
    echo "skipped $1: $2"
}

# wrapper NAME: a program that goes between mpiexec and the doctor's processes; its text on standard input.
wrapper() {
    { echo '#!/bin/bash' && cat; } >"$scratch/$1"
    chmod +x "$scratch/$1"
}

# variant NAME SED: the component with other bytes.
variant() {
    mkdir -p "$scratch/$1"
    sed "$2" "$original" >"$scratch/$1/mca_coll_rust.so"
    cp "$dso/help-coll-rust.txt" "$scratch/$1/"
}

# ---------------------------------------------------------------- healthy

examine "a healthy set-up" 0 "" '"selected_by": 2' --

# ---------------------------------------------------------------- not found, not loaded, not wanted

# A folder that the processes look in, without the component: the variable is named.
mkdir -p "$scratch/empty"
examine "not found by mpiexec" 1 not-found "environment variable $setting" "$setting=$scratch/empty:$default" -- --folder "$dso"
wrapper hides <<WRAPPER
$setting="$scratch/empty:$default" exec "\$@"
WRAPPER
examine "found by ompi_info, not by mpiexec's processes" 1 not-found "$setting in the processes' environment" -- -- "$scratch/hides"

# The marks that the build leaves are text: another version of the same length.
variant other 's/\(coll\/rust built for Open MPI \)[0-9]/\19/'
examine "for another Open MPI" 1 wrong-open-mpi "$scratch/other/mca_coll_rust.so" "$setting=$scratch/other:$default" --

examine "excluded in the environment" 1 excluded 'environment variable OMPI_MCA_coll"' 'OMPI_MCA_coll=^rust' --
examine "excluded on the command line" 1 excluded "coll on mpiexec's command line" -- -- --mca coll ^rust
printf '# mine\n\ncoll = ^rust\n' >"$HOME/.openmpi/mca-params.conf"
examine "excluded in the user's file" 1 excluded "$HOME/.openmpi/mca-params.conf:3" --

printf 'coll_rust_priority = 5\n' >"$HOME/.openmpi/mca-params.conf"
examine "priority too low, in a file" 1 priority-too-low "$HOME/.openmpi/mca-params.conf:1" --
rm "$HOME/.openmpi/mca-params.conf"
examine "another's priority too high" 1 priority-too-low 'tuned \(60\).*' OMPI_MCA_coll_tuned_priority=60 --
examine "priority that declines" 1 priority-too-low 'environment variable OMPI_MCA_coll_rust_priority' OMPI_MCA_coll_rust_priority=-1 --

# ---------------------------------------------------------------- parameters

printf 'coll_rust_window = 2\ncoll_rust_widnow = 2\n' >"$HOME/.openmpi/mca-params.conf"
examine "a name that is no parameter" 1 unknown-parameter "$HOME/.openmpi/mca-params.conf:2" --
printf 'coll_rust_levels = numma\n' >"$HOME/.openmpi/mca-params.conf"
examine "a value that is not understood" 1 wrong-value "$HOME/.openmpi/mca-params.conf:1" --
rm "$HOME/.openmpi/mca-params.conf"

# ---------------------------------------------------------------- ranks that differ

# The build is told by the version, which is text too.
build=$(COLL_RUST_OUT=$dso "$doctor" doctor --mpiexec "$mpiexec" --json | sed -n 's/.*"version": ".*build \([0-9a-f]*\),.*/\1/p' | head -n 1)
variant rebuilt "s/$build/$(rev <<<"$build")/g"
wrapper differ <<WRAPPER
[ "\$OMPI_COMM_WORLD_RANK" = 0 ] || export $setting=$scratch/rebuilt:$default
exec "\$@"
WRAPPER
examine "ranks with different files" 1 builds-differ "$scratch/rebuilt/mca_coll_rust.so" -- -- "$scratch/differ"
wrapper values <<'WRAPPER'
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export OMPI_MCA_coll_rust_window=3
exec "$@"
WRAPPER
examine "ranks with different values" 1 settings-differ 'not set on rank 0' -- -- "$scratch/values"

# ---------------------------------------------------------------- what a node refuses

if unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/shm' 2>/dev/null; then
    wrapper full <<'WRAPPER'
head -c 8m /dev/zero >/dev/shm/others 2>/dev/null
exec "$@"
WRAPPER
    run=(unshare --mount sh -c 'mount -t tmpfs -o size=4m none /dev/shm; exec "$@"' sh)
    examine "/dev/shm full" 1 shm-full '"/dev/shm on ' -- -- "$scratch/full"
    run=(unshare --mount sh -c 'mount -t tmpfs -o ro none /dev/shm; exec "$@"' sh)
    examine "/dev/shm takes no file" 1 shm-missing 'EROFS|Read-only' --
    run=()
else
    skip "/dev/shm full" "no mount name spaces"
    skip "/dev/shm takes no file" "no mount name spaces"
fi

if "$mpiexec" -n 2 "$scratch/noread" "$(type -P true)" 2>/dev/null; then
    examine "process_vm_readv blocked" 1 read-blocked 'filter of system calls' -- -- "$scratch/noread"
else
    skip "process_vm_readv blocked" "no filters of system calls"
fi

if unshare --pid --fork true 2>/dev/null; then
    examine "PID name spaces" 1 pid-name-spaces '2 PID name spaces' -- -- unshare --pid --fork
else
    skip "PID name spaces" "no PID name spaces"
fi

# ---------------------------------------------------------------- what cannot be found out

mpiexec=$scratch/none examine "no such launcher" 3 "" 'there is no ' --
mpiexec=/bin/false examine "a launcher that fails" 3 "" 'did not get a process' --
grep -qE -- "$only" <<<usage && {
    code=0
    "$doctor" doctor --ranks none >/dev/null 2>&1 || code=$?
    if [ $code = 2 ]; then passed=$((passed + 1)) && echo "ok      usage"; else failed=$((failed + 1)) && echo "FAILED  usage: exit code $code"; fi
}

# ---------------------------------------------------------------- nodes

. tests/nodes/cluster.sh
obstacle=$(cluster_obstacle)
if [ -n "$obstacle" ]; then
    skip "missing on one node" "$obstacle"
elif grep -qE -- "$only" <<<"missing on one node"; then
    unset OMPI_MCA_coll_rust_first_calls
    trap 'cluster_down; rm -rf "$scratch"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    cluster_up
    # The folder is empty on one node: a file system is mounted over it.
    mkdir -p "$scratch/installed"
    cp "$dso"/mca_coll_rust.so "$dso"/help-coll-rust.txt "$scratch/installed"
    nsenter --target "${CLUSTER_PID[node1]}" --mount mount -t tmpfs none "$scratch/installed"
    # What cluster_run puts in front of mpirun becomes a launcher of its own.
    wrapper launcher <<WRAPPER
exec env TMPDIR="$CLUSTER_WORK/local" ${CLUSTER_LAUNCHER[*]@Q} "\$@"
WRAPPER
    mpiexec=$scratch/launcher
    run=(nsenter --target "${CLUSTER_PID[front]}" --net --uts --mount --pid "--wdns=$PWD")
    nodes=(-n 4 -- --host "node0:2,node1:2" --bind-to none --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1)
    examine "two nodes" 0 "" '"host": "node1"' "$setting=$dso:$default" -- "${nodes[@]}"
    examine "missing on one node" 1 missing-on-node 'node1' "$setting=$scratch/installed:$default" -- "${nodes[@]}"
    # Such a job ends by itself, and does not wait for who will never say anything.
    if grep -q '"exit_code": null' "$scratch/out"; then
        failed=$((failed + 1)) && echo "FAILED  a job without the component on one node does not end"
    fi
fi

echo "test-doctor: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
