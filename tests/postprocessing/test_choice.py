"""The exact choice of thresholds by group, against all combinations of thresholds."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairconstrained.constraints import GroupRates
from fairconstrained.data import FairData
from fairconstrained.objectives import F1, ClassWeights, CostMatrix, DecisionUtility, ZeroOne
from fairconstrained.postprocessing._choice import Candidates, best_choice
from fairconstrained.postprocessing._rate_windows import RateBound, Thresholds

OBJECTIVES = {
    "accuracy": ZeroOne(),
    "balanced accuracy": ZeroOne().weighing_classes(ClassWeights(balanced=True)),
    "costs": CostMatrix([[0, 1], [3, 0]]),
    "f1": F1(),
    "jaccard": DecisionUtility(lambda tn, fp, fn, tp: tp / (tp + fp + fn)),
    "geometric mean": DecisionUtility(lambda tn, fp, fn, tp: (tn / (tn + fp) * tp / (tp + fn)) ** 0.5),
    "harmonic mean": DecisionUtility(lambda tn, fp, fn, tp: 2 / ((tn + fp) / (tn + 1e-9) + (tp + fn) / (tp + 1e-9))),
}
BOUNDS = {
    "none": [],
    "demographic parity": [GroupRates(kappa=0.1)],
    "equal opportunity": [GroupRates("true_positive", kappa=0.1)],
    "equalized odds": [GroupRates("true_and_false_positive", kappa=0.25)],
    "predictive equality": [GroupRates("false_positive", kappa=0.15)],
    "errors": [GroupRates("error", kappa=0.1)],
    "predictive parity": [GroupRates("positive_predictive_value", kappa=0.1)],
    "negative predictive value": [GroupRates("negative_predictive_value", kappa=0.1)],
    "four fifths": [GroupRates(rule="ratio", kappa=0.2)],
    "ratios of both": [GroupRates("true_and_false_positive", rule="ratio", kappa=0.4)],
    "floor": [GroupRates("true_positive", rule="floor", kappa=0.7)],
    "ceiling": [GroupRates("selection", rule="ceiling", kappa=0.4)],
    "among positives": [GroupRates("accuracy", among="positives", kappa=0.1)],
    "several": [
        GroupRates(kappa=0.25),
        GroupRates("true_positive", kappa=0.2),
        GroupRates("positive_predictive_value", rule="floor", kappa=0.5),
        GroupRates("error", rule="ratio", kappa=0.5),
    ],
}


def drawn(seed, n_groups=2, n_samples=36, weighted=False):
    """Rows in which every group has both labels, with tied scores, and scores that are better for one group."""
    rng = np.random.default_rng(seed)
    groups = np.resize(np.arange(n_groups), n_samples)
    y = np.where(np.arange(n_samples) < 2 * n_groups, np.arange(n_samples) // n_groups, rng.random(n_samples) < 0.4)
    scores = np.round(rng.normal(size=n_samples) + (1 + groups) * y + 0.5 * groups, 1)
    weights = rng.integers(1, 4, n_samples).astype(float) if weighted else np.ones(n_samples)
    data = FairData.from_arrays(np.empty((n_samples, 0)), 2.0 * y - 1, groups, tuple(range(n_groups)), weights)
    return data, scores[data.order]


@cache
def every_decision(*sample):
    """Rows, their scores, and decisions by all thresholds by group."""
    data, scores = drawn(*sample)
    cuts = [np.append(-np.inf, np.unique(scores[rows])) for rows in data.slices]
    return data, scores, [np.where(scores > np.array(at)[data.codes], 1.0, -1.0) for at in product(*cuts)]


@cache
def every_loss(objective, *sample):
    """Losses of all decisions."""
    data, _, decided = every_decision(*sample)
    return np.array([OBJECTIVES[objective].bind(data).decisions.of(each > 0) for each in decided])


def chosen_by_search(data, scores, decisions, constraints, bounds):
    """Decisions by the thresholds of the search."""
    thresholds = Thresholds.of(scores, data.y.numpy() > 0, data.weights.numpy(), data.slices, decisions.columns)
    searched = [RateBound.of(*pair) for pair in zip(constraints, bounds, strict=True)]
    at = thresholds.at[thresholds.best(searched, decisions)]
    return np.where(scores > at[data.codes], 1.0, -1.0)


def assert_best(objectives, constraints, *sample):
    """The search finds the least loss of all decisions within the bounds; returns whether any are within them."""
    data, scores, decided = every_decision(*sample)
    bounds = [constraint.unchecked(data) for constraint in constraints]

    def excess(decided):
        """The largest one over kappa, or over the share of a row where that is larger."""
        known = [(np.nan_to_num(b.exact(decided), nan=np.inf), max(b.granularity - b.kappa, 0.0)) for b in bounds]
        return max((value - allowed for value, allowed in known), default=0.0)

    @cache
    def excess_of(place):
        return excess(decided[place])

    is_within = False
    for objective in objectives:
        decisions = OBJECTIVES[objective].bind(data).decisions
        found = chosen_by_search(data, scores, decisions, constraints, bounds)
        losses = every_loss(objective, *sample)
        # from the least loss on, so that the others need not be looked at
        least = next((losses[place] for place in np.argsort(losses) if excess_of(place) <= 1e-9), None)
        if least is not None:
            is_within = True
            assert excess(found) <= 1e-9, objective
            assert decisions.of(found > 0) == pytest.approx(least, abs=1e-9), objective
        else:
            assert excess(found) <= min(map(excess_of, range(len(decided)))) + 2e-6, objective
    return is_within


@pytest.mark.parametrize("bounds", BOUNDS)
def test_two_groups(bounds):
    kept = [assert_best(OBJECTIVES, BOUNDS[bounds], seed) for seed in range(6)]
    assert any(kept)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_three_groups_of_weighted_rows(bounds):
    for seed in range(2):
        assert_best(OBJECTIVES, BOUNDS[bounds], seed, 3, 24, True)


@given(
    seed=st.integers(0, 10_000),
    objective=st.sampled_from(sorted(OBJECTIVES)),
    chosen=st.lists(st.sampled_from(sorted(BOUNDS)), max_size=2, unique=True),
    kappa=st.sampled_from([0.0, 0.03, 0.1, 0.3, 1.0]),
)
def test_any_bounds_at_once(seed, objective, chosen, kappa):
    constraints = [c for name in chosen for c in BOUNDS[name]]
    changed = [
        GroupRates(**c.get_params() | {"kappa": kappa if c.rule == "difference" else c.kappa}) for c in constraints
    ]
    assert_best([objective], changed, seed, 2, 36, bool(seed % 2))


@given(seed=st.integers(0, 10_000), n_groups=st.integers(1, 4), n_bounds=st.integers(0, 3), leaves_out=st.booleans())
def test_best_choice_of_any_candidates(seed, n_groups, n_bounds, leaves_out):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    # few values, so that many of them are tied, and the widths are met exactly
    numbers, gains = rng.integers(0, 5, (n_bounds, groups.size)) / 4, rng.integers(-3, 4, groups.size) / 4
    widths = rng.integers(0, 4, n_bounds) / 4
    if leaves_out and n_groups > 2:  # each bound is not about one of the groups
        numbers[groups == rng.integers(0, n_groups, (n_bounds, 1))] = np.nan

    def are_within(one):
        return all(np.ptp(own[~np.isnan(own)]) <= width for own, width in zip(numbers[:, one], widths, strict=True))

    options = product(*(np.flatnonzero(groups == g) for g in range(n_groups)))
    within = [one for one in options if are_within(one)]
    found = best_choice(Candidates(groups, numbers, widths), gains, -np.inf)
    assert (found is None) == (not within)
    if found is not None:
        assert groups[found].tolist() == list(range(n_groups))
        assert are_within(found)
        best = max(gains[list(one)].sum() for one in within)
        assert gains[found].sum() == best
        assert best_choice(Candidates(groups, numbers, widths), gains, best) is None
