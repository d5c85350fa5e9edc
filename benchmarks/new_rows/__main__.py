"""``python -m benchmarks.new_rows``: gaps on rows that no fit has seen, by data set, notion and method.

Does what is missing in ``benchmarks/results/new_rows_raw.csv``, and begins with the copy in the documentation where
there is none: stop it whenever you like. ``--data``, ``--notions``, ``--methods``, ``--kappas`` and ``--seeds``
choose a part. ``--promise`` runs the second part instead, draws from known populations, ``--estimators`` the third,
the bounds of the other estimators, and ``--other-tables`` the fourth, tables that nobody has worked with. ``--plots``
draws what there is, and ``--docs`` also puts the figure and the tables where the documentation takes them from.
``--quick`` takes small generated data sets, to see that everything works; its numbers mean nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from benchmarks._common import (
    RESULTS,
    add_names,
    parsed,
    parser_of_splits,
    publish,
    save,
    save_tables,
    significant,
)
from benchmarks._runner import results_of
from benchmarks.any_model.data import QUICK
from benchmarks.any_model.notions import NOTIONS
from benchmarks.new_rows import estimators, populations
from benchmarks.new_rows.figures import draw_all
from benchmarks.new_rows.methods import DATA, METHODS, SAMPLES
from benchmarks.new_rows.other_tables import OTHER_TABLES
from benchmarks.new_rows.tables import cells, kept, write_tables
from benchmarks.new_rows.tasks import COLUMNS, KAPPAS, all_tasks, run_task

#: Splits of a whole run.
N_SPLITS = 10
#: Methods whose gaps are measured on other tables.
METHODS_OF_OTHERS = ("default", "two_regressions", "reduction", "network")
QUICK_NOTIONS, QUICK_METHODS = ("demographic_parity",), ("before", "default", "promise", "two_regressions")


def _arguments() -> argparse.Namespace:
    parser = parser_of_splits(__doc__, N_SPLITS)
    add_names(parser, "--data", [*DATA, *SAMPLES, *QUICK], DATA)
    add_names(parser, "--notions", NOTIONS)
    add_names(parser, "--methods", METHODS)
    parser.add_argument("--kappas", default=",".join(map(str, KAPPAS)))
    parser.add_argument("--draws", type=int, default=populations.N_DRAWS, help="of every population and size")
    parser.add_argument("--promise", action="store_true", help="draws from known populations")
    parser.add_argument("--estimators", action="store_true", help="bounds of the other estimators")
    parser.add_argument("--other-tables", action="store_true", help="tables that nobody has worked with")
    arguments = parsed(parser)
    arguments.kappas = [float(kappa) for kappa in arguments.kappas.split(",")]
    arguments.sizes, arguments.of_estimators = populations.SIZES, estimators.DATA
    if arguments.quick:
        arguments.data, arguments.seeds, arguments.kappas = QUICK, range(1), KAPPAS[:1]
        arguments.notions, arguments.methods = QUICK_NOTIONS, QUICK_METHODS
        arguments.sizes, arguments.draws = populations.SIZES[:1], 1
        arguments.of_estimators = estimators.QUICK_DATA
    return arguments


def main() -> None:
    arguments = _arguments()
    stem = "new_rows_quick" if arguments.quick else "new_rows"
    figures: list[Path] = []
    if arguments.promise:
        tasks = populations.all_draws(arguments.sizes, arguments.draws)
        draws = results_of(f"{stem}_draws.csv", tasks, populations.run_draw, populations.COLUMNS, arguments)
        if len(draws):
            save(significant(populations.summary(draws)), f"{stem}_promise")
    elif arguments.estimators:
        fits = estimators.all_fits(arguments.of_estimators, arguments.seeds, 1 if arguments.quick else None)
        measured = results_of(f"{stem}_fits.csv", fits, estimators.run_fit, estimators.COLUMNS, arguments)
        if len(measured):
            save(significant(estimators.summary(measured)), f"{stem}_estimators")
    elif arguments.other_tables:
        chosen = (list(OTHER_TABLES), arguments.notions, METHODS_OF_OTHERS, arguments.seeds, arguments.kappas)
        measured = results_of(f"{stem}_other_raw.csv", all_tasks(*chosen), run_task, COLUMNS, arguments)
        if len(measured):
            save_tables({"other": kept(cells(measured)), "other_cells": cells(measured)}, stem, show="other")
    else:
        chosen = (arguments.data, arguments.notions, arguments.methods, arguments.seeds, arguments.kappas)
        figures = _show(results_of(f"{stem}_raw.csv", all_tasks(*chosen), run_task, COLUMNS, arguments), stem)
    if arguments.docs:
        publish(figures, stem, is_new=not arguments.plots)


def _show(results: pd.DataFrame, stem: str) -> list[Path]:
    """Write tables and the figure; returns the figure."""
    if results.empty:
        return []
    tables = write_tables(results)
    save_tables(tables, stem, show="kept")
    return draw_all(tables["cells"], RESULTS, stem)


if __name__ == "__main__":
    main()
