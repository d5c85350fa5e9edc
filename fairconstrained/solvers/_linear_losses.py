"""Mean losses of linear models with their gradients, in one pass over the features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

import numpy as np
import torch

from fairconstrained.models import LinearModel
from fairconstrained.objectives import Loss
from fairconstrained.problem import Problem
from fairconstrained.views import RowLosses

__all__ = ["LinearLosses", "has_linear_losses"]

#: Rows whose losses are computed at once.
_BLOCK = 2**14


def has_linear_losses(problem: Problem) -> bool:
    """Whether scores are linear, and the objective is a mean of losses of the rows."""
    return isinstance(problem.model, LinearModel) and isinstance(problem.objective, RowLosses)


class LinearLosses:
    """Mean losses of linear models over parts of the rows, each with the penalty, and their gradients.

    Losses and slopes are sums over rows, which are computed where these are. So what is sent does not grow with the
    number of rows, and files are read once for both.

    Parameters
    ----------
    problem : Problem
        Problem of which `has_linear_losses` is true; its constraints are left out.
    shares : iterable of ndarray of shape (n_samples,), optional
        Weights of all rows in the objective of every part. None: those of the objective, for all rows.

    Attributes
    ----------
    n_evaluations : int
        Values with gradients so far, each on all rows.
    """

    def __init__(self, problem: Problem, shares: Iterable[np.ndarray] | None = None) -> None:
        objective, data = cast(RowLosses, problem.objective), problem.data
        self._model, self._data = cast(LinearModel, problem.model), data
        self._sums = partial(_sums, row_loss=objective.row_loss)
        self._y = data.kept(data.y.numpy())
        self._shares = [data.kept(own) for own in shares or objective.row_weights(np.ones(1))[:1]]
        self.n_evaluations = 0

    def at(self, params: np.ndarray, parts: Sequence[int] = (0,)) -> tuple[np.ndarray, np.ndarray]:
        """Losses, of shape (n_parts,), and gradients, in columns.

        They are those of each column of ``params`` on the part of the rows whose number stands in ``parts``.
        """
        self.n_evaluations += len(parts)
        shares = (self._shares[part] for part in parts)
        losses, gradients = self._model.sums(params, self._data, self._sums, self._y, *shares)
        penalties, pulls = zip(*map(self._model.penalty, params.T), strict=True)
        return losses + penalties, gradients + np.stack(pulls, axis=1)

    def of_all(self, params: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss of the first part and its gradient, at parameters of shape (n_params,)."""
        losses, gradients = self.at(params[:, None])
        return float(losses[0]), gradients[:, 0]


def _sums(scores: np.ndarray, y: np.ndarray, *shares: np.ndarray, row_loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    """Losses of models whose scores are in columns, and their slopes, which take the place of the scores."""
    losses, targets, weights = np.zeros(scores.shape[1]), _tensor(y), [_tensor(own) for own in shares]
    for start in range(0, len(scores), _BLOCK):  # so that nothing beside the scores is as large
        rows = slice(start, start + _BLOCK)
        at, own = torch.from_numpy(scores[rows].T.copy()), torch.stack([each[rows] for each in weights])
        losses += (own * row_loss.of(at, targets[rows])).sum(dim=1).numpy()
        scores[rows] = (own * row_loss.slope(at, targets[rows])).T.numpy()
    return losses, scores


def _tensor(values: np.ndarray) -> torch.Tensor:
    """Values as a tensor; torch takes only such as may be written to, which those that Dask has sent may not."""
    return torch.from_numpy(values if values.flags.writeable else values.copy())
