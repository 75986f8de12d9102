#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every operation x algorithm x mode x number of processes x datatype x root x in place, in real jobs, each
# result compared with what it must be and with that of a communicator without the component. The algorithms
# are those that docs/reference/parameters.md lists, which the component makes: one that is added is tested
# without being named here. The counters must say that the component served every operation in every mode, by
# messages. Then the same with every way of the shared memory of a node.
#
#   ci/test-matrix.sh [--quick]   under two minutes: 3 processes, and 8 on a synthetic machine; a sample of
#                                 the rest (default)
#   ci/test-matrix.sh --full      1, 2, 3, 5 and 8 processes, every root and datatype at every size; numbers
#                                 at the ends of their ranges too
#     --only REGEX                only the jobs whose line matches
#     --list                      only print which algorithms would be tested
#     --dso FOLDER                take mca_coll_rust.so from there instead of building it
#
# MPICC and MPIEXEC name another Open MPI than the one in PATH.
set -uo pipefail
cd "$(dirname "$0")/.."

options="--quick --full --only --list --dso" programs="matrix vector neighbor"
. ci/mpi-jobs.sh

# ---------------------------------------------------------------- what there is

help=$(sed -nE 's/^\| `coll_rust_([a-z_]*)_algorithm` \| [^|]* \| [^|]* \| (.*) \|$/\1 \2/p' docs/reference/parameters.md)
operations=$(cut -d' ' -f1 <<<"$help")
four=bcast,reduce,allreduce,barrier
edges=$(grep '^neighbor_' <<<"$operations" | paste -sd,)
blocks=$(grep -vxE "${four//,/|}|${edges//,/|}" <<<"$operations" | paste -sd,)

# The algorithms of an operation, a word each, but for shared memory. One that takes a number comes with the
# default one, with 3 and, in full, with the least and the most.
algorithms() {
    local text word letter least most
    text=$(sed -n "s/^$1 .*fallback ([^)]*), //p" <<<"$help")
    for word in $(sed 's/, or a list.*//; s/ (.*//; s/;.*//; s/\.$//; s/,//g' <<<"$text"); do
        [ "$word" != shm ] || continue
        echo "${word%/*}"
        [[ $word == */* ]] || continue
        letter=${word#*/}
        read -r least most < <(sed -nE "s/.*[(; ]$letter: ([0-9]+) to ([0-9]+),.*/\1 \2/p" <<<"$text")
        echo "${word%/*}/3"
        [ $full = 0 ] || printf '%s\n' "${word%/*}/$least" "${word%/*}/$most"
    done
}

# The ways of an operation inside a node.
ways() {
    sed -n "s/^$1 .*shm:WAY ([^:]*: \([a-z_, ]*\)).*/\1/p" <<<"$help" | tr -d ,
}

declare -A have=() inside=()
rounds=0 total=0 ways=0
for operation in $operations; do
    mapfile -t words < <(algorithms "$operation")
    inside[$operation]=$(ways "$operation")
    [ ${#words[@]} -gt 0 ] && [ -n "${inside[$operation]}" ] \
        || { echo "test-matrix: no algorithm or no way of $operation in: $help" >&2; exit 1; }
    have[$operation]=${words[*]}
    total=$((total + ${#words[@]}))
    ways=$((ways + $(wc -w <<<"${inside[$operation]}")))
    [ ${#words[@]} -le $rounds ] || rounds=${#words[@]}
done
if [ $list = 1 ]; then
    for operation in $operations; do
        echo "$operation: ${have[$operation]}; within a node ${inside[$operation]}"
    done
    exit 0
fi

# ---------------------------------------------------------------- the jobs

# Somebody must have sent messages for each of these operations in the last job: what goes through shared
# memory was not the algorithm asked for.
messages() {
    local operation
    [ "$number" != "$1" ] || return 0
    for operation in ${2//,/ }; do
        if grep -qE "coll_rust report:.*: $operation handled=.* messages=[1-9]" "$scratch/$number.err"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED  $operation sent no message"
        fi
    done
}

# part MACHINE NP OPERATIONS SETTINGS LIMIT PROGRAM [ARGUMENT...]: a job, and what must be said about it.
part() {
    local before=$number np=$2 operations=$3
    job "$@"
    [ "$np" -gt 1 ] || return 0
    met "$before" "$np" "$operations"
    messages "$before" "$operations"
}

# Parameters of operations do not touch each other, so a job tests an algorithm of each operation at once.
settings() {
    local operation words word
    for operation in ${2//,/ }; do
        read -ra words <<<"${have[$operation]}"
        word=${words[$1 % ${#words[@]}]}
        printf '%s_algorithm=node:%s,%s ' "$operation" "$word" "$word"
    done
}

# The same of ways.
settings_inside() {
    local operation words
    for operation in ${2//,/ }; do
        read -ra words <<<"${inside[$operation]}"
        printf '%s_algorithm=shm:%s ' "$operation" "${words[$1 % ${#words[@]}]}"
    done
}

# Whether some call of an operation among np processes goes a way in these jobs. Two have a core each; the
# others give theirs away (a Reduce is split among three with a core each: tests/shm does that).
# docs/reference/ways.md says what ways need; some need longer data than a quick run has.
possible() {
    local operation=$1 way=$2 np=$3 machine=$4
    case $way:$operation in
    whole:*gather | whole:alltoall | whole:reduce_scatter) [ $full = 1 ] && [ "$machine" = real ] && [ "$np" -gt 2 ] ;;
    whole:* | reduce_bcast:* | relay:* | ring:*) [ "$machine" = real ] && [ "$np" -gt 2 ] ;;
    two_sided:gather | two_sided:scatter) [ $full = 1 ] && [ "$np" = 2 ] ;;
    two_sided:* | split:allreduce) [ "$np" = 2 ] ;;
    split:reduce) false ;;
    tree:*) [ "$machine" != real ] ;;
    *) ;;
    esac
}

# inside MACHINE NP OPERATIONS SETTINGS LIMIT PROGRAM [ARGUMENT...]: a job whose settings name ways. Some rank
# must have gone each way that can be.
inside() {
    local before=$number machine=$1 np=$2 word operation way
    job "$@"
    met "$before" "$np" "$3"
    [ "$number" != "$before" ] || return 0
    for word in $4; do
        [[ $word == *_algorithm=shm:* ]] || continue
        operation=${word%%_algorithm*} way=${word##*:}
        # What fits the line is not asked for; forms of an operation are counted as that.
        case $way:$operation in
        inline:* | tree:allreduce | *v:* | *w:* | *:*v | *:*w | *:neighbor_* | *:reduce_scatter_block | *:exscan) continue ;;
        esac
        possible "$operation" "$way" "$np" "$machine" || continue
        if grep -qE "coll_rust report:.*: $operation within the node by shm:$way calls=[1-9]" "$scratch/$number.err"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED  no $operation went by shm:$way"
        fi
    done
}

# The most ways of an operation in a comma list.
most_inside() {
    local operation most=0 words
    for operation in ${1//,/ }; do
        words=$(wc -w <<<"${inside[$operation]}")
        [ "$words" -le $most ] || most=$words
    done
    echo $most
}

# The longest list of an operation in a comma list.
longest() {
    local operation words most=0
    for operation in ${1//,/ }; do
        read -ra words <<<"${have[$operation]}"
        [ ${#words[@]} -le $most ] || most=${#words[@]}
    done
    echo $most
}

# A process alone is not the component's; Open MPI's own, coll/self, goes astray in Alltoallw with
# displacements.
if [ $full = 1 ]; then
    part real 1 - "" 600 vector --full --ops "${blocks/,alltoallw/}"
    part real 1 - "" 600 matrix --quick
fi
# Open MPI's coll/tuned chooses other algorithms where ranks describe the same data by different datatypes,
# and hangs.
for ((round = 0; round < $(longest "$blocks"); round++)); do
    chosen=$(settings $round "$blocks")
    if [ $full = 1 ]; then
        for np in 2 3 5; do
            OMPI_MCA_coll=^tuned part real $np "$blocks" "$chosen" 1800 vector --full --seed $round
        done
        OMPI_MCA_coll=^tuned part synthetic/core 8 "$blocks" "$chosen" 3600 vector --quick --seed $round
        OMPI_MCA_coll=^tuned part real 8 "$blocks" "$chosen reproducible=1 max_message=1k" 3600 vector --quick --seed $((round + 50))
    else
        OMPI_MCA_coll=^tuned part real 3 "$blocks" "$chosen" 300 vector --quick --seed $round
        OMPI_MCA_coll=^tuned part synthetic/core 8 "$blocks" "$chosen" 300 vector --tiny --seed $round
    fi
done
for ((round = 0; round < $(longest $four); round++)); do
    chosen=$(settings $round $four)
    if [ $full = 1 ]; then
        for np in 2 3 5; do
            part real $np $four "$chosen" 1800 matrix --quick --seed $round
        done
        part synthetic/core 8 $four "$chosen" 1800 matrix --quick --seed $round
    else
        part real 3 $four "$chosen" 300 matrix --tiny --max-count 2000 --seed $round
    fi
done
for ((round = 0; round < $(longest "$edges"); round++)); do
    chosen=$(settings $round "$edges")
    if [ $full = 1 ]; then
        for np in 2 3 5; do
            part real $np "$edges" "$chosen" 1800 neighbor --full --seed $round
        done
        part real 8 "$edges" "$chosen max_message=1k" 1800 neighbor --quick --seed $((round + 50))
    else
        part real 4 "$edges" "$chosen" 300 neighbor --tiny --seed $round
    fi
done

# The ways inside a node, each as value of a parameter. (What fits the flag's line goes inline by any name.)
# Trees are on the machine that has levels.
from=$((1 - full))
for ((round = from; round < $(most_inside $four); round++)); do
    chosen=$(settings_inside $round $four)
    if [ $full = 1 ]; then
        yields=0 inside real 2 $four "$chosen" 1800 matrix --quick --seed $round
        for np in 3 5 8; do
            inside real $np $four "$chosen" 1800 matrix --quick --seed $round
        done
        inside synthetic/core 8 $four "$chosen levels=numa,node" 1800 matrix --quick --seed $round
    else
        yields=0 inside real 2 $four "$chosen" 300 matrix --tiny --max-count 5000 --seed $round
        inside real 3 $four "$chosen" 300 matrix --tiny --max-count 5000 --seed $round
        [[ $chosen != *shm:tree* ]] || inside synthetic/core 8 $four "$chosen levels=numa,node" 300 matrix --tiny --max-count 500 --seed $round
    fi
done
for ((round = from; round < $(most_inside "$blocks"); round++)); do
    chosen=$(settings_inside $round "$blocks")
    if [ $full = 1 ]; then
        OMPI_MCA_coll=^tuned yields=0 inside real 2 "$blocks" "$chosen" 1800 vector --quick --seed $round
        for np in 3 5 8; do
            OMPI_MCA_coll=^tuned inside real $np "$blocks" "$chosen" 1800 vector --quick --seed $round
        done
    else
        OMPI_MCA_coll=^tuned yields=0 inside real 2 "$blocks" "$chosen" 300 vector --tiny --seed $round
        OMPI_MCA_coll=^tuned inside real 3 "$blocks" "$chosen" 300 vector --tiny --seed $round
    fi
done
for ((round = from; round < $(most_inside "$edges"); round++)); do
    chosen=$(settings_inside $round "$edges")
    if [ $full = 1 ]; then
        for np in 2 3 5 8; do
            inside real $np "$edges" "$chosen" 1800 neighbor --quick --seed $round
        done
    else
        inside real 3 "$edges" "$chosen" 300 neighbor --tiny --seed $round
    fi
done

echo "$total algorithms and $ways ways of $(wc -w <<<"$operations") operations"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
