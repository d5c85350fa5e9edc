"""How the bounded metrics vary with the sampling of the rows, at given scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData

__all__ = ["Sampled", "sampled", "standard_errors"]

#: Draws of weights, so many where rows are few and at least so many: they tell a standard error to 14 and to 22 %.
_MOST_DRAWS, _LEAST_DRAWS = 25, 10
#: Rows of all draws together, beyond which there are fewer draws.
_DRAWN_ROWS = 250_000
#: Weight of either decision that is added to a cell where all decisions are the same.
_ADDED = 0.5


class Sampled(NamedTuple):
    """A bounded metric on samples of the rows."""

    #: The metric on every sample, without those on which it does not exist.
    values: np.ndarray  # of shape (n_draws,)
    #: Returns the metric on all samples together, which a standard error does not need.
    together: Callable[[], float]

    @property
    def excess(self) -> float:
        """The mean metric of the samples less that of all together; negative for a least rate."""
        return float(self.values.mean()) - self.together() if self.values.size else np.nan

    def error_of(self, estimate: float) -> float:
        """Standard error of an estimate: the root of the mean square of what the samples differ from it by."""
        return float(np.sqrt(((self.values - estimate) ** 2).mean())) if self.values.size else np.nan


def sampled(
    constraints: Sequence[BoundConstraint], data: FairData, scores: np.ndarray, units: np.ndarray | None = None
) -> dict[str, Sampled]:
    """The metrics on the samples of `standard_errors`, which has the arguments; a dict by the constraint's name."""
    units = data.clusters if units is None else units
    without = data.without_features  # no metric asks for features
    return {each.name: _sampled(each, without, scores, units) for each in constraints}


def standard_errors(
    constraints: Sequence[BoundConstraint], data: FairData, scores: np.ndarray, units: np.ndarray | None = None
) -> dict[str, float]:
    r"""Standard error of every bounded metric at fixed scores, by the Bayesian bootstrap.

    .. math:: \mathrm{SE}^2 = \frac{1}{B} \sum_{b=1}^{B} (\theta_b - \theta)^2

    with the metric :math:`\theta` of the rows, and the metrics :math:`\theta_b` of the same rows with weights that are
    multiplied by draws of the exponential distribution. B is 25, and falls to 10 where there are 25,000 rows. So the
    largest of several gaps and the absolute value of a small one vary as they do from sample to sample, and no cell is
    ever empty. The draws are the same in every call.

    A rate of no row or of all rows would not vary at all. Where all rows of a group and label have the same decision,
    half a row of either decision is added to them; where several rows make up a sample, half a sample.

    Parameters
    ----------
    constraints : sequence of BoundConstraint
        On the data; they can be measured on other rows.
    data : FairData
    scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
    units : ndarray of shape (n_samples,), optional
        Numbers of what the rows are drawn in, such as queries; None: the clusters of the data, or single rows.

    Returns
    -------
    errors : dict
        By the constraint's name; NaN where the metric does not exist.

    References
    ----------
    Rubin, The Bayesian bootstrap, Annals of Statistics 9(1), 1981. Gart, Alternative analyses of contingency tables,
    Journal of the Royal Statistical Society B 28(1), 1966: halves that are added to cells of a table.
    """
    found = sampled(constraints, data, scores, units)
    return {each.name: found[each.name].error_of(each.metric(scores)) for each in constraints}


def _sampled(constraint: Any, data: FairData, scores: np.ndarray, units: np.ndarray | None) -> Sampled:
    rows, sides = _with_both_decisions(constraint, data, scores)
    place = rows if units is None else np.unique(units, return_inverse=True)[1][rows]
    own, given = sides == 0, data.weights.numpy()[rows]
    at = scores[rows] if own.all() else np.where(own, scores[rows], constraint.decision_threshold + sides)
    drawn = constraint.on(data.at(rows))

    rng = np.random.default_rng(1)  # other draws than those of the rows

    def weights(factors: np.ndarray) -> np.ndarray:
        factors = factors[place]
        factors[~own] = rng.standard_gamma(_ADDED, rows.size - data.n_samples)
        drawn_weights = given * factors
        return drawn_weights / drawn_weights.sum()

    factors, at_once = _factors(data.n_samples), max(1, _DRAWN_ROWS // rows.size)
    values, total = [], np.zeros(rows.size)
    while block := list(islice(factors, at_once)):
        of_block = np.stack(list(map(weights, block)))
        values.append(drawn.metrics_with_weights(at, of_block))
        total += of_block.sum(axis=0)
    found = np.concatenate(values)
    return Sampled(found[~np.isnan(found)], lambda: float(drawn.metrics_with_weights(at, total[None] / total.sum())[0]))


def _factors(n_samples: int) -> Iterator[np.ndarray]:
    """Draws of the exponential distribution for every row; of few rows they are kept, as every fit asks for them."""
    if n_samples * _LEAST_DRAWS <= _DRAWN_ROWS:
        return iter(_kept_factors(n_samples))
    rng = np.random.default_rng(0)
    return (rng.standard_exponential(n_samples) for _ in range(_LEAST_DRAWS))


@lru_cache(maxsize=1)
def _kept_factors(n_samples: int) -> np.ndarray:
    """All draws for so few rows that they are small; ndarray of shape (n_draws, n_samples)."""
    n_draws = min(_MOST_DRAWS, _DRAWN_ROWS // n_samples)
    return np.random.default_rng(0).standard_exponential((n_draws, n_samples))


def _with_both_decisions(
    constraint: BoundConstraint, data: FairData, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all rows, and of one sample of every cell with one decision alone twice more, for either decision.

    Returns
    -------
    rows : ndarray of shape (n_drawn,)
        Ascending where a row is a sample; else the rows of a sample stand together, as in the data.
    sides : ndarray of shape (n_drawn,)
        0 for the rows as they are, -1 and 1 for what is added.
    """
    rows, threshold = np.arange(data.n_samples), constraint.decision_threshold
    if threshold is None:
        return rows, np.zeros(rows.size)
    keys = 2 * data.codes + (data.y.numpy() > 0)
    if data.strata is not None:
        keys = keys * (data.strata.codes.max() + 1) + data.strata.codes
    _, first, cells = np.unique(keys, return_index=True, return_inverse=True)
    shares = np.bincount(cells, scores > threshold) / np.bincount(cells)
    size = data.rows_of_sample
    alike = first[(shares == 0) | (shares == 1)] // size
    added = (size * alike[:, None] + np.arange(size)).ravel()
    drawn = np.concatenate([rows, added, added])
    sides = np.repeat([0.0, 1.0, -1.0], [rows.size, added.size, added.size])
    order = np.lexsort((drawn, sides < 0, sides > 0, drawn // size))
    return drawn[order], sides[order]
