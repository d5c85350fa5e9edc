"""IDCA and the switching subgradient method against a few lines of NumPy that follow the paper's equations alone."""

import numpy as np
import pytest
import torch
from scipy.special import expit

from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.solvers import IDCA, SwitchingSubgradient

INTERVAL, KAPPA, ALPHA = (0.2, 0.7), 0.2, 0.01
EPS = 1e-3


def ramp(x):
    return np.clip(x + 0.5, 0, 1)


def above(x):
    """Subgradient of ``max(x, 0)``."""
    return (x > 0).astype(float)


class Restated:
    """The functions of a problem of two groups at ``z = (w, b, theta)`` with their subgradients, one row each."""

    def __init__(self, problem):
        data = problem.data
        self.X = np.hstack([np.vstack(data.blocks), np.ones((data.n_samples, 1))])
        self.y, self.groups = data.y.numpy(), data.codes
        self.n_params = problem.n_params

    def objective(self, z):
        w = z[: self.n_params]
        loss = np.logaddexp(0, -self.y * (self.X @ w)).mean() + ALPHA / 2 * (w[:-1] ** 2).sum()
        slope = -self.y * expit(-self.y * (self.X @ w)) @ self.X / len(self.y) + ALPHA * np.append(w[:-1], 0.0)
        return loss, np.concatenate([slope, np.zeros(z.size - self.n_params)])

    def mean_of(self, z, group, kink, theta):
        """The mean of ``max(h - theta - kink, 0)`` over a group, and its subgradient."""
        rows = self.X[self.groups == group]
        at = 0.0 if theta is None else z[self.n_params + theta]
        shifted = rows @ z[: self.n_params] - at - kink
        slope = np.zeros_like(z)
        slope[: self.n_params] = above(shifted) @ rows / len(rows)
        if theta is not None:
            slope[self.n_params + theta] = -above(shifted).mean()
        return np.maximum(shifted, 0).mean(), slope

    def split_rate(self, z, group, theta):
        """Example D.3: the ramp's mean as a difference of two convex functions."""
        return self.mean_of(z, group, -0.5, theta), self.mean_of(z, group, 0.5, theta)


class Statistical(Restated):
    """Eq. 15: ``p <= mean ramp(h - theta_p) <= p + kappa (beta - alpha)``; levels, then groups, then sides."""

    def __init__(self, problem):
        super().__init__(problem)
        (alpha, beta), n = INTERVAL, problem.constraints[0].n_aux
        self.length = KAPPA * (beta - alpha)
        # n windows of that length, whose centres are spread over the interval
        self.p = alpha + (np.arange(n) + 0.5) / n * (beta - alpha - self.length)

    def start(self):
        return np.concatenate([np.zeros(self.n_params), -(self.p + self.length / 2 - 0.5)])

    def parts(self, z):
        """Convex and concave part of every component; each with subgradients."""
        found = []
        for level, p in enumerate(self.p):
            for group in (0, 1):
                (plus, d_plus), (minus, d_minus) = self.split_rate(z, group, level)
                found += [((p + minus, d_minus), (plus, d_plus))]
                found += [((plus - p - self.length, d_plus), (minus, d_minus))]
        return found


class Demographic(Restated):
    """Eq. 21, ``min(m, beta) - min(m, alpha)`` of one group's mean rate m minus that of the other; Example D.5.

    With ``m = plus - minus``, ``min(m, b)`` is ``plus + b`` minus the convex ``max(plus, minus + b)``.
    """

    def start(self):
        return np.zeros(self.n_params)

    def parts(self, z):
        (alpha, beta), found = INTERVAL, []
        sides = []
        for group in (0, 1):
            (plus, d_plus), (minus, d_minus) = self.split_rate(z, group, None)
            tops = []
            for end in (alpha, beta):
                larger = plus >= minus + end
                tops.append((plus if larger else minus + end, d_plus if larger else d_minus))
            sides.append(tops)
        for first, second in ((0, 1), (1, 0)):
            (low_1, dl_1), (high_1, dh_1) = sides[first]
            (low_2, dl_2), (high_2, dh_2) = sides[second]
            # beta - alpha and plus cancel, so that the maxima at alpha and at beta are left
            convex = (low_1 + high_2 - KAPPA * (beta - alpha), dl_1 + dh_2)
            concave = (high_1 + low_2, dh_1 + dl_2)
            found.append((convex, concave))
        return found


def switching(evaluate, z, steps):
    """Algorithm 2: ``evaluate`` returns the objective and the constraints, each with its subgradient."""
    best, value = z, np.inf
    for _ in range(steps):
        (f, df), constraints = evaluate(z)
        g, dg = max(constraints, key=lambda found: found[0])
        if g <= EPS:
            if f < value:
                best, value = z, f
            z = z - EPS / (df @ df) * df
        else:
            z = z - g / (dg @ dg) * dg
    return best


def linearised(restated, w):
    """Eq. 31: the concave parts as tangents at w."""
    tangents = [concave for _, concave in restated.parts(w)]

    def evaluate(z):
        constraints = [
            (plus - value - slope @ (z - w), d_plus - slope)
            for ((plus, d_plus), _), (value, slope) in zip(restated.parts(z), tangents, strict=True)
        ]
        return restated.objective(z), constraints

    return evaluate


CASES = pytest.mark.parametrize(
    ("notion", "restate", "levels"),
    [(StatisticalParity, Statistical, {"n_levels": 3}), (DemographicParity, Demographic, {})],
)


@pytest.fixture
def problem_of(parity_problem):
    return lambda notion, levels: parity_problem(
        notion, KAPPA, interval=INTERVAL, surrogate="ramp", surrogate_width=1.0, **levels
    )


@CASES
def test_values_are_those_of_the_equations(problem_of, notion, restate, levels):
    problem = problem_of(notion, levels)
    restated, rng = restate(problem), np.random.default_rng(0)
    np.testing.assert_allclose(problem.fair_start(None, rng), restated.start(), atol=1e-12)
    for _ in range(5):
        z = restated.start() + rng.normal(size=restated.start().size) * 3
        difference = [plus - minus for (plus, _), (minus, _) in restated.parts(z)]
        scores = restated.X @ z[: problem.n_params]
        arrays = scores, z[problem.n_params :]
        values = problem.constraints[0].values(*(torch.from_numpy(array.copy()) for array in arrays))
        np.testing.assert_allclose(values, difference, atol=1e-12)


@CASES
def test_idca(problem_of, notion, restate, levels):
    problem = problem_of(notion, levels)
    restated = restate(problem)
    z = restated.start()
    for _ in range(2):
        z = switching(linearised(restated, z), z, 40)
    found = IDCA(max_outer=2, max_inner=40, eps=EPS).solve(problem, None, np.random.default_rng(0))
    assert np.abs(z[: problem.n_params]).max() > 0.01
    np.testing.assert_allclose(found.model_state, z[: problem.n_params], atol=1e-9)


@CASES
def test_switching_subgradient(problem_of, notion, restate, levels):
    problem = problem_of(notion, levels)
    restated = restate(problem)

    def evaluate(z):
        parts = restated.parts(z)
        return restated.objective(z), [(plus - minus, dp - dm) for (plus, dp), (minus, dm) in parts]

    z = switching(evaluate, restated.start(), 60)
    found = SwitchingSubgradient(max_iter=60, eps=EPS).solve(problem, None, np.random.default_rng(0))
    assert np.abs(z[: problem.n_params]).max() > 0.01
    np.testing.assert_allclose(found.model_state, z[: problem.n_params], atol=1e-9)
