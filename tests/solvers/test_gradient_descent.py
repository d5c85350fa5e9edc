"""SGD, Adam and the penalty method: their steps, and the optima that they know and do not know."""

import numpy as np
import pytest
import torch

from fairconstrained.data import FairData
from fairconstrained.domains import Box
from fairconstrained.objectives import Logistic, Squared
from fairconstrained.solvers import SGD, Adam, Status, StochasticPenalty
from fairconstrained.solvers.gradient_descent import AdamDirection
from fairconstrained.views import FullBatch

START = (1.5, -0.5)


# --- the updates


@pytest.mark.parametrize("domain", [None, Box(-0.7, 1.6)], ids=["plane", "box"])
def test_sgd_steps(make_plane, domain):
    plane = make_plane(20, domain=domain)
    method, x = plane.method(SGD(learning_rate=0.3), START), np.array(START)
    for k in range(20):
        x = plane.project(x - 0.3 * (x - plane.batches[k].target))
        method.step(plane, plane)
        np.testing.assert_allclose(method.z, x, atol=1e-12)
        assert plane.n_drawn == k + 1
    assert method.multipliers is None


@pytest.mark.parametrize("weight", [0.0, 0.7])
def test_penalty_steps_see_the_gradients_of_what_is_violated(make_plane, weight):
    plane = make_plane(40)
    method, x = plane.method(StochasticPenalty(learning_rate=0.2, weight=weight), START), np.array(START)
    patterns = set()
    for k in range(40):
        batch = plane.batches[k]
        violated = batch.values(x) > 0
        patterns.add(tuple(violated.tolist()))
        gradient = x - batch.target
        for i in np.flatnonzero(violated):
            gradient = gradient + weight * batch.jacobian(x)[i]
        x = x - 0.2 * gradient
        method.step(plane, plane)
        np.testing.assert_allclose(method.z, x, atol=1e-12)
    assert len(patterns) >= 3  # none, one, or both of the constraints


def test_a_constraint_that_just_holds_is_not_penalised(make_plane):
    plane = make_plane([(0.0, 0.0)], radius=0.5, bound=1.0)  # |z| = 1 is on the disk
    method = plane.method(StochasticPenalty(learning_rate=0.1, weight=5.0), (1.0, 0.0))
    method.step(plane, plane)
    np.testing.assert_allclose(method.z, [0.9, 0.0])


@pytest.mark.parametrize("learning_rate", [0.001, 0.1])
def test_adam_is_that_of_torch(make_plane, learning_rate):
    plane = make_plane(50)
    method = plane.method(Adam(learning_rate=learning_rate), START)
    theirs = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([theirs], lr=learning_rate)
    for batch in plane.batches:
        theirs.grad = theirs.detach() - torch.from_numpy(batch.target)
        optimizer.step()
        method.step(plane, plane)
        np.testing.assert_allclose(method.z, theirs.detach().numpy(), rtol=0, atol=1e-12)


def test_adam_forgets_slowly_and_survives_zeros():
    direction, theirs = AdamDirection(3), torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer, rng = torch.optim.Adam([theirs], lr=1.0), np.random.default_rng(0)
    for k in range(200):
        gradient = rng.normal(size=3) * np.array([1e-6, 1.0, 1e6]) if k % 3 else np.zeros(3)
        before = theirs.detach().clone()
        theirs.grad = torch.from_numpy(gradient)
        optimizer.step()
        np.testing.assert_allclose(direction.of(gradient), (before - theirs.detach()).numpy(), atol=1e-9)


# --- optima


def free_optimum(problem):
    """Newton's method on the objective alone, its Hessian by differences of gradients."""
    view, w = problem.without_constraints().view(FullBatch), np.zeros(problem.n_params)

    def gradient(w):
        return view.at(w).gradient(1.0, np.empty(0))

    for _ in range(20):
        columns = [(gradient(w + e) - gradient(w - e)) / 2e-5 for e in np.eye(w.size) * 1e-5]
        w = w - np.linalg.solve(np.stack(columns), gradient(w))
    assert np.abs(gradient(w)).max() < 1e-10
    return w, view.at(w).objective


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=["squared", "logistic"])
@pytest.mark.parametrize(("solver", "learning_rate"), [(SGD, 0.2), (Adam, 0.05)], ids=["sgd", "adam"])
def test_unconstrained_optimum_from_all_rows(make_data, make_problem, mean_gap, loss, solver, learning_rate):
    """The constraint is there, and violated, and only reported."""
    data = make_data(counts=(40, 60), weighted=True, shift=0.8)
    problem = make_problem(data, mean_gap(data, 0.01), loss=loss)
    optimum, objective = free_optimum(problem)
    options = solver(learning_rate=learning_rate, max_epochs=400, batch_size=data.n_samples)
    result = options.solve(problem, None, np.random.default_rng(0))
    np.testing.assert_allclose(result.model_state, optimum, atol=1e-3)
    assert result.objective == pytest.approx(objective, abs=1e-5)
    assert result.constraint_values["mean_gap"] > 0.3
    assert result.status == Status.INFEASIBLE
    assert result.multipliers is None


@pytest.mark.slow
@pytest.mark.parametrize("balance", [0.0, 1.0])
@pytest.mark.parametrize("solver", [SGD, Adam])
def test_unconstrained_optimum_from_mini_batches(make_data, make_problem, solver, balance):
    """Weighted rows and groups of unequal size: the mean of the iterates shows that batches are without bias."""
    drawn = make_data(counts=(30, 90), shift=0.8)
    y = np.where(drawn.codes == 0, -drawn.y.numpy(), drawn.y.numpy())  # the groups want opposite slopes

    def problem_with(weights):
        data = FairData.from_arrays(drawn.X, y, drawn.codes, drawn.labels, weights)
        return make_problem(data, loss=Squared(), alpha=0.05)

    weights = np.where(y > 0, 4.0, 1.0)
    problem = problem_with(weights)
    optimum, _ = free_optimum(problem)
    others = [None, weights * np.where(drawn.codes == 0, 3.0, 1.0)]  # without weights, and of groups of equal size
    # what the tolerance below has to tell apart
    assert all(np.abs(optimum - free_optimum(problem_with(other))[0]).max() > 0.09 for other in others)
    iterates = []
    solver(max_epochs=150, batch_size=12, learning_rate=0.02, balance=balance).solve(
        problem, None, np.random.default_rng(2), lambda record: iterates.append(record["params"].copy())
    )
    np.testing.assert_allclose(np.mean(iterates[20:], axis=0), optimum, atol=0.03)


@pytest.mark.slow
def test_the_penalty_is_exact_where_its_weight_exceeds_the_multiplier(known):
    """With all rows in every step: near the constrained optimum above the multiplier, beyond kappa below it."""
    n = known.problem.data.n_samples
    objective = known.problem.without_constraints().view(FullBatch)
    for weight in (known.multiplier / 2, known.multiplier * 3):
        iterates = []
        StochasticPenalty(max_epochs=500, batch_size=n, learning_rate=0.1, weight=weight).solve(
            known.problem, None, np.random.default_rng(0), lambda r, to=iterates: to.append(r["params"].copy())
        )
        mean = np.mean(iterates[300:], axis=0)
        gap = known.problem.constraints[0].metric(known.problem.scores(mean))
        if weight > known.multiplier:
            np.testing.assert_allclose(mean, known.params, atol=0.02)
            assert gap == pytest.approx(0.05, abs=0.02)
            assert objective.at(mean).objective == pytest.approx(known.objective, abs=0.002)
        else:
            assert gap > 0.1


def test_defaults():
    assert (SGD().learning_rate, SGD().batch_size, SGD().balance) == (0.01, 8, 0.0)
    assert (Adam().learning_rate, Adam().batch_size, Adam().balance) == (0.001, 256, 0.0)
    assert (StochasticPenalty().weight, StochasticPenalty().balance) == (1.0, 1.0)
