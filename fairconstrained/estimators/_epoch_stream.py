"""`partial_fit` by stochastic solvers: an epoch of mini-batches for every part of a stream."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context
from typing_extensions import override

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.checks.seeds import seed_of
from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.estimators._announced import STREAMED, TakesStream, announced_classes, codes_of
from fairconstrained.estimators._outcome import Fitted, Target
from fairconstrained.estimators.threads import limited_threads
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Solver, Status, StochasticSolver

__all__ = ["EpochStreaming"]


class EpochStreaming(TakesStream):
    """Estimators whose solvers go on from their own state; a solver's option that it has not is left out."""

    @documented_by(STREAMED)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sensitive_features: Any = None,
        *,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train for one epoch of mini-batches on more rows, from the state that the solver has reached.

        Earlier rows are not kept, so the bound ``kappa`` is not guaranteed, and ``constraint_values_`` are those of the
        rows of this call, NaN if a group is not among them. All groups are compared, whatever ``min_group_size`` is.
        ``callbacks`` are not called, and no rows are set aside for ``early_stopping``. Call `fit` for a model that
        keeps the bound.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows of the stream, rather a thousand than one: all groups should be among them.

        Raises
        ------
        ValueError
            For invalid data, without ``classes`` in the first call, for a class or group that was not announced, for
            groups that overlap, or a solver that takes all rows in every step.
        """
        fitted = copy.copy(self)
        fitted._compares_all_groups = True  # of a part of a stream, any group may have too few rows or none
        fitted._partial_fit(X, y, classes, sensitive_features, groups, sample_weight)
        del fitted._compares_all_groups
        self.__dict__ = fitted.__dict__
        return self

    @override
    def _bound_constraints(self, data: FairData, target: Target, checked: bool = True) -> tuple[BoundConstraint, ...]:
        return super()._bound_constraints(data, target, checked and not self._compares_all_groups)

    def _partial_fit(
        self, X: Any, y: Any, classes: Any, sensitive_features: Any, groups: Any, sample_weight: Any
    ) -> None:
        last: Fitted | None = getattr(self, "_fitted", None)
        X, y, weights = self._checked_rows(X, y, sample_weight, multi_output=False, reset=last is None)
        self._remember_rows(X, among_others=last is not None)
        if last is None:
            labels = self._announce(announced_classes(classes, None, several=True), sensitive_features, groups)
        else:
            labels = last.labels
        codes = codes_of(y, sensitive_features, self.classes_, labels, self._group_columns)
        target = self._known_target(y)
        data = FairData.from_arrays(X, target.values, codes, labels, weights)
        problem = self._problem(data, target)
        start = None if last is None else last.start
        solver = self._one_epoch(self._solver(problem, polish=False, decay=False), problem, start)
        rng = np.random.default_rng(seed_of(self.random_state))
        with limited_threads(1):
            result = solver.solve(problem, start, rng)
        self._adopt(problem, result, target, labels)
        if self.status_ != Status.UNCONSTRAINED:
            self.status_ = Status.COMPLETED.value

    @staticmethod
    def _one_epoch(solver: Solver, problem: Problem, start: Start | None) -> StochasticSolver:
        """The solver, limited to one epoch more than those that it has done."""
        if not isinstance(solver, StochasticSolver):
            raise ValueError(
                f"partial_fit needs a solver on mini-batches; {solver.name!r} takes all rows in every step."
            )
        state = solver.known_state(problem, start)
        n_epochs = 0 if state is None else state.epoch
        return replace(solver, max_epochs=n_epochs + 1)
