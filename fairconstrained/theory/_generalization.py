"""Bounds on the gap of new data, from one that is bounded on the training data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from fairconstrained.checks.messages import check_fraction, check_integer, check_not_negative, check_positive
from fairconstrained.metrics.intervals import PercentileIntervals
from fairconstrained.metrics.validation import check_groups, check_scores
from fairconstrained.surrogates import SURROGATES

__all__ = ["GeneralizationBound", "ObjectiveBound", "generalization_bound", "objective_bound", "rows_near_thresholds"]


@dataclass(frozen=True)
class GeneralizationBound:
    """The terms of :func:`generalization_bound`, for the group in which their sum is largest.

    Attributes
    ----------
    discretization : float
        ``1 / |I|``, because the constraint was imposed at finitely many levels; 0 without ``n_levels``.
    surrogate : float
        ``(gamma + n_near / n) / (beta - alpha)``, because the surrogate differs from the indicator; 0 without
        ``n_near``.
    estimation : float
        ``E(n) / (beta - alpha)``, because the training data are a sample.
    group : object
        Label of the group in which the sum is largest; its position if sizes came without labels.
    """

    discretization: float
    surrogate: float
    estimation: float
    group: Hashable

    @property
    def total(self) -> float:
        """The sum of the three terms, at least 0; from 1 on it says nothing."""
        return self.discretization + self.surrogate + self.estimation

    @property
    def limited_by(self) -> str:
        """The name of the largest term."""
        return max(("discretization", "surrogate", "estimation"), key=lambda name: getattr(self, name))


def generalization_bound(
    n_per_group: Sequence[int] | Mapping[Hashable, int],
    *,
    vc_dim: int,
    n_levels: int | None = None,
    delta: float = 0.05,
    interval: Any = (0.0, 1.0),
    n_near: Sequence[int] | Mapping[Hashable, int] | None = None,
    margin: float = 0.0,
) -> GeneralizationBound:
    r"""Order of magnitude by which the gap on new data may exceed ``kappa``.

    With probability at least :math:`1 - \delta` over the training data, every feasible model has a partial
    statistical parity gap in the population of at most :math:`\kappa` plus a constant times

    .. math:: \frac{1}{|\hat I|} + \max_g \frac{\gamma + n_g^\gamma / n_g + E(n_g)}{\beta - \alpha}, \qquad
        E(n) = \sqrt{\frac{8\, \mathrm{VC}\, (\log n + 1)}{n}}
        + \sqrt{\frac{2 \log(4 |\hat I| |G| / \delta)}{n}}.

    **This is an order of magnitude, not a certificate.** The theorem hides the constant in :math:`O(\cdot)`;
    here it is 1. It has to hold for every distribution and for the worst model of the class, so it is loose: for
    ten features and a quarter of the ranks it takes 20,000 rows of the smallest group to get below 1, and above
    1 it says nothing. Use it to see how the error depends on the size of the groups, the length of the interval
    and the number of parameters; measure the gap on held-out rows to know what it is.

    Parameters
    ----------
    n_per_group : sequence of int of length n_groups, or dict or Series from group to int
        Training rows of every group.
    vc_dim : int
        Vapnik-Chervonenkis dimension of the decisions ``1[h_w(x) > theta]`` over all ``w`` and ``theta``, at
        least 1. For a linear model ``n_features + 1``; with ``group_interactions=True`` the same, since every
        group is judged by its own coefficients alone.
    n_levels : int, default=None
        :math:`|\hat I|`, equally spaced ranks at which the constraint was imposed. None: the constraint holds
        for the metric itself, at every rank.
    delta : float, default=0.05
        Probability with which the bound may fail, in (0, 1).
    interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
        Interval of ranks, as in :func:`~fairconstrained.metrics.partial_statistical_parity_gap`.
    n_near : sequence of int of length n_groups, or dict or Series from group to int, default=None
        :math:`n_g^\gamma`, the number of rows of the group so near to a threshold that the surrogate is at most
        :math:`1 - \gamma`, from :func:`rows_near_thresholds`. It needs ``margin``. None means that no surrogate was
        involved.
    margin : float, default=0.0
        :math:`\gamma`, in (0, 1) if ``n_near`` is given.

    Returns
    -------
    bound : GeneralizationBound
        Bound with its terms ``discretization``, ``surrogate`` and ``estimation``, all of the worst ``group``, and their
        sum ``total``.

    Raises
    ------
    ValueError
        If an argument is out of its range, lengths or groups differ, or only one of ``n_near`` and
        ``margin`` is given.

    Notes
    -----
    The first and second term are the price of imposing a surrogate constraint at finitely many levels. The
    solver "auto" bounds the exact metric on the training data instead, so for its models both vanish: leave out
    ``n_levels``, ``n_near`` and ``margin``. Then :math:`|\hat I|` counts as 1 in the logarithm too: the deviation
    bounded by :math:`E` is uniform over the thresholds, and a union is taken over the groups only.

    For such models the constant can be had as well. clip is 1-Lipschitz, so by the triangle inequality the gap
    of two groups in the population and on the training data differ by at most
    :math:`(E(n_g) + E(n_{g'})) / (\beta - \alpha)`, which is at most twice ``estimation``.

    Rows have to be drawn independently, and their weights to be equal.

    References
    ----------
    .. [1] Y. He, Y. Huang, Y. Yao, Q. Lin, "Enforcing Fair Predicted Scores on Intervals of Percentiles by
       Difference-of-Convex Constraints", arXiv:2505.12530. Theorem F.1, Appendix F.

    Examples
    --------
    A model of ten features and an intercept, whose exact gap on the top fifth is bounded:

    >>> from fairconstrained.theory import generalization_bound
    >>> bound = generalization_bound({"a": 10**6, "b": 10**5}, vc_dim=11, interval=(0, 0.2))
    >>> bound.group, round(bound.total, 2), bound.total == bound.estimation
    ('b', 0.58, True)
    """
    counts = _counts("n_per_group", n_per_group, least=1)
    labels, sizes = counts.index.tolist(), counts.to_numpy(dtype=float)
    levels = None if n_levels is None else check_integer("n_levels", n_levels)
    delta = check_fraction("delta", delta)
    if (n_near is None) != (margin == 0):
        raise ValueError("n_near and margin belong together: give both, or neither if the exact metric is bounded.")
    near = np.zeros(sizes.size)
    if n_near is not None:
        margin = check_fraction("margin", margin)
        near = _near(n_near, counts)
    length = PercentileIntervals.parse(interval, labels).length
    union = 4 * (levels or 1) * sizes.size / delta
    deviation = np.sqrt(8 * check_integer("vc_dim", vc_dim) * (np.log(sizes) + 1) / sizes)
    estimation = (deviation + np.sqrt(2 * np.log(union) / sizes)) / length
    surrogate = (margin + near / sizes) / length
    worst = int((surrogate + estimation).argmax())
    return GeneralizationBound(
        discretization=0.0 if levels is None else 1 / levels,
        surrogate=float(surrogate[worst]),
        estimation=float(estimation[worst]),
        group=labels[worst],
    )


def rows_near_thresholds(
    scores: npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    sensitive_features: Any,
    margin: float,
    surrogate: str = "ramp",
    width: float = 1.0,
) -> pd.Series[int]:
    r"""Count the rows that a surrogate misjudges: ``n_near`` of :func:`generalization_bound`.

    .. math:: n_g^\gamma = \max_p \left| \left\{ i \in g :
              \sigma \bigl( |h_w(x_i) - \theta_p| / \text{width} \bigr) \le 1 - \gamma \right\} \right|

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        :math:`h_w(x)`, such as of ``decision_function``.
    thresholds : array-like of shape (n_levels,)
        :math:`\theta_p`, where the constraint compares the groups' rates.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Group of every row; several columns are combined.
    margin : float
        :math:`\gamma`, in (0, 1).
    surrogate : {"ramp", "logistic", "smoothstep"}, default="ramp"
        :math:`\sigma`.
    width : float, default=1.0
        Positive, in units of the scores.

    Returns
    -------
    n_near : Series from group to int
        The largest number over the thresholds.

    Raises
    ------
    ValueError
        If an argument is out of its range, or lengths differ.

    References
    ----------
    .. [1] Y. He, Y. Huang, Y. Yao, Q. Lin, arXiv:2505.12530. Appendix F, step 3.

    Examples
    --------
    The ramp of width 1 reaches 0.9 at a distance of 0.4:

    >>> from fairconstrained.theory import rows_near_thresholds
    >>> near = rows_near_thresholds(
    ...     [0.0, 0.3, 0.5, 2.0], [0.0, 1.8], sensitive_features=["a", "a", "b", "b"], margin=0.1
    ... )
    >>> near.to_dict()
    {'a': 2, 'b': 1}
    """
    values = check_scores(scores, None)
    levels = np.atleast_1d(np.asarray(thresholds, dtype=float))
    if levels.ndim != 1 or levels.size == 0 or not np.isfinite(levels).all():
        raise ValueError(f"thresholds must hold at least one finite number; got {thresholds!r}.")
    if surrogate not in SURROGATES:
        raise ValueError(f"surrogate must be one of {sorted(SURROGATES)}; got {surrogate!r}.")
    check_positive(width=width)
    margin, groups = check_fraction("margin", margin), check_groups(sensitive_features, None, values.size)
    distances = torch.from_numpy(np.abs(values - levels[:, None]) / width)
    is_near = SURROGATES[surrogate].value(distances).numpy() <= 1 - margin
    counts = [np.bincount(groups.codes[near], minlength=len(groups.labels)) for near in is_near]
    return pd.Series(np.max(counts, axis=0), index=pd.Index(groups.labels, tupleize_cols=False))


@dataclass(frozen=True)
class ObjectiveBound:
    """The terms of :func:`objective_bound`.

    Attributes
    ----------
    complexity : float
        :math:`R_{n_0}`, the Rademacher complexity of the losses of the class of models.
    estimation : float
        The deviation of a mean over the rows from its expectation.
    """

    complexity: float
    estimation: float

    @property
    def total(self) -> float:
        """The sum of the terms, in units of the loss."""
        return self.complexity + self.estimation

    @property
    def limited_by(self) -> str:
        """The name of the larger term."""
        return "complexity" if self.complexity > self.estimation else "estimation"


def objective_bound(
    n_samples: int, *, rademacher: float, n_groups: int, n_levels: int | None = None, delta: float = 0.05
) -> ObjectiveBound:
    r"""Bound the excess of the loss on new data over that of the best model under a tighter bound (Theorem F.2).

    With probability at least :math:`1 - \delta`, the model :math:`\hat w` that is optimal on the training data with
    ``kappa`` has, in the population,

    .. math:: f_0(\hat w) - f_0(w^*) \le R_{n_0} + \sqrt{\frac{2 \log(4 |\hat I| |G| / \delta)}{n_0}},

    where :math:`w^*` is the best model whose gap in the population is at most ``kappa`` minus the total of
    :func:`generalization_bound`.

    Parameters
    ----------
    n_samples : int
        :math:`n_0`, training rows.
    rademacher : float
        :math:`R_{n_0}`, Rademacher complexity of the losses of the class of models, at least 0. For linear scores with
        :math:`\|w\|_2 \le B` and a loss of slope at most L, at most :math:`L B \sqrt{\sum_i \|x_i\|^2} / n_0`.
    n_groups : int
        :math:`|G|`.
    n_levels : int, default=None
        :math:`|\hat I|`, see :func:`generalization_bound`; None counts as 1.
    delta : float, default=0.05
        Probability with which the bound may fail, in (0, 1).

    Returns
    -------
    bound : ObjectiveBound

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The losses have to lie in [0, 1]: the theorem leaves this to the uniform convergence results that it cites, and
    with it their constant in front of :math:`R_{n_0}`, which is 2 in the usual form.

    References
    ----------
    .. [1] Y. He, Y. Huang, Y. Yao, Q. Lin, arXiv:2505.12530. Theorem F.2.

    Examples
    --------
    >>> from fairconstrained.theory import objective_bound
    >>> bound = objective_bound(100_000, rademacher=0.01, n_groups=2, n_levels=10)
    >>> round(bound.total, 4), bound.limited_by
    (0.0221, 'estimation')
    """
    n, groups = check_integer("n_samples", n_samples), check_integer("n_groups", n_groups)
    levels = 1 if n_levels is None else check_integer("n_levels", n_levels)
    check_not_negative(rademacher=rademacher)
    union = 4 * levels * groups / check_fraction("delta", delta)
    return ObjectiveBound(float(rademacher), float(np.sqrt(2 * np.log(union) / n)))


def _counts(name: str, counts: Any, least: int) -> pd.Series[int]:
    """Numbers of rows by the label of the group."""
    values = pd.Series([] if np.ndim(counts) == 0 and not isinstance(counts, Mapping) else counts)
    if values.size == 0 or values.dtype.kind not in "iu" or values.min() < least:
        raise ValueError(f"{name} must hold one integer of at least {least} for each group; got {counts!r}.")
    return values


def _near(n_near: Any, sizes: pd.Series[int]) -> np.ndarray:
    """``n_near`` in the order of ``sizes``."""
    near = _counts("n_near", n_near, least=0)
    if set(near.index) != set(sizes.index):
        raise ValueError(f"n_near must have the groups of n_per_group, {list(sizes.index)}; got {list(near.index)}.")
    aligned = near[sizes.index].to_numpy()
    if np.any(aligned > sizes):
        raise ValueError(f"n_near counts rows of the group, so it cannot exceed n_per_group; got {n_near!r}.")
    return aligned
