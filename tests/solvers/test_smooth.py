"""L-BFGS without constraints: where a run ends that gains next to nothing."""

from types import SimpleNamespace

import numpy as np
import pytest

from fairconstrained.solvers.smooth import Stop, minimise


class LeastDeviations:
    """Mean absolute deviations beyond one: slopes jump near the minimum, so they never become small."""

    def __init__(self):
        generator = np.random.default_rng(0)
        self.X, self.y = generator.normal(size=(300, 20)), generator.standard_cauchy(300)
        coordinates = SimpleNamespace(to_params=np.copy, from_params=np.copy, pull=np.copy)
        self.problem = SimpleNamespace(domain=None, n_params=20, penalised_coordinates=coordinates)
        self.n_evaluations = 0

    def at(self, z):
        self.n_evaluations += 1
        return z

    def value_and_gradient(self, z):
        errors = self.X @ z - self.y
        is_far = np.abs(errors) > 1
        return (is_far * (np.abs(errors) - 1)).mean(), self.X.T @ (is_far * np.sign(errors)) / 300


def test_a_run_ends_where_fifty_iterations_gain_next_to_nothing():
    ended, settled = {}, {}
    for gain in (0.0, 1e-4):
        view = LeastDeviations()
        z, settled[gain] = minimise(view, view.value_and_gradient, np.zeros(20), Stop(2000, 1e-3, gain))
        ended[gain] = view.value_and_gradient(z)[0], view.n_evaluations
    assert ended[1e-4][1] < ended[0.0][1] / 2
    assert ended[1e-4][0] == pytest.approx(ended[0.0][0], rel=1e-4)
    assert settled[1e-4]
