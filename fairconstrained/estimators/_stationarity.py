"""Estimators that tell on request how near they ended to a stationary point."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from fairconstrained.estimators._base import BaseFairEstimator, Target
from fairconstrained.problem import Problem
from fairconstrained.solvers import SolverResult, stationarity

__all__ = ["TellsStationarity"]


class TellsStationarity(BaseFairEstimator):
    """Estimators with a parameter ``compute_stationarity``, ``stationarity_`` and ``stationarity_report_``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"compute_stationarity": ["boolean"]}

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """See `BaseFairEstimator._report`; also the distance to the solution of the proximal subproblem."""
        excess = super()._report(problem, params, result, target)
        if self.compute_stationarity:
            self.stationarity_report_ = asdict(stationarity(problem, params))
            self.stationarity_ = self.stationarity_report_["distance"]
        return excess
