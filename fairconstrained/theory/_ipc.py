"""Iterations and precision of the inexact proximally constrained method that its theorems ask for."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log1p, sqrt

from fairconstrained.checks.messages import check_fraction, check_integer, check_not_negative, check_positive
from fairconstrained.theory._idca import whole

__all__ = [
    "IPCParameters",
    "OnlineBound",
    "SwitchingIterations",
    "ipc_parameters",
    "online_bound",
    "switching_iterations",
]


@dataclass(frozen=True)
class IPCParameters:
    r"""Parameters that Theorem 1 asks of the inexact proximally constrained method.

    Attributes
    ----------
    max_iter : int
        T, the number of subproblems.
    precision : float
        :math:`\hat\epsilon`: subproblems are solved to :math:`\hat\epsilon^2`.
    multiplier_bound : float
        Upper bound on the multipliers of the subproblems (Lemma 1).
    limited_by : {"multipliers", "convexity"}
        Reason why the precision is small: "multipliers" where :math:`\Lambda > 1`, which a larger ``slater`` lowers,
        and "convexity" otherwise, which a larger :math:`\hat\rho - \rho` helps.
    """

    max_iter: int
    precision: float
    multiplier_bound: float
    limited_by: str


def ipc_parameters(
    epsilon: float,
    *,
    lipschitz: float,
    diameter: float,
    weak_convexity: float,
    proximity: float,
    slater: float,
    objective_gap: float,
) -> IPCParameters:
    r"""Subproblems and their precision with which IPC is nearly :math:`\epsilon`-stationary (Theorem 1).

    .. math::
        T &= \left\lceil \frac{4 (f(x_0) - f_{lb})}{\epsilon^2 (\hat\rho - \rho)} \right\rceil, \qquad
        \Lambda = \frac{M + \hat\rho D}{\sqrt{2 \sigma_\epsilon (\hat\rho - \rho)}}, \\
        \hat\epsilon &= \min \left\{ 1, \sqrt{\frac{\hat\rho - \rho}{4}} \right\} (\Lambda + 1)^{-1/2} \, \epsilon.

    Then the expected squared distance of an iterate drawn at random to the solution of its subproblem is at most
    :math:`\epsilon^2`.

    Parameters
    ----------
    epsilon : float
        Positive.
    lipschitz : float
        M, a bound on the subgradients of objective and constraints (Assumption 1 F).
    diameter : float
        D, of the domain (Assumption 1 C).
    weak_convexity : float
        :math:`\rho`, at least 0 (Assumption 1 A); :func:`fairconstrained.solvers.weak_convexity` estimates it.
    proximity : float
        :math:`\hat\rho`, above :math:`\rho` and at most :math:`\rho + \rho_\epsilon`.
    slater : float
        :math:`\sigma_\epsilon`: from every nearly feasible x there is a y with
        :math:`g(y) + \frac{\rho + \rho_\epsilon}{2} \|y - x\|^2 < -\sigma_\epsilon` (Assumption 1 B).
    objective_gap : float
        :math:`f(x_0) - f_{lb}`, at least 0.

    Returns
    -------
    parameters : IPCParameters

    Raises
    ------
    ValueError
        If a constant is out of its range, or ``proximity`` is not above ``weak_convexity``.

    Notes
    -----
    Algorithm 1 draws R from 0, ..., T, the proof of Theorem 1 from 0, ..., T - 1.

    References
    ----------
    .. [1] R. Ma, Q. Lin, T. Yang, arXiv:1908.01871. Algorithm 1, Lemma 1 and Theorem 1.

    Examples
    --------
    >>> from fairconstrained.theory import ipc_parameters
    >>> found = ipc_parameters(
    ...     0.1, lipschitz=1.0, diameter=2.0, weak_convexity=0.5, proximity=1.0, slater=0.25, objective_gap=0.5
    ... )
    >>> found.max_iter, found.multiplier_bound, round(found.precision, 4)
    (400, 6.0, 0.0134)
    """
    check_positive(epsilon=epsilon, lipschitz=lipschitz, diameter=diameter, slater=slater)
    check_not_negative(objective_gap=objective_gap)
    modulus = _modulus(weak_convexity, proximity)
    bound = (lipschitz + proximity * diameter) / sqrt(2 * slater * modulus)
    return IPCParameters(
        max_iter=max(whole(4 * objective_gap / (epsilon**2 * modulus)), 1),
        precision=min(1.0, sqrt(modulus / 4)) / sqrt(bound + 1) * epsilon,
        multiplier_bound=bound,
        limited_by="multipliers" if bound > 1 else "convexity",
    )


@dataclass(frozen=True)
class SwitchingIterations:
    r"""Steps of the switching oracle.

    Attributes
    ----------
    n_iter : int
        K.
    limited_by : {"functions", "proximal term"}
        Source of the larger part of the number of steps: :math:`M^2` or :math:`\hat\rho^2 D^2`.
    """

    n_iter: int
    limited_by: str


def switching_iterations(
    precision: float, *, lipschitz: float, diameter: float, weak_convexity: float, proximity: float
) -> SwitchingIterations:
    r"""Steps with which the switching oracle solves a subproblem of IPC (Algorithm 2, Theorem 2).

    .. math:: K = \left\lceil \frac{4 (M^2 + \hat\rho^2 D^2)}{(\hat\rho - \rho) \hat\epsilon^2} \right\rceil

    Parameters
    ----------
    precision : float
        :math:`\hat\epsilon`, positive: the objective of the subproblem is solved to :math:`\hat\epsilon^2`, and its
        constraints are kept up to :math:`\hat\epsilon^2`.
    lipschitz, diameter, weak_convexity, proximity : float
        See :func:`ipc_parameters`.

    Returns
    -------
    iterations : SwitchingIterations

    Raises
    ------
    ValueError
        If a constant is out of its range, or ``proximity`` is not above ``weak_convexity``.

    Notes
    -----
    The paper prints :math:`\hat\rho D^2`. Subgradients of :math:`f + \frac{\hat\rho}{2} \|\cdot - x_t\|^2` are bounded
    by :math:`M + \hat\rho D`, whose square is at most :math:`2 (M^2 + \hat\rho^2 D^2)`, and that is what the proof
    needs.

    References
    ----------
    .. [1] R. Ma, Q. Lin, T. Yang, arXiv:1908.01871. Algorithm 2, Theorem 2 and eq. 16.

    Examples
    --------
    >>> from fairconstrained.theory import switching_iterations
    >>> switching_iterations(0.1, lipschitz=1.0, diameter=2.0, weak_convexity=0.5, proximity=1.0)
    SwitchingIterations(n_iter=4000, limited_by='proximal term')
    """
    check_positive(precision=precision, lipschitz=lipschitz, diameter=diameter)
    modulus = _modulus(weak_convexity, proximity)
    squares = {"functions": lipschitz**2, "proximal term": (proximity * diameter) ** 2}
    return SwitchingIterations(
        whole(4 * sum(squares.values()) / (modulus * precision**2)), max(squares, key=lambda name: squares[name])
    )


@dataclass(frozen=True)
class OnlineBound:
    r"""Precision with which the online oracle solves a subproblem of IPC, with a probability of at least 1 - delta.

    Attributes
    ----------
    objective : float
        :math:`B_1`, a bound on the excess of the objective over its least value.
    constraints : float
        :math:`B_2`, a bound on the largest constraint.
    """

    objective: float
    constraints: float

    @property
    def limited_by(self) -> str:
        """The name of the larger bound, "objective" or "constraints"."""
        return "objective" if self.objective > self.constraints else "constraints"


def online_bound(
    n_iter: int,
    *,
    gradient_bound: float,
    value_bound: float,
    diameter: float,
    proximity: float,
    slater: float,
    n_constraints: int = 1,
    delta: float = 0.05,
) -> OnlineBound:
    r"""Precision of the online oracle after K steps with its theoretical parameters (Algorithm 3, Theorem 3).

    With :math:`\tilde M_0 = M_0 + \frac{\hat\rho \sqrt m}{2} D^2`, :math:`\tilde M_1 = M_1 + \hat\rho D`,
    :math:`S = \tilde M_0 + \sqrt m \tilde M_1 D`, and

    .. math::
        \Lambda = \frac{\sigma_\epsilon}{2} + S + \frac{2 D^2}{\sigma_\epsilon}
                  + \frac{2 \tilde M_1 D + S^2}{\sigma_\epsilon}
                  + \frac{8 S^2}{\sigma_\epsilon} \log \left[ 1 + \frac{32 S^2}{\sigma_\epsilon^2}
                  e^{\sigma_\epsilon / (8 S)} \right] + \frac{8 S^2}{\sigma_\epsilon} \log \frac{2 K}{\delta},

    the objective of the subproblem exceeds its least value by at most :math:`B_1`, and no constraint exceeds
    :math:`B_2`:

    .. math::
        B_1 = \frac{D^2 + \tilde M_1^2 / 4 + S^2 / 2 + \sqrt{\log (1 / \delta)} \, \tilde M_0 \Lambda}{\sqrt K}, \qquad
        B_2 = \frac{\Lambda + \tilde M_1^2 + \sqrt m \tilde M_1^2 \Lambda / 2}{\sqrt K}.

    Parameters
    ----------
    n_iter : int
        K, at least 1.
    gradient_bound, value_bound : float
        :math:`M_1` and :math:`M_0`, bounds on the stochastic gradients and on the norm of the constraints' stochastic
        values (Assumption 2); positive.
    diameter, proximity, slater : float
        D, :math:`\hat\rho` and :math:`\sigma_\epsilon`, see :func:`ipc_parameters`.
    n_constraints : int, default=1
        m, at least 1.
    delta : float, default=0.05
        Probability with which the bounds may fail, in (0, 1).

    Returns
    -------
    bound : OnlineBound

    Raises
    ------
    ValueError
        If a constant is out of its range.

    References
    ----------
    .. [1] R. Ma, Q. Lin, T. Yang, arXiv:1908.01871. Theorem 3, eqs. 21 to 27.

    Examples
    --------
    >>> from fairconstrained.theory import online_bound
    >>> constants = {"gradient_bound": 1.0, "value_bound": 1.0, "diameter": 2.0, "proximity": 1.0, "slater": 0.25}
    >>> online_bound(10**12, **constants).limited_by
    'constraints'
    """
    K, m = check_integer("n_iter", n_iter), check_integer("n_constraints", n_constraints)
    delta = check_fraction("delta", delta)
    check_positive(
        gradient_bound=gradient_bound, value_bound=value_bound, diameter=diameter, proximity=proximity, slater=slater
    )
    values = value_bound + proximity * sqrt(m) / 2 * diameter**2
    gradients = gradient_bound + proximity * diameter
    both = values + sqrt(m) * gradients * diameter
    # log(1 + 32 S^2 / slater^2 exp(...)), whose exponential is too large for a float where slater is far above S
    exponent = slater / (8 * both)
    last = (
        exponent + log(exp(-exponent) + 32 * both**2 / slater**2)
        if exponent > 1
        else log1p(32 * both**2 / slater**2 * exp(exponent))
    )
    queue = (
        slater / 2
        + both
        + (2 * diameter**2 + 2 * gradients * diameter + both**2) / slater
        + 8 * both**2 / slater * (last + log(2 * K / delta))
    )
    objective = diameter**2 + gradients**2 / 4 + both**2 / 2 + sqrt(log(1 / delta)) * values * queue
    constraints = queue + gradients**2 + sqrt(m) * gradients**2 * queue / 2
    return OnlineBound(objective / sqrt(K), constraints / sqrt(K))


def _modulus(weak_convexity: float, proximity: float) -> float:
    """Strong convexity of the subproblems."""
    check_not_negative(weak_convexity=weak_convexity)
    check_positive(proximity=proximity)
    if not proximity > weak_convexity:
        raise ValueError(f"proximity must be above weak_convexity; got {proximity!r} and {weak_convexity!r}.")
    return proximity - weak_convexity
