"""Bounds on AUCs by betting: powers, wealths, and the promise on every outcome of tiny samples."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import binom, multinomial

from fairconstrained.certification._auc_powers import log_powers
from fairconstrained.certification._bets import Bettor, TwoSamples, _Wealth
from fairconstrained.certification.evidence import evidence_of

KERNEL = np.array([[0.5, 0, 0], [1, 0.5, 0], [1, 1, 0.5]])


def kernel_of(above, below):
    return (above[:, None] > below) + (above[:, None] == below) / 2


@pytest.mark.parametrize(("n_above", "n_below"), [(4, 6), (6, 4), (4, 4), (1, 5)])
@pytest.mark.parametrize("n_scores", [3, 1000])
def test_powers_are_means_over_all_pairings(n_above, n_below, n_scores):
    rng = np.random.default_rng(n_above)
    above, below = rng.integers(n_scores, size=n_above), rng.integers(-1, n_scores - 1, size=n_below)
    values = kernel_of(above, below)
    values = values if n_above <= n_below else values.T
    n, m = values.shape
    for k, found in enumerate(np.exp(log_powers(above.astype(float), below.astype(float)))):
        choices = product(permutations(range(n), k), permutations(range(m), k))
        sums = sum(values[list(rows), list(columns)].prod() for rows, columns in choices)
        assert found == pytest.approx(sums / (permutations_of(n, k) * permutations_of(m, k)))


def permutations_of(n, k):
    return comb(n, k) * np.prod(np.arange(1, k + 1))


def test_wealth_is_that_of_bets_on_all_pairings():
    rng = np.random.default_rng(0)
    above, below, share, auc = rng.normal(size=4), rng.normal(size=5), 0.6, 0.7
    factors = 1 + share / auc * (kernel_of(above, below) - auc)
    mean = np.mean([factors[np.arange(4), list(columns)].prod() for columns in permutations(range(5), 4)])
    logs, slopes = _Wealth(TwoSamples(above, below), np.array([share])).at(np.log(auc))
    assert np.exp(logs) == pytest.approx(mean)
    above_it, _ = _Wealth(TwoSamples(above, below), np.array([share])).at(np.log(auc) + 1e-6)
    assert slopes == pytest.approx((above_it - logs) / 1e-6, rel=1e-4)


def test_largest_power_leaves_the_others_as_they_are():
    rng = np.random.default_rng(0)
    above, below = rng.normal(1, size=60), rng.normal(size=90).round(1)
    np.testing.assert_allclose(log_powers(above, below, 7), log_powers(above, below)[:8])
    assert np.isfinite(log_powers(rng.normal(1, size=1500), rng.normal(size=1500))).all()


def test_rows_all_on_the_wrong_side_say_nothing():
    assert log_powers(np.zeros(3), np.ones(4)).tolist() == [0.0, *[-np.inf] * 3]
    samples = TwoSamples(np.zeros(3), np.ones(4))
    assert Bettor([samples]).least_sum(0.05) == 0.0
    assert 0.2 < Bettor([samples.turned]).least_sum(0.05) < 1.0
    assert 0.0 < Bettor([samples, samples.turned]).least_sum(0.05) < 1.0


def test_the_promise_holds_for_every_outcome_of_tiny_samples():
    """Four rows with one of three scores in each of two sets, ties included."""
    n, delta = 4, 0.5
    kinds = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    rows = [np.repeat([0.0, 1.0, 2.0], kind) for kind in kinds]
    least = np.array([[Bettor([TwoSamples(one, other)]).least_sum(delta) for other in rows] for one in rows])
    rng, worst = np.random.default_rng(0), 0.0
    for shares in rng.dirichlet([0.5] * 3, size=(400, 2)):
        chances = [multinomial.pmf(kinds, n, share) for share in shares]
        worst = max(worst, float(chances[0] @ (least > shares[0] @ KERNEL @ shares[1] + 1e-9) @ chances[1]))
    assert 0.01 < worst <= delta


@pytest.mark.slow
def test_the_promise_holds_for_sums_on_every_outcome():
    """One minus an AUC plus another, of three binary rows over three; the shares of one depend on the other."""
    n, delta = 3, 0.4
    rows = [np.repeat([0.0, 1.0], [n - hits, hits]) for hits in range(n + 1)]
    pairs = [TwoSamples(one, other) for one in rows for other in rows]
    least = np.array([[Bettor([first.turned, second]).least_sum(delta) for second in pairs] for first in pairs])
    rng, worst = np.random.default_rng(0), 0.0
    for shares in rng.uniform(size=(100, 4)):
        chances = [binom.pmf(np.arange(n + 1), n, share) for share in shares]
        first, second = (np.outer(*chances[place : place + 2]).ravel() for place in (0, 2))
        total = 1 + (shares[1] - shares[0] + shares[2] - shares[3]) / 2
        worst = max(worst, float(first @ (least > total + 1e-9) @ second))
    assert 0.0 < worst <= delta


@pytest.mark.parametrize("name", ["intra_group_auc_gap", "inter_group_auc_gap"])
def test_few_positives_need_half_the_margin(name, sample):
    """1,500 rows, 6 % of them positive, a fifth of the rows in the smaller group."""
    rng, ratios = np.random.default_rng(0), []
    for _ in range(4):
        y, groups = (rng.random(1500) < 0.06).astype(int), np.where(rng.random(1500) < 0.2, "b", "a")
        taken = sample(name, {}, y, rng.normal(1.8 * y), groups)
        hoeffding, betting = (evidence_of(taken, method).upper(0.05) - taken.gap for method in ("hoeffding", "betting"))
        ratios.append(betting / hoeffding)
    assert np.mean(ratios) < 0.55


@pytest.mark.parametrize("name", ["intra_group_auc_gap", "inter_group_auc_gap"])
def test_scores_may_be_the_other_way_round(name, sample):
    """Scores such as costs, of which positives have the lower ones: no farther than by Hoeffding's inequality."""
    rng = np.random.default_rng(0)
    y, groups = (rng.random(1000) < 0.3).astype(int), np.where(rng.random(1000) < 0.3, "b", "a")
    taken = sample(name, {}, y, rng.normal(-1.3 * y), groups)
    assert evidence_of(taken, "betting").upper(0.05) < evidence_of(taken, "hoeffding").upper(0.05)


def test_order_of_rows_does_not_matter(draw, sample):
    y, scores, groups = draw(300)
    order = np.random.default_rng(0).permutation(300)
    bounds = [
        evidence_of(sample("intra_group_auc_gap", {}, *(column[rows] for column in (y, scores, groups)))).upper(0.05)
        for rows in (np.arange(300), order)
    ]
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-6)


def test_single_aucs_of_a_table(draw, sample):
    y, scores, groups = draw(200)
    evidence = evidence_of(sample("bpsn_bnsp_gap", {}, y, scores, groups))
    table = evidence.cells(0.05)
    assert evidence.method == "betting"
    assert (table["lower"] < table["estimate"]).all()
    assert (table["estimate"] < table["upper"]).all()


@pytest.mark.parametrize("name", ["group_auc_gap", "intra_group_auc_gap"])
def test_other_sample_sizes_need_no_further_bets(name, draw, sample, monkeypatch):
    y, scores, groups = draw(200)
    evidence = evidence_of(sample(name, {}, y, scores, groups))
    known = evidence.upper(0.05)
    monkeypatch.setattr(Bettor, "least_sum", None)
    assert evidence.upper(0.05, 4.0) < known
    assert evidence.sufficient_scale(0.05, 0.45) is not None
