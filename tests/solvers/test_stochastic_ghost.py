"""The ghost method: its subproblem against a QP library, its estimate without bias, its steps, a known optimum."""

from dataclasses import replace
from types import SimpleNamespace

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, nnls

from fairconstrained.constraints import LossParity
from fairconstrained.data import FairData
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.problem import FullBatchView
from fairconstrained.solvers import StochasticGhost
from fairconstrained.solvers.published.ghost_direction import ghost_direction, least_violation
from fairconstrained.solvers.published.stochastic_ghost import _Pair
from fairconstrained.solvers.source import Source
from fairconstrained.views import FullBatch, Stochastic

# --- the subproblem

KINDS = ["plain", "pair", "equal rows", "zero row"]


def subproblem(rng, m, n, kind="plain"):
    gradient, values, jacobian = rng.normal(size=n), rng.normal(size=m) / 2, rng.normal(size=(m, n))
    if kind == "pair" and m > 1:  # both sides of one bound
        jacobian[1], values[1] = -jacobian[0], -values[0] - 0.1
    if kind == "equal rows" and m > 1:
        jacobian[1] = jacobian[0]
    if kind == "zero row":
        jacobian[-1] = 0
    scale = 10.0 ** rng.uniform(-1, 1, 2)
    return gradient * scale[0], values, jacobian * scale[1]


def best_by_highs(values, jacobian, rho):
    m, n = jacobian.shape
    cost, table = np.append(np.zeros(n), 1.0), np.hstack([jacobian, -np.ones((m, 1))])
    return linprog(cost, table, -values, bounds=[(-rho, rho)] * n + [(0, None)], method="highs").fun


def direction_by_clarabel(gradient, values, jacobian, tau, beta, kappa):
    m, n = jacobian.shape
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(tau * sp.eye(n)),
        gradient,
        sp.csc_matrix(sp.vstack([jacobian, sp.eye(n), -sp.eye(n)])),
        np.concatenate([kappa - values, np.full(2 * n, beta)]),
        [clarabel.NonnegativeConeT(m + 2 * n)],
        settings,
    ).solve()
    return np.array(solution.x) if solution.status == clarabel.SolverStatus.Solved else None


def assert_optimal(d, gradient, values, jacobian, tau, beta, kappa):
    """The KKT conditions: no slope is left when multipliers of what is active, of the box too, are taken away."""
    slack, inside = kappa - values - jacobian @ d, np.abs(d) < beta
    assert slack.min() >= -1e-9
    slope, active = gradient + tau * d, np.flatnonzero(slack < 1e-8)
    if inside.sum() > 50:  # then they tell the multipliers
        multipliers, _ = nnls(jacobian[np.ix_(active, inside)].T, -slope[inside])
        slope = slope + multipliers @ jacobian[active]
        assert np.abs(slope[inside]).max() < 1e-8
        assert (slope[~inside] * np.sign(d[~inside]) < 1e-8).all()  # only the box keeps it from going on
        return
    columns = np.hstack([jacobian[active].T, np.diag(np.sign(d))[:, ~inside], np.zeros((d.size, 1))])
    assert nnls(columns, -slope)[1] < 1e-8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_the_direction_is_that_of_a_qp_library(m, kind):
    rng, at_the_box, multiplied, compared = np.random.default_rng(m), 0, 0, 0
    for k in range(24):
        n, tau = int(rng.integers(1, 9)), (0.5, 1.0, 2.0)[k % 3]
        beta, share = (10.0, 0.5, 1.0, 100.0)[k % 4], (0.2, 0.5, 0.9)[k % 3]
        rho = min(0.8, beta)
        g, c, J = subproblem(rng, m, n, kind)
        d = ghost_direction(g, c, J, tau, beta, rho, share)
        kappa = (1 - share) * max(c.max(), 0) + share * least_violation(c, J, rho)
        assert_optimal(d, g, c, J, tau, beta, kappa)
        theirs = direction_by_clarabel(g, c, J, tau, beta, kappa)
        if theirs is not None:  # an interior point method does not get as near everywhere
            np.testing.assert_allclose(d, theirs, rtol=0, atol=1e-8)
            compared += 1
        at_the_box += np.abs(d).max() == beta
        multiplied += not np.allclose(d, np.clip(-g / tau, -beta, beta))
    assert 3 <= at_the_box <= 21
    assert multiplied >= 3 or (m, kind) == (1, "zero row")
    assert compared >= 20


@pytest.mark.parametrize("beta", [10.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_as_many_variables_as_a_network_has(kind, beta):
    rng = np.random.default_rng(0)
    g, c, J = subproblem(rng, 2, 2800, kind)
    g, J, c = g / np.std(g), J / np.std(J) / 30, np.array([0.6, 0.5 if kind != "pair" else -0.7])
    d = ghost_direction(g, c, J, 1.0, beta, 0.5)
    kappa = max(c.max(), 0) / 2 + least_violation(c, J, 0.5) / 2
    assert_optimal(d, g, c, J, 1.0, beta, kappa)
    # an interior point method stops short of the box by a little
    theirs = direction_by_clarabel(g, c, J, 1.0, beta, kappa)
    np.testing.assert_allclose(d, theirs, rtol=0, atol=1e-8 if beta > 1 else 1e-6)
    assert (np.abs(d) == beta).any() == (beta < 1)
    assert not np.allclose(d, np.clip(-g, -beta, beta), atol=1e-3)  # a constraint is active


def test_a_direction_by_hand():
    """min 2 d + d^2 / 2 with 1 - d <= kappa: least violation 1 - 0.8, so kappa = 0.6 and d >= 0.4."""
    (d,) = ghost_direction(np.array([2.0]), np.array([1.0]), np.array([[-1.0]]))
    assert d == pytest.approx(0.4, abs=1e-12)
    (d,) = ghost_direction(np.array([-2.0]), np.array([1.0]), np.array([[-1.0]]))
    assert d == pytest.approx(2.0, abs=1e-12)


def test_without_constraints_it_is_the_clipped_gradient():
    g = np.array([3.0, -40.0, 0.0])
    d = ghost_direction(g, np.empty(0), np.empty((0, 3)), tau=2.0, beta=10.0)
    np.testing.assert_array_equal(d, [-1.5, 10.0, 0.0])


def test_a_violation_that_nothing_can_mend_leaves_the_gradient():
    g = np.array([1.0, -2.0])
    d = ghost_direction(g, np.array([3.0, -1.0]), np.zeros((2, 2)))
    np.testing.assert_allclose(d, -g, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_least_violation_is_that_of_the_linear_program(m, kind):
    rng, found = np.random.default_rng(m), []
    for _ in range(40):
        _, c, J = subproblem(rng, m, int(rng.integers(1, 7)), kind)
        rho = rng.choice([0.05, 0.3, 0.8])
        found.append(least_violation(c, J, rho))
        assert found[-1] == pytest.approx(best_by_highs(c, J, rho), abs=1e-9)
    assert found.count(0.0) >= 5
    assert np.count_nonzero(np.array(found) > 1e-3) >= 5


@pytest.mark.parametrize(
    ("values", "rows", "least"),
    [
        ([2.0], [[1.0, -3.0]], 2 - 0.5 * 4),  # the whole box is needed
        ([3.0], [[1.0, -3.0]], 1.0),
        ([-1.0], [[1.0, -3.0]], 0.0),
        ([1.0, 1.0], [[1.0, 0.0], [-1.0, 0.0]], 1.0),  # what helps the one harms the other
        ([2.0, 1.0], [[1.0, 0.0], [-1.0, 0.0]], 1.5),
        ([1.0, 0.8], [[1.0, 0.0], [0.0, 1.0]], 0.5),  # the first alone decides
        ([0.8, 1.0], [[1.0, 0.0], [0.0, 1.0]], 0.5),
        ([1.0, 2.0], [[0.0, 0.0], [0.0, 0.0]], 2.0),
        ([1.0, 2.0], [[1.0, 1.0], [1.0, 1.0]], 1.0),
        ([1.0, 2.0, -5.0], [[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]], 1.0),
    ],
)
def test_least_violations_by_hand(values, rows, least):
    assert least_violation(np.array(values), np.array(rows), 0.5) == pytest.approx(least, abs=1e-12)


# --- the estimate


@pytest.fixture(scope="module", params=["two groups", "merged groups"])
def eight(request, make_problem):
    """Two strata of four rows, so that the largest mini-batch is the data; the merged groups are not neighbours."""
    rng = np.random.default_rng(6)
    codes = np.repeat([0, 1], 4) if request.param == "two groups" else np.repeat([0, 1, 2], [2, 4, 2])
    y = np.where(rng.random(8) < 0.5, 1.0, -1.0)
    y[0] = -y[1]
    data = FairData.from_arrays(rng.normal(size=(8, 2)), y, codes, tuple("abc"[: codes.max() + 1]))
    constraint = LossParity(0.05, min_group_size=3, small_groups="merge").unchecked(data)
    assert len(constraint.groups.labels) == 2
    return make_problem(data, constraint, fit_intercept=False)


def method_and_source(problem, z, seed=0, **options):
    rng = np.random.default_rng(seed)
    method = StochasticGhost(**options)._method(problem, np.asarray(z, dtype=float), rng)
    return method, Source(problem.view(Stochastic), rng, 8, 1.0)


def rows_of(view):
    return tuple(sorted(view.problem.data.order.tolist()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constraints", "objective"])
@pytest.mark.parametrize(("rows", "n_sets"), [(1, 16), (2, 16)])
def test_either_half_of_a_mini_batch_is_a_mini_batch_of_half_the_size(eight, kind, rows, n_sets):
    """Halves are equal to mini-batches of half the size in distribution, so that the sum of differences telescopes."""
    method, source = method_and_source(eight, [0.0, 0.0])
    if kind == "objective":  # of all rows; of its 8 and 4 parts with one and two rows each
        draw, rows, n_sets = source.objective_rows, 2 * rows, {1: 16, 2: 16}[rows]
    else:
        draw = source.even_batch
    n_draws, counts = 800, {}
    for _ in range(n_draws):
        whole = draw(2 * rows)
        strata = whole.problem.strata if kind == "constraints" else np.zeros(2 * rows)
        odd, even = method._halves(source, whole, strata)
        assert sorted(rows_of(odd) + rows_of(even)) == list(rows_of(whole))
        for name, part in (("odd", odd), ("even", even), ("drawn", draw(rows))):
            key = name, rows_of(part)
            counts[key] = counts.get(key, 0) + 1
            weights = part.problem.data.weights.numpy()
            np.testing.assert_allclose(weights, 1 / weights.size)
    sets = {chosen for name, chosen in counts if name == "drawn"}
    assert len(sets) == n_sets
    for name in ("odd", "even", "drawn"):
        found = np.array([counts.get((name, chosen), 0) for chosen in sorted(sets)])
        assert found.sum() == n_draws  # no other sets
        assert ((found - n_draws / n_sets) ** 2 / (n_draws / n_sets)).sum() < 45  # chi-square(15), 1e-4


def test_the_probabilities_of_the_levels_make_the_sum_collapse(make_data, make_problem):
    """With a made-up direction h(rows), the expectation is h of all rows; without noise, exactly."""
    data = make_data(counts=(35, 41))
    problem = make_problem(data, LossParity(0.05).unchecked(data))
    for p0 in (0.3, 0.4, 0.7):
        method, source = method_and_source(problem, np.zeros(4), p0=p0)
        assert method._last == 5  # 32 of 38 rows
        method._solved = lambda pair: np.sqrt([pair.constraints.problem.data.n_samples])
        expectation, drawn = np.zeros(1), {}
        for number in range(1, 12):  # what Generator.geometric gives: the level plus 1
            method._rng = SimpleNamespace(geometric=lambda p, n=number: n, permuted=lambda table, axis: table)
            drawn[number] = method.direction(source)
            last = number == 11  # and all that is beyond
            expectation += drawn[number] * ((1 - p0) ** (number - 1) * (1 if last else p0))
        assert expectation == pytest.approx(np.sqrt([76]), rel=1e-12)
        assert drawn[1] != drawn[6] == drawn[11]


@pytest.fixture(scope="module")
def nineteen(make_problem):
    """Groups of five and of fourteen rows, weighted: no mini-batch with as many rows of both is all rows."""
    rng = np.random.default_rng(4)
    codes = np.repeat([0, 1], [5, 14])
    y = np.where(rng.random(19) < 0.4, 1.0, -1.0)
    data = FairData.from_arrays(rng.normal(size=(19, 2)), y, codes, ("a", "b"), rng.uniform(0.5, 2.0, 19))
    return make_problem(data, LossParity(0.05).unchecked(data), fit_intercept=False)


def assert_without_bias(problem, n_draws):
    method, source = method_and_source(problem, np.array([1.5, -1.0]), beta=0.3, rho=0.3, seed=3)
    solve, known = method._solved, {}

    def solved_once(pair):
        rows = rows_of(pair.objective), rows_of(pair.constraints)
        if rows not in known:
            known[rows] = solve(pair)
        return known[rows]

    method._solved = solved_once
    exact = solve(_Pair(FullBatchView(problem.without_constraints()), FullBatchView(problem)))
    drawn = np.array([method.direction(source) for _ in range(n_draws)])
    error = drawn.std(axis=0) / np.sqrt(n_draws)
    assert np.abs((drawn.mean(axis=0) - exact) / error).max() < 4
    # directions on few rows have another mean, which the estimate must not have
    single = np.mean([solved_once(method._drawn(source, 1)) for _ in range(1000)], axis=0)
    assert np.abs((single - exact) / error).max() > 8


@pytest.mark.slow
def test_the_direction_is_without_bias(eight):
    """The mean of many estimates is the direction on all rows."""
    assert_without_bias(eight, 4000)


@pytest.mark.slow
def test_the_direction_is_without_bias_where_groups_differ_in_size(nineteen):
    assert_without_bias(nineteen, 1500)


def test_products_of_objective_and_constraints_are_of_independent_rows(nineteen):
    """Their rows are drawn apart: of both kinds any row comes with any other."""
    method, source = method_and_source(nineteen, np.zeros(2))
    pairs = set()
    for _ in range(600):
        pair = method._drawn(source, 1)
        assert pair.objective.problem.data.n_samples == 1
        assert pair.constraints.problem.data.counts() == {"a": 1, "b": 1}
        (row,), others = rows_of(pair.objective), rows_of(pair.constraints)
        pairs |= {(row, other) for other in others}
    assert len(pairs) > 0.8 * 19 * 19


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "last"), [((23, 31), 4), ((16, 100), 5), ((3, 9), 2), ((1, 9), 2), ((40, 40, 40), 5)]
)
def test_the_last_level_takes_all_rows(make_data, make_problem, counts, last):
    """However few rows the smallest group has; and no mini-batch has many more rows than there are."""
    data = make_data(counts=counts)
    method, source = method_and_source(make_problem(data, LossParity(0.05).unchecked(data)), np.zeros(4))
    assert method._last == last
    sizes, even_batch, all_rows, n_whole = set(), source.even_batch, source.all_rows, []
    source.even_batch = lambda rows: sizes.add(rows) or even_batch(rows)
    source.all_rows = lambda: n_whole.append(1) or all_rows()
    for _ in range(80):
        assert np.isfinite(method.direction(source)).all()
    assert max(sizes) == 2**last <= sum(counts) / len(counts)
    assert min(sizes) == 1
    assert 0 < len(n_whole) < 60


def test_the_last_level_follows_the_rows_that_a_run_goes_on_with(make_data, make_problem):
    problems = []
    for counts in ((40, 50), (10, 10)):
        data = make_data(counts=counts)
        problems.append(make_problem(data, LossParity(0.05).unchecked(data)))
    method, _ = method_and_source(problems[0], np.zeros(4))
    assert method._last == 5
    method.go_on(StochasticGhost(), problems[1])
    assert method._last == 3


def test_mini_batches_of_whole_queries_are_refused(nineteen):
    """They cannot be halved row by row."""
    data = replace(nineteen.data, clusters=np.repeat(np.arange(7), [2, 3, 2, 3, 3, 3, 3]))
    with pytest.raises(IncompatibleProblem, match=r"'stochastic_ghost' .* whole queries: choose batches='pairs'"):
        StochasticGhost().solve(replace(nineteen, data=data), None, np.random.default_rng(0))


def test_a_value_that_is_not_finite_gives_no_direction(make_data, make_problem):
    data = make_data(counts=(40, 40, 40))  # six components: the linear program takes no NaN
    problem = make_problem(data, LossParity(0.05).unchecked(data))
    method, source = method_and_source(problem, np.full(4, np.nan))
    assert np.isnan(method.direction(source)).all()


def test_defaults_are_the_published_parameters():
    o = StochasticGhost()
    assert (o.p0, o.learning_rate, o.decay, o.rho, o.share, o.tau, o.beta) == (0.4, 0.05, 0.05, 0.8, 0.5, 1.0, 10.0)


# --- the steps


def test_steps_along_the_direction_become_shorter(unequal):
    method, source = method_and_source(unequal.problem, np.zeros(4), learning_rate=0.3, decay=0.2)
    z, rate = np.zeros(4), 0.3
    for k in range(6):
        direction = np.array([1.0, -2.0, 0.5, 0.0]) * (k + 1)
        method.direction = lambda _, d=direction: d
        method.step(source, unequal.problem)
        z, rate = z + rate * direction, rate * (1 - 0.2 * rate)
        np.testing.assert_allclose(method.z, z, rtol=1e-14)
        assert method.rate == pytest.approx(rate, rel=1e-14)


class AllRows:
    """A source of which every mini-batch is the problem."""

    def __init__(self, problem):
        self._view = problem.view(FullBatch)

    def objective_rows(self, rows):
        return FullBatchView(self._view.problem.without_constraints())

    def even_batch(self, rows):
        return self._view

    def all_rows(self):
        return self._view

    def all_objective_rows(self):
        return self.objective_rows(None)


def without_halves(method):
    """The method where a mini-batch of all rows has halves of all rows."""
    method._halves = lambda source, batch, strata: (batch, batch)
    return method


@pytest.mark.slow
def test_without_noise_it_ends_at_the_known_optimum(known):
    """Then the correction is zero, and the method is the one of Facchinei et al."""
    rng = np.random.default_rng(0)
    method = without_halves(StochasticGhost(learning_rate=0.5, decay=0.01)._method(known.problem, np.zeros(4), rng))
    source = AllRows(known.problem)
    for _ in range(100):
        method.step(source, known.problem)
    np.testing.assert_allclose(method.z, known.params, atol=1e-3)
    gap = known.problem.constraints[0].metric(known.problem.scores(method.z))
    assert gap == pytest.approx(0.05, abs=1e-5)


@pytest.mark.slow
def test_the_loss_gap_at_the_optimum_without_noise(unequal):
    problem, optimum, objective, _ = unequal
    options = StochasticGhost(learning_rate=0.5, decay=0.01)
    method = without_halves(options._method(problem, np.zeros(4), np.random.default_rng(0)))
    source = AllRows(problem)
    for _ in range(150):
        method.step(source, problem)
    np.testing.assert_allclose(method.z, optimum, atol=0.01)
    assert problem.without_constraints().view(FullBatch).at(method.z).objective == pytest.approx(objective, abs=1e-4)


@pytest.mark.slow
def test_from_mini_batches_the_gap_shrinks_and_the_loss_does(unequal):
    problem, optimum, objective, free = unequal
    iterates = []
    options = StochasticGhost(max_epochs=25, batch_size=20, learning_rate=0.2)
    options.solve(problem, None, np.random.default_rng(0), lambda r: iterates.append(r["params"].copy()))
    mean = np.mean(iterates[10:], axis=0)
    assert np.linalg.norm(mean - optimum) < 0.5 * np.linalg.norm(optimum)
    assert problem.without_constraints().view(FullBatch).at(mean).objective < objective + 0.03
    (constraint,) = problem.constraints
    assert constraint.metric(problem.scores(mean)) < constraint.metric(problem.scores(free))
