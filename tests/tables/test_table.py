"""Tables of rows in parts: the numbers of an array in memory, whichever rows are chosen, however they are divided."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    AUCFairClassifier,
    FairHeadClassifier,
    GroupLossClassifier,
    LossParityClassifier,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
)
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.features import (
    as_dense,
    extremes,
    extremes_by_group,
    map_rows,
    product,
    products_by_code,
    products_by_group,
    rows_of,
    squares,
    sums_by_group,
    sums_of_products,
    weighted_gram,
)
from fairconstrained.metrics import statistical_parity_gap
from fairconstrained.models import LinearModel
from fairconstrained.tables import Parts, Table, array_table
from fairconstrained.tables.table import rows_in_memory

LAYOUTS = {"dense": np.asarray, "sparse": sp.csr_array}


class Kept(Parts):
    """Parts in memory; functions and columns go through pickle, as they would to another process."""

    def __init__(self, X, lengths):
        ends = np.cumsum((0, *lengths))
        self.lengths, self.n_features, self.dtype = tuple(lengths), X.shape[1], X.dtype
        self.parts = [X[a:b] for a, b in pairwise(ends)]

    def results(self, function, columns, taken):
        for part, own, rows in zip(self.parts, columns, taken, strict=True):
            chosen = part if rows is None else part[rows]
            if chosen.shape[0]:
                yield pickle.loads(pickle.dumps(function))(chosen, *own)


@st.composite
def divided(draw):
    """An array, the lengths of its parts, and some of its rows."""
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    n = sum(lengths)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    X = np.where(rng.random((n, 3)) < 0.6, rng.normal(size=(n, 3)), 0.0)
    rows = draw(st.lists(st.integers(0, n - 1), max_size=8)) if n else []
    chosen = draw(st.sampled_from([np.array(rows, dtype=int), rng.permutation(n), slice(n // 3, n), slice(None)]))
    return X, lengths, chosen


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(divided())
def test_the_numbers_are_those_of_an_array(layout, case):
    X, lengths, chosen = case
    table, expected = Table(Kept(layout(X), lengths))[chosen], X[chosen]
    assert table.shape == expected.shape
    weights, slopes = np.arange(1.0, len(expected) + 1), np.random.default_rng(0).normal(size=(len(expected), 2))
    half, columns = len(expected) // 2, np.array([[1.0, -1.0], [2.0, 0.5], [0.0, 3.0]])
    about = expected - columns[:, 0]
    np.testing.assert_array_equal(as_dense(rows_in_memory(table)), expected)
    for found, value in (
        (product(table, columns), expected @ columns),
        (product(table, columns[:, 0]), expected @ columns[:, 0]),
        (sums_of_products(table, weights), expected.T @ weights),
        (sums_of_products(table, slopes), expected.T @ slopes),
        (as_dense(sums_of_products(table, sp.csc_array(slopes))), expected.T @ slopes),
        (squares(table, weights), (expected**2).T @ weights),
        (weighted_gram(table, weights), expected.T @ (expected * weights[:, None])),
        (weighted_gram(table, weights, columns[:, 0]), about.T @ (about * weights[:, None])),
        (map_rows(table, _sums), expected.sum(axis=1)),
        (as_dense(rows_in_memory(rows_of(table, slice(0, half)))), expected[:half]),
    ):
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12)
    if len(expected):
        np.testing.assert_array_equal(np.stack(extremes(table)), [expected.min(axis=0), expected.max(axis=0)])
        groups = [rows for rows in (slice(0, half), slice(half, len(expected))) if rows.stop > rows.start]
        for found, value in zip(extremes_by_group(table, groups), extremes_by_group(expected, groups), strict=True):
            np.testing.assert_array_equal(found, value)
        own = columns.T[: len(groups)]
        by_group = np.concatenate([expected[rows] @ part for rows, part in zip(groups, own, strict=True)])
        codes = np.repeat(np.arange(len(groups)), [rows.stop - rows.start for rows in groups])
        shuffled = np.random.default_rng(0).permutation(len(expected))
        for given_rows in (table, expected):
            np.testing.assert_allclose(products_by_group(given_rows, own, groups), by_group, rtol=1e-12, atol=1e-12)
            found = products_by_code(given_rows[shuffled], own, codes[shuffled])
            np.testing.assert_allclose(found, by_group[shuffled], rtol=1e-12, atol=1e-12)
            for function in (sums_of_products, squares, weighted_gram):
                value = [function(expected[rows], weights[rows]) for rows in groups]
                found = sums_by_group(given_rows, function, weights, groups)
                np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12)


def _sums(X):
    return np.asarray(X.sum(axis=1)).ravel()


def test_rows_of_chosen_rows_are_rows_of_the_table():
    X = np.arange(60.0).reshape(20, 3)
    table = Table(Kept(X, [7, 0, 13]))
    first, second = np.random.default_rng(0).permutation(20), np.arange(3, 17)
    np.testing.assert_array_equal(table[first][second].gathered(), X[first][second])
    np.testing.assert_array_equal(table[X[:, 0] > 30].gathered(), X[X[:, 0] > 30])


def test_few_rows_come_as_an_array_and_many_stay_where_they_are():
    table = Table(Kept(np.arange(60.0).reshape(20, 3), [10, 10]))
    assert isinstance(table[np.arange(5)], np.ndarray)
    assert isinstance(table[np.arange(6)], Table)
    assert isinstance(table[np.arange(19, -1, -1)], Table)
    with pytest.raises(TypeError, match="bring the rows into memory: gathered"):
        np.asarray(table)


def problem(n=400):
    X, y, group = make_biased_classification(n, n_features=9, random_state=0)
    return X, y, group


ESTIMATORS = {
    "demographic parity": PartialParityClassifier(0.1, constraint="demographic_parity", random_state=0),
    "equalized odds": PartialParityClassifier(0.2, constraint="equalized_odds", objective="zero_one", random_state=0),
    "groups with models": PartialParityClassifier(
        0.1, constraint="demographic_parity", group_interactions=True, random_state=0
    ),
    "four fifths": RateParityClassifier(0.3, constraint="demographic_parity_ratio", random_state=0),
    "AUC": AUCFairClassifier(0.05, random_state=0),
    "AUC from moments": AUCFairClassifier(0.05, surrogate="quadratic", objective="auc", random_state=0),
    "group losses": GroupLossClassifier("minimax"),
    "loss parity of a network": LossParityClassifier(0.05, hidden_layer_sizes=(4,), max_epochs=2, random_state=0),
    "minority share": MinorityRateClassifier(0.4, minority=1, random_state=0),
}


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_to_a_table_is_that_to_an_array(name):
    X, y, group = problem()
    whole = clone(ESTIMATORS[name]).fit(X, y, sensitive_features=group)
    model = clone(ESTIMATORS[name]).fit(Table(Kept(X, [150, 0, 90, 160])), y, sensitive_features=group)
    expected = whole.decision_function(X, sensitive_features=group)
    np.testing.assert_allclose(model.decision_function(X, sensitive_features=group), expected, rtol=1e-6, atol=1e-6)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-9)
    assert model.constraint_values_ == pytest.approx(whole.constraint_values_, abs=1e-9)
    assert model.status_ == whole.status_


@pytest.mark.usefixtures("in_parts")
def test_models_of_groups_take_no_more_rounds_than_one_model():
    X, y, _ = problem()
    rounds = {}
    for n_groups in (2, 5):
        parts, data = (
            Kept(X, [150, 250]),
            FairData.from_arrays(X, 2.0 * y - 1, np.arange(400) % n_groups, range(n_groups)),
        )
        calls, results = [], parts.results
        parts.results = lambda *asked, results=results, calls=calls: calls.append(1) or results(*asked)
        spread = replace(data, X=Table(parts, data.order))
        model = LinearModel(9, n_copies=n_groups, alpha=1e-3)
        params = np.random.default_rng(0).normal(size=model.n_params)
        scores, pullback = model.forward(params, spread)
        gradient = pullback(scores)
        expected, expected_pullback = model.forward(params, data)
        np.testing.assert_allclose(scores, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, expected_pullback(expected), rtol=1e-10)
        np.testing.assert_allclose(model.curvature(spread, np.ones(400)), model.curvature(data, np.ones(400)))
        rounds[n_groups] = len(calls)
    assert rounds == {2: 3, 5: 3}


@pytest.mark.usefixtures("in_parts")
def test_a_fit_of_many_steps_to_a_table_keeps_its_bound_at_the_same_objective():
    X, y, group = problem()  # sums in another order lead to another of several optima here
    whole = PartialParityClassifier(0.2, random_state=0).fit(X, y, sensitive_features=group)
    model = clone(whole).fit(Table(Kept(X, [150, 0, 90, 160])), y, sensitive_features=group)
    gap = statistical_parity_gap(y, model.decision_function(X), sensitive_features=group)
    assert gap == pytest.approx(model.constraint_values_["statistical_parity"], abs=1e-12)
    assert gap <= 0.2 + model.granularity_["statistical_parity"]
    assert model.objective_ == pytest.approx(whole.objective_, rel=0.01)


@pytest.mark.usefixtures("in_parts")
def test_regression_and_error_rates_of_classes_on_a_table():
    X, y, group = problem()
    table, groups = Table(Kept(X, [200, 200])), {"sensitive_features": group}
    for estimator, *others, columns in (
        (PartialParityRegressor(0.3, constraint="statistical_parity", random_state=0), X[:, 0] + group, groups),
        (NeymanPearsonClassifier({0: 0.4}, random_state=0), y, {}),
    ):
        expected = clone(estimator).fit(X, *others, **columns).predict(X)
        found = clone(estimator).fit(table, *others, **columns).predict(table)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_table_of_names_sets_and_checks_them():
    X, y, group = problem(200)
    names = [f"feature {k}" for k in range(9)]
    model = PartialParityClassifier(0.3, random_state=0).fit(array_table(X, names=names), y, sensitive_features=group)
    assert model.feature_names_in_.tolist() == names
    scores = model.decision_function(pd.DataFrame(X, columns=names))
    np.testing.assert_allclose(model.decision_function(array_table(X, names=names)), scores, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(array_table(X, names=names[::-1]))
    unnamed = PartialParityClassifier(0.3, random_state=0).fit(array_table(X), y, sensitive_features=group)
    with pytest.raises(ValueError, match="X has 8 features"):
        unnamed.predict(array_table(X[:, :8]))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_missing_values_and_tables_without_rows_are_refused(layout):
    X, y, group = problem(100)
    X[[3, 70], [0, 1]] = np.nan, np.inf
    with pytest.raises(ValueError, match="NaN or infinity in 2 of its 100 rows"):
        PartialParityClassifier(0.3).fit(Table(Kept(layout(X), [50, 50])), y, sensitive_features=group)
    with pytest.raises(ValueError, match="no rows"):
        PartialParityClassifier(0.3).fit(Table(Kept(layout(X[:0]), [0])), y[:0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PartialParityClassifier(0.3).fit(array_table(layout(X[4:60])), y, sensitive_features=group)


def test_estimators_that_need_arrays_say_so():
    X, y, group = problem(400)
    with pytest.raises(TypeError, match="bring the rows into memory"):
        FairHeadClassifier(LogisticRegression()).fit(array_table(X), y, sensitive_features=group)


def test_a_model_knows_the_rows_of_its_table():
    X, y, group = problem(200)
    model = PartialParityClassifier(0.3, random_state=0).fit(array_table(X, block_size=30), y, sensitive_features=group)
    assert model._rows_seen.share_seen(X) == 1.0


def test_a_fitted_model_does_not_hold_its_table():
    X, y, group = problem(200)
    model = PartialParityClassifier(0.3, random_state=0).fit(array_table(X), y, sensitive_features=group)
    assert len(pickle.dumps(model)) < X.nbytes


@pytest.mark.slow
@pytest.mark.usefixtures("in_parts")
def test_a_fit_holds_some_fifteen_numbers_for_every_row():
    X, y, group = make_biased_classification(20_000, n_features=10, random_state=0)
    model = PartialParityClassifier(0.05, constraint="demographic_parity", solver="augmented_lagrangian")
    table = array_table(X.astype(np.float32), block_size=2000)
    model.fit(table, y, sensitive_features=group)  # what is imported and compiled at first
    tracemalloc.start()
    try:
        model.fit(table, y, sensitive_features=group)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150 * y.size
