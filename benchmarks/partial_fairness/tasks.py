"""A task: one fit of one method on one split, and what is measured of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

from benchmarks._runner import Row, TaskOfFields
from benchmarks.partial_fairness.cases import ALL_CASES, Interval, split, standardised
from fairconstrained import PairwiseParityClassifier, PartialParityClassifier, RegularizedParityClassifier
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.metrics import granularity, partial_demographic_parity_gap, partial_statistical_parity_gap

#: The parameter that stands for "no constraint".
UNCONSTRAINED = 1.0
OURS = "partial_parity"
PARITY = {"pSP": "statistical_parity", "pDP": "demographic_parity"}
GAPS = {"pSP": partial_statistical_parity_gap, "pDP": partial_demographic_parity_gap}
#: Steps of the regularisation, of which the least penalised objective decides, and iterations for each. The steps of a
#: run sum up to 50 and 200; those of the paper, 15,000 to 80,000 iterations of at most 5e-3, to at most 75 to 400.
REGULARISED_STEPS = (5e-2, 2e-1)
REGULARISED_ITER = 1000
STOCHASTIC = "stochastic_idca"
STOCHASTIC_OPTIONS = {"batch_size": 64, "max_outer": 12, "select": "last"}
#: Scores kept of every group for the curves and densities, evenly spaced by rank.
N_QUANTILES = 200

Scores = Callable[[Any, np.ndarray], np.ndarray]


class Setting(NamedTuple):
    """Objective, its l2 penalty and the model; alphas from 1e-5 to 1e-2 were tried with every objective."""

    objective: str = "logistic"
    alpha: float = 1e-4
    group_interactions: bool = True
    hidden_layer_sizes: tuple[int, ...] | None = None


SETTINGS = {
    "logistic 1e-4": Setting(),
    "logistic 1e-3": Setting(alpha=1e-3),
    "truncated 1e-5": Setting("truncated_logistic", 1e-5),
    "truncated 1e-4": Setting("truncated_logistic"),
    "zero-one 1e-4": Setting("zero_one"),
    "zero-one 1e-3": Setting("zero_one", 1e-3),
    "plain truncated 1e-4": Setting("truncated_logistic", group_interactions=False),
    "MLP": Setting(group_interactions=False, hidden_layer_sizes=(16,)),
}
#: The paper's objective and model; it has no l2 penalty and stops early instead.
PAPERS_SETTING = "logistic 1e-4"


@dataclass(frozen=True)
class Task(TaskOfFields):
    """One fit.

    Attributes
    ----------
    experiment, data, notion, method, setting : str
        Names; ``setting`` is a key of `SETTINGS`.
    parameter : float
        kappa, the weight of a penalty, or Fairlearn's bound.
    seed : int
        Seed of the split.
    interval : Interval
        Interval in training.
    measured : tuple of Interval
        Intervals that the gaps are measured on, one row each.
    levels : int or None
        Number of levels to begin with, None for the default.
    rows : int or None
        Largest number of rows in every part.
    max_iter : int or None
        Iterations of the method, None for its own default.
    normalize : bool
        Whether the gap is divided by the interval's length in training, as in eqs. 15 and 21; False is the rank gap.
    """

    no_columns: ClassVar[tuple[str, ...]] = ("interval", "measured", "rows", "max_iter")

    experiment: str
    data: str
    notion: str
    method: str
    parameter: float
    seed: int
    interval: Interval
    measured: tuple[Interval, ...]
    setting: str = PAPERS_SETTING
    levels: int | None = None
    rows: int | None = None
    max_iter: int | None = None
    normalize: bool = False

    @property
    def columns(self) -> Row:
        """Columns that all rows of the task share."""
        return super().columns | {"trained_on": f"{self.interval[0]:g}-{self.interval[1]:g}"}


class Split(NamedTuple):
    """A data set, its parts, and the features for this split."""

    X: Any
    y: np.ndarray
    groups: np.ndarray
    parts: dict[str, np.ndarray]

    @classmethod
    def of(cls, task: Task) -> Split:
        """The split that the task names."""
        case = ALL_CASES[task.data]
        table = case.load()
        parts = split(case, table, task.seed, task.rows)
        return cls(standardised(table.X, parts["train"]), table.y, table.groups, parts)


def _ours(task: Task, **options: Any) -> Any:
    kappa = None if task.parameter == UNCONSTRAINED else task.parameter
    return PartialParityClassifier(
        kappa,
        interval=task.interval,
        constraint=PARITY[task.notion],
        normalize=task.normalize,
        n_levels=task.levels or "auto",
        max_iter=task.max_iter,
        random_state=task.seed,
        **SETTINGS[task.setting]._asdict(),
        **options,
    )


def _stochastic(task: Task) -> Any:
    """The paper's method for networks: IDCA on mini-batches of 64, the ramp of width 1, no choice among iterates."""
    return _ours(task, solver=STOCHASTIC, solver_options=STOCHASTIC_OPTIONS, surrogate="ramp", surrogate_width=1.0)


def _pairwise(notion: str) -> Callable[[Task], Any]:
    def build(task: Task) -> Any:
        setting = SETTINGS[task.setting]
        return PairwiseParityClassifier(
            task.parameter,
            notion=notion,
            objective=setting.objective,
            alpha=setting.alpha,
            group_interactions=setting.group_interactions,
            max_iter=task.max_iter,
        )

    return build


def _regularised(task: Task) -> Any:
    setting = SETTINGS[task.setting]
    return RegularizedParityClassifier(
        task.parameter,
        interval=task.interval,
        constraint=PARITY[task.notion],
        # the paper's penalty is on the gap divided by the interval's length, whichever gap is measured
        normalize=True,
        objective=setting.objective,
        alpha=setting.alpha,
        group_interactions=setting.group_interactions,
        solver_options={"step": REGULARISED_STEPS},
        max_iter=task.max_iter or REGULARISED_ITER,
    )


#: Our estimators by the method's name.
ESTIMATORS: dict[str, Callable[[Task], Any]] = {
    OURS: _ours,
    STOCHASTIC: _stochastic,
    "group_auc": _pairwise("group_auc"),
    "inter_group": _pairwise("inter_group"),
    "intra_group": _pairwise("intra_group"),
    "regularised": _regularised,
}


def fit(task: Task, data: Split) -> tuple[Any, float]:
    """The fitted estimator, and the seconds of processor time that it took."""
    torch.set_num_threads(1)
    model, train = ESTIMATORS[task.method](task), data.parts["train"]
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status tells
        model.fit(data.X[train], data.y[train], sensitive_features=data.groups[train])
    return model, time.process_time() - begin


def measure(task: Task, data: Split, scores: Scores, extra: Row) -> list[Row]:
    """Accuracy and gaps on all parts, one row for each interval to be measured."""
    by_part = {part: scores(data.X[rows], data.groups[rows]) for part, rows in data.parts.items()}
    table = []
    for interval in task.measured:
        row = task.columns | {"interval": f"{interval[0]:g}-{interval[1]:g}"} | extra
        for part, rows in data.parts.items():
            gap = GAPS[task.notion]
            options = {"sensitive_features": data.groups[rows], "interval": interval}
            row[f"{part}_accuracy"] = np.mean((by_part[part] > 0) == (data.y[rows] > 0))
            row[f"{part}_gap"] = gap(None, by_part[part], **options)
            row[f"{part}_rank_gap"] = gap(None, by_part[part], normalize=False, **options)
        table.append(row)
    return table


def run_fit(task: Task) -> list[Row]:
    """One of our estimators, measured; ``failed`` if the training gap exceeds kappa by more than its granularity."""
    data = Split.of(task)
    model, seconds = fit(task, data)
    status = {"status": model.status_, "evaluations": model.n_evaluations_, "objective": model.objective_}

    def scores(X: Any, groups: np.ndarray) -> np.ndarray:
        return model.decision_function(X, sensitive_features=groups)

    table = measure(task, data, scores, {**status, "seconds": seconds})
    if task.method in (OURS, STOCHASTIC):
        groups = data.groups[data.parts["train"]]
        allowed = task.parameter + granularity(groups, interval=task.interval, normalize=task.normalize) + 1e-12
        for row in table:
            row["failed"] = next(iter(model.constraint_values_.values()), 0.0) > allowed
    return table


def run_scores(task: Task) -> list[Row]:
    """The scores of the test part: `N_QUANTILES` of every group, evenly spaced by rank, the highest first."""
    data = Split.of(task)
    model, _ = fit(task, data)
    test = data.parts["test"]
    scores = model.decision_function(data.X[test], sensitive_features=data.groups[test])
    ranks = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    return [
        task.columns | {"group": group, "rank": rank, "score": score}
        for group in np.unique(data.groups[test])
        for rank, score in zip(ranks, np.quantile(scores[data.groups[test] == group], 1 - ranks), strict=True)
    ]


def run_fairlearn(task: Task) -> list[Row]:
    """Fairlearn's reduction, with the bound on the demographic parity gap.

    It returns a distribution over classifiers. For the notion pSP its score is the mean of their probabilities minus
    1/2; for pDP it decides as Fairlearn does, by a random draw for every row.
    """
    data = Split.of(task)
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()  # Fairlearn takes no sparse matrices
    train = data.parts["train"]
    model = ExponentiatedGradient(LogisticRegression(max_iter=1000), DemographicParity(difference_bound=task.parameter))
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Fairlearn on recent pandas
        model.fit(X[train], (data.y[train] > 0).astype(int), sensitive_features=data.groups[train])
    extra = {"seconds": time.process_time() - begin, "evaluations": model.n_oracle_calls_, "status": "completed"}

    def mean_probability(rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
        return sum(weight * _probability(member, rows) for weight, member in _members(model)) - 0.5

    def decision(rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
        return 2.0 * model.predict(rows, random_state=0) - 1

    dense = data._replace(X=X)
    table: list[Row] = []
    for notion, scores in (("pSP", mean_probability), ("pDP", decision)):
        rows = measure(replace(task, notion=notion), dense, scores, extra)
        table += [row | {"task": task.name} for row in rows]
    return table


def _members(model: ExponentiatedGradient) -> Iterator[tuple[float, Any]]:
    """Weights and classifiers of the distribution that it returns."""
    return ((weight, model.predictors_[t]) for t, weight in model.weights_.items() if weight > 0)


def _probability(member: Any, rows: np.ndarray) -> np.ndarray:
    """Probability of the positive class; a member may be a constant, of one class."""
    classes = list(member.classes_)
    return member.predict_proba(rows)[:, classes.index(1)] if 1 in classes else np.zeros(len(rows))


#: What runs a task of a method that is not one of our estimators.
RUNNERS: dict[str, Callable[[Task], list[Row]]] = {"exponentiated_gradient": run_fairlearn}


def run_method(task: Task) -> list[Row]:
    """Fit and measure, whatever the method."""
    return RUNNERS.get(task.method, run_fit)(task)
