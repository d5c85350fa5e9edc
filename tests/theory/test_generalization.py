"""The bound on new data against arithmetic done by hand, and against samples from a known population."""

from math import e, log, sqrt

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from fairconstrained.metrics import partial_statistical_parity_gap
from fairconstrained.theory import generalization_bound, objective_bound, rows_near_thresholds


def deviation(n, vc_dim, events, delta):
    """E(n) of Appendix F, with ``events`` for the number of levels times groups."""
    return sqrt(8 * vc_dim * (log(n) + 1) / n) + sqrt(2 * log(4 * events / delta) / n)


def test_round_numbers():
    # delta such that 4 |I| |G| / delta = e^2, and a group of one row: E = sqrt(8 * 2) + sqrt(2 * 2)
    bound = generalization_bound([1, 1], vc_dim=2, n_levels=1, delta=8 / e**2 * 0.5, interval=(0.5, 1.0))
    assert bound.estimation == pytest.approx(2 * (4 + sqrt(2 * (2 + log(2)))))
    assert bound.discretization == 1.0


def test_three_terms_of_the_worst_group():
    bound = generalization_bound(
        {"a": 4000, "b": 1000, "c": 9000},
        vc_dim=5,
        n_levels=10,
        delta=0.1,
        interval=(0.05, 0.3),
        n_near={"c": 90, "b": 50, "a": 100},
        margin=0.02,
    )
    assert bound.group == "b"
    assert bound.discretization == pytest.approx(0.1)
    assert bound.surrogate == pytest.approx((0.02 + 50 / 1000) / 0.25)
    assert bound.estimation == pytest.approx(deviation(1000, 5, events=10 * 3, delta=0.1) / 0.25)
    assert bound.total == pytest.approx(bound.discretization + bound.surrogate + bound.estimation)


def test_the_worst_group_is_that_of_the_sum():
    # The smaller group is worse in E, but the surrogate misjudges nearly all rows of the other.
    bound = generalization_bound([1000, 1200], vc_dim=1, n_levels=10, n_near=[0, 1100], margin=0.1)
    assert bound.group == 1
    assert bound.surrogate == pytest.approx(0.1 + 1100 / 1200)
    assert bound.estimation == pytest.approx(deviation(1200, 1, events=20, delta=0.05))


def test_an_exact_constraint_leaves_the_estimation_error():
    bound = generalization_bound([500, 800], vc_dim=3)
    assert bound.discretization == bound.surrogate == 0
    # uniform over thresholds already: no union over levels
    assert bound.total == pytest.approx(deviation(500, 3, events=2, delta=0.05))


def test_sizes_as_array_series_or_dict():
    sizes = pd.Series(["x"] * 30 + ["y"] * 20).value_counts()
    bounds = [generalization_bound(given, vc_dim=2) for given in (sizes, sizes.to_dict(), sizes.to_numpy())]
    assert [bound.group for bound in bounds] == ["y", "y", 1]
    assert len({bound.total for bound in bounds}) == 1
    assert generalization_bound({("f", 1): 9, ("m", 0): 8}, vc_dim=2).group == ("m", 0)


def test_intervals_by_group():
    bound = generalization_bound({"a": 1000, "b": 1000}, vc_dim=2, interval={"a": (0, 0.1), "b": (0, 0.5)})
    assert bound.group == "a"
    assert bound.total == pytest.approx(deviation(1000, 2, events=2, delta=0.05) / 0.1)


def test_monotone():
    def total(n=10_000, **options):
        return generalization_bound([n, n], **{"vc_dim": 5, **options}).total

    assert total(n=20_000) < total() < total(vc_dim=6)
    assert total(delta=0.1) < total() < total(interval=(0, 0.9))


def test_twice_the_estimation_error_holds_for_known_populations():
    """Scores along one fixed direction: VC dimension 1; groups N(0, 1) and N(0.5, 1), at 20 samples."""
    alpha, beta = interval = (0.2, 0.8)
    theta = np.linspace(-4, 5, 20_001)
    ranks = np.clip(norm.sf(theta[:, None] - [0.0, 0.5]), alpha, beta)
    true_gap = np.max(ranks[:, 1] - ranks[:, 0]) / (beta - alpha)
    group = np.repeat([0, 1], 2000)
    bound = generalization_bound([2000, 2000], vc_dim=1, interval=interval)
    errors = []
    for seed in range(20):
        score = np.random.default_rng(seed).normal(size=4000) + 0.5 * group
        gap = partial_statistical_parity_gap(None, score, sensitive_features=group, interval=interval)
        errors.append(abs(gap - true_gap))
    # it holds, it is not vacuous, and it is as loose as the documentation says
    assert 2 * bound.estimation > max(errors) > 0
    assert bound.total < 1
    assert bound.total > 5 * max(errors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vc_dim": 0}, "vc_dim must be an integer of at least 1; got 0"),
        ({"vc_dim": 2.5}, "vc_dim must be an integer"),
        ({"n_levels": 0}, "n_levels must be an integer"),
        ({"delta": 0}, "delta must lie strictly between 0 and 1; got 0"),
        ({"delta": 5}, "delta must lie"),
        ({"interval": (0.3, 0.1)}, "alpha < beta"),
        ({"margin": 0.1}, "n_near and margin belong together"),
        ({"n_near": [1, 1]}, "n_near and margin belong together"),
        ({"n_near": [1, 1], "margin": 1.5}, "margin must lie"),
        ({"n_near": [1, 1, 1], "margin": 0.1}, r"the groups of n_per_group, \[0, 1\]; got \[0, 1, 2\]"),
        ({"n_near": [1, 700], "margin": 0.1}, "cannot exceed n_per_group"),
        ({"n_near": [1, -1], "margin": 0.1}, "n_near must hold one integer of at least 0"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        generalization_bound([500, 600], **{"vc_dim": 3, **options})


@pytest.mark.parametrize("sizes", [[], [500, 0], [0.5, 0.5], "many", {"a": -1}])
def test_errors_of_sizes(sizes):
    with pytest.raises(ValueError, match="n_per_group must hold one integer of at least 1"):
        generalization_bound(sizes, vc_dim=3)


def test_the_bound_says_which_term_limits_it():
    assert generalization_bound([500, 800], vc_dim=3).limited_by == "estimation"
    assert generalization_bound([10**9] * 2, vc_dim=1, n_levels=2).limited_by == "discretization"
    near = generalization_bound([10**9] * 2, vc_dim=1, n_near=[10**8, 10**8], margin=0.1)
    assert near.limited_by == "surrogate"


@pytest.mark.parametrize(
    ("surrogate", "sigma"),
    [
        ("ramp", lambda x: np.clip(x + 0.5, 0, 1)),
        ("logistic", lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_rows_near_thresholds_by_their_definition(surrogate, sigma):
    rng = np.random.default_rng(0)
    scores, groups, thresholds = rng.normal(size=200), rng.integers(0, 3, 200), np.array([-0.4, 0.1, 0.9])
    found = rows_near_thresholds(
        scores, thresholds, sensitive_features=groups, margin=0.2, surrogate=surrogate, width=0.5
    )
    for group in range(3):
        own = scores[groups == group]
        assert found[group] == max((sigma(np.abs(own - at) / 0.5) <= 0.8).sum() for at in thresholds)
    bound = generalization_bound(np.bincount(groups), vc_dim=2, n_levels=3, n_near=found, margin=0.2)
    assert bound.surrogate > 0.2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"margin": 0.0}, "margin must lie"),
        ({"surrogate": "hinge"}, "surrogate must be one of"),
        ({"width": 0.0}, "width must be a finite number above 0"),
        ({"thresholds": []}, "at least one finite number"),
        ({"sensitive_features": ["a"]}, "sensitive_features"),
    ],
)
def test_rows_near_thresholds_refuse_what_they_cannot_count(change, message):
    arguments = {"thresholds": [0.0], "sensitive_features": ["a", "b"], "margin": 0.1}
    with pytest.raises(ValueError, match=message):
        rows_near_thresholds([0.1, 0.2], **{**arguments, **change})


def test_objective_bound():
    bound = objective_bound(5000, rademacher=0.2, n_groups=3, n_levels=10, delta=0.1)
    assert bound.complexity == 0.2
    assert bound.estimation == pytest.approx(sqrt(2 * log(4 * 10 * 3 / 0.1) / 5000))
    assert (bound.total, bound.limited_by) == (pytest.approx(bound.complexity + bound.estimation), "complexity")
    assert objective_bound(5000, rademacher=0.0, n_groups=3).limited_by == "estimation"
    with pytest.raises(ValueError, match="rademacher must be"):
        objective_bound(10, rademacher=-1.0, n_groups=2)
