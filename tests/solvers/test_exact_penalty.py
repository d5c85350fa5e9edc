"""The exact penalty method: its linear programs, known optima, and what it does with sigma."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, LossParity
from fairconstrained.domains import Box, L1Ball, L2Ball, NonNegative, Product
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.problem import FullBatchView, Start
from fairconstrained.solvers import ExactPenalty, Status, make_solver, near_stationarity
from fairconstrained.solvers.exact_penalty import _Model, _polyhedron


def test_known_optimum(known):
    result = ExactPenalty().solve(known.problem, None, np.random.default_rng(0))
    assert result.status == Status.OPTIMAL
    assert result.objective == pytest.approx(known.objective, abs=1e-4)
    assert result.surrogate_violation <= 1e-4
    np.testing.assert_allclose(result.model_state, known.params, atol=0.02)
    assert len(result.history) == result.n_iter


def test_a_step_and_its_record_share_an_evaluation(known):
    result = ExactPenalty().solve(known.problem, None, np.random.default_rng(0))
    objectives = [record["objective"] for record in result.history]
    n_refused = sum(one == other for one, other in pairwise(objectives))  # the record is of the iterate before the step
    assert result.n_evaluations <= result.n_iter + n_refused + 3


def test_the_groups_losses(unequal):
    result = ExactPenalty().solve(unequal.problem, None, np.random.default_rng(0))
    assert result.objective == pytest.approx(unequal.objective, abs=1e-3)
    assert result.surrogate_violation <= 1e-4


def test_sigma_grows_until_the_constraints_hold(unequal):
    result = ExactPenalty(sigma=1e-3, max_iter=150).solve(
        unequal.problem, Start(unequal.free), np.random.default_rng(0)
    )
    sigmas = [record["sigma"] for record in result.history]
    assert sigmas == sorted(sigmas)
    assert sigmas[0] == 1e-3
    assert sigmas[-1] > 0.1
    assert result.surrogate_violation <= 1e-4
    assert result.objective == pytest.approx(unequal.objective, abs=1e-3)


def test_the_penalised_function_never_grows_while_sigma_stays(known):
    result = ExactPenalty(max_iter=100).solve(known.problem, None, np.random.default_rng(0))
    phi = [(r["sigma"], r["objective"] + r["sigma"] * r["surrogate_violation"]) for r in result.history]
    decreases = [one[1] - other[1] for one, other in pairwise(phi) if one[0] == other[0]]
    assert min(decreases) >= 0
    assert max(decreases) > 1e-3


DOMAINS = [None, L1Ball(0.3), Box(-0.1, 0.2), NonNegative(), Product(((slice(0, 2), L1Ball(0.1)),))]


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_a_linear_program_minimises_the_model(known, domain):
    """No point of the domain and of the trust region has a smaller model than its solution."""
    problem = replace(known.problem, domain=domain)
    view, rng = FullBatchView(problem), np.random.default_rng(0)
    z, radius = problem.project(np.array([0.05, -0.04, 0.1, 0.02])), 0.15
    model = _Model.of(z, view.at(z))
    best = model.minimise(_polyhedron(problem), radius, 1.0, 2.0)
    assert np.abs(best - z).max() <= radius + 1e-9
    np.testing.assert_allclose(problem.project(best), best, atol=1e-9)
    others = (z + rng.uniform(-radius, radius, (2000, 4))).clip(z - radius, z + radius)
    inside = [other for other in others if np.allclose(problem.project(other), other, atol=1e-12)]
    inside += [z + (problem.project(other) - z) * t for other in others[:200] for t in (0.2, 0.5)]
    values = [model.penalised(other, 1.0, 2.0) for other in inside if np.abs(other - z).max() <= radius]
    assert len(values) > 50
    assert model.penalised(best, 1.0, 2.0) <= min(values) + 1e-9
    assert model.penalised(best, 1.0, 2.0) < model.penalised(z, 1.0, 2.0) - 1e-3


@pytest.mark.parametrize("domain", [L1Ball(0.3), Product(((slice(0, 3), Box(-0.1, 0.1)),))], ids=str)
def test_solutions_in_a_domain_are_stationary(parity_problem, domain):
    problem = replace(parity_problem(DemographicParity, 0.1, counts=(30, 40)), domain=domain)
    result = ExactPenalty(max_iter=200).solve(problem, None, np.random.default_rng(0))
    np.testing.assert_allclose(problem.project(result.model_state), result.model_state, atol=1e-12)
    assert result.surrogate_violation <= 1e-4
    assert result.n_iter < 200
    assert near_stationarity(problem, result.model_state, 2.0) <= 1e-4


def test_a_ball_is_refused(known):
    problem = replace(known.problem, domain=L2Ball(1.0))
    with pytest.raises(IncompatibleProblem, match=r"'exact_penalty' does not take the domain L2Ball\(radius=1.0\)"):
        make_solver("exact_penalty", {}, problem)
    with pytest.raises(IncompatibleProblem, match=r"L2Ball\(radius=1.0\) has curved sides, .*L1Ball, Box, NonNeg"):
        ExactPenalty().solve(problem, None, np.random.default_rng(0))


def test_auxiliary_variables_are_free(many_groups):
    """Twelve groups, in a domain that is about the parameters alone and needs further variables itself."""
    bound = LossParity(0.1).unchecked(many_groups.data)
    problem = replace(many_groups, constraints=(bound,), domain=L1Ball(0.4))
    assert problem.constraints[0].n_aux == 1
    polyhedron = _polyhedron(problem)
    assert polyhedron.lower.size == 4 + 1 + 4
    assert polyhedron.lower[4] == -np.inf
    assert polyhedron.upper[4] == np.inf
    result = ExactPenalty(max_iter=40).solve(problem, None, np.random.default_rng(0))
    assert np.abs(result.model_state).sum() <= 0.4 + 1e-9
    assert result.surrogate_violation <= 1e-4
    assert result.objective < FullBatchView(problem).at(problem.start(np.zeros(4))).objective - 0.01
