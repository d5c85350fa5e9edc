"""Values of a term on a mini-batch, and their slopes in the caller's scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from fairconstrained.views import RowLosses

__all__ = ["GraphPoint", "Own", "Point", "RowLossPoint", "points_of"]

#: Number of components up to which a table of their coefficients is made.
FEW_COMPONENTS = 8


class Own(NamedTuple):
    """The rows of this process among those of a mini-batch."""

    #: Their scores, in the order of the caller.
    scores: np.ndarray  # of shape (n_own_rows,)
    #: Number of rows of the mini-batch, in all processes.
    n_rows: int
    #: Places of this process's rows, before the rows were ordered.
    places: slice = slice(None)
    #: Number of processes that share the mini-batch.
    n_processes: int = 1


class Point(ABC):
    """A term at the scores of a mini-batch.

    Parameters
    ----------
    term : BoundConstraint or BoundObjective
        The term on the rows of the mini-batch.
    scores : ndarray of shape (n_rows,)
        Scores in the order of the caller.
    order : ndarray of shape (n_ordered,), or None
        Row of the caller for every row of the term; None where they are the same.

    Attributes
    ----------
    values : ndarray of shape (n_components,)
        The values of the term.
    scores : ndarray of shape (n_ordered,)
        Scores in the order of the term.
    """

    values: np.ndarray

    def __init__(self, term: Any, scores: np.ndarray, order: np.ndarray | None, own: Own) -> None:
        self.term, self.own, self._order = term, own, order
        self.scores = scores if order is None else scores[order]
        self._scores = torch.from_numpy(self.scores)
        self._aux = term.initial_aux(self.scores) if getattr(term, "n_aux", 0) else np.empty(0)
        self._evaluate()

    @abstractmethod
    def _evaluate(self) -> None:
        """Set the values."""

    @abstractmethod
    def _ordered_slopes(self, weights: np.ndarray) -> np.ndarray:
        """Slopes of ``weights @ values`` in the scores, in the order of the data."""

    def slopes(self, weights: np.ndarray) -> np.ndarray:
        """Slopes of ``weights @ values`` in the caller's scores; ndarray of shape (n_own_rows,).

        ``DistributedDataParallel`` takes the mean of the processes' gradients, and each of them has the part of its own
        rows. So the slopes are multiplied by the number of processes.
        """
        slopes = self._ordered_slopes(weights)
        if self._order is not None:
            ordered, slopes = slopes, np.zeros(self.own.n_rows)  # rows of weight zero keep these
            slopes[self._order] = ordered
        return slopes if self.own.n_processes == 1 else slopes[self.own.places] * self.own.n_processes


class RowLossPoint(Point):
    """A term that is linear in a loss of every row; it needs no graph."""

    def _evaluate(self) -> None:
        self.values = self.term.of_losses(self._losses(), self._aux)

    def _ordered_slopes(self, weights: np.ndarray) -> np.ndarray:
        return self._loss_slopes() * self.term.row_weights(weights)[0]

    def _losses(self) -> np.ndarray:
        return self.term.row_loss.of(self._scores, self.term.data.y).numpy()

    def _loss_slopes(self) -> np.ndarray:
        return self.term.row_loss.slope(self._scores, self.term.data.y).numpy()


class TablePoint(RowLossPoint):
    """Values and slopes of a term whose coefficients on these rows are known, in less time.

    Parameters
    ----------
    coefficients : ndarray of shape (n_components, n_ordered)
        Coefficients of the losses.
    constants : ndarray of shape (n_components,)
    *arguments
        Arguments of a `Point`.
    """

    def __init__(self, coefficients: np.ndarray, constants: np.ndarray, *arguments: Any) -> None:
        self._coefficients, self._constants = coefficients, constants
        super().__init__(*arguments)

    def _evaluate(self) -> None:
        self.values = self._coefficients @ self._losses() + self._constants

    def _ordered_slopes(self, weights: np.ndarray) -> np.ndarray:
        return self._loss_slopes() * (weights @ self._coefficients)


def points_of(term: Any) -> Callable[[np.ndarray, np.ndarray | None, Own], Point]:
    """Return the function that makes the points of a term, for a term on rows that come several times."""
    if not isinstance(term, RowLosses):
        return partial(GraphPoint, term)
    if not getattr(term, "n_aux", 0):
        constants = term.of_losses(np.zeros(term.data.n_samples), np.empty(0))
        if 0 < constants.size <= FEW_COMPONENTS:
            coefficients = np.array([term.row_weights(row)[0] for row in np.eye(constants.size)])
            return partial(TablePoint, coefficients, constants, term)
    return partial(RowLossPoint, term)


class GraphPoint(Point):
    """A term that torch differentiates."""

    def _evaluate(self) -> None:
        self._scores.requires_grad_()
        with torch.enable_grad():
            self._values = self.term.values(self._scores, torch.from_numpy(self._aux))
        self.values = self._values.detach().numpy()

    def _ordered_slopes(self, weights: np.ndarray) -> np.ndarray:
        (slopes,) = torch.autograd.grad(
            self._values, self._scores, torch.from_numpy(weights), retain_graph=True, materialize_grads=True
        )
        return slopes.numpy()
