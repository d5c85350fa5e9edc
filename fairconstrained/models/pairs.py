"""Differences of the scores of two rows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairconstrained.data import FairData
from fairconstrained.models._base import Coordinates, LastLayer, Model, Pullback

__all__ = ["PairModel"]


@dataclass(frozen=True, eq=False)
class PairModel(Model):
    """Scores ``h(x_i) - h(x_j)`` of pairs (i, j), with the scores h of another model.

    The features of a pair are the numbers of its two rows in ``items``. Every row is scored once, however many pairs it
    is in.

    Parameters
    ----------
    base : Model
        With one score for all groups.
    items : FairData
        The rows that are paired.
    """

    base: Model
    items: FairData

    @property
    def n_params(self) -> int:
        """Those of the base model."""
        return self.base.n_params

    @property
    def layout(self) -> Hashable:
        """See `Model.layout`."""
        return self.base.layout

    @property
    def n_heads(self) -> int:
        """One."""
        return 1

    def init(self, rng: np.random.Generator) -> np.ndarray:
        """See `Model.init`."""
        return self.base.init(rng)

    def forward(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        """See `Model.forward`."""
        first, second, items = data.X[:, 0], data.X[:, 1], self.items
        if 2 * data.n_samples < items.n_samples:
            rows, places = np.unique(data.X, return_inverse=True)
            first, second = places.reshape(-1, 2).T
            items = items.at(rows)
        scores, base_pullback = self.base.forward(params, items)
        values = scores.numpy()

        def pullback(cotangent: Tensor) -> np.ndarray:
            slopes, n_items = cotangent.numpy(), items.n_samples
            of_items = np.bincount(first, slopes, minlength=n_items) - np.bincount(second, slopes, minlength=n_items)
            return base_pullback(torch.from_numpy(of_items))

        return torch.from_numpy(values[first] - values[second]), pullback

    def scores(self, params: np.ndarray, X: Any, codes: np.ndarray | None = None) -> np.ndarray:
        """Scores h of new rows, not of pairs."""
        return self.base.scores(params, X)

    def portable(self) -> Model:
        """The base model: whoever predicts scores rows."""
        return self.base.portable()

    def attributes(self, params: np.ndarray, offset: float, scale: float) -> dict[str, Any]:
        """See `Model.attributes`."""
        return self.base.attributes(params, offset, scale)

    def coordinates(self, data: FairData) -> Coordinates:
        """See `Model.coordinates`."""
        return self.base.coordinates(self.items)

    def penalty(self, params: np.ndarray) -> tuple[float, np.ndarray]:
        """See `Model.penalty`."""
        return self.base.penalty(params)

    def last_layer(self, params: np.ndarray, data: FairData) -> LastLayer | None:
        """See `Model.last_layer`; an intercept cancels out."""
        layer = self.base.last_layer(params, self.items)
        if layer is None:
            return None
        features = layer.features[data.X[:, 0]] - layer.features[data.X[:, 1]]
        return LastLayer(features, layer.coef, layer.intercept[:0])
