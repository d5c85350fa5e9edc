"""Margins: excess of the score of a row's own class over the score of another class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.models.base import OutputModel, Pullback
from fairconstrained.models.pairs import ItemModel, differences

__all__ = ["MarginData", "MarginModel"]

#: Excess of the output of a class over the others where it is predicted for all rows.
_FAVOUR = 1e-3


@dataclass(frozen=True, eq=False)
class MarginData(FairData):
    """Rows (i, l) of an item i and a class l other than its own, all positive; the groups are the classes of the items.

    The margins of an item stand together in the order of their classes, and in mini-batches they stay together.
    """

    @classmethod
    def of(cls, items: FairData, labels: tuple) -> MarginData:
        """Return all margins.

        Parameters
        ----------
        items : FairData
            Items whose targets are the numbers of their classes, by which they are ordered.
        labels : tuple
            The classes; every one has an item.
        """
        n_items, n_rivals = items.n_samples, len(labels) - 1
        own, numbers = items.y.numpy().astype(np.int64), np.arange(items.n_samples)
        rivals = np.tile(np.arange(n_rivals), (n_items, 1))
        rivals += rivals >= own[:, None]
        clusters = np.repeat(numbers, n_rivals)
        weights = np.repeat(items.weights.numpy(), n_rivals)
        rows, codes = np.column_stack([clusters, rivals.ravel()]), np.repeat(own, n_rivals)
        found = cls.from_arrays(rows, np.ones(len(rows)), codes, labels, weights, None, clusters)
        assert isinstance(found, MarginData)
        return found

    @property
    @override
    def rows_of_sample(self) -> int:
        return self.n_groups - 1

    def thinned(self, rng: np.random.Generator, size: int) -> FairData:
        """Implement `FairData.thinned`; all margins of about as many items as make up ``size`` rows."""
        n_rivals = self.rows_of_sample
        firsts = np.arange(0, self.n_samples, n_rivals)
        shares = self.weights[torch.from_numpy(firsts)].numpy()
        items = FairData.from_arrays(firsts[:, None], np.ones(firsts.size), self.codes[firsts], self.labels, shares)
        drawn = items.thinned(rng, max(size // n_rivals, 1))
        rows = (drawn.X + np.arange(n_rivals)).ravel()
        return self.at(rows, drawn.weights.repeat_interleave(n_rivals) / n_rivals)


@dataclass(frozen=True, eq=False)
class MarginModel(ItemModel):
    r"""Scores :math:`h_{y_i}(x_i) - h_l(x_i)` of margins, with the outputs h of another model; see `MarginData`."""

    base: OutputModel

    def row_features(self, data: FairData) -> Any:
        """Implement `Model.row_features`; those of the item."""
        return self.base.row_features(self.items)[data.X[:, 0]]

    @override
    def forward(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        n_classes = self.base.n_heads
        are_few = data.n_samples < self.items.n_samples * (n_classes - 1)
        items, numbers = self._needed(data, data.X[:, 0], are_few)
        outputs, pullback = self.base.forward_outputs(params, items)

        def from_flat(cotangent: Tensor) -> np.ndarray:
            return pullback(cotangent.view(-1, n_classes))

        own, rivals = numbers * n_classes + data.codes, numbers * n_classes + data.X[:, 1]
        return differences(outputs.reshape(-1), own, rivals, from_flat)

    @override
    def one_class_states(self, data: FairData) -> list[np.ndarray]:
        return list(_FAVOUR * self._class_directions)

    @property
    def _class_directions(self) -> np.ndarray:
        """Parameters with outputs of one for a class and zero for all others; no rows where there are none."""
        directions = self.base.shift_directions(self.items)
        return directions if len(directions) == self.base.n_heads else directions[:0]

    def common_shift(self, data: FairData) -> tuple[np.ndarray, np.ndarray] | None:
        """Implement `ParametricModel.common_shift`; of two classes, what adds one to the output of the second."""
        directions = self._class_directions
        if len(directions) != 2:
            return None
        return directions[1], np.where(data.codes == 1, 1.0, -1.0)
