"""``python -m benchmarks.any_model``: heads on boosted trees against other methods, on rows that no fit has seen.

Does what is missing in ``benchmarks/results/any_model_raw.csv``, and begins with the copy in the documentation where
there is none: stop it whenever you like. ``--data``, ``--notions``, ``--methods`` and ``--seeds`` choose a part.
FairGBM needs numpy < 2: name the Python of an environment of its own in the variable ``FAIRGBM_PYTHON``. ``--plots``
draws what there is, and ``--docs`` also puts figures and tables where the documentation takes them from. ``--quick``
takes one small generated data set, to see that everything works; its numbers mean nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pandas as pd

from benchmarks._common import RESULTS, add_names, parsed, parser_of_splits, publish, save_tables
from benchmarks._runner import results_of
from benchmarks.any_model.data import CASES, QUICK
from benchmarks.any_model.figures import draw_all
from benchmarks.any_model.notions import KAPPAS, NOTIONS
from benchmarks.any_model.peers import lacks
from benchmarks.any_model.tables import write_tables
from benchmarks.any_model.tasks import ALL_METHODS, COLUMNS, all_tasks, run_task

#: Splits of a whole run.
N_SPLITS = 10
#: Parts of a quick run: two bounds of a rate, with all methods but those that take most of the time.
QUICK_NOTIONS = ("demographic_parity",)
QUICK_BOUNDS = 2
SLOW_METHODS = ("exponentiated_gradient", "network", "head_network", "head_logistic")
QUICK_METHODS = tuple(name for name in ALL_METHODS if name not in SLOW_METHODS)


def _arguments() -> argparse.Namespace:
    parser = parser_of_splits(__doc__, N_SPLITS)
    data = [name for name in CASES if name not in QUICK]
    add_names(parser, "--data", CASES, data)
    add_names(parser, "--notions", NOTIONS)
    add_names(parser, "--methods", ALL_METHODS)
    parser.add_argument("--kappas", default=",".join(map(str, KAPPAS)), help="of methods with one fit for each bound")
    arguments = parsed(parser)
    arguments.kappas = [float(kappa) for kappa in arguments.kappas.split(",")]
    if arguments.quick:
        arguments.data, arguments.seeds, arguments.notions = QUICK, range(1), QUICK_NOTIONS
        arguments.methods = [name for name in arguments.methods if name in QUICK_METHODS]
    return arguments


def main() -> None:
    arguments = _arguments()
    stem = "any_model_quick" if arguments.quick else "any_model"
    tasks = all_tasks(arguments.data, arguments.notions, arguments.methods, arguments.seeds, arguments.kappas)
    if arguments.quick:
        tasks = (replace(task, kappas=task.kappas[:QUICK_BOUNDS]) for task in tasks)
    figures = _show(results_of(f"{stem}_raw.csv", tasks, run_task, COLUMNS, arguments, lacks), stem)
    if arguments.docs:
        publish(figures, stem, is_new=not arguments.plots)


def _show(results: pd.DataFrame, stem: str) -> list[Path]:
    """Write tables and figures; returns the figures."""
    if results.empty:
        return []
    save_tables(write_tables(results), stem, show="targets")
    return draw_all(results, RESULTS, stem)


if __name__ == "__main__":
    main()
