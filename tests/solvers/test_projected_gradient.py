"""Projected gradient: the quadratics, the projection, and known optima, primal and dual; the contract of solvers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fairconstrained.constraints import PairwiseParity, StatisticalParity
from fairconstrained.constraints.pairwise_auc import PAIRWISE_TERMS
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.models import ModuleModel, mlp
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Start
from fairconstrained.solvers import Status, make_solver
from fairconstrained.solvers.published.projected_gradient import _Projection
from fairconstrained.solvers.quadratics import parameter_quadratics
from fairconstrained.views import FullBatch
from tests.history import comparable

each_notion = pytest.mark.parametrize("notion", sorted(PAIRWISE_TERMS))
each_model = pytest.mark.parametrize(
    ("counts", "n_copies"), [((23, 31), 1), ((23, 31), 2), ((23, 31, 19), 1), ((23, 31, 19), 3)]
)


@pytest.fixture(scope="module")
def pairwise_problem(make_data, make_problem):
    def make(kappa=0.1, notion="group_auc", counts=(23, 31), n_copies=1, sparse=False, **model):
        data = make_data(counts=counts, weighted=True, shift=0.8, sparse=sparse)
        constraint = PairwiseParity(kappa, constraint=notion).unchecked(data)
        return make_problem(data, constraint, n_copies=n_copies, **model)

    return make


def solve(problem, start=None, callback=None, **options):
    solver = make_solver("projected_gradient", {"tol": 1e-10, **options}, problem)
    return solver.solve(problem, start, np.random.default_rng(0), callback)


def slsqp(problem, function, start):
    """Minimise ``function`` (value and gradient of z) under the surrogate, by another solver."""
    view = problem.view(FullBatch)
    units = np.eye(len(problem.component_names))
    found = minimize(
        function,
        start,
        jac=True,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda z: -view.at(z).constraints,
            "jac": lambda z: -np.stack([view.at(z).gradient(0.0, unit) for unit in units]),
        },
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert view.at(found.x).constraints.max() < 1e-9
    return found.x, found.fun


# --- the quadratics of the parameters


@each_notion
@each_model
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_quadratics_are_the_values(pairwise_problem, notion, counts, n_copies, sparse, fit_intercept):
    problem = pairwise_problem(0.3, notion, counts, n_copies, sparse, fit_intercept=fit_intercept)
    hessians, which, b, c = parameter_quadratics(problem, problem.constraints)
    assert len(hessians) == len(counts) * (len(counts) - 1) / 2  # a pair and its mirror image share theirs
    assert np.linalg.eigvalsh(hessians).min() > -1e-12
    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=problem.n_params)
        values = np.einsum("i,jik,k->j", w, hessians[which], w) / 2 + b @ w + c
        np.testing.assert_allclose(values, problem.view(FullBatch).at(w).constraints, atol=1e-12)


def test_quadratics_of_the_coordinates_are_the_same_functions(pairwise_problem):
    problem = pairwise_problem(0.3, "inter_group")
    quadratics, coordinates = parameter_quadratics(problem, problem.constraints), problem.coordinates
    u = np.random.default_rng(0).normal(size=problem.n_params)
    np.testing.assert_allclose(quadratics.within(coordinates).values(u), quadratics.values(coordinates.to_params(u)))


@pytest.mark.parametrize("units", [1e-8, 1e8, np.array([1e-6, 1.0, 1e6])], ids=["small", "large", "mixed"])
def test_units_of_the_features_do_not_matter(pairwise_problem, units):
    problem = pairwise_problem(0.1, alpha=0.0)
    data = replace(problem.data, X=problem.data.X * units)
    constraints = (PairwiseParity(0.1).unchecked(data),)
    other = replace(problem, objective=Logistic().bind(data), constraints=constraints, data=data)
    results = solve(problem), solve(other)
    assert results[1].status == Status.OPTIMAL
    assert results[1].objective == pytest.approx(results[0].objective, rel=1e-6)
    np.testing.assert_allclose(problem.scores(results[0].model_state), other.scores(results[1].model_state), atol=1e-3)


def test_quadratics_of_several_constraints_follow_each_other(pairwise_problem):
    problem = pairwise_problem()
    both = tuple(
        PairwiseParity(kappa, constraint=n).unchecked(problem.data)
        for kappa, n in [(0.2, "group_auc"), (0.4, "intra_group")]
    )
    problem = replace(problem, constraints=both)
    hessians, which, b, c = parameter_quadratics(problem, problem.constraints)
    w = np.random.default_rng(0).normal(size=problem.n_params)
    values = np.einsum("i,jik,k->j", w, hessians[which], w) / 2 + b @ w + c
    np.testing.assert_allclose(values, problem.view(FullBatch).at(w).constraints, atol=1e-12)


# --- the projection


@each_notion
@each_model
def test_projection_is_the_nearest_feasible_point(pairwise_problem, notion, counts, n_copies):
    problem = pairwise_problem(0.1, notion, counts, n_copies)
    projection = _Projection(parameter_quadratics(problem, problem.constraints))
    v = np.random.default_rng(1).normal(size=problem.n_params)
    projected, multipliers = projection(v), projection.multipliers
    nearest, _ = slsqp(problem, lambda z: (float((z - v) @ (z - v)) / 2, z - v), np.zeros(v.size))
    np.testing.assert_allclose(projected, nearest, atol=3e-5)
    # stationary: v - w = sum_j multiplier_j grad c_j(w)
    normal = problem.view(FullBatch).at(projected).gradient(0.0, multipliers)
    np.testing.assert_allclose(v - projected, normal, atol=3e-5)
    assert projection.n_solved == 1


def test_a_feasible_point_is_its_own_projection(pairwise_problem):
    problem = pairwise_problem(0.5)
    projection = _Projection(parameter_quadratics(problem, problem.constraints))
    v = np.full(problem.n_params, 0.05)
    projected, multipliers = projection(v), projection.multipliers
    assert projected is v
    assert not multipliers.any()
    assert projection.n_solved == 0


# --- optima


@pytest.mark.slow
@each_notion
@each_model
def test_known_optimum_primal_and_dual(pairwise_problem, notion, counts, n_copies):
    problem = pairwise_problem(0.1, notion, counts, n_copies)
    result = solve(problem)
    view, m = problem.view(FullBatch), len(problem.component_names)

    def objective(z):
        point = view.at(z)
        return point.objective, point.gradient(1.0, np.zeros(m))

    params, best = slsqp(problem, objective, np.zeros(problem.n_params))
    assert result.status == Status.OPTIMAL
    assert result.objective == pytest.approx(best, abs=1e-7)
    np.testing.assert_allclose(result.model_state, params, atol=2e-3)
    assert result.surrogate_violation <= 1e-7
    multipliers = np.array([result.multipliers.get(name, 0.0) for name in problem.component_names])
    assert multipliers.max() > 0.01
    np.testing.assert_allclose(view.at(result.model_state).gradient(1.0, multipliers), 0, atol=2e-3)


def test_augmented_lagrangian_finds_the_same(pairwise_problem):
    problem = pairwise_problem(0.2, "inter_group", n_copies=2)
    result = solve(problem)
    solver = make_solver("augmented_lagrangian", {"tol": 1e-6}, problem)
    other = solver.solve(problem, None, np.random.default_rng(0))
    assert other.status == Status.OPTIMAL
    assert result.objective == pytest.approx(other.objective, rel=1e-4)
    assert other.constraint_values == {"inter_group": pytest.approx(result.constraint_values["inter_group"], abs=0.02)}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_a_constant_step_ends_at_the_same_optimum(pairwise_problem, sparse):
    problem = pairwise_problem(0.1, sparse=sparse)
    spectral, constant = solve(problem), solve(problem, step=0.5)
    assert constant.status == Status.OPTIMAL
    np.testing.assert_allclose(constant.model_state, spectral.model_state, atol=1e-4)


def test_zero_tolerance_leaves_constant_scores(pairwise_problem):
    problem = pairwise_problem(0.0)
    result = solve(problem)
    assert result.status == Status.OPTIMAL
    assert np.ptp(problem.scores(result.model_state)) < 0.01


def test_a_slack_constraint_gives_the_unconstrained_optimum(pairwise_problem):
    problem = pairwise_problem(100.0)
    result, free = solve(problem), solve(problem.without_constraints())
    np.testing.assert_allclose(result.model_state, free.model_state)
    assert result.multipliers == {}
    gradient = problem.without_constraints().view(FullBatch).at(free.model_state).gradient(1.0, np.empty(0))
    assert np.abs(gradient).max() < 1e-4


def test_an_infeasible_start_is_projected_first(pairwise_problem):
    problem = pairwise_problem(0.1)
    result = solve(problem, Start(np.full(problem.n_params, 5.0)))
    assert result.objective == pytest.approx(solve(problem).objective, abs=1e-7)
    assert result.status == Status.OPTIMAL


# --- the contract of solvers (the other solvers': test_contract.py)


def test_result_history_and_callback(pairwise_problem):
    problem, seen = pairwise_problem(0.1), []
    result = solve(problem, callback=lambda record: seen.append(dict(record)))
    scores = problem.scores(result.model_state)
    (constraint,) = problem.constraints
    assert result.constraint_values == {"group_auc": pytest.approx(constraint.metric(scores))}
    assert constraint.exact(scores) <= constraint.granularity
    assert comparable(seen) == comparable(result.history)
    assert result.n_iter == seen[-1]["n_iter"] > 2
    assert result.n_evaluations > seen[-1]["n_evaluations"] >= result.n_iter
    assert min(record["objective"] for record in seen) == pytest.approx(result.objective, rel=1e-4)


def test_the_same_run_twice_is_the_same_bit_for_bit(pairwise_problem):
    problem = pairwise_problem(0.1, counts=(23, 31, 19))
    one, other = solve(problem), solve(problem)
    np.testing.assert_array_equal(one.model_state, other.model_state)
    assert comparable(one.history) == comparable(other.history)
    assert one.multipliers == other.multipliers


def test_too_few_iterations_are_said(pairwise_problem):
    result = solve(pairwise_problem(0.1), max_iter=2)
    assert result.status == Status.MAX_ITER
    assert result.n_iter == 2


def test_without_constraints_there_is_nothing_to_project_on(pairwise_problem):
    assert solve(pairwise_problem(0.1).without_constraints()).status == Status.OPTIMAL


def test_a_model_that_is_not_linear(pairwise_problem):
    problem = pairwise_problem(0.1)
    problem = replace(problem, model=ModuleModel(mlp, problem.data.n_features))
    with pytest.raises(IncompatibleProblem, match="needs the view LinearMoments, which 'module' does not offer"):
        make_solver("projected_gradient", {}, problem)


def test_other_constraints_are_refused(pairwise_problem):
    problem = pairwise_problem()
    problem = replace(problem, constraints=(StatisticalParity(0.3).unchecked(problem.data),))
    with pytest.raises(IncompatibleProblem, match="needs the view ConvexQuadratic, which 'statistical_parity'"):
        make_solver("projected_gradient", {}, problem)
