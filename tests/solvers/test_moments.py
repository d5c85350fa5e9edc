"""The moment solver: optimum and multipliers as SLSQP finds them on all rows, and what it refuses."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from fairconstrained import AUCFairClassifier
from fairconstrained.constraints import AUCGap, QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.domains import L2Ball
from fairconstrained.estimators import auc_fair
from fairconstrained.exceptions import ConvergenceWarning, IncompatibleProblem
from fairconstrained.metrics.auc_sets import AUC_METRICS
from fairconstrained.models import LinearModel, ModuleModel, mlp
from fairconstrained.objectives import Logistic, PairwiseAUC
from fairconstrained.problem import Problem
from fairconstrained.solvers import Status, make_solver
from fairconstrained.views import FullBatch


@pytest.fixture(scope="module")
def auc_problem(make_data):
    """The quadratic AUC loss under the quadratic surrogate of a gap: ``auc_problem(kappa, metric, ...)``."""

    def make(kappa=0.1, metric="inter_group", counts=(23, 31), change=None, sparse=False, c1=0.5, **model):
        data = make_data(counts=counts, weighted=True, shift=0.8, sparse=sparse, seed=3)
        if change is not None:
            data = replace(data, X=change(data.X))
        return Problem(
            model=LinearModel(data.n_features, **model),
            objective=PairwiseAUC("quadratic").bind(data),
            constraints=(QuadraticAUCGap(kappa, constraint=metric, c1=c1).unchecked(data),),
            data=data,
        )

    return make


def solve(problem, **options):
    return make_solver("moments", options, problem).solve(problem, None, np.random.default_rng(0))


def multipliers_of(problem, result):
    return np.array([result.multipliers.get(name, 0.0) for name in problem.component_names])


def slsqp(problem):
    """Parameters and multipliers by sequential quadratic programming on all rows."""
    view, m = problem.view(FullBatch), len(problem.component_names)

    def jacobian(z):
        point = view.at(z)
        return np.array([point.gradient(0.0, unit) for unit in np.eye(m)]).reshape(m, z.size)

    def objective(z):
        point = view.at(z)
        return point.objective, point.gradient(1.0, np.zeros(m))

    constraint = {"type": "ineq", "fun": lambda z: -view.at(z).constraints, "jac": lambda z: -jacobian(z)}
    found = minimize(
        objective,
        np.zeros(problem.n_params),
        jac=True,
        method="SLSQP",
        constraints=[constraint] if m else [],
        options={"ftol": 1e-16, "maxiter": 2000},
    )
    multipliers, active = np.zeros(m), view.at(found.x).constraints > -1e-6
    if active.any():
        multipliers[active] = np.linalg.lstsq(jacobian(found.x)[active].T, -objective(found.x)[1], rcond=None)[0]
    assert (multipliers > -1e-6).all()
    return found.x, multipliers


def check_known_optimum(problem, active=None):
    """Scores (up to a shift), objective and multipliers; and the KKT conditions at the solver's own."""
    result = solve(problem)
    params, expected = slsqp(problem)
    multipliers = multipliers_of(problem, result)
    assert result.status == Status.OPTIMAL
    centred = [scores - scores.mean() for scores in (problem.scores(result.model_state), problem.scores(params))]
    np.testing.assert_allclose(*centred, atol=1e-5)
    np.testing.assert_allclose(multipliers, expected, atol=1e-5)
    point = problem.view(FullBatch).at(result.model_state)
    assert result.objective == pytest.approx(problem.view(FullBatch).at(params).objective, abs=1e-8)
    assert result.objective == pytest.approx(point.objective, abs=1e-12)
    np.testing.assert_allclose(point.gradient(1.0, multipliers), 0, atol=1e-6)
    np.testing.assert_allclose(multipliers * point.constraints, 0, atol=1e-6)
    assert point.constraints.max(initial=0.0) <= 1e-6
    if problem.model.fit_intercept:
        # of no effect on the AUCs, and left to the search that follows: rounding errors must not be scaled up
        assert result.model_state[-1] == 0.0
    if active is not None:
        assert (multipliers > 1e-3).any() == active
    return result


# --- known optima


@pytest.mark.parametrize("metric", AUC_METRICS)
@pytest.mark.parametrize("counts", [(23, 31), (23, 31, 29)], ids=["two groups", "three groups"])
@pytest.mark.parametrize("kappa", [0.05, 0.3])
def test_known_optimum_primal_and_dual(auc_problem, metric, counts, kappa):
    check_known_optimum(auc_problem(kappa, metric, counts), active=True)


@pytest.mark.parametrize("kappa", [None, 50.0])
def test_without_a_bound_and_with_one_that_does_not_bind(auc_problem, kappa):
    problem = auc_problem(kappa)
    result = check_known_optimum(problem, active=False)
    assert result.multipliers == {}
    np.testing.assert_allclose(result.model_state, solve(problem.without_constraints()).model_state, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.01, 1.0])
@pytest.mark.parametrize("kappa", [None, 0.1])
def test_with_a_penalty(auc_problem, alpha, kappa):
    check_known_optimum(auc_problem(kappa, alpha=alpha))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_with_and_without_an_intercept(auc_problem, fit_intercept, sparse):
    problem = auc_problem(0.2, fit_intercept=fit_intercept, sparse=sparse)
    result = check_known_optimum(problem, active=True)
    assert result.model_state.size == 3 + fit_intercept


def test_masks(auc_problem):
    rng = np.random.default_rng(0)
    masks = [rng.random(54) < share for share in (0.4, 0.5, 0.3, 0.4)]
    check_known_optimum(auc_problem(0.05, masks), active=True)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["group_auc", "intra_group"])
def test_several_constraints(auc_problem, metric):
    problem = auc_problem(0.2)
    other = QuadraticAUCGap(0.1, constraint=metric).unchecked(problem.data)
    check_known_optimum(replace(problem, constraints=(*problem.constraints, other)), active=True)


@pytest.mark.slow
def test_another_constant(auc_problem):
    """With c1 = 1 constant scores have the surrogate 1, so kappa = 1.5 leaves room."""
    check_known_optimum(auc_problem(1.2, c1=1.0), active=True)


REDUNDANT = {
    "a copy": lambda X: np.hstack([X, X[:, :1]]),
    "a sum": lambda X: np.hstack([X, X[:, :1] + X[:, 1:2] - 3.0]),
    "a constant": lambda X: np.hstack([X, np.full((len(X), 1), 7.0)]),
    "zeros": lambda X: np.hstack([X, np.zeros((len(X), 2))]),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", REDUNDANT.values(), ids=REDUNDANT)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_redundant_features(auc_problem, change, alpha):
    problem = auc_problem(0.1, change=change, alpha=alpha)
    result = check_known_optimum(problem, active=True)
    if not alpha:
        plain = auc_problem(0.1)
        assert result.objective == pytest.approx(solve(plain).objective, abs=1e-9)
    assert np.abs(result.model_state).max() < 10  # no freedom is used up
    if change is REDUNDANT["a constant"]:
        assert abs(result.model_state[3]) < 1e-12


@pytest.mark.parametrize("scales", [(1e-6, 1.0, 1e6), (1e9, 1e9, 1e9), (1e-9, 1.0, 1.0)], ids=str)
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_badly_scaled_features(auc_problem, scales, shift):
    """Without a penalty, scaled and shifted features have the same optimum, in other coefficients."""
    plain = auc_problem(0.1)
    scaled = auc_problem(0.1, change=lambda X: (X + shift) * np.array(scales))
    one, other = solve(plain), solve(scaled)
    assert other.status == Status.OPTIMAL
    np.testing.assert_allclose(other.model_state[:3] * scales, one.model_state[:3], atol=1e-6)
    np.testing.assert_allclose(multipliers_of(scaled, other), multipliers_of(plain, one), atol=1e-6)


def test_a_tighter_bound_costs_its_multiplier(auc_problem):
    """The multiplier is the objective per unit of kappa."""
    step = 1e-4
    low, middle, high = (solve(auc_problem(0.1 + d)) for d in (-step, 0.0, step))
    slope = (high.objective - low.objective) / (2 * step)
    assert -slope == pytest.approx(sum(middle.multipliers.values()), rel=1e-4)


def test_zero_tolerance_leaves_constant_scores(auc_problem):
    problem = auc_problem(0.0)
    result = solve(problem)
    assert problem.constraints[0].exact(problem.scores(result.model_state)) <= problem.constraints[0].granularity
    assert np.ptp(problem.scores(result.model_state)) < 0.01


# --- the result


def test_result_and_history(auc_problem):
    problem, seen = auc_problem(0.1), []
    result = make_solver("moments", {}, problem).solve(problem, None, np.random.default_rng(0), seen.append)
    (constraint,) = problem.constraints
    assert result.constraint_values == {"inter_group": constraint.metric(problem.scores(result.model_state))}
    assert result.surrogate_violation <= 1e-6
    assert [{k: v for k, v in record.items() if k != "params"} for record in seen] == list(result.history)
    assert seen[-1]["objective"] == pytest.approx(result.objective)
    assert result.n_evaluations == 1


def test_the_same_run_twice_is_the_same_bit_for_bit(auc_problem):
    problem = auc_problem(0.1, counts=(23, 31, 29))
    np.testing.assert_array_equal(solve(problem).model_state, solve(problem).model_state)


def test_too_few_iterations_are_said(auc_problem):
    assert solve(auc_problem(0.05), max_iter=1).status != Status.OPTIMAL


def test_many_rows_are_one_pass(make_data):
    """Rows that are repeated a hundred times change nothing."""
    data = make_data(counts=(23, 31), shift=0.8, seed=3)
    X, y = np.vstack(data.blocks), data.y.numpy()
    columns = [np.repeat(column, 100, axis=0) for column in (X, y, data.codes)]
    repeated = FairData.from_arrays(sp.csr_array(columns[0]), *columns[1:], data.labels)
    results = []
    for rows in (data, repeated):
        constraint = QuadraticAUCGap(0.1).unchecked(rows)
        problem = Problem(PairwiseAUC("quadratic").bind(rows), (constraint,), rows, model=LinearModel(3))
        results.append(solve(problem))
    np.testing.assert_allclose(results[0].model_state, results[1].model_state, atol=1e-8)


# --- what cannot be


@pytest.mark.parametrize("kappa", [0.0, 0.5, 0.99])
def test_less_than_constant_scores_have_is_infeasible(auc_problem, kappa):
    """With c1 = 1 the two signs of the surrogate sum to at least 2 + 2 min E (s - s')^2 = 2."""
    result = solve(auc_problem(kappa, c1=1.0))
    assert result.status == Status.INFEASIBLE
    assert result.surrogate_violation > 1 - kappa - 1e-9
    assert np.isfinite(result.model_state).all()


def test_the_estimator_warns_of_what_is_infeasible(make_data, monkeypatch):
    data = make_data(counts=(60, 80), shift=0.8)
    monkeypatch.setitem(auc_fair.SURROGATES, "quadratic", (partial(QuadraticAUCGap, c1=1.0), "quadratic"))
    model = AUCFairClassifier(0.5, surrogate="quadratic", objective="auc")
    with pytest.warns(
        ConvergenceWarning, match="the surrogate of inter_group is 1.* on the training rows .* kappa=0.5"
    ):
        model.fit(np.vstack(data.blocks), data.y.numpy(), sensitive_features=data.codes)
    assert model.status_ == "infeasible"
    assert model.violation_ >= 0.5 - 1e-9


def incompatible(problem):
    data = problem.data
    return {
        "a module": (replace(problem, model=ModuleModel(mlp, data.n_features)), "LinearMoments, which 'module'"),
        "the logistic loss": (replace(problem, objective=Logistic().bind(data)), "SaddleMoments, which 'objective'"),
        "another pair loss": (
            replace(problem, objective=PairwiseAUC().bind(data)),
            "SaddleMoments, which 'pairwise_auc'",
        ),
        "a part of the AUC": (
            replace(problem, objective=PairwiseAUC("quadratic", (0.0, 0.5)).bind(data)),
            "SaddleMoments, which 'pairwise_auc'",
        ),
        "the exact gap": (
            replace(problem, constraints=(AUCGap(0.1).unchecked(data),)),
            "SaddleMoments, which 'inter_group'",
        ),
    }


@pytest.mark.parametrize(
    "name", ["a module", "the logistic loss", "another pair loss", "a part of the AUC", "the exact gap"]
)
def test_incompatible_problems(auc_problem, name):
    problem, lacks = incompatible(auc_problem())[name]
    with pytest.raises(IncompatibleProblem, match=f"solver 'moments' needs the view {lacks} does not offer. Solvers"):
        make_solver("moments", {}, problem)
    assert "moments" not in problem.working_solvers()
    assert "moments" in auc_problem().working_solvers()


def test_no_domain(auc_problem):
    with pytest.raises(IncompatibleProblem, match="does not take the domain"):
        make_solver("moments", {}, replace(auc_problem(), domain=L2Ball(1.0)))
