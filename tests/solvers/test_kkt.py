"""The Karush-Kuhn-Tucker conditions of Definitions 6.1 and 6.2, against SLSQP and restatements in NumPy."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fairconstrained import PartialParityClassifier, PartialParityRegressor, RateParityClassifier
from fairconstrained.constraints import DemographicParity, RateGap, StatisticalParity
from fairconstrained.domains import L2Ball
from fairconstrained.points import objective_gradient
from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers import kkt_conditions
from fairconstrained.solvers._kkt import _least


class Linearised:
    """A point with given gradients."""

    def __init__(self, gradients):
        self._gradients = gradients
        self.constraints = np.zeros(len(gradients) - 1)

    def gradient(self, objective, multipliers):
        return np.append(objective, multipliers) @ self._gradients


def eps_by_bisection(gradients, values):
    """The least eps: with multipliers of at most eps / |value|, L-BFGS-B finds a residual of at most eps, or not."""

    def residual(eps):
        def half_square(multipliers):
            combination = gradients[0] + multipliers @ gradients[1:]
            return combination @ combination / 2, gradients[1:] @ combination

        bounds = [(0.0, eps / abs(value) if value else None) for value in values]
        found = minimize(
            half_square, np.zeros(len(values)), jac=True, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9}
        )
        return np.sqrt(2 * found.fun)

    low, high = 0.0, np.linalg.norm(gradients[0])
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if residual(middle) > middle else (low, middle)
    return max(high, values.max(), 0.0)


@pytest.mark.parametrize(("n", "m"), [(4, 1), (6, 3), (3, 5)])
def test_the_least_epsilon_by_another_method(n, m):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        gradients, values = rng.normal(size=(m + 1, n)), rng.normal(size=m) - 0.5
        values[0] = 0.0
        gradients[0] -= 2 * gradients[1]  # so that the first constraint is worth a multiplier
        found = _least(Linearised(gradients), values)
        assert found.eps == pytest.approx(eps_by_bisection(gradients, values), abs=1e-5)
        assert (found.multipliers >= 0).all()
        assert found.residual == pytest.approx(np.linalg.norm(gradients[0] + found.multipliers @ gradients[1:]))
        assert found.complementarity == pytest.approx(np.abs(found.multipliers * values).max())
        assert found.eps == pytest.approx(max(found.residual, found.complementarity, values.max(), 0.0))


# --- a problem whose solution is known


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class ByHand:
    """Logistic regression with a bound on the difference of the groups' means of a logistic function."""

    kappa, alpha = 0.03, 0.05

    def __init__(self, data):
        self.X, self.y, self.codes = np.column_stack([data.X, np.ones(data.n_samples)]), data.y.numpy(), data.codes

    def objective(self, w):
        return np.mean(np.log1p(np.exp(-self.y * (self.X @ w)))) + self.alpha / 2 * w[:-1] @ w[:-1]

    def slope(self, w):
        return -np.mean((self.y * sigmoid(-self.y * (self.X @ w)))[:, None] * self.X, 0) + self.alpha * np.append(
            w[:-1], 0
        )

    def gap(self, w):
        rates = sigmoid(self.X @ w)
        return rates[self.codes == 0].mean() - rates[self.codes == 1].mean()

    def gap_slope(self, w):
        rates = sigmoid(self.X @ w)
        slopes = (rates * (1 - rates))[:, None] * self.X
        return slopes[self.codes == 0].mean(0) - slopes[self.codes == 1].mean(0)

    def solution(self):
        sides = [
            {
                "type": "ineq",
                "fun": lambda w, s=s: self.kappa - s * self.gap(w),
                "jac": lambda w, s=s: -s * self.gap_slope(w),
            }
            for s in (1, -1)
        ]
        found = minimize(
            self.objective,
            np.zeros(self.X.shape[1]),
            jac=self.slope,
            method="SLSQP",
            constraints=sides,
            options={"ftol": 1e-15, "maxiter": 500},
        )
        assert found.success
        return found.x


@pytest.fixture(scope="module")
def data(make_data):
    return make_data(counts=(60, 80), shift=1.0)


@pytest.fixture(scope="module")
def by_hand(data):
    return ByHand(data)


def problem_of(make_problem, data, constraint):
    return make_problem(data, constraint.unchecked(data), alpha=ByHand.alpha)


CONSTRAINTS = {
    "difference of convex functions": DemographicParity(ByHand.kappa, surrogate="logistic", surrogate_width=1.0),
    "weakly convex": RateGap(ByHand.kappa, rate="sigmoid"),
}


@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS.keys())
def test_a_solution_satisfies_the_conditions_and_others_do_not(make_problem, data, by_hand, constraint):
    problem, solution = problem_of(make_problem, data, constraint), by_hand.solution()
    assert abs(by_hand.gap(solution)) == pytest.approx(ByHand.kappa, abs=1e-7)  # the bound is active
    found = kkt_conditions(problem, solution)
    assert found.nearly_eps <= found.eps <= 1e-5
    multiplier = max(found.multipliers.values())
    side = np.sign(by_hand.gap(solution))
    assert multiplier * side * by_hand.gap_slope(solution) == pytest.approx(-by_hand.slope(solution), abs=1e-5)
    assert multiplier > 0.01
    free = minimize(by_hand.objective, solution, jac=by_hand.slope, tol=1e-10).x
    moved = solution + 0.3 * np.array([1.0, -1.0, 1.0, 0.0])
    for other in (free, moved):
        far = kkt_conditions(problem, other)
        assert far.eps > 0.01
        assert 1e-3 < far.nearly_eps <= far.eps


def test_what_the_least_epsilon_is_made_of(make_problem, data, by_hand):
    """At a random point, with the multipliers that are returned."""
    problem = problem_of(make_problem, data, CONSTRAINTS["weakly convex"])
    w = np.array([0.5, 0.1, -0.2, 0.1])
    found = kkt_conditions(problem, w)
    first, second = found.multipliers.values()
    residual = by_hand.slope(w) + (first - second) * by_hand.gap_slope(w)
    values = np.array([by_hand.gap(w), -by_hand.gap(w)]) - ByHand.kappa
    # which of the two is "a above b" does not matter to the least epsilon
    flipped = by_hand.slope(w) - (first - second) * by_hand.gap_slope(w)
    assert found.residual == pytest.approx(min(np.linalg.norm(residual), np.linalg.norm(flipped)), rel=1e-9)
    assert found.violation == pytest.approx(max(values.max(), 0.0))
    gradients = np.array([by_hand.slope(w), by_hand.gap_slope(w), -by_hand.gap_slope(w)])
    assert found.eps == pytest.approx(eps_by_bisection(gradients, values), abs=1e-6)


@pytest.mark.parametrize("proximity", [0.5, 5.0])
def test_a_nearly_kkt_point_by_slsqp(make_problem, data, by_hand, proximity):
    """Definition 6.2 restated: the solution of the proximal subproblem, and the conditions there."""
    problem = problem_of(make_problem, data, CONSTRAINTS["weakly convex"])
    w = by_hand.solution() + np.array([0.05, -0.03, 0.02, 0.0])
    level = max(abs(by_hand.gap(w)) - ByHand.kappa, 0.0)

    def room(y, sign):
        return level + ByHand.kappa - sign * by_hand.gap(y) - proximity / 2 * (y - w) @ (y - w)

    nearest = minimize(
        lambda y: by_hand.objective(y) + proximity / 2 * (y - w) @ (y - w),
        w,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": room, "args": (sign,)} for sign in (1, -1)],
        options={"ftol": 1e-15, "maxiter": 500},
    ).x
    away = proximity * (nearest - w)
    gradients = np.array([by_hand.slope(nearest), by_hand.gap_slope(nearest), -by_hand.gap_slope(nearest)]) + away
    values = np.array([by_hand.gap(w), -by_hand.gap(w)]) - ByHand.kappa
    expected = max(eps_by_bisection(gradients, values), np.linalg.norm(nearest - w))
    found = kkt_conditions(problem, w, proximity=proximity)
    assert found.nearly_eps == pytest.approx(min(expected, found.eps), abs=1e-5)


@pytest.mark.slow
def test_auxiliary_variables_are_part_of_the_point(make_problem, data):
    problem = make_problem(data, StatisticalParity(0.1, n_levels=2).unchecked(data))
    w = np.array([0.4, -0.2, 0.1, 0.0])
    aux = problem.start(w)[problem.n_params :]
    assert kkt_conditions(problem, w, aux=aux) == kkt_conditions(problem, w)
    assert kkt_conditions(problem, w, aux=aux + 0.5).violation > kkt_conditions(problem, w).violation + 0.05


def test_without_constraints_there_is_nothing_but_the_gradient(make_problem, data):
    problem, w = make_problem(data), np.array([0.4, -0.2, 0.1, 0.0])
    slope = objective_gradient(FullBatchView(problem).at(w))
    found = kkt_conditions(problem, w)
    assert found.eps == found.residual == pytest.approx(np.linalg.norm(slope))
    assert (found.violation, found.complementarity, found.multipliers) == (0.0, 0.0, {})


def test_errors(make_problem, data):
    problem = make_problem(data, DemographicParity(0.1).unchecked(data))
    with pytest.raises(ValueError, match="proximity must be a finite number above 0; got 0"):
        kkt_conditions(problem, np.zeros(problem.n_params), proximity=0.0)
    inside = Problem(problem.objective, problem.constraints, data, model=problem.model, domain=L2Ball(1.0))
    with pytest.raises(ValueError, match="without a domain"):
        kkt_conditions(inside, np.zeros(problem.n_params))


# --- estimators


def fitted(estimator, data, y=None):
    y = data.y.numpy() if y is None else y
    return estimator.fit(data.X, y, sensitive_features=data.codes)


ESTIMATORS = {
    "partial parity": PartialParityClassifier(0.1, constraint="demographic_parity"),
    "ranks in the group": PartialParityClassifier(0.1, constraint="equal_opportunity", ranks="group"),
    "regressor": PartialParityRegressor(0.1),
    "rates": RateParityClassifier(0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_estimators_tell_on_request_only(data, estimator):
    y = data.X @ [1.0, 0.5, 0.0] if isinstance(estimator, PartialParityRegressor) else None
    plain = fitted(estimator, data, y)
    assert not hasattr(plain, "stationarity_")
    assert not hasattr(plain, "stationarity_report_")
    coef = plain.coef_.copy()
    told = fitted(estimator.set_params(compute_stationarity=True), data, y)
    np.testing.assert_array_equal(told.coef_, coef)
    report = told.stationarity_report_
    assert told.stationarity_ == report["nearly_eps"] <= report["eps"]
    parts = [report[name] for name in ("residual", "violation", "complementarity")]
    assert report["eps"] == pytest.approx(max(parts), abs=1e-9)
    assert not hasattr(fitted(estimator.set_params(compute_stationarity=False), data, y), "stationarity_")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:kappa=0.02 bounds demographic_parity of probabilities")
def test_smooth_rates_end_at_a_kkt_point(data):
    """The default solves the very problem there, and its multipliers are those of the report."""
    model = RateParityClassifier(0.02, rate="sigmoid", compute_stationarity=True, alpha=0.05)
    fitted(model, data)
    assert model.stationarity_report_["eps"] < 1e-3
    known = {name: value for name, value in model.stationarity_report_["multipliers"].items() if value > 1e-3}
    assert known == pytest.approx(model.multipliers_, rel=0.02)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:demographic_parity is .* on the training rows and exceeds kappa")
def test_the_papers_solver_comes_nearer_than_the_default(data):
    """Both are measured on the paper's problem, which only the first one solves."""
    options = {"constraint": "demographic_parity", "surrogate": "logistic", "compute_stationarity": True, "alpha": 0.05}
    theirs = PartialParityClassifier(0.03, solver="switching_subgradient", max_iter=3000, **options)
    ours = PartialParityClassifier(0.03, **options)
    assert fitted(theirs, data).stationarity_ < 0.01 < fitted(ours, data).stationarity_
