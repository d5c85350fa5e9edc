"""``python -m benchmarks.notions``: every notion of rates against Fairlearn, OxonFair and AIF360.

Does what is missing in ``benchmarks/results/notions_raw.csv``, and begins with the copy in the documentation where
there is none: stop it whenever you like. ``--data``, ``--notions``, ``--methods`` and ``--seeds`` choose a part; a name
such as "adult_whole" takes all training rows. Methods of packages that are not installed are left out. ``--plots``
draws what there is, and ``--docs`` also puts the figure and the tables where the documentation takes them from.
``--quick`` takes one small generated data set, to see that everything works; its numbers mean nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from benchmarks._common import RESULTS, add_names, parsed, parser_of_splits, publish, save_tables
from benchmarks._runner import results_of
from benchmarks.any_model.data import QUICK
from benchmarks.notions.catalogue import ENTRIES, WHOLE
from benchmarks.notions.figures import draw_all
from benchmarks.notions.setting import STRATA
from benchmarks.notions.tables import write_tables
from benchmarks.notions.tasks import COLUMNS, METHODS, PEERS, all_tasks, lacks, run_task

#: Splits of a whole run.
N_SPLITS = 5
DATA = [name for name in STRATA if name not in QUICK]
#: Parts of a quick run: all methods but those that are there for their seconds.
QUICK_NOTIONS = ("demographic_parity", "demographic_parity_ratio")
QUICK_METHODS = tuple(
    name
    for name, method in (METHODS | PEERS).items()
    if name not in ("linear_errors", "linear_estimate") and {*QUICK_NOTIONS} & {*method.notions}
)


def _arguments() -> argparse.Namespace:
    parser = parser_of_splits(__doc__, N_SPLITS)
    methods = list(METHODS | PEERS)
    data = [*STRATA, *(name + WHOLE for name in DATA)]
    add_names(parser, "--data", data, DATA)
    add_names(parser, "--notions", ENTRIES)
    add_names(parser, "--methods", methods)
    arguments = parsed(parser)
    if arguments.quick:
        arguments.data, arguments.seeds, arguments.notions = QUICK, range(1), QUICK_NOTIONS
        arguments.methods = [name for name in arguments.methods if name in QUICK_METHODS]
    return arguments


def main() -> None:
    arguments = _arguments()
    stem = "notions_quick" if arguments.quick else "notions"
    tasks = all_tasks(arguments.data, arguments.notions, arguments.methods, arguments.seeds)
    figures = _show(results_of(f"{stem}_raw.csv", tasks, run_task, COLUMNS, arguments, lacks), stem)
    if arguments.docs:
        publish(figures, stem, is_new=not arguments.plots)


def _show(results: pd.DataFrame, stem: str) -> list[Path]:
    """Write tables and the figure; returns the figure."""
    if results.empty:
        return []
    tables = write_tables(results)
    save_tables(tables, stem, show="summary")
    return draw_all(tables, RESULTS, stem)


if __name__ == "__main__":
    main()
