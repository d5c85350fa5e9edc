"""The minority's share and the parity pair, by hand and by their bounds."""

import numpy as np
import pytest
from scipy.special import expit

from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import independence_gap, minority_share, parity_pair

SCORES = np.array([1.0, 2.0, -1.0, 0.5, -3.0, 0.1])
GROUPS = np.array(["a", "b", "a", "b", "b", "c"])


def test_minority_share_by_hand():
    assert minority_share(None, SCORES, sensitive_features=GROUPS, minority="a") == 1 / 4
    smooth = minority_share(None, SCORES, sensitive_features=GROUPS, minority="b", rate="sigmoid")
    assert smooth == pytest.approx(expit(SCORES[[1, 3, 4]]).sum() / expit(SCORES).sum())
    assert sum(minority_share(None, SCORES, sensitive_features=GROUPS, minority=g) for g in "abc") == pytest.approx(1)


def test_weights_count_rows_several_times():
    weights = np.array([1, 2, 3, 1, 1, 2])
    repeated = np.repeat(SCORES, weights), np.repeat(GROUPS, weights)
    for rate in ("indicator", "sigmoid"):
        one = minority_share(None, SCORES, sensitive_features=GROUPS, minority="b", sample_weight=weights, rate=rate)
        other = minority_share(None, repeated[0], sensitive_features=repeated[1], minority="b", rate=rate)
        assert one == pytest.approx(other)
        one = parity_pair(None, SCORES, sensitive_features=GROUPS, sample_weight=weights, rate=rate, beta=0.5)
        assert one == pytest.approx(parity_pair(None, repeated[0], sensitive_features=repeated[1], rate=rate, beta=0.5))


def test_nobody_is_positive():
    assert minority_share(None, -np.abs(SCORES), sensitive_features=GROUPS, minority="c") == 1.0


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_parity_pair_by_hand(beta):
    rates = {"a": 1 / 2, "b": 2 / 3, "c": 1.0}
    largest = max(rates[a] + beta * (1 - rates[b]) for a in rates for b in rates if a != b)
    assert parity_pair(None, SCORES, sensitive_features=GROUPS, beta=beta) == pytest.approx(largest)


def test_parity_pair_is_one_more_than_the_gap():
    gap = independence_gap(None, SCORES > 0, sensitive_features=GROUPS)
    assert parity_pair(None, SCORES, sensitive_features=GROUPS) == pytest.approx(1 + gap)
    with pytest.warns(FairnessWarning, match="only one group, 'a', so there is nothing to compare"):
        assert np.isnan(parity_pair(None, SCORES, sensitive_features=np.repeat("a", 6)))


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        (minority_share, {"minority": "d"}, r"minority must be one of the groups \[.*\], got 'd'"),
        (minority_share, {"minority": None}, r"minority must be one of the groups \[.*\], got None"),
        (minority_share, {"minority": "a", "rate": "hinge"}, "rate must be one of"),
        (parity_pair, {"beta": 0.0}, "beta must be positive"),
        (parity_pair, {"rate": "step"}, "rate must be one of"),
    ],
)
def test_bad_input(metric, options, message):
    with pytest.raises(ValueError, match=message):
        metric(None, SCORES, sensitive_features=GROUPS, **options)
