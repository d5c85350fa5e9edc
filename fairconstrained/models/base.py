"""The interface of models: scores of a state, and gradients in the parameters if the model is parametric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData, Rows
from fairconstrained.features import extremes, squares
from fairconstrained.models.parts import Coordinates, DirectionShifts, LastLayer, Rescaling, ScoreShifts

__all__ = [
    "LinearMoments",
    "Model",
    "ModelOfBase",
    "OutputModel",
    "ParametricModel",
    "Pullback",
]

#: Takes the gradient of a function with respect to the scores, returns it with respect to the parameters.
Pullback = Callable[[Tensor], np.ndarray]


class Model(ABC):
    """Model that computes the scores of rows; the only object that uses X.

    The scores depend on a *state*, which only the model reads: a parameter vector for `ParametricModel`, the trees for
    a boosted model.
    """

    #: Whether its products are worth more than one thread. Sparse products and the surrogates use one, and threads that
    #: wait for them slow them down.
    uses_threads: ClassVar[bool] = False
    #: Whether the scores are linear in the features and in the parameters.
    is_linear: ClassVar[bool] = False
    #: Name in messages.
    name: ClassVar[str] = "model"
    #: The type of its states.
    state_type: ClassVar[type] = object

    @property
    @abstractmethod
    def layout(self) -> Hashable:
        """Key of the meaning of a state; equal for models that can exchange states."""

    @property
    def n_heads(self) -> int:
        """1, or the number of groups if each has scores of its own."""
        return 1

    @property
    def differs_in_training(self) -> bool:
        """Whether the model has layers, such as dropout, that work differently on the mini-batches of a solver."""
        return False

    @abstractmethod
    def training_scores(self, state: Any, data: FairData) -> np.ndarray:
        """Scores of the rows that the model is fitted on, in the order of ``data``; ndarray of shape (n_samples,)."""

    def scores_of_fold(
        self, state: Any, data: FairData, rest: FairData, unseen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the rows that a model is fitted on, and of those of the fold that it has not seen.

        Parameters
        ----------
        state : object
            State of the model that was fitted to ``rest``.
        data : FairData
            All rows.
        rest : FairData
            The rows that are not in the fold, in the order of ``data``.
        unseen : ndarray of int
            Numbers of the rows of the fold, ascending.

        Returns
        -------
        of_rest : ndarray of shape (n_rest,) or (n_rest, n_scores)
        of_unseen : ndarray of shape (n_unseen,) or (n_unseen, n_scores)
        """
        return self.training_scores(state, rest), self.training_scores(state, data.part(unseen))

    @abstractmethod
    def scores(self, state: Any, X: Any, codes: np.ndarray | None = None) -> np.ndarray:
        """Scores of new rows.

        Parameters
        ----------
        state : object
        X : ndarray or CSR matrix of shape (n_samples, n_features)
        codes : ndarray of shape (n_samples,), optional
            Group of every row; needed where there are several heads.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """

    @abstractmethod
    def attributes(self, state: Any, offset: float, scale: float) -> dict[str, Any]:
        """Attributes of a fitted model that users read, by name.

        Parameters
        ----------
        state : object
        offset, scale : float
            ``offset + scale * score`` are the scores in the units of the target.
        """

    def penalty_at(self, state: Any) -> float:
        """Return the regularisation term of the objective at a state."""
        return 0.0

    def placed(self, data: FairData) -> FairData:
        """The data with features where the model computes, so that they travel there once."""
        return data

    def row_features(self, data: FairData) -> Any:
        """Features on which the scores of the rows depend, for comparing rows; here those of the data.

        Parameters
        ----------
        data : FairData

        Returns
        -------
        features : ndarray or CSR matrix of shape (n_samples, n_row_features)
            Features of the rows, on the CPU.
        """
        return data.X

    def portable(self) -> Model:
        """Return the model where it can be unpickled and predict anywhere: on the CPU."""
        return self

    def unscaled_columns(self, data: FairData) -> np.ndarray:
        """Return the numbers of the features whose units are too large to learn from; by default none are."""
        return np.empty(0, dtype=int)

    @property
    def least_size(self) -> float:
        """Absolute value that some value of a feature has to exceed if the model is to learn from it; by default 0."""
        return 0.0

    def tiny_columns(self, data: FairData) -> np.ndarray:
        """Return the numbers of the features whose units are too small to learn from, see `least_size`."""
        least = self.least_size
        if not least:
            return np.empty(0, dtype=int)
        X, weights = self.row_features(data), data.weights.numpy()
        # less work than the extremes, and seldom more than this is necessary
        if (squares(X, weights) > least**2 * weights.sum()).all():
            return np.empty(0, dtype=int)
        low, high = extremes(X)
        sizes = np.maximum(abs(low), abs(high))
        # a constant has nothing to learn from, in whatever units; centred, it is rounding error
        return np.flatnonzero((low < high) & (sizes <= least))

    def shifts(self, data: FairData, shared: bool = False) -> ScoreShifts | None:
        """Ways to add constants to scores.

        Parameters
        ----------
        data : FairData
        shared : bool, default=False
            Whether only adding the same to all scores is wanted.

        Returns
        -------
        shifts : ScoreShifts or None
            Shifts; None where no score can be moved by a constant.
        """
        return None

    def rescaling(self, state: Any, data: FairData) -> Rescaling | None:
        """States with multiples of the scores at ``state``; None where the model has none."""
        return None

    def one_class_states(self, data: FairData) -> Sequence[Any]:
        """States that predict the same class for all rows, one for each class, where every class has an output."""
        return ()


class ParametricModel(Model):
    """A model whose state is a flat vector of parameters, in which its scores can be differentiated."""

    state_type: ClassVar[type] = np.ndarray

    @property
    @abstractmethod
    def n_params(self) -> int:
        """Length of the parameter vector."""

    @property
    @override
    def layout(self) -> Hashable:
        return self.n_params

    @abstractmethod
    def init(self, rng: np.random.Generator) -> np.ndarray:
        """Parameters to start from; ndarray of shape (n_params,)."""

    @abstractmethod
    def forward(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        """Scores, and the map that pulls gradients back.

        Parameters
        ----------
        params : ndarray of shape (n_params,)
        data : FairData

        Returns
        -------
        scores : Tensor of shape (n_samples,)
            Scores in the order of ``data``, without a graph.
        pullback : callable
            Takes a Tensor of shape (n_samples,), the gradient with respect to the scores, and returns the
            gradient with respect to ``params``, an ndarray of shape (n_params,).
        """

    def forward_each(self, params: np.ndarray, parts: Sequence[FairData]) -> list[tuple[Tensor, Pullback]]:
        """Return `forward` of several mini-batches, for a model that can do them together at lower cost."""
        return [self.forward(params, data) for data in parts]

    def after_step(self, params: np.ndarray) -> np.ndarray:
        """Return the parameters with what a step on mini-batches changes besides, such as running statistics.

        Parameters
        ----------
        params : ndarray of shape (n_variables,)
            Parameters after the step, which other variables may follow.
        """
        return params

    @override
    def training_scores(self, state: np.ndarray, data: FairData) -> np.ndarray:
        return self.forward(state[: self.n_params], data)[0].numpy()

    def coordinates(self, data: FairData, penalised: bool = False) -> Coordinates:
        """Coordinates in which a solver that cares about scale should work.

        Parameters
        ----------
        data : FairData
        penalised : bool, default=False
            Whether the penalty counts: where it bends the objective more than the losses do, it determines the scale.
        """
        return Coordinates()

    @abstractmethod
    def penalty(self, params: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient of the convex regularisation term of the objective."""

    @override
    def penalty_at(self, state: np.ndarray) -> float:
        return self.penalty(state)[0]

    def last_layer(self, params: np.ndarray, data: FairData) -> LastLayer | None:
        """The last layer at ``params``, if there is one by itself that gives one score for all groups."""
        return None

    def scaling_entries(self, params: np.ndarray, data: FairData) -> np.ndarray | None:
        """Numbers of the parameters that all scores are proportional to; None where there are no such parameters."""
        layer = self.last_layer(params, data)
        return None if layer is None else layer.entries

    def common_shift(self, data: FairData) -> tuple[np.ndarray, np.ndarray] | None:
        """A parameter direction that moves all scores by one, up or down.

        Returns
        -------
        direction : ndarray of shape (n_params,)
        signs : ndarray of shape (n_samples,)
            1 where a score moves up, -1 where it moves down. Instead of both, None where there is no such direction.
        """
        directions = self.shift_directions(data, shared=True)
        return (directions[0], np.ones(data.n_samples)) if len(directions) else None

    def shift_directions(self, data: FairData, shared: bool = False) -> np.ndarray:
        """Parameter directions that add a constant to scores.

        Parameters
        ----------
        data : FairData
        shared : bool, default=False
            Whether only what adds the same to all scores is wanted.

        Returns
        -------
        directions : ndarray of shape (n_shifts, n_params)
            One row for each group if the scores of every group can be shifted on their own: row g adds one to the
            scores of group g and nothing to the others. Otherwise one row that adds one to all scores, or none.
        """
        return np.empty((0, self.n_params))

    @override
    def shifts(self, data: FairData, shared: bool = False) -> ScoreShifts | None:
        directions = self.shift_directions(data, shared)
        return DirectionShifts(directions) if len(directions) else None

    @override
    def rescaling(self, state: np.ndarray, data: FairData) -> Rescaling | None:
        entries = self.scaling_entries(state, data)
        if entries is None or not np.isfinite(state).all():
            return None
        scaled = np.zeros_like(state)
        scaled[entries] = state[entries]
        shift, signs = self.common_shift(data) or (None, np.ones(data.n_samples))
        return _RescaledParams(self, state, scaled, shift, signs)


class _RescaledParams(Rescaling):
    """Rescaled scores of a parametric model.

    Parameters
    ----------
    params : ndarray of shape (n_params,)
    scaled : ndarray of shape (n_params,)
        The part of the parameters that scores are proportional to; zero elsewhere.
    shift : ndarray of shape (n_params,), or None
        The direction that moves all scores by one.
    signs : ndarray of shape (n_samples,)
    """

    def __init__(
        self,
        model: ParametricModel,
        params: np.ndarray,
        scaled: np.ndarray,
        shift: np.ndarray | None,
        signs: np.ndarray,
    ) -> None:
        self._model, self._params, self._scaled = model, params, scaled
        self.signs, self.can_shift = signs, shift is not None
        self._shift = np.zeros_like(params) if shift is None else shift

    @override
    def at(self, factor: float, shift: float) -> np.ndarray:
        params = self._params + (factor - 1) * self._scaled
        return params + shift * self._shift if self.can_shift else params

    @override
    def penalty(self, factor: float, shift: float) -> tuple[float, float, float]:
        value, gradient = self._model.penalty(self.at(factor, shift))
        return value, float(gradient @ self._scaled), float(gradient @ self._shift)


class OutputModel(ParametricModel):
    """A model with several outputs for every row, of which ``forward`` takes the one of the row's group."""

    @abstractmethod
    def forward_outputs(self, params: np.ndarray, data: FairData) -> tuple[Tensor, Pullback]:
        """All outputs of every row whatever its group is, and the map that pulls gradients back.

        Parameters
        ----------
        params : ndarray of shape (n_params,)
        data : FairData

        Returns
        -------
        outputs : Tensor of shape (n_samples, n_heads)
            Outputs in the order of ``data``, without a graph.
        pullback : callable
            Function as in `ParametricModel.forward`, from a Tensor of shape (n_samples, n_heads).
        """

    @abstractmethod
    def outputs(self, params: np.ndarray, X: Any) -> np.ndarray:
        """All outputs of new rows.

        Parameters
        ----------
        params : ndarray of shape (n_params,)
        X : ndarray or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        outputs : ndarray of shape (n_samples, n_heads)
        """


@dataclass(frozen=True, eq=False)
class ModelOfBase(ParametricModel):
    """A model that makes its scores from the outputs of another model, and has the parameters of that model.

    Parameters
    ----------
    base : ParametricModel
        The other model.
    """

    base: ParametricModel

    @property
    @override
    def uses_threads(self) -> bool:  # type: ignore[override]  # that of the base
        return self.base.uses_threads

    @property
    @override
    def least_size(self) -> float:
        return self.base.least_size

    @property
    @override
    def is_linear(self) -> bool:  # type: ignore[override]  # that of the base
        return self.base.is_linear

    @property
    @override
    def differs_in_training(self) -> bool:
        return self.base.differs_in_training

    @property
    @override
    def n_params(self) -> int:
        return self.base.n_params

    @property
    @override
    def layout(self) -> Hashable:
        return self.base.layout

    @override
    def init(self, rng: np.random.Generator) -> np.ndarray:
        return self.base.init(rng)

    @override
    def attributes(self, params: np.ndarray, offset: float, scale: float) -> dict[str, Any]:
        return self.base.attributes(params, offset, scale)

    @override
    def penalty(self, params: np.ndarray) -> tuple[float, np.ndarray]:
        return self.base.penalty(params)

    @override
    def after_step(self, params: np.ndarray) -> np.ndarray:
        return self.base.after_step(params)


class LinearMoments(ABC):
    """Moments, which a model offers whose scores are linear in its parameters."""

    @abstractmethod
    def moments(self, data: FairData, rows: Sequence[Rows], shares: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Means and covariances, in cells of rows, of what multiplies the parameters in the scores.

        Parameters
        ----------
        data : FairData
        rows : sequence of slice or ndarray
            The rows of every cell, see `fairconstrained.data.Rows`.
        shares : Tensor of shape (n_samples,)
            Weights of the rows, which sum to one in every cell.

        Returns
        -------
        means : ndarray of shape (n_cells, n_params)
            ``means @ params`` are the mean scores.
        covariances : ndarray of shape (n_cells, n_params, n_params)
            ``params @ covariances @ params`` are the variances of the scores.
        """
