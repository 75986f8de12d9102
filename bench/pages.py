#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the tables of README.md and the pages below from bench/data, files that bench/record.sh, bench/apps.sh and
bench/wave.sh make, and a picture.

    bench/pages.py            writes what stands between the marks
    bench/pages.py --check    changes nothing; exit status 1 where a page differs

A mark is a line `<!-- bench/pages.py NAME -->`; what is made goes up to the line `<!-- end -->`.
"""
import glob
import json
import math
import os
import statistics
import sys

sys.dont_write_bytecode = True
import tables
from tables import table

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ["README.md", "docs/performance.md", "docs/guide/clusters.md"]
MARK, END = "<!-- bench/pages.py ", "<!-- end -->"
# An interval above this is a loss.
LOSS = 1.05


class Jobs:
    """Jobs that compare coll/rust with Open MPI's own choice."""

    def __init__(self):
        paths = sorted(glob.glob(os.path.join(TOP, "bench/data/rust.*.json")))
        if not paths:
            sys.exit("pages.py: bench/data has no rust.*.json; bench/record.sh makes them")
        self.files = []
        for path in paths:
            with open(path) as file:
                self.files.append(json.load(file))
        self.abouts = [found["about"] for found in self.files]
        for found in self.files:
            lost = [one["setting"] for one in found["comparisons"] if not one["ratio"]]
            if lost:
                sys.exit(f"pages.py: a case without a ratio: {lost[0]}; record it again")

    def ratios(self, operation):
        """Of each job: size to ratio."""
        def of(found):
            return {one["setting"]["bytes"]: one["ratio"] for one in found["comparisons"] if one["setting"]["operation"] == operation}
        return [of(found) for found in self.files]

    def operations(self):
        names = [one["setting"]["operation"] for one in self.files[0]["comparisons"]]
        return list(dict.fromkeys(names))

    def sizes(self):
        return sorted({one["setting"]["bytes"] for one in self.files[0]["comparisons"]} - {0})

    def means(self, operation):
        """Of each job: the geometric mean over sizes."""
        return [math.exp(statistics.mean(math.log(ratio["ratio"]) for ratio in job.values())) for job in self.ratios(operation)]

    def cell(self, operation, size):
        return statistics.median(job[size]["ratio"] for job in self.ratios(operation))

    def losses(self):
        """Cases whose interval lies above LOSS in more than half of the jobs."""
        found = []
        for operation in self.operations():
            jobs = self.ratios(operation)
            for size in jobs[0]:
                above = sum(job[size]["low"] > LOSS for job in jobs)
                if 2 * above > len(jobs):
                    found.append((operation, size))
        return found


def size(n):
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n and n % (1 << shift) == 0:
            return f"{n >> shift} {unit}"
    return f"{n} B"


def name(operation):
    return operation[0].upper() + operation[1:]


def both(numbers):
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def machine():
    abouts = JOBS.abouts
    processors = sorted({about["processor"] for about in abouts})
    kernels = sorted({about["kernel"] for about in abouts})
    libraries = sorted({about["library"] for about in abouts})
    commits = sorted({about["commit"] or "unknown" for about in abouts})
    dates = [about["date"][:10] for about in abouts]
    ranks = both([about["processes"] for about in abouts])
    cores = both([about["cores"] for about in abouts])
    load = both([about["load"][0] for about in abouts if about.get("load")])
    return [
        f"* Machine: {', '.join(processors)}, {cores} cores; {', '.join(kernels)}.",
        f"* Library: {', '.join(libraries)}; {ranks} ranks, each bound to a core.",
        f"* State of the source: {', '.join(commits)}; {both(dates)}.",
        f"* Other programs ran, too: the load was {load} when jobs began. Both variants of a job suffer from that alike in turn.".replace(" alike in turn", ", call by call"),
    ]


def readme():
    sizes, about = JOBS.sizes(), JOBS.abouts[0]
    if any(other["processes"] != 2 for other in JOBS.abouts):
        sys.exit("pages.py: README.md says two ranks, and bench/data has others")
    few = ["barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"]
    text = [
        f"Time relative to {about['library']}'s own choice, geometric means of {size(sizes[0])} to {size(sizes[-1])}; less is faster.",
        f"Two ranks on a virtual machine with {about['cores']} cores ({about['processor']}), medians of {len(JOBS.files)} jobs:",
        "",
    ]
    return text + table([name(one) for one in few], [[f"{statistics.median(JOBS.means(one)):.2f}" for one in few]], 0)


def means():
    rows = []
    for operation in JOBS.operations():
        found = JOBS.means(operation)
        rows.append([name(operation), f"{statistics.median(found):.2f}", f"{min(found):.2f}", f"{max(found):.2f}"])
    return table(["operation", f"median of {len(JOBS.files)} jobs", "least", "most"], rows)


def cells():
    sizes = JOBS.sizes()
    sized = [one for one in JOBS.operations() if one != "barrier"]
    rows = [[name(one)] + [f"{JOBS.cell(one, n):.2f}" for n in sizes] for one in sized]
    return table(["operation"] + [size(n) for n in sizes], rows)


def losses():
    found = JOBS.losses()
    count = sum(len(JOBS.ratios(one)[0]) for one in JOBS.operations())
    if not found:
        return [f"In none of {count} cases does the interval lie above {LOSS} in more than half of the jobs."]
    cases = ", ".join(f"{name(operation)} of {size(n)}" if n else name(operation) for operation, n in found)
    return [f"In {len(found)} of {count} cases the interval lies above {LOSS} in more than half of the jobs: {cases}."]


JOBS = Jobs()
MADE = {"machine": machine, "readme": readme, "means": means, "cells": cells, "losses": losses, "apps": tables.apps, "wave": tables.wave}


def page(text):
    """The page with what is made; the names that it uses."""
    out, names, skip = [], [], False
    for line in text.splitlines():
        if skip and line != END:
            continue
        if line.startswith(MARK):
            names.append(line[len(MARK):].removesuffix(" -->"))
            out += [line] + MADE[names[-1]]()
            skip = True
            continue
        skip = False
        out.append(line)
    if skip:
        sys.exit(f"pages.py: no {END} after {names[-1]}")
    return "\n".join(out) + "\n", names


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    made = tables.figure()
    if check:
        with open(tables.FIGURE, encoding="utf-8") as file:
            if file.read() != made:
                sys.exit("docs/pictures/wave.svg is not what bench/data gives; run bench/pages.py")
    else:
        with open(tables.FIGURE, "w", encoding="utf-8") as file:
            file.write(made)
    used = []
    for path in PAGES:
        with open(os.path.join(TOP, path), encoding="utf-8") as file:
            text = file.read()
        made, names = page(text)
        used += names
        if made == text:
            continue
        if check:
            differ = next((a, b) for a, b in zip(text.splitlines() + [""], made.splitlines() + [""]) if a != b)
            sys.exit(f"{path}: has '{differ[0]}', bench/data gives '{differ[1]}'; run bench/pages.py")
        with open(os.path.join(TOP, path), "w", encoding="utf-8") as file:
            file.write(made)
    if set(used) != set(MADE):
        sys.exit(f"pages.py: no page has a mark for {sorted(set(MADE) - set(used))}")


main()
