#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs one mpiperf command line with several MPI libraries (or settings of one) by turns, and merges the
# results. Alternating runs see the same slow changes of the machine, so that run i of one and run i of
# another are a pair.
#
#   mpiperf/alternate.sh [--runs N] [--out FOLDER] LABEL=LAUNCH... -- run OPERATION... [OPTIONS]
#
#   --runs N       so many runs of each (default: 5)
#   --out FOLDER   for LABEL.RUN.json, merged.json and merged.csv (default: alternate)
#   LABEL=LAUNCH   what the results are called, and the command that starts mpiperf up to and with its
#                  program:
#                  'openmpi=mpiexec -n 2 target/release/mpiperf'
#                  Words are split at blanks. One LAUNCH alone is repeated (for mpiperf repro).
set -euo pipefail

usage() {
    sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
    [ $# -eq 0 ] || echo "alternate: $*" >&2
    exit 2
}

runs=5 out=alternate labels=() launches=()
while [ $# -gt 0 ]; do
    case $1 in
    --runs | --out)
        [ $# -gt 1 ] || usage "$1 needs a value"
        if [ "$1" = --runs ]; then runs=$2; else out=$2; fi
        shift 2
        ;;
    --)
        shift
        break
        ;;
    -*) usage "unknown option $1" ;;
    *=*)
        labels+=("${1%%=*}")
        launches+=("${1#*=}")
        shift
        ;;
    *) usage "'$1' is not LABEL=LAUNCH" ;;
    esac
done
[[ $runs =~ ^[1-9][0-9]*$ ]] || usage "--runs $runs: must be 1 or more"
[ ${#labels[@]} -gt 0 ] || usage "no LABEL=LAUNCH"
[ "${1:-}" = run ] || usage "after -- comes the command line of mpiperf run"
for label in "${labels[@]}"; do
    [[ $label =~ ^[A-Za-z0-9._+-]+$ ]] || usage "label '$label': letters, digits and . _ + - only"
done
[ "$(printf '%s\n' "${labels[@]}" | sort -u | wc -l)" -eq ${#labels[@]} ] || usage "a label is there twice"
mkdir -p "$out"

n=${#labels[@]}
for ((run = 1; run <= runs; run++)); do
    for ((i = 0; i < n; i++)); do
        # Another one goes first in every round.
        turn=$(((i + run - 1) % n))
        label=${labels[turn]}
        echo "alternate: run $run of $runs, $label" >&2
        # shellcheck disable=SC2086 # a launch is a list of words
        ${launches[turn]} "$@" --label "$label" --json "$out/$label.$run.json" >"$out/$label.$run.txt" </dev/null || {
            code=$?
            echo "alternate: run $run of $label failed with exit code $code; its output is in $out/$label.$run.txt" >&2
            exit "$code"
        }
    done
done

files=()
for label in "${labels[@]}"; do
    for ((run = 1; run <= runs; run++)); do
        files+=("$out/$label.$run.json")
    done
done
read -ra words <<<"${launches[0]}"
program=${words[-1]}
if [ "$n" -gt 1 ]; then
    "$program" merge "${files[@]}" --json "$out/merged.json" --csv "$out/merged.csv"
    echo "alternate: a picture: $program plot $out/merged.json -o $out/merged.svg" >&2
else
    echo "alternate: $program repro $out/*.json shows how well these runs repeat (with run --ordinary)" >&2
fi
