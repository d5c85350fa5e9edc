"""Generated data whose group gaps follow from the arguments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.utils import check_random_state

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.checks.messages import is_number

__all__ = ["make_biased_classification", "make_biased_ranking", "make_biased_regression"]

RandomState = int | np.random.RandomState | None
#: Documentation of the parameters that generators have in common.
_SHARED = r"""Parameters
----------
n_samples : int, default=1000
    Number of rows.
n_features : int, default=10
    Number of columns, at least ``n_informative + 1``.
group_proportions : sequence of float of length n_groups, default=(0.7, 0.3)
    :math:`\pi_g`, positive, with sum 1. Its length is the number of groups.
proxy_strength : float, default=1.0
    :math:`c`: how far the means of neighbouring groups lie apart in the proxy column, in standard deviations; with 0 it
    is noise.
n_informative : int, default=2
    :math:`k \ge 1`, the number of columns that carry the label or the target.
random_state : int, RandomState or None, default=None
    Seed; an int gives the same data at every call.

Raises
------
ValueError
    If an argument is out of its range or the lengths differ.
"""


@documented_by(_SHARED)
def make_biased_classification(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    group_proportions: Sequence[float] = (0.7, 0.3),
    positive_rates: Sequence[float] = (0.6, 0.3),
    separation: float | Sequence[float] = 2.0,
    group_shift: float | Sequence[float] = 0.0,
    proxy_strength: float = 1.0,
    n_informative: int = 2,
    random_state: RandomState = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Generate a binary classification problem with groups that differ in a known way.

    Rows are independent. With :math:`k` = ``n_informative``, a row of group :math:`g` is drawn as

    .. math::
        g &\sim \mathrm{Cat}(\pi), \qquad y \mid g \sim \mathrm{Bernoulli}(p_g), \\
        z = \tfrac{1}{\sqrt{k}} {\textstyle\sum_{j<k} x_j} \mid y, g
          &\sim \mathcal{N}\bigl(m_g + d_g (y - \tfrac12),\; 1\bigr), \\
        x_k \mid g &\sim \mathcal{N}(c\, g, 1), \qquad x_j \sim \mathcal{N}(0, 1) \text{ for } j > k.

    The first ``n_informative`` columns carry the label in equal parts, the next one is a proxy of the group,
    the others are noise.

    Parameters
    ----------
    positive_rates : sequence of float of length n_groups, default=(0.6, 0.3)
        :math:`p_g = P(y = 1 \mid g)`, in [0, 1].
    separation : float or sequence of length n_groups, default=2.0
        :math:`d_g \ge 0`: distance of the two classes along ``z``, in standard deviations. A smaller value
        makes the labels of a group harder to predict.
    group_shift : float or sequence of length n_groups, default=0.0
        :math:`m_g`: shift of both classes of a group along ``z``, in standard deviations: features that
        underrate (negative) or overrate a group whatever its label.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Features, float64.
    y : ndarray of shape (n_samples,)
        Label 0 or 1.
    sensitive_features : ndarray of shape (n_samples,)
        Group ``0 .. n_groups - 1``, drawn, so that the counts vary about ``n_samples * group_proportions``.

    Notes
    -----
    With :math:`\Phi` the standard normal distribution function, these population quantities are exact:

    - The labels have the demographic parity gap :math:`\max_g p_g - \min_g p_g`, and so has a perfect
      classifier.
    - The classifier :math:`1[z > t]` has the true positive rate :math:`\Phi(m_g + d_g / 2 - t)`, the false
      positive rate :math:`\Phi(m_g - d_g / 2 - t)` and the selection rate
      :math:`p_g \mathrm{TPR}_g + (1 - p_g) \mathrm{FPR}_g` in group :math:`g`: its equalized odds and
      demographic parity gaps follow. With equal ``separation`` and ``group_shift`` it has no equalized odds
      gap at any threshold.
    - Within group :math:`g` the score ``z`` has the AUC :math:`\Phi(d_g / \sqrt 2)`.
    - The proxy column tells group :math:`g` from :math:`g + 1` with the AUC :math:`\Phi(c / \sqrt 2)`.

    Examples
    --------
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(20000, positive_rates=(0.6, 0.3), random_state=0)
    >>> X.shape
    (20000, 10)
    >>> abs(float(y[groups == 0].mean() - y[groups == 1].mean()) - 0.3) < 0.02
    True
    """
    proportions = _proportions(group_proportions)
    rates = _per_group(positive_rates, len(proportions), "positive_rates")
    distance = _per_group(separation, len(proportions), "separation")
    shift = _per_group(group_shift, len(proportions), "group_shift")
    if ((rates < 0) | (rates > 1)).any():
        raise ValueError(f"positive_rates must lie in [0, 1]; got {positive_rates!r}.")
    if (distance < 0).any():
        raise ValueError(f"separation must not be negative; got {separation!r}.")

    rng = check_random_state(random_state)
    groups = _draw_groups(rng, n_samples, proportions)
    y = (rng.uniform(size=n_samples) < rates[groups]).astype(np.int64)
    score_mean = shift[groups] + distance[groups] * (y - 0.5)
    X = _features(rng, groups, score_mean, n_features, n_informative, proxy_strength)
    return X, y, groups


@documented_by(_SHARED)
def make_biased_regression(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    group_proportions: Sequence[float] = (0.7, 0.3),
    group_means: Sequence[float] = (0.0, -1.0),
    effect: float = 1.0,
    noise: float = 0.5,
    proxy_strength: float = 1.0,
    n_informative: int = 2,
    random_state: RandomState = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Generate a regression problem whose target differs between groups by a known amount.

    Rows are independent. With :math:`k` = ``n_informative``, a row of group :math:`g` is drawn as

    .. math::
        g \sim \mathrm{Cat}(\pi), \qquad
        z = \tfrac{1}{\sqrt{k}} {\textstyle\sum_{j<k} x_j} \sim \mathcal{N}(0, 1), \qquad
        y = \mu_g + a z + b\, \varepsilon, \quad \varepsilon \sim \mathcal{N}(0, 1).

    The column after the informative ones is a proxy of the group,
    :math:`x_k \mid g \sim \mathcal{N}(c\,g, 1)`; the others are noise.

    Parameters
    ----------
    group_means : sequence of float of length n_groups, default=(0.0, -1.0)
        :math:`\mu_g = E[y \mid g]`, in units of the target.
    effect : float, default=1.0
        :math:`a`: rise of the target for one standard deviation of ``z``.
    noise : float, default=0.5
        :math:`b \ge 0`: standard deviation of the part that no feature explains.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Features, float64.
    y : ndarray of shape (n_samples,)
        Target, float64.
    sensitive_features : ndarray of shape (n_samples,)
        Group ``0 .. n_groups - 1``, drawn, so that the counts vary about ``n_samples * group_proportions``.

    Notes
    -----
    With :math:`\Phi` the standard normal distribution function and :math:`\sigma^2 = a^2 + b^2`, these
    population quantities are exact:

    - :math:`y \mid g \sim \mathcal{N}(\mu_g, \sigma^2)`, so that the mean gap of groups g and h is
      :math:`|\mu_g - \mu_h|` and their Kolmogorov-Smirnov distance
      :math:`2 \Phi\bigl(|\mu_g - \mu_h| / (2 \sigma)\bigr) - 1`.
    - The best predictor that knows the group, :math:`\mu_g + a z`, has the mean squared error :math:`b^2`.

    Examples
    --------
    >>> from fairconstrained.datasets import make_biased_regression
    >>> X, y, groups = make_biased_regression(20000, group_means=(0.0, -1.0), random_state=0)
    >>> abs(float(y[groups == 0].mean() - y[groups == 1].mean()) - 1.0) < 0.1
    True
    """
    proportions = _proportions(group_proportions)
    means = _per_group(group_means, len(proportions), "group_means")
    if noise < 0:
        raise ValueError(f"noise must not be negative; got {noise!r}.")

    rng = check_random_state(random_state)
    groups = _draw_groups(rng, n_samples, proportions)
    X = _features(rng, groups, np.zeros(n_samples), n_features, n_informative, proxy_strength)
    z = X[:, :n_informative].sum(axis=1) / np.sqrt(n_informative)
    y = means[groups] + effect * z + noise * rng.standard_normal(n_samples)
    return X, y, groups


@documented_by(_SHARED)
def make_biased_ranking(
    n_queries: int = 100,
    n_documents: int = 10,
    n_features: int = 10,
    *,
    n_grades: int = 5,
    group_proportions: Sequence[float] = (0.7, 0.3),
    separation: float | Sequence[float] = 2.0,
    group_shift: float | Sequence[float] = (0.0, -1.0),
    proxy_strength: float = 1.0,
    n_informative: int = 2,
    random_state: RandomState = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""Generate queries with graded documents, of which those of some groups are underrated.

    Documents are independent. With :math:`k` = ``n_informative``, one of group :math:`g` is drawn as

    .. math::
        g \sim \mathrm{Cat}(\pi), \qquad u \sim \mathcal{N}(0, 1), \qquad
        z = \tfrac{1}{\sqrt{k}} {\textstyle\sum_{j<k} x_j} \mid u, g \sim \mathcal{N}(m_g + d_g u,\; 1),

    and its grade is the number of the ``n_grades`` equally likely intervals in which u may lie. The column after the
    informative ones is a proxy of the group, :math:`x_k \mid g \sim \mathcal{N}(c\,g, 1)`; the others are noise.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries.
    n_documents : int, default=10
        Number of documents of every query.
    n_grades : int, default=5
        Number of grades of relevance, at least 2.
    separation : float or sequence of length n_groups, default=2.0
        :math:`d_g`: how much of the relevance u the features show.
    group_shift : float or sequence of length n_groups, default=(0.0, -1.0)
        :math:`m_g`: what the features add to the relevance of a group, in standard deviations of their noise.

    Returns
    -------
    X : ndarray of shape (n_queries * n_documents, n_features)
        Features, float64.
    y : ndarray of shape (n_queries * n_documents,)
        Grade ``0 .. n_grades - 1``.
    qid : ndarray of shape (n_queries * n_documents,)
        Query ``0 .. n_queries - 1``, ascending.
    sensitive_features : ndarray of shape (n_queries * n_documents,)
        Group ``0 .. n_groups - 1``.

    Notes
    -----
    In the population the score z ranks pairs of documents of two groups right as often whichever group the better one
    is of, if their ``separation`` and ``group_shift`` are equal; a document of a group with a smaller shift is ranked
    right less often when it is the better one.

    Examples
    --------
    >>> from fairconstrained.datasets import make_biased_ranking
    >>> X, y, qid, groups = make_biased_ranking(n_queries=50, n_documents=8, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((400, 10), [0, 1, 2, 3, 4])
    """
    proportions = _proportions(group_proportions)
    slope = _per_group(separation, len(proportions), "separation")
    shift = _per_group(group_shift, len(proportions), "group_shift")
    if n_queries < 1 or n_documents < 1 or n_grades < 2:
        raise ValueError(
            "n_queries and n_documents must be at least 1 and n_grades at least 2; "
            f"got {n_queries!r}, {n_documents!r}, {n_grades!r}."
        )
    rng = check_random_state(random_state)
    groups = _draw_groups(rng, n_queries * n_documents, proportions)
    relevance = rng.standard_normal(groups.size)
    y = np.digitize(ndtr(relevance), np.arange(1, n_grades) / n_grades)
    X = _features(rng, groups, shift[groups] + slope[groups] * relevance, n_features, n_informative, proxy_strength)
    return X, y, np.repeat(np.arange(n_queries), n_documents), groups


def _proportions(group_proportions: Sequence[float]) -> np.ndarray:
    proportions = np.asarray(group_proportions, dtype=np.float64)
    if proportions.ndim != 1 or not (proportions > 0).all() or not np.isclose(proportions.sum(), 1.0):
        raise ValueError(f"group_proportions must be positive numbers with sum 1; got {group_proportions!r}.")
    return proportions


def _per_group(value: ArrayLike, n_groups: int, name: str) -> np.ndarray:
    """One number for each group; a single number serves all."""
    values = np.asarray(value, dtype=np.float64)
    if values.ndim > 1 or (values.ndim == 1 and values.size != n_groups) or not np.isfinite(values).all():
        raise ValueError(
            f"{name} must hold one finite number for each of the {n_groups} groups of group_proportions; got {value!r}."
        )
    return np.broadcast_to(values, (n_groups,))


def _draw_groups(rng: np.random.RandomState, n_samples: int, proportions: np.ndarray) -> np.ndarray:
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1; got {n_samples!r}.")
    return rng.choice(len(proportions), size=n_samples, p=proportions / proportions.sum()).astype(np.int64)


def _features(
    rng: np.random.RandomState,
    groups: np.ndarray,
    score_mean: np.ndarray,
    n_features: int,
    n_informative: int,
    proxy_strength: float,
) -> np.ndarray:
    """Standard normal columns, moved so that ``z`` has mean ``score_mean`` and the proxy the group's."""
    if n_informative < 1 or n_features < n_informative + 1:
        raise ValueError(
            "n_informative must be at least 1 and n_features at least n_informative + 1 (the proxy column); "
            f"got n_informative={n_informative!r}, n_features={n_features!r}."
        )
    if not is_number(proxy_strength):
        raise ValueError(f"proxy_strength must be a finite number; got {proxy_strength!r}.")
    X = rng.standard_normal((len(groups), n_features))
    X[:, :n_informative] += score_mean[:, np.newaxis] / np.sqrt(n_informative)
    X[:, n_informative] += proxy_strength * groups
    return X
