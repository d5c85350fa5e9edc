"""Span search: optima that a brute-force search confirms, and the problems that it takes."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from fairconstrained import PartialParityClassifier, RateParityClassifier
from fairconstrained.constraints import DemographicParity, EqualizedOdds, GroupRates, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.metrics import equal_opportunity_gap, independence_gap, separation_gap
from fairconstrained.models import LinearModel
from fairconstrained.objectives import ZeroOne
from fairconstrained.problem import Problem
from fairconstrained.solvers import SpanSearch
from fairconstrained.solvers._smoothed_sums import CellSums, SmoothedSums
from fairconstrained.solvers._span_values import Cell, Counts


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
    labels = {"demographic_parity": [y >= 0], "equal_opportunity": [y == 1], "equalized_odds": [y == 0, y == 1]}
    # rates of both groups, one column for each: by hand, as the metric of eleven thousand models takes a minute
    counted = [np.stack([rows & (groups == g) for g in np.unique(groups)], axis=1) for rows in labels[constraint]]
    best = 1.0
    for first in np.linspace(-3, 3, 25):
        for second in np.linspace(-2, 2, 9):
            scores = free.decision_function(X) + first * X[:, 1] + second * X[:, 2]
            decisions = scores > np.quantile(scores, np.linspace(0.02, 0.98, 49))[:, None]
            gaps = np.max([np.ptp(decisions @ (rows / rows.sum(axis=0)), axis=1) for rows in counted], axis=0)
            errors = (decisions != y).mean(axis=1)
            for place in np.flatnonzero((gaps <= 0.05 + 1e-9) & (errors < best)):
                if errors[place] < best and metric(y, decisions[place], sensitive_features=groups) <= 0.05:
                    best = errors[place]
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
    # two equally good ends differ by half a standard error
    assert np.mean(model.predict(X) != y) == pytest.approx(np.mean(repeated.predict(X) != y), abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("constraint", METRICS)
def test_bounds_hold_on_new_rows_as_well_as_few_rows_allow(constraint):
    """Few numbers are chosen, by smooth rates: over draws of few rows, the gap on new rows is near to kappa."""
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


@pytest.fixture(scope="module")
def cells():
    """Problem of weighted rows, scores, and the sums of its cells."""
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(900, 3)), rng.random(900) < 0.4, rng.integers(0, 3, 900)
    weights = rng.integers(1, 4, 900) / 2
    data = FairData.from_arrays(X, np.where(y, 1.0, -1.0), groups, ("a", "b", "c"), sample_weight=weights)
    problem = Problem(ZeroOne().bind(data), (EqualizedOdds(0.05).bind(data),), data, model=LinearModel(3))
    scores = problem.scores(np.array([1.0, 0.5, -0.2, 0.1]))
    return problem, scores, CellSums.of(problem, scores)


def free(numbers):
    """No penalty."""
    return 0.0, np.zeros_like(numbers)


def test_sums_of_cells_are_the_counted_errors_and_excesses(cells):
    problem, scores, sums = cells
    assert len(sums.cells) == 6  # three groups with two labels
    cuts, losses, excesses = sums.at_cuts(scores[sums.order])
    assert cuts.size == 901
    counts = Counts(problem)
    assert losses == pytest.approx(counts.errors(scores, cuts[::-1])[::-1])
    assert excesses == pytest.approx(counts.excess(scores, cuts))


def test_sums_of_a_part_of_the_rows(cells):
    _, scores, sums = cells
    thinned = sums.thinned(300)
    assert 290 <= thinned.order.size <= 310
    assert thinned.by_cell(thinned.weights) == pytest.approx(sums.by_cell(sums.weights))
    whole = SmoothedSums(sums, scores[sums.order], np.ones((900, 1)), 1.0, free)
    near = whole.near(np.zeros(1), 0.2)
    assert 0 < near.scores.size < 400
    moved = np.array([0.15])  # no decision of another row changes
    losses, expected = (own.sums.at_cuts(own.distances(moved))[1:] for own in (near, whole))
    assert set(map(tuple, np.round(losses, 9).T)) <= set(map(tuple, np.round(expected, 9).T))


def test_gradients_of_smooth_decisions(cells):
    problem, scores, sums = cells
    moves = np.column_stack([problem.data.X[:, :2], np.ones(900)])[sums.order]
    smoothed = SmoothedSums(sums, scores[sums.order], moves, 1.0, lambda b: (b @ b / 20, b / 10))
    numbers = np.array([0.3, -0.2, 0.1])
    _, gradients = smoothed.at(numbers, 0.5)
    steps = 1e-6 * np.eye(3)
    expected = [(smoothed.at(numbers + step, 0.5)[0] - smoothed.at(numbers - step, 0.5)[0]) / 2e-6 for step in steps]
    assert gradients == pytest.approx(np.transpose(expected), abs=1e-6)
    sharp, _ = smoothed.at(numbers, 1e-9)
    positive = (smoothed.distances(numbers) > 0) * sums.weights
    expected = sums.at(sums.by_cell(positive))[0]
    expected[0] += numbers @ numbers / 20
    assert sharp == pytest.approx(expected)


def test_smooth_decisions_keep_the_bounds_and_lose_no_more_than_they_have_to(cells):
    problem, scores, sums = cells
    moves = np.column_stack([problem.data.X[:, :2], np.ones(900)])[sums.order]
    smoothed = SmoothedSums(sums, scores[sums.order], moves, 1.0, free)
    numbers, worth, n_evaluations = smoothed.minimised(np.zeros(3), 0.2)
    loss, *components = smoothed.at(numbers, 0.2)[0]
    assert max(components) <= 1e-6
    assert worth == pytest.approx(loss, abs=1e-5)
    assert 1 < n_evaluations < 100
    grid = [smoothed.at(np.array(point), 0.2)[0] for point in product(np.linspace(-2, 2, 9), repeat=3)]
    assert loss <= min(value for value, *others in grid if max(others) <= 0) + 1e-6


@pytest.mark.parametrize("reach", [0.05, 0.3])
def test_random_steps_count_what_all_rows_count(cells, reach):
    """They sort the rows near the threshold alone, and lead no further than the decisions of these."""
    problem, scores, sums = cells
    moves = np.column_stack([problem.data.X[:, :2], np.full(900, 0.5)])[sums.order]
    smoothed = SmoothedSums(sums, scores[sums.order], moves, 0.5, free)
    start = smoothed.minimised(np.zeros(3), 0.2)[0]
    near = smoothed.near(start, reach)
    assert near.scores.size < smoothed.scores.size
    for seed in range(20):
        step = reach / 2 * np.random.default_rng(seed).normal(size=3)
        left = reach - np.linalg.norm(step)
        found = near.counted(start + step, left)
        assert np.isfinite(found.worth) == (left > 0)
        if left > 0:
            positive = (smoothed.distances(found.numbers) > 0) * sums.weights
            loss, *components = sums.at(sums.by_cell(positive))[0]
            assert found.worth == pytest.approx(loss + 5 * max([0.0, *components]))
    better, _ = smoothed.polished(start, -np.inf, 0.02, reach, np.random.default_rng(0))
    assert smoothed.counted(better).feasible <= smoothed.counted(start).feasible


def test_of_few_numbers_an_exact_search_finds_the_fewest_errors():
    """A score and the probability of a group: no mixture and threshold of a dense sweep makes fewer errors."""
    missed = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        groups = rng.integers(0, 2, 500)
        X = rng.normal(size=(500, 2)) + groups[:, None] * [0.8, 1.0]
        y = (X[:, 0] + rng.normal(size=500) > 0.3).astype(int)
        model = fitted((X, y, groups), constraint="demographic_parity", solver_options={"exact": True})
        assert max(model.constraint_values_.values()) <= 0.05
        fewest = 500
        for angle in np.linspace(0, 2 * np.pi, 2000, endpoint=False):
            order = np.argsort(-X @ [np.cos(angle), np.sin(angle)])
            rates = [np.cumsum(groups[order] == group) / (groups == group).sum() for group in (0, 1)]
            errors = y.sum() + np.cumsum(1 - 2 * y[order])
            fewest = min(fewest, errors[np.abs(rates[0] - rates[1]) <= 0.05].min(initial=500))
        missed.append((model.predict(X) != y).sum() - fewest)
    assert max(missed) <= 1
    assert np.mean(missed) <= 0.2


def test_the_same_rows_give_the_same_model(rows):
    one, other = (fitted(rows, constraint="equalized_odds") for _ in range(2))
    assert (one.coef_ == other.coef_).all()
    assert one.intercept_ == other.intercept_


def test_clipped_rates_and_orders_of_scores_are_counted(rows):
    X, y, groups = rows
    data = FairData.from_arrays(X, np.where(y > 0, 1.0, -1.0), groups, ("a", "b"))
    for bound, expected in [
        (EqualizedOdds(0.1), True),
        (GroupRates("true_and_false_positive", rule="ratio", kappa=0.2), True),
        (GroupRates("positive_predictive_value", rule="ratio", kappa=0.2), False),
        (DemographicParity(0.1, interval=(0.0, 0.3)), False),
        (StatisticalParity(0.3), False),
    ]:
        problem = Problem(ZeroOne().bind(data), (bound.bind(data),), data, model=LinearModel(3))
        assert (CellSums.of(problem, X @ np.array([1.0, 0.5, -0.2])) is not None) == expected


@pytest.mark.parametrize("constraint", [DemographicParity, EqualizedOdds])
def test_a_search_near_the_end_for_more_rows_finds_what_a_whole_one_finds(rows, constraint):
    X, y, groups = rows
    data = FairData.from_arrays(X, 2.0 * y - 1, groups, ("a", "b"))
    problem = Problem(ZeroOne().bind(data), (constraint(0.05).bind(data),), data, model=LinearModel(3))
    rng, search = np.random.default_rng(0), SpanSearch()
    params = search.solve(problem, None, rng).model_state
    part = problem.on(data.part(np.flatnonzero(np.arange(y.size) % 5 > 0)))
    found, whole = search.solved_near(part, params, rng), search.solve(part, None, rng).model_state

    def errors(state):
        return np.mean((part.scores(state) > 0) != (part.data.y.numpy() > 0))

    assert part.holds(part.scores(found))
    assert errors(found) <= errors(whole) + 0.01


def test_there_is_no_search_near_to_clipped_rates(rows):
    X, y, groups = rows
    data = FairData.from_arrays(X, 2.0 * y - 1, groups, ("a", "b"))
    constraint = StatisticalParity(0.1, interval=(0.1, 0.6)).bind(data)
    problem = Problem(ZeroOne().bind(data), (constraint,), data, model=LinearModel(3))
    assert SpanSearch().solved_near(problem, np.array([1.0, 0.0, 0.0, 0.0]), np.random.default_rng(0)) is None


def test_rows_with_equal_scores_are_decided_as_well_as_under_the_log_loss():
    """Smooth decisions divide rows with equal scores, which no threshold does."""
    rng = np.random.default_rng(14)
    cells = rng.normal(size=(40, 3))
    cells[:, 2] = cells[:, 0] * cells[:, 1]
    own = cells[rng.choice(40, 2000, p=rng.dirichlet(np.ones(40)))]
    groups = (rng.random(2000) < expit(2 * own[:, 1])).astype(int)
    y = (rng.random(2000) < expit(own[:, 0] + own[:, 1])).astype(int)
    options = {"kappa": 0.02, "constraint": "equalized_odds", "random_state": 0}
    decides = RateParityClassifier(objective="zero_one", solver="span_search", **options)
    likely = RateParityClassifier(solver="augmented_lagrangian", **options)
    for model in (decides, likely):
        model.fit(own, y, sensitive_features=groups)
        assert model.constraint_values_["equalized_odds"] <= 0.02 + model.granularity_["equalized_odds"]
    assert decides.score(own, y) >= likely.score(own, y) > y.mean() + 0.1
