"""Span search: optima that a brute-force search confirms, and the problems that it takes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone

from fairconstrained import PartialParityClassifier, RateParityClassifier
from fairconstrained.constraints import DemographicParity, EqualizedOdds, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.metrics import equal_opportunity_gap, independence_gap, separation_gap
from fairconstrained.models import LinearModel
from fairconstrained.objectives import ZeroOne
from fairconstrained.objectives.decisions import GainLoss
from fairconstrained.problem import Problem
from fairconstrained.solvers._span_rows import SpanRows
from fairconstrained.solvers._span_values import Cell, are_sums, calibration, components_at, decisions_of


@pytest.fixture(scope="module")
def rows():
    """Features are the log-odds of the label, those of the group, and their product."""
    rng = np.random.default_rng(3)
    groups = rng.random(1500) < 0.4
    z = rng.normal(size=1500) + groups
    y = rng.random(1500) < expit(1.5 * rng.normal(size=1500) * 0.5 + 1.5 * z - 1)
    share = expit(z + rng.normal(size=1500) - 0.5)
    X = np.column_stack([1.5 * z - 1, share, z * share])
    return X, y.astype(int), groups.astype(int)


def fitted(rows, kappa=0.05, **params):
    X, y, groups = rows
    params = {"objective": "zero_one", "solver": "span_search", "random_state": 0, "alpha": 0.0} | params
    return PartialParityClassifier(kappa, **params).fit(X, y, sensitive_features=groups)


METRICS = {
    "demographic_parity": independence_gap,
    "equal_opportunity": equal_opportunity_gap,
    "equalized_odds": lambda *args, **more: separation_gap(*args, agg_labels="max", **more),
}


@pytest.mark.slow
@pytest.mark.parametrize("constraint", METRICS)
def test_bounds_hold_and_errors_are_as_few_as_those_of_a_dense_search(rows, constraint):
    X, y, groups = rows
    model = fitted(rows, constraint=constraint)
    metric = METRICS[constraint]
    assert metric(y, model.predict(X), sensitive_features=groups) <= 0.05 + 1e-9
    assert model.constraint_values_[constraint] <= 0.05
    assert model.multipliers_ is None
    free = fitted(rows, kappa=None, solver="augmented_lagrangian")
    best = 1.0
    for first in np.linspace(-3, 3, 25):
        for second in np.linspace(-2, 2, 9):
            scores = free.decision_function(X) + first * X[:, 1] + second * X[:, 2]
            for cut in np.quantile(scores, np.linspace(0.02, 0.98, 49)):
                if metric(y, scores > cut, sensitive_features=groups) <= 0.05:
                    best = min(best, np.mean((scores > cut) != y))
    assert np.mean(model.predict(X) != y) <= best + 0.006  # of 1,500 rows: nine


def test_a_ridge_that_the_values_around_it_do_not_show_is_found():
    rng = np.random.default_rng(4)
    groups = rng.random(1500) < 0.4
    z = rng.normal(size=1500) + groups
    y = rng.random(1500) < expit(0.75 * rng.normal(size=1500) + 1.5 * z - 1)
    share = expit(z + rng.normal(size=1500) - 0.5)
    X = np.column_stack([1.5 * z - 1, share, z * share, z**2 / 4])
    model = fitted((X, y.astype(int), groups.astype(int)), kappa=0.01, constraint="equalized_odds")
    assert model.constraint_values_["equalized_odds"] <= 0.01
    assert np.mean(model.predict(X) != y) < 0.43  # searches that follow the values end at .4387


def test_of_one_direction_the_threshold_is_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    y, groups = (X[:, 0] + rng.normal(size=400) > 0).astype(int), (X[:, 0] > rng.normal(size=400)).astype(int)
    model = fitted((X, y, groups), kappa=0.2, constraint="demographic_parity")
    cuts = np.append(X[:, 0], [-9, 9])
    errors = [
        np.mean((X[:, 0] > cut) != y)
        for cut in cuts
        if independence_gap(y, X[:, 0] > cut, sensitive_features=groups) <= 0.2
    ]
    assert np.mean(model.predict(X) != y) == pytest.approx(min(errors))


@pytest.mark.slow
def test_bounds_on_the_order_of_scores_and_several_at_once(rows):
    X, y, _groups = rows
    both = [("order", StatisticalParity(0.3)), ("odds", EqualizedOdds(0.1))]
    model = fitted(rows, constraint=both)
    assert model.constraint_values_["order"] <= 0.3 + model.granularity_["order"]
    assert model.constraint_values_["odds"] <= 0.1
    assert np.mean(model.predict(X) == y) > 0.6


def test_many_rows_begin_with_a_part(rows):
    whole, part = (
        fitted(rows, constraint="demographic_parity", solver_options={"search_rows": size}) for size in (10**6, 300)
    )
    share = rows[1].mean()
    assert part.objective_ < min(share, 1 - share)  # better than one decision for all
    assert part.constraint_values_["demographic_parity"] <= 0.05
    assert whole.status_ == part.status_ == "completed"


def test_groups_that_overlap(rows):
    X, y, groups = rows
    table = np.column_stack([groups == 1, X[:, 0] > 0]).astype(bool)
    model = RateParityClassifier(0.1, objective="zero_one", solver="span_search", random_state=0)
    model.fit(X, y, sensitive_features=table)
    assert model.constraint_values_["demographic_parity"] <= 0.1


def test_constant_features(rows):
    _, y, groups = rows
    model = fitted((np.ones((1500, 2)), y, groups), constraint="demographic_parity")
    assert model.constraint_values_ == {"demographic_parity": 0.0}
    assert np.mean(model.predict(np.ones((1500, 2))) == y) == pytest.approx(max(y.mean(), 1 - y.mean()))


@pytest.mark.parametrize(
    ("params", "needs"),
    [
        ({"objective": "logistic"}, "an objective that counts errors"),
        ({"fit_intercept": False}, "linear scores with an intercept"),
        ({"group_interactions": True}, "shared by all groups"),
        ({"hidden_layer_sizes": (3,)}, "linear scores with an intercept"),
        ({"constraint": DemographicParity(0.05, threshold=1.0)}, "bounds on decisions or on the order of scores"),
    ],
)
def test_other_problems_are_refused(rows, params, needs):
    with pytest.raises(IncompatibleProblem, match=f"solver 'span_search' needs .*{needs}.*'augmented_lagrangian'"):
        fitted(rows, **{"constraint": "demographic_parity", **params})


def test_a_warm_start_goes_on_from_the_steps_of_another_bound(rows):
    X, y, groups = rows
    cold = fitted(rows, 0.04, constraint="demographic_parity")
    warm = fitted(rows, 0.08, constraint="demographic_parity", warm_start=True)
    first = warm.n_evaluations_
    warm.set_params(kappa=0.04).fit(X, y, sensitive_features=groups)
    assert warm.n_evaluations_ < first  # without those of the unconstrained model
    assert warm.history_[0]["n_sweeps"] < cold.history_[0]["n_sweeps"]
    assert warm.constraint_values_["demographic_parity"] <= 0.04
    assert np.mean(warm.predict(X) != y) <= np.mean(cold.predict(X) != y) + 0.004


@pytest.mark.parametrize("weighted", [False, True])
def test_between_cuts_a_cell_has_the_weight_of_its_rows(weighted):
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal(size=300), 1)  # with ties, also with the cuts
    weights = rng.uniform(0.5, 2, size=300) if weighted else np.full(300, 0.1)
    cuts = np.unique(scores)[[0, 3, 9, -1]]
    found = Cell.of(slice(100, 220), weights).between(scores, cuts)
    edges = [-np.inf, *cuts, np.inf]
    rows = np.arange(300)[100:220]
    expected = [weights[rows[(scores[rows] > a) & (scores[rows] <= b)]].sum() for a, b in pairwise(edges)]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("constraint", METRICS)
def test_bounds_hold_on_weighted_rows(constraint):
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 2, 3000)
    X = rng.normal(size=(3000, 3)) + groups[:, None] * [1.0, 0.5, 0.0]
    y = (X[:, 0] + rng.normal(size=3000) > 0.5).astype(int)
    weights = rng.integers(1, 4, 3000)
    model = PartialParityClassifier(0.05, constraint=constraint, objective="zero_one", solver="span_search")
    model.set_params(random_state=0).fit(X, y, sensitive_features=groups, sample_weight=weights)
    gap = METRICS[constraint](y, model.predict(X), sensitive_features=groups, sample_weight=weights)
    assert gap == pytest.approx(model.constraint_values_[constraint])
    assert gap <= 0.05 + 1e-9
    X, y, groups = (np.repeat(column, weights, axis=0) for column in (X, y, groups))
    repeated = clone(model).fit(X, y, sensitive_features=groups)
    # expected errors decide the search; those counted at two equally good ends differ by half a standard error
    assert np.mean(model.predict(X) != y) == pytest.approx(np.mean(repeated.predict(X) != y), abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("constraint", METRICS)
def test_bounds_hold_better_on_new_rows_than_counted_rates_would(constraint):
    """Expected rates take the luck of single rows out: over draws of few rows, the gap on new rows is near to kappa."""
    gaps, values = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        groups = rng.integers(0, 2, 20_600)
        X = rng.normal(size=(20_600, 2)) + groups[:, None] * [0.7, 0.3]
        y = (X[:, 0] + rng.normal(size=20_600) > 0.3).astype(int)
        model = fitted((X[:600], y[:600], groups[:600]), kappa=0.05, constraint=constraint)
        values.append(model.constraint_values_[constraint])
        gaps.append(METRICS[constraint](y[600:], model.predict(X[600:]), sensitive_features=groups[600:]))
    assert max(values) <= 0.05
    assert np.mean(gaps) <= 0.09


def test_expected_values_of_features_that_are_cells_are_the_counted_ones():
    """Where the features tell all rows of a kind apart from others, regressions are the shares of the kinds."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 4, 4000)
    groups, y = (rng.random(4000) < np.array([0.2, 0.4, 0.6, 0.8])[kinds]), rng.random(4000) < 0.1 + 0.2 * kinds
    bound = DemographicParity(0.05)
    data = FairData.from_arrays(np.eye(4)[kinds][:, 1:], np.where(y, 1.0, -1.0), groups.astype(int), ("a", "b"))
    problem = Problem(ZeroOne().bind(data), (bound.bind(data),), data, model=LinearModel(3))
    shares = np.array([y[kinds == kind].mean() for kind in range(4)])
    intercept = logit(shares[0])
    rows = SpanRows.of(problem, np.append(logit(shares[1:]) - intercept, intercept), most=8)
    assert are_sums(problem, rows.scores)
    line = calibration(rows.scores, decisions_of(rows.terms))
    assert line == pytest.approx((1.0, 0.0), abs=1e-6)
    expecting = rows.expecting(line)
    cuts = (np.unique(rows.scores)[1:] + np.unique(rows.scores)[:-1]) / 2
    errors = rows.counts.errors(rows.scores, cuts)
    assert expecting.expected.at_cuts(rows.scores, cuts, 0.0) == pytest.approx(errors)
    exact = expecting.exact_at(np.zeros(rows.n_directions), 0.0, components_at(problem, rows.scores))
    excess = rows.counts.excess(rows.scores, cuts)
    assert exact.expected.at_cuts(rows.scores, cuts, 1.0) - errors == pytest.approx(excess, abs=1e-4)


def test_scores_that_a_penalty_shrank_are_calibrated():
    rng = np.random.default_rng(0)
    log_odds = rng.normal(size=50_000) - 1
    signs = np.where(rng.random(50_000) < expit(log_odds), 1.0, -1.0)
    assert calibration(log_odds / 4, GainLoss(signs / 50_000)) == pytest.approx((4, 0), abs=0.1)


def test_the_same_rows_give_the_same_model(rows):
    one, other = (fitted(rows, constraint="equalized_odds") for _ in range(2))
    assert (one.coef_ == other.coef_).all()
    assert one.intercept_ == other.intercept_


def test_clipped_rates_and_orders_of_scores_are_counted(rows):
    X, y, groups = rows
    data = FairData.from_arrays(X, np.where(y > 0, 1.0, -1.0), groups, ("a", "b"))
    for bound, expected in [
        (EqualizedOdds(0.1), True),
        (DemographicParity(0.1, interval=(0.0, 0.3)), False),
        (StatisticalParity(0.3), False),
    ]:
        problem = Problem(ZeroOne().bind(data), (bound.bind(data),), data, model=LinearModel(3))
        assert are_sums(problem, X @ np.array([1.0, 0.5, -0.2])) == expected
