#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every command in README.md and docs/guide, as it stands there: the lines that begin with four spaces and a
# command. The table below says of each what it must print, which check runs it, or why nobody does; a command
# that the table does not know is a failure, and so is a row that no page needs any more.
# Ends with "N passed, M failed".
#
#   ci/test-commands.sh
#     --only REGEX    only the commands that match
#     --dso FOLDER    take mca_coll_rust.so from there instead of building it; mpiperf is that of cargo's
#                     target/release, and is built where it is missing
set -uo pipefail
cd "$(dirname "$0")/.."

options="--only --dso" programs="hello"
. ci/mpi-jobs.sh
unset OMPI_MCA_coll_rust_first_calls

# REGEX ; HOW ; WHAT, for whole commands without their comments:
#   run       it ends well, and prints what WHAT matches
#   SCRIPT    sed's, applied to the command before it is run, where a path is an example
#   by        WHAT is the check of ci/test.sh that runs it
#   not       WHAT is the reason
table='
mpiexec -n (64|2) ./program                                            ; run ; ^hello: (64|2) passed, 0 failed
mpiexec --mca coll \^rust -n 64 ./program                              ; run ; ^hello: 64 passed, 0 failed
mpiexec --mca coll rust,basic,libnbc,inter,self -n 64 ./program        ; run ; ^hello: 64 passed, 0 failed
mpiexec --mca coll_rust_priority -1 -n 64 ./program                    ; run ; ^hello: 64 passed, 0 failed
mpiexec --mca coll_rust_show hierarchy -n 4 ./program                  ; run ; node [^ ]+: ranks 0-3, leader 0
mpiexec --mca coll_rust_show decisions -n 4 ./program                  ; run ; coll/rust: decision: allreduce
mpiexec --mca coll_rust_report sum -n 4 ./program                      ; run ; coll_rust report
mpiexec --mca mca_base_param_files mca-params/oversubscribed.conf -n 8 ./program ; run ; ^hello: 8 passed, 0 failed
mpiexec -n 64 --mca coll_rust_network_file clusters.txt --mca coll_rust_show hierarchy ./program ; run ; node [^ ]+: ranks 0-63, leader 0
mpiexec --mca coll_rust_network_file /etc/slurm/topology.conf -n 64 ./program ; s,/etc/slurm/,, ; ^hello: 64 passed, 0 failed
mpiexec -n 64 .*--mca coll_rust_gateway .*                             ; by  ; clusters
mpiexec -n 2 target/release/mpiperf selfcheck                          ; by  ; mpiperf
mpiexec -n 2 target/release/mpiperf compare --a \^rust --b rust allreduce.* ; s/$/ --sizes 8,4k/ ; allreduce +4 KiB
scripts/demo.sh                                                        ; by  ; demo
cargo build --release -p coll-rust-command && target/release/coll-rust doctor ; s/.*&& // ; All is well
coll-rust doctor                                                       ; run ; All is well
coll-rust doctor -n 64 -- --host a:32,b:32                             ; by  ; doctor
coll-rust doctor --mpiexec /opt/ompi/bin/mpiexec                       ; by  ; doctor
coll-rust doctor --folder .*                                           ; by  ; doctor
(autoreconf -i && )?./configure.*                                      ; by  ; install
autoreconf -i                                                          ; by  ; install
make check                                                             ; not ; ci/test-autotools.sh --full runs it: the test run has the same tests
make dist(-library|-vendor)?                                           ; not ; ci/test-packages.sh runs it, by hand
make.*                                                                 ; by  ; install
apt-get install .*                                                     ; by  ; install
scripts/build-mpiperf.sh                                               ; by  ; build
git clone <this repository> .*                                         ; not ; there is no source of Open MPI on the machine that tests
cd <open-mpi>                                                          ; not ; there is no source of Open MPI on the machine that tests
./autogen.pl                                                           ; not ; there is no source of Open MPI on the machine that tests
export OMPI_MCA_opal_mca_base_component_path=.*                        ; by  ; mpi
export OMPI_MCA_coll_rust_(show|report)=.*                             ; by  ; mpi
(OMPI_MCA_coll=\^rust )?srun .*                                        ; not ; there is no Slurm on the machine that tests
'

# The commands, one a line, without comments and lines of output; a line that goes on is joined.
commands=$(sed -n '/^    /{s/^    //;s/  *# .*//;p}' README.md docs/guide/*.md | sed -e ':a' -e '/\\$/{N;s/ *\\\n */ /;ba' -e '}' |
    grep -E '^(mpiexec|coll-rust|srun|[A-Z_]+=[^ ]* *(srun|mpiexec)|scripts/|cargo|make|autoreconf|\./|apt-get|git|cd|export)' | sort -u)
[ -n "$commands" ] || { echo "test-commands: no commands found in the pages" && exit 1; }

# Where they are run: a folder with what the pages take for granted.
target=${CARGO_TARGET_DIR:-$PWD/target}
cargo build --quiet -p coll-rust-command || exit 1
[ -x "$target/release/mpiperf" ] || scripts/build-mpiperf.sh >/dev/null || exit 1
checks=$(ci/test.sh --list | awk 'NR > 1 {print $1}')
mkdir -p "$scratch/here/target/release" "$scratch/home" "$scratch/t"
ln -s "$scratch/hello" "$scratch/here/program"
ln -s "$PWD/mca-params" "$scratch/here/"
ln -s "$target/debug/coll-rust" "$target/release/mpiperf" "$scratch/here/target/release/"
printf '%s switch0 cluster:north gateway\n' "$(hostname)" >"$scratch/here/clusters.txt"
printf 'SwitchName=switch0 Nodes=%s\n' "$(hostname)" >"$scratch/here/topology.conf"
export HOME=$scratch/home TMPDIR=$scratch/t PATH=$scratch/here/target/release:$PATH
# More ranks than cores, which a page need not say.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_mpi_yield_when_idle=1

trim() {
    sed 's/^ *//;s/ *$//'
}

verdict() {
    if [ -z "$2" ]; then
        passed=$((passed + 1))
        echo "ok      $1 ($3)"
    else
        failed=$((failed + 1))
        echo "FAILED  $1: $2"
        tail -n 20 "$scratch/out" | cut -c1-200 | sed 's/^/        /'
    fi
}

: >"$scratch/out"
used=
while IFS= read -r command; do
    row=
    while IFS=';' read -r regex how what; do
        regex=$(trim <<<"$regex") how=$(trim <<<"$how") what=$(trim <<<"$what")
        [[ -n $regex ]] && grep -qxE -- "$regex" <<<"$command" && row=$regex && break
    done <<<"$table"
    used+=$row$'\n'
    grep -qE -- "$only" <<<"$command" || continue
    if [ -z "$row" ]; then
        verdict "$command" "the table of ci/test-commands.sh does not know it" ""
        continue
    fi
    case $how in
    by)
        problem=
        grep -qx -- "$what" <<<"$checks" || problem="there is no check $what"
        verdict "$command" "$problem" "by $what"
        ;;
    not) echo "skipped $command: $what" ;;
    *)
        real=$command problem= began=$SECONDS
        [ "$how" = run ] || real=$(sed -E "$how" <<<"$command")
        (cd "$scratch/here" && timeout -k 5 90 bash -c "$real") >"$scratch/out" 2>&1 </dev/null || problem="it ended with $?"
        [ -n "$problem" ] || grep -qE -- "$what" "$scratch/out" || problem="it does not print '$what'"
        verdict "$command" "$problem" "$((SECONDS - began)) s"
        ;;
    esac
done <<<"$commands"

while IFS=';' read -r regex _; do
    regex=$(trim <<<"$regex")
    [ -z "$regex" ] || grep -qxF -- "$regex" <<<"$used" || verdict "the row '$regex'" "no page has such a command any more" ""
done <<<"$table"

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
