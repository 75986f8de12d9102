#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Whether the processes that mpiexec starts load coll/rust with nothing exported: asks mpiexec, since
# ompi_info alone looks in other folders than they do.
#
#   scripts/visible.sh ask                     says whether they do; exit code 1 if not
#   scripts/visible.sh install system|user     makes that so where it is not, and says what it did (make
#                                              install, make install-user)
#   scripts/visible.sh uninstall system|user   undoes it
#
#   MPIEXEC, OMPI_INFO   of the Open MPI (default: mpiexec, and ompi_info beside it)
#   FOLDER               where the component is, for what is said
#   DESTDIR              as in make install: nothing can be asked then
#
# The mpiexec of some builds of Open MPI 5 (Debian's) hands a variable of PMIx's parameter file,
# mca_base_component_path, to the processes as Open MPI's own: then they look in PMIx's folder only. The same
# variable with the project's name in front counts more, and PMIx knows none of that name. So it gets Open
# MPI's default: system in PMIx's file for overrides, user in ~/.openmpi.
set -euo pipefail

action=${1:-} whose=${2:-}
case $action/$whose in
ask/ | install/system | install/user | uninstall/system | uninstall/user) ;;
*)
    sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
    ;;
esac
mark='# coll/rust: the folders of components, which mpiexec would hide (make uninstall takes these two lines away)'
setting='opal_mca_base_component_path = SYS_DEFAULT:USER_DEFAULT'

say() {
    echo "coll/rust: $*"
}

if ! mpiexec=$(command -v "${MPIEXEC:-mpiexec}"); then
    say "there is no ${MPIEXEC:-mpiexec} to ask whether processes will find the component"
    [ "$action" != ask ]
    exit
fi
info=${OMPI_INFO:-$(dirname "$mpiexec")/ompi_info}
clean=(env -u OMPI_MCA_mca_base_component_path -u OMPI_MCA_opal_mca_base_component_path -u PMIX_MCA_mca_base_component_path
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1)

# The last answer of a process, and whether it says that the component is loaded.
answer=
seen() {
    answer=$("${clean[@]}" timeout 60 "$mpiexec" -n 1 "$info" --parsable 2>&1 </dev/null || true)
    [[ $answer == *mca:coll:rust:version* ]]
}

# The file of parameters that mpiexec hands on: PMIx's for overrides, beside the one that hides the folders,
# or the user's.
parameters() {
    local path folder
    if [ "$whose" = user ]; then
        echo "${HOME:?}/.openmpi/mca-params.conf"
        return
    fi
    path=$("${clean[@]}" timeout 60 "$mpiexec" -n 1 env 2>/dev/null </dev/null | sed -n 's/^OMPI_MCA_mca_base_component_path=//p' || true)
    path=${path%%:*}
    [ -n "$path" ] || return 0
    for folder in "${path%/lib*}/share" "${path%/lib*}/etc" /etc /etc/openmpi; do
        if grep -qs '^ *mca_base_component_path *=' "$folder/pmix-mca-params.conf"; then
            echo "${DESTDIR:-}$folder/pmix-mca-params-override.conf"
            return
        fi
    done
}

# Takes the two lines out of a file, and the file away if it is empty then.
undo() {
    [ -f "$1" ] && grep -qxF "$mark" "$1" || return 0
    local rest
    rest=$(grep -vxF -e "$mark" -e "$setting" "$1" || true)
    if [ -n "$rest" ]; then
        printf '%s\n' "$rest" >"$1"
    else
        rm -f "$1"
    fi
    say "took its lines out of $1"
}

advise() {
    local why
    why=$(grep -m 1 -E 'mca_coll_rust|component_find|not enough slots' <<<"$answer" || true)
    say "NOT loaded by the processes that $mpiexec starts${why:+: $why}"
    say "    export OMPI_MCA_opal_mca_base_component_path=${FOLDER:-FOLDER}:SYS_DEFAULT:USER_DEFAULT    # lets them look in this folder too"
}

case $action in
ask)
    seen || { advise; exit 1; }
    say "loaded by the processes that $mpiexec starts"
    ;;
uninstall)
    file=$(parameters)
    [ -z "$file" ] || undo "$file"
    ;;
install)
    if [ -z "${DESTDIR:-}" ] && seen; then
        say "loaded by the processes that $mpiexec starts"
        exit
    fi
    file=$(parameters)
    if [ -z "$file" ] || { [ "$whose" = user ] && [ -n "${DESTDIR:-}" ]; }; then
        [ -n "${DESTDIR:-}" ] || advise
        exit
    fi
    if grep -qsE '^ *(opal_)?(mca_)?(base_)?component_path *=' "$file"; then
        advise
        say "    (or name the folder in $file, which has a path already)"
        exit
    fi
    if ! { mkdir -p "$(dirname "$file")" && printf '%s\n' "$mark" "$setting" >>"$file"; } 2>/dev/null; then
        advise
        say "    ($file, which could say so for everybody, cannot be written)"
        exit
    fi
    [ "$whose" = user ] || chmod a+r "$file"
    say "$mpiexec would have hidden the folder of components: $file now names it"
    if [ -z "${DESTDIR:-}" ]; then
        if seen; then
            say "loaded by the processes that $mpiexec starts"
        else
            undo "$file"
            advise
        fi
    fi
    ;;
esac
