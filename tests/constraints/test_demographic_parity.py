"""DemographicParity: its components, and the surrogate in the limit against the exact metric."""

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity

each_surrogate = pytest.mark.parametrize("surrogate", ["logistic", "ramp", "smoothstep"])


@pytest.fixture(scope="module")
def data(make_data):
    return make_data(counts=(25, 20, 40), weighted=True)


def test_components_are_the_ordered_pairs(data):
    assert DemographicParity(0.2).unchecked(data).component_names == (
        "demographic_parity[a - b]",
        "demographic_parity[a - c]",
        "demographic_parity[b - a]",
        "demographic_parity[b - c]",
        "demographic_parity[c - a]",
        "demographic_parity[c - b]",
    )
    assert DemographicParity(0.2).unchecked(data).n_aux == 0


@each_surrogate
def test_narrow_surrogate_on_the_whole_interval_is_the_metric(data, draw_scores, evaluate, surrogate):
    constraint = DemographicParity(0.2, threshold=0.3, surrogate=surrogate, surrogate_width=1e-6).unchecked(data)
    for seed in range(8):
        scores = draw_scores(data, seed, shift=0.2 * seed)
        values = evaluate(constraint, "values", scores)
        assert values.max() == pytest.approx(constraint.exact(scores), abs=1e-9)
        rates = [data.group_weights.numpy()[rows] @ (scores[rows] > 0.3) for rows in data.slices]
        pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
        np.testing.assert_allclose(values, [rates[a] - rates[b] - 0.2 for a, b in pairs], atol=1e-9)


@each_surrogate
@pytest.mark.parametrize("interval", [(0.0, 0.3), (0.25, 0.7), (0.6, 1.0)])
def test_narrow_surrogate_has_the_sign_of_the_exact_constraint(data, draw_scores, evaluate, surrogate, interval):
    constraint = DemographicParity(0.3, interval=interval, surrogate=surrogate, surrogate_width=1e-6).unchecked(data)
    signs = []
    for seed in range(60):
        scores = draw_scores(data, seed, shift=0.02 * (seed - 30)) - 0.5
        violation = evaluate(constraint, "values", scores).max() / constraint.scale
        exact = constraint.exact(scores)
        signs.append(exact > 0)
        assert (violation > 1e-9) == (exact > 1e-9)
        if exact < 1 - 0.3:  # there is no interval between two rates, so nothing is added
            assert violation == pytest.approx(exact, abs=1e-8)
    assert 3 < sum(signs) < 57


def test_surrogate_of_the_rank_gap_is_sufficient(data, draw_scores, evaluate):
    constraint = DemographicParity(0.2, interval=(0.25, 0.7), normalize=False, surrogate_width=1e-6).unchecked(data)
    held = 0
    for seed in range(60):
        scores = draw_scores(data, seed, shift=0.02 * (seed - 30)) - 0.5
        if evaluate(constraint, "values", scores).max() <= 0:
            held += 1
            assert constraint.exact(scores) <= 1e-9
    assert held > 5
