"""How nearly a point satisfies the Karush-Kuhn-Tucker conditions of a problem of differences of convex functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, lsq_linear

from fairconstrained.checks.messages import check_positive
from fairconstrained.domains import NonNegative
from fairconstrained.points import Point, PointSource, largest_violation, objective_gradient
from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers._curvature import suitable_proximity
from fairconstrained.solvers._proximal import Subproblem, proximal_solution
from fairconstrained.views import DifferenceOfConvex

__all__ = ["KKTConditions", "kkt_conditions"]

#: Accuracy of the least epsilon, as a fraction of the gradient of the objective.
_ACCURACY = 1e-10
#: Accuracy of the nearby point; whatever it is, the epsilon that is returned holds for the point that was found.
_NEARBY = 1e-6


@dataclass(frozen=True)
class KKTConditions:
    r"""How nearly a point z satisfies the Karush-Kuhn-Tucker conditions, with the multipliers that fit best.

    Attributes
    ----------
    eps : float
        The least :math:`\epsilon` with which z is an :math:`\epsilon`-KKT point (Definition 6.1): the largest of
        ``residual``, ``violation`` and ``complementarity``. For functions that are not smooth it is an upper bound,
        since one subgradient of each is used.
    nearly_eps : float
        An :math:`\epsilon` with which z is a nearly :math:`\epsilon`-KKT point (Definition 6.2), at most ``eps``.
    distance : float
        :math:`\|\hat z - z\|`, of the point :math:`\hat z` of that definition; 0 where z itself is taken.
    residual : float
        :math:`\|\nabla f(z) + \sum_j \lambda_j \nabla c_j(z)\|`, the left side of eq. 28 at z.
    violation : float
        :math:`\max \{ \max_j c_j(z), 0 \}`, eq. 29.
    complementarity : float
        :math:`\max_j |\lambda_j c_j(z)|`, eq. 30.
    multipliers : dict of str to float
        :math:`\lambda_j` of ``eps``, by the names of the components.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530, Definitions 6.1 and 6.2.
    """

    eps: float
    nearly_eps: float
    distance: float
    residual: float
    violation: float
    complementarity: float
    multipliers: dict[str, float]


def kkt_conditions(
    problem: Problem, params: np.ndarray, *, aux: np.ndarray | None = None, proximity: float | None = None
) -> KKTConditions:
    r"""Return how nearly parameters satisfy the Karush-Kuhn-Tucker conditions of a problem.

    With :math:`z` the parameters and the auxiliary variables, Definition 6.1 asks for multipliers
    :math:`\lambda \ge 0` with

    .. math:: \Bigl\| \nabla f(z) + \sum_j \lambda_j \nabla c_j(z) \Bigr\| \le \epsilon, \qquad
              c_j(z) \le \epsilon, \qquad |\lambda_j c_j(z)| \le \epsilon .

    The least such :math:`\epsilon` is the optimum of a convex problem in :math:`\lambda`, which is solved exactly.
    Definition 6.2 takes the gradients of the convex parts at another point :math:`\hat z` with
    :math:`\|\hat z - z\| \le \epsilon`. That is here the solution of the convex problem that IDCA would solve next from
    z (eq. 31),

    .. math:: \hat z = \arg\min_y \; f^+(y) - \langle \nabla f^-(z), y \rangle \quad \text{s.t.} \quad
              c_j^+(y) - c_j^-(z) - \langle \nabla c_j^-(z), y - z \rangle \le \max \{ \max_i c_i(z), 0 \}
              \;\; \forall j

    with :math:`\frac{\mu}{2} \|y\|^2` in every part, as Assumption 6.3 requires. It is solved to about 1e-6 where the
    parts are smooth, and only roughly (and more slowly) where they are not. The result is valid for the :math:`\hat z`
    that was found.

    Parameters
    ----------
    problem : Problem
        Problem without a domain, all of whose terms offer `fairconstrained.views.FullBatch`.
    params : ndarray of shape (n_params,)
    aux : ndarray of shape (n_aux,), optional
        Auxiliary variables of the constraints. None: those that fit the scores (`Problem.start`).
    proximity : float, optional
        :math:`\mu`, positive; the larger it is, the nearer is :math:`\hat z`, and the weaker is Definition 6.2. None: 1
        where all terms offer `fairconstrained.views.DifferenceOfConvex`. Elsewhere the parts are
        :math:`h + \frac{\mu}{2} \|y\|^2` and :math:`\frac{\mu}{2} \|y\|^2`, and :math:`\mu` is twice the estimated
        modulus of weak convexity.

    Returns
    -------
    conditions : KKTConditions

    Raises
    ------
    ValueError
        For a ``proximity`` that is not positive, or a problem with a domain.

    See Also
    --------
    stationarity : The definition of the paper on weakly convex problems, with a domain too.

    Notes
    -----
    The parts of a difference are convex in the scores, and so in the parameters of a linear model. In those of a
    network they are convex near z only if ``proximity`` is large enough.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530, Definitions 6.1 and 6.2, eqs. 28 to 31.
    """
    if problem.domain is not None:
        raise ValueError(f"kkt_conditions is for problems without a domain, not {problem.domain}; call stationarity.")
    view = FullBatchView(problem)
    z = problem.start(params) if aux is None else np.concatenate([params, aux])
    point = view.at(z)
    here = _least(point, point.constraints)
    source = _convex_model(problem, view, z, proximity)
    level = largest_violation(point.constraints)
    nearest = proximal_solution(source, z, problem.project, NonNegative(), 1.0, level, _NEARBY).z
    distance = float(np.linalg.norm(nearest - z))
    nearly = max(_least(source.at(nearest), point.constraints).eps, distance)
    is_near = nearly < here.eps
    return KKTConditions(
        eps=here.eps,
        nearly_eps=nearly if is_near else here.eps,
        distance=distance if is_near else 0.0,
        residual=here.residual,
        violation=level,
        complementarity=here.complementarity,
        multipliers=dict(zip(problem.component_names, here.multipliers.tolist(), strict=True)),
    )


def _convex_model(problem: Problem, view: FullBatchView, z: np.ndarray, proximity: float | None) -> Subproblem:
    """The problem with the concave parts replaced by their tangents at z."""
    if proximity is not None:
        check_positive(proximity=proximity)
    tangent: PointSource = view
    if all(isinstance(term, DifferenceOfConvex) for term in (problem.objective, *problem.constraints)):
        tangent = problem.view(DifferenceOfConvex).linearize(z)
        proximity = 1.0 if proximity is None else proximity
    elif proximity is None:
        proximity = suitable_proximity(view, z, problem.project, np.random.default_rng(0))
    return Subproblem(tangent, z, proximity)


class _Least(NamedTuple):
    """The least epsilon of eqs. 28 to 30, and what it is made of."""

    eps: float
    residual: float
    complementarity: float
    multipliers: np.ndarray


def _least(point: Point, values: np.ndarray) -> _Least:
    """The least epsilon with the gradients of a point, and with these values of the constraints.

    With bounds ``multipliers <= epsilon / |values|`` the residual is a least-squares problem that falls with epsilon,
    so the least epsilon is a root.
    """
    of_constraints = [point.gradient(0.0, unit) for unit in np.eye(values.size)]
    gradients = np.stack([*of_constraints, objective_gradient(point)], axis=1)
    _, reduced = np.linalg.qr(gradients)  # all that the norms of combinations depend on
    slack, columns, target = np.abs(values), reduced[:, :-1], -reduced[:, -1]

    def fitted(eps: float) -> np.ndarray:
        most = np.divide(eps, slack, out=np.full(slack.shape, np.inf), where=slack > 0)
        multipliers, free = np.zeros(slack.size), most > 0
        if free.any():
            found = lsq_linear(columns[:, free], target, (0.0, most[free]), method="bvls", max_iter=10 * slack.size)
            multipliers[free] = found.x.clip(min=0.0)  # rounding
        return multipliers

    def excess(eps: float) -> float:
        return float(np.linalg.norm(columns @ fitted(eps) - target)) - eps

    steepness = float(np.linalg.norm(target))
    eps = 0.0
    if steepness > 0 and excess(0.0) > _ACCURACY * steepness:
        eps = float(brentq(excess, 0.0, steepness, xtol=_ACCURACY * steepness))
    multipliers = fitted(eps)
    residual = float(np.linalg.norm(columns @ multipliers - target))
    complementarity = float((multipliers * slack).max(initial=0.0))
    return _Least(
        max(residual, complementarity, float(values.max(initial=0.0))), residual, complementarity, multipliers
    )
