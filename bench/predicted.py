#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what coll-rust predict says of two ranks with what mpiperf measured, as the table of
docs/design/calibration.md.

    bench/predicted.py    writes what stands between the marks of that page

    COLL_RUST    the program (default: target/release/coll-rust)

bench/calibrate.sh makes the measurements and the machine file that it reads from bench/data.
"""
import json
import os
import statistics
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(TOP, "bench/data")
PAGE = os.path.join(TOP, "docs/design/calibration.md")
MACHINE = os.path.join(TOP, "machines/two-cores.toml")
MARK, END = "<!-- bench/predicted.py ", "<!-- end -->"
# A vector form with regular counts moves what the regular form moves.
FORMS = {"gatherv": "gather", "scatterv": "scatter", "allgatherv": "allgather", "alltoallv": "alltoall"}
# What was measured, and with which coll_rust_shm_zero_copy_min.
PARTS = {"queues": "off", "reads": "8k"}
WORST = 8


def measured(part):
    """(operation, bytes) to microseconds."""
    with open(os.path.join(DATA, f"calibration.{part}.json")) as file:
        rows = json.load(file)["rows"]
    return {(row["operation"], row["bytes"]): 1e6 * row["median"] for row in rows}


def predicted(part, cells):
    """The same."""
    program = os.environ.get("COLL_RUST", os.path.join(TOP, "target/release/coll-rust"))
    kinds = sorted({FORMS.get(operation, operation) for operation, _ in cells})
    sizes = sorted({size for _, size in cells if size > 0})
    command = [program, "predict", "--json", "--ranks", "2", "--machine", MACHINE, "--zero-copy-min", PARTS[part],
               # So that every line of a queue has been written and read before.
               "--warm", "600",
               "--operation", ",".join(kinds), "--bytes", ",".join(map(str, sizes))]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["rows"]
    found = {(row["operation"], row["bytes"]): row["time_ns"] / 1e3 for row in rows}
    return {cell: found[FORMS.get(cell[0], cell[0]), cell[1]] for cell in cells}


def size_name(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B" if size else ""


class Part:
    """What was measured, and predicted, with one setting."""

    def __init__(self, name):
        self.is_ = measured(name)
        self.told = predicted(name, self.is_)

    def ratio(self, cell):
        return self.told[cell] / self.is_[cell]

    def error(self, cell):
        return abs(self.ratio(cell) - 1)

    def table(self):
        operations = list(dict.fromkeys(operation for operation, _ in self.is_))
        sizes = sorted({size for _, size in self.is_})
        lines = ["| bytes | " + " | ".join(operations) + " |", "| ---: |" + " ---: |" * len(operations)]
        for size in sizes:
            cells = [(operation, size) for operation in operations]
            texts = [f"{self.is_[c]:.3g}, {self.ratio(c):.2f}" if c in self.is_ else "" for c in cells]
            lines.append(f"| {size_name(size)} | " + " | ".join(texts) + " |")
        return lines

    def summary(self):
        errors = [self.error(cell) for cell in self.is_]
        half = 100 * statistics.median(errors)
        far = sum(error > 0.25 for error in errors)
        return [f"Median error {half:.0f} %, of {len(errors)} cells; more than 25 % in {far}."]

    def worst(self):
        cells = sorted(self.is_, key=self.error, reverse=True)[:WORST]
        lines = [f"| {operation} {size_name(size)} | {self.ratio((operation, size)):.2f} |" for operation, size in cells]
        return ["| the worst | |", "| --- | ---: |"] + lines


def made(name):
    part = Part(name)
    return part.summary() + [""] + part.table() + [""] + part.worst()


def main():
    with open(PAGE) as file:
        before = file.read()
    lines, skips = [], False
    for line in before.splitlines():
        skips = skips and line != END
        if not skips:
            lines.append(line)
        if line.startswith(MARK):
            lines += made(line[len(MARK):].split()[0])
            skips = True
    after = "\n".join(lines) + "\n"
    with open(PAGE, "w") as file:
        file.write(after)


main()
