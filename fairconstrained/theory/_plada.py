"""Step lengths for which the proximal-perturbed Lagrangian method is known to converge."""

from __future__ import annotations

from dataclasses import dataclass

from fairconstrained.checks.messages import check_fraction, check_not_negative, check_positive

__all__ = ["PLADASteps", "plada_steps"]


@dataclass(frozen=True)
class PLADASteps:
    r"""Bounds on the steps of PLADA.

    Attributes
    ----------
    rho : float
        :math:`\rho = \alpha / (1 + \alpha \beta)`, the step of the multipliers.
    learning_rate : float
        :math:`\eta` has to be below it.
    slack_rate : float
        :math:`\tau` has to be below it.
    limited_by : {"objective", "constraints"}
        Name of the larger of the two terms in the bound on :math:`\eta`, :math:`L_F` or :math:`3 \rho M_G^2`.
    """

    rho: float
    learning_rate: float
    slack_rate: float
    limited_by: str


def plada_steps(
    *, smoothness: float, constraint_lipschitz: float, alpha: float = 10.0, beta: float = 0.1
) -> PLADASteps:
    r"""Largest steps of PLADA for which its Lagrangian nearly decreases (Algorithm 1, Lemma 4).

    .. math:: \rho = \frac{\alpha}{1 + \alpha \beta}, \qquad 0 < \eta < \frac{1}{L_F + 3 \rho M_G^2}, \qquad
              0 < \tau < \frac{1}{3 \rho}.

    Parameters
    ----------
    smoothness : float
        :math:`L_F`, a Lipschitz constant of the objective's gradient, at least 0 (Assumption 2).
    constraint_lipschitz : float
        :math:`M_G`, a bound on the norm of the constraints' Jacobian, positive (Assumption 3).
    alpha : float, default=10.0
        Penalty of the Lagrangian, above 1.
    beta : float, default=0.1
        Proximal parameter, in (0, 1).

    Returns
    -------
    steps : PLADASteps

    Raises
    ------
    ValueError
        If a constant is out of its range.

    Notes
    -----
    The published experiments take :math:`\tau = 0.1` at :math:`\alpha = 10` and :math:`\beta = 0.1`, where
    :math:`\rho = 5` and the bound is 0.067: they are outside of what the theorem covers. The constant of the decrease
    in Lemma 4 is printed as :math:`\delta_k^2 / (2 \rho) + \delta_k / \rho` and proved as
    :math:`(2 \delta_k^2 + \delta_k) / \rho`; the steps do not depend on it.

    References
    ----------
    .. [1] "A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness
       constraints", Algorithm 1, Lemma 4.

    Examples
    --------
    >>> from fairconstrained.theory import plada_steps
    >>> steps = plada_steps(smoothness=0.25, constraint_lipschitz=0.5)
    >>> steps.rho, round(steps.learning_rate, 3), round(steps.slack_rate, 3), steps.limited_by
    (5.0, 0.25, 0.067, 'constraints')
    """
    check_not_negative(smoothness=smoothness)
    check_positive(constraint_lipschitz=constraint_lipschitz, alpha=alpha)
    if not alpha > 1:
        raise ValueError(f"alpha must be above 1; got {alpha!r}.")
    rho = alpha / (1 + alpha * check_fraction("beta", beta))
    terms = {"objective": float(smoothness), "constraints": 3 * rho * constraint_lipschitz**2}
    return PLADASteps(rho, 1 / sum(terms.values()), 1 / (3 * rho), max(terms, key=lambda name: terms[name]))
