"""``python -m benchmarks.trial``: random problems, bad inputs, interruptions and drop-in cases, judged from outside.

Every problem follows from its seed, which the results show: ``--seeds 17:18`` runs one of them again. The gaps and
objectives of the fitted models are computed by plain numpy code that uses nothing of the package, and what breaks a
promise is counted; the exit status is 1 if anything does. ``--only`` chooses among ``problems``, ``bad_inputs``,
``interruptions`` and ``drop_in``.

Results go to ``benchmarks/results/trial*.csv`` one after another, and a run does what is missing. Those of other code
belong in other files: ``--stem after``, or ``--fresh`` to begin again, as ``--quick`` always does. ``--docs`` also puts
the summary where the documentation takes it from. Two problems at a time slow each other down: ``--again 4 --jobs 1``
runs those that took more than four seconds once more, one at a time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from benchmarks._common import RESULTS, add_names, command_line, parsed, set_threads, to_docs
from benchmarks._runner import read, run_all
from benchmarks.trial.judgements import COLUMNS
from benchmarks.trial.parts import PARTS, run_part
from benchmarks.trial.tasks import QUICK_SEEDS, Task, of_part, run_task, summary

_N_PROBLEMS = 2000


def _seeds(text: str) -> list[int]:
    first, _, last = text.partition(":")
    return list(range(int(first), int(last)))


def _problems(seeds: list[int], path: Path, jobs: int) -> pd.DataFrame:
    print(f"problems of the seeds {seeds[0]} to {seeds[-1]} ({len(seeds)}), results in {path.name}")
    run_all([Task(seed) for seed in seeds], run_task, path, COLUMNS, jobs)
    results = read(path, COLUMNS)
    return summary(results[results["seed"].isin(seeds)], len(seeds))


def forget_slow(path: Path, seconds: float) -> None:
    """Remove the results of the problems that took longer, so that they run again."""
    results = read(path, COLUMNS)
    results[~(results["cpu_seconds"] > seconds)].to_csv(path, index=False)


def main() -> int:
    parser = command_line(__doc__, "a fixed part of all cases, in about two minutes", jobs=2)
    choices = ["problems", *PARTS]
    add_names(parser, "--only", choices)
    parser.add_argument("--seeds", type=_seeds, default=list(range(_N_PROBLEMS)), help="first:last, without the last")
    parser.add_argument("--stem", default="trial", help="first part of the names of the results' files")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--again", type=float, metavar="SECONDS", help="run the problems that took longer once more")
    arguments = parsed(parser)
    stem = f"{arguments.stem}_quick" if arguments.quick else arguments.stem
    paths = {part: RESULTS / (f"{stem}.csv" if part == "problems" else f"{stem}_{part}.csv") for part in choices}
    if arguments.fresh or arguments.quick:
        for part in arguments.only:
            paths[part].unlink(missing_ok=True)
    if arguments.again is not None:
        forget_slow(paths["problems"], arguments.again)
    set_threads(1)
    tables = []
    if "problems" in arguments.only:
        tables.append(
            _problems(list(QUICK_SEEDS) if arguments.quick else arguments.seeds, paths["problems"], arguments.jobs)
        )
    for part in PARTS:
        if part in arguments.only:
            results = run_part(part, paths[part], arguments.quick)
            tables.append(of_part(PARTS[part].promise, results))
    table = pd.concat(tables, ignore_index=True)
    path = RESULTS / f"{stem}_summary.csv"
    table.to_csv(path, index=False)
    print(table.to_string(index=False, max_colwidth=100))
    if arguments.docs:
        to_docs(table, "trial")
    # continuous integration shares its cores, so that the short form shows seconds and does not judge them
    judged = table[~table["promise"].str.contains("seconds")] if arguments.quick else table
    return int(judged["broken"].sum() > 0)


if __name__ == "__main__":
    sys.exit(main())
