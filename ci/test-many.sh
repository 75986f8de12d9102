#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many ranks of one node, on machines that hwloc is told of: the groups that are shown are those of the
# caches, and operations along their trees give right results. By hand: 32 and 64 ranks on few cores take
# minutes.
# Ends with "N passed, M failed".
#
#   ci/test-many.sh [--only REGEX] [--dso FOLDER]
set -uo pipefail
cd "$(dirname "$0")/.."

options="--only --dso" programs="matrix"
. ci/mpi-jobs.sh

operations=bcast,reduce,allreduce,barrier
along="bcast_algorithm=shm barrier_algorithm=shm reduce_algorithm=shm allreduce_algorithm=shm show=hierarchy"

# groups NUMBER CACHES MEMBERS STEP: the last job has shown so many level-3 caches of so many ranks each, the
# first ranks of which are so far from each other, and nothing else.
groups() {
    local before=$1 caches=$2 members=$3 step=$4 i last
    says_times "$before" "l3 [^ ]+: ranks" "$caches"
    for i in $(seq 0 $((caches - 1))); do
        last=$((i * step + members - 1))
        says "$before" "l3 [^ ]+: ranks $((i * step))-$last, leader $((i * step))\$"
    done
}

before=$number
job wide/core 32 $operations "levels=l3,node $along" 900 matrix --tiny --seed 1 --max-count 500 --ops $operations
groups "$before" 8 4 4
# Ranks on the sockets in turns: groups are those of the caches all the same.
before=$number
job wide/socket 32 $operations "levels=l3,node $along" 900 matrix --tiny --seed 2 --max-count 500 --ops $operations
says_times "$before" "l3 [^ ]+: ranks" 8
says "$before" "l3 [^ ]+: ranks 0,2,4,6, leader 0\$"
says "$before" "l3 [^ ]+: ranks 25,27,29,31, leader 25\$"
before=$number
job flat/core 64 $operations "levels=l3,node $along" 1800 matrix --tiny --seed 3 --max-count 100 --ops $operations
groups "$before" 8 8 8

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
