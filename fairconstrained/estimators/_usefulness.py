"""The score of a model on the training rows beside that of the best constant prediction, and what a bound takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.metrics import d2_absolute_error_score, r2_score

from fairconstrained.problem import Problem
from fairconstrained.solvers import Status

__all__ = ["Usefulness", "costly_bound", "hints"]

#: Share of the errors of the best constant prediction that a model avoids if it is clearly of use. Then no other model
#: is fitted to compare it with.
_USEFUL = 0.1
#: Share of the advantage over the best constant prediction that is most of it.
_MOST = 0.5
#: Score of predictions by the loss that they were fitted to, and the constant whose score is 0.
_SHARES = {
    "squared": ("R²", r2_score, "always predicting the mean"),
    "absolute": ("D² of absolute errors", d2_absolute_error_score, "always predicting the median"),
}


class Usefulness(NamedTuple):
    """A score of a model, of which 1 is the most, and that of the best constant prediction."""

    #: Name of the score.
    score: str
    #: Name of the best constant prediction.
    constant: str
    #: Score of the model on the training rows.
    reached: float
    #: Score of the best constant prediction there.
    of_constant: float
    #: Two standard errors of the latter.
    noise: float

    @classmethod
    def of_decisions(cls, problem: Problem, scores: np.ndarray) -> Self:
        """Return the accuracy of the decisions between two classes."""
        positive, weights = problem.data.y.numpy() > 0, problem.data.weights.numpy()
        share = float(np.average(positive, weights=weights))
        right = (scores > problem.threshold) == positive
        return cls(
            "accuracy",
            "always predicting the more frequent class",
            float(np.average(right, weights=weights)),
            max(share, 1 - share),
            2 * float(np.sqrt(share * (1 - share) / problem.data.n_samples)),
        )

    @classmethod
    def of_predictions(cls, problem: Problem, scores: np.ndarray, loss: str) -> Self:
        """Return the share of a constant's mean loss that predictions of numbers avoid."""
        name, share, constant = _SHARES[loss]
        reached = float(share(problem.data.y.numpy(), scores, sample_weight=problem.data.weights.numpy()))
        # The noise is that of the variance of normal targets: few rows with large errors would hide every cost.
        return cls(name, constant, reached, 0.0, 2 * float(np.sqrt(2 / problem.data.n_samples)))

    @property
    def advantage(self) -> float:
        """Score above that of the best constant prediction."""
        return self.reached - self.of_constant


def hints(estimator: Any, problem: Problem, scores: np.ndarray, rng: np.random.Generator) -> list[str]:
    """Advice on a fit whose bound holds, in words.

    There is one such hint: the model loses most of what that without the bound has above the best constant prediction.
    The model without the bound is fitted only if this may be so, once for all fits of a path, and not at all where the
    fit is to make no other fits (``new_row_folds=None``), or no bound of an optimum has a multiplier.

    Parameters
    ----------
    estimator : BaseFairEstimator
        Fitted to the problem.
    problem : Problem
    scores : ndarray of shape (n_samples,)
        Scores of the fitted model, in the order of the data.
    rng : numpy.random.Generator
    """
    if estimator.solver != "auto" or estimator._n_folds() is None or not estimator._bounds_anything(problem):
        return []
    status = Status(estimator.status_)
    is_free = status is Status.OPTIMAL and estimator.multipliers_ == {}  # nothing is lost to a bound
    if is_free or status.is_infeasible:
        return []
    found = estimator._usefulness(problem, scores)
    if found is None or found.advantage >= _USEFUL * (1 - found.of_constant):
        return []
    unbound = estimator._shared_rows.once("usefulness without a bound", lambda: _unbound(estimator, problem, rng))
    if unbound.advantage <= unbound.noise or found.advantage > (1 - _MOST) * unbound.advantage:
        return []
    return [
        f"The {found.score} on the {estimator._bounded_rows} is {unbound.reached:.3f} without the bound, "
        f"{found.reached:.3f} with it, and {found.of_constant:.3f} for {found.constant}. "
        f"{estimator._cheaper_bound(problem.data)}"
    ]


def _unbound(estimator: Any, problem: Problem, rng: np.random.Generator) -> Usefulness:
    """Return the usefulness of the model that is fitted without the bounds."""
    free = estimator._freed(problem)
    result = estimator._solve_part(replace(estimator._solver(free), verbose=0), free, None, rng)
    return estimator._usefulness(free, free.scores(result.model_state))


def costly_bound(estimator: Any, problem: Problem, scores: np.ndarray) -> str:
    """The warning for a model that has such a hint; without numbers, so that the fits of a search warn once."""
    found = estimator._usefulness(problem, scores)
    return (
        f"The bound takes most of the {found.score} above that of {found.constant}; hints_ has the numbers. "
        f"{estimator._cheaper_bound(problem.data)}"
    )
