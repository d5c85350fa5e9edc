"""Common behaviour of the stochastic solvers: epochs and their records, limits, ends of all kinds, and going on."""

import pickle
import re
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from fairconstrained.constraints import AUCGap, DemographicParity, LossParity
from fairconstrained.exceptions import IncompatibleProblem, StopTraining
from fairconstrained.models import LinearModel, Perceptron, mlp
from fairconstrained.objectives import Logistic, Squared
from fairconstrained.points import objective_gradient
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import (
    SGD,
    SOLVERS,
    SSLALM,
    SeparateBatches,
    StochasticSolver,
    StochasticSwitching,
    make_solver,
)
from fairconstrained.solvers import loop as module
from fairconstrained.solvers.source import Source
from fairconstrained.views import FullBatch, Stochastic
from tests.history import comparable

#: Options with which every solver moves visibly within a few epochs.
MOVING = {
    "adam": {"learning_rate": 0.05},
    "adam_lagrangian": {"learning_rate": 0.05, "polish": False, "decay": False},
    "alm": {"learning_rate": 0.1, "dual_rate": 0.2},
    "multiplier_model": {"learning_rate": 0.05, "multiplier_rate": 0.02},
    "nupi": {"learning_rate": 0.05},
    "penalty": {"learning_rate": 0.1},
    "penalty_barrier": {"learning_rate": 0.05},
    "plada": {"learning_rate": 0.1, "slack_rate": 0.05, "delta": 10.0},
    "sgd": {"learning_rate": 0.1},
    "ssl_alm": {"learning_rate": 0.1, "dual_rate": 0.2},
    "stochastic_ghost": {"learning_rate": 0.2},
    "stochastic_switching": {"learning_rate": 0.2, "constant_steps": 3},
}
each_solver = pytest.mark.parametrize("name", sorted(MOVING))
N_STEPS = 7  # 140 rows, 20 at a time


def solve(problem, name, start=None, callback=None, seed=0, **options):
    options = {"max_epochs": 4, "batch_size": 20, **MOVING[name], **options}
    return make_solver(name, options, problem).solve(problem, start, np.random.default_rng(seed), callback)


def test_every_stochastic_solver_is_tested_here():
    stochastic = {name for name, solver in SOLVERS.items() if issubclass(solver, StochasticSolver)}
    assert set(MOVING) == stochastic - {"cross_fitted_network"}  # its networks take the steps of "adam_lagrangian"


@pytest.fixture(scope="module")
def wider(unequal):
    """A bound that every method keeps in some epochs."""
    return replace(unequal.problem, constraints=(LossParity(0.08).unchecked(unequal.problem.data),))


# --- records


@each_solver
def test_a_record_of_every_epoch(unequal, name):
    problem, seen = unequal.problem, []
    result = solve(problem, name, callback=lambda record: seen.append(dict(record)))
    assert [record["n_iter"] for record in seen] == [1, 2, 3, 4]
    assert result.n_iter == 4
    (constraint,), objective = problem.constraints, problem.without_constraints().view(FullBatch)
    for record in seen:
        scores = problem.scores(record["params"])
        assert record["objective"] == pytest.approx(objective.at(record["params"]).objective)
        assert record["loss_parity"] == pytest.approx(constraint.metric(scores))
        assert record["surrogate_violation"] == pytest.approx(max(constraint.exact(scores), 0.0))
        assert record["multipliers"] is None or len(record["multipliers"]) == 2
    seconds = [record["seconds"] for record in seen]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0
    assert result.history == tuple({k: v for k, v in r.items() if k not in ("params", "state")} for r in seen)
    params = {tuple(record["params"]) for record in seen}
    assert len(params) == 4  # they move on, and records are not of one array
    assert result.message == ""


@each_solver
def test_evaluations_are_passes_over_the_rows(unequal, name):
    result = solve(unequal.problem, name)
    seen = [record["n_evaluations"] for record in result.history]
    if name in ("stochastic_ghost", "stochastic_switching"):  # how many rows these see is a matter of chance
        assert all(a < b for a, b in pairwise(seen))
    else:  # an epoch is one pass, twice two more for constraints with as many rows of both groups, and one to measure
        passes = 5 if issubclass(SOLVERS[name], SeparateBatches) else 1
        assert seen == [(passes + 1) * epoch for epoch in (1, 2, 3, 4)]
    assert result.n_evaluations == seen[-1] + 1


def test_an_epoch_has_as_many_steps_as_mini_batches_make_up_the_rows(make_plane, unequal):
    for size, n_steps in [(20, 7), (8, 17), (140, 1), (1000, 1)]:
        assert SGD(batch_size=size).n_steps(unequal.problem) == n_steps


@each_solver
def test_the_same_seed_gives_the_same_parameters_and_another_one_others(unequal, name):
    one, same, other = (solve(unequal.problem, name, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.model_state, same.model_state)
    assert comparable(one.history) == comparable(same.history)
    assert not np.array_equal(one.model_state, other.model_state)


def best_of(problem, records):
    """The feasible record of least objective; there is one."""
    (constraint,) = problem.constraints
    feasible = [r for r in records if constraint.metric(problem.scores(r["params"])) <= constraint.kappa + 1e-9]
    return min(feasible, key=lambda record: record["objective"])


@each_solver
def test_select_best_is_the_feasible_record_of_least_objective(wider, name):
    seen = []
    result = solve(wider, name, callback=lambda r: seen.append(dict(r)), select="best", max_epochs=6)
    best = best_of(wider, seen)
    np.testing.assert_array_equal(result.model_state, best["params"])
    assert result.objective == pytest.approx(best["objective"])


def test_select_best_without_a_feasible_record_is_the_last_one(unequal):
    problem = replace(
        unequal.problem,
        constraints=(LossParity(0.0).unchecked(unequal.problem.data),),
        model=LinearModel(3, alpha=0.05),
    )
    last, best = (solve(problem, "sgd", select=select) for select in ("last", "best"))
    np.testing.assert_array_equal(last.model_state, best.model_state)
    assert best.status == "infeasible"


# --- mini-batches


def test_no_more_rows_than_a_mini_batch_are_taken_as_they_are(unequal):
    problem, rng = unequal.problem, np.random.default_rng(0)
    source = Source(problem.view(Stochastic), rng, 140, 1.0)
    before = rng.bit_generator.state
    assert source.batch().problem is problem
    assert rng.bit_generator.state == before
    assert source.n_rows == 140
    smaller = Source(problem.view(Stochastic), rng, 139, 0.0).batch().problem
    assert smaller is not problem
    assert smaller.data.n_samples == 139


def test_batches_by_balance_and_even_ones(unequal):
    source = Source(unequal.problem.view(Stochastic), np.random.default_rng(0), 28, 0.0)
    assert source.batch().problem.data.counts() == {"a": 12, "b": 16}  # 60 and 80 of 140
    assert source.even_batch(3).problem.data.counts() == {"a": 3, "b": 3}
    assert source.n_rows == 28 + 6
    even = Source(unequal.problem.view(Stochastic), np.random.default_rng(0), 28, 1.0)
    assert even.batch().problem.data.counts() == {"a": 14, "b": 14}


def test_a_part_of_a_batch_keeps_its_weights(make_data, make_problem):
    data = make_data(counts=(40, 60), weighted=True)
    problem = make_problem(data, LossParity(0.1).unchecked(data))
    source = Source(problem.view(Stochastic), np.random.default_rng(0), 20, 0.3)
    batch = source.batch()
    rows = np.array([1, 4, 5, 17])
    part = source.part(batch, rows).problem
    np.testing.assert_array_equal(part.data.order, batch.problem.data.order[rows])
    weights = batch.problem.data.weights.numpy()[rows]
    np.testing.assert_allclose(part.data.weights.numpy(), weights / weights.sum())
    assert np.unique(np.round(weights, 12)).size > 1
    assert source.n_rows == 24


@pytest.fixture
def lopsided(make_data, make_problem):
    data = make_data(counts=(30, 70), weighted=True)
    return make_problem(data, LossParity(0.1).unchecked(data))


def test_separate_batches_have_the_usual_rows_of_all_and_of_every_group(lopsided):
    source = Source(lopsided.view(Stochastic), np.random.default_rng(0), 8, 1.0)
    objective = source.objective_batch().problem
    assert objective.constraints == ()
    np.testing.assert_allclose(objective.data.weights.numpy(), 1 / 8)
    assert source.n_rows == 8
    assert source.constraint_batch().problem.data.counts() == {"a": 8, "b": 8}
    assert source.n_rows == 8 + 16
    assert [point.scores.size for point in source.separate_points(np.zeros(4))] == [8, 16, 16]
    chosen = Source(lopsided.view(Stochastic), np.random.default_rng(0), 8, 1.0, 12)
    assert chosen.constraint_batch().problem.data.counts() == {"a": 6, "b": 6}
    shares = Source(lopsided.view(Stochastic), np.random.default_rng(0), 10, 0.0)
    weight = lopsided.data.weights[:30].sum().item()
    assert shares.constraint_batch().problem.data.counts() == {"a": round(20 * weight), "b": 20 - round(20 * weight)}


def test_separate_batches_with_no_fewer_rows_than_all_are_all_rows(lopsided):
    source = Source(lopsided.view(Stochastic), np.random.default_rng(0), 60, 1.0)
    assert source.objective_batch().problem.data.n_samples == 60
    assert source.constraint_batch().problem is lopsided  # 60 of both groups would be more than 100
    chosen = Source(lopsided.view(Stochastic), np.random.default_rng(0), 60, 1.0, 99)
    assert chosen.constraint_batch().problem is not lopsided
    for size in (100, None):
        whole = Source(lopsided.view(Stochastic), np.random.default_rng(0), size, 1.0)
        assert whole.objective_batch().problem.data is lopsided.data
        assert whole.constraint_batch().problem is lopsided


@pytest.mark.slow
def test_separate_gradients_are_without_bias(lopsided):
    """Gradients of the objective, of the constraints, and their product, in which shared rows would cause a bias."""
    source, z = Source(lopsided.view(Stochastic), np.random.default_rng(0), 2, 1.0), np.array([0.7, -0.4, 0.2, 0.3])
    whole, weights = lopsided.view(FullBatch).at(z), np.array([1.0, 0.0])
    exact = [objective_gradient(whole), whole.gradient(0.0, weights)]
    found = []
    for _ in range(4000):
        objective, constraint, _ = source.separate_points(z)
        found.append([objective_gradient(objective), constraint.gradient(0.0, weights)])
    found = np.array(found)
    products = found[:, 0] * found[:, 1]
    estimates = np.concatenate([found.reshape(len(found), -1), products], axis=1)
    expected = np.concatenate([*exact, exact[0] * exact[1]])
    noisy = estimates.std(axis=0) > 1e-12
    assert noisy.sum() >= 11  # of a difference of groups, the slope of the intercept may be all but fixed
    deviations = (estimates.mean(axis=0) - expected)[noisy] / (estimates.std(axis=0)[noisy] / np.sqrt(len(found)))
    assert np.abs(deviations).max() < 4


def test_gradients_of_the_objective_alone_are_zero_in_auxiliary_variables(many_groups):
    source, z = Source(many_groups.view(Stochastic), np.random.default_rng(0), 8, 1.0), np.full(5, 0.3)
    gradient = objective_gradient(source.objective_batch().at(z))
    assert gradient.shape == (5,)
    assert gradient[4] == 0
    assert gradient[:4].all()


@pytest.mark.parametrize("name", ["ssl_alm", "stochastic_switching"])
def test_the_rows_of_the_constraints_can_be_chosen(unequal, name):
    given = solve(unequal.problem, name, constraint_batch_size=40)  # 20 of both groups, as without
    np.testing.assert_array_equal(given.model_state, solve(unequal.problem, name).model_state)
    assert not np.array_equal(given.model_state, solve(unequal.problem, name, constraint_batch_size=20).model_state)
    with pytest.raises(ValueError, match=f"constraint_batch_size of solver '{name}' must be .* got 0"):
        make_solver(name, {"constraint_batch_size": 0}, unequal.problem)


# --- limits, and ends that callbacks ask for


@each_solver
def test_max_time_ends_within_an_epoch(unequal, name, monkeypatch):
    """By a clock that goes on by a second whenever it is read: once per step."""
    ticks = count()
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    result = solve(unequal.problem, name, max_time=11.5, max_epochs=50)
    assert [record["n_iter"] for record in result.history] == [1, 2]
    assert result.history[1]["seconds"] == 13.0  # seven steps, a record, four steps and the record
    assert result.message == ""
    whole = solve(unequal.problem, name, max_epochs=2)
    assert comparable(whole.history)[0] == comparable(result.history)[0]
    assert whole.history[1]["objective"] != result.history[1]["objective"]


@each_solver
def test_stop_training_keeps_what_was_learnt(unequal, name):
    def stop(record):
        if record["n_iter"] == 2:
            raise StopTraining

    stopped, whole = solve(unequal.problem, name, callback=stop), solve(unequal.problem, name, max_epochs=2)
    np.testing.assert_array_equal(stopped.model_state, whole.model_state)
    assert comparable(stopped.history) == comparable(whole.history)
    assert (stopped.n_iter, stopped.message) == (2, "")


@each_solver
def test_stop_training_may_return_to_earlier_parameters(unequal, name):
    """Also where the method itself would draw an iterate."""
    seen = []

    def stop(record):
        seen.append(record["params"].copy())
        if len(seen) == 3:
            raise StopTraining(seen[0])

    result = solve(unequal.problem, name, callback=stop)
    np.testing.assert_array_equal(result.model_state, seen[0])
    np.testing.assert_array_equal(result.start.model_state, seen[0])
    assert not np.array_equal(seen[0], seen[2])
    assert result.constraint_values["loss_parity"] == result.history[0]["loss_parity"]


# --- going on


@each_solver
@pytest.mark.parametrize("how", ["pickled", "held"])
def test_going_on_from_a_record_is_as_if_the_run_had_not_ended(unequal, name, how):
    """Bit for bit, by a generator that began with another seed; the state may be pickled, or kept while training."""
    problem, states = unequal.problem, []

    def keep(record):
        states.append(pickle.dumps(record["state"]) if how == "pickled" else record["state"])

    whole = solve(problem, name, callback=keep, max_epochs=5)
    state = pickle.loads(states[1]) if how == "pickled" else states[1]
    assert isinstance(state, Start)
    resumed = solve(problem, name, start=state, seed=99, max_epochs=5)
    np.testing.assert_array_equal(resumed.model_state, whole.model_state)
    assert resumed.multipliers == whole.multipliers
    assert comparable(resumed.history) == comparable(whole.history)
    assert resumed.history[:2] == whole.history[:2]  # as they were, with the clock
    assert resumed.history[-1]["seconds"] > resumed.history[1]["seconds"]
    assert (resumed.objective, resumed.n_evaluations, resumed.n_iter) == (
        whole.objective,
        whole.n_evaluations,
        whole.n_iter,
    )
    again = solve(problem, name, start=state, seed=7, max_epochs=5)  # the state was not used up
    np.testing.assert_array_equal(again.model_state, whole.model_state)


@each_solver
def test_a_result_can_be_gone_on_from(unequal, name):
    first, whole = solve(unequal.problem, name, max_epochs=2), solve(unequal.problem, name, max_epochs=5)
    then = solve(unequal.problem, name, start=pickle.loads(pickle.dumps(first.start)), max_epochs=5)
    np.testing.assert_array_equal(then.model_state, whole.model_state)
    assert comparable(then.history) == comparable(whole.history)
    done = solve(unequal.problem, name, start=whole.start, max_epochs=5)  # nothing is left to do
    np.testing.assert_array_equal(done.model_state, whole.model_state)
    assert done.n_iter == 5


@each_solver
def test_a_run_that_goes_on_takes_its_own_options(unequal, name):
    first = solve(unequal.problem, name, max_epochs=2)
    options = {"learning_rate": 1e-300} | ({"constraint_rate": 1e-300} if name == "stochastic_switching" else {})
    still = solve(unequal.problem, name, start=first.start, max_epochs=4, **options)
    seen = [record["objective"] for record in still.history]
    assert seen[0] != seen[1]
    if name == "stochastic_ghost":  # its step length is a recursion, not an option, once it has begun
        assert seen[3] != seen[2] != seen[1]
    else:
        assert seen[3] == seen[2] == seen[1]


@pytest.mark.parametrize("other", ["sgd", "ssl_alm"])
def test_the_state_of_another_solver_is_a_start_without_one(unequal, other):
    first = solve(unequal.problem, other)
    then = solve(unequal.problem, "adam", start=first.start)
    plain = solve(unequal.problem, "adam", start=Start(first.model_state))
    assert then.n_iter == 4
    np.testing.assert_array_equal(then.model_state, plain.model_state)


def test_the_best_iterate_of_another_kappa_is_judged_anew(unequal):
    """The best iterate under a loose bound is not returned under a tight one."""
    data = unequal.problem.data
    wide, narrow = (replace(unequal.problem, constraints=(LossParity(k).unchecked(data),)) for k in (1.0, 0.02))
    first = solve(wide, "ssl_alm", select="best", max_epochs=3)
    assert first.constraint_values["loss_parity"] > 0.02
    then = solve(narrow, "ssl_alm", start=first.start, select="best", max_epochs=4, learning_rate=0.1)
    last = solve(narrow, "ssl_alm", start=first.start, select="last", max_epochs=4, learning_rate=0.1)
    assert last.constraint_values["loss_parity"] > 0.02
    np.testing.assert_array_equal(then.model_state, last.model_state)


# --- interruptions, and losses that are not finite


@pytest.fixture
def gradients(monkeypatch):
    """``gradients(number, event)``: from that gradient of a linear model on, ``event(gradient)`` is what comes back."""
    forward = LinearModel.forward

    def set_trap(number, event):
        asked = count(1)

        def trapped(self, params, data):
            scores, pullback = forward(self, params, data)

            def pull(cotangent):
                gradient = pullback(cotangent)
                return event(gradient) if next(asked) >= number else gradient

            return scores, pull

        monkeypatch.setattr(LinearModel, "forward", trapped)

    yield set_trap
    monkeypatch.undo()


def interrupt(*_):
    raise KeyboardInterrupt


@each_solver
@pytest.mark.parametrize("where", ["callback", "step"])
def test_an_interruption_comes_through(unequal, name, where, gradients):
    if where == "step":
        gradients(5, interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve(unequal.problem, name, callback=interrupt if where == "callback" else None)


@each_solver
def test_an_interruption_in_a_callback_keeps_the_best_model(wider, name):
    seen = []

    def interrupt_third(record):
        seen.append(dict(record))
        if record["n_iter"] == 3:
            raise KeyboardInterrupt

    result = solve(wider, name, callback=interrupt_third, keep_on_interrupt=True)
    np.testing.assert_array_equal(result.model_state, best_of(wider, seen)["params"])
    assert result.message == (
        f"training stopped in step {N_STEPS} of epoch 3: it was interrupted, and the best model so far is kept."
    )
    assert result.n_iter == 3
    assert len(result.history) == 3


def test_an_interruption_in_a_step_keeps_the_best_model(unequal, gradients):
    """The interruption is in the third step of the second epoch."""
    first = solve(unequal.problem, "sgd", max_epochs=1)
    gradients(N_STEPS + 3, interrupt)
    result = solve(unequal.problem, "sgd", keep_on_interrupt=True)
    np.testing.assert_array_equal(result.model_state, first.model_state)  # feasible, as SGD begins at equal losses
    assert first.status != "infeasible"
    assert result.message.startswith("training stopped in step 3 of epoch 2: it was interrupted")
    assert result.n_iter == len(result.history) == 1


@each_solver
def test_an_interruption_before_the_first_record_keeps_what_there_is(unequal, name, gradients):
    gradients(20, interrupt)  # the ghost takes twelve a step
    result = solve(unequal.problem, name, keep_on_interrupt=True, batch_size=1)
    assert result.history == ()
    assert np.isfinite(result.model_state).all()
    assert np.abs(result.model_state).max() > 0
    assert "of epoch 1: it was interrupted" in result.message


@each_solver
def test_a_gradient_that_is_not_finite_ends_training_at_the_last_finite_parameters(unequal, name, gradients):
    whole = solve(unequal.problem, name, max_epochs=1)
    gradients(60, lambda gradient: np.full_like(gradient, np.nan))
    result = solve(unequal.problem, name, max_epochs=20)
    assert "training stopped in step " in result.message
    assert "it met a loss that is not finite" in result.message
    assert np.isfinite(result.model_state).all()
    assert np.isfinite(result.objective)
    assert np.isfinite(result.constraint_values["loss_parity"])
    if name == "sgd":  # one gradient a step: the 60th is that of step 4 of epoch 9
        assert "in step 4 of epoch 9:" in result.message
        assert len(result.history) == 8
    if result.history:
        assert comparable(result.history[:1]) == comparable(whole.history)


@each_solver
def test_what_has_diverged_is_begun_anew(unequal, name, gradients, monkeypatch):
    gradients(60, lambda gradient: np.full_like(gradient, np.nan))
    diverged = solve(unequal.problem, name, max_epochs=20)
    monkeypatch.undo()
    assert diverged.start.solver_state is None
    then = solve(unequal.problem, name, start=diverged.start)
    assert then.message == ""
    assert then.n_iter == 4
    assert np.isfinite(then.model_state).all()


def test_too_long_steps_diverge_with_a_message(make_data, make_problem):
    data = make_data(counts=(60, 80), shift=0.8)
    problem = make_problem(data, LossParity(0.05, loss="squared").unchecked(data), loss=Squared())
    with np.errstate(all="raise"):  # nothing overflows outside of what training allows
        result = solve(problem, "sgd", learning_rate=1e6, max_epochs=50)
    assert "it met a loss that is 2.8e+88, more than a million times that of the start" in result.message
    assert "lower learning_rate" in result.message
    start = problem.fair_start(None, np.random.default_rng(0))
    np.testing.assert_array_equal(result.model_state, start[: problem.n_params])  # the only model with a sensible loss
    assert result.n_iter < 50


# --- problems of the other notions


@pytest.fixture(scope="module")
def network_problem(make_data):
    data = make_data(counts=(60, 80), shift=0.8)
    model = Perceptron(partial(mlp, hidden_layer_sizes=(4,), activation="tanh"), 3, activation="tanh")

    def make(constraint):
        return Problem(Logistic().bind(data), (constraint.unchecked(data),), data, model=model)

    return make


@each_solver
@pytest.mark.parametrize("constraint", [AUCGap(0.1), DemographicParity(0.1)], ids=["AUC gap", "demographic parity"])
def test_networks_under_constraints_of_other_notions(network_problem, name, constraint):
    problem = network_problem(constraint)
    result = solve(problem, name, max_epochs=2, batch_size=30)
    start = problem.view(FullBatch).at(problem.fair_start(None, np.random.default_rng(0)))
    (bound,) = problem.constraints
    assert result.constraint_values == {bound.name: pytest.approx(bound.metric(problem.scores(result.model_state)))}
    assert result.objective < start.objective  # four outputs that start at zero
    feasible = bound.exact(problem.scores(result.model_state)) <= bound.granularity
    assert (result.status == "infeasible") == (not feasible)
    known = [record["multipliers"] for record in result.history if record["multipliers"] is not None]
    assert len(known) in (0, len(result.history))
    assert all(len(multipliers) == len(problem.component_names) for multipliers in known)


@each_solver
@pytest.mark.parametrize("view", [Stochastic, FullBatch])
def test_a_problem_that_lacks_a_view_is_refused(make_data, make_problem, mean_gap, name, view):
    data = make_data()
    only = {Stochastic: FullBatch, FullBatch: Stochastic}[view]
    problem = make_problem(data, mean_gap(data, 0.1, only))
    with pytest.raises(IncompatibleProblem, match=f"solver '{name}' needs the view {view.__name__}, which 'mean_gap'"):
        make_solver(name, {}, problem)


@each_solver
def test_many_groups_are_bounded_through_a_centre(many_groups, name):
    """With auxiliary variables behind the parameters; batches may have fewer rows than there are groups."""
    problem = many_groups
    assert problem.constraints[0].n_aux == 1
    gentle = {"learning_rate": 0.03, "dual_rate": 0.05}
    options = {"batch_size": 16} | {"alm": gentle, "ssl_alm": gentle, "plada": {"learning_rate": 0.005}}.get(name, {})
    result = solve(problem, name, **options, max_epochs=2)
    assert result.model_state.shape == (4,)
    resumed = solve(problem, name, start=result.start, **options, max_epochs=3)
    whole = solve(problem, name, **options, max_epochs=3)
    np.testing.assert_array_equal(resumed.model_state, whole.model_state)
    start = problem.view(FullBatch).at(problem.fair_start(None, np.random.default_rng(0)))
    assert whole.objective < start.objective


def test_switching_draws_from_a_generator_of_its_own(unequal):
    """So that what is returned does not change what is visited."""
    drawn, last = (
        StochasticSwitching(max_epochs=2, output=output).solve(unequal.problem, None, np.random.default_rng(0))
        for output in ("random", "last")
    )
    assert comparable(drawn.history) == comparable(last.history)
    assert not np.array_equal(drawn.model_state, last.model_state)


def test_multipliers_of_the_result_are_those_of_the_last_record(unequal):
    result = SSLALM(max_epochs=6, dual_rate=0.5).solve(unequal.problem, None, np.random.default_rng(0))
    named = dict(zip(unequal.problem.component_names, result.history[-1]["multipliers"], strict=True))
    assert result.multipliers == {name: value for name, value in named.items() if value > 0}
    assert len(result.multipliers) >= 1


@each_solver
@pytest.mark.parametrize("rate", [1e12, 1e60, 1e200])
def test_steps_that_are_far_too_long_leave_a_sensible_model(unequal, name, rate):
    """Losses of 1e12 or 1e200 are finite, but no model."""
    rates = {"learning_rate": rate} | ({"constraint_rate": rate} if name == "stochastic_switching" else {})
    result = solve(unequal.problem, name, **rates)
    first = unequal.problem.view(FullBatch).at(unequal.problem.fair_start(None, np.random.default_rng(0)))
    assert np.isfinite(result.model_state).all()
    assert result.objective <= 1 + 2 * first.objective
    if name not in ("adam_lagrangian", "stochastic_ghost"):  # their steps are of other lengths in the end
        assert re.match(r"training stopped in step \d+ of epoch \d: it met a loss that is .* kept", result.message)
        assert result.has_diverged
        assert result.status in ("max_iter", "infeasible")
        assert result.multipliers is None
        assert result.start.solver_state is None


def test_a_run_that_diverges_late_keeps_the_last_sensible_epoch(unequal, gradients):
    """Feasible or not: the bound of the second problem is kept by nobody."""
    strict = replace(unequal.problem, constraints=(LossParity(0.0).unchecked(unequal.problem.data),))
    seen = []
    gradients(3 * N_STEPS + 2, lambda gradient: 1e30 * gradient)
    result = solve(strict, "sgd", callback=lambda record: seen.append(record["params"].copy()))
    assert len(seen) == 3
    np.testing.assert_array_equal(result.model_state, seen[2])
    assert "more than a million times that of the start; the last parameters with a sensible loss are" in result.message
