"""The level-set method: feasible at every level, near the optimum of the moment solver, honest about the rest."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from fairconstrained import AUCFairClassifier
from fairconstrained.constraints import QuadraticAUCGap
from fairconstrained.datasets import make_biased_classification
from fairconstrained.domains import L2Ball
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.models import LinearModel
from fairconstrained.models.layers import mlp
from fairconstrained.models.module import ModuleModel
from fairconstrained.objectives import GroupLoss, Logistic, PairwiseAUC
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Status, make_solver
from fairconstrained.views import FullBatch
from tests.history import comparable

QUICK = {"inner_iter": 150, "batch_size": 50, "max_iter": 12}


@pytest.fixture(scope="module")
def make_auc_problem(make_data):
    def make(kappa=0.3, c1=0.5, metrics=("inter_group",), alpha=0.05, model=None, **data):
        rows = make_data(**{"counts": (90, 120), "weighted": True, "shift": 0.8, **data})
        bounds = tuple(QuadraticAUCGap(kappa, constraint=metric, c1=c1).unchecked(rows) for metric in metrics)
        model = model or LinearModel(rows.n_features, alpha=alpha)
        return Problem(PairwiseAUC(loss="quadratic").bind(rows), bounds, rows, model=model)

    return make


def solve(problem, seed=0, start=None, callback=None, name="level_set", **options):
    solver = make_solver(name, {**(QUICK if name == "level_set" else {}), **options}, problem)
    return solver.solve(problem, start, np.random.default_rng(seed), callback)


@pytest.mark.parametrize(
    ("kappa", "metrics", "step", "sparse"),
    [
        (0.3, ("inter_group",), 0.3, False),
        pytest.param(0.3, ("inter_group",), 0.3, True, marks=pytest.mark.slow),
        (0.1, ("intra_group", "group_auc"), 1.0, False),
    ],
    ids=["one", "sparse", "two"],
)
def test_it_comes_near_the_optimum_of_the_moment_solver(make_auc_problem, kappa, metrics, step, sparse):
    problem = make_auc_problem(kappa, metrics=metrics, sparse=sparse)
    optimum = solve(problem, name="moments")
    free = solve(problem.without_constraints(), name="moments")
    assert optimum.objective > free.objective + 0.03  # the constraint is active
    assert max(optimum.multipliers.values()) > 0.15
    result = solve(problem, inner_iter=200, step=step)
    assert result.status != Status.INFEASIBLE
    assert result.surrogate_violation <= 0
    assert optimum.objective - 1e-9 <= result.objective <= optimum.objective + 0.006
    for name in problem.component_names:
        assert result.multipliers[name] == pytest.approx(optimum.multipliers.get(name, 0.0), abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Logistic(), GroupLoss(Logistic(), (0.5, 1.5))], ids=["logistic", "group"])
def test_losses_of_rows_come_near_the_optimum_of_a_convex_solver(make_auc_problem, loss):
    pairs = make_auc_problem(0.3)
    problem = replace(pairs, objective=loss.bind(pairs.data))
    view = problem.view(FullBatch)
    zero = np.zeros(len(problem.component_names))
    optimum = minimize(
        lambda w: (view.at(w).objective, view.at(w).gradient(1.0, zero)),
        np.zeros(problem.n_params),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: -view.at(w).constraints},
        options={"ftol": 1e-12, "maxiter": 200},
    )
    free = minimize(lambda w: view.at(w).objective, optimum.x)
    assert optimum.success
    assert optimum.fun > free.fun + 0.005  # the constraint is active
    result = solve(problem, inner_iter=300, step=1.0, batch_size=100)
    assert result.surrogate_violation <= 0
    assert optimum.fun - 1e-7 <= result.objective <= optimum.fun + 0.006


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [("level_set", {}), ("iqrc", {"inner_iter": 100, "max_iter": 3})])
def test_the_choice_among_iterates_by_the_exact_gap(make_auc_problem, name, options):
    problem, seen = make_auc_problem(0.1, c1=0.25), []

    def gap_of(params):
        return problem.constraints[0].metric(problem.scores(params))

    def keep(record):
        seen.append((record["objective"], gap_of(record["params"])))

    plain = solve(problem, name=name, callback=keep, **options)
    assert gap_of(plain.model_state) > 0.1  # the surrogate promises nothing about the gap
    within = solve(problem, name=name, choose_within="metric", **options)
    assert gap_of(within.model_state) <= 0.1
    start = problem.view(FullBatch).at(problem.fair_start(None, np.random.default_rng(0)))
    kept = [objective for objective, gap in seen if gap <= 0.1]
    assert within.objective == pytest.approx(min([*kept, start.objective]), rel=1e-12)
    assert plain.objective == pytest.approx(min(objective for objective, _ in seen), rel=1e-12)
    assert within.status in (Status.COMPLETED, Status.MAX_ITER)


@pytest.mark.slow
def test_without_constraints_it_minimises_a_loss_of_rows(make_auc_problem):
    pairs = make_auc_problem()
    problem = replace(pairs, objective=Logistic().bind(pairs.data), constraints=())
    view = problem.view(FullBatch)
    optimum = minimize(lambda w: view.at(w).objective, np.zeros(problem.n_params))
    result = solve(problem, inner_iter=300, step=1.0)
    assert result.objective == pytest.approx(optimum.fun, abs=0.005)


@pytest.mark.slow
def test_without_constraints_it_minimises_the_objective(make_auc_problem):
    problem = make_auc_problem().without_constraints()
    optimum, result = solve(problem, name="moments"), solve(problem)
    assert result.objective == pytest.approx(optimum.objective, abs=2e-3)
    assert result.multipliers == {}


@pytest.mark.slow
@pytest.mark.parametrize("c1", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("step", [0.01, 0.1, 1.0])
def test_every_iterate_is_feasible_and_below_its_level(make_auc_problem, c1, step):
    problem = make_auc_problem(kappa=2 * c1 - 0.9, c1=c1)
    result = solve(problem, step=step, max_iter=4, inner_iter=60)
    start = problem.view(FullBatch).at(np.zeros(problem.n_params)).objective
    assert result.history[0]["level"] == pytest.approx(start)
    assert all(record["surrogate_violation"] <= 0 for record in result.history)
    assert all(record["objective"] < record["level"] for record in result.history)
    levels = [record["level"] for record in result.history]
    assert (np.diff(levels) < 0).all()
    optimum = solve(problem, name="moments").objective
    assert min(levels) > optimum
    assert result.objective == min(record["objective"] for record in result.history) < start
    assert result.surrogate_violation == 0


@pytest.mark.slow
def test_as_published_with_every_level_from_the_beginning(make_auc_problem):
    problem = make_auc_problem()
    result = solve(problem, restart=True)
    assert result.surrogate_violation <= 0
    assert result.objective < solve(problem, name="moments").objective + 0.05


def test_larger_theta_lowers_the_level_more_slowly(make_auc_problem):
    problem = make_auc_problem()
    slow, fast = (solve(problem, theta=theta, max_iter=3).history for theta in (4.0, 1.0))
    assert slow[1]["level"] > fast[1]["level"]
    first = fast[0]
    assert fast[1]["level"] == pytest.approx(first["level"] + first["upper_bound"] / 2)


def test_it_says_where_it_ended(make_auc_problem):
    problem = make_auc_problem()
    assert solve(problem, max_iter=1).status == Status.MAX_ITER
    assert solve(problem, tol=0.05).status == Status.OPTIMAL


def test_nothing_below_the_level_leaves_the_start(make_auc_problem):
    """With kappa = 0 the two sides of the gap leave no scores but constant ones."""
    problem = make_auc_problem(kappa=0.0)
    result = solve(problem, inner_iter=20, max_doublings=1)
    assert result.objective == pytest.approx(0.5)
    assert result.surrogate_violation == pytest.approx(0, abs=1e-12)
    assert result.n_iter == 1
    np.testing.assert_array_equal(problem.scores(result.model_state), 0)


def test_infeasible_where_constant_scores_are(make_auc_problem):
    problem = make_auc_problem(kappa=0.3, c1=1.0)  # 2 c1 > 1 + kappa
    result = solve(problem)
    assert result.status == Status.INFEASIBLE
    assert result.surrogate_violation == pytest.approx(0.7)
    assert len(result.history) == 1


@pytest.mark.slow
def test_a_feasible_start_is_used_and_an_infeasible_one_is_not(make_auc_problem):
    problem = make_auc_problem()
    optimum = solve(problem, name="moments")
    near = 0.95 * optimum.model_state
    warm = solve(problem, start=Start(near), max_iter=2)
    assert warm.history[0]["level"] == pytest.approx(problem.view(FullBatch).at(near).objective)
    assert warm.objective <= warm.history[0]["level"]
    far = solve(problem, start=Start(10 * optimum.model_state), max_iter=2)
    assert far.history[0]["level"] == pytest.approx(0.5)


def test_history_counts_passes_over_the_data(make_auc_problem):
    seen = []
    problem = make_auc_problem()
    result = solve(problem, callback=lambda record: seen.append(dict(record)), max_iter=3)
    for record in seen:
        params = record["params"]
        assert problem.view(FullBatch).at(params).objective == record["objective"]
    assert comparable(seen) == comparable(result.history)
    assert [record["n_iter"] for record in seen] == [1, 2, 3]
    for record in seen:
        passes = record["n_steps"] * 50 / problem.data.n_samples
        assert passes < record["n_evaluations"] <= passes + 15
    assert result.n_evaluations >= seen[-1]["n_evaluations"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run(make_auc_problem):
    problem = make_auc_problem()
    one, other, third = (solve(problem, seed, max_iter=3) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.model_state, other.model_state)
    assert comparable(one.history) == comparable(other.history)
    assert one.multipliers == other.multipliers
    assert (one.model_state != third.model_state).any()


def test_batches_that_miss_sets(make_auc_problem):
    problem = make_auc_problem(counts=(8, 120))
    result = solve(problem, batch_size=8, inner_iter=300, max_iter=3, max_doublings=1)
    assert result.surrogate_violation <= 0
    assert result.objective < 0.4


def test_readable_errors(make_auc_problem, make_data, mean_gap):
    problem = make_auc_problem()
    data = problem.data
    network = make_auc_problem(model=ModuleModel(partial(mlp, hidden_layer_sizes=(3,)), 3))
    with pytest.raises(IncompatibleProblem, match=r"'level_set' needs the view LinearMoments, .*'iqrc'"):
        solve(network)
    logistic_pairs = Problem(PairwiseAUC(loss="logistic").bind(data), problem.constraints, data, model=problem.model)
    with pytest.raises(IncompatibleProblem, match=r"'level_set' needs the view SingleRows"):
        solve(logistic_pairs)
    other = Problem(problem.objective, (mean_gap(data, 0.1),), data, model=problem.model)
    with pytest.raises(IncompatibleProblem, match=r"SingleRows, which 'mean_gap' does not offer"):
        solve(other)
    with pytest.raises(IncompatibleProblem, match=r"does not take the domain"):
        solve(Problem(problem.objective, problem.constraints, data, model=problem.model, domain=L2Ball(1.0)))


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")  # few levels
@pytest.mark.parametrize(("objective", "solver"), [("auc", "level_set"), ("logistic", "iqrc"), ("auc", "moments")])
def test_groups_that_are_not_compared_only_count_in_the_objective(objective, solver):
    X, y, group = make_biased_classification(n_samples=600, random_state=0)
    group = group.astype(object)
    group[:3] = "rare"
    options = {} if solver == "moments" else {"max_iter": 2, "inner_iter": 50}
    model = AUCFairClassifier(
        0.4, surrogate="quadratic", objective=objective, solver=solver, solver_options=options, small_groups="ignore"
    )
    model.set_params(random_state=0).fit(X, y, sensitive_features=group)
    assert list(model.ignored_groups_) == ["rare"]
    assert model.status_ in ("optimal", "completed", "max_iter")
    assert model.violation_ <= 1e-6
