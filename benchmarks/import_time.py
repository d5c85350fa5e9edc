"""Seconds that imports take, beside those of scikit-learn and torch.

``python -m benchmarks.import_time`` starts a new interpreter for every import, in turns, and reports medians. Seconds
are processor time, and bytecode is cached; ``beyond`` is what an import adds to ``import sklearn, torch``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

import pandas as pd

from benchmarks._common import command_line, keep

BASE = "import sklearn, torch"
IMPORTS = (
    BASE,
    "import fairconstrained",
    "from fairconstrained import GroupLossClassifier",
    "from fairconstrained import *",
)


def seconds(code: str) -> tuple[float, float]:
    """Processor and wall-clock seconds of an interpreter that runs the code."""
    caching = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=caching)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def table(repeats: int) -> pd.DataFrame:
    """Medians by import, of runs in turns after one that writes the bytecode."""
    for code in IMPORTS:
        seconds(code)
    runs = pd.DataFrame(
        [(code, *seconds(code)) for _ in range(repeats) for code in IMPORTS], columns=["import", "seconds", "wall"]
    )
    found = runs.groupby("import", sort=False).median()
    found.insert(1, "beyond", found["seconds"] - found.loc[BASE, "seconds"])
    return found.reset_index()


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSV and print it."""
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=9, help="runs of every import")
    options = parser.parse_args(arguments)
    found = table(options.repeats)
    keep(found, "import_time", options, shown=found.round(2))


if __name__ == "__main__":
    main()
