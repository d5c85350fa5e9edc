"""Scores of several classes: all outputs of a model at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.models.base import ModelOfBase, OutputModel, Pullback
from fairconstrained.models.linear import LinearModel
from fairconstrained.models.parts import Coordinates

__all__ = ["ClassModel"]

#: Excess of the output of a class over the others where it is predicted for all rows: that of moderate odds, so that
#: those between such scores and others mean something.
_FAVOUR = 1.0


@dataclass(frozen=True, eq=False)
class ClassModel(ModelOfBase):
    """A score of every class for every row, of shape (n_samples, n_classes): the outputs of another model.

    A constant that is added to all scores of a row changes nothing. Neither the losses nor the bounds have a slope in
    that direction, so a solver that begins at zero scores stays where they sum to zero.

    Parameters
    ----------
    base : OutputModel
        The model with an output for every class, the same for all groups.
    """

    base: OutputModel

    @property
    @override
    def name(self) -> str:  # type: ignore[override]
        return f"{self.base.name} of {self.base.n_heads} classes"

    @property
    @override
    def layout(self) -> Hashable:
        return "classes", self.base.layout

    @override
    def forward(self, params: np.ndarray, data: FairData) -> tuple[Any, Pullback]:
        """Scores of shape (n_samples, n_classes); the pullback takes a gradient of that shape."""
        return self.base.forward_outputs(params, data)

    @override
    def scores(self, params: np.ndarray, X: Any, codes: np.ndarray | None = None) -> np.ndarray:
        """Scores of new rows; ndarray of shape (n_samples, n_classes)."""
        return self.base.outputs(params, X)

    @override
    def placed(self, data: FairData) -> FairData:
        return self.base.placed(data)

    @override
    def row_features(self, data: FairData) -> Any:
        return self.base.row_features(data)

    @override
    def unscaled_columns(self, data: FairData) -> np.ndarray:
        return self.base.unscaled_columns(data)

    @override
    def portable(self) -> ClassModel:
        base = self.base.portable()
        assert isinstance(base, OutputModel)  # it is the same model elsewhere
        return replace(self, base=base)

    @override
    def coordinates(self, data: FairData, penalised: bool = False) -> Coordinates:
        return self.base.coordinates(_as_one_group(data), penalised)

    @property
    def of_one_score(self) -> LinearModel:
        """A model with a single score, if this one is linear."""
        return cast(LinearModel, self.base).of_one_score

    def score_columns(self, params: np.ndarray) -> list[np.ndarray]:
        """Parameters of the score of every class, in columns, for all rows, if the model is linear."""
        return [np.hstack(cast(LinearModel, self.base).score_columns(params))]

    def column_scores(self, columns: Sequence[np.ndarray], data: FairData) -> np.ndarray:
        """Scores of models in columns, if the model is linear; ndarray of shape (n_samples, size)."""
        return self.of_one_score.column_scores(columns, data)

    def with_features(self, n_features: int) -> ClassModel:
        """Return the model of so many features, if it is linear."""
        return replace(self, base=cast(LinearModel, self.base).with_features(n_features))

    @override
    def one_class_states(self, data: FairData) -> Sequence[np.ndarray]:
        directions = self.base.shift_directions(_as_one_group(data))
        return list(_FAVOUR * directions) if len(directions) == self.base.n_heads else []


def _as_one_group(data: FairData) -> FairData:
    """The rows without their groups, for a model whose outputs are no matter of groups."""
    return replace(data, labels=(None,), codes=np.zeros(data.n_samples, dtype=int), n_ignored=0)
