"""The few features of a head: functions of the scores of a model and of the groups' probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.preprocessing import SplineTransformer

__all__ = ["ScoreBasis"]

#: Rows for each function of the scores, and functions at most. With few rows, many functions overfit the bound.
_ROWS_PER_FUNCTION, _MOST = 3000, 6
#: Rows of the smallest group for each function of a regressor's predictions where groups are known. One function could
#: only shift and stretch those of a group, which makes no two distributions alike that differ in their form.
_KNOWN_ROWS_PER_FUNCTION = 250


@dataclass(frozen=True, eq=False)
class ScoreBasis:
    r"""Piecewise linear functions of scores, alone and times the groups' probabilities.

    With the functions :math:`B_1, \ldots, B_k` of a linear spline of the scores s, and the probabilities :math:`b_g` of
    the groups, less their means, the features of a row are

    .. math:: B_j(s), \quad b_g, \quad b_g B_j(s) \qquad \text{for all } j, g.

    There is one function for every 3,000 rows, or for every 250 rows of the smallest group if that makes more, the
    groups are known and the scores are those of a regressor; at least one and at most six. Between the least and the
    largest score, the spline has knots at the ranks :math:`(j - 1/2) / (k - 1)`.
    """

    #: The spline of every column of scores; None for a column that is constant.
    splines: tuple[SplineTransformer | None, ...]
    #: Means of the groups' probabilities.
    centre: np.ndarray  # of shape (n_group_columns,)
    #: mean and scale: means and standard deviations with which the features are standardised.
    mean: np.ndarray  # of shape (n_columns,)
    scale: np.ndarray  # of shape (n_columns,)

    @classmethod
    def of(cls, scores: np.ndarray, groups: np.ndarray, n_known: int = 0) -> Self:
        """Place the knots by the scores of some rows, and standardise the features there.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_scores)
        groups : ndarray of shape (n_samples, n_group_columns)
            Probabilities of the groups; may have no columns.
        n_known : int, default=0
            Rows of the smallest group where groups are known and the scores are those of a regressor, otherwise 0.
        """
        n_functions = max(scores.shape[0] // _ROWS_PER_FUNCTION, n_known // _KNOWN_ROWS_PER_FUNCTION, 1)
        splines = tuple(_spline(column, min(n_functions, _MOST)) for column in scores.T)
        n_groups = groups.shape[1]
        raw = cls(splines, groups.mean(axis=0), np.zeros(1), np.ones(1))
        features = raw.features(scores, groups)
        deviation = features.std(axis=0)
        assert features.shape[1] == (raw.width + 1) * (n_groups + 1) - 1
        return cls(raw.splines, raw.centre, features.mean(axis=0), np.where(deviation > 1e-12, deviation, 1.0))

    @property
    def width(self) -> int:
        """Number of functions of the scores alone."""
        return sum(1 if spline is None else spline.n_features_out_ for spline in self.splines)

    def features(self, scores: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Features of rows; arguments as in `of`. ndarray of shape (n_samples, n_columns)."""
        columns = np.hstack([_values(spline, own) for spline, own in zip(self.splines, scores.T, strict=True)])
        centred = groups - self.centre
        products = [column[:, None] * columns for column in centred.T]
        return (np.hstack([columns, centred, *products]) - self.mean) / self.scale


def _spline(scores: np.ndarray, n_functions: int) -> SplineTransformer | None:
    """The spline with knots at the ranks of the scores, each once where scores are equal."""
    inner = (np.arange(1, n_functions) - 0.5) / max(n_functions - 1, 1)
    knots = np.unique(np.quantile(scores, [0.0, *inner, 1.0]))
    knots = knots[np.append(True, np.diff(knots) > 1e-9 * (1 + np.abs(knots[1:])))]
    if knots.size < 2:
        return None
    spline = SplineTransformer(degree=1, knots=knots[:, None], extrapolation="constant", include_bias=False)
    return spline.fit(scores[:, None])


def _values(spline: SplineTransformer | None, scores: np.ndarray) -> np.ndarray:
    """The functions of one column of scores; a column of zeros where the scores are constant."""
    return np.zeros((scores.size, 1)) if spline is None else spline.transform(scores[:, None])
