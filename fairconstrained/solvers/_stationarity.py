"""How near a point is to a stationary one, by the solution of its proximal subproblem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairconstrained.checks.messages import check_positive
from fairconstrained.domains import NonNegative
from fairconstrained.points import PointSource, largest_violation
from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers._curvature import suitable_proximity
from fairconstrained.solvers._proximal import ProximalSolution, Subproblem, proximal_solution

__all__ = ["Stationarity", "near_stationarity", "proximal_distance", "stationarity"]


@dataclass(frozen=True)
class Stationarity:
    r"""How nearly parameters z satisfy the optimality conditions, by the solution :math:`\hat z` of their subproblem.

    The displayed consequences of eq. 7 bound how far :math:`\hat z` is from the conditions (2) of the problem itself.

    Attributes
    ----------
    distance : float
        :math:`\|z - \hat z\|`. z is nearly :math:`\epsilon`-stationary if it is at most that (Definition 1).
    proximity : float
        :math:`\hat\rho`, the r of `near_stationarity`.
    multipliers : dict of str to float
        :math:`\hat\lambda_j` of the subproblem's constraints, by the names of their components.
    kkt_residual : float
        :math:`(1 + \sum_j \hat\lambda_j) \hat\rho \|z - \hat z\|`, a bound on the distance of the negative gradient of
        the Lagrangian at :math:`\hat z` to the normal cone of the domain.
    complementarity : float
        :math:`\frac{\hat\rho}{2} \sum_j \hat\lambda_j \|z - \hat z\|^2`. Where z is feasible that is
        :math:`\sum_j |\hat\lambda_j c_j(\hat z)|`; elsewhere the constraints less the violation stand for them.
    violation : float
        :math:`\max \{ \max_j c_j(z), 0 \}`, the right side of the subproblem; no constraint is larger at
        :math:`\hat z`.

    References
    ----------
    Ma, Lin, Yang, arXiv:1908.01871, Definition 1 and eqs. 2, 5 and 7.
    """

    distance: float
    proximity: float
    multipliers: dict[str, float]
    kkt_residual: float
    complementarity: float
    violation: float


def stationarity(problem: Problem, params: np.ndarray, proximity: float | None = None) -> Stationarity:
    """Return how nearly parameters are stationary, with the multipliers of their proximal subproblem.

    Parameters
    ----------
    problem, params, proximity
        See `near_stationarity`.

    Returns
    -------
    stationarity : Stationarity
        Measures of stationarity; ``distance`` is what `near_stationarity` returns.

    Raises
    ------
    ValueError
        For a ``proximity`` that is not positive.
    """
    view, z = FullBatchView(problem), problem.start(params)
    if proximity is None:
        proximity = suitable_proximity(view, z, problem.project, np.random.default_rng(0))
    check_positive(proximity=proximity)
    nearest = _nearest(view, z, problem.project, proximity)
    distance, total = float(np.linalg.norm(nearest.z - z)), float(nearest.multipliers.sum())
    return Stationarity(
        distance=distance,
        proximity=proximity,
        multipliers=dict(zip(problem.component_names, nearest.multipliers.tolist(), strict=True)),
        kkt_residual=(1 + total) * proximity * distance,
        complementarity=total * proximity / 2 * distance**2,
        violation=largest_violation(view.at(z).constraints),
    )


def near_stationarity(problem: Problem, params: np.ndarray, proximity: float | None = None) -> float:
    r"""Return how far parameters are from the solution of their proximal subproblem; zero at a stationary point.

    .. math:: \hat z = \arg\min_y \; f(y) + \tfrac{r}{2} \|y - z\|^2 \quad \text{s.t.} \quad
              c_j(y) + \tfrac{r}{2} \|y - z\|^2 \le \max \{ \max_i c_i(z), 0 \} \;\; \forall j

    with y in the domain. The right side, which is zero where z is feasible, makes z itself feasible in the subproblem;
    the violation has to be reported separately.

    The auxiliary variables of the constraints belong to z: the functions are weakly convex in parameters and auxiliary
    variables together, and without the proximal term on both the subproblem might have no solution. They are those that
    fit the scores (`Problem.start`), and the distance is that of both together, which is at least that of the
    parameters.

    Parameters
    ----------
    problem : Problem
        Smooth, with all terms offering `fairconstrained.views.FullBatch`.
    params : ndarray of shape (n_params,)
        Parameters in the domain.
    proximity : float, optional
        r, larger than the modulus of weak convexity of the functions. None: twice an estimate of this modulus, the
        largest negative curvature found at ``params`` and at two random points around.

    Returns
    -------
    distance : float
        :math:`\|z - \hat z\|_2`, to about 1e-6 of the largest parameter (or of 1).

    Raises
    ------
    ValueError
        For a ``proximity`` that is not positive.

    See Also
    --------
    stationarity : The multipliers, and how far the optimality conditions are from holding.

    References
    ----------
    Ma, Lin, Yang, arXiv:1908.01871, Definition 1 and eqs. 4 and 5.
    """
    return stationarity(problem, params, proximity).distance


def proximal_distance(
    view: PointSource, z: np.ndarray, project: Callable[[np.ndarray], np.ndarray], proximity: float
) -> float:
    """Return `near_stationarity` of parameters with their auxiliary variables."""
    return float(np.linalg.norm(_nearest(view, z, project, proximity).z - z))


def _nearest(
    view: PointSource, z: np.ndarray, project: Callable[[np.ndarray], np.ndarray], proximity: float
) -> ProximalSolution:
    """Return the solution of the proximal subproblem whose right side makes z feasible."""
    level = largest_violation(view.at(z).constraints)
    return proximal_solution(Subproblem(view, z, proximity), z, project, NonNegative(), 1.0, level)
