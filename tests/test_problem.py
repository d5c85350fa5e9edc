"""Problem: points and their gradients, the views it combines, and what it says when a view is missing."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime

from fairconstrained.constraints import DemographicParity, LossParity, RateGap, StatisticalParity
from fairconstrained.constraints._some_rows import on_some_rows
from fairconstrained.data import FairData
from fairconstrained.domains import L1Ball, L2Ball
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.models.layers import mlp
from fairconstrained.models.perceptron import Perceptron
from fairconstrained.objectives import (
    ROW_LOSS_OBJECTIVES,
    CorrelationPenalty,
    Hinge,
    Logistic,
    PairwiseAUC,
    Squared,
    TruncatedLogistic,
    ZeroOne,
)
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers import SOLVERS, make_solver
from fairconstrained.terms import Terms
from fairconstrained.views import (
    ConvexQuadratic,
    DifferenceOfConvex,
    Exact,
    FullBatch,
    RowLosses,
    SingleRows,
    Stochastic,
)


@pytest.fixture(scope="module", params=["logistic", "ramp", "smoothstep"])
def surrogate(request):
    return request.param


@pytest.fixture(scope="module")
def data(make_data):
    return make_data(counts=(15, 19), weighted=True)


@pytest.fixture(scope="module")
def problem(data, make_problem, surrogate):
    """Two constraints at once, one of them with auxiliary variables; coefficients by group."""
    width = {"surrogate": surrogate, "surrogate_width": 0.7}
    return make_problem(
        data,
        StatisticalParity(0.3, interval=(0.1, 0.8), n_levels=3, **width).unchecked(data),
        DemographicParity(0.2, **width).unchecked(data),
        loss=TruncatedLogistic(),
        n_copies=2,
    )


def random_z(problem, seed=0):
    n_variables = problem.n_params + sum(c.n_aux for c in problem.constraints)
    return np.random.default_rng(seed).normal(size=n_variables)


# --- slopes of single components


def _slopes_of_units(point, chosen):
    return [point.slopes(0.0, unit) for unit in np.eye(point.constraints.size)[chosen]]


def _check_component_slopes(problem, chosen):
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.normal(size=problem.data.n_samples))
    aux = rng.normal(size=sum(c.n_aux for c in problem.constraints))
    point = problem.at_scores(scores, aux)
    found = list(point.component_slopes(np.array(chosen)))
    assert len(found) == len(chosen)
    for (scores_slope, aux_slope), (other_scores, other_aux) in zip(
        found, _slopes_of_units(point, chosen), strict=True
    ):
        torch.testing.assert_close(scores_slope, other_scores)
        np.testing.assert_allclose(aux_slope, other_aux)


def test_slopes_of_components_by_formulas_are_those_of_unit_multipliers(problem):
    _check_component_slopes(problem, [0, 3, 12, 13])


@pytest.mark.parametrize("objective", [Logistic(), PairwiseAUC()], ids=["by formulas", "by torch"])
def test_slopes_of_a_combination_are_differences_of_values(make_data, objective):
    """Rates far from their interval, whose restoring slopes count, and levels with their thresholds."""
    data, rng = make_data(counts=(12, 9, 11)), np.random.default_rng(0)
    constraints = [
        DemographicParity(0.1, interval=(0.4, 0.6)).unchecked(data).with_restoring_slopes(),
        StatisticalParity(0.3, n_levels=2).unchecked(data),
    ]
    terms = Terms(objective.bind(data), tuple(c.refined(data.X[:, 0], blur=1.0, margin=0.0) for c in constraints), data)
    scores = rng.normal(size=data.n_samples) + np.array([-1.0, 0.0, 1.5])[data.codes]
    aux = rng.normal(size=sum(c.n_aux for c in terms.constraints))
    multipliers = rng.random(len(terms.component_names))

    def value(z):
        point = terms.at_scores(torch.from_numpy(z[: scores.size]), z[scores.size :])
        return 2 * point.loss + multipliers @ point.constraints

    z = np.concatenate([scores, aux])
    point = terms.at_scores(torch.from_numpy(scores), aux)
    assert (point.constraints[:6] > 0).any()
    of_scores, of_aux = point.slopes(2.0, multipliers)
    numeric = [(value(z + step) - value(z - step)) / 2e-6 for step in 1e-6 * np.eye(z.size)]
    np.testing.assert_allclose(np.concatenate([of_scores.numpy(), of_aux]), numeric, rtol=1e-5, atol=1e-7)


def test_slopes_of_components_of_row_losses_are_those_of_unit_multipliers(make_problem):
    """Nine groups are compared through a centre; the second constraint is on some of the rows."""
    codes, rng = np.arange(108) % 9, np.random.default_rng(2)
    y = np.where(rng.random(codes.size) < 0.5, 1.0, -1.0)
    data = FairData.from_arrays(rng.normal(size=(codes.size, 3)), y, codes, tuple("abcdefghi"))
    rows = slice(3, 99)
    some = on_some_rows(LossParity(0.1).unchecked(data.part(np.arange(3, 99))), data, rows)
    problem = make_problem(data, RateGap(0.2, rate="sigmoid").unchecked(data), some)
    assert problem.row_losses is not None
    _check_component_slopes(problem, [0, 2, 17, 18, 20, 35])


def test_components_of_one_direction_have_opposite_slopes(make_data, make_problem):
    data = make_data()
    problem = make_problem(data, StatisticalParity(0.3, n_levels=2).unchecked(data))
    point = problem.at_scores(torch.from_numpy(data.X[:, 0].copy()), np.array([0.1, 0.4]))
    slopes = np.array([slope.numpy() for slope, _ in point.component_slopes(np.arange(8))])
    directions = problem.constraints[0].directions
    np.testing.assert_array_equal(directions, [0, 0, 1, 1, 2, 2, 3, 3])
    np.testing.assert_allclose(slopes[::2], -slopes[1::2])
    assert (np.linalg.norm(slopes, axis=1) > 0).all()


# --- layout


def test_variables_and_components_of_two_constraints(problem):
    assert problem.n_params == 2 * (3 + 1)
    assert problem.aux_slices == (slice(0, 3), slice(3, 3))
    assert len(problem.component_names) == 3 * 2 * 2 + 2
    assert problem.component_names[-1] == "demographic_parity[b - a]"
    point = problem.view(FullBatch).at(random_z(problem))
    assert point.constraints.shape == (len(problem.component_names),)


def test_every_constraint_sees_its_own_auxiliary_variables(problem):
    z = random_z(problem)
    point = problem.view(FullBatch).at(z)
    scores = torch.from_numpy(problem.scores(z))
    expected = [
        term.values(scores, torch.from_numpy(z[problem.n_params :][part])).numpy()
        for term, part in zip(problem.constraints, problem.aux_slices, strict=True)
    ]
    np.testing.assert_array_equal(point.constraints, np.concatenate(expected))


# --- points and gradients


def test_objective_is_the_weighted_loss_and_the_penalty(problem, data):
    z = random_z(problem)
    point = problem.view(FullBatch).at(z)
    scores = problem.scores(z)
    np.testing.assert_array_equal(point.scores, scores)
    logistic = np.log1p(np.exp(-data.y.numpy() * scores))
    expected = data.weights.numpy() @ (0.5 * np.log1p(logistic / 0.5))
    coefficients = z[:8].reshape(2, 4)[:, :3]
    assert point.objective == pytest.approx(expected + 0.05 / 2 * (coefficients**2).sum())


def check_gradients(source, z, n_components):
    """Every single function, and a combination, against central differences."""

    def central(function):
        steps = 1e-6 * np.eye(z.size)
        return np.array([(function(z + step) - function(z - step)) / 2e-6 for step in steps])

    point = source.at(z)
    none = np.zeros(n_components)
    np.testing.assert_allclose(point.gradient(1.0, none), central(lambda v: source.at(v).objective), atol=1e-7)
    jacobian = central(lambda v: source.at(v).constraints).T
    for component in range(n_components):
        unit = np.eye(n_components)[component]
        np.testing.assert_allclose(point.gradient(0.0, unit), jacobian[component], atol=1e-7)
    multipliers = np.random.default_rng(1).normal(size=n_components)
    combined = 0.7 * point.gradient(1.0, none) + multipliers @ jacobian
    np.testing.assert_allclose(point.gradient(0.7, multipliers), combined, atol=1e-6)


def test_gradients_of_points(problem):
    check_gradients(problem.view(FullBatch), random_z(problem), len(problem.component_names))


@pytest.mark.parametrize("loss", [Logistic(), Hinge(0.2), Squared(), ZeroOne(0.3)], ids=str)
def test_gradient_of_every_objective(data, make_problem, loss):
    problem = make_problem(data, loss=loss)
    z = random_z(problem)
    view = problem.view(FullBatch)
    numeric = approx_fprime(z, lambda v: view.at(v).objective, 1e-7)
    np.testing.assert_allclose(view.at(z).gradient(1.0, np.empty(0)), numeric, atol=1e-5)


def test_gradients_do_not_wear_a_point_out(problem):
    point = problem.view(FullBatch).at(random_z(problem))
    multipliers = np.ones(len(problem.component_names))
    first = point.gradient(1.0, multipliers)
    np.testing.assert_array_equal(point.gradient(1.0, multipliers), first)


def test_points_do_not_change_their_argument(problem):
    z = random_z(problem)
    before = z.copy()
    for source in (problem.view(FullBatch), problem.view(DifferenceOfConvex).linearize(z)):
        source.at(z).gradient(1.0, np.ones(len(problem.component_names)))
        np.testing.assert_array_equal(z, before)


def test_evaluations_are_counted(problem):
    view = problem.view(FullBatch)
    for _ in range(3):
        view.at(random_z(problem)).gradient(1.0, np.zeros(len(problem.component_names)))
    assert view.n_evaluations == 3


# --- the convex models


def test_linearization_touches_the_problem_from_above(problem):
    z = random_z(problem)
    full, model = problem.view(FullBatch), problem.view(DifferenceOfConvex).linearize(z)
    at_z = full.at(z)
    assert model.at(z).objective == pytest.approx(at_z.objective)
    np.testing.assert_allclose(model.at(z).constraints, at_z.constraints, atol=1e-9)
    gaps = []
    for seed in range(30):
        v = z + random_z(problem, seed) * [0.01, 0.3, 3.0][seed % 3]
        gaps.append([model.at(v).objective - full.at(v).objective, *(model.at(v).constraints - full.at(v).constraints)])
    assert np.min(gaps) > -1e-9
    assert np.max(gaps) > 0.1


def test_linearization_has_the_gradient_of_the_problem_where_it_touches(problem, surrogate):
    z = random_z(problem)
    full, model = problem.view(FullBatch).at(z), problem.view(DifferenceOfConvex).linearize(z).at(z)
    multipliers = np.random.default_rng(1).normal(size=len(problem.component_names))
    np.testing.assert_allclose(model.gradient(0.7, multipliers), full.gradient(0.7, multipliers), atol=1e-9)


def test_linearization_is_convex(problem):
    model = problem.view(DifferenceOfConvex).linearize(random_z(problem))
    for seed in range(20):
        u, v = random_z(problem, seed), 3 * random_z(problem, seed + 100)
        middle, ends = model.at((u + v) / 2), (model.at(u), model.at(v))
        assert middle.objective <= (ends[0].objective + ends[1].objective) / 2 + 1e-9
        assert (middle.constraints <= (ends[0].constraints + ends[1].constraints) / 2 + 1e-9).all()


def test_gradients_of_the_linearization(problem):
    model = problem.view(DifferenceOfConvex).linearize(random_z(problem))
    check_gradients(model, random_z(problem, 5), len(problem.component_names))


def test_an_exact_split_of_a_linear_constraint(data, make_problem, mean_gap):
    problem = make_problem(data, mean_gap(data, 0.1))
    z = random_z(problem)
    model, full = problem.view(DifferenceOfConvex).linearize(z), problem.view(FullBatch)
    v = random_z(problem, 1)
    squares = data.weights.numpy() @ (problem.scores(v) - problem.scores(z)) ** 2 / 2
    np.testing.assert_allclose(model.at(v).constraints, full.at(v).constraints + squares)


# --- mini-batches


def test_batches_have_the_groups_shares_of_the_data(make_data, make_problem, mean_gap):
    data = make_data((80, 20))
    view = make_problem(data, mean_gap(data, 0.1)).view(Stochastic)
    batch = view.sample(np.random.default_rng(0), 20).problem.data
    assert [rows.stop - rows.start for rows in batch.slices] == [16, 4]


def test_batches_are_unbiased_in_values_and_gradients(make_data, make_problem, mean_gap):
    data = make_data(counts=(15, 19), weighted=True)
    parity = StatisticalParity(0.3, n_levels=2, surrogate_width=0.7).unchecked(data)
    problem = make_problem(data, parity, mean_gap(data, 0.1))
    z, multipliers = random_z(problem), np.linspace(-1, 1, len(problem.component_names))
    stochastic, rng = problem.view(Stochastic), np.random.default_rng(0)
    draws = []
    for _ in range(800):
        point = stochastic.sample(rng, 12).at(z)
        draws.append(np.concatenate([[point.objective], point.constraints, point.gradient(1.0, multipliers)]))
    point = problem.view(FullBatch).at(z)
    expected = np.concatenate([[point.objective], point.constraints, point.gradient(1.0, multipliers)])
    deviation = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (np.abs(np.mean(draws, axis=0) - expected) <= 4.5 * deviation + 1e-12).all()
    assert deviation[0] > 0


# --- problems that are linear in one loss of the rows


class OnGraph(FullBatch, Stochastic):
    """A term without the view `RowLosses`: what it has is asked of the term, what it is, is not."""

    def __init__(self, term):
        self.term = term

    def __getattr__(self, name):
        return getattr(self.term, name)

    def values(self, scores, aux):
        """Values that torch differentiates by itself, without the formula of the slopes."""
        term, n_samples = self.term, self.term.data.n_samples
        at_zero = torch.from_numpy(term.of_losses(np.zeros(n_samples), np.zeros(aux.numel())))
        if not at_zero.numel():  # a constraint without a bound
            return at_zero + 0.0 * scores.sum()
        rows, of_aux = zip(*(term.row_weights(unit) for unit in np.eye(at_zero.numel())), strict=True)
        losses = term.row_loss.of(scores, term.data.y)
        values = torch.from_numpy(np.reshape(rows, (-1, n_samples))) @ losses + at_zero
        return values + torch.from_numpy(np.reshape(of_aux, (at_zero.numel(), -1))) @ aux if aux.numel() else values

    def on(self, data):
        return OnGraph(self.term.on(data))


def on_graph(problem):
    terms = tuple(OnGraph(term) for term in problem.constraints)
    return replace(problem, objective=OnGraph(problem.objective), constraints=terms)


#: Constraints of one problem: none, one of them, several, with auxiliary variables (of more than eight groups).
PARITIES = {
    "none": [],
    "unbounded": [{"kappa": None}],
    "pairs": [{}],
    "overall": [{"reference": "overall", "constraint": "equal_opportunity"}],
    "two": [{"constraint": "equalized_odds", "reference": "overall"}, {}],
}
each_parities = pytest.mark.parametrize("parities", PARITIES.values(), ids=PARITIES.keys())
each_row_loss = pytest.mark.parametrize("loss", sorted(ROW_LOSS_OBJECTIVES))


@pytest.fixture(scope="module", params=[3, 10], ids=["three groups", "ten groups"])
def grouped(request):
    """Every group has rows of both labels."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(request.param), 6)
    X = rng.normal(size=(codes.size, 3)) + codes[:, None] / 5
    y = np.where(np.arange(codes.size) % 6 < 2, 1.0, -1.0)
    return FairData.from_arrays(X, y, codes, tuple(range(request.param)), rng.uniform(0.3, 3.0, codes.size))


@pytest.fixture(scope="module", params=["linear", "linear by group", "perceptron"])
def make_model(request):
    return {
        "linear": lambda problem: problem.model,
        "linear by group": lambda problem: replace(problem.model, n_copies=problem.data.n_groups),
        "perceptron": lambda problem: Perceptron(
            partial(mlp, hidden_layer_sizes=(4,), activation="tanh"), 3, alpha=0.05, device="cpu", activation="tanh"
        ),
    }[request.param]


def parity_problem(make_problem, data, loss, parities, make_model=lambda problem: problem.model):
    constraints = [LossParity(**{"kappa": 0.1, "loss": loss, **parity}).unchecked(data) for parity in parities]
    problem = make_problem(data, *constraints, loss=ROW_LOSS_OBJECTIVES[loss])
    return replace(problem, model=make_model(problem))


def check_equal_points(point, other, n_components):
    np.testing.assert_array_equal(point.scores, other.scores)
    check_equal_values(point, other, n_components)


def check_equal_values(point, other, n_components):
    assert point.loss == pytest.approx(other.loss)
    assert point.objective == pytest.approx(other.objective)
    assert point.objective > point.loss  # with the penalty
    np.testing.assert_allclose(point.constraints, other.constraints, atol=1e-12)
    multipliers = np.random.default_rng(1).normal(size=(3, n_components))
    for factor, row in zip((0.0, 1.0, -0.7), multipliers, strict=True):
        np.testing.assert_allclose(point.gradient(factor, row), other.gradient(factor, row), atol=1e-9)
        np.testing.assert_array_equal(point.gradient(factor, row), point.gradient(factor, row))
    nothing = point.gradient(0.0, np.zeros(n_components))
    np.testing.assert_array_equal(nothing, np.zeros(nothing.size))


@each_parities
@each_row_loss
def test_points_without_a_graph_are_those_with_one(grouped, make_problem, make_model, loss, parities):
    problem = parity_problem(make_problem, grouped, loss, parities, make_model)
    plain = on_graph(problem)
    assert problem.row_losses.losses == (ROW_LOSS_OBJECTIVES[loss],)
    assert plain.row_losses is None
    z = random_z(problem)
    point, other = (p.view(FullBatch).at(z) for p in (problem, plain))
    assert point.constraints.shape == (len(problem.component_names),)
    check_equal_points(point, other, point.constraints.size)


@each_parities
def test_batches_without_a_graph_are_those_with_one(grouped, make_problem, make_model, parities):
    """Batches so small that groups may lack a label."""
    problem = parity_problem(make_problem, grouped, "log_loss", parities, make_model)
    z, views = random_z(problem), [p.view(Stochastic) for p in (problem, on_graph(problem))]
    for balance in (0.0, 1.0):
        streams = [view.batches(np.random.default_rng(0), 12, balance, n_batches=4) for view in views]
        for one, two in zip(*streams, strict=True):
            point, other = one.at(z), two.at(z)
            check_equal_points(point, other, point.constraints.size)


@each_parities
@pytest.mark.parametrize("graph", [False, True])
def test_points_of_several_batches_at_once(grouped, make_problem, make_model, parities, graph):
    problem = parity_problem(make_problem, grouped, "log_loss", parities, make_model)
    problem = on_graph(problem) if graph else problem
    views = list(problem.view(Stochastic).batches(np.random.default_rng(0), 12, 0.5, n_batches=3))
    z = random_z(problem)
    points = FullBatchView.at_each(views, z)
    assert len(points) == len(views)
    for point, view in zip(points, views, strict=True):
        # products with more rows may round differently
        np.testing.assert_allclose(point.scores, view.at(z).scores, rtol=1e-12)
        check_equal_values(point, view.at(z), point.constraints.size)


def test_gradients_of_points_without_a_graph(grouped, make_problem):
    problem = parity_problem(make_problem, grouped, "log_loss", PARITIES["two"])
    check_gradients(problem.view(FullBatch), random_z(problem), len(problem.component_names))


def test_no_graph_is_recorded(grouped, make_problem, monkeypatch):
    problem = parity_problem(make_problem, grouped, "log_loss", PARITIES["two"])
    z, multipliers = random_z(problem), np.ones(len(problem.component_names))
    expected = on_graph(problem).view(FullBatch).at(z).gradient(1.0, multipliers)
    monkeypatch.setattr(torch.autograd, "grad", lambda *_, **__: pytest.fail("a graph"))
    np.testing.assert_allclose(problem.view(FullBatch).at(z).gradient(1.0, multipliers), expected, atol=1e-9)


def test_points_do_not_change_data_or_arguments(grouped, make_problem):
    problem = parity_problem(make_problem, grouped, "log_loss", PARITIES["two"])
    z, multipliers = random_z(problem), np.ones(len(problem.component_names))
    before = [array.copy() for array in (z, multipliers, grouped.weights.numpy(), grouped.y.numpy())]
    point = problem.view(FullBatch).at(z)
    constraints = point.constraints.copy()
    point.gradient(1.0, multipliers)
    for array, old in zip((z, multipliers, grouped.weights.numpy(), grouped.y.numpy()), before, strict=True):
        np.testing.assert_array_equal(array, old)
    np.testing.assert_array_equal(point.constraints, constraints)


def test_the_row_losses_of_a_problem(data, make_problem, mean_gap):
    def row_losses(*constraints, loss):
        return make_problem(data, *constraints, loss=loss).row_losses

    log_loss, squared = LossParity(loss="log_loss").unchecked(data), LossParity(loss="squared").unchecked(data)
    assert row_losses(loss=Hinge(0.3)) == ((Hinge(0.3),), ())
    assert row_losses(log_loss, loss=Logistic()) == ((Logistic(),), (0,))
    assert row_losses(log_loss, squared, log_loss, loss=Squared()) == ((Squared(), Logistic()), (1, 0, 1))
    assert row_losses(log_loss, squared, loss=TruncatedLogistic()).places == (1, 2)
    # a term that lacks the view
    for constraint in (DemographicParity(0.2).unchecked(data), mean_gap(data, 0.1)):
        assert not isinstance(constraint, RowLosses)
        assert row_losses(constraint, loss=Logistic()) is None
        assert row_losses(log_loss, constraint, loss=Logistic()) is None
    for objective in (CorrelationPenalty(), PairwiseAUC()):
        assert row_losses(loss=objective) is None
        assert row_losses(log_loss, loss=objective) is None


@pytest.mark.parametrize("loss", [TruncatedLogistic(), PairwiseAUC()], ids=["another loss", "another view"])
def test_gradients_of_terms_of_different_losses(data, make_problem, loss):
    problem = make_problem(
        data, LossParity(0.1).unchecked(data), LossParity(0.2, loss="squared").unchecked(data), loss=loss
    )
    check_gradients(problem.view(FullBatch), random_z(problem), len(problem.component_names))


def test_constraints_with_losses_and_with_slopes_of_their_own_need_no_graph(data, make_problem, monkeypatch):
    parity = StatisticalParity(0.2, n_levels=2, surrogate_width=0.7).unchecked(data)
    problem = make_problem(data, LossParity(0.1).unchecked(data), parity)
    assert problem.row_losses is None
    monkeypatch.setattr(torch.autograd, "grad", lambda *_, **__: pytest.fail("a graph"))
    check_gradients(problem.view(FullBatch), random_z(problem), len(problem.component_names))


# --- incompatible problems

LACKING = [(FullBatch, "FullBatch"), (DifferenceOfConvex, "DifferenceOfConvex"), (Stochastic, "Stochastic")]


@pytest.mark.parametrize(("offered", "asked"), [(a, b) for a, _ in LACKING for b, _ in LACKING if a is not b])
def test_a_missing_view_names_the_constraint_the_view_and_the_solvers_that_work(
    data, make_problem, mean_gap, offered, asked
):
    problem = make_problem(data, mean_gap(data, 0.1, offered))
    with pytest.raises(IncompatibleProblem) as raised:
        problem.view(asked)
    message = str(raised.value)
    assert asked.__name__ in message
    assert "'mean_gap'" in message
    for name, solver in SOLVERS.items():
        works = all(view in (offered, Exact) for view in solver.requires) and not solver.obstacle(problem)
        assert (repr(name) in message) == works
    assert ("none" in message) == (problem.working_solvers() == [])


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_solver_that_lacks_a_view_says_so_before_it_starts(data, make_problem, mean_gap, name):
    wanted = set(SOLVERS[name].requires) - {Exact}
    assert wanted  # every solver needs some view
    offered = next(view for view, _ in LACKING if wanted != {view})
    problem = make_problem(data, mean_gap(data, 0.1, offered))
    lacking = f"solver '{name}' needs the view .* which '(mean_gap|objective)' does not offer"
    with pytest.raises(IncompatibleProblem, match=lacking):
        make_solver(name, {}, problem)


def test_an_incompatible_problem_is_a_value_error():
    assert issubclass(IncompatibleProblem, ValueError)


def test_problems_of_the_package_work_with_every_solver(problem):
    others = {
        name
        for name, s in SOLVERS.items()
        if any(issubclass(view, (ConvexQuadratic, SingleRows)) for view in s.requires)
    }
    assert {"projected_gradient", "moments"} <= others
    # of scores shared by all groups, of objectives that count errors, of counted rows, of mean losses, and of networks
    others |= {"cross_fitted_network", "span", "span_search", "sequential_quadratic", "interior_point", "group_weights"}
    assert problem.working_solvers() == sorted(set(SOLVERS) - others)


def test_solvers_that_refuse_a_domain_do_not_work_in_it(data, make_problem, mean_gap):
    free = make_problem(data, mean_gap(data, 0.1))
    round_, straight = (replace(free, domain=domain).working_solvers() for domain in (L2Ball(0.3), L1Ball(0.3)))
    assert set(free.working_solvers()) - set(straight) == {"adam_lagrangian", "cross_fitted", "span"}
    assert set(straight) - set(round_) == {"exact_penalty"}
    with pytest.raises(
        IncompatibleProblem, match=r"does not take the domain L2Ball.*work with this problem: "
    ) as raised:
        make_solver("exact_penalty", {}, replace(free, domain=L2Ball(0.3)))
    assert all(repr(name) in str(raised.value) for name in round_)
    assert "'adam_lagrangian'" not in str(raised.value)


# --- starts, domain


def test_start_and_fair_start(problem):
    params = np.random.default_rng(0).normal(size=problem.n_params)
    start = problem.start(params)
    np.testing.assert_array_equal(start[: problem.n_params], params)
    np.testing.assert_array_equal(start[8:], problem.constraints[0].initial_aux(problem.scores(params)))
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(problem.fair_start(Start(params), rng), start)
    fair = problem.fair_start(None, rng)
    assert problem.view(FullBatch).at(fair).constraints.max() <= 1e-9
    assert not problem.scores(fair).any()


def test_only_parameters_are_projected(problem, data):
    bounded = Problem(problem.objective, problem.constraints, data, model=problem.model, domain=L2Ball(1.0))
    z = 5 * random_z(problem)
    projected = bounded.project(z)
    assert np.linalg.norm(projected[:8]) == pytest.approx(1.0)
    np.testing.assert_array_equal(projected[8:], z[8:])
    np.testing.assert_array_equal(problem.project(z), z)


def test_without_constraints(problem):
    free = problem.without_constraints()
    assert free.component_names == ()
    z = random_z(problem)[: problem.n_params]
    assert free.view(FullBatch).at(z).constraints.shape == (0,)
    assert free.view(FullBatch).at(z).objective == problem.view(FullBatch).at(random_z(problem)).objective


def test_exact_values_and_granularities_are_those_of_the_constraints(make_data):
    data = make_data((23, 31))
    bound = tuple(constraint.bind(data) for constraint in (DemographicParity(0.1), StatisticalParity(0.2)))
    problem = Terms(Logistic().bind(data), bound, data)
    scores = np.random.default_rng(0).normal(size=data.n_samples)
    assert problem.exact(scores).tolist() == [constraint.exact(scores) for constraint in bound]
    assert problem.granularities.tolist() == [constraint.granularity for constraint in bound]
    assert problem.holds(scores) == (problem.exact(scores) <= problem.granularities).all()
