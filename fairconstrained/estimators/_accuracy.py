"""Accuracy on the training rows beside that of always predicting the more frequent class, and what a bound takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from fairconstrained.data import FairData
from fairconstrained.problem import Problem
from fairconstrained.solvers import Status

__all__ = ["Accuracy", "costly_bound", "hints"]

#: Share of the errors of always predicting the more frequent class that a model avoids if it is clearly of use. Then no
#: other model is fitted to compare it with.
_USEFUL = 0.1
#: Share of the advantage over always predicting the more frequent class that is most of it.
_MOST = 0.5


class Accuracy(NamedTuple):
    """Shares of the weight of the training rows.

    Attributes
    ----------
    reached : float
        Share that the model predicts right.
    majority : float
        Share of the more frequent class.
    """

    reached: float
    majority: float

    @classmethod
    def of(cls, estimator: Any, problem: Problem, scores: np.ndarray) -> Accuracy | None:
        """The accuracy of scores; None unless they are those of a classifier of two classes."""
        if not is_classifier(estimator) or scores.ndim > 1:
            return None
        positive, weights = problem.data.y.numpy() > 0, problem.data.weights.numpy()
        share = float(np.average(positive, weights=weights))
        right = (scores > problem.threshold) == positive
        return cls(float(np.average(right, weights=weights)), max(share, 1 - share))

    @property
    def advantage(self) -> float:
        """Accuracy above that of always predicting the more frequent class."""
        return self.reached - self.majority


def hints(estimator: Any, problem: Problem, scores: np.ndarray, rng: np.random.Generator) -> list[str]:
    """Advice on a fit whose bound holds, in words.

    There is one such hint: the model loses most of what that without the bound has above the share of the more frequent
    class, and there is something that often costs less. The model without the bound is fitted only if this may be so,
    and not at all where the fit is to make no other fits (``new_row_folds=None``).

    Parameters
    ----------
    estimator : BaseFairEstimator
        Fitted to the problem.
    problem : Problem
    scores : ndarray of shape (n_samples,)
        Scores of the fitted model, in the order of the data.
    rng : numpy.random.Generator
    """
    advice = estimator._cheaper_bound(problem.data)
    found = Accuracy.of(estimator, problem, scores)
    if not advice or found is None or found.advantage >= _USEFUL * (1 - found.majority):
        return []
    if estimator.solver != "auto" or estimator._n_folds() is None or not estimator._bounds_anything(problem):
        return []
    if Status(estimator.status_).is_infeasible:
        return []
    free = estimator._freed(problem)
    result = estimator._solve_part(replace(estimator._solver(free), verbose=0), free, None, rng)
    unbound = Accuracy.of(estimator, free, free.scores(result.model_state))
    if unbound is None or unbound.advantage <= _noise(unbound, problem.data):
        return []
    if found.advantage > (1 - _MOST) * unbound.advantage:
        return []
    return [
        f"The accuracy on the {estimator._bounded_rows} is {unbound.reached:.3f} without the bound, "
        f"{found.reached:.3f} with it, and {found.majority:.3f} for always predicting the more frequent class. {advice}"
    ]


def costly_bound(estimator: Any, data: FairData) -> str:
    """The warning for a model that has such a hint; without numbers, so that the fits of a search warn once."""
    return (
        "The bound takes most of the accuracy above that of always predicting the more frequent class; hints_ has the "
        f"numbers. {estimator._cheaper_bound(data)}"
    )


def _noise(accuracy: Accuracy, data: FairData) -> float:
    """Two standard errors of the share of the more frequent class."""
    share = accuracy.majority
    return 2 * float(np.sqrt(share * (1 - share) / data.n_samples))
