"""Iterations of the inexact difference-of-convex algorithm that its theorem asks for."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log1p

from fairconstrained.checks.messages import check_not_negative, check_positive

__all__ = ["IDCAParameters", "idca_parameters", "ssg_iterations", "whole"]


@dataclass(frozen=True)
class IDCAParameters:
    r"""Parameters that Theorem 6.5 asks of the inexact difference-of-convex algorithm.

    Attributes
    ----------
    max_iter : int
        K, the number of convex subproblems.
    precision : float
        :math:`\epsilon_k`, how precisely each of them is solved.
    limited_by : str
        Name of the largest of the three terms of the maximum in K: "distance" (the 1, for a next iterate near the
        solution of its subproblem), "lipschitz" (the condition 28 on the Lagrangian's gradient), or "slater" (the
        conditions 29 and 30, through a bound on the multipliers).
    """

    max_iter: int
    precision: float
    limited_by: str


def idca_parameters(
    epsilon: float, *, lipschitz: float, strong_convexity: float, slater: float, objective_gap: float
) -> IDCAParameters:
    r"""Subproblems and their precision with which IDCA finds a nearly :math:`\epsilon`-KKT point (Theorem 6.5).

    .. math::
        K &= \left\lceil 2 \max \left\{ 1, 4 M^2, \frac{8 M^4}{\mu \nu} \right\}
             \frac{f_0(w^{(0)}) - f_{lb}}{\mu \epsilon^2} \right\rceil, \\
        \epsilon_k &= \frac{\mu}{8} \min \left\{ 1, \frac{1}{4 M^2}, \frac{\mu \nu}{8 M^4} \right\} \epsilon^2.

    Each subproblem then takes :func:`ssg_iterations` of the switching subgradient method.

    Parameters
    ----------
    epsilon : float
        :math:`\epsilon` of the nearly :math:`\epsilon`-KKT point (Definition 6.2), positive.
    lipschitz : float
        M, a Lipschitz constant of the convex parts of objective and constraints (Assumption 6.3 D).
    strong_convexity : float
        :math:`\mu`, modulus of strong convexity of these parts (Assumption 6.3 A); :math:`\frac{\mu}{2} \|w\|^2` can be
        added to both parts of any function.
    slater : float
        :math:`\nu`: from every feasible point there is one at which all linearised constraints are at most
        :math:`-\nu` (Assumption 6.3 B).
    objective_gap : float
        :math:`f_0(w^{(0)}) - f_{lb}`, the objective at the start less a lower bound on it, at least 0.

    Returns
    -------
    parameters : IDCAParameters
        Parameters, and the largest of the three terms, which tells what to improve.

    Raises
    ------
    ValueError
        If a constant is not positive, or ``objective_gap`` is negative.

    References
    ----------
    .. [1] Y. He, Y. Huang, Y. Yao, Q. Lin, "Enforcing Fair Predicted Scores on Intervals of Percentiles by
       Difference-of-Convex Constraints", arXiv:2505.12530. Theorem 6.5, eqs. 34 and 35.

    Examples
    --------
    >>> from fairconstrained.theory import idca_parameters
    >>> idca_parameters(0.5, lipschitz=1.0, strong_convexity=0.5, slater=0.25, objective_gap=0.5)
    IDCAParameters(max_iter=512, precision=0.000244140625, limited_by='slater')
    """
    check_positive(epsilon=epsilon, lipschitz=lipschitz, strong_convexity=strong_convexity, slater=slater)
    check_not_negative(objective_gap=objective_gap)
    terms = {"distance": 1.0, "lipschitz": 4 * lipschitz**2, "slater": 8 * lipschitz**4 / (strong_convexity * slater)}
    limited_by = max(terms, key=lambda name: terms[name])
    iterations = 2 * terms[limited_by] * objective_gap / (strong_convexity * epsilon**2)
    return IDCAParameters(
        max_iter=max(whole(iterations), 1),
        precision=strong_convexity / 8 / terms[limited_by] * epsilon**2,
        limited_by=limited_by,
    )


def ssg_iterations(precision: float, *, lipschitz: float, strong_convexity: float, distance: float) -> int:
    r"""Switching subgradient steps that solve a subproblem of IDCA to a precision (Proposition 6.4).

    .. math:: T_k = \left\lceil \frac{M^2}{\epsilon_k \mu}
              \ln \left( 1 + \frac{\mu \|w^{(k)} - \hat w^{(k+1)}\|^2}{\epsilon_k} \right) \right\rceil

    Parameters
    ----------
    precision : float
        :math:`\epsilon_k`, positive.
    lipschitz, strong_convexity : float
        M and :math:`\mu`, see :func:`idca_parameters`.
    distance : float
        Distance from the start to the solution of the subproblem, :math:`\|w^{(k)} - \hat w^{(k+1)}\|`, or a bound on
        it such as the diameter of the domain; at least 0.

    Returns
    -------
    iterations : int
        Number of iterations, at least 1.

    Raises
    ------
    ValueError
        If a constant is not positive, or ``distance`` is negative.

    References
    ----------
    .. [1] Y. He, Y. Huang, Y. Yao, Q. Lin, arXiv:2505.12530. Proposition 6.4.

    Examples
    --------
    >>> from fairconstrained.theory import ssg_iterations
    >>> ssg_iterations(1e-3, lipschitz=1.0, strong_convexity=0.1, distance=2.0)
    59940
    """
    check_positive(precision=precision, lipschitz=lipschitz, strong_convexity=strong_convexity)
    check_not_negative(distance=distance)
    steps = lipschitz**2 / (precision * strong_convexity) * log1p(strong_convexity * distance**2 / precision)
    return max(whole(steps), 1)


def whole(iterations: float) -> int:
    """Return the least integer that is not below a number of iterations, up to rounding errors."""
    return ceil(iterations * (1 - 1e-12))
