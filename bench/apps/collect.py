#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What bench/apps.sh has run, into its data file: collect.py JOBS FILE COMMIT LAUNCHER. Exit status 1 where results
of a program differ by more than 1e-6."""
import datetime
import json
import os
import subprocess
import sys

PACKAGES = {"hpcc": "hpcc", "petsc": "libpetsc-real3.18", "cp2k": "cp2k", "lammps": "lammps", "espresso": "quantum-espresso", "gromacs": "gromacs"}
WRONG = 1e-6


def version(program):
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", PACKAGES[program]], capture_output=True, text=True)
    return asked.stdout or "unknown"


def difference(one, other):
    """The largest relative one between numbers of two results."""
    a, b = ([float(word) for word in text.split()] for text in (one, other))
    if len(a) != len(b) or not a:
        return float("inf")
    return max(abs(x - y) / max(abs(x), abs(y), 1e-300) for x, y in zip(a, b))


def main():
    jobs, path, commit, launcher = sys.argv[1:]
    with open("/proc/cpuinfo") as file:
        processor = next((line.split(": ")[1].strip() for line in file if line.startswith("model name")), "unknown")
    about = {"commit": commit, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "launcher": launcher,
             "processor": processor, "cores": os.cpu_count(), "kernel": " ".join(os.uname()[:3:2]), "load": list(os.getloadavg())}
    cases, bad = {}, []
    with open(jobs) as file:
        for line in file:
            head, _, result = line.strip().partition(" |")
            program, ranks, pair, variant, seconds = head.split()
            case = cases.setdefault(f"{program} {ranks}", {"program": program, "version": version(program), "ranks": int(ranks),
                                                           "about": about, "result": result, "difference": 0.0, "pairs": {}})
            case["difference"] = max(case["difference"], difference(case["result"], result))
            if pair != "0":
                case["pairs"].setdefault(pair, {})[variant] = float(seconds)
    for name, case in cases.items():
        case["pairs"] = [[pair["stock"], pair["rust"]] for pair in case["pairs"].values() if len(pair) == 2]
        case["result"] = case["result"][:120]
        if case["difference"] > WRONG:
            bad.append(f"{name}: results differ by {case['difference']:.1e}")
    found = {}
    if os.path.exists(path):
        with open(path) as file:
            found = json.load(file)["cases"]
    found.update({name: case for name, case in cases.items() if case["pairs"]})
    lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found)]
    with open(path, "w") as file:
        file.write('{\n"format": "apps",\n"cases": {\n' + ",\n".join(lines) + "\n}\n}\n")
    if bad:
        sys.exit("apps: " + "; ".join(bad))


main()
