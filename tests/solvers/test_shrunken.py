"""Models with the ridge that predicts left-out rows best, and bounds on losses and AUCs where rows are few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairconstrained import AUCFairClassifier, PartialParityClassifier
from fairconstrained.constraints import LossParity
from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import CrossFitted, CrossFittedSpan
from fairconstrained.solvers._shrunken import shrunken_of_folds
from fairconstrained.solvers._unconstrained import unconstrained_of_parts
from fairconstrained.solvers.cross_fitted_models import CrossFittedModels, Shrunk, sums_of_cells

N_FOLDS = 5


def draw(n_samples, seed, n_features=60):
    """Rows of many features, of which five tell the label and three the group; it is easier to tell in one group."""
    rng = np.random.default_rng(seed)
    groups = (rng.random(n_samples) < 0.35).astype(int)
    X = rng.normal(size=(n_samples, n_features))
    X[:, :3] += 0.7 * groups[:, None]
    y = (X[:, :5].sum(axis=1) + (1 + 2 * groups) * rng.normal(size=n_samples) > 1).astype(int)
    return X, y, groups


def shrunken(n_samples, n_features):
    """The problem of all rows without constraints, its models with a ridge, and the rows of every fold."""
    X, y, groups = draw(n_samples, 0, n_features)
    data = FairData.from_arrays(X, 2.0 * y - 1, groups, ("a", "b"))
    problem = Problem(Logistic().bind(data), (), data, model=LinearModel(n_features))
    folds = data.folds(N_FOLDS)
    by_fold = [np.flatnonzero(folds == fold) for fold in range(N_FOLDS)]
    rest = [np.flatnonzero(folds != fold) for fold in range(N_FOLDS)]
    free, _ = unconstrained_of_parts(problem, [None, *rest])
    return problem, free, shrunken_of_folds(problem, free, by_fold), by_fold, rest


def test_the_models_are_those_of_scikit_learn_with_that_ridge():
    problem, _, found, _, rest = shrunken(300, 40)
    ridge, X, y = found.ridge, problem.data.X, problem.data.y.numpy()
    strength = ridge[:-1] / X.var(axis=0)  # the curvature of the logistic loss at zero is a quarter
    np.testing.assert_allclose(strength, strength[0], rtol=1e-5)
    assert strength[0] > 0.002
    assert ridge[-1] == 0
    for rows, params in ((slice(None), found.whole), (rest[2], found.by_fold[2])):
        scaled = X[rows] / np.sqrt(ridge[:-1])
        reference = LogisticRegression(C=1 / len(scaled), tol=1e-10, max_iter=1000).fit(scaled, y[rows])
        np.testing.assert_allclose(params[:-1] * np.sqrt(ridge[:-1]), reference.coef_[0], atol=1e-4)


def test_they_predict_left_out_rows_better():
    problem, (_, *free), found, by_fold, _ = shrunken(300, 40)
    losses = []
    for models in (free, found.by_fold):
        scores = np.empty(problem.data.n_samples)
        for rows, params in zip(by_fold, models, strict=True):
            scores[rows] = problem.scores(params)[rows]
        losses.append(np.logaddexp(0, -problem.data.y.numpy() * scores).mean())
    assert losses[1] < losses[0] - 0.05


def test_there_is_no_ridge_where_it_does_not_help():
    problem, free, found, _, _ = shrunken(4000, 5)
    assert np.abs(found.whole - free[0]).max() < 0.02
    assert found.ridge.max() < 0.002 * problem.data.X.var(axis=0).max()


def test_sums_of_cells_are_the_directions_in_which_a_quantity_moves_as_a_whole():
    lengths = np.array([[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0], [0.0, 2.0, 0.0, -2.0]])
    sums = sums_of_cells(lengths, n_components=2)
    assert sums.shape == (4, 2)  # both components have the same direction, up to the sign
    np.testing.assert_array_equal(sums[:, 0], [1, 0, 0, 0])
    np.testing.assert_allclose(np.abs(sums[:, 1]), np.array([0, 1, 1, 2]) / np.sqrt(6))
    models = CrossFittedModels([np.eye(4)], [[np.eye(4)]], 1, Shrunk(np.empty(0), np.empty(0), [], sums))
    np.testing.assert_array_equal(models.narrowed.whole[0], sums)
    assert models._replace(shrunken=None).narrowed.whole[0].shape == (4, 4)


@pytest.mark.parametrize("kappa", [0.1, 5.0])
def test_models_without_a_fold_are_told_for_tight_and_loose_bounds(kappa):
    problem, *_, rest = shrunken(600, 40)
    problem = replace(problem, constraints=(LossParity(kappa).bind(problem.data),))
    solver, rng = CrossFitted(), np.random.default_rng(0)
    result = solver.solve(problem, None, rng)
    is_free = result.start.solver_state.chosen is None
    assert is_free == (kappa > 1)
    states = solver.without_folds(problem, result)
    for rows, state in zip(rest, states, strict=True):
        part = problem.on(problem.data.part(rows))
        if is_free:  # the unconstrained model of the other rows
            (own,), _ = unconstrained_of_parts(part, [None])
            assert np.std(part.scores(state) - part.scores(own)) < 0.02 * np.std(part.scores(own))
        else:
            assert part.constraints[0].metric(part.scores(state)) < 2 * kappa
            assert np.std(part.scores(state) - part.scores(result.model_state)) > 0.01


def test_features_of_a_fold_do_not_know_its_labels():
    """Labels by chance, so that any correlation of scores with them is one with labels that a model has seen."""
    rng = np.random.default_rng(0)
    groups, y = (rng.random(300) < 0.35).astype(int), np.where(rng.random(300) < 0.5, -1.0, 1.0)
    data = FairData.from_arrays(rng.normal(size=(300, 50)), y, groups, ("a", "b"))
    problem = Problem(Logistic().bind(data), (LossParity(0.05).bind(data),), data, model=LinearModel(50))
    span = CrossFittedSpan.of(problem, data.folds(N_FOLDS), rng)
    assert span.models.shrunken is not None
    correlations = [np.corrcoef(feature, data.y.numpy())[0, 1] for feature in span.features.T]
    assert np.abs(correlations).max() < 0.2  # the standard error is .06


def auc(rows, kappa=0.02, **params):
    model = AUCFairClassifier(kappa, constraint="group_auc", random_state=0, new_row_folds=None, **params)
    return model.fit(rows[0], rows[1], sensitive_features=rows[2])


def losses(rows, kappa=0.02, **params):
    constraint = LossParity(kappa)
    model = PartialParityClassifier(constraint=constraint, random_state=0, new_row_folds=None, **params)
    return model.fit(rows[0], rows[1], sensitive_features=rows[2])


@pytest.mark.parametrize(
    ("fitted", "old"), [pytest.param(auc, "augmented_lagrangian", marks=pytest.mark.slow), (losses, "span")]
)
def test_few_rows_are_bounded_on_rows_not_seen_as_well(fitted, old):
    """Both ways keep the bound on the training rows; on new ones the old way exceeds it far more."""
    new, rows = draw(20_000, 100, 40), draw(600, 1, 40)
    models = [fitted(rows), fitted(rows, solver=old)]
    assert models[0].solver_ == "cross_fitted"
    gaps = []
    for model in models:
        (value,), (granularity,) = model.constraint_values_.values(), model.granularity_.values()
        assert value <= 0.02 + granularity
        gaps += model.constraint_values(new[0], new[1], sensitive_features=new[2]).values()
    assert gaps[0] < 0.5 * gaps[1]
    assert models[0].score(*new[:2]) > models[1].score(*new[:2]) - 0.06  # the price of the smaller gap


def test_many_rows_are_fitted_as_ever():
    rows = draw(2500, 0, 12)
    assert auc(rows, 0.4).solver_ == "augmented_lagrangian"
    assert losses(rows, 0.9).solver_ == "span"


def test_bounds_that_the_unconstrained_model_keeps_leave_it_alone():
    rows = draw(500, 0)
    free, loose = losses(rows, None), losses(rows, 0.9)
    assert loose.solver_ == "cross_fitted"
    np.testing.assert_allclose(loose.coef_, free.coef_, rtol=1e-3, atol=2e-3)
