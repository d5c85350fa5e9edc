"""PLADA: every update against a restatement of the paper's algorithm, and known optima, primal and dual."""

import numpy as np
import pytest

from fairconstrained.constraints import RateGap
from fairconstrained.domains import Box
from fairconstrained.solvers import PLADA, SOLVERS, p_lagrangian
from fairconstrained.views import FullBatch

START = (1.5, -0.5)
#: Table 2 of the paper.
NETWORKS = {"learning_rate": 0.1, "slack_rate": 0.01, "beta": 0.5}


def paper(o, plane, n_steps):
    """Algorithm 1, its step k from the batch k, with the multipliers of line 6 before the steps that they enter."""
    rho = o.alpha / (1 + o.alpha * o.beta)
    theta, u, mu = np.array(START), np.zeros(2), np.zeros(2)
    for k in range(n_steps):
        batch = plane.batches[k]
        multiplier = mu + rho * (batch.values(theta) + u)
        gradient = theta - batch.target + batch.jacobian(theta).T @ multiplier
        moved = plane.project(theta - o.learning_rate * gradient)
        slack = np.minimum(np.maximum(u - o.slack_rate * multiplier, 0), o.max_slack)
        squared = ((multiplier - mu) ** 2).sum()
        gamma = min(o.gamma, rho * o.delta / (k + 1) / (squared + 1))
        theta, u, mu = moved, slack, mu + gamma * (multiplier - mu) / rho
        yield theta, u, mu, multiplier


OPTIONS = {
    "linear": PLADA(),
    "networks": PLADA(**NETWORKS),
    "others": PLADA(learning_rate=0.05, slack_rate=0.3, alpha=2.0, beta=0.7, gamma=1.0, delta=3.0, max_slack=0.5),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("domain", [None, Box(-0.7, 1.6)], ids=["plane", "box"])
def test_the_steps_are_those_of_the_paper(make_plane, options, domain):
    plane = make_plane(60, domain=domain)
    method = plane.method(options, START)
    for k, (theta, u, mu, multiplier) in enumerate(paper(options, plane, 40)):
        method.step(plane, plane)
        np.testing.assert_allclose(method.z, theta, atol=1e-12)
        np.testing.assert_allclose(method.u, u, atol=1e-12)
        np.testing.assert_allclose(method.mu, mu, atol=1e-12)
        np.testing.assert_allclose(method.multipliers, multiplier, atol=1e-12)
        assert plane.n_drawn == k + 1


def test_the_published_step_of_the_slacks_breaks_the_papers_bound_and_the_default_keeps_it(known):
    published = PLADA(**PLADA.published(known.problem))
    assert published.rho == PLADA().rho == 5
    assert PLADA().slack_rate < 1 / (3 * 5) < published.slack_rate


@pytest.fixture(scope="module")
def solved(known):
    """The options of a run, its result, and its records."""
    options, records = PLADA(max_epochs=200, learning_rate=0.02, slack_rate=0.05, delta=50.0), []
    return options, options.solve(known.problem, None, np.random.default_rng(0), records.append), records


@pytest.mark.slow
def test_known_optimum_primal_and_dual(known, solved):
    _, result, _ = solved
    np.testing.assert_allclose(result.model_state, known.params, atol=2e-3)
    assert result.objective == pytest.approx(known.objective, abs=1e-3)
    assert result.constraint_values["mean_gap"] == pytest.approx(0.05, abs=2e-3)
    multipliers = {name: value for name, value in result.multipliers.items() if value > 0.01}
    assert multipliers == {"mean_gap[second - first]": pytest.approx(known.multiplier, rel=0.05)}


def test_all_rows_or_mini_batches(make_data, make_problem):
    data = make_data(counts=(90, 120), shift=0.8)
    problem = make_problem(data, RateGap(0.02).unchecked(data))
    whole = PLADA(max_epochs=3, epoch_steps=7)
    result = whole.solve(problem, None, np.random.default_rng(0))
    assert [record["n_iter"] for record in result.history] == [1, 2, 3]
    assert result.n_evaluations == 3 * 7 + 3 + 1  # the steps, the records, and the result
    batches = PLADA(max_epochs=3, batch_size=30)
    result = batches.solve(problem, None, np.random.default_rng(0))
    assert result.n_evaluations == 3 + 3 + 1
    assert SOLVERS["plada"] is PLADA


# --- the Lagrangian, its residuals, and the history


def test_the_lagrangian_is_that_of_equation_6(known):
    """With z and the multipliers put in as they stand there, and no value is larger for other multipliers."""
    o, rng = PLADA(alpha=3.0, beta=0.4, max_slack=0.3), np.random.default_rng(0)
    theta, u, mu = rng.normal(size=known.params.size), np.array([0.2, 0.05]), np.array([-0.4, 0.7])
    point = known.problem.view(FullBatch).at(theta)
    g = point.constraints

    def equation_6(multipliers):
        z = (multipliers - mu) / o.alpha
        products = multipliers @ (g + u - z) + mu @ z
        return point.objective + products + o.alpha / 2 * z @ z - o.beta / 2 * ((multipliers - mu) ** 2).sum()

    found = p_lagrangian(known.problem, theta, u, mu, o)
    best = mu + o.alpha / (1 + o.alpha * o.beta) * (g + u)
    np.testing.assert_allclose(found.multipliers, best, atol=1e-12)
    assert found.value == pytest.approx(equation_6(best), abs=1e-12)
    assert all(equation_6(best + rng.normal(size=2)) < found.value for _ in range(20))
    assert found.dual_distance == pytest.approx(np.sqrt(((best - mu) ** 2).sum()))
    gradient = point.gradient(1.0, best)
    away = u - np.minimum(np.maximum(u - best, 0), 0.3)
    assert found.residual == pytest.approx(np.sqrt(gradient @ gradient + away @ away))
    assert found.kkt == pytest.approx(max(np.linalg.norm(gradient), *g, *-best, *np.abs(best * g)))


def test_residuals_vanish_at_the_solution_alone(known):
    point = known.problem.view(FullBatch).at(known.params)
    u, mu = np.maximum(-point.constraints, 0), np.array([0.0, known.multiplier])
    found = p_lagrangian(known.problem, known.params, u, mu, PLADA())
    assert max(found.residual, found.kkt, found.dual_distance) < 1e-5
    assert found.value == pytest.approx(known.objective, abs=1e-6)
    assert p_lagrangian(known.problem, known.params, u, np.zeros(2), PLADA()).residual > 0.01
    assert p_lagrangian(known.problem, np.zeros_like(known.params), u, mu, PLADA()).kkt > 0.01


def lagrangian_at(record, problem, options):
    """Lagrangian of the iterate of a record, which tells the same."""
    u, mu = record["slacks"], record["auxiliary_multipliers"]
    found = p_lagrangian(problem, record["params"], u, mu, options)
    assert record["p_lagrangian"] == pytest.approx(found.value)
    assert record["dual_distance"] == pytest.approx(found.dual_distance)
    np.testing.assert_allclose(record["perturbations"], (found.multipliers - mu) / options.alpha, atol=1e-12)
    return found


def test_what_the_history_has_of_the_lagrangian(known):
    options, records = PLADA(max_epochs=5), []
    options.solve(known.problem, None, np.random.default_rng(0), records.append)
    assert len(records) >= 5
    for record in records:
        lagrangian_at(record, known.problem, options)


@pytest.mark.slow
def test_the_lagrangian_settles(known, solved):
    options, _, records = solved
    found = [lagrangian_at(record, known.problem, options) for record in records[::40] + records[-1:]]
    assert found[-1].residual < 0.1 * found[0].residual
    assert records[-1]["dual_distance"] < 0.1 * records[0]["dual_distance"]


def test_numbers_for_other_components_are_refused(known):
    with pytest.raises(ValueError, match=r"slacks must have one number for each of the 2 components; got shape \(3,\)"):
        p_lagrangian(known.problem, known.params, np.zeros(3), np.zeros(2), PLADA())
    with pytest.raises(ValueError, match="auxiliary_multipliers must have one number"):
        p_lagrangian(known.problem, known.params, np.zeros(2), 0.0, PLADA())
