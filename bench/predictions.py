#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes what docs/design/many-nodes.md says of simulated clusters, by coll-rust predict.

    bench/predictions.py tables    the tables of a cluster of ten nodes, which take two minutes
    bench/predictions.py ranks     a table and docs/pictures/many-ranks.svg, up to a million ranks: ten minutes

COLL_RUST names another program than target/release/coll-rust. A mark is a line `<!-- bench/predictions.py NAME -->`;
what is made goes up to the line `<!-- end -->`.
"""
import json
import math
import os
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(TOP, "docs/design/many-nodes.md")
PICTURE = os.path.join(TOP, "docs/pictures/many-ranks.svg")
PROGRAM = os.environ.get("COLL_RUST", os.path.join(TOP, "target/release/coll-rust"))

SIZES = "8,32,128,512,2k,8k,16k,64k,256k,1m"
FOUR, THREE = "numa,socket,node,switch", "numa,node,switch"
# One group of all ranks, then the two settings of levels: the name of a column, and its options.
WHOLE = ["--segment", "0"]


def alone(name, options, levels="none"):
    return name, ["--levels", levels] + options + WHOLE


def by_levels(pairs):
    return [alone(f"{name}, {count}", options, levels)
            for count, levels in (("four", FOUR), ("three", THREE)) for name, options in pairs]


def algorithms(*names):
    return [(name, ["--algorithm", name]) for name in names]


TREES = ["--up", "knomial/2", "--down", "knomial/2"]
SEGMENTS = ("four, segments", ["--levels", FOUR])
TABLES = {
    "reduce": [alone(*pair) for pair in algorithms("knomial/2", "flat", "reduce_scatter_gather")]
    + [("chain, segments", ["--levels", "none", "--algorithm", "chain"])]
    + by_levels(algorithms("flat", "knomial/2", "reduce_scatter_gather")) + [SEGMENTS],
    "bcast": [alone(*pair) for pair in algorithms("flat", "knomial/2", "scatter_allgather")]
    + [("chain, segments", ["--levels", "none", "--algorithm", "chain"])]
    + by_levels(algorithms("flat", "knomial/2", "scatter_allgather")) + [SEGMENTS],
    "allreduce": [alone("flat", ["--algorithm", "reduce_bcast", "--up", "flat", "--down", "flat"])]
    + [alone(name, options + TREES) for name, options in
       algorithms("reduce_bcast", "rabenseifner", "recursive_doubling", "ring")]
    + by_levels([("reduce_bcast", ["--algorithm", "reduce_bcast"] + TREES),
                 ("recursive_doubling", ["--algorithm", "recursive_doubling"] + TREES)]) + [SEGMENTS],
}

# Of the picture: name, operation, bytes, options, and the most nodes.
NODES = [5, 16, 52, 165, 521, 1646, 5208]
LINES = [
    ("Barrier", "barrier", "8", [], 5208, "#1b9e77"),
    ("Bcast, 8 B", "bcast", "8", [], 5208, "#386cb0"),
    ("Allreduce, 8 B", "allreduce", "8", [], 5208, "#984ea3"),
    ("Bcast, 1 MiB, one segment", "bcast", "1m", WHOLE, 5208, "#80b1d3"),
    ("Allreduce, 1 MiB, one segment", "allreduce", "1m", WHOLE, 5208, "#bc80bd"),
    ("Bcast, 1 MiB, segments of 32 KiB", "bcast", "1m", [], 521, "#fdae6b"),
    ("Allreduce, 1 MiB, segments of 32 KiB", "allreduce", "1m", [], 521, "#e41a1c"),
]


def predict(machine, operation, bytes_, nodes, options):
    """The rows of a prediction, by messages within nodes too."""
    command = [PROGRAM, "predict", "--machine", os.path.join(TOP, "machines", machine), "--operation", operation,
               "--bytes", bytes_, "--nodes", str(nodes), "--messages", "--json"] + options
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"predictions.py: {' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["rows"]


def size(count):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count >> shift} {unit}"
    return f"{count} B"


def table(operation):
    """Times of settings, in parts of that of the first; the least is bold."""
    columns = TABLES[operation]
    # As mpiexec maps ranks by default: sockets in turn.
    found = [predict("kunpeng-920-2s.toml", operation, SIZES, 10, options + ["--map", "socket"])
             for _, options in columns]
    names = [name for name, _ in columns]
    out = ["| bytes | " + f"{names[0]}, µs | " + " | ".join(names[1:]) + " |",
           "| ---: " * (len(names) + 1) + "|"]
    for rows in zip(*found):
        times = [row["time_ns"] for row in rows]
        cells = [f"{times[0] / 1000:.1f}"] + [f"{time / times[0]:.3f}" for time in times[1:]]
        best = times.index(min(times))
        cells[best] = f"**{cells[best]}**"
        out.append("| " + " | ".join([size(rows[0]["bytes"])] + cells) + " |")
    return "\n".join(out)


def ranks():
    """The table and the picture of very many ranks."""
    found, out = [], ["| operation | ranks | time, µs | messages a rank | messages | seconds to simulate | GB |",
                      "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name, operation, bytes_, options, most, colour in LINES:
        points = []
        for nodes in [count for count in NODES if count <= most]:
            began, before = time.time(), os.times()
            command = ["/usr/bin/time", "-f", "%M"]
            full = command + [PROGRAM, "predict", "--machine", os.path.join(TOP, "machines/epyc-9654-2s.toml"),
                              "--operation", operation, "--bytes", bytes_, "--nodes", str(nodes), "--messages",
                              "--json"] + options
            done = subprocess.run(full, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"predictions.py: {' '.join(full)}: {done.stderr.strip()}")
            row = json.loads(done.stdout)["rows"][0]
            sent = sum(level["messages"] for level in row["levels"].values())
            points.append((row["ranks"], row["time_ns"] / 1000, sent / row["ranks"]))
            spent = os.times().children_user - before.children_user
            print(name, row["ranks"], f"{time.time() - began:.1f} s", flush=True)
            if nodes in (521, 5208):
                kib = int(done.stderr.split()[-1])
                out.append(f"| {name} | {row['ranks']:,} | {row['time_ns'] / 1000:.1f} | {sent / row['ranks']:.2f} | "
                           f"{sent:,} | {spent:.0f} | {kib * 1024 / 1e9:.1f} |")
        found.append((name, colour, points))
    with open(PICTURE, "w") as file:
        file.write(picture(found))
    return "\n".join(out)


def picture(found):
    """Time and messages of a rank over the number of ranks, all by powers of ten."""
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 560" font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>']
    for panel, (left, title, at) in enumerate(((60, "time of the last rank, µs", 1), (560, "messages a rank", 2))):
        values = [point[at] for _, _, points in found for point in points]
        low = 10 ** math.floor(math.log10(min(values)))
        high = 10 ** math.ceil(math.log10(max(values)))

        def x(count, left=left):
            return left + 400 * (math.log10(count) - 2.9) / (6.05 - 2.9)

        def y(value, low=low, high=high):
            return 360 - 310 * math.log10(value / low) / math.log10(high / low)

        out.append(f'<text x="{left}" y="30" font-size="14">{title}</text>')
        for power in range(3, 7):
            out.append(f'<line x1="{x(10 ** power):.1f}" y1="50" x2="{x(10 ** power):.1f}" y2="360" stroke="#00000022"/>'
                       f'<text x="{x(10 ** power):.1f}" y="376" text-anchor="middle">{10 ** power:,}</text>')
        for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
            value = 10.0 ** power
            out.append(f'<line x1="{left}" y1="{y(value):.1f}" x2="{left + 400}" y2="{y(value):.1f}" '
                       f'stroke="#00000022"/><text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
        out.append(f'<text x="{left + 200}" y="396" text-anchor="middle">ranks</text>')
        for number, (name, colour, points) in enumerate(found):
            path = " ".join(f"{x(point[0]):.1f},{y(point[at]):.1f}" for point in points)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
            if panel == 0:
                high_at = 425 + 18 * number
                out.append(f'<line x1="60" y1="{high_at}" x2="84" y2="{high_at}" stroke="{colour}" stroke-width="3"/>'
                           f'<text x="92" y="{high_at + 4}">{name}</text>')
    return "\n".join(out) + "\n</svg>\n"


def put(name, text):
    """Puts what was made between its marks."""
    with open(PAGE) as file:
        page = file.read()
    mark = f"<!-- bench/predictions.py {name} -->\n"
    if mark not in page:
        sys.exit(f"predictions.py: {PAGE} has no line {mark.strip()}")
    before, rest = page.split(mark, 1)
    after = rest.split("<!-- end -->", 1)[1]
    with open(PAGE, "w") as file:
        file.write(f"{before}{mark}{text}\n<!-- end -->{after}")


def main():
    what = sys.argv[1:]
    if not what or any(one not in ("tables", "ranks") for one in what):
        sys.exit(__doc__)
    if "tables" in what:
        for operation in TABLES:
            put(operation, table(operation))
    if "ranks" in what:
        put("ranks", ranks())


main()
