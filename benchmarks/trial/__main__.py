"""``python -m benchmarks.trial``: random problems for all estimators, judged apart from the package.

Every problem follows from its seed, which the results show: ``--seeds 17:18`` runs one of them again. The gaps and
objectives of the fitted models are computed by plain numpy code that uses nothing of the package, and what breaks a
promise is counted; the exit status is 1 if anything does.

The problems are many fits: results go to ``benchmarks/results/trial.csv`` one after another, and a run does what is
missing. Results of other code belong in another file: ``--stem trial_after``, or ``--fresh`` to begin again.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks._common import RESULTS
from benchmarks._runner import read, run_all
from benchmarks.trial.judgements import COLUMNS
from benchmarks.trial.tasks import Task, run_task, summary

_N_PROBLEMS = 2000


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=_seeds, default=range(_N_PROBLEMS), help="first:last, without the last")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--stem", default="trial", help="first part of the names of the results' files")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    path = RESULTS / f"{arguments.stem}.csv"
    if arguments.fresh:
        path.unlink(missing_ok=True)
    seeds = arguments.seeds
    print(f"seeds {seeds.start} to {seeds.stop - 1}, results in {path.name}")
    run_all([Task(seed) for seed in seeds], run_task, path, COLUMNS, arguments.jobs)
    results = read(path, COLUMNS)
    results = results[results["seed"].isin(seeds)]
    table = summary(results, len(seeds))
    print(table.to_string(index=False))
    return int(table["broken"].sum() > 0)


if __name__ == "__main__":
    sys.exit(main())
