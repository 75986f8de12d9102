#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Starts several programs in one job, as `mpiexec [OPTION...] -n N PROGRAM... : -n N PROGRAM...` does: the
# launcher of Open MPI 5.0.7 crashes over that line (Debian 13; with `hostname` twice, too). One shell for
# each process takes the program of its rank. A -x is an env.
#
#   tests/mpi/several.sh MPIEXEC [OPTION...] -n N [-x NAME=VALUE] PROGRAM [ARGUMENT...] [: -n N ...]
set -eu

front=()
while [ $# -gt 0 ] && [ "$1" != -n ]; do
    front+=("$1")
    shift
done
total=0 cases=''
while [ $# -gt 0 ]; do
    count=$2 words=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != : ]; do
        if [ "$1" = -x ]; then words+=(env); else words+=("$1"); fi
        shift
    done
    [ $# = 0 ] || shift
    total=$((total + count))
    cases+="[ \$OMPI_COMM_WORLD_RANK -ge $total ] || exec$(printf ' %q' "${words[@]}"); "
done
exec "${front[@]}" -n "$total" bash -c "$cases"
