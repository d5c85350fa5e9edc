"""Unconstrained models of several parts of the rows at once, against fits of one after the other."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from fairconstrained.models import LinearModel
from fairconstrained.objectives import Hinge, Logistic
from fairconstrained.solvers._fitted_at_once import fitted_at_once
from fairconstrained.solvers._newton_coordinates import has_convex_hessian
from fairconstrained.solvers._unconstrained import unconstrained_of_parts


@pytest.fixture
def free(make_data, make_problem):
    """A problem without constraints, of 210 rows in two groups."""
    return make_problem(make_data(counts=(90, 120), shift=0.8), alpha=0.01)


def every_second(problem, first):
    return np.arange(first, problem.data.n_samples, 2)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_copies", [1, 2])
def test_each_part_gets_the_optimum_of_its_rows(free, n_copies, is_sparse):
    model = replace(free.model, n_copies=n_copies)
    data = replace(free.data, X=sp.csr_array(free.data.X)) if is_sparse else free.data
    problem = replace(free, model=model, data=data)
    parts = [None, every_second(problem, 0), every_second(problem, 1)]
    found, n_evaluations = fitted_at_once(problem, parts)
    assert n_evaluations < 15 * len(parts)
    for rows, params in zip(parts, found, strict=True):
        own = problem if rows is None else problem.on(data.part(rows))
        (alone,), _ = fitted_at_once(own, [None])
        reached, best = (own.objective_at(each, own.scores(each)) for each in (params, alone))
        assert reached == pytest.approx(best, abs=1e-5)


def test_the_optimum_is_that_of_scikit_learn(free):
    problem = replace(free, model=replace(free.model, alpha=1e-3))
    (params,), _ = fitted_at_once(problem, [None])
    data = problem.data
    reference = LogisticRegression(C=1 / (1e-3 * data.n_samples), tol=1e-10).fit(data.X, data.y.numpy())
    np.testing.assert_allclose(params[:-1], reference.coef_[0], atol=5e-3)
    np.testing.assert_allclose(params[-1], reference.intercept_[0], atol=5e-3)


def test_a_model_knows_nothing_of_labels_outside_of_its_part(free):
    rows = every_second(free, 0)
    others = free.data.y.clone()
    others[every_second(free, 1)] *= -1
    flipped = free.on(replace(free.data, y=others))
    ((_, before), _), ((_, after), _) = (fitted_at_once(problem, [None, rows]) for problem in (free, flipped))
    np.testing.assert_allclose(before, after, rtol=0, atol=1e-12)  # products with other columns beside round otherwise


def test_other_problems_are_fitted_one_after_the_other(free):
    rows = every_second(free, 0)
    assert has_convex_hessian(free)
    hinge = replace(free, objective=Hinge().bind(free.data))
    assert not has_convex_hessian(hinge)
    wide = replace(free, model=LinearModel(1000))
    assert not has_convex_hessian(wide)
    found, n_evaluations = unconstrained_of_parts(hinge, [rows])
    assert len(found) == 1
    assert n_evaluations > 0
    weighted = replace(free, objective=Logistic().bind(free.data))
    assert has_convex_hessian(weighted)
