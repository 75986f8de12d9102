#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints what a shell must export so that its mpiexec finds the component that scripts/build.sh made:
#
#   eval "$(scripts/env.sh)"      on an error: one line on standard error, exit code 1, nothing to evaluate
#
#   MPIEXEC                  the launcher (default: mpiexec)
#   COLL_RUST_OUT            folder of mca_coll_rust.so (default: <target folder>/coll-rust/<version of Open
#                            MPI>)
#   CARGO_TARGET_DIR         cargo's target folder (default: target)
#
# Nothing forces the choice of the component: its priority does that.
set -euo pipefail

die() {
    echo "env: $*" >&2
    exit 1
}

absolute() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$PWD/$1" ;;
    esac
}
dso=${COLL_RUST_OUT:-}
[ -z "$dso" ] || dso=$(absolute "$dso")
target=${CARGO_TARGET_DIR:-}
[ -z "$target" ] || target=$(absolute "$target")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${target:-$PWD/target}

mpiexec=$(command -v "${MPIEXEC:-mpiexec}") \
    || die "there is no ${MPIEXEC:-mpiexec}: install openmpi-bin, or name a launcher with MPIEXEC"
# "mpiexec (OpenRTE) 4.1.4", "mpiexec (Open MPI) 5.0.7". As root, mpiexec refuses even that.
root=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1)
clean=(env -u OMPI_MCA_mca_base_component_path -u OMPI_MCA_opal_mca_base_component_path
    -u PMIX_MCA_mca_base_component_path "${root[@]}")
version=$({ "${clean[@]}" "$mpiexec" --version 2>&1 || true; } \
    | sed -n 's/.*(\(OpenRTE\|Open MPI\)) v\{0,1\}\([0-9][^ ]*\).*/\2/p' | head -n 1)
[ -n "$version" ] || die "$mpiexec is no launcher of Open MPI: install openmpi-bin, or name one with MPIEXEC"
info=$(dirname "$mpiexec")/ompi_info
[ -x "$info" ] || info=$(command -v ompi_info) || die "there is no ompi_info: install openmpi-bin"

# ---------------------------------------------------------------- the component

dso=${dso:-$target/coll-rust/$version}
file=$dso/mca_coll_rust.so
if [ ! -f "$file" ]; then
    shopt -s nullglob
    others=("$target"/coll-rust/*/mca_coll_rust.so)
    others=("${others[@]#"$target/coll-rust/"}")
    [ ${#others[@]} -eq 0 ] || others=("(built so far: ${others[*]%/mca_coll_rust.so})")
    die "there is no mca_coll_rust.so for $mpiexec, which is of Open MPI $version, in $dso: run scripts/build.sh" \
        "with MPICC naming its compiler wrapper${others[0]:+ ${others[0]}}"
fi
# Open MPI would skip a component that was built for another version, and the job would go on without it.
built=$(grep -aoE 'coll/rust built for Open MPI [0-9.]+;' "$file" | head -n 1 | sed 's/.* \([0-9.]*\);/\1/' || true)
[ -n "$built" ] || die "$file does not say which Open MPI it was built for: build it with scripts/build.sh"
[ "$built" = "$(sed 's/^\([0-9.]*[0-9]\).*/\1/' <<<"$version")" ] \
    || die "$file was built for Open MPI $built, but $mpiexec is of Open MPI $version: run scripts/build.sh with MPICC" \
        "naming its compiler wrapper"

# ---------------------------------------------------------------- where Open MPI looks

# The variable replaces the default path, so the default stays behind our folder. In 5.0, the variable with
# the project's name in front counts more than the one without: some builds (Debian's) hand PMIx's folder to
# the processes in that one.
name=mca_base_component_path
[ "${version%%.*}" -lt 5 ] || name=opal_mca_base_component_path
default=$("${clean[@]}" "$info" --all --parsable --level 9 2>/dev/null \
    | sed -n 's/^mca:mca:base:param:mca_base_component_path:value://p' | head -n 1 | tr -d '"')
[ -n "$default" ] || default=$("${clean[@]}" "$info" --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')
variables=("OMPI_MCA_$name=$dso${default:+:$default}")

# As a process of a job sees it, not as the shell does.
seen=$("${clean[@]}" "${variables[@]}" timeout 60 "$mpiexec" -n 1 "$info" --parsable 2>&1 || true)
case $seen in
*mca:coll:rust:version*) ;;
*)
    why=$(grep -m 1 -E 'mca_coll_rust|component_find|mpiexec|prte' <<<"$seen" || true)
    die "$mpiexec does not load $file${why:+: $why}"
    ;;
esac

for variable in "${variables[@]}"; do
    printf 'export %s=%q\n' "${variable%%=*}" "${variable#*=}"
done
