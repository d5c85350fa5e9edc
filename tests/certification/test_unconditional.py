"""Exact bounds on differences of rates: by enumeration, by brute force, and against intervals of both rates."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import binom, norm

from fairconstrained.certification._binomial import binomial_ends
from fairconstrained.certification._unconditional import difference_upper
from fairconstrained.certification.evidence import evidence_of


@pytest.mark.parametrize("counts", [(5, 5, 5), (3, 8), (8, 3), (1, 12)])
def test_unconditional_bounds_hold_exactly(counts, sample):
    """All outcomes of groups of few rows, for rates on a grid: the bound fails with at most delta."""
    delta = 0.2
    outcomes = np.array(list(product(*(range(n + 1) for n in counts))))
    known = {}
    for a, b in permutations(range(len(counts)), 2):
        for hits in product(range(counts[a] + 1), range(counts[b] + 1)):
            known[a, b, hits] = difference_upper(hits, (counts[a], counts[b]), delta)
    bound = np.array(
        [max(known[a, b, (row[a], row[b])] for a, b in permutations(range(len(counts)), 2)) for row in outcomes]
    )
    chosen = outcomes.shape[0] // 3
    predicted = np.concatenate([np.repeat([1, 0], [k, n - k]) for k, n in zip(outcomes[chosen], counts, strict=True)])
    groups = np.repeat(list("abc")[: len(counts)], counts)
    taken = sample("independence_gap", {}, np.append(predicted[1:], 1 - predicted[1]), predicted - 0.5, groups)
    assert evidence_of(taken).upper(delta) == pytest.approx(bound[chosen])
    worst = 0.0
    for rates in product(np.linspace(0, 1, 21 if len(counts) == 2 else 11), repeat=len(counts)):
        failed = bound < np.ptp(rates) - 1e-12
        worst = max(worst, float(binom.pmf(outcomes, counts, rates).prod(axis=1)[failed].sum()))
    assert 0.05 < worst <= delta


@pytest.mark.parametrize(
    ("hits", "counts", "delta"),
    [
        ((5, 3), (9, 14), 0.1),
        ((11, 0), (12, 3), 0.05),
        ((100, 50), (100, 100), 0.2),
        ((1, 38), (30, 40), 0.1),  # the bound is negative
    ],
)
def test_unconditional_bounds_against_all_rates_by_brute_force(hits, counts, delta):
    """The largest difference that is not rejected, over a fine grid of both rates, is never above the bound."""
    (k, m), (n, count) = hits, counts
    rates = np.linspace(0, 1, 401)
    pmf_a, pmf_b = (
        binom.pmf(np.arange(n + 1), n, rates[:, None]),
        binom.pmf(np.arange(count + 1), count, rates[:, None]),
    )
    small = np.arange(n + 1)[:, None] / n - np.arange(count + 1) / count <= k / n - m / count + 1e-12
    probability = pmf_a @ small @ pmf_b.T
    low, high = binomial_ends(np.array([k, m]), np.array([n, count]), 0.05 * delta / 4)
    likely = ((rates >= low[0]) & (rates <= high[0]))[:, None] & (rates >= low[1]) & (rates <= high[1])
    differences = rates[:, None] - rates
    expected = differences[likely & (probability > 0.95 * delta)].max()
    found = difference_upper((k, m), (n, count), delta)
    assert expected <= found <= expected + (high[1] - low[1]) / 100 + 0.005
    # and the other way round, which for groups of one size has the grid on the other rate
    assert difference_upper((count - m, n - k), (count, n), delta) == pytest.approx(found, abs=0.003 * (n == count))


def test_unconditional_bounds_are_narrower_than_two_intervals():
    for hits, counts in (((700, 228), (1400, 600)), ((90, 8), (180, 20)), ((140, 60), (1400, 600))):
        low, high = binomial_ends(np.array(hits), np.array(counts), 0.025)
        rates = np.array(hits) / counts
        wald = norm.ppf(0.95) * np.sqrt((rates * (1 - rates) / counts).sum())
        margin = difference_upper(hits, counts, 0.05) - (rates[0] - rates[1])
        assert wald < margin < 0.75 * (high[0] - low[1] - (rates[0] - rates[1]))


def test_of_very_many_rows_the_bound_is_that_of_two_normal_intervals():
    count = 20_000_000
    margin = norm.isf(0.025) * (np.sqrt(0.5 * 0.5 / count) + np.sqrt(0.3 * 0.7 / count))
    found = difference_upper((0.5 * count, 0.3 * count), (count, count), 0.05)
    assert found - 0.2 == pytest.approx(margin, rel=1e-3)


def test_beyond_many_rows_the_margin_falls_with_their_root(sample):
    """From 20,000 rows in the smaller of two groups of 50 and 80."""
    groups, predicted = np.repeat(["a", "b"], [50, 80]), np.repeat([1, 0, 1, 0], [30, 20, 24, 56])
    evidence = evidence_of(sample("independence_gap", {}, predicted, predicted - 0.5, groups), "unconditional")
    assert evidence.gap == pytest.approx(0.3)
    margins = [evidence.upper(0.05, scale) - 0.3 for scale in (400, 1600, 1e10)]
    assert margins[0] == pytest.approx(norm.isf(0.05) * np.sqrt(0.24 / 20_000 + 0.21 / 32_000), rel=0.1)
    np.testing.assert_allclose(margins[1:], [margins[0] / 2, margins[0] / 5000])
