"""Estimators that tell on request how near they ended to a stationary point."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators.parameters import parameter, with_parameters
from fairconstrained.problem import Problem
from fairconstrained.solvers import SolverResult, kkt_conditions, stationarity

__all__ = ["TellsKKT", "TellsStationarity"]


@with_parameters
class TellsStationarity(BaseFairEstimator):
    """Estimators with a parameter ``compute_stationarity``, ``stationarity_`` and ``stationarity_report_``.

    Parameters
    ----------
    compute_stationarity : bool, default=False
        Whether `fit` is to compute ``stationarity_`` and its report, which takes about as long as another fit.

    Attributes
    ----------
    stationarity_ : float
        Distance of the parameters to the solution of their proximal subproblem, see
        `fairconstrained.solvers.near_stationarity`. Only if ``compute_stationarity``.
    stationarity_report_ : dict
        That distance with the multipliers of the subproblem, and how far the optimality conditions are from holding, by
        the names of `fairconstrained.solvers.Stationarity`. Only if ``compute_stationarity``.
    """

    compute_stationarity: bool = parameter(False, ["boolean"])

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """Implement `BaseFairEstimator._report`; also how near the parameters are to a stationary point."""
        excess = super()._report(problem, params, result, target)
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
    r"""`TellsStationarity` by the conditions of the paper on partial fairness.

    Attributes
    ----------
    stationarity_ : float
        An :math:`\epsilon` with which the parameters are a nearly :math:`\epsilon`-KKT point, as
        `fairconstrained.solvers.kkt_conditions` defines it, of the problem with its surrogate as it stands before a
        solver narrows it. Only if ``compute_stationarity``.
    stationarity_report_ : dict
        The least :math:`\epsilon` and its parts, by the names of `fairconstrained.solvers.KKTConditions`. Only if
        ``compute_stationarity``.
    """

    def _stationarity_at(
        self, problem: Problem, params: np.ndarray, result: SolverResult
    ) -> tuple[float, dict[str, Any]]:
        """The one number, and the report: by the Karush-Kuhn-Tucker conditions of the problem as it was posed."""
        found = kkt_conditions(problem, params, aux=result.aux)
        return found.nearly_eps, asdict(found)
