"""The experiments: which tasks there are, and what runs one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from benchmarks.partial_fairness.cases import ALL_CASES, CASES, FULL, LARGE_CASES, NOTIONS, Interval
from benchmarks.partial_fairness.convergence import METHODS as SOLVERS
from benchmarks.partial_fairness.convergence import run_convergence
from benchmarks.partial_fairness.tasks import (
    OURS,
    PAPERS_SETTING,
    STOCHASTIC,
    UNCONSTRAINED,
    Row,
    Task,
    run_method,
    run_scores,
)

#: Seeds of the splits.
N_SEEDS = 5
#: The paper's objective, and the one of ours that is closer to the error rate.
FRONT_SETTINGS = (PAPERS_SETTING, "truncated 1e-4")
#: Where decisions are compared, also the error rate itself, as Fairlearn's reduction minimises it.
DECISION_SETTINGS = {"pSP": (), "pDP": ("zero-one 1e-4",)}
FAIRLEARN_BOUNDS = (0.15, 0.1, 0.05, 0.02, 0.01)
PAIRWISE = ("group_auc", "inter_group", "intra_group")
#: Rows of every part of CelebA: a network on all 121,559 training rows takes 40 seconds to three minutes a fit.
CELEBA_ROWS = 20_000
#: Kappas of stochastic IDCA there, which takes a minute and more a fit.
STOCHASTIC_KAPPAS = (0.1, 0.02)
#: Bounds of the pairwise baselines among which section G.6 looks for an accuracy like ours.
ROBUST_BOUNDS = (0.1, 0.3, 0.7, 1.5, 2.7, 4.2, 7.0)
#: Those of table 2, for which the paper names none.
ACS_BOUNDS = (0.1, 0.5, 1.5, 4.0)
#: Evaluations of all rows for the solvers of figures 10 and 11: as many as the paper tunes with, 50 subproblems of 150,
#: and as many as it shows.
N_SHORT, N_LONG = 7_500, 50_000


class Experiment(NamedTuple):
    """An experiment: its title, its tasks for one seed, and the function that runs one of them.

    ``seeds`` is the number of seeds that it is run for.
    """

    title: str
    tasks: Callable[[int], Iterator[Task]]
    run: Callable[[Task], list[Row]] = run_method
    seeds: int = N_SEEDS


def ours(experiment: str, data: str, notion: str, kappa: float, seed: int, **options: Any) -> Task:
    """A task of our estimator on the interval of the data set."""
    interval = ALL_CASES[data].interval
    task = Task(experiment, data, notion, OURS, kappa, seed, interval, (interval,))
    return replace(task, **options)


def pareto(seed: int) -> Iterator[Task]:
    """Figure 1 without the regularisation: every method at its published parameters, ours in both forms."""
    for (name, case), notion in product(CASES.items(), NOTIONS):
        settings = (*FRONT_SETTINGS, *DECISION_SETTINGS[notion])
        for kappa, setting in product((UNCONSTRAINED, *case.kappas[notion]), settings):
            yield ours("pareto", name, notion, kappa, seed, setting=setting)
            if kappa != UNCONSTRAINED:
                yield ours("pareto", name, notion, kappa, seed, setting=setting, normalize=True)
        for (method, its_notion), parameters in case.baselines.items():
            if its_notion == notion and method in PAIRWISE:
                for parameter in parameters:
                    yield replace(ours("pareto", name, notion, parameter, seed), method=method)
    for name, bound in product(CASES, FAIRLEARN_BOUNDS):
        yield replace(ours("pareto", name, "both", bound, seed), method="exponentiated_gradient")


def regularised(seed: int) -> Iterator[Task]:
    """The regularisation of figure 1, which takes longer than all the rest of it."""
    for name, case in CASES.items():
        for notion in NOTIONS:
            for weight in case.baselines["regularised", notion]:
                yield ours("regularised", name, notion, weight, seed, method="regularised", normalize=True)


def scores(seed: int) -> Iterator[Task]:
    """Figures 2 to 8: scores of the test part."""
    for (name, case), notion in product(CASES.items(), NOTIONS):
        yield ours("scores", name, notion, UNCONSTRAINED, seed)
        for kappa, normalize in product(case.curves[notion], (False, True)):
            yield ours("scores", name, notion, kappa, seed, normalize=normalize)


def robustness(seed: int) -> Iterator[Task]:
    """Figure 9: other intervals, and baselines of similar accuracy."""
    for name, case in CASES.items():
        for interval in case.intervals:
            here: dict[str, tuple[Interval, ...] | Interval] = {"interval": interval, "measured": (interval,)}
            yield ours("robustness", name, "pSP", case.robust_kappa, seed, **here)
            yield ours("robustness", name, "pSP", case.robust_weight, seed, method="regularised", **here)
        for method, bound in product(PAIRWISE, ROBUST_BOUNDS):
            yield ours("robustness", name, "pSP", bound, seed, method=method, measured=case.intervals)


def _solvers(experiment: str, data: str, notion: str, seed: int, n_evaluations: int) -> Iterator[Task]:
    kappa = CASES[data].kappas[notion][2]
    for solver in SOLVERS:
        yield ours(experiment, data, notion, kappa, seed, method=solver, normalize=True, max_iter=n_evaluations)


def convergence(seed: int) -> Iterator[Task]:
    """Figures 10 and 11 at the length of the paper's tuning, the smallest data set first."""
    for name, notion in product(sorted(CASES, reverse=True), NOTIONS):
        yield from _solvers("convergence", name, notion, seed, N_SHORT)


def convergence_long(seed: int) -> Iterator[Task]:
    """Figure 10 at its length, the smallest data set first."""
    for name in sorted(CASES, reverse=True):
        yield from _solvers("convergence_long", name, "pSP", seed, N_LONG)


def full(seed: int) -> Iterator[Task]:
    """Table 3: constraints on all ranks, with levels as far apart as those of the partial ones."""
    for name, case in CASES.items():
        levels = round(10 / (case.interval[1] - case.interval[0]))
        for kappa in case.kappas["pSP"]:
            yield ours("pareto", name, "pSP", kappa, seed)
            yield ours("full", name, "pSP", kappa, seed, interval=FULL, levels=levels)


def levels(seed: int) -> Iterator[Task]:
    """Table 4: twenty levels to begin with."""
    for name, case in CASES.items():
        for kappa in case.kappas["pSP"]:
            yield ours("pareto", name, "pSP", kappa, seed)
            yield ours("levels", name, "pSP", kappa, seed, levels=20)


def published(seed: int) -> Iterator[Task]:
    """Kappas between those of the experiment "pareto", for the comparison with the published figures."""
    for name, case in CASES.items():
        for setting, kappa in product(FRONT_SETTINGS, case.more_kappas):
            yield ours("published", name, "pSP", kappa, seed, setting=setting)


def celeba(seed: int) -> Iterator[Task]:
    """Figure 12 on the attribute table: partial parity with 10 and 50 levels, full parity with 50, by two solvers."""
    case = LARGE_CASES["celeba"]
    shared = {"setting": "MLP", "rows": CELEBA_ROWS}
    yield ours("celeba", "celeba", "pSP", UNCONSTRAINED, seed, **shared)
    for kappa in sorted(case.kappas["pSP"], key=lambda kappa: kappa not in STOCHASTIC_KAPPAS):
        for interval, levels in ((case.interval, 10), (case.interval, 50), (FULL, 50)):
            task = ours("celeba", "celeba", "pSP", kappa, seed, interval=interval, levels=levels, **shared)
            yield task
            if kappa in STOCHASTIC_KAPPAS:
                yield replace(task, method=STOCHASTIC)


def acs(seed: int) -> Iterator[Task]:
    """Table 2 on a sample of the rows."""
    for kappa in (UNCONSTRAINED, *LARGE_CASES["acs_income"].kappas["pSP"]):
        yield ours("acs", "acs_income", "pSP", kappa, seed)
    for method, bound in product(PAIRWISE, ACS_BOUNDS):
        yield ours("acs", "acs_income", "pSP", bound, seed, method=method)


EXPERIMENTS = {
    "pareto": Experiment("Pareto fronts (figure 1)", pareto),
    "regularised": Experiment("the regularisation of figure 1", regularised),
    "full": Experiment("full against partial parity (table 3)", full),
    "levels": Experiment("10 and 20 levels (table 4)", levels),
    "scores": Experiment("positive-rate curves and densities (figures 2 to 8)", scores, run_scores, seeds=1),
    "celeba": Experiment("an MLP on CelebA's attributes (figure 12)", celeba),
    "acs": Experiment("ACS income (table 2)", acs),
    "robustness": Experiment("other intervals (figure 9)", robustness),
    "published": Experiment("more kappas, for the published accuracies", published),
    "convergence": Experiment("IDCA and switching subgradient (figures 10 and 11)", convergence, run_convergence),
    "convergence_long": Experiment("figure 10 with 50,000 evaluations", convergence_long, run_convergence),
}

#: Of a quick run: rows in every part, iterations of what has no stopping rule.
QUICK_ROWS = 2500
QUICK_ITER = {"regularised": 100, STOCHASTIC: 2, **dict.fromkeys(SOLVERS, 1500)}


#: Of the results; a row has those that its experiment knows.
COLUMNS = (
    "task",
    "experiment",
    "data",
    "notion",
    "normalize",
    "method",
    "setting",
    "parameter",
    "trained_on",
    "interval",
    "levels",
    "seed",
    "status",
    "failed",
    "seconds",
    "evaluations",
    "objective",
    "surrogate_violation",
    "value",
    *(f"{part}_{value}" for part in ("train", "val", "test") for value in ("accuracy", "gap", "rank_gap")),
    "group",
    "rank",
    "score",
)


def run_task(task: Task) -> list[Row]:
    """The rows of a task of any experiment."""
    return EXPERIMENTS[task.experiment].run(task)


def all_tasks(names: list[str], seeds: int, quick: bool) -> list[Task]:
    """The tasks of some experiments, seed 0 of everything first; two that need the same fit share it."""
    found = [
        task
        for seed in range(1 if quick else seeds)
        for name in names
        if seed < EXPERIMENTS[name].seeds
        for task in EXPERIMENTS[name].tasks(seed)
    ]
    found = list(dict.fromkeys(found))
    return _quick(found) if quick else found


def _quick(tasks: list[Task]) -> list[Task]:
    """Few rows, and of the tasks that differ in their parameter only the first and the middle one."""
    alike: dict[Task, list[Task]] = {}
    for task in tasks:
        alike.setdefault(replace(task, parameter=0.0), []).append(task)
    return [
        replace(task, rows=QUICK_ROWS, max_iter=QUICK_ITER.get(task.method))
        for group in alike.values()
        for task in dict.fromkeys((group[0], group[len(group) // 2]))
    ]
