"""Bounds on the mean loss of every group, and the least loss of the worst group, for estimators of several kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from typing_extensions import override

from fairconstrained.constraints import BoundConstraint, GroupRates
from fairconstrained.constraints.compared_groups import AUTO
from fairconstrained.data import FairData
from fairconstrained.estimators._bounded import TakesConstraint
from fairconstrained.estimators._outcome import Target
from fairconstrained.objectives import ROW_LOSS_OBJECTIVES, BoundLargestMean
from fairconstrained.problem import Problem
from fairconstrained.solvers import SolverResult

__all__ = ["BOUNDED_GROUP_LOSS", "MINIMAX", "MinimisesWorstLoss"]

#: Name of the bound on every group's mean loss.
BOUNDED_GROUP_LOSS = "bounded_group_loss"
#: Value of ``kappa`` that asks for the least largest loss.
MINIMAX = "minimax"
#: Rows that a group needs in place of "auto" where no number bounds its loss: none then counts more than 0.02.
_FEWEST = 50


class MinimisesWorstLoss(TakesConstraint):
    """Estimators that bound the mean loss of every group by a number, or minimise the largest one."""

    kappa: float | str | None
    small_groups: str
    min_group_size: int | str = AUTO

    @property
    def _row_loss(self) -> str:
        """Name of the loss of a row, of which the groups have means."""
        raise NotImplementedError

    @property
    def _is_minimax(self) -> bool:
        return isinstance(self.kappa, str)

    def _mean_of_rows(self, rate: str, rule: str) -> GroupRates:
        """The constraint on the means of a function of the rows."""
        min_size = _FEWEST if self._is_minimax and self.min_group_size == AUTO else self.min_group_size
        return GroupRates(
            rate,
            rule=rule,
            kappa=None if isinstance(self.kappa, str) else self.kappa,
            min_group_size=min_size,
            small_groups=self.small_groups,
        )

    def _bounded_losses(self) -> GroupRates:
        return self._mean_of_rows(self._row_loss, "ceiling")

    @override
    def _names_of(self, bound: Sequence[BoundConstraint]) -> list[str]:
        return [BOUNDED_GROUP_LOSS] if self.constraint == BOUNDED_GROUP_LOSS else super()._names_of(bound)

    @override
    def _asks_for_fairness(self) -> bool:
        return self._is_minimax or super()._asks_for_fairness()

    @override
    def _minimised(self) -> set[str]:
        return set(self.constraint_values_) if self._is_minimax else set()

    @override
    def _problem(self, data: FairData, target: Target) -> Problem:
        """Implement `BaseFairEstimator._problem`; with "minimax" the objective is the largest mean loss."""
        if self._is_minimax and self.constraint != BOUNDED_GROUP_LOSS:
            raise ValueError(
                f"kappa='minimax' minimises the largest mean loss, so constraint must be {BOUNDED_GROUP_LOSS!r}; got "
                f"{self.constraint!r}. To minimise it under other bounds, bound it by a number: constraint=[('loss', "
                "GroupRates('log_loss', rule='ceiling', kappa=0.5)), ...]."
            )
        problem = super()._problem(data, target)
        if not self._is_minimax or self._holds_vacuously(data):
            return problem
        means = self._bounded_losses().set_params(kappa=0.0).unchecked(problem.data).renamed(BOUNDED_GROUP_LOSS)
        loss = ROW_LOSS_OBJECTIVES[self._row_loss]
        return replace(problem, objective=BoundLargestMean(loss, problem.data, means=means))

    @override
    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        excess = super()._report(problem, params, result, target)
        if self._is_minimax:  # no bound has a price
            self.prices_ = dict.fromkeys(self.prices_, np.nan)
        return excess
