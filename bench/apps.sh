#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Real programs with coll/rust and without, in pairs by turns, and whether their results are the same. Of
# Debian's packages: hpcc libpetsc-real-dev cp2k lammps lammps-examples quantum-espresso
# quantum-espresso-data gromacs; a program that is not there is left out. Writes bench/data/apps.json, where
# other cases stay as they are; then makes the pages. Takes about a minute for each case.
#
#   bench/apps.sh [--pairs N] [--only REGEX] [--dso FOLDER] [--data FILE]
#
#   --pairs N     pairs of jobs (default: 10)
#   --only REGEX  only cases whose name matches, such as 'hpcc 2' (program and ranks)
#   --dso FOLDER  take mca_coll_rust.so from there instead of building it
#   --data FILE   write there, and make no pages
#
# Two ranks are bound to a core each. Where ranks are more than cores, both variants yield when idle. The
# times are the programs' own, without start and end. Run it while nothing else runs.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD

pairs=10 only=. folder= data=
while [ $# -gt 0 ]; do
    case $1 in
    --pairs) pairs=$2 ;;
    --only) only=$2 ;;
    --dso) folder=$(cd "$2" && pwd) ;;
    --data) data=$(realpath "$2") ;;
    *)
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done
[ -n "$folder" ] || folder=$(COLL_RUST_SKIP_MPIPERF=1 scripts/build.sh | tail -n 1)
variables=$(COLL_RUST_OUT=$folder scripts/env.sh)
eval "$variables"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export CP2K_DATA_DIR=/usr/share/cp2k GMX_MAXBACKUP=-1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
input=$here/bench/apps

# For each program: whether it is there and its input made; its command; its seconds; its results, as numbers.
petsc_flags() { pkg-config --cflags --libs petsc 2>/dev/null || pkg-config --cflags --libs PETSc 2>/dev/null; }
hpcc_ready() {
    command -v hpcc >/dev/null && sed -e 's/^1000 /2000 /' -e '/^2 .*[PQ]s$/s/2/1/' -e "/ Qs\$/s/1/$1/" \
        /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt
}
hpcc_run() { rm -f hpccoutf.txt && "$@" hpcc; }
hpcc_took() { awk -F= '/^MPIFFT_time[0-9]=/ { sum += $2 } END { print sum }' hpccoutf.txt; }
hpcc_result() { awk -F= '/^(MPIFFT_N|MPIFFT_Procs|MPIRandomAccess_Errors|CommWorldProcs|HPL_N)=/ { print $2 }' hpccoutf.txt; }

petsc_ready() { petsc_flags >/dev/null && mpicc -O2 -o cg "$input/cg.c" $(petsc_flags); }
petsc_run() { "$@" ./cg 60 80 >cg.out; }
petsc_took() { sed -n 's/^cg: \([0-9.]*\) s.*/\1/p' cg.out; }
petsc_result() { sed -n 's/^cg: .* s, \([0-9]*\) steps, norm \(.*\)/\1 \2/p' cg.out; }

cp2k_ready() { command -v cp2k.psmp >/dev/null && zcat -f /usr/share/doc/cp2k/examples/H2O.inp* >h2o.inp; }
cp2k_run() { rm -f H2O_OT* h2o.out && "$@" cp2k.psmp -i h2o.inp -o h2o.out; }
cp2k_took() { awk '$1 == "CP2K" && $2 == 1 { print $7 }' h2o.out; }
cp2k_result() { tail -n 1 H2O_OT-1.ener | cut -c 1-80; }

lammps_ready() { command -v lmp >/dev/null && sed 's/0 10 0 10 0 10/0 14 0 14 0 14/' /usr/share/lammps/examples/melt/in.melt >in.melt; }
lammps_run() { "$@" lmp -in in.melt -log lammps.log; }
lammps_took() { sed -n 's/^Loop time of \([0-9.]*\) .*/\1/p' lammps.log; }
lammps_result() { awk '/^Step/ { on = 1; next } /^Loop/ { on = 0 } on' lammps.log; }

espresso_ready() { command -v pw.x >/dev/null && [ -e /usr/share/espresso/pseudo/Si.pz-vbc.UPF ]; }
espresso_run() { "$@" pw.x -in "$input/scf.in" >scf.out; }
espresso_took() { sed -n 's/^ *PWSCF .* CPU *\([0-9.]*\)s WALL.*/\1/p' scf.out; }
espresso_result() { sed -n 's/^! *total energy *= *\(.*\) Ry/\1/p' scf.out; }

gromacs_ready() {
    command -v gmx_mpi >/dev/null && cp "$input"/water.* . &&
        gmx solvate -cs spc216 -box 3.72412 3.72412 3.72412 -o water.gro -p water.top &&
        gmx grompp -f water.mdp -c water.gro -p water.top -o water.tpr -maxwarn 2
}
gromacs_run() { "$@" gmx_mpi mdrun -s water.tpr -deffnm water -reprod -dlb no -ntomp 1; }
gromacs_took() { awk '$1 == "Time:" { print $3 }' water.log; }
gromacs_result() { awk '/A V E R A G E S/ { exit } /Total Energy/ { getline; line = $0 } END { print line }' water.log | cut -c 1-30; }

# A case: a program, and its ranks. A line of its file for each pair: seconds without, with; and the results
# of each job.
failed=0
run_case() {
    local program=$1 ranks=$2 pair variant seconds launch
    grep -qE -- "$only" <<<"$program $ranks" || return 0
    if ! "${program}_ready" "$ranks" >ready.log 2>&1; then
        echo "apps: $program is left out: not installed, or its input cannot be made" >&2
        return 0
    fi
    launch=(timeout 250 mpiexec -n "$ranks")
    if [ "$ranks" -le "$(nproc)" ]; then launch+=(--bind-to core); else
        launch+=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
    fi
    for pair in $(seq 0 "$pairs"); do
        for variant in $([ $((pair % 2)) = 0 ] && echo stock rust || echo rust stock); do
            if ! "${program}_run" "${launch[@]}" $([ "$variant" = rust ] || echo --mca coll ^rust) >run.log 2>&1; then
                echo "apps: $program of $ranks ranks failed with $variant" >&2
                tail -n 20 run.log >&2
                failed=1
                return 0
            fi
            seconds=$("${program}_took")
            # The first pair warms up; its results count.
            printf '%s %s %s %s %s |%s\n' "$program" "$ranks" "$pair" "$variant" "$seconds" \
                "$("${program}_result" | tr -s '\n\t ' ' ')" >>"$scratch/jobs"
        done
    done
    echo "apps: $program, $ranks ranks: done" >&2
}
: >jobs
for ranks in 2 4; do
    for program in hpcc petsc cp2k lammps espresso gromacs; do run_case $program $ranks; done
done
# The state of the component, not of the pages.
commit=$(git -C "$here" log -1 --format=%h --abbrev=12 -- src ompi-glue)
git -C "$here" diff --quiet HEAD -- src ompi-glue || commit+=-dirty
python3 "$here/bench/apps/collect.py" jobs "${data:-$here/bench/data/apps.json}" "$commit" "$(mpiexec --version | head -n 1)" || failed=1
[ -n "$data" ] || "$here/bench/pages.py"
exit $failed
