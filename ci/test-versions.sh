#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Which Open MPI the component was built for, and which build of it the ranks have. A component for another
# Open MPI declines with one message, and the job runs on. Ranks with different builds end with one message.
#
#   ci/test-versions.sh
#     --only REGEX    only the cases whose name matches
#     --dso FOLDER    take mca_coll_rust.so from there instead of building it
#
# COLL_RUST_STATICLIB names the Rust half of that one (default: libcoll_rust.a in the folder, or in cargo's).
# With headers whose structs are not those of the running library, other components are built from it.
set -uo pipefail
cd "$(dirname "$0")/.."

options="--only --dso" programs="hello comms"
. ci/mpi-jobs.sh

# Session folders of our own: Open MPI's launchers fail where two of them make the same one at once.
export TMPDIR=$scratch/t
mkdir "$TMPDIR"

staticlib=${COLL_RUST_STATICLIB:-$dso/libcoll_rust.a}
[ -f "$staticlib" ] || staticlib=${CARGO_TARGET_DIR:-target}/release/libcoll_rust.a
original=$dso/mca_coll_rust.so
setting=$(sed -n 's/^export \(OMPI_MCA_[a-z_]*component_path\)=.*/\1/p' <<<"$variables" | head -n 1)
path=${!setting}
mark='coll/rust built for Open MPI '
version=$(grep -aoE "$mark[0-9.]+;" "$original" | head -n 1 | sed "s|$mark||;s/;//")
IFS=. read -r major minor patch <<<"$version"
build=$("$(dirname "$(command -v "$mpiexec")")/ompi_info" --param coll rust --level 9 --parsable | sed -n 's/^mca:coll:rust:param:coll_rust_version:value:.*build \([0-9a-f]*\),.*/\1/p')
if [ -z "$version" ] || [ ${#build} != 16 ]; then
    echo "test-versions: ompi_info does not show version and build: '$version', '$build'"
    echo "0 passed, 1 failed"
    exit 1
fi

# variant NAME: an empty folder for a component.
variant() {
    mkdir -p "$scratch/$1"
    echo "$scratch/$1/mca_coll_rust.so"
}

# marked VERSION: the component, as if it was built for that one.
marked() {
    local file
    file=$(variant "for-$1")
    [ ${#1} = ${#version} ] || echo "test-versions: $1 is not as long as $version" >&2
    sed "s|$mark$version;|$mark$1;|" "$original" >"$file"
}

# resized NAME INDEX: the component, with another size of a struct (ompi-glue/layout.c has the list).
resized() {
    local file at
    file=$(variant "$1")
    cp "$original" "$file"
    at=$(grep -abo 'coll/rust sizes follow:' "$file" | head -n 1 | cut -d: -f1)
    printf '\177' | dd of="$file" bs=1 seek=$((at + 24 + 8 * $2 + 1)) conv=notrunc status=none
}

verdict() {
    if [ -z "$2" ]; then
        passed=$((passed + 1))
        echo "ok      $1"
    else
        failed=$((failed + 1))
        echo "FAILED  $1: $2"
        cat "$scratch/err" "$scratch/out" | grep -v '^$\|^---' | head -n 8 | cut -c1-300 | sed 's/^/        /'
    fi
}

launch=("$mpiexec" --oversubscribe --mca mpi_yield_when_idle 1)

# run COMMAND...: its code in $code, within 40 s.
run() {
    code=0
    timeout -k 5 40 env OMPI_MCA_coll_rust_report=ranks OMPI_MCA_coll_rust_verbose=1 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
}

# job NAME FOLDER HOW PATTERN: two ranks take the component of that folder; it runs (HOW is "used") or not
# ("declined"), with one message.
job() {
    local name=$1 how=$3 pattern=$4 problem="" messages handled
    grep -qE -- "$only" <<<"$name" || return 0
    run env "$setting=$scratch/$2:$path" "${launch[@]}" --mca btl "$btl" -n 2 "$scratch/hello"
    messages=$(grep -cE -- "$pattern" "$scratch/err")
    handled=$(grep -cE 'coll_rust report.*allreduce handled=[1-9]' "$scratch/err")
    if [ $code != 0 ] || ! grep -q '^hello: [1-9][0-9]* passed, 0 failed' "$scratch/out"; then
        problem="the job ended with $code"
    elif [ "$messages" != 1 ]; then
        problem="$messages messages that match '$pattern'"
    elif [ "$how$handled" != used2 ] && [ "$how$handled" != declined0 ]; then
        problem="not $how: $handled of 2 ranks have it"
    fi
    verdict "$name" "$problem"
}

# differ NAME PATTERN COMMAND...: the job ends with a code other than 0 and one message.
differ() {
    local name=$1 pattern=$2 problem="" messages
    shift 2
    grep -qE -- "$only" <<<"$name" || return 0
    # Ranks wait for each other's abort before they say the same, but not for ever: that it comes too late now
    # and then is no failure.
    for _ in 1 2 3; do
        run "$@"
        messages=$(grep -cE -- "$pattern" "$scratch/err")
        [ "$messages" -gt 1 ] || break
    done
    if [ $code = 0 ] || [ $code = 124 ] || [ $code = 137 ]; then
        problem="the job ended with $code"
    elif [ "$messages" != 1 ]; then
        problem="$messages messages that match '$pattern'"
    fi
    verdict "$name" "$problem"
}

# ---------------------------------------------------------------- which Open MPI

mkdir "$scratch/same" && cp "$original" "$scratch/same/"
job "the component tells its build" same used "^coll/rust: version .*build $build, protocol [0-9]+, for Open MPI $version\), 2 processes"

other=$((patch - 1)) # no release that this is tried with ends in 0
marked "$major.$minor.$other"
job "built for an earlier release of the series, with the same structs" "for-$major.$minor.$other" used \
    "built for Open MPI $major.$minor.$other, and used with Open MPI $version"
for series in "$major.$minor.$((patch + 1))" "$major.$((minor + 1)).$patch" "$((major + 1)).$minor.$patch"; do
    marked "$series"
    job "built for a later release or another series, $series" "for-$series" declined "not used. It was built for Open MPI $series, and this is Open MPI $version.*make install"
done

resized class 1
job "another size of a class" class declined "another build of it, with other structs: sizeof\(ompi_communicator_t\) is [0-9]+, not [0-9]+\. Build it"
resized variable 18
job "another size of a variable" variable declined "another build of it, with other structs: sizeof\(mca_pml\) is [0-9]+, not [0-9]+\. Build it"

# foreign NAME HEADER SED: the component, compiled with that header of Open MPI's changed.
foreign() {
    local name=$1 header=$2 folder found
    grep -qE -- "$only" <<<"$name" || return 0
    folder=$scratch/$name
    mkdir -p "$folder/include/$(dirname "$header")"
    found=$(for place in $("$mpicc" --showme:incdirs); do ls "$place/$header" "$place/openmpi/$header"; done 2>/dev/null | head -n 1)
    sed "$3" "$found" >"$folder/include/$header"
    if cmp -s "$found" "$folder/include/$header" || ! CFLAGS="-Wno-error -I$folder/include -idirafter $(dirname "$found")" COLL_RUST_STATICLIB=$staticlib COLL_RUST_OUT=$folder scripts/build.sh >"$scratch/out" 2>"$scratch/err"; then
        verdict "$name: a component for other headers" "cannot be built"
    fi
}

# Fields of one length that have changed places.
swap() {
    echo "s/\b$1;/@;/;s/\b$2;/$1;/;s/@;/$2;/"
}
if [ -f "$staticlib" ]; then
    foreign moved ompi/request/request.h "$(swap req_state req_f_to_c_index)"
    job "moved: fields of a struct have changed places" moved declined "another build of it, with other structs: ompi_request_t.req_state of a new one is"
    if [ "$major" -ge 5 ]; then
        # 5.0.6 has no c_index_vec.
        foreign older ompi/communicator/communicator.h '/c_index_vec;/d;s/comm->c_index_vec\[dest\]/0/'
        if [ -f "$scratch/older/mca_coll_rust.so" ]; then
            sed -i "s|$mark$version;|${mark}5.0.6;|" "$scratch/older/mca_coll_rust.so"
        fi
        job "older: built with 5.0.6's communicators" older declined "built for Open MPI 5.0.6, and this is Open MPI $version, with other structs: sizeof\(ompi_communicator_t\) is"
    fi
else
    verdict "components for other headers" "there is no $staticlib"
fi

# ---------------------------------------------------------------- which build

mkdir "$scratch/rebuilt"
strange=$(tr 0-9a-f 1-9a-f0 <<<"$build")
sed "s/$build/$strange/g" "$original" >"$scratch/rebuilt/mca_coll_rust.so"
# with NAME: makes a program that runs another one with the component of that folder.
with() {
    printf '#!/bin/bash\nexport %q\nexec "$@"\n' "$setting=$scratch/$1:$path" >"$scratch/$1/with"
    chmod +x "$scratch/$1/with"
}
# A program that does so on the ranks from $1 on with the component of $2, and on those before with the
# original. (As several programs of one job they made Debian's launcher of 5.0.7 crash.)
cat >"$scratch/from" <<FROM
#!/bin/bash
name=same
[ "\$OMPI_COMM_WORLD_RANK" -lt "\$1" ] || name=\$2
exec "$scratch/\$name/with" "\${@:3}"
FROM
chmod +x "$scratch/from"
with same
with rebuilt
with "for-$major.$minor.$other"
host=$(hostname)
two="different builds of the component: rank [0-9]+ on $host has .*build ($build|$strange), .*rank [0-9]+ on $host has .*build ($build|$strange), .*Install the same"
differ "two builds in one job" "$two" "${launch[@]}" --mca btl "$btl" \
    -n 2 "$scratch/from" 1 rebuilt "$scratch/hello"
differ "two builds in one job of four, on the last" "$two" "${launch[@]}" --mca btl "$btl" \
    -n 4 "$scratch/from" 3 rebuilt "$scratch/hello"
differ "one build for two releases in one job" \
    "different builds.*build $build.*Open MPI $major.$minor.($patch|$other)\).*build $build.*Open MPI $major.$minor.($patch|$other)\)" \
    "${launch[@]}" --mca btl "$btl" -n 2 "$scratch/from" 1 "for-$major.$minor.$other" "$scratch/hello"

# Spawned processes are of another job. They are started by the name that their parents were called by.
cat >"$scratch/child" <<CHILD
#!/bin/bash
exec "$scratch/rebuilt/with" "$scratch/comms" "\$@"
CHILD
chmod +x "$scratch/child"
# shellcheck disable=SC2016 # for the inner shell
differ "two jobs of different builds" "$two" "${launch[@]}" --mca btl "$btl,tcp" --mca btl_tcp_if_include lo -n 2 \
    "$scratch/same/with" bash -c 'exec -a "$0" "$@"' "$scratch/child" "$scratch/comms" --parts spawn

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
