"""Linear scores, dense or sparse, shared by all groups or with one coefficient vector per group."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData, Rows, rows_within
from fairconstrained.features import (
    as_dense,
    extremes_by_group,
    group_sums,
    product,
    products_by_code,
    products_by_group,
    squares,
    sums_by_group,
    sums_of_products,
    weighted_gram,
)
from fairconstrained.models.base import LinearMoments, OutputModel, Pullback
from fairconstrained.models.moments import Moments
from fairconstrained.models.parts import Coordinates
from fairconstrained.models.scales import Scales

__all__ = ["LinearModel"]


#: Curvature of the penalty that weighs as much as that of a logistic loss of standardised features, at most 1/4.
_CURVATURE = 4.0
#: Size of a feature, relative to that for which the penalty weighs as much as the losses, below which the penalty
#: weighs a hundred times as much; and the largest size that is small in itself, whatever the penalty.
_FAINT, _SMALL = 0.1, 0.01


@dataclass(frozen=True)
class LinearModel(OutputModel, LinearMoments):
    """Scores ``h(x) = <w, x> + b``, or ``<w_g, x> + b_g`` for the rows of group ``g``.

    One model per group spans the same functions as the interactions ``<w, (1, x, g, g x)>`` of the partial
    fairness paper (section 7.1) without forming the product matrix.

    Parameters
    ----------
    n_features : int
        Number of the features.
    n_copies : int, default=1
        Number of coefficient vectors: 1, one for each group, or one for each output of a row, see `OutputModel`.
    fit_intercept : bool, default=True
        Whether scores have an intercept, one for each coefficient vector.
    alpha : float, default=0.0
        Weight of the penalty ``alpha/2 |w|^2`` on the coefficients, at least 0; intercepts are not penalised.
    """

    is_linear: ClassVar[bool] = True
    name: ClassVar[str] = "linear model"

    n_features: int
    n_copies: int = 1
    fit_intercept: bool = True
    alpha: float = 0.0

    @property
    def n_params(self) -> int:
        """Coefficients and intercepts of all copies."""
        return self.n_copies * (self.n_features + self.fit_intercept)

    @property
    @override
    def layout(self) -> tuple[int, int, bool]:
        return self.n_features, self.n_copies, self.fit_intercept

    def init(self, rng: np.random.Generator) -> np.ndarray:
        """Return zeros: every group gets the same score, which is fair in every sense."""
        return np.zeros(self.n_params)

    @override
    def forward(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        coefficients, intercepts = self.unpack(params)
        parts = self._parts(data)
        scores = products_by_group(data.X, coefficients, parts)
        for rows, intercept in zip(parts, intercepts, strict=True):
            scores[rows] += intercept

        def pullback(cotangent: Tensor) -> np.ndarray:
            gradient = np.empty((self.n_copies, self.n_features + self.fit_intercept))
            residuals = cotangent.numpy()
            gradient[:, : self.n_features] = sums_by_group(data.X, sums_of_products, residuals, parts)
            if self.fit_intercept:
                gradient[:, -1] = [residuals[rows].sum() for rows in parts]
            return gradient.ravel()

        return torch.from_numpy(scores), pullback

    @override
    def forward_outputs(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        def pullback(cotangent: Tensor) -> np.ndarray:
            residuals = cotangent.numpy()
            gradient = np.empty((self.n_copies, self.n_features + self.fit_intercept))
            gradient[:, : self.n_features] = sums_of_products(data.X, residuals).T
            if self.fit_intercept:
                gradient[:, -1] = residuals.sum(axis=0)
            return gradient.ravel()

        return torch.from_numpy(self.outputs(params, data.X)), pullback

    @override
    def outputs(self, params: np.ndarray, X: Any) -> np.ndarray:
        coefficients, intercepts = self.unpack(params)
        return product(X, coefficients.T) + intercepts

    @override
    def scores_of_fold(
        self, state: np.ndarray, data: FairData, rest: FairData, unseen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        scores = self.training_scores(state, data)  # a product with all rows takes less time than to copy some of them
        return np.delete(scores, unseen, axis=0), scores[unseen]

    @property
    @override
    def n_heads(self) -> int:
        return self.n_copies

    @override
    def scores(self, params: np.ndarray, X: Any, codes: np.ndarray | None = None) -> np.ndarray:
        coefficients, intercepts = self.unpack(params)
        if codes is None:
            return product(X, coefficients[0]) + intercepts[0]
        return products_by_code(X, coefficients, codes) + intercepts[codes]

    def attributes(self, params: np.ndarray, offset: float, scale: float) -> dict[str, Any]:
        """``coef_`` of shape (n_copies, n_features) and ``intercept_`` of shape (n_copies,)."""
        coefficients, intercepts = self.unpack(params)
        return {"coef_": coefficients * scale, "intercept_": intercepts * scale + offset}

    @override
    def penalty(self, params: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = np.zeros((self.n_copies, self.n_features + self.fit_intercept))
        gradient[:, : self.n_features] = self.alpha * self.unpack(params)[0]
        return float(gradient.ravel() @ params) / 2, gradient.ravel()

    @property
    @override
    def least_size(self) -> float:
        return min(_FAINT * math.sqrt(_CURVATURE * self.alpha), _SMALL)

    def coordinates(self, data: FairData, penalised: bool = False) -> Coordinates:
        """Coefficients of the standardised features, without standardising the (perhaps sparse) features.

        Where every group has a copy, its own rows are what counts; otherwise all rows are, for every copy.
        """
        own = self.n_copies > 1 and data.n_groups > 1
        scales = Scales.of(data, data.slices if own else None, self.fit_intercept)
        n_times = self.n_copies // len(scales.centre)
        centre, variance, square, _ = (np.repeat(part, n_times, axis=0) for part in scales)
        least = _CURVATURE * self.alpha if penalised else 0.0
        return _Standardised(centre, np.sqrt(variance + least), np.sqrt(square + least), self.fit_intercept)

    def moments(self, data: FairData, rows: Sequence[Rows], shares: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Implement `LinearMoments.moments`; one pass over the rows of every cell."""
        width = self.n_features + self.fit_intercept
        means = np.zeros((len(rows), self.n_params))
        covariances = np.zeros((len(rows), self.n_params, self.n_params))
        for mean, covariance, cell in zip(means, covariances, rows, strict=True):
            parts = []
            for group, own in enumerate(data.slices):
                inside, local = rows_within(cell, own)
                weights = shares[inside].numpy()
                if not weights.size:
                    continue
                first = (0 if self.n_copies == 1 else group) * width
                features = slice(first, first + self.n_features)
                found = Moments.of(data.blocks[group][local], weights)
                covariance[features, features] += found.weight * found.covariance
                part = np.zeros(self.n_params)
                part[features] = found.mean
                part[first + self.n_features : first + width] = 1.0
                parts.append((found.weight, part))
                mean += found.weight * part
            for weight, part in parts:  # the law of total variance, for cells of several groups
                covariance += weight * np.outer(part - mean, part - mean)
        return means, covariances

    def curvature(self, data: FairData, weights: np.ndarray) -> np.ndarray:
        """Sum of the outer products of what multiplies the parameters in the scores.

        Parameters
        ----------
        data : FairData
        weights : ndarray of shape (n_samples,)
            Weights of the rows, at least 0.

        Returns
        -------
        curvature : ndarray of shape (n_params, n_params)
            Hessian in the parameters of a function whose second derivatives in the scores are the weights.
        """
        width = self.n_features
        table = np.zeros((self.n_copies, width + self.fit_intercept, self.n_copies, width + self.fit_intercept))
        parts = self._parts(data)
        function = _gram_and_sums if self.fit_intercept else weighted_gram
        for copy, sums in enumerate(sums_by_group(data.X, function, weights, parts)):
            own = table[copy, :, copy]
            own[: len(sums), :width] = sums
            if self.fit_intercept:
                own[:width, width] = sums[width]
                own[width, width] = weights[parts[copy]].sum()
        return table.reshape(self.n_params, self.n_params)

    def squares(self, data: FairData, weights: np.ndarray) -> np.ndarray:
        """Weighted sums of the squares of every feature, a part of the diagonal of `curvature`; (n_features,)."""
        return squares(data.X, weights)

    def gradients(self, data: FairData, slopes: Any) -> np.ndarray:
        """Pull several slopes back in one pass over the features.

        Parameters
        ----------
        data : FairData
        slopes : ndarray or CSC array of shape (n_samples, n_slopes)
            Slopes of functions in the scores.

        Returns
        -------
        gradients : ndarray of shape (n_params, n_slopes)
        """
        parts, pulled = self._parts(data), []
        for sums, rows in zip(sums_by_group(data.X, _dense_sums, slopes, parts), parts, strict=True):
            totals = np.reshape(slopes[rows].sum(axis=0), (1, -1))[: int(self.fit_intercept)]
            pulled += [sums, totals]
        return np.vstack(pulled)

    def sums(
        self, params: np.ndarray, data: FairData, function: Callable[..., tuple[np.ndarray, np.ndarray]], *columns: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the rows of functions of the scores, and their gradients, in one pass over the features.

        Where the rows are in other processes, the function is computed there.

        Parameters
        ----------
        params : ndarray of shape (n_params, size)
            Models in columns.
        data : FairData
        function : callable
            Takes scores of some rows, of shape (n_rows, size), which it may change, and those rows of the columns;
            returns sums of shape (size,), and their slopes in the scores, of shape (n_rows, size).
        *columns : ndarray with n_samples rows, or results of `FairData.kept`

        Returns
        -------
        sums : ndarray of shape (size,)
        gradients : ndarray of shape (n_params, size)
        """
        tables = params.reshape(self.n_copies, -1, params.shape[1])
        functions = [partial(_sums_at, table=table, function=function) for table in tables]
        found = group_sums(data.X, functions, self._parts(data), *columns)
        return found[:, 0].sum(axis=0), found[:, 1:].reshape(params.shape)

    @property
    def of_one_score(self) -> LinearModel:
        """A model with a single score, the same for all groups."""
        return replace(self, n_copies=1)

    def score_columns(self, params: np.ndarray) -> list[np.ndarray]:
        """Parameters of the score by part of the rows that has its own, coefficients first, each of shape (size, 1)."""
        return [own[:, None] for own in params.reshape(self.n_copies, -1)]

    def column_scores(self, columns: Sequence[np.ndarray], data: FairData) -> np.ndarray:
        """Scores of models in columns, by part of the rows that has its own as in `score_columns`, in one pass.

        Parameters
        ----------
        columns : sequence of ndarray of shape (n_features + fit_intercept, size)
        data : FairData

        Returns
        -------
        scores : ndarray of shape (n_samples, size)
        """
        parts, table = self._parts(data), np.stack(columns)
        scores = products_by_group(data.X, table[:, : self.n_features], parts)
        for rows, own in zip(parts, table, strict=True):
            scores[rows] += own[self.n_features :].sum(axis=0)
        return scores

    def _parts(self, data: FairData) -> tuple[slice, ...]:
        """Places of the rows of every copy."""
        return (slice(0, data.n_samples),) if self.n_copies == 1 else data.slices

    def with_features(self, n_features: int) -> LinearModel:
        """Return the model of so many features."""
        return replace(self, n_features=n_features)

    def in_span(self, data: FairData, columns: np.ndarray) -> tuple[LinearModel, FairData]:
        """Return the model whose coefficients are in a span, for a model with one copy, with the data that it takes.

        Parameters
        ----------
        data : FairData
        columns : ndarray of shape (n_features, size)
            Basis of the span; where it is orthonormal, the penalty is the same.
        """
        features = np.ascontiguousarray(product(data.X, columns))
        return replace(self, n_features=columns.shape[1]), replace(data, X=features)

    def scaling_entries(self, params: np.ndarray, data: FairData) -> np.ndarray | None:
        """Implement `ParametricModel.scaling_entries`; all of them."""
        return np.arange(self.n_params)

    def shift_directions(self, data: FairData, shared: bool = False) -> np.ndarray:
        """Implement `ParametricModel.shift_directions`.

        Intercepts shift scores, and so do features that are constant within every group: where the group is
        one of the features, its coefficient moves the groups apart.
        """
        width = self.n_features + self.fit_intercept
        intercepts = np.kron(np.eye(self.n_copies), np.arange(width) == self.n_features)
        if shared and self.fit_intercept:
            return intercepts.sum(axis=0, keepdims=True)
        if self.n_copies > 1:
            return intercepts if self.fit_intercept else np.empty((0, self.n_params))
        groups = [rows for rows in data.slices if rows.stop > rows.start]
        low, high = extremes_by_group(data.X, groups)
        constant = np.flatnonzero((low == high).all(axis=0))
        values = np.hstack([low[:, constant], np.ones((len(groups), int(self.fit_intercept)))])
        columns = np.append(constant, self.n_features)[: values.shape[1]]
        every = [np.eye(data.n_groups)] if len(groups) == data.n_groups else []  # none moves a group without rows
        for wanted in (*every, np.ones((1, len(groups)))):
            directions = (
                np.linalg.lstsq(values, wanted.T, rcond=None)[0].T if columns.size else np.empty((len(wanted), 0))
            )
            if np.allclose(directions @ values.T, wanted):
                table = np.zeros((len(wanted), self.n_params))
                table[:, columns] = directions
                return table
        return np.empty((0, self.n_params))

    def unpack(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of shape (n_copies, n_features) and intercepts of shape (n_copies,)."""
        table = params.reshape(self.n_copies, self.n_features + self.fit_intercept)
        intercepts = table[:, -1] if self.fit_intercept else np.zeros(self.n_copies)
        return table[:, : self.n_features], intercepts


def _sums_at(X: Any, *columns: Any, table: np.ndarray, function: Callable[..., Any]) -> np.ndarray:
    """Sums of a function of the scores, and their gradients below them; ndarray of shape (1 + n_params, size)."""
    n_features = X.shape[1]
    scores = product(X, table[:n_features])
    scores += table[n_features:].sum(axis=0)
    values, slopes = function(scores, *columns)
    return np.vstack([values, sums_of_products(X, slopes), *([slopes.sum(axis=0)] * (len(table) - n_features))])


def _gram_and_sums(X: Any, weights: np.ndarray) -> np.ndarray:
    """`weighted_gram`, and the weighted sums of the features below; ndarray of shape (n_features + 1, n_features)."""
    return np.vstack([weighted_gram(X, weights), sums_of_products(X, weights)])


def _dense_sums(X: Any, columns: Any) -> np.ndarray:
    return as_dense(sums_of_products(X, columns))


@dataclass(frozen=True)
class _Standardised(Coordinates):
    """Scores ``<u, (x - centre) / scale> + c`` as ``<w, x> + b``; tables of shape (n_copies, n_features).

    ``size`` is the scale without the centre: the root of the mean square.
    """

    centre: np.ndarray
    scale: np.ndarray
    size: np.ndarray
    fit_intercept: bool

    @override
    def to_params(self, u: np.ndarray) -> np.ndarray:
        table = u.reshape(self.scale.shape[0], -1).copy()
        width = self.scale.shape[1]
        table[:, :width] /= self.scale
        if self.fit_intercept:
            table[:, -1] -= (table[:, :width] * self.centre).sum(axis=1)
        return table.ravel()

    @override
    def from_params(self, params: np.ndarray) -> np.ndarray:
        table = params.reshape(self.scale.shape[0], -1).copy()
        width = self.scale.shape[1]
        if self.fit_intercept:
            table[:, -1] += (table[:, :width] * self.centre).sum(axis=1)
        table[:, :width] *= self.scale
        return table.ravel()

    @override
    def pull(self, gradient: np.ndarray) -> np.ndarray:
        table = gradient.reshape(self.scale.shape[0], -1).copy()
        width = self.scale.shape[1]
        if self.fit_intercept:
            table[:, :width] -= table[:, -1:] * self.centre
        table[:, :width] /= self.scale
        return table.ravel()

    @override
    def factors(self, n_params: int) -> np.ndarray:
        return np.hstack([self.size, np.ones((len(self.size), int(self.fit_intercept)))]).ravel()
