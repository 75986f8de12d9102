#!/bin/bash
# Every operation x algorithm x mode x number of processes x datatype x root x in place, in real jobs, each
# result compared with what it must be and with that of a communicator without the component. The algorithms
# are those that docs/parameters.md lists, which the component makes: one that is added is tested without
# being named here. The counters must say that the component served every operation in every mode, by
# messages.
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

help=$(sed -nE 's/^\| `coll_rust_([a-z_]*)_algorithm` \| [^|]* \| [^|]* \| (.*) \|$/\1 \2/p' docs/parameters.md)
operations=$(cut -d' ' -f1 <<<"$help")
four=bcast,reduce,allreduce,barrier
edges=$(grep '^neighbor_' <<<"$operations" | paste -sd,)
blocks=$(grep -vxE "${four//,/|}|${edges//,/|}" <<<"$operations" | paste -sd,)

# The algorithms of an operation, a word each. One that takes a number comes with the default one, with 3 and,
# in full, with the least and the most.
algorithms() {
    local text word letter least most
    text=$(sed -n "s/^$1 .*fallback ([^)]*), //p" <<<"$help")
    for word in $(sed 's/, or a list.*//; s/ (.*//; s/;.*//; s/\.$//; s/,//g' <<<"$text"); do
        echo "${word%/*}"
        [[ $word == */* ]] || continue
        letter=${word#*/}
        read -r least most < <(sed -nE "s/.*[(; ]$letter: ([0-9]+) to ([0-9]+),.*/\1 \2/p" <<<"$text")
        echo "${word%/*}/3"
        [ $full = 0 ] || printf '%s\n' "${word%/*}/$least" "${word%/*}/$most"
    done
}

declare -A have=()
rounds=0 total=0
for operation in $operations; do
    mapfile -t words < <(algorithms "$operation")
    [ ${#words[@]} -gt 0 ] || { echo "test-matrix: no algorithm of $operation in: $help" >&2; exit 1; }
    have[$operation]=${words[*]}
    total=$((total + ${#words[@]}))
    [ ${#words[@]} -le $rounds ] || rounds=${#words[@]}
done
if [ $list = 1 ]; then
    for operation in $operations; do
        echo "$operation: ${have[$operation]}"
    done
    exit 0
fi

# ---------------------------------------------------------------- the jobs

# Somebody must have sent messages for each of these operations in the last job, of whose settings the third
# argument is a copy: what goes through shared memory was not the algorithm asked for, unless that is what was
# asked for.
messages() {
    local operation
    [ "$number" != "$1" ] || return 0
    for operation in ${2//,/ }; do
        [[ " $3 " != *" ${operation}_algorithm=shm "* ]] || continue
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
    messages "$before" "$operations" "$4"
}

# Parameters of operations do not touch each other, so a job tests an algorithm of each operation at once.
settings() {
    local operation words
    for operation in ${2//,/ }; do
        read -ra words <<<"${have[$operation]}"
        printf '%s_algorithm=%s ' "$operation" "${words[$1 % ${#words[@]}]}"
    done
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

echo "$total algorithms of $(wc -w <<<"$operations") operations"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
