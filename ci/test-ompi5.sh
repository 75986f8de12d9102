#!/bin/bash
# Builds the component for Open MPI 5.0 and checks all operations in their three forms there.
# Open MPI 5.0 comes from Debian 13 in a folder; see ci/ompi5-root.sh. The folder stays for the next time.
#
#   ci/test-ompi5.sh            the test; exit code 77 where the machine does not allow mounts
#   ci/test-ompi5.sh --clean    removes the folder
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
--clean) exec ci/ompi5-root.sh clean ;;
"") ;;
*)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    exit 2
    ;;
esac

ci/install-deps.sh
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
if ! "${as_root[@]}" unshare --mount --pid --fork mount -t tmpfs none /mnt 2>/dev/null; then
    echo "test-ompi5: SKIPPED: mounting is not allowed here"
    exit 77
fi
ci/ompi5-root.sh prepare

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The Rust half is built outside: it names nothing of Open MPI. Only the C half is compiled and linked inside.
target=${CARGO_TARGET_DIR:-$PWD/target}
cargo rustc --quiet --release --lib --crate-type staticlib --features ompi
cp "$target/release/libcoll_rust.a" "$scratch/"

inside() {
    ci/ompi5-root.sh run --bind "$PWD:/mnt/source" --bind "$scratch:/mnt/out" -- "$@"
}

inside env COLL_RUST_STATICLIB=/mnt/out/libcoll_rust.a MPICC=mpicc /mnt/source/ci/build.sh /mnt/out
failed=0
passed=0
for np in 2 4; do
    if inside timeout -k 10 300 /mnt/source/ci/demo.sh --smoke --np $np --dso /mnt/out; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
# Of the jobs of ci/test-mpi.sh those that take little: two minutes in all. Among them, those that read other processes' memory by smsc.
inside timeout -k 10 500 /mnt/source/ci/test-mpi.sh --quick --dso /mnt/out --only 'np=[24] |^(retain|doors|flow) ' | tee "$scratch/jobs" || true
read -r good bad < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$scratch/jobs") || bad=1
passed=$((passed + ${good:-0}))
failed=$((failed + bad))
grep -q '^ok .* shm_zero_copy=smsc ' "$scratch/jobs" || { echo "FAILED  no job has gone by smsc"; failed=$((failed + 1)); }
echo "test-ompi5: $passed passed, $failed failed"
[ $failed -eq 0 ]
