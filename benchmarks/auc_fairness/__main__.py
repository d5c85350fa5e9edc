"""``python -m benchmarks.auc_fairness``: the fronts of the AUC fairness paper, and what `AUCFairClassifier` promises.

The fronts are many fits: results go to ``benchmarks/results/auc_fairness.csv``, one after another, and a run does what
is missing. ``--only presets,moments,rows,stream,acs`` measures the promises instead, each a CSV of its own. ``--plots``
draws what there is, and ``--docs`` also puts figures and tables where the documentation takes them from.
"""

from __future__ import annotations

from benchmarks._common import RESULTS, add_names, command_line, parsed, publish, save, significant
from benchmarks._figures import drawn
from benchmarks._runner import read, run_all
from benchmarks.auc_fairness.figures import draw_fronts, draw_rows, write_tables
from benchmarks.auc_fairness.methods import CASES, METHODS, MODELS
from benchmarks.auc_fairness.promises import PROMISES
from benchmarks.auc_fairness.tasks import COLUMNS, N_SEEDS, all_tasks, run_task


def main() -> None:
    parser = command_line(__doc__, "few rows, one seed, few parameters: to see that it works", jobs=2, plots=True)
    choices = [*PROMISES, "fronts"]
    add_names(parser, "--only", choices)
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    add_names(parser, "--models", MODELS)
    add_names(parser, "--methods", METHODS)
    add_names(parser, "--data", CASES)
    arguments = parsed(parser)
    stem = "auc_fairness_quick" if arguments.quick else "auc_fairness"
    path = RESULTS / f"{stem}.csv"
    if not arguments.plots:
        for name in PROMISES:
            if name in arguments.only and not arguments.quick:
                save(significant(PROMISES[name]()), f"auc_fairness_{name}")
        if "fronts" in arguments.only:
            tasks = all_tasks(arguments.seeds, arguments.models, arguments.methods, arguments.data, arguments.quick)
            run_all(tasks, run_task, path, COLUMNS, arguments.jobs)
    results = read(path, COLUMNS)
    figures = [*draw_fronts(results, RESULTS, stem), *drawn({"rows": ("rows", draw_rows)}, RESULTS, "auc_fairness")]
    if len(results):
        write_tables(results, RESULTS, stem)
    if arguments.docs:
        publish(figures, "auc_fairness", is_new=not arguments.plots)


if __name__ == "__main__":
    main()
