#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the component for Open MPI 5.0 and runs there what the other scripts of this folder run with 4.1.
# Open MPI 5.0 comes from Debian 13 in a folder; see ci/ompi5-root.sh. The folder stays for the next time.
#
#   ci/test-ompi5.sh [NAME...]  these checks, or all but mpiperf and grid, in a short form; exit code 77 where
#                               the machine does not allow mounts
#     --full                    the whole of each check, as with 4.1 (a quarter of an hour for all)
#     -- ARGUMENT...            last: for the script of one NAME, for instance --full mpi4py -- 1 2 3 4 5 8
#     --dso FOLDER              take mca_coll_rust.so for Open MPI 5.0 from there instead of building it
#     --list                    only print the names
#     --clean                   removes the folder
set -euo pipefail
cd "$(dirname "$0")/.."

# check NAME LIMIT SHORT [WHOLE]: a time limit in seconds, and commands for the folder, where the tree is
# /mnt/source and the component /mnt/out.
names=()
declare -A limit=() short=() whole=()
check() {
    names+=("$1")
    limit[$1]=$2 short[$1]=$3 whole[$1]=${4:-$3}
}
check demo 200 'for np in 2 4; do scripts/demo.sh --smoke --np $np --dso /mnt/out || exit 1; done'
# Of its jobs, the short form has those that take little, among them those that read other processes' memory
# by smsc.
check mpi 900 'ci/test-mpi.sh --quick --dso /mnt/out --only "np=[24] |^(retain|doors|flow) "' 'ci/test-mpi.sh --quick --dso /mnt/out'
check matrix 600 'ci/test-matrix.sh --dso /mnt/out --only "seed [0-2] np=[34] real"' 'ci/test-matrix.sh --dso /mnt/out'
check nodes 600 'ci/test-nodes.sh --dso /mnt/out --only "^(Within the nodes|Blocks within the nodes|Results, network file|Neighbours, in bundles) [0-9]|killed rank"' \
    'ci/test-nodes.sh --dso /mnt/out'
gateway='--dso /mnt/out --gateway /mnt/out/coll-rust-gateway'
check clusters 900 "ci/test-clusters.sh $gateway --only '^(Counted.* node|Through gateways, counted.* slot|Killed and started)'" \
    "ci/test-clusters.sh $gateway && ci/test-clusters.sh $gateway --faults"
check grid 2400 "ci/test-grid.sh $gateway --clusters 2" "ci/test-grid.sh $gateway"
# Those in which Open MPI or its launcher has a part; the parameters are the same code with both.
check faults 1500 'ci/test-faults.sh --dso /mnt/out --only "by --mca|differ in coll_rust_levels|excludes|killed in (Bcast|Allreduce) of 300000|left in /dev/shm|one of three ranks|wait=auto|errors return, (wait|shm_wait)=block"' \
    'ci/test-faults.sh --dso /mnt/out'
# The Rust half, and headers whose structs have changed, make other components there.
check versions 200 'COLL_RUST_STATICLIB=/mnt/out/libcoll_rust.a ci/test-versions.sh --dso /mnt/out'
check processes 200 '/mnt/out/processes'
check doctor 300 "COLL_RUST_COMMAND=/mnt/out/coll-rust ci/test-doctor.sh --dso /mnt/out --only \"user.s file|healthy|missing on one node\"" \
    'COLL_RUST_COMMAND=/mnt/out/coll-rust ci/test-doctor.sh --dso /mnt/out'
# Buffers in a device's memory.
check device 3600 'ci/test-device.sh --dso /mnt/out' 'ci/test-device.sh --dso /mnt/out --full'
check mpi4py 7000 'ci/test-mpi4py.sh --dso /mnt/out --only "^test_cco_(buf|nb_vec|pr_vec|ngh_buf)$"' 'ci/test-mpi4py.sh --dso /mnt/out --full'
check mpiperf 400 'MPIPERF=/mnt/out/mpiperf ci/test-mpiperf.sh --short' 'MPIPERF=/mnt/out/mpiperf ci/test-mpiperf.sh'

full=0 arguments=() wanted=() dso=
while [ $# -gt 0 ]; do
    case $1 in
    --clean) exec ci/ompi5-root.sh clean ;;
    --list) printf '%s\n' "${names[@]}" && exit 0 ;;
    --full) full=1 ;;
    --dso) dso=$2 && shift ;;
    --)
        arguments=("${@:2}")
        break
        ;;
    *)
        if [[ $1 == -* || -z ${limit[$1]:-} ]]; then
            sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
            exit 2
        fi
        wanted+=("$1")
        ;;
    esac
    shift
done
# By name only: mpiperf is built for 5.0 first, which takes longer than the check; grid takes ten minutes, and
# judges times.
[ ${#wanted[@]} -gt 0 ] || mapfile -t wanted < <(printf '%s\n' "${names[@]}" | grep -vxE 'mpiperf|grid')
[ ${#arguments[@]} = 0 ] || [ ${#wanted[@]} = 1 ] || { echo "test-ompi5: arguments are for one check" >&2; exit 2; }

scripts/install-deps.sh
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
if ! "${as_root[@]}" unshare --mount --pid --fork mount -t tmpfs none /mnt 2>/dev/null; then
    echo "test-ompi5: SKIPPED: mounting is not allowed here"
    exit 77
fi
ci/ompi5-root.sh prepare

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
target=${CARGO_TARGET_DIR:-$PWD/target}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/coll-rust
mkdir -p "$scratch/out" "$cache"

inside() {
    ci/ompi5-root.sh run --bind "$PWD:/mnt/source" --bind "$scratch/out:/mnt/out" --bind "$cache:/mnt/cache/coll-rust" -- \
        env XDG_CACHE_HOME=/mnt/cache "$@"
}

# ---------------------------------------------------------------- what is built

if [ -n "$dso" ]; then
    cp "$dso/mca_coll_rust.so" "$dso/help-coll-rust.txt" "$scratch/out/"
    [ ! -f "$dso/libcoll_rust.a" ] || cp "$dso/libcoll_rust.a" "$scratch/out/"
else
    # The Rust half is built outside: it names nothing of Open MPI. Only the C half is compiled and linked
    # inside.
    cargo rustc --quiet --release --lib --crate-type staticlib --features ompi -- -C llvm-args=-inline-threshold=50
    cp "$target/release/libcoll_rust.a" "$scratch/out/"
    inside env COLL_RUST_STATICLIB=/mnt/out/libcoll_rust.a MPICC=mpicc /mnt/source/scripts/build.sh /mnt/out
fi

for name in "${wanted[@]}"; do
    case $name in
    # It names nothing of Open MPI either.
    processes)
        program=$(cargo test --no-run --test processes 2>&1 | sed -n 's/.*(\(.*processes-[0-9a-f]*\))$/\1/p')
        cp "$program" "$scratch/out/processes"
        ;;
    clusters | grid)
        cargo build --quiet -p coll-rust-gateway
        cp "$target/debug/coll-rust-gateway" "$scratch/out/"
        ;;
    doctor)
        cargo build --quiet -p coll-rust-command
        cp "$target/debug/coll-rust" "$scratch/out/"
        ;;
    # Built outside against the folder's headers and library, whose own libraries the machine lacks: the
    # folder has no Rust.
    mpiperf)
        root=$(ci/ompi5-root.sh path)
        flags=$(inside mpicc --showme:compile && inside mpicc --showme:link)
        printf '#!/bin/sh\ncase $1 in\n-show | --showme) echo gcc %s ;;\n*) exec gcc "$@" %s ;;\nesac\n' \
            "$(printf '%s ' $(sed -E "s#-(I|L)/#-\1$root/#g" <<<"$flags" | tr '\n' ' '))"{,} >"$scratch/mpicc"
        chmod +x "$scratch/mpicc"
        program=$(MPICC=$scratch/mpicc MPIPERF_PROFILE=dev RUSTFLAGS="-C link-arg=-Wl,--allow-shlib-undefined" scripts/build-mpiperf.sh | tail -n 1)
        cp "$program" "$scratch/out/mpiperf"
        ;;
    # The folder may know no certificates and no settings for PyPI.
    mpi4py) ci/test-mpi4py.sh --download "$(inside python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" ;;
    esac
done

# ---------------------------------------------------------------- the checks

passed=0 failed=0
for name in "${wanted[@]}"; do
    command=${short[$name]}
    [ $full = 0 ] || command=${whole[$name]}
    [ ${#arguments[@]} = 0 ] || command+=$(printf ' %q' "${arguments[@]}")
    code=0 started=$SECONDS
    echo "--- $name: $command"
    inside timeout -k 10 "${limit[$name]}" bash -c "cd /mnt/source && $command" </dev/null 2>&1 | tee "$scratch/log" || code=$?
    good='' bad=''
    read -r good bad < <(sed -nE 's/^(test[^:]*: (.*[. ])?)?([0-9]+) passed[,;] ([0-9]+) failed.*/\3 \4/p' "$scratch/log" | tail -n 1) || true
    # The demonstration tells no numbers.
    [ -n "$good" ] || [ "$name" != demo ] || good=$(grep -c '^demo: passed' "$scratch/log" || true) bad=0
    [ $code = 0 ] || [ "${bad:-0}" -gt 0 ] || bad=1
    [ "${good:-0}" -gt 0 ] || { echo "FAILED  $name: no test ran"; bad=$((${bad:-0} + 1)); }
    if [ "$name" = mpi ] && ! grep -q '^ok .* shm_zero_copy=smsc ' "$scratch/log"; then
        echo "FAILED  no job has gone by smsc"
        bad=$((bad + 1))
    fi
    passed=$((passed + ${good:-0}))
    failed=$((failed + ${bad:-0}))
    echo "    $name: ${good:-0} passed, ${bad:-0} failed, exit code $code, $((SECONDS - started)) s"
done
echo "test-ompi5: $passed passed, $failed failed"
[ $failed -eq 0 ]
