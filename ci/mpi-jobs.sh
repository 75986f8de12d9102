# SPDX-License-Identifier: BSD-3-Clause
# What ci/test-mpi.sh, ci/test-matrix.sh and ci/test-faults.sh share: reads the options, builds the component
# and the programs of tests/mpi, and runs them in jobs. To be sourced with these set:
#
#   options        those that the script knows, of --quick, --full, --stock, --list, --only REGEX, --dso
#                  FOLDER. They set:
#                  full, stock, list 0 or 1; only; dso: where mca_coll_rust.so is, or nothing: build it
#   programs       names in tests/mpi, or nothing: all
#
# Counts in `passed`, `failed` and `number` (of the last job).

full=0 stock=0 list=0 only=. dso=
while [ $# -gt 0 ]; do
    case " $options " in
    *" $1 "*) ;;
    *)
        sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
        exit 2
        ;;
    esac
    case $1 in
    --only) only=$2 && shift ;;
    --dso) dso=$(cd "$2" && pwd) && shift || exit 1 ;;
    --quick) ;;
    *) printf -v "${1#--}" 1 ;;
    esac
    shift
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mpicc=${MPICC:-mpicc}
mpiexec=${MPIEXEC:-mpiexec}
# Every call of these jobs is to be the component's own, from the first one on.
export OMPI_MCA_coll_rust_first_calls=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

# ---------------------------------------------------------------- build

if [ $stock = 0 ]; then
    if [ -z "$dso" ]; then
        dso=$(COLL_RUST_SKIP_MPIPERF=1 scripts/build.sh | tail -n 1) && [ -n "$dso" ] || exit 1
    fi
    variables=$(COLL_RUST_OUT=$dso scripts/env.sh) || exit 1
    eval "$variables"
fi
for source in tests/mpi/*.c; do
    name=$(basename "$source" .c)
    [[ -z ${programs:-} || " $programs fakebind " == *" $name "* ]] || continue
    case $name in
    fakebind) gcc -O2 -Wall -shared -fPIC -o "$scratch/$name.so" "$source" || exit 1 ;;
    *) "$mpicc" -std=gnu11 -O2 -Wall -Wextra -o "$scratch/$name" "$source" -lm -lpthread || exit 1 ;;
    esac
done

btl=self,vader
several=() # in front of a launcher that starts several programs, "-n 1 one : -n 2 other"
case $("$mpiexec" --version 2>/dev/null | head -n 1) in
*" 5."*)
    btl=self,sm
    several=("$PWD/tests/mpi/several.sh")
    ;;
esac

# ---------------------------------------------------------------- one job

passed=0 failed=0 number=0

# Which operations did not every one of the first $2 ranks handle at least once, by the reports in $1?
unhandled() {
    local report=$1 np=$2 operation ranks
    for operation in ${3//,/ }; do
        ranks=$(sed -nE "s/.*coll_rust report:.*rank ([0-9]+).*[ :]$operation handled=[1-9][0-9]* .*/\1/p" "$report" | sort -u | wc -l)
        [ "$ranks" -ge "$np" ] || echo "$operation ($ranks of $np ranks)"
    done
}

# job MACHINE NP OPERATIONS SETTINGS LIMIT PROGRAM [ARGUMENT...]
#   MACHINE      real, tcp (real, and processes of other jobs can be reached), synthetic/<what to map by>, or
#                wide/<what to map by>, with 32 cores in eight level-3 caches of two sockets; or
#                flat/<what to map by>, with 64 cores in eight level-3 caches of one
#   OPERATIONS   comma list of those that the component must have handled, or -
#   SETTINGS     words name=value for coll_rust_<name> (max_tag and max_message: what only tests set), or ""
#   launcher     a program of tests/mpi that starts the program, or nothing
#   yields       0: processes do not give their cores away while they wait
launcher= yields=1
job() {
    local machine=$1 np=$2 operations=$3 settings=$4 limit=$5 program=$6 word code=0 problem="" more=() environment=() started=$SECONDS
    shift 6
    local line="$program $* np=$np $machine $settings${launcher:+ ($launcher)}"
    grep -qE -- "$only" <<<"$line" || return 0
    number=$((number + 1))
    local out=$scratch/$number.out err=$scratch/$number.err
    # Without the component, its parameters mean nothing, and one run on each machine is enough.
    if [ $stock = 1 ]; then
        [ -z "$settings" ] || return 0
        set -- "$@" --stock
    fi
    environment+=(OMPI_MCA_coll_rust_report=ranks)
    for word in $settings; do
        case $word in
        max_tag=* | max_message=*) environment+=("COLL_RUST_TEST_$(tr a-z A-Z <<<"${word%%=*}")=${word#*=}") ;;
        *) environment+=("OMPI_MCA_coll_rust_$word") ;;
        esac
    done
    [ $stock = 0 ] || environment=()
    case $machine in
    # Open MPI 5.0 finds no way from a network interface to itself.
    tcp) more+=(--mca btl "$btl,tcp" --mca btl_tcp_if_include lo) ;;
    *) more+=(--mca btl "$btl") ;;
    esac
    case $machine in
    synthetic/* | wide/* | flat/*)
        local cores="pack:2 l3:2 numa:1 l2:2"
        case ${machine%%/*} in
        wide) cores="pack:2 numa:1 l3:4 l2:4" ;;
        flat) cores="pack:1 numa:1 l3:8 l2:8" ;;
        esac
        environment+=(HWLOC_THISSYSTEM=1 "HWLOC_SYNTHETIC=$cores l1d:1 core:1 pu:1" "LD_PRELOAD=$scratch/fakebind.so")
        more+=(--bind-to core --map-by "${machine#*/}")
        ;;
    *) more+=(--oversubscribe) ;;
    esac
    env "${environment[@]}" timeout -k 5 "$limit" "$mpiexec" "${more[@]}" --mca mpi_yield_when_idle "$yields" -n "$np" \
        ${launcher:+"$scratch/$launcher"} "$scratch/$program" "$@" >"$out" 2>"$err" </dev/null || code=$?
    if [ $code = 124 ]; then
        problem="over its limit of $limit s"
    elif [ $code != 0 ]; then
        problem="exit code $code"
    elif ! grep -qE "^$program: [1-9][0-9]* passed, 0 failed" "$out"; then
        problem="no good closing line"
    elif [ $stock = 0 ] && [ "$np" -gt 1 ] && [ "$operations" != - ]; then
        problem=$(unhandled "$err" "$np" "$operations" | paste -sd' ')
        [ -z "$problem" ] || problem="the component did not handle: $problem"
    fi
    if [ -z "$problem" ]; then
        passed=$((passed + 1))
        echo "ok      $line ($((SECONDS - started)) s; $(grep -E "^$program: .*passed" "$out" | tail -n 1 | sed 's/.*: //'))"
    else
        failed=$((failed + 1))
        echo "FAILED  $line: $problem"
        grep -hE 'FAILED| hangs in| crashes in|coll/rust|panicked|\*\*\*' "$out" "$err" | grep -v 'coll_rust report' | head -n 12 | sed 's/^/        /'
        [ -s "$out" ] || head -n 12 "$err" | sed 's/^/        /'
    fi
}

# A message that must have come in the last job, of whose number the first argument is the predecessor.
says() {
    [ "$number" != "$1" ] && [ $stock = 0 ] || return 0
    if grep -qE -- "$2" "$scratch/$number.err"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED  no message that matches '$2'"
    fi
}

# As above, of a message that must not have come.
says_not() {
    [ "$number" != "$1" ] && [ $stock = 0 ] || return 0
    if ! grep -qE -- "$2" "$scratch/$number.err"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED  a message matches '$2'"
    fi
}

# As above, of one that must have come so many times.
says_times() {
    local times
    [ "$number" != "$1" ] && [ $stock = 0 ] || return 0
    times=$(grep -cE -- "$2" "$scratch/$number.err")
    if [ "$times" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED  $times messages match '$2', not $3"
    fi
}

# Every rank of the last job must have met these operations in all modes: comma list, and as for says().
# Fourth: "passed", if all calls must have gone to the component below; else all must have been handled.
met() {
    local operation ranks how="handled=[1-9][0-9]* passed=0"
    [ "$number" != "$1" ] && [ $stock = 0 ] || return 0
    [ "${4:-}" != passed ] || how="handled=0 passed=[1-9][0-9]*"
    for operation in ${3//,/ }; do
        ranks=$(grep -cE "coll_rust report:.*: $operation $how blocking=[1-9][0-9]* nonblocking=[1-9][0-9]* persistent=[1-9]" \
            "$scratch/$number.err")
        if [ "$ranks" -eq "$2" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED  $operation was ${4:-handled} in all modes on $ranks of $2 ranks"
        fi
    done
}

# The bits of sums must not depend on where the ranks are: the results of several jobs are compared.
same_bits() {
    local first=$1 other lines
    shift
    [ $stock = 0 ] && [ -s "$first" ] || return 0
    for other; do
        lines=$(grep -c '^repro' "$first")
        if [ "$lines" -gt 0 ] && [ "$(grep '^repro' "$first")" = "$(grep '^repro' "$other" 2>/dev/null)" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED  reproducible sums differ between two placements of the same ranks:"
            diff <(grep '^repro' "$first") <(grep '^repro' "$other") | head -n 6 | sed 's/^/        /'
        fi
    done
}
