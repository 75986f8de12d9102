# SPDX-License-Identifier: BSD-3-Clause
"""What bench/pages.py makes of bench/data/apps.json and wave.json: real programs, and the wave equation."""
import json
import math
import os
import statistics

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIGURE = os.path.join(TOP, "docs/pictures/wave.svg")
PROGRAMS = {
    "hpcc": "HPCC, MPIFFT",
    "petsc": "PETSc, CG with Jacobi",
    "cp2k": "CP2K, dynamics of water",
    "lammps": "LAMMPS, melt",
    "espresso": "Quantum ESPRESSO, silicon",
    "gromacs": "GROMACS, water with PME",
}


def read(name):
    with open(os.path.join(TOP, "bench/data", name)) as file:
        return json.load(file)


def table(head, rows, left=1):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * left + " ---: |" * (len(head) - left)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def middle(values):
    """The median, and two of the values between which that of all jobs lies: by at least 95 %, where six are enough."""
    ordered, n = sorted(values), len(values)
    below = lambda k: sum(math.comb(n, i) for i in range(k)) / 2**n
    k = max((k for k in range(1, n // 2 + 1) if 2 * below(k) <= 0.05), default=1)
    return statistics.median(ordered), ordered[k - 1], ordered[n - k]


def apps():
    rows, abouts, wrong = [], [], 0.0
    found = read("apps.json")["cases"].values()
    for case in sorted(found, key=lambda case: (case["ranks"], list(PROGRAMS).index(case["program"]))):
        stock, rust = (statistics.median(pair[i] for pair in case["pairs"]) for i in (0, 1))
        ratio, low, high = middle([rust / stock for stock, rust in case["pairs"]])
        verdict = "faster" if high < 1 else "slower" if low > 1 else "-"
        rows.append([PROGRAMS[case["program"]], case["version"].split("+")[0], str(case["ranks"]), str(len(case["pairs"])),
                     f"{stock:.3g} s", f"{rust:.3g} s", f"{ratio:.2f}", f"{low:.2f} to {high:.2f}", verdict])
        abouts.append(case["about"])
        wrong = max(wrong, case["difference"])
    def all_of(key):
        return ", ".join(sorted({str(about[key]) for about in abouts}))
    loads = [about["load"][0] for about in abouts]
    head = ["program", "version", "ranks", "pairs", "without", "with", "ratio", "interval", "coll/rust is"]
    return [
        f"Machine: {all_of('processor')}, {all_of('cores')} cores, {all_of('kernel')}. Component: {all_of('commit')}.",
        f"The load was {min(loads):.1f} to {max(loads):.1f} when a case had ended.",
        f"Results differ by {wrong:.0e} at most." if wrong else "All results are the same, digit by digit as printed.",
        "",
    ] + table(head, rows, 2)


def wave_runs():
    """(delay, side) to the medians of blocking and nonblocking, in ms a step, and the runs."""
    found = {}
    for run in read("wave.json")["runs"]:
        found.setdefault((run["delay"], run["side"]), []).append((run["blocking"], run["nonblocking"]))
    return {key: (statistics.median(b for b, _ in runs), statistics.median(n for _, n in runs), len(runs)) for key, runs in sorted(found.items())}


def wave():
    about = read("wave.json")["about"]
    rows = [[f"{delay} ms", f"{side} x {side}", f"{b:.1f} ms", f"{n:.1f} ms", f"{b / n:.2f}"] for (delay, side), (b, n, _) in wave_runs().items()]
    runs = {count for *_, count in wave_runs().values()}
    return [
        f"{about['library']}, {about['cores']} cores ({about['processor']}), component {about['commit']}; medians of {min(runs)} runs of {about['steps']} steps:",
        "",
    ] + table(["delay each way", "grid", "blocking, a step", "nonblocking", "times faster"], rows, 2)


def figure():
    """Bars: blocking beside nonblocking, in ms a step."""
    runs = wave_runs()
    top = max(b for b, *_ in runs.values())
    width, base, high = 110 * len(runs) + 70, 260, 200
    out = [f'<svg width="{width}" height="310" viewBox="0 0 {width} 310" xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" fill="#282828">',
           f'<rect width="{width}" height="310" fill="#FFFFFF"/>',
           '<text x="60" y="18">Milliseconds a step of the wave equation, two clusters of two nodes</text>']
    for i, (name, colour) in enumerate((("blocking", "#0072B2"), ("nonblocking", "#D55E00"))):
        out += [f'<rect x="{60 + 110 * i}" y="28" width="12" height="12" fill="{colour}"/>', f'<text x="{78 + 110 * i}" y="38">{name}</text>']
    step = 10 if top < 60 else 20
    for mark in range(0, int(top) + step, step):
        y = base - high * mark / top
        if y > 45:
            out += [f'<line x1="55" y1="{y:.1f}" x2="{width - 10}" y2="{y:.1f}" stroke="#DDDDDD"/>', f'<text x="50" y="{y + 4:.1f}" text-anchor="end">{mark}</text>']
    for i, ((delay, side), (b, n, _)) in enumerate(runs.items()):
        x = 65 + 110 * i
        for at, value, colour in ((x, b, "#0072B2"), (x + 42, n, "#D55E00")):
            tall = high * value / top
            out += [f'<rect x="{at}" y="{base - tall:.1f}" width="38" height="{tall:.1f}" fill="{colour}"/>',
                    f'<text x="{at + 19}" y="{base - tall - 4:.1f}" text-anchor="middle" font-size="10">{value:.1f}</text>']
        out += [f'<text x="{x + 40}" y="{base + 17}" text-anchor="middle">{side} x {side}</text>',
                f'<text x="{x + 40}" y="{base + 33}" text-anchor="middle">{delay} ms each way</text>']
    return "\n".join(out + ["</svg>"]) + "\n"
