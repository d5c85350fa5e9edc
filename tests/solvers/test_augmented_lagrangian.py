"""Augmented Lagrangian: known optima, primal and dual; and the exact metric it promises."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from fairconstrained import AUCFairClassifier, PartialParityClassifier
from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic, Squared, ZeroOne
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Status, make_solver
from fairconstrained.solvers._augmented import outer_iterations
from fairconstrained.views import FullBatch


def solve(problem, start=None, **options):
    solver = make_solver("augmented_lagrangian", options, problem)
    return solver.solve(problem, start, np.random.default_rng(0))


# --- convex problems


@pytest.mark.parametrize("start", [None, "zero", "far"])
def test_known_optimum_primal_and_dual(known, start):
    begin = {"zero": np.zeros(known.params.size), "far": np.full(known.params.size, 3.0)}.get(start)
    result = solve(known.problem, None if begin is None else Start(begin))
    assert result.status == Status.OPTIMAL
    assert result.objective == pytest.approx(known.objective, rel=5e-4)
    np.testing.assert_allclose(result.model_state, known.params, atol=2e-3)
    assert result.constraint_values["mean_gap"] == pytest.approx(0.05, abs=2e-5)
    assert result.multipliers == {"mean_gap[second - first]": pytest.approx(known.multiplier, rel=0.02)}


def test_an_inactive_constraint_gives_the_unconstrained_optimum(make_data, make_problem, mean_gap):
    data = make_data(weighted=True)
    problem = make_problem(data, mean_gap(data, 5.0))
    result, free = solve(problem), solve(problem.without_constraints())
    gradient = problem.view(FullBatch).at(result.model_state).gradient(1.0, np.zeros(2))
    assert np.abs(gradient).max() < 1e-7
    np.testing.assert_allclose(result.model_state, free.model_state, atol=1e-6)
    assert result.multipliers == {}
    assert result.status == free.status == Status.OPTIMAL


def test_unconstrained_least_squares(make_data, make_problem):
    data = make_data(classes=False, weighted=True)
    X = np.hstack([data.X, np.ones((data.n_samples, 1))])
    weights = data.weights.numpy()
    ridge = 0.05 * np.diag([1.0, 1.0, 1.0, 0.0])
    expected = np.linalg.solve(X.T @ (weights[:, None] * X) + ridge, X.T @ (weights * data.y.numpy()))
    np.testing.assert_allclose(solve(make_problem(data, loss=Squared())).model_state, expected, atol=1e-6)


def test_a_warm_start_at_the_solution_is_cheaper(known):
    cold = solve(known.problem)
    warm = solve(known.problem, start=cold.start)
    assert warm.status == Status.OPTIMAL
    assert warm.objective <= cold.objective * (1 + 5e-4)
    assert warm.n_evaluations < cold.n_evaluations / 2


# --- status


def test_one_iteration_and_a_tiny_kappa_end_infeasible(parity_problem):
    problem = parity_problem(StatisticalParity, 0.02)
    result = solve(problem, max_iter=1)
    assert result.status == Status.INFEASIBLE
    assert result.constraint_values["statistical_parity"] > 0.02 + problem.constraints[0].granularity


def test_feasible_but_not_settled_is_max_iter(parity_problem):
    problem = parity_problem(DemographicParity, 0.2)
    start = np.full(problem.n_params, 1e-3)  # not constant, as such a start is ignored
    result = solve(problem, start=Start(start), max_iter=1)
    assert result.status == Status.MAX_ITER
    assert result.constraint_values["demographic_parity"] <= 0.2 + problem.constraints[0].granularity


# --- the exact constraint


@pytest.mark.parametrize("surrogate", ["logistic", "ramp", "smoothstep"])
@pytest.mark.parametrize("notion", [StatisticalParity, DemographicParity])
def test_the_exact_metric_is_within_kappa(parity_problem, notion, surrogate):
    problem = parity_problem(notion, 0.15, counts=(200, 260), surrogate=surrogate)
    (constraint,) = problem.constraints
    result, free = solve(problem), solve(problem.without_constraints())
    assert constraint.exact(problem.scores(free.model_state)) > constraint.granularity  # there is something to do
    assert constraint.exact(problem.scores(result.model_state)) <= constraint.granularity
    assert free.objective < result.objective < np.log(2)  # better than constant scores, which are fair too
    assert result.multipliers
    assert all(value > 0 for value in result.multipliers.values())


def one_feature(seed, n=300):
    """Rows of two groups with one feature, and the data they make."""
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1], [130, n - 130])
    x = rng.normal(size=n) + codes
    y = np.where(x + rng.normal(size=n) > 0.4, 1.0, -1.0)
    return x, y, codes, FairData.from_arrays(x[:, None], y, codes, ("a", "b"))


def optimum_by_cuts(x, y, codes, alpha):
    """(gap, least objective) of every set of rows that one feature can predict positive.

    Given that set the problem is convex: logistic regression under two linear inequalities.
    """

    def value(p):
        return np.logaddexp(0, -y * (p[0] * x + p[1])).mean() + alpha / 2 * p[0] ** 2

    def gradient(p):
        residual = -y / (1 + np.exp(y * (p[0] * x + p[1]))) / x.size
        return np.array([residual @ x + alpha * p[0], residual.sum()])

    ordered, found = np.sort(x), []
    for low, high in zip(np.append(-np.inf, ordered), np.append(ordered, np.inf), strict=True):
        for sign in (1.0, -1.0):
            positive = x >= high if sign > 0 else x <= low
            gap = abs(positive[codes == 0].mean() - positive[codes == 1].mean())
            rows = [[sign, 0.0]]
            rows += [[-sign * low, -sign]] if np.isfinite(low) else []
            rows += [[sign * high, sign]] if np.isfinite(high) else []
            A = np.array(rows)
            within = {"type": "ineq", "fun": lambda p, A=A: A @ p, "jac": lambda p, A=A: A}
            best = minimize(value, np.zeros(2), jac=gradient, method="SLSQP", constraints=within)
            if (A @ best.x > -1e-8).all():
                found.append((gap, best.fun))
    return np.array(found)


@pytest.mark.slow
def test_demographic_parity_against_the_global_optimum(make_problem):
    """The exact problem has many local optima, found by enumeration; a local method may end in another one."""
    excesses = []
    for seed in range(3):
        x, y, codes, data = one_feature(seed)
        cuts = optimum_by_cuts(x, y, codes, alpha=0.01)
        for kappa in (0.1, 0.25):
            constraint = DemographicParity(kappa).unchecked(data)
            result = solve(make_problem(data, constraint, loss=Logistic(), alpha=0.01))
            if result.status == Status.INFEASIBLE:
                excesses.append(np.inf)
                continue
            bound = cuts[cuts[:, 0] <= kappa + constraint.granularity + 1e-9, 1].min()
            best = cuts[cuts[:, 0] <= kappa + 1e-9, 1].min()
            assert result.objective >= bound - 1e-6
            excesses.append(result.objective / best - 1)
    assert np.median(excesses) < 0.01
    assert np.mean(np.array(excesses) < 0.15) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=str)
def test_never_worse_than_a_fair_model_that_is_known(make_problem, loss):
    """The rows of the groups come in pairs that differ by a constant and by the group, so that the best model of
    what the pair has in common has a gap of zero."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(150, 2))
    X = np.vstack([np.column_stack([common + 0.7 * g, np.full(150, float(g))]) for g in (0, 1)])
    codes = np.repeat([0, 1], 150)
    y = np.where(np.tile(common[:, 0], 2) + 0.8 * codes + rng.normal(size=300) > 0.4, 1.0, -1.0)
    data = FairData.from_arrays(X, y, codes, ("a", "b"))
    problem = make_problem(data, StatisticalParity(0.02).unchecked(data), loss=loss, alpha=0.0)

    view = problem.without_constraints().view(FullBatch)
    # z = B u: the coefficient of the group takes back what the constant 0.7 of the pairs adds
    B = np.array([[1.0, 0, 0], [0, 1, 0], [-0.7, -0.7, 0], [0, 0, 1]])
    fair = minimize(
        lambda u: (view.at(B @ u).objective, view.at(B @ u).gradient(1.0, np.empty(0)) @ B), np.zeros(3), jac=True
    )
    scores = problem.scores(B @ fair.x)
    assert problem.constraints[0].metric(np.round(scores, 9)) == 0.0
    result = solve(problem)
    assert result.status != Status.INFEASIBLE
    assert result.objective <= fair.fun * 1.005
    assert result.objective > solve(problem.without_constraints()).objective * 1.005


# --- warm starts


def errors_of(seed, kappa):
    """Errors of a linear model for each of two groups, which a search over their thresholds minimises."""
    rng = np.random.default_rng(seed)
    codes = np.arange(224) % 2
    X = rng.normal(size=(224, 3)) + rng.normal(size=(2, 3))[codes]
    data = FairData.from_arrays(X, np.where(X[:, 0] + 2 * rng.normal(size=224) > 0, 1.0, -1.0), codes, ("a", "b"))
    bound = DemographicParity(kappa).bind(data)
    return Problem(ZeroOne(0.5).bind(data), (bound,), data, model=LinearModel(3, 2, alpha=1e-3))


@pytest.mark.parametrize("seed", range(3))
def test_a_search_keeps_the_solution_for_a_tighter_bound_if_it_is_better(seed):
    tight = solve(errors_of(seed, 0.05))
    loose = solve(errors_of(seed, 0.1), start=tight.start)
    assert tight.status == loose.status == Status.OPTIMAL
    assert loose.objective <= tight.objective
    assert loose.multipliers is None


@pytest.mark.parametrize("notion", [StatisticalParity, DemographicParity])
def test_one_iteration_keeps_the_solution_for_a_tighter_bound(parity_problem, notion):
    tight = solve(parity_problem(notion, 0.05))
    for kappa in (0.06, 0.2):
        loose = solve(parity_problem(notion, kappa), start=tight.start, max_iter=1, inner_iter=1)
        assert not loose.status.is_infeasible
        assert loose.objective <= tight.objective


# --- bounds out of reach


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_run_whose_iterates_are_worse_than_constants_is_given_up_soon(loss):
    """With one feature, on which groups differ, only constant scores have no gap, whatever the multipliers are."""
    generator = np.random.default_rng(0)
    groups = np.arange(480) % 4
    X = (generator.normal(size=480) + 2 * groups)[:, None]
    y = X[:, 0] + 2 * generator.normal(size=480) > 3
    model = PartialParityClassifier(0.01, constraint="group_auc", interval=(0, 0.5), objective=loss)
    with pytest.warns(ConvergenceWarning, match="no iterate kept the bound"):
        model.fit(X, y, sensitive_features=groups)
    assert np.ptp(model.decision_function(X)) == 0
    assert model.constraint_values_ == {"group_auc": 0.0}
    assert model.n_iter_ < 15


@pytest.mark.slow
def test_a_rate_beyond_the_interval_comes_down_rather_than_the_others_up():
    """Rates of .04 and .3, the interval (0, .25): the rank gap is stricter, so its optimum cannot be the better one.

    Where the larger rate lies, eq. 21 has no slope.
    """
    rng = np.random.default_rng(0)
    group = np.where(rng.random(3000) < 0.1, "b", "a")
    X = rng.normal(size=(3000, 4))
    chance = X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.logistic(size=3000)
    y = np.where(chance > np.where(group == "b", 0.5, 2.4), 1, -1)
    ends = {}
    for normalize, kappa in ((True, 0.05), (False, 0.0125)):
        model = PartialParityClassifier(
            kappa, interval=(0.0, 0.25), constraint="demographic_parity", normalize=normalize, group_interactions=True
        )
        ends[normalize] = model.fit(X, y, sensitive_features=group)
    assert ends[True].constraint_values_["demographic_parity"] <= 0.05 + ends[True].granularity_["demographic_parity"]
    assert ends[True].objective_ <= ends[False].objective_ * (1 + 1e-4)


@pytest.mark.parametrize("value", [1e9, np.nan])
def test_a_run_that_diverges_keeps_the_best_model_so_far(parity_problem, monkeypatch, value):
    problem, minimise, n_calls = parity_problem(DemographicParity, 0.1), outer_iterations.minimise, 0

    def minimise_or_diverge(view, function, start, *args, **options):
        nonlocal n_calls
        n_calls += 1
        return minimise(view, function, start, *args, **options) if n_calls < 4 else (np.full_like(start, value), False)

    before = solve(problem, max_iter=3)
    monkeypatch.setattr(outer_iterations, "minimise", minimise_or_diverge)
    result = solve(problem)
    assert "training stopped in iteration 4: it met a loss that is" in result.message
    assert np.isfinite(result.model_state).all()
    largest = 0.1 + problem.constraints[0].granularity
    feasible = [record["objective"] for record in before.history if record["demographic_parity"] <= largest]
    assert result.objective == pytest.approx(min(feasible), rel=1e-12)


def test_a_run_on_fewer_rows_that_diverges_is_followed_by_one_on_all_rows(parity_problem, monkeypatch):
    problem, sizes = parity_problem(DemographicParity, 0.1, counts=(90, 120)), []
    step = outer_iterations.OuterIterations.step

    def diverges_on_fewer_rows(self, source, given):
        sizes.append(given.data.n_samples)
        if sizes[-1] < problem.data.n_samples:
            raise FloatingPointError
        step(self, source, given)

    monkeypatch.setattr(outer_iterations.OuterIterations, "step", diverges_on_fewer_rows)
    result = solve(problem, coarse_rows=60)
    assert sizes[0] == 60
    assert (result.status, result.message) == ("optimal", "")
    assert result.objective == pytest.approx(solve(problem).objective, rel=0.01)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.2, 0.4])
def test_an_interruption_anywhere_keeps_what_was_found(parity_problem, monkeypatch, share):
    """Also before the first iterate is assessed, in the minimisation of the objective alone."""
    problem, forward, n_calls = parity_problem(DemographicParity, 0.1), LinearModel.forward, []

    def counted(self, *arguments):
        n_calls.append(self)
        if len(n_calls) == last:
            raise KeyboardInterrupt
        return forward(self, *arguments)

    monkeypatch.setattr(LinearModel, "forward", counted)
    last = np.inf
    whole = solve(problem)
    last = 2 + int(share * len(n_calls))  # the first call is made before the run begins
    n_calls.clear()
    result = solve(problem, keep_on_interrupt=True)
    assert "it was interrupted, and the best model so far is kept" in result.message
    assert result.stopped_by == "an interruption"
    assert np.isfinite(result.objective)
    assert result.status.is_infeasible == (not problem.holds(problem.scores(result.model_state)))
    assert len(result.history) < len(whole.history)


@pytest.mark.parametrize("seed", [5, 7])
def test_a_few_categories_keep_a_bound_on_aucs_without_equal_scores(seed):
    # Only twelve scores can differ, so that small moves leave all AUCs as they are.
    rng, n = np.random.default_rng(seed), 1500
    groups = rng.integers(0, 3, n)
    first, second, third = rng.random(n) < np.array([0.3, 0.5, 0.7])[groups], rng.random(n) < 0.5, rng.integers(0, 3, n)
    X = np.column_stack([first, second, third == 1, third == 2]).astype(float)
    log_odds = 1.2 * first + 0.7 * second + 0.5 * (third == 1) - 0.9 * (third == 2) - 0.8
    y = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    model = AUCFairClassifier(0.03, random_state=0).fit(X, y, sensitive_features=groups)
    assert model.constraint_values_["inter_group"] <= 0.03 + 1e-4
    assert model.objective_ < 0.67  # equal scores have .693
