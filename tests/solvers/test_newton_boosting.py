"""Newton boosting: the same trees as LightGBM without a bound, and the best prefix of them within one."""

import lightgbm as lgb
import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, EqualizedOdds, LossParity
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import StopTraining
from fairconstrained.models.boosted_trees import BoostedTrees
from fairconstrained.objectives import (
    F1,
    CostMatrix,
    Hinge,
    Logistic,
    PairwiseAUC,
    Squared,
    TruncatedLogistic,
    ZeroOne,
)
from fairconstrained.problem import Problem
from fairconstrained.solvers import SOLVERS, NewtonBoosting, Status
from fairconstrained.solvers.newton_boosting import best_constant
from tests.history import comparable

PARAMS = {"num_leaves": 4, "num_threads": 1}


@pytest.fixture(scope="module")
def rows():
    return make_biased_classification(
        600, 4, group_proportions=(0.6, 0.4), group_shift=(0.8, 0.0), separation=(1.0, 2.0), random_state=0
    )


def problem_of(rows, *constraints, objective=Logistic(), part=slice(None), weights=None):  # noqa: B008 - immutable
    X, y, groups = (column[part] for column in rows)
    data = FairData.from_arrays(X, 2.0 * y - 1, groups, ("a", "b"), weights)
    bound = tuple(constraint.bind(data) for constraint in constraints)
    return Problem(objective.bind(data), bound, data, model=BoostedTrees(PARAMS, (), X.shape[1]))


def solved(problem, start=None, callback=None, **options):
    solver = NewtonBoosting(**{"n_trees": 60, **options})
    return solver.solve(problem, start, np.random.default_rng(0), callback)


def test_without_a_bound_the_trees_are_those_of_lightgbm(rows):
    X, y, _ = rows
    result = solved(problem_of(rows), n_trees=20)
    plain = lgb.train({**PARAMS, "objective": "binary", "verbosity": -1}, lgb.Dataset(X, y), 20)
    np.testing.assert_allclose(result.model_state.scores(X), plain.predict(X, raw_score=True), atol=1e-5)


def test_weights_count_as_in_lightgbm(rows):
    X, y, _ = rows
    weights = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    weights *= y.size / weights.sum()  # the limits of LightGBM are for sums
    result = solved(problem_of(rows, weights=weights), n_trees=20)
    params = {**PARAMS, "objective": "binary", "verbosity": -1}
    plain = lgb.train(params, lgb.Dataset(X, y, weight=weights), 20)
    np.testing.assert_allclose(result.model_state.scores(X), plain.predict(X, raw_score=True), atol=1e-5)


@pytest.mark.parametrize(("n_trees", "learning_rate"), [(15, 0.1), (30, 0.1), (100, 0.02)])
def test_few_or_small_steps_reach_a_bound_that_is_far(rows, n_trees, learning_rate):
    X, y, _ = rows
    problem = problem_of(rows, DemographicParity(0.05))
    result = solved(problem, n_trees=n_trees, learning_rate=learning_rate)
    scores = result.model_state.scores(X)
    assert result.status is Status.COMPLETED
    assert problem.holds(scores)
    assert np.mean((scores > 0) == y) > 0.65  # half of the rows are positive
    assert result.multipliers is not None
    assert result.n_evaluations > 2 * n_trees  # those with shorter steps count as well


def test_squared_loss_has_the_trees_of_regression(rows):
    X, y, _ = rows
    result = solved(problem_of(rows, objective=Squared()), n_trees=20)
    plain = lgb.train({**PARAMS, "objective": "l2", "verbosity": -1}, lgb.Dataset(X, 2.0 * y - 1), 20)
    np.testing.assert_allclose(result.model_state.scores(X), plain.predict(X), atol=1e-5)


def test_errors_without_a_bound_have_the_trees_of_the_log_loss(rows):
    X, y, _ = rows
    result = solved(problem_of(rows, objective=ZeroOne()), n_trees=20)
    plain = lgb.train({**PARAMS, "objective": "binary", "verbosity": -1}, lgb.Dataset(X, y), 20)
    np.testing.assert_allclose(result.model_state.scores(X), plain.predict(X, raw_score=True), atol=1e-5)


def test_costs_of_errors_are_weights_of_rows(rows):
    X, y, _ = rows
    result = solved(problem_of(rows, objective=CostMatrix(((0, 1), (3, 0)))), n_trees=20)
    weights = np.where(y == 1, 3.0, 1.0) / np.where(y == 1, 3.0, 1.0).mean()
    params = {**PARAMS, "objective": "binary", "verbosity": -1}
    plain = lgb.train(params, lgb.Dataset(X, y, weight=weights), 20).predict(X, raw_score=True)
    decided = result.model_state.scores(X) > 0
    assert np.mean(decided == (plain > 0)) > 0.97


@pytest.mark.parametrize("objective", [ZeroOne(), CostMatrix(((0, 1), (3, 0))), F1()])
def test_bounds_beside_counted_objectives_are_kept(rows, objective):
    problem = problem_of(rows, EqualizedOdds(0.1), objective=objective)
    free, result = solved(problem_of(rows, objective=objective)), solved(problem)
    (bound,) = problem.constraints
    X = problem.data.X
    assert bound.metric(free.model_state.scores(X)) > 2 * bound.kappa
    assert result.status is Status.COMPLETED
    assert bound.metric(result.model_state.scores(X)) <= bound.kappa + bound.granularity
    assert free.objective <= result.objective < 0.9 * problem.objective_at(None, np.full(len(X), -1.0))


@pytest.mark.parametrize("objective", [TruncatedLogistic(), Hinge(), ZeroOne(), PairwiseAUC("logistic")])
def test_other_objectives_fall(rows, objective):
    problem = problem_of(rows, objective=objective)
    first, *_, last = (record["objective"] for record in solved(problem).history)
    assert last < 0.75 * first


@pytest.mark.parametrize("constraint", [DemographicParity(0.1), LossParity(0.02)])
def test_the_best_recorded_prefix_within_the_bound_is_the_result(rows, constraint):
    problem = problem_of(rows, constraint)
    (bound,) = problem.constraints
    result = solved(problem)
    assert result.status is Status.COMPLETED
    within = [r for r in result.history if r["n_iter"] and r[bound.name] <= bound.kappa + bound.granularity]
    assert result.objective == min(record["objective"] for record in within)
    scores = result.model_state.scores(problem.data.X)
    assert result.constraint_values == {bound.name: pytest.approx(bound.metric(scores))}
    free = solved(problem_of(rows))
    assert bound.metric(free.model_state.scores(problem.data.X)) > 2 * bound.kappa
    assert free.objective < result.objective < 0.95 * problem.objective_at(None, np.zeros(len(scores)))
    assert all(value > 0 for value in result.multipliers.values())
    assert result.multipliers.keys() <= set(problem.component_names)


def test_a_bound_that_trees_cannot_keep_is_said_to_be_infeasible(rows):
    problem = problem_of(rows, LossParity(0.0))
    result = solved(problem, n_trees=3)
    assert result.status is Status.INFEASIBLE
    assert result.constraint_values["loss_parity"] == min(r["loss_parity"] for r in result.history if r["n_iter"])


def test_multipliers_grow_with_the_price_of_the_bound(rows):
    tight, loose = (solved(problem_of(rows, DemographicParity(kappa)), n_trees=150) for kappa in (0.1, 0.3))
    assert tight.objective > loose.objective
    assert sum(tight.multipliers.values()) > sum(loose.multipliers.values())


def test_a_loose_bound_changes_nothing(rows):
    X = rows[0]
    free, loose = solved(problem_of(rows)), solved(problem_of(rows, DemographicParity(1.0)))
    np.testing.assert_array_equal(free.model_state.scores(X), loose.model_state.scores(X))
    assert loose.multipliers == {}


def test_the_same_seed_gives_the_same_trees(rows):
    X = rows[0]
    first, second = (solved(problem_of(rows, DemographicParity(0.1))) for _ in range(2))
    np.testing.assert_array_equal(first.model_state.scores(X), second.model_state.scores(X))
    assert comparable(first.history) == comparable(second.history)


@pytest.mark.parametrize(("n_folds", "judges"), [(3, [0]), (4, [0, 1]), (5, [0, 1])])
def test_boosters_of_folds_are_judged_by_the_rows_that_they_have_not_seen(rows, n_folds, judges):
    """From four folds on, a row is judged by two boosters: their noise is nearer to that of the mean of all."""
    problem = problem_of(rows, DemographicParity(0.1))
    result = solved(problem, n_folds=n_folds, n_trees=400, patience=40)
    assert result.n_iter < 400
    X, folds = problem.data.X, problem.data.folds(n_folds)
    by_booster = np.array([each.scores(X) for each in result.model_state.split(n_folds)])
    scores = np.mean([by_booster[(folds - i) % n_folds, np.arange(len(folds))] for i in judges], axis=0)
    (bound,) = problem.constraints
    assert bound.exact(scores) <= bound.granularity
    assert result.constraint_values == {bound.name: pytest.approx(bound.metric(scores))}
    assert result.objective == pytest.approx(problem.objective_at(result.model_state, scores))
    np.testing.assert_allclose(problem.scores(result.model_state), scores, atol=1e-9)  # of its own rows
    np.testing.assert_allclose(result.model_state.scores(X), by_booster.mean(axis=0), atol=1e-9)
    assert result.model_state.n_trees % n_folds == 0
    assert result.n_iter - result.model_state.n_trees / n_folds >= 40


def test_a_warm_start_adds_trees_or_begins_anew_with_multipliers(rows):
    problem = problem_of(rows, DemographicParity(0.1))
    first = solved(problem)
    more = solved(problem, first.start, n_trees=80)
    assert more.history[0]["n_iter"] == first.model_state.n_trees
    assert more.n_iter == 80 - first.model_state.n_trees
    begin = solved(problem, first.start)
    assert begin.history[0]["n_iter"] == 0
    assert begin.history[0]["multipliers"]  # those of the run before
    halves = solved(problem, n_folds=2)
    more = solved(problem, halves.start, n_folds=2, n_trees=80)
    assert more.history[0]["n_iter"] == halves.model_state.n_trees / 2
    assert more.n_iter == 80 - halves.model_state.n_trees / 2
    for n_folds in (None, 3):  # whose boosters would know the rows
        assert solved(problem, halves.start, n_trees=80, n_folds=n_folds).history[0]["n_iter"] == 0
    other = problem_of(rows, DemographicParity(0.1), part=slice(0, 500))
    assert solved(other, first.start).history[0]["multipliers"] == {}


def test_a_callback_ends_the_run(rows):
    def stop(record):
        if record["n_iter"] >= 10:
            raise StopTraining

    result = solved(problem_of(rows, DemographicParity(0.1)), callback=stop)
    assert result.n_iter == 10
    assert result.history[-1]["n_iter"] == 10


def test_the_best_constant_is_the_logarithm_of_the_odds(rows):
    y = rows[1]
    assert best_constant(problem_of(rows)) == pytest.approx(np.log(y.mean() / (1 - y.mean())))
    assert best_constant(problem_of(rows, objective=PairwiseAUC("logistic"))) == pytest.approx(0.0, abs=1e-12)


def test_no_estimator_can_choose_it_by_name():
    assert NewtonBoosting.name not in SOLVERS
