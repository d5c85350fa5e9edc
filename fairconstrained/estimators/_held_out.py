"""Choosing among a solver's iterates by rows that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from typing_extensions import override

from fairconstrained.callbacks import StopTraining, TrainingCallback
from fairconstrained.checks.inputs import check_group_of_every_row
from fairconstrained.checks.messages import shortened
from fairconstrained.checks.seeds import seed_of
from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators.grouping import Stratified
from fairconstrained.groups import Groups
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers import Callback, Solver, SolverResult

__all__ = ["HeldOut", "HoldsOut", "StopEarly"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that are set aside, the same share of every group and class."""

    #: Numbers of the rows that are set aside.
    rows: np.ndarray  # of shape (n_held,)
    #: X, y and weights: features, classes and weights of these rows.
    X: Any
    y: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls,
        X: Any,
        y: np.ndarray,
        sensitive_features: Any,
        sample_weight: np.ndarray,
        share: float,
        seed: int,
        overlapping: bool = False,
    ) -> Self:
        """Draw them among the rows that have a weight; raises ValueError if there are too few rows for ``share``.

        Of ``overlapping`` groups only the classes have the same share.
        """
        groups = np.zeros(len(y), dtype=int)
        sensitive_features = Stratified.of(sensitive_features).features
        if sensitive_features is not None:
            found = Groups.of(sensitive_features, overlapping)
            check_group_of_every_row(found.codes.size, len(y))
            if found.unions is None:  # the parts of groups that overlap may be tiny
                groups = found.codes
        there = np.flatnonzero(sample_weight)
        table = np.stack([groups, np.unique(y, return_inverse=True)[1]], axis=1)[there]
        _, cells, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        if counts.min() < 2:
            raise ValueError(
                f"validation_fraction={share!r} sets rows aside, which takes two of every group and class, and one has "
                f"{counts.min()} row. Merge groups, or set none aside (validation_fraction=None or "
                "early_stopping=False)."
            )
        n_held = int(np.ceil(share * there.size))  # as scikit-learn rounds
        fewest, most = counts.size, there.size - counts.size
        if not fewest <= n_held <= most:
            raise ValueError(
                f"validation_fraction={share!r} sets {n_held} of {there.size} rows aside, but to have a row of each of "
                f"the {counts.size} combinations of group and class there and among the others takes {fewest} to "
                f"{most}. Choose a fraction between {fewest / there.size:.2g} and {most / there.size:.2g}."
            )
        kept, rows = train_test_split(there, test_size=share, stratify=cells, random_state=seed)
        for part, where in ((kept, "to train on"), (rows, "for validation")):
            if (missing := np.setdiff1d(y[there], y[part])).size:
                raise ValueError(
                    f"validation_fraction={share!r} leaves no row of the classes {shortened(missing)} {where}; "
                    f"choose a {'smaller' if part is kept else 'larger'} fraction."
                )
        return cls(rows, X[rows], y[rows], sample_weight[rows].copy())

    def solve(
        self,
        solver: Solver,
        problem: Problem,
        start: Start | None,
        rng: np.random.Generator,
        watch: Callback | None = None,
    ) -> SolverResult:
        """The recorded iterate of best AUC on these rows among the feasible ones; the solver's own if none is."""
        iterates: list[np.ndarray] = []

        def keep(record: Mapping[str, Any]) -> None:
            if "params" in record:
                iterates.append(record["params"].copy())
            if watch is not None:
                watch(record)

        result = solver.solve(problem, start, rng, keep)
        feasible = [params for params in (result.model_state, *iterates) if problem.holds(problem.scores(params))]
        if not feasible:
            return result
        best = max(feasible, key=lambda params: self._auc(problem, params))
        objective = FullBatchView(problem.without_constraints()).at(best).objective
        return replace(result, model_state=best, objective=objective)

    def _auc(self, problem: Problem, params: np.ndarray) -> float:
        return float(roc_auc_score(self.y, problem.model.scores(params, self.X), sample_weight=self.weights))


class StopEarly(TrainingCallback):
    """End training when the mean loss on held-out rows has not improved for some epochs, where it was least.

    Parameters
    ----------
    mean_loss : callable
        Function of the parameters that returns the loss on these rows.
    patience : int, default=10
        Epochs.
    """

    def __init__(self, mean_loss: Callable[[np.ndarray], float], patience: int = 10) -> None:
        self._mean_loss, self._patience = mean_loss, patience
        self._least, self._best, self._waiting = np.inf, np.empty(0), 0

    @override
    def __call__(self, record: Mapping[str, Any]) -> None:
        loss = self._mean_loss(record["params"])
        if loss < self._least:
            self._least, self._best, self._waiting = loss, record["params"].copy(), 0
            return
        self._waiting += 1
        if self._waiting >= self._patience:
            raise StopTraining(self._best)


class HoldsOut(BaseFairEstimator):
    """Estimators that may set rows aside before they train on the others."""

    _held_out: HeldOut | None = None

    def _held_out_share(self) -> float | None:
        """Share of the rows that is set aside; None for none."""
        return None

    def _set_aside(
        self, X: Any, y: np.ndarray, sensitive_features: Any, sample_weight: np.ndarray | None
    ) -> np.ndarray | None:
        self._held_out, share = None, self._held_out_share()
        if share is None:
            return sample_weight
        weights = np.ones(len(y)) if sample_weight is None else sample_weight.copy()
        seed = seed_of(self.random_state)
        self._held_out = HeldOut.of(X, y, sensitive_features, weights, share, seed, self._takes_overlapping_groups)
        weights[self._held_out.rows] = 0.0  # as if these rows had never been given
        return weights

    def _adopt(self, problem: Problem, result: SolverResult, target: Target, labels: tuple) -> dict[str, float]:
        """Implement `BaseFairEstimator._adopt`; the rows have done what they were for."""
        self._held_out = None
        return super()._adopt(problem, result, target, labels)
