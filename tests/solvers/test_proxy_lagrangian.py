"""The proxy-Lagrangian method: its steps by hand, known optima, the exact metrics of what it returns, its options."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from fairconstrained.constraints import DemographicParity, EqualizedOdds, GroupAUC, PairwiseParity, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.domains import L2Ball
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic, PairwiseAUC
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Status, make_solver
from fairconstrained.solvers.proxy_lagrangian import _PLAYERS, _Seen
from fairconstrained.views import FullBatch

each_regret = pytest.mark.parametrize("regret", ["external", "swap"])


def run(problem, start=None, seed=0, callback=None, **options):
    solver = make_solver("proxy_lagrangian", options, problem)
    return solver.solve(problem, start, np.random.default_rng(seed), callback)


# --- the steps


class ByHand:
    """Demographic parity of two groups with one feature: logistic loss, logistic surrogate, in plain NumPy."""

    KAPPA, WIDTH, ALPHA, STEP, MULTIPLIER_STEP, RADIUS = 0.1, 0.5, 0.3, 0.7, 0.8, 1.1

    def __init__(self):
        rng = np.random.default_rng(0)
        self.group = rng.permutation(np.repeat([0, 1], [14, 17]))
        self.x = 5 + 3 * (rng.normal(size=31) + 0.9 * self.group)
        self.y = np.where(self.x + 3 * rng.normal(size=31) > 6, 1.0, -1.0)
        self.mean, self.sd = self.x.mean(), self.x.std()
        self.standard = (self.x - self.mean) / self.sd

    def problem(self):
        data = FairData.from_arrays(self.x[:, None], self.y, self.group, ("a", "b"))
        constraint = DemographicParity(self.KAPPA, surrogate="logistic", surrogate_width=self.WIDTH).unchecked(data)
        return Problem(Logistic().bind(data), (constraint,), data, model=LinearModel(1, alpha=self.ALPHA))

    def start(self):
        """The parameters for ``u = (0.8, 0.1)``, coefficients of the standardised feature."""
        return Start(np.array([0.8 / self.sd, 0.1 - 0.8 * self.mean / self.sd]))

    def see(self, u):
        """Objective, its gradient, both constraint values with true indicators, and the surrogates' gradients."""
        design = np.column_stack([self.standard, np.ones(31)])
        s = design @ u
        loss = np.log1p(np.exp(-self.y * s)).mean() + self.ALPHA / 2 * (u[0] / self.sd) ** 2
        slope = design.T @ (-self.y * expit(-self.y * s)) / 31 + [self.ALPHA * u[0] / self.sd**2, 0.0]
        first, second = self.group == 0, self.group == 1
        gap = (s[first] > 0).mean() - (s[second] > 0).mean()
        bump = design * (expit(s / self.WIDTH) * expit(-s / self.WIDTH) / self.WIDTH)[:, None]
        rates = bump[first].mean(axis=0) - bump[second].mean(axis=0)
        return loss, slope, np.array([gap, -gap]) - self.KAPPA, np.array([rates, -rates])

    def external(self, n_iter):
        """Objective, gap and largest multiplier of every iterate."""
        u, multipliers, records = np.array([0.8, 0.1]), np.zeros(2), []
        for t in range(n_iter + 1):
            loss, slope, true, surrogate = self.see(u)
            records.append((loss, true.max() + self.KAPPA, multipliers.max()))
            u = u - self.STEP / np.sqrt(t + 1) * (slope + multipliers @ surrogate)
            multipliers = (multipliers + self.MULTIPLIER_STEP / np.sqrt(t + 1) * true).clip(min=0)
            if multipliers.sum() > self.RADIUS:  # onto the simplex; of two numbers, one may become zero
                excess = (multipliers.sum() - self.RADIUS) / 2
                multipliers = (
                    multipliers - excess if multipliers.min() > excess else self.RADIUS * (multipliers > excess)
                )
        return records

    def swap(self, n_iter):
        u, matrix, records = np.array([0.8, 0.1]), np.full((3, 3), 1 / 3), []
        for t in range(n_iter + 1):
            values, vectors = np.linalg.eig(matrix)
            p = vectors[:, np.abs(values - 1).argmin()].real
            p = p / p.sum()
            loss, slope, true, surrogate = self.see(u)
            records.append((loss, true.max() + self.KAPPA, self.RADIUS * p[1:].max() / p[0]))
            u = u - self.STEP / np.sqrt(t + 1) * (p[0] * slope + self.RADIUS * p[1:] @ surrogate)
            gains = np.append(0.0, self.RADIUS * true)
            matrix = matrix * np.exp(self.MULTIPLIER_STEP / np.sqrt(t + 1) * np.outer(gains, p))
            matrix = matrix / matrix.sum(axis=0)
        return records


@each_regret
def test_the_steps_by_hand(regret):
    by_hand = ByHand()
    expected = getattr(by_hand, regret)(12)
    options = {"step": by_hand.STEP, "multiplier_step": by_hand.MULTIPLIER_STEP, "radius": by_hand.RADIUS}
    result = run(by_hand.problem(), by_hand.start(), regret=regret, max_iter=12, **options)
    found = [(r["objective"], r["demographic_parity"], r["largest_multiplier"]) for r in result.history]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    multipliers = [largest for _, _, largest in expected]
    assert len(set(multipliers)) > 5  # the player moves
    if regret == "external":
        assert max(multipliers) == pytest.approx(by_hand.RADIUS)  # and meets the end of its set


def test_the_radius_is_that_of_the_sum():
    player = _PLAYERS["external"](3, 2.0)
    player.ascend(np.array([1.0, 3.0, -5.0]), 1.0)
    np.testing.assert_allclose(player.weights, [1.0, 0.0, 2.0, 0.0])
    player.ascend(np.array([0.5, -1.0, 0.2]), 1.0)
    np.testing.assert_allclose(player.weights, [1.0, 0.5, 1.0, 0.2])


@pytest.mark.slow
def test_the_matrix_recovers():
    """After a long time in which one component did not matter, its weight grows again once it is violated."""
    player = _PLAYERS["swap"](2, 1.0)
    for _ in range(1000):
        player.ascend(np.array([-1.0, -1.0]), 5.0)
    assert player.weights[0] > 0.99
    for _ in range(2000):
        player.ascend(np.array([1.0, -1.0]), 5.0)
    assert player.weights[1] > 0.9
    assert player.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "constraint",
    [
        DemographicParity(0.05),
        DemographicParity(0.05, interval=(0.2, 0.7)),
        EqualizedOdds(0.05),
        GroupAUC(0.05),
        GroupAUC(0.05, interval=(0.0, 0.5)),
    ],
    ids=repr,
)
def test_the_constraint_player_sees_the_metric(make_data, make_problem, constraint):
    """The largest value is the metric minus kappa, however wide the surrogate is."""
    data = make_data(counts=(90, 120), shift=0.8)
    bound = constraint.unchecked(data)
    problem = make_problem(data, bound)
    rng = np.random.default_rng(0)
    for blur in (0.05, 1.0):
        params = rng.normal(size=problem.n_params)
        seen = _Seen(problem, params, blur)
        assert seen.values.shape == (len(bound.component_names),)
        assert seen.values.max() == pytest.approx(bound.scale * bound.exact(problem.scores(params)))
        assert np.abs(seen.gradient(np.append(0.0, np.eye(seen.values.size)[0]))).max() > 0


def test_components_that_refinement_adds_have_no_multiplier(make_data, make_problem):
    data = make_data(counts=(90, 120), shift=0.8)
    constraints = StatisticalParity(0.05, n_levels=2).unchecked(data), GroupAUC(0.05).unchecked(data)
    problem = make_problem(data, *constraints)
    params = np.random.default_rng(0).normal(size=problem.n_params)
    refined = constraints[0].refined(problem.scores(params), blur=0.1, margin=0.0)
    assert len(refined.component_names) > len(constraints[0].component_names)
    seen = _Seen(problem, params, 0.1)
    assert seen.values.size == len(problem.component_names)
    alone = _Seen(replace(problem, constraints=constraints[1:]), params, 0.1)
    np.testing.assert_allclose(seen.values[-2:], alone.values)
    weights = np.zeros(1 + seen.values.size)
    weights[-2:] = 0.3, 0.7
    np.testing.assert_allclose(seen.gradient(weights), alone.gradient(np.array([0.0, 0.3, 0.7])))


# --- known optima


def test_known_problem(known):
    result = run(known.problem, max_iter=1000, step=0.5, multiplier_step=1.0)
    assert result.status == Status.COMPLETED
    assert result.objective == pytest.approx(known.objective, abs=5e-4)
    np.testing.assert_allclose(result.model_state, known.params, atol=0.02)
    assert sum(result.multipliers.values()) == pytest.approx(known.multiplier, rel=0.05)


def test_known_problem_by_swap_regret(known):
    result = run(known.problem, max_iter=400, step=2.0, multiplier_step=1.0, radius=2.0, regret="swap")
    assert result.status == Status.COMPLETED
    assert result.objective == pytest.approx(known.objective, rel=0.02)


@pytest.fixture(scope="module")
def quadratic(make_data, make_problem):
    """``quadratic(scales of the features)``: a convex problem whose constraint bounds its surrogate."""
    data = make_data(counts=(40, 60), shift=0.8)

    def make(*scales):
        scaled = replace(data, X=data.X * np.array(scales))
        return make_problem(scaled, PairwiseParity(0.3).unchecked(scaled), alpha=1e-4)

    return make


def _slsqp(problem, radius=None):
    """Least objective within the constraints, and within a ball."""
    view, coordinates = problem.view(FullBatch), problem.coordinates
    m = len(problem.component_names)
    constraints = (
        []
        if m == 0
        else [
            {
                "type": "ineq",
                "fun": lambda u: -view.at(coordinates.to_params(u)).constraints,
                "jac": lambda u: -np.stack([gradient(u, 0.0, unit) for unit in np.eye(m)]),
            }
        ]
    )
    if radius is not None:
        constraints.append({"type": "ineq", "fun": lambda u: radius**2 - (coordinates.to_params(u) ** 2).sum()})

    def gradient(u, objective, multipliers):
        return coordinates.pull(view.at(coordinates.to_params(u)).gradient(objective, multipliers))

    found = minimize(
        lambda u: (view.at(coordinates.to_params(u)).objective, gradient(u, 1.0, np.zeros(m))),
        np.zeros(problem.n_params),
        jac=True,
        method="SLSQP",
        constraints=constraints,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success
    return found.fun


@pytest.mark.slow
def test_a_quadratic_constraint_and_unscaled_features(quadratic):
    problem = quadratic(1.0, 30.0, 0.1)
    least = _slsqp(problem)
    result = run(problem, max_iter=400)
    (constraint,) = problem.constraints
    assert constraint.exact(problem.scores(result.model_state)) <= constraint.granularity
    assert result.objective == pytest.approx(least, rel=5e-3)
    assert _slsqp(problem.without_constraints()) < 0.95 * least  # the constraint binds


@pytest.mark.slow
def test_in_a_domain(quadratic):
    """Also where the projection is not orthogonal in the well-scaled coordinates."""
    problem = quadratic(1.0, 2.0, 0.2)
    least = _slsqp(problem, radius=0.2)
    assert least > 1.02 * _slsqp(problem)
    result = run(replace(problem, domain=L2Ball(0.2)), max_iter=300, step=0.5)
    assert np.linalg.norm(result.model_state) <= 0.2 + 1e-12
    assert result.objective == pytest.approx(least, rel=1e-3)


# --- the exact metric


@pytest.fixture(scope="module")
def biased():
    """``biased(constraint, objective)``: a problem on 800 generated rows with unscaled features."""
    X, y, groups = make_biased_classification(800, 5, random_state=0)
    data = FairData.from_arrays(X * [1.0, 20.0, 0.1, 1.0, 5.0] + 3, np.where(y > 0, 1.0, -1.0), groups, ("a", "b"))

    def make(constraint, objective=None):
        terms = (constraint.unchecked(data),) if constraint else ()
        return Problem((objective or Logistic()).bind(data), terms, data, model=LinearModel(5, alpha=1e-3))

    return make


@pytest.mark.parametrize(
    ("constraint", "objective"),
    [
        pytest.param(GroupAUC(0.05), Logistic(), marks=pytest.mark.slow),
        pytest.param(GroupAUC(0.05), PairwiseAUC(), marks=pytest.mark.slow),
        (DemographicParity(0.05), Logistic()),
        pytest.param(StatisticalParity(0.1, n_levels=30), Logistic(), marks=pytest.mark.slow),
    ],
    ids=["GroupAUC", "GroupAUC, AUC", "DemographicParity", "StatisticalParity"],
)
def test_the_metric_is_bounded_at_little_cost(biased, constraint, objective):
    problem = biased(constraint, objective)
    (bound,) = problem.constraints
    result = run(problem, max_iter=200)
    assert result.status == Status.COMPLETED
    assert bound.exact(problem.scores(result.model_state)) <= bound.granularity
    reference = make_solver("augmented_lagrangian", {}, problem).solve(problem, None, np.random.default_rng(0))
    free = run(biased(None, objective), max_iter=50)
    assert reference.objective > 1.02 * free.objective  # there is something to pay
    assert result.objective <= 1.06 * reference.objective  # which ends with a random search


@pytest.mark.slow
@each_regret
def test_mini_batches(biased, regret):
    problem = biased(GroupAUC(0.05))
    options = {"max_iter": 80, "batch_size": 100, "n_records": 20, "regret": regret}
    result = run(problem, **options)
    assert result.status == Status.COMPLETED
    assert len(result.history) == 21
    # 80 batches of an eighth, 21 passes for the records, the report, and the start where its loss was asked for
    assert result.n_evaluations in (80 / 8 + 21 + 1, 80 / 8 + 21 + 2)
    assert result.objective < 0.75 * result.history[0]["objective"]
    again, other = run(problem, **options), run(problem, seed=1, **options)
    np.testing.assert_array_equal(again.model_state, result.model_state)
    assert not np.array_equal(other.model_state, result.model_state)


@pytest.mark.slow
def test_the_result_is_the_best_feasible_record(biased):
    problem = biased(DemographicParity(0.05))
    (bound,) = problem.constraints
    result = run(problem, max_iter=200)
    feasible = [r["objective"] for r in result.history if r["demographic_parity"] <= 0.05 + bound.granularity]
    assert 1 < len(feasible) < len(result.history)
    assert result.objective == pytest.approx(min(feasible))


def test_without_a_feasible_record_the_result_is_the_nearest_one(biased):
    problem = biased(DemographicParity(0.01))
    (bound,) = problem.constraints
    start = make_solver("augmented_lagrangian", {}, problem.without_constraints()).solve(
        problem.without_constraints(), None, np.random.default_rng(0)
    )
    result = run(problem, Start(start.model_state), max_iter=8)
    gaps = [r["demographic_parity"] for r in result.history]
    assert min(gaps) > 0.01 + bound.granularity
    assert result.status == Status.INFEASIBLE
    assert result.constraint_values["demographic_parity"] == min(gaps) < gaps[0]


def test_records_are_spread_over_the_run(biased):
    problem = biased(DemographicParity(0.05))
    result = run(problem, max_iter=20, n_records=5)
    assert [r["n_iter"] for r in result.history] == [0, 4, 8, 12, 16, 20]
    assert result.n_evaluations == 22


# --- readable errors


def test_mini_batches_need_their_view(biased):
    problem = biased(GroupAUC(0.05, interval=(0.0, 0.5)))
    with pytest.raises(
        IncompatibleProblem,
        match=r"'proxy_lagrangian\(batch_size=50\)' needs the view Stochastic, which 'group_auc' does not offer.*"
        r"Solvers that work with this problem: .*'proxy_lagrangian'",
    ):
        run(problem, batch_size=50)


def test_steps_that_are_too_long_end_the_run_and_say_what_to_do(known):
    result = run(known.problem, step=1e12, max_iter=50)
    assert result.message.startswith("training stopped in iteration 1: it met a loss that is not finite")
    assert result.message.endswith("Standardise X or lower step.")
    np.testing.assert_array_equal(result.model_state, 0.0)
