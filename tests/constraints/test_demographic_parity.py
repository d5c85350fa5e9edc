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
        assert violation == pytest.approx(exact, abs=1e-8)
    assert 3 < sum(signs) < 57


def eq_21(scores, groups, interval, kappa):
    """Left side of eq. 21 minus its right side, for both orders of two groups; sigma is the ramp of Example D.3."""
    alpha, beta = interval
    rates = [np.mean(np.clip(scores[groups == k] + 0.5, 0, 1)) for k in (0, 1)]
    kept = [min(rate, beta) - min(rate, alpha) for rate in rates]
    return np.array([kept[0] - kept[1], kept[1] - kept[0]]) - kappa * (beta - alpha)


@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.05, 0.3), (0.6, 0.9)])
def test_the_solvers_of_the_paper_get_eq_21(make_data, draw_scores, evaluate, interval):
    """Also where the rates lie on both sides of the interval, so that the gap is one whatever they are."""
    data = make_data(counts=(25, 40))
    constraint = DemographicParity(0.1, interval=interval, surrogate="ramp", surrogate_width=1.0).unchecked(data)
    largest = []
    for seed in range(40):
        scores = 1.5 * draw_scores(data, seed, shift=0.1 * (seed - 20))
        expected = eq_21(scores, data.codes, interval, 0.1)
        np.testing.assert_allclose(evaluate(constraint, "values", scores), expected, atol=1e-12)
        parts = evaluate(constraint, "plus", scores) - evaluate(constraint, "minus", scores)
        np.testing.assert_allclose(parts, expected, atol=1e-12)
        largest.append(expected.max())
    assert max(largest) == pytest.approx(0.9 * (interval[1] - interval[0])) or interval == (0.0, 1.0)
    assert min(largest) < 0


def test_restoring_slopes_add_the_distance_to_the_interval(make_data, evaluate):
    """Rates of 0 and 1 around (0.05, 0.3): the gap is one, and 0.05 is the shorter way to ranks that count."""
    data = make_data(counts=(20, 30))
    constraint = DemographicParity(0.1, interval=(0.05, 0.3), surrogate="ramp", surrogate_width=1.0).unchecked(data)
    scores = np.where(data.codes == 0, 9.0, -9.0)
    np.testing.assert_allclose(evaluate(constraint, "values", scores), [0.225, -0.275], atol=1e-12)
    np.testing.assert_allclose(
        evaluate(constraint.with_restoring_slopes(), "values", scores), [0.275, -0.275], atol=1e-12
    )


def test_surrogate_of_the_rank_gap_is_sufficient(data, draw_scores, evaluate):
    constraint = DemographicParity(0.2, interval=(0.25, 0.7), normalize=False, surrogate_width=1e-6).unchecked(data)
    held = 0
    for seed in range(60):
        scores = draw_scores(data, seed, shift=0.02 * (seed - 30)) - 0.5
        if evaluate(constraint, "values", scores).max() <= 0:
            held += 1
            assert constraint.exact(scores) <= 1e-9
    assert held > 5


def test_a_stricter_constraint_implies_it(make_data, draw_scores, evaluate):
    data, pieces = make_data(counts=(25, 40)), [(0.1, 0.3), (0.5, 0.8)]
    for interval, length in (((0.05, 0.3), 0.25), (pieces, 0.5)):
        constraint = DemographicParity(0.3, interval=interval, surrogate_width=1e-6).unchecked(data)
        narrower = DemographicParity(0.3 * length, interval=interval, normalize=False).unchecked(data)
        stricter = constraint.stricter()
        assert (stricter.kappa, stricter.normalize) == (narrower.kappa, False)
        held = [s for seed in range(60) if stricter.exact(s := draw_scores(data, seed, 0.02 * (seed - 30))) <= 0]
        assert held
        held = [s for s in held if evaluate(stricter, "values", s).max() <= 0]
        assert held
        assert all(constraint.exact(s) <= 1e-9 for s in held)


def test_nothing_is_stricter_where_rates_have_slopes_everywhere(make_data):
    data = make_data(counts=(25, 40))
    assert DemographicParity(0.3).unchecked(data).stricter() is None
    assert DemographicParity(0.3, interval=(0.1, 0.4), normalize=False).unchecked(data).stricter() is None
    by_group = {"a": (0.0, 0.3), "b": (0.1, 0.6)}
    assert DemographicParity(0.3, interval=by_group).unchecked(data).stricter() is None
    # a row counts more than a bound of 0.003 and the finest resolution allow
    assert DemographicParity(0.01, interval=(0.1, 0.4)).unchecked(data).stricter() is None
