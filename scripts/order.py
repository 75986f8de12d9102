#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes ompi-glue/order.ld: which functions of the component lie together.

The system brings code to a process in runs of 16 pages. So what a usual program calls is put in one
place: first what it takes to start, to reduce a few numbers and to end (tests/mpi/few.c), then what other
short calls add. The functions are those that valgrind's callgrind sees. Needs valgrind, mpicc and mpiexec.

  scripts/order.py STATICLIB    STATICLIB: libcoll_rust.a, as scripts/build.sh leaves it in target/release
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A pattern that takes more bytes than this, and more than so many times what was called, is left out.
MOST_BYTES, MOST_TIMES = 16384, 4
HEAD = """/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of the component's functions, made by scripts/order.py. The system brings code to a process in runs
 * of 16 pages, so that one short function costs 64 KiB: what most programs call lies in one place.
 */
SECTIONS
{
    .text.first :
    {
"""
TAIL = """    }
}
INSERT BEFORE .text;
"""


def called(scratch, folder, *arguments):
    """The mangled names of the component's functions that a job of two calls."""
    environment = subprocess.check_output(["scripts/env.sh"], cwd=ROOT, text=True, env=os.environ | {"COLL_RUST_OUT": str(scratch / folder)})
    out = scratch / "-".join(("calls",) + arguments)
    job = f"{environment}\nexec mpiexec -n 2 --oversubscribe --mca mpi_yield_when_idle 1 valgrind -q --tool=callgrind"
    job += f" --demangle=no --callgrind-out-file={out}.%p {scratch}/few {' '.join(arguments)}"
    subprocess.run(["bash", "-c", job], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = set()
    for path in scratch.glob(out.name + ".*"):
        objects, names, inside = {}, {}, False
        for line in path.read_text().splitlines():
            match = re.match(r"(c?)(ob|fn)=\((\d+)\)(?: (.*))?$", line)
            if not match:
                continue
            callee, what, number, text = match.groups()
            table = objects if what == "ob" else names
            if text:
                table[number] = text
            if callee:
                continue
            if what == "ob":
                inside = "mca_coll_rust" in objects[number]
            elif inside:
                found.add(names[number].split("'")[0])
    return found


def sections(staticlib):
    """The sections of functions, with their bytes."""
    found = collections.Counter()
    for line in subprocess.check_output(["objdump", "-h", staticlib], text=True, stderr=subprocess.DEVNULL).splitlines():
        match = re.match(r"\s*\d+ (\.text\.\S+)\s+([0-9a-f]+)", line)
        if match:
            found[match[1]] += int(match[2], 16)
    return found


def pattern(section):
    """The section whatever the hash at its end; what has a meaning for the linker is left open."""
    return re.sub(r"[^\w.]+", "*", re.sub(r"17h[0-9a-f]{16}E", "17h*", section))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    staticlib, order = os.path.abspath(sys.argv[1]), ROOT / "ompi-glue/order.ld"
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        subprocess.run(["mpicc", "-o", scratch / "few", ROOT / "tests/mpi/few.c"], check=True)
        # Valgrind knows the functions of one section only.
        before = order.read_text()
        order.write_text("")
        try:
            build = os.environ | {"COLL_RUST_STATICLIB": staticlib}
            subprocess.run(["scripts/build.sh", scratch / "component"], cwd=ROOT, check=True, env=build)
            first, second = called(scratch, "component"), called(scratch, "component", "more")
        except BaseException:
            order.write_text(before)
            raise
    sizes = sections(staticlib)
    of_pattern = collections.Counter()
    for section, size in sizes.items():
        of_pattern[pattern(section)] += size
    objects = sorted(source.stem for source in (ROOT / "ompi-glue").glob("*.c"))
    lines, seen = [f"        */{name}.o(.text .text.*)" for name in objects], set()
    for functions in (first, second - first):
        wanted = collections.Counter()
        for section, size in sizes.items():
            if section.removeprefix(".text.").removeprefix("unlikely.").removeprefix("hot.") in functions:
                wanted[pattern(section)] += size
        for text, size in sorted(wanted.items()):
            if text not in seen and of_pattern[text] <= max(MOST_BYTES, MOST_TIMES * size):
                seen.add(text)
                lines.append(f"        *({text})")
    # The entry points of blocking calls, and what waits in them.
    lines.append("        *(.text.hot.coll_rust)")
    order.write_text(HEAD + "\n".join(lines) + "\n" + TAIL)
    print(f"{len(lines)} patterns for {len(first)} and {len(second - first)} functions")


main()
