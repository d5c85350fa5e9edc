"""``python -m benchmarks.partial_fairness``: runs the experiments and draws them.

Results go to ``benchmarks/results/partial_fairness.csv``, one task after another: stop it whenever you like, the next
run does what is missing. The figures and tables are made from that file alone, and ``--docs`` also puts them where the
documentation takes them from. ``--quick`` is a run of a few minutes on few rows, with files of its own, to see that
everything works; its figures mean nothing.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks._common import RESULTS, command_line, names_of, parsed
from benchmarks._runner import read, run_all
from benchmarks.manifest import recorded
from benchmarks.partial_fairness.experiments import COLUMNS, EXPERIMENTS, N_SEEDS, all_tasks, run_task
from benchmarks.partial_fairness.figures import draw_all
from benchmarks.partial_fairness.page import write_sections
from benchmarks.partial_fairness.tables import write_tables

DOCS = Path(__file__).parents[2] / "docs"


def main() -> None:
    parser = command_line(__doc__, "few rows, one seed, two parameters of every list", jobs=2, plots=True)
    titles = "; ".join(f"{name}: {experiment.title}" for name, experiment in EXPERIMENTS.items())
    parser.add_argument("--only", type=names_of(EXPERIMENTS), default=list(EXPERIMENTS), help=titles)
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    arguments = parsed(parser)
    stem = "partial_fairness_quick" if arguments.quick else "partial_fairness"
    path = RESULTS / f"{stem}.csv"
    if not arguments.plots:
        tasks = all_tasks(arguments.only, arguments.seeds, arguments.quick)
        run_all(tasks, run_task, path, COLUMNS, arguments.jobs)
    results = read(path, COLUMNS)
    write_tables(results, RESULTS, stem)
    draw_all(results, RESULTS, stem)
    if arguments.docs:
        with recorded("partial_fairness", is_new=not arguments.plots):
            write_tables(results, DOCS / "benchmarks", stem)
        draw_all(results, DOCS / "images", stem)
        write_sections(DOCS, stem)


if __name__ == "__main__":
    main()
