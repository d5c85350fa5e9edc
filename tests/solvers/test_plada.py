"""PLADA: every update against a restatement of the paper's algorithm, and known optima, primal and dual."""

import numpy as np
import pytest

from fairconstrained.constraints import RateGap
from fairconstrained.domains import Box
from fairconstrained.solvers import PLADA, SOLVERS

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


def test_defaults_are_the_published_parameters():
    o = PLADA()
    published = {"alpha": 10.0, "beta": 0.1, "gamma": 0.1, "learning_rate": 1e-3, "slack_rate": 0.1}
    assert {name: getattr(o, name) for name in published} == published


def test_known_optimum_primal_and_dual(known):
    options = PLADA(max_epochs=200, learning_rate=0.02, slack_rate=0.05, delta=50.0)
    result = options.solve(known.problem, None, np.random.default_rng(0))
    np.testing.assert_allclose(result.params, known.params, atol=2e-3)
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
