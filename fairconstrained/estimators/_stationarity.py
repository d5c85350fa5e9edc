"""Estimators that tell on request how near they ended to a stationary point."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from fairconstrained.estimators._base import BaseFairEstimator, Target
from fairconstrained.problem import Problem
from fairconstrained.solvers import SolverResult, kkt_conditions, stationarity

__all__ = ["TellsKKT", "TellsStationarity"]


class TellsStationarity(BaseFairEstimator):
    """Estimators with a parameter ``compute_stationarity``, ``stationarity_`` and ``stationarity_report_``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"compute_stationarity": ["boolean"]}

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """See `BaseFairEstimator._report`; also how near the parameters are to a stationary point."""
        excess = super()._report(problem, params, result, target)
        for name in ("stationarity_", "stationarity_report_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.compute_stationarity:
            self.stationarity_, self.stationarity_report_ = self._stationarity_at(problem, params, result)
        return excess

    def _stationarity_at(
        self, problem: Problem, params: np.ndarray, result: SolverResult
    ) -> tuple[float, dict[str, Any]]:
        """The one number, and the report: by the solution of the proximal subproblem."""
        found = stationarity(problem, params)
        return found.distance, asdict(found)


class TellsKKT(TellsStationarity):
    """`TellsStationarity` by the conditions of the paper on partial fairness."""

    def _stationarity_at(
        self, problem: Problem, params: np.ndarray, result: SolverResult
    ) -> tuple[float, dict[str, Any]]:
        """The one number, and the report: by the Karush-Kuhn-Tucker conditions of the problem as it was posed."""
        found = kkt_conditions(problem, params, aux=result.aux)
        return found.nearly_eps, asdict(found)
