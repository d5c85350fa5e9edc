"""Minimax group loss: the exact optimum against 500 rounds of multiplicative weights and Fairlearn's reductions."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks._common import set_threads
from benchmarks.any_model.data import QUICK, Part, dense, linear_split, load_split
from fairconstrained import GroupLossClassifier
from fairconstrained.metrics import group_rates

__all__ = ["COLUMNS", "DATA", "METHODS", "main", "multiplicative_weights", "worst_losses"]

DATA = ("adult", "bank", "compas", "law_school")
SPLITS = (0, 1, 2, 3, 4)
ALPHA, ROUNDS = 1e-4, 500
#: Bounds that are tried with Fairlearn's exponentiated gradient, between the worst losses of the exact model and of the
#: unconstrained one, as it has no minimax; the best one on the training rows counts, and its time is that of all.
_BOUNDS = 3
COLUMNS = (
    *("data", "split", "method", "seconds", "train_worst", "train_mean", "test_worst", "test_mean", "gap"),
    *("difference_low", "difference_high"),
)
#: Draws of the test rows for the interval of the difference of two worst losses, and its share of them.
_DRAWS, _COVERAGE = 1000, 0.95


class Found(NamedTuple):
    """Scores of any rows, and the duality gap where it is known."""

    scores: Callable[[np.ndarray], np.ndarray]
    gap: float = np.nan


def worst_losses(rows: Part, scores: np.ndarray) -> tuple[float, float]:
    """Return the log loss of the worst group, and that of all rows."""
    worst = group_rates(rows.y, scores, sensitive_features=rows.groups, rate="log_loss", rule="ceiling")
    return float(worst), float(_losses(rows, scores).mean())


def _losses(rows: Part, scores: np.ndarray) -> np.ndarray:
    """Log losses of the rows."""
    return np.logaddexp(0, -np.where(rows.y == 1, 1.0, -1.0) * scores)


def difference_interval(rows: Part, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Return a bootstrap interval of the worst group's loss of the first scores less that of the second ones.

    Both are measured on the same draws of the rows, within the groups, so that what they share cancels.
    """
    rng, losses = np.random.default_rng(0), np.stack([_losses(rows, scores) for scores in (first, second)])
    means = np.empty((len(np.unique(rows.groups)), 2, _DRAWS))
    for own, group in zip(means, np.unique(rows.groups), strict=True):
        inside = losses[:, rows.groups == group]
        for draw in range(_DRAWS):
            own[:, draw] = inside[:, rng.integers(inside.shape[1], size=inside.shape[1])].mean(axis=1)
    worst = means.max(axis=0)
    low, high = np.quantile(worst[0] - worst[1], [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2])
    return float(low), float(high)


def _exact(rows: Part, kappa: Any, **options: Any) -> Found:
    model = GroupLossClassifier(kappa, alpha=ALPHA, random_state=0, **options)
    model.fit(rows.X, rows.y, sensitive_features=rows.groups)
    return Found(model.decision_function, np.nan if model.duality_gap_ is None else float(model.duality_gap_))


def unconstrained(rows: Part) -> Found:
    """The least mean loss."""
    return _exact(rows, None, new_row_folds=None)


def minimax(rows: Part) -> Found:
    """`GroupLossClassifier` as it is, with its slack and its estimate for new rows."""
    return _exact(rows, "minimax")


def exact_minimax(rows: Part) -> Found:
    """The least loss of the worst group, without a slack."""
    return _exact(rows, "minimax", slack=0.0, new_row_folds=None)


def multiplicative_weights(rows: Part, n_rounds: int = ROUNDS) -> Found:
    """Weights of groups that grow exponentially with their losses, and a logistic regression in every round.

    Every fit starts from the one before. The model of the round with the least largest training loss is the result,
    which is better than their average and favours this method. Diana and others, AIES 2021, Algorithm 1, with the step
    of the usual bound on the regret for losses of up to 1.
    """
    labels, codes = np.unique(rows.groups, return_inverse=True)
    counts, step = np.bincount(codes), np.sqrt(8 * np.log(len(labels)) / n_rounds)
    weights, best = np.full(len(labels), 1 / len(labels)), (np.inf, np.zeros(0), 0.0)
    plain = LogisticRegression(C=1 / (ALPHA * len(rows.y)), warm_start=True, max_iter=1000, tol=1e-5)
    signs = np.where(rows.y == 1, 1.0, -1.0)
    for _ in range(n_rounds):
        of_rows = (weights / counts)[codes] * len(rows.y)
        plain.fit(rows.X, rows.y, sample_weight=of_rows)
        losses = np.logaddexp(0, -signs * plain.decision_function(rows.X))
        means = np.bincount(codes, losses) / counts
        if means.max() < best[0]:
            best = float(means.max()), plain.coef_[0].copy(), float(plain.intercept_[0])
        weights = weights * np.exp(step * (means - means.max()))
        weights /= weights.sum()
    _, coefficients, intercept = best
    return Found(lambda X: X @ coefficients + intercept)


class _Probabilities(LogisticRegression):
    """Fairlearn's bounded group loss asks its models for predictions between 0 and 1."""

    def predict(self, X: Any) -> np.ndarray:
        return self.predict_proba(X)[:, 1]


def _fairlearn(rows: Part, reduce: Callable[[Any, float], Any]) -> Found:
    """The best of some bounds on the squared loss of probabilities, the loss that Fairlearn has for these."""
    free, exact = (found(rows).scores(rows.X) for found in (unconstrained, exact_minimax))
    squares = [(1 / (1 + np.exp(-scores)) - rows.y) ** 2 for scores in (free, exact)]
    worst = [max(s[rows.groups == g].mean() for g in np.unique(rows.groups)) for s in squares]
    best: tuple[float, Any] = (np.inf, None)
    for bound in np.linspace(min(worst), max(worst) + 1e-3, _BOUNDS):
        plain = _Probabilities(C=1 / (ALPHA * len(rows.y)), max_iter=1000)
        reduced = reduce(plain, float(bound))
        reduced.fit(rows.X, rows.y, sensitive_features=rows.groups)

        def scores(X: np.ndarray, reduced: Any = reduced) -> np.ndarray:
            shares = _expected(reduced, X).clip(1e-12, 1 - 1e-12)
            return np.log(shares / (1 - shares))

        largest = worst_losses(rows, scores(rows.X))[0]
        if largest < best[0]:
            best = largest, scores
    return Found(best[1])


def _expected(reduced: Any, X: np.ndarray) -> np.ndarray:
    """Mean probability of a randomised model, or that of a single one."""
    if not hasattr(reduced, "weights_"):
        return np.asarray(reduced.predict(X))
    drawn = [(weight, model) for weight, model in zip(reduced.weights_, reduced.predictors_, strict=True) if weight > 0]
    return np.asarray(sum(weight * model.predict(X) for weight, model in drawn))


def exponentiated_gradient(rows: Part) -> Found:
    """Fairlearn's ExponentiatedGradient with BoundedGroupLoss."""
    from fairlearn.reductions import BoundedGroupLoss, ExponentiatedGradient, SquareLoss

    return _fairlearn(
        rows, lambda plain, bound: ExponentiatedGradient(plain, BoundedGroupLoss(SquareLoss(0, 1), upper_bound=bound))
    )


def grid_search(rows: Part) -> Found:
    """Fairlearn's GridSearch with BoundedGroupLoss."""
    from fairlearn.reductions import BoundedGroupLoss, GridSearch, SquareLoss

    return _fairlearn(
        rows, lambda plain, bound: GridSearch(plain, BoundedGroupLoss(SquareLoss(0, 1), upper_bound=bound))
    )


METHODS: dict[str, Callable[[Part], Found]] = {
    "unconstrained": unconstrained,
    "minimax": minimax,
    "exact_minimax": exact_minimax,
    "multiplicative_weights": multiplicative_weights,
    "exponentiated_gradient": exponentiated_gradient,
    "grid_search": grid_search,
}


def compare(data: str, seed: int, methods: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each method on a split; the difference is the worst test loss of minimax less that of the method."""
    train, test = (part._replace(X=dense(part.X)) for part in linear_split(load_split(data, seed)))
    found, scores = [], {}
    for name in methods:
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = METHODS[name](train)
        seconds = time.perf_counter() - begin
        scores[name] = model.scores(test.X)
        losses = (*worst_losses(train, model.scores(train.X)), *worst_losses(test, scores[name]))
        found.append(dict(zip(COLUMNS, (data, seed, name, seconds, *losses, model.gap, np.nan, np.nan), strict=True)))
    for row in found:
        if "minimax" in scores and row["method"] != "minimax":
            interval = difference_interval(test, scores["minimax"], scores[row["method"]])
            row["difference_low"], row["difference_high"] = interval
    return found


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Compare the methods on the data sets and print the means; ``--output`` is a folder for the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=[*DATA, *QUICK])
    parser.add_argument("--splits", nargs="+", type=int, default=list(SPLITS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    set_threads(1)
    rows = [row for data in options.data for seed in options.splits for row in compare(data, seed, options.methods)]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        table.to_csv(options.output / "minimax.csv", index=False)
    print(table.groupby(["data", "method"], sort=False).mean(numeric_only=True).drop(columns="split").to_string())
    return table


if __name__ == "__main__":
    main()
