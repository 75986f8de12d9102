#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compares two states of the source in one job: a commit, as component "rusu", with the working copy, as
# component "rust", by mpiperf compare --a rusu --b rust, call by call by turns: below 1 the working copy is
# faster. Differences of 1 or 2 % show in a few jobs, which no runs of separate jobs show: where memory lies,
# and what else the machine does, changes from job to job, for both alike.
#
#   bench/compare-states.sh [--np N] [--jobs N] COMMIT OPERATION... [OPTIONS OF mpiperf compare]
#
#   --np N      processes (default: 4); more than there are cores are oversubscribed and yield
#   --jobs N    so many jobs one after the other (default: 1)
#   COMMIT      what to compare with: a commit, or a folder (with a slash in its name) that holds another copy
#               of the source
#
#   CARGO_TARGET_DIR    cargo's target folder (default: target)
#   MPICC, MPIEXEC      compiler wrapper and launcher of the Open MPI to use (default: mpicc, mpiexec)
#
# Parameters differ in their prefix, coll_rust_ and coll_rusu_, so one state can also be compared with itself
# under other parameters. The second one of two equal states takes about 1 % longer: it finds its code in
# fewer caches.
set -euo pipefail

np=4 jobs=1
. "$(dirname "${BASH_SOURCE[0]}")/compare-jobs.sh"
[ $# -gt 1 ] || usage "what to compare with, and an operation"
other=$1 folder=
case $other in
*/*) [ ! -d "$other" ] || folder=$(cd "$other" && pwd) ;;
esac
shift
enter_source states
scratch=$target/states

# Their results lie in folders of their own: cargo takes for fresh what was built after its files were last
# written.
rm -rf "$scratch/source"
mkdir -p "$scratch/source"
if [ -n "$folder" ]; then
    tar -C "$folder" -cf - --exclude=./target --exclude=./.git --exclude="$(basename "$target")" . \
        | tar -C "$scratch/source" -xf -
else
    git rev-parse --quiet --verify "$other^{commit}" >/dev/null || usage "'$other' is neither a commit nor a folder"
    git archive "$other" | tar -C "$scratch/source" -xf -
fi
find "$scratch/source" -type f -exec touch {} +
find "$scratch/source/src" "$scratch/source/ompi-glue" -type f -exec sed -i \
    -e 's/libcoll_rust/libcoll-rust/g; s/coll_rust/coll_rusu/g; s/libcoll-rust/libcoll_rust/g' \
    -e 's/mca_component_name = "rust"/mca_component_name = "rusu"/' {} +
# Older states have it in another folder.
build=$scratch/source/scripts/build.sh
[ -f "$build" ] || build=$scratch/source/ci/build.sh
sed -i 's/mca_coll_rust/mca_coll_rusu/g' "$build"
CARGO_TARGET_DIR=$scratch/target COLL_RUST_SKIP_MPIPERF=1 bash "$build" "$scratch/rusu" >/dev/null
build_tools "$scratch/rust"

prepare_jobs "$scratch/rust" "$scratch/rusu"
for _ in $(seq "$jobs"); do
    "${launch[@]}" "$mpiperf" compare --a rusu --b rust "$@"
done
