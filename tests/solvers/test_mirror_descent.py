"""The saddle form of pairwise quadratic losses, and the closed forms of mirror descent on it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from fairconstrained.constraints import QuadraticAUCGap
from fairconstrained.models.layers import mlp
from fairconstrained.models.module import ModuleModel
from fairconstrained.objectives import Logistic, PairwiseAUC
from fairconstrained.solvers.published._duals import LevelWeights
from fairconstrained.solvers.published.saddle_form import SaddleForm
from fairconstrained.solvers.published.saddle_steps import MirrorDescent
from fairconstrained.views import FullBatch

each_c1 = pytest.mark.parametrize("c1", [0.5, 1.0, 2.0])


@pytest.fixture
def make_auc_problem(make_data, make_problem):
    """Linear model, quadratic AUC loss, quadratic constraints on the gaps of some metrics."""

    def make(kappa=0.5, c1=0.5, metrics=("inter_group",), alpha=0.05, **data):
        rows = make_data(**{"counts": (23, 31), "weighted": True, "shift": 0.8, **data})
        bounds = [QuadraticAUCGap(kappa, constraint=metric, c1=c1).unchecked(rows) for metric in metrics]
        return make_problem(rows, *bounds, loss=PairwiseAUC(loss="quadratic"), alpha=alpha)

    return make


def forms(problem):
    form = SaddleForm.of(problem)
    return form, LevelWeights.of(form, 0.5)


def optimal_saddle(form, scores):
    """The saddle value of every component at the best (a, b, alpha), from single rows."""
    ab = form.best_ab(scores)
    sample = form.sample(scores, everything(form), ab, np.ones(form.constant.size), np.zeros(form.c1.size))
    alpha = sample.v / (2 * form.c1)  # the maximiser of alpha G - c1 alpha^2
    np.testing.assert_allclose(alpha, ab[0] - ab[1], atol=1e-12)
    return sample.u + form.total(alpha * sample.v - form.c1 * alpha**2)


def everything(form):
    """Weights of all rows: the mean over the distribution that rows are drawn from."""
    probability = form.rows[0].shares / form.rows[0].ratio
    return form.set_weights(np.arange(probability.size)) * probability[:, None]


# --- Lemma 1


@each_c1
@pytest.mark.parametrize("weighted", [False, True])
def test_saddle_value_at_the_best_auxiliaries_is_the_pairwise_mean(make_auc_problem, c1, weighted):
    problem = make_auc_problem(c1=c1, weighted=weighted)
    form, scores = SaddleForm.of(problem), np.random.default_rng(1).normal(size=problem.data.n_samples)
    values = optimal_saddle(form, scores)
    weights, y, codes = problem.data.weights.numpy(), problem.data.y.numpy(), problem.data.codes

    def pairs(c1, first, second):
        """Mean over the pairs, formed."""
        difference = scores[first][:, None] - scores[second]
        products = weights[first][:, None] * weights[second]
        return c1 * (products * (difference - 1) ** 2).sum() / products.sum()

    a, b = ({sign: (codes == group) & (y == sign) for sign in (1, -1)} for group in (0, 1))
    # eq. 6: G1 = a+, G1' = b-, G2 = b+, G2' = a-
    expected = [
        pairs(0.5, y > 0, y < 0),
        pairs(c1, b[-1], a[1]) + pairs(c1, b[1], a[-1]) - 1.5,
        pairs(c1, a[-1], b[1]) + pairs(c1, a[1], b[-1]) - 1.5,
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@each_c1
def test_saddle_value_is_the_full_batch_value_with_several_constraints(make_auc_problem, c1):
    problem = make_auc_problem(c1=c1, metrics=("intra_group", "group_auc"), counts=(20, 15, 18), alpha=0.0)
    params = np.random.default_rng(2).normal(size=problem.n_params)
    point = problem.view(FullBatch).at(params)
    expected = np.append(point.objective, point.constraints)
    np.testing.assert_allclose(optimal_saddle(SaddleForm.of(problem), point.scores), expected, rtol=1e-12)


def test_alpha_squared_as_printed_in_the_paper_is_right_for_c1_of_one_only(make_auc_problem):
    for c1, right in ((0.5, False), (1.0, True), (2.0, False)):
        form = SaddleForm.of(make_auc_problem(c1=c1))
        scores = np.random.default_rng(1).normal(size=54)
        v = form.sample(scores, everything(form), form.best_ab(scores), np.ones(3), np.zeros(5)).v[1:]
        printed, corrected = v**2 / 4, v**2 / (4 * c1)  # maxima of alpha v - alpha^2 and alpha v - c1 alpha^2
        assert np.allclose(printed, corrected) == right


# --- gradients


@pytest.fixture
def somewhere(make_auc_problem):
    """A form with scores, auxiliary variables and dual variables that are nothing special."""
    form, rng = SaddleForm.of(make_auc_problem(c1=2.0)), np.random.default_rng(3)
    return form, rng.normal(size=54), rng.normal(size=(2, 5)), rng.dirichlet(np.ones(3)), rng.normal(size=5)


def test_mean_over_single_rows_is_the_full_gradient(somewhere):
    form, scores, ab, y, alpha = somewhere
    full = form.sample(scores, everything(form), ab, y, alpha)
    probability = form.rows[0].shares / form.rows[0].ratio
    assert probability.sum() == pytest.approx(1)
    single = [form.sample(scores[[i]], form.set_weights(np.array([i])), ab, y, alpha) for i in range(scores.size)]
    for name in ("u", "v", "ab"):
        mean = sum(p * getattr(one, name) for p, one in zip(probability, single, strict=True))
        np.testing.assert_allclose(mean, getattr(full, name), atol=1e-12)
    np.testing.assert_allclose([p * one.scores[0] for p, one in zip(probability, single, strict=True)], full.scores)


def test_gradients_match_finite_differences(somewhere):
    form, scores, ab, y, alpha = somewhere
    weights, n = everything(form), scores.size

    def phi(z):
        sample = form.sample(z[:n], weights, z[n:].reshape(2, -1), y, alpha)
        return y @ sample.u + (y[form.component] * alpha) @ sample.v

    z, step = np.concatenate([scores, ab.ravel()]), 1e-5
    sample = form.sample(scores, weights, ab, y, alpha)
    numeric = [(phi(z + step * e) - phi(z - step * e)) / (2 * step) for e in np.eye(z.size)]
    np.testing.assert_allclose(np.append(sample.scores, sample.ab), numeric, atol=1e-9)
    bend = [(phi(z + e) - 2 * phi(z) + phi(z - e)) for e in np.eye(z.size)[:n]]
    np.testing.assert_allclose(sample.curvature, bend, atol=1e-9)


# --- the dual step and the bound


def joint(dual, z):
    """Weights of the components and scaled alpha, from one vector."""
    return z[: dual.form.constant.size], z[dual.form.constant.size :]


def limits(dual):
    """The set Y as constraints for SLSQP."""
    component = dual.form.component
    box = {
        "type": "ineq",
        "fun": lambda z: np.concatenate(
            [s * joint(dual, z)[1] + joint(dual, z)[0][component] * dual.interval for s in (-1, 1)]
        ),
    }
    return [{"type": "eq", "fun": lambda z: joint(dual, z)[0].sum() - 1}, box]


def by_slsqp(dual, objective):
    m, n = dual.form.constant.size, dual.form.c1.size
    found = minimize(
        objective,
        np.append(np.full(m, 1 / m), np.zeros(n)),
        method="SLSQP",
        bounds=[(1e-9, 1)] * m + [(None, None)] * n,
        constraints=limits(dual),
        options={"ftol": 1e-12, "maxiter": 200},
    )
    return found.x, found.fun


@each_c1
@pytest.mark.parametrize("size", [0.5, 8.0], ids=["inside", "at the bounds"])
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # SciPy 1.11, on its way
def test_dual_step_is_what_a_convex_solver_finds(make_auc_problem, c1, size):
    _, dual = forms(make_auc_problem(c1=c1, kappa=max(0.5, 2 * c1)))
    rng, (c1, component) = np.random.default_rng(4), (dual.form.c1, dual.form.component)
    y, alpha, tau = rng.dirichlet(np.full(3, 4.0)), rng.uniform(-0.5, 0.5, 5), 3.0
    u, v = 5 * rng.normal(size=3), size * rng.normal(size=5)

    def objective(z):
        """Eq. 35 with eqs. 25 and 28, in the corrected form."""
        weights, scaled = joint(dual, z)
        of_term = weights[component]
        d_y = (c1 * scaled**2 / of_term).sum()
        bregman = dual.entropy * (weights * np.log(weights / y)).sum()
        bregman += (c1 * of_term * (scaled / of_term - alpha) ** 2).sum()
        return -u @ weights - v @ scaled + bregman / tau + d_y

    log_y, moved = dual.step(np.log(y), alpha, u, v, tau)
    closed = np.append(np.exp(log_y), np.exp(log_y)[component] * moved)
    assert closed[:3].sum() == pytest.approx(1)
    assert (np.abs(moved) == dual.interval).any() == (size > 1)
    found, value = by_slsqp(dual, objective)
    assert objective(closed) <= value + 1e-6  # the solver may break its constraints by rounding errors
    np.testing.assert_allclose(closed, found, atol=2e-4)


@each_c1
@pytest.mark.parametrize("size", [0.5, 8.0], ids=["inside", "at the bounds"])
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # SciPy 1.11, on its way
def test_upper_bound_is_the_maximum_over_the_dual_set(make_auc_problem, c1, size):
    _, dual = forms(make_auc_problem(c1=c1, kappa=max(0.5, 2 * c1)))
    rng = np.random.default_rng(5)
    u, v = rng.normal(size=3), size * rng.normal(size=5)

    def minus(z):
        weights, scaled = joint(dual, z)
        d_y = (dual.form.c1 * scaled**2 / weights[dual.form.component]).sum()
        return -(u @ weights + v @ scaled - d_y)

    assert dual.largest(u, v).max() == pytest.approx(-by_slsqp(dual, minus)[1], abs=1e-5)


def test_intervals_hold_the_best_alpha_of_every_feasible_point(make_auc_problem):
    problem = make_auc_problem(kappa=0.3, alpha=0.0)
    form, dual = forms(problem)
    view, rng, tried = problem.view(FullBatch), np.random.default_rng(6), 0
    for _ in range(300):
        point = view.at(rng.normal(size=problem.n_params) * 0.2)
        if point.objective <= 0.5 and point.constraints.max() <= 0:
            a, b = form.best_ab(point.scores)
            assert (np.abs(a - b) <= dual.interval).all()
            tried += 1
    assert tried > 10


# --- Algorithm 2


def descent(problem, seed=0, step=0.3, proximity=0.0, radius=10.0, batch_size=20):
    form, dual = forms(problem)
    x = np.zeros(problem.n_params + 2 * form.c1.size)
    return MirrorDescent(problem, dual, np.random.default_rng(seed), x, batch_size, step, radius, proximity)


def test_batches_hold_rows_as_often_as_their_weight_says(make_auc_problem):
    problem = make_auc_problem()
    method = descent(problem)
    of_the_caller = np.concatenate([batch.order for batch, _ in method.draw(2000)])
    shares = np.bincount(of_the_caller, minlength=54)[problem.data.order] / of_the_caller.size
    np.testing.assert_allclose(shares, problem.data.weights.numpy(), atol=4e-3)


@pytest.mark.parametrize("sparse", [False, True])
def test_data_at_some_rows_scores_them(make_data, make_problem, sparse):
    data = make_data(counts=(9, 8, 7), sparse=sparse)
    problem = make_problem(data)
    params, rows = np.arange(4.0), np.array([[0, 0, 3, 10, 20], [1, 2, 3, 4, 5]])  # the second misses two groups
    scores = problem.scores(params)
    for part, chosen in zip(data.batches(rows), rows, strict=True):
        found, pullback = problem.model.forward(params, part)
        np.testing.assert_allclose(found.numpy(), scores[chosen])
        at_once, _ = problem.model.forward(params, data.at(chosen))
        np.testing.assert_array_equal(at_once.numpy(), found.numpy())
        np.testing.assert_array_equal(part.y.numpy(), data.y.numpy()[chosen])
        np.testing.assert_array_equal(part.codes, data.codes[chosen])
        assert pullback(torch.ones(5, dtype=torch.float64))[-1] == 5
        assert part.weights.sum() == pytest.approx(1)


@pytest.mark.slow
def test_the_mean_iterate_comes_to_the_minimum_of_the_largest_component(make_auc_problem):
    problem = make_auc_problem(kappa=0.1, alpha=0.05)
    view, level = problem.view(FullBatch), 0.42

    def largest(params):
        point = view.at(params)
        return max(point.objective - level, point.constraints.max())

    best = minimize(largest, np.full(4, 0.1), method="Nelder-Mead", options={"maxiter": 500}).fun
    method = descent(problem)
    method.run(level, 500, method.averages())
    averages = method.averages()
    method.run(level, 1500, averages)
    found = largest(method.params(averages.x / averages.n_steps))
    assert best - 1e-4 <= found <= best + 5e-3
    assert averages.upper_bound(method.dual) == pytest.approx(best, abs=0.01)
    assert averages.y.sum() == pytest.approx(averages.n_steps)


def test_proximal_term_holds_x_at_its_anchor(make_auc_problem):
    lengths = []
    for proximity in (0.0, 1.0, 1e6):
        method = descent(make_auc_problem(), proximity=proximity)
        method.run(0.3, 200, method.averages())
        lengths.append(np.linalg.norm(method.x - method.anchor))
    assert lengths[0] > lengths[1] > 100 * lengths[2]


def test_bound_has_the_weighted_mean_of_the_proximal_term(make_auc_problem):
    method = descent(make_auc_problem(), proximity=2.0)
    averages = method.averages()
    method.run(0.3, 1, averages)  # at the anchor the term is zero
    without = replace(averages, proximal=0.0)
    assert averages.upper_bound(method.dual) == without.upper_bound(method.dual)
    method.run(0.3, 50, averages)
    difference = averages.upper_bound(method.dual) - replace(averages, proximal=0.0).upper_bound(method.dual)
    assert difference == pytest.approx(averages.proximal / averages.tau)
    assert difference > 0


def test_long_steps_and_rare_features_do_not_make_it_diverge(make_data, make_problem):
    data = make_data(counts=(200, 200), shift=0.8)
    for block in data.blocks:
        block[:, 2] = np.arange(200) == 7  # standardised, these two rows are at 14 standard deviations
    problem = make_problem(data, QuadraticAUCGap(0.5).unchecked(data), loss=PairwiseAUC(loss="quadratic"), alpha=0.0)
    method = descent(problem, step=3.0)
    for _ in range(3):
        averages = method.averages()
        method.run(0.3, 300, averages)
    assert problem.view(FullBatch).at(method.params(averages.x / 300)).objective < 0.4
    assert np.linalg.norm(method.x) < method.radius


def test_iterates_stay_in_the_ball(make_auc_problem):
    method = descent(make_auc_problem(), radius=0.05)
    for _ in range(20):
        method.run(0.1, 1, method.averages())
        assert np.linalg.norm(method.x) <= 0.05 + 1e-12


def test_modules_take_the_same_steps_as_the_linear_model_that_they_are(make_auc_problem):
    linear = make_auc_problem(alpha=0.0)
    network = replace(linear, model=ModuleModel(partial(mlp, hidden_layer_sizes=()), 3))
    linear = replace(linear)
    linear.__dict__["coordinates"] = network.coordinates  # both without standardisation
    ends = []
    for problem in (linear, network):
        method = descent(problem, step=0.1)
        method.run(0.3, 50, method.averages())
        ends.append(method.x)
    np.testing.assert_allclose(*ends, atol=1e-10)


def test_a_step_with_a_loss_of_rows(make_auc_problem):
    pairs = make_auc_problem(alpha=0.1)
    problem = replace(pairs, objective=Logistic().bind(pairs.data))
    form = SaddleForm.of(problem)
    x = np.random.default_rng(5).normal(size=problem.n_params + 2 * form.c1.size) / 3
    descent = MirrorDescent(problem, LevelWeights.of(form, 0.5), np.random.default_rng(0), x, 6, 1e-3, 100.0)
    averages = descent.averages()
    ((batch, weights),) = descent.draw(1)
    again = MirrorDescent(problem, LevelWeights.of(form, 0.5), np.random.default_rng(0), x, 6, 1e-3, 100.0)
    again.run(0.2, 1, averages)

    n, w = problem.n_params, descent.params(x)
    features = np.column_stack([batch.X, np.ones(6)])
    margins = batch.y.numpy() * (features @ w)
    alone = form.sample(features @ w, weights, x[n:].reshape(2, -1), np.ones(3) / 3, np.zeros(form.c1.size))
    # the first component is the mean logistic loss, the penalty and minus the level; no pairs
    assert averages.u[0] / averages.tau == pytest.approx(
        np.log1p(np.exp(-margins)).mean() + 0.05 * (w[:-1] @ w[:-1]) - 0.2
    )
    np.testing.assert_allclose(averages.u[1:] / averages.tau, alone.u[1:])
    slopes = alone.scores - batch.y.numpy() / (1 + np.exp(margins)) / 6 / 3
    gradient = features.T @ slopes + 0.1 / 3 * np.append(w[:-1], 0.0)
    np.testing.assert_allclose(again.x[:n], x[:n] - 1e-3 * problem.coordinates.pull(gradient), atol=1e-12)
