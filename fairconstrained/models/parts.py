"""Objects that a model may offer to solvers: coordinates, its last layer, shifts and multiples of its scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

__all__ = ["Coordinates", "DirectionShifts", "LastLayer", "Rescaling", "ScoreShifts"]


@dataclass(frozen=True)
class Coordinates:
    """Well-scaled coordinates ``u`` of the parameters, ``params = to_params(u)``, a linear map; here the identity."""

    def to_params(self, u: np.ndarray) -> np.ndarray:
        """Parameters of shape (n_params,)."""
        return u

    def from_params(self, params: np.ndarray) -> np.ndarray:
        """The inverse of `to_params`."""
        return params

    def pull(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient in ``u`` from the gradient in the parameters: the transpose of `to_params`."""
        return gradient

    def factors(self, n_params: int) -> np.ndarray:
        """Factors of the parameters where they must not be mixed, as in a domain; ndarray of shape (n_params,)."""
        return np.ones(n_params)


class LastLayer(NamedTuple):
    """Last layer of a model: scores that are linear in some features.

    Attributes
    ----------
    features : ndarray of shape (n_samples, n_last)
        Output of the layers before it for the rows.
    coef : ndarray of shape (n_last,)
        Places of the coefficients in the parameters.
    intercept : ndarray of shape (0,) or (1,)
        Place of the intercept in the parameters.
    """

    features: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray

    @property
    def entries(self) -> np.ndarray:
        """Places of the coefficients and of the intercept in the parameters."""
        return np.append(self.coef, self.intercept)


class ScoreShifts(ABC):
    """Constants that can be added to the scores of a model.

    Attributes
    ----------
    n_shifts : int
        The number of groups if the scores of every group move on their own, 1 if only all scores alike, 0 if none do.
    """

    n_shifts: int = 0

    @abstractmethod
    def moved(self, state: Any, offsets: np.ndarray) -> Any:
        """The state of the model whose scores are those of ``state`` plus the offsets.

        Parameters
        ----------
        state : object
        offsets : ndarray of shape (n_shifts,)

        Returns
        -------
        state : object
        """


class Rescaling(ABC):
    """States of a model whose scores are a multiple of those of one state, plus a constant.

    Attributes
    ----------
    signs : ndarray of shape (n_samples,)
        1 where the constant is added to a score, -1 where it is subtracted.
    can_shift : bool
        Whether constants other than zero can be had.
    """

    signs: np.ndarray
    can_shift: bool

    @abstractmethod
    def at(self, factor: float, shift: float) -> Any:
        """Return the state whose scores are ``factor`` times the original ones, plus ``shift``."""

    def penalty(self, factor: float, shift: float) -> tuple[float, float, float]:
        """Return the penalty of `at`, and its derivatives in factor and shift."""
        return 0.0, 0.0, 0.0


class DirectionShifts(ScoreShifts):
    """Shifts along directions of the parameters, an ndarray of shape (n_shifts, n_params)."""

    def __init__(self, directions: np.ndarray) -> None:
        self._directions, self.n_shifts = directions, len(directions)

    @override
    def moved(self, state: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        return state + offsets @ self._directions
