"""``python -m benchmarks.loss_parity``: the paper's experiment, and what `LossParityClassifier` promises.

``--only runs`` (many runs of half a minute of processor time) does what is missing in
``benchmarks/results/loss_parity.csv``: stop it whenever you like. ``--only throughput,ghost,groups,crossed,auto``
measures the promises, each a CSV of its own. ``--plots`` draws what there is, and ``--docs`` also puts figures and
tables where the documentation takes them from. ``--quick`` is a run of a few minutes with files of its own, to see that
everything works; its numbers mean nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from benchmarks._common import RESULTS, add_names, command_line, missing, parsed, publish, save, significant
from benchmarks._figures import drawn
from benchmarks._runner import read, run_all, without_missing
from benchmarks.loss_parity.constraints import CONSTRAINTS
from benchmarks.loss_parity.datasets import DATASETS, SPLITS
from benchmarks.loss_parity.figures import draw_all, draw_steps
from benchmarks.loss_parity.methods import METHODS
from benchmarks.loss_parity.promises import auto, crossed, ghost, groups, throughput
from benchmarks.loss_parity.tables import same_seeds, with_limit, with_shares, write_tables
from benchmarks.loss_parity.tasks import (
    COLUMNS,
    N_SEEDS,
    all_tasks,
    histories,
    probabilities,
    run_task,
    time_limits,
)

#: Functions that measure the promises, each with the modules without which it is left out. They return tables by name;
#: a quick run computes these from few data.
PROMISES = {
    "throughput": (throughput.measure, "humancompatible.train"),
    "ghost": (ghost.measure, "clarabel"),
    "groups": (groups.measure,),
    "crossed": (crossed.measure,),
    "auto": (auto.measure,),
}
QUICK = {"seeds": 1, "seconds": 2.0}


def _arguments() -> argparse.Namespace:
    parser = command_line(__doc__, "one seed, two seconds a run, little data", jobs=1, plots=True)
    everything = [*PROMISES, "runs"]
    folders = {
        "datasets": list(DATASETS),
        "splits": list(SPLITS),
        "constraints": list(CONSTRAINTS),
        "methods": list(METHODS),
    }
    chosen = folders | {"constraints": ["demographic_parity"]}
    add_names(parser, "--only", everything)
    for name, known in folders.items():
        add_names(parser, f"--{name}", known, chosen[name])
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--seconds", type=float, help="processor time of a run that does not end by itself")
    arguments = parsed(parser)
    defaults = QUICK if arguments.quick else {"seeds": N_SEEDS}
    for name, value in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    return arguments


def main() -> None:
    arguments = _arguments()
    stem = "loss_parity_quick" if arguments.quick else "loss_parity"
    path, limits = RESULTS / f"{stem}.csv", time_limits(arguments.seconds)
    if not arguments.plots:
        reasons = {name: missing(requires) for name, (_, *requires) in PROMISES.items() if name in arguments.only}
        for name in without_missing(reasons):
            for table, frame in PROMISES[name][0](arguments.quick).items():
                save(significant(frame), f"{stem}_{table}")
        if "runs" in arguments.only:
            chosen = (arguments.datasets, arguments.splits, arguments.constraints, arguments.methods)
            tasks = all_tasks(chosen, arguments.seeds, limits, stem)
            run_all(tasks, run_task, path, COLUMNS, arguments.jobs, lambda method: missing(METHODS[method].requires))
    figures = _show(with_limit(read(path, COLUMNS), limits), stem)
    if arguments.docs:
        publish(figures, stem, without=("history",), is_new=not arguments.plots)


def _show(results: pd.DataFrame, stem: str) -> list[Path]:
    """Write tables and figures; returns the figures."""
    figures = drawn({"groups": ("groups", draw_steps)}, RESULTS, stem)
    if len(results):
        shown = same_seeds(results)
        tables = {
            "results": shown,
            "histories": histories(shown, stem),
            "probabilities": probabilities(shown, stem),
        }
        save(tables["histories"], f"{stem}_history", show=False)
        write_tables(with_shares(results, histories(results, stem)), RESULTS, stem)
        figures += draw_all(tables, RESULTS, stem)
    return figures


if __name__ == "__main__":
    main()
