"""Differences of the scores of two rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.models.base import Model, ModelOfBase, Pullback
from fairconstrained.models.parts import Coordinates, LastLayer

__all__ = ["ItemModel", "PairModel", "differences"]


@dataclass(frozen=True, eq=False)
class ItemModel(ModelOfBase):
    """Model of rows that are combinations of the rows of ``items``, which another model scores.

    The features of such a row are numbers, in the order of ``items``. Every item is scored once, however many rows it
    is in.

    Parameters
    ----------
    base : ParametricModel
        The one that scores the items.
    """

    #: Rows that are combined.
    items: FairData

    def scores(self, params: np.ndarray, X: Any, codes: np.ndarray | None = None) -> np.ndarray:
        """Return the scores of new items, not of combinations."""
        return self.base.scores(params, X)

    def portable(self) -> Model:
        """The base model, since new data are items."""
        return self.base.portable()

    @override
    def coordinates(self, data: FairData, penalised: bool = False) -> Coordinates:
        return self.base.coordinates(self.items, penalised)

    @override
    def scaling_entries(self, params: np.ndarray, data: FairData) -> np.ndarray | None:
        return self.base.scaling_entries(params, self.items)

    @override
    def tiny_columns(self, data: FairData) -> np.ndarray:
        return self.base.tiny_columns(self.items)

    def _needed(self, data: FairData, numbers: np.ndarray, are_few: bool) -> tuple[FairData, np.ndarray]:
        """Return the items of these numbers if they are few, otherwise all, and the numbers among them."""
        items, places = self.items, numbers
        if are_few:
            rows, places = np.unique(numbers, return_inverse=True)
            items = items.at(rows)
        in_training = data.is_sample and self.differs_in_training
        return replace(items, is_sample=True) if in_training else items, places.reshape(numbers.shape)


@dataclass(frozen=True, eq=False)
class PairModel(ItemModel):
    """Scores ``h(x_i) - h(x_j)`` of pairs (i, j), with the scores h of another model, one for all groups."""

    @override
    def forward(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        items, pairs = self._needed(data, data.X, 2 * data.n_samples < self.items.n_samples)
        scores, pullback = self.base.forward(params, items)
        return differences(scores, pairs[:, 0], pairs[:, 1], pullback)

    def row_features(self, data: FairData) -> Any:
        """Implement `Model.row_features`; the features of the first item minus those of the second."""
        features = self.base.row_features(self.items)
        first, second = (features[items].astype(np.float64) for items in data.X.T)  # small integers would overflow
        return first - second

    def last_layer(self, params: np.ndarray, data: FairData) -> LastLayer | None:
        """Implement `ParametricModel.last_layer`; an intercept cancels out."""
        layer = self.base.last_layer(params, self.items)
        if layer is None:
            return None
        features = layer.features[data.X[:, 0]] - layer.features[data.X[:, 1]]
        return LastLayer(features, layer.coef, layer.intercept[:0])


def differences(scores: Tensor, first: np.ndarray, second: np.ndarray, pullback: Pullback) -> tuple[Tensor, Pullback]:
    """``scores[first] - scores[second]``, and the map that pulls gradients back through ``pullback`` of the scores."""
    values = scores.numpy()

    def pulled(cotangent: Tensor) -> np.ndarray:
        slopes, size = cotangent.numpy(), values.size
        of_scores = np.bincount(first, slopes, minlength=size) - np.bincount(second, slopes, minlength=size)
        return pullback(torch.from_numpy(of_scores))

    return torch.from_numpy(values[first] - values[second]), pulled
