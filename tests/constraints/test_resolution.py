"""The one rule for how far a bound may be missed: no row of a compared cell counts more than max(kappa, 0.02)."""

import re
from itertools import product

import numpy as np
import pytest

from fairconstrained.constraints import (
    AUCGap,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    GroupRates,
    LossParity,
    MinorityShare,
    PairwiseParity,
    ParityPair,
    QuadraticAUCGap,
    RateGap,
    StatisticalParity,
)
from fairconstrained.constraints.neyman_pearson import ClassError, ClassLoss
from fairconstrained.data import FairData
from fairconstrained.groups import Groups, Strata
from fairconstrained.models.margins import MarginData
from fairconstrained.objectives import Logistic

#: Constraints that compare whole groups.
OF_GROUPS = {
    "statistical_parity": StatisticalParity,
    "demographic_parity": DemographicParity,
    "group_auc": GroupAUC,
    "auc_group": lambda kappa: AUCGap(kappa, constraint="group_auc"),
    "quadratic": lambda kappa: QuadraticAUCGap(kappa, constraint="group_auc"),
    "pairwise": lambda kappa: PairwiseParity(kappa, constraint="group_auc"),
    "loss": LossParity,
    "rate": RateGap,
    "sigmoid": lambda kappa: RateGap(kappa, rate="sigmoid"),
    "hinge": lambda kappa: RateGap(kappa, rate="hinge"),
    "intersectional": lambda kappa: RateGap(kappa, constraint="intersectional"),
    "pair": lambda kappa: ParityPair(None if kappa is None else 1 + kappa),
}
#: Constraints that compare the positives and the negatives of the groups.
OF_BOTH_LABELS = {
    "equalized_odds": EqualizedOdds,
    "auc": lambda kappa: AUCGap(kappa, constraint="inter_group"),
    "auc_of_a": lambda kappa: AUCGap(kappa, constraint="intra_group", protected="a"),
    "quadratic": lambda kappa: QuadraticAUCGap(kappa, constraint="inter_group"),
    "pairwise": lambda kappa: PairwiseParity(kappa, constraint="intra_group"),
    "losses": lambda kappa: LossParity(kappa, constraint="equalized_odds"),
    "rates": lambda kappa: RateGap(kappa, constraint="equalized_odds"),
}
#: Constraints that compare the positives.
OF_POSITIVES = {
    "equal_opportunity": EqualOpportunity,
    "losses": lambda kappa: LossParity(kappa, constraint="equal_opportunity"),
    "rates": lambda kappa: RateGap(kappa, constraint="equal_opportunity"),
}
BOUNDED = [0.0, 0.01, 0.02, 0.05, 0.25]


def cells_of(*sizes, weights=None):
    """Data with so many (positives, negatives) in every one of the groups a, b, ..."""
    codes = np.repeat(np.arange(len(sizes)), [sum(size) for size in sizes])
    y = np.concatenate([np.repeat([1.0, -1.0], size) for size in sizes])
    labels = tuple("abcdefghijklmnopqrstuvwxyz"[: len(sizes)])
    return FairData.from_arrays(np.zeros((y.size, 1)), y, codes, labels, weights)


def needed(kappa):
    """Rows of equal weight of which none counts more than max(kappa, 0.02)."""
    return round(1 / max(kappa, 0.02))


def refusal(constraint, data):
    with pytest.raises(ValueError, match="needs cells in which no row counts more than") as raised:
        constraint.bind(data)
    return str(raised.value)


# --- the rule


@pytest.mark.parametrize("kappa", BOUNDED)
@pytest.mark.parametrize("make", OF_GROUPS.values(), ids=OF_GROUPS)
def test_every_group_needs_one_row_for_every_share_of_the_bound(make, kappa):
    n = needed(kappa)
    half, rest = n // 2, n - n // 2
    make(kappa).bind(cells_of((half, rest), (n, n)))
    message = refusal(make(kappa), cells_of((half, rest - 1), (n, n)))
    assert f"at least {n} rows of equal weight in every cell" in message
    assert f"these have fewer rows: {{'a': {n - 1}}}." in message
    assert message.endswith("Pass more rows, or raise kappa.")


@pytest.mark.parametrize(
    ("sizes", "advice"),
    [
        ((40, 60), "Pass more rows"),
        ((40, 60, 70), "Merge groups, set small_groups='merge' or 'ignore' (in the constraint, where that"),
        ((40, 30, 70), "Merge groups, set small_groups='merge' (in the constraint, where that"),
        ((22, 24, 70), "Pass more rows, or raise kappa"),
        ((40, 45, 47), "Pass more rows, or raise kappa"),
        ((40, 45, 47, 25), "Merge groups, or raise kappa"),
    ],
)
def test_the_advice_leaves_two_groups_to_compare(sizes, advice):
    message = refusal(DemographicParity(0.02), cells_of(*((size - 20, 20) for size in sizes)))
    assert f"}}. {advice}" in message
    assert message.endswith(", or raise kappa.")


def test_the_advice_names_strata_where_groups_are_compared_in_each():
    data = cells_of((60, 60), (60, 60))
    strata = Strata.of(np.repeat([0, 1, 0, 1], [5, 115, 60, 60]))
    data = FairData.from_arrays(data.X, data.y.numpy(), data.codes, data.labels, strata=strata)
    message = refusal(GroupRates("selection", within="strata", kappa=0.1), data)
    assert "{'a, 0': 5}. Merge strata, in each of which groups are compared, or raise kappa." in message


@pytest.mark.parametrize("kappa", BOUNDED)
@pytest.mark.parametrize("make", OF_BOTH_LABELS.values(), ids=OF_BOTH_LABELS)
def test_both_labels_of_every_group_need_as_many(make, kappa):
    n = needed(kappa)
    make(kappa).bind(cells_of((n, n), (n, n)))
    assert f"{{'a, y=+1': {n - 1}}}" in refusal(make(kappa), cells_of((n - 1, n), (n, n)))
    assert f"{{'a, y=-1': {n - 1}}}" in refusal(make(kappa), cells_of((n, n - 1), (n, n)))


@pytest.mark.parametrize("make", OF_POSITIVES.values(), ids=OF_POSITIVES)
def test_negatives_that_are_not_compared_may_be_few(make):
    make(0.1).bind(cells_of((10, 1), (10, 3)))
    assert "{'b, y=+1': 9}" in refusal(make(0.1), cells_of((10, 1), (9, 3)))


@pytest.mark.parametrize("kappa", [None, 1.0])
@pytest.mark.parametrize("make", [*OF_GROUPS.values(), *OF_POSITIVES.values()], ids=[*OF_GROUPS, *OF_POSITIVES])
def test_no_bound_needs_no_rows_but_one(make, kappa):
    if kappa == 1.0 and make in (GroupAUC, OF_GROUPS["auc_group"]):
        kappa = None  # of AUCs, one half is the largest bound
    assert make(kappa).bind(cells_of((1, 1), (1, 2))).compared_cells().counts.min() in (1, 2)


@pytest.mark.parametrize("make", [GroupAUC, StatisticalParity, DemographicParity], ids=lambda make: make.__name__)
def test_a_row_of_a_short_interval_counts_more(make):
    constraint = make(0.1, interval=(0.0, 0.25))
    constraint.bind(cells_of((20, 20), (30, 30)))
    message = refusal(constraint, cells_of((20, 19), (30, 30)))
    assert "at least 40 rows" in message
    assert ", widen the interval, or raise kappa." in message
    if make is not GroupAUC:  # gaps of ranks are not divided by the length
        make(0.1, interval=(0.0, 0.25), normalize=False).bind(cells_of((5, 5), (30, 30)))


def test_the_allowance_never_exceeds_the_rule():
    data = cells_of((60, 60), (55, 50), (120, 80))
    for kappa in (0.0, 0.02, 0.3):
        for make in (*OF_GROUPS.values(), *OF_BOTH_LABELS.values(), *OF_POSITIVES.values()):
            bound = make(kappa).bind(data)
            assert 0 < bound.granularity <= max(kappa, 0.02) * (1 + 1e-9)
            assert bound.compared_cells().steps.max() <= bound.resolution * (1 + 1e-9)


# --- weights


@pytest.mark.parametrize("make", OF_GROUPS.values(), ids=OF_GROUPS)
def test_a_heavy_row_is_as_if_the_others_were_not_there(make):
    weights = np.ones(200)
    make(0.02).bind(cells_of((50, 50), (60, 40), weights=weights))
    weights[0] = 10.0  # of 109
    message = refusal(make(0.02), cells_of((50, 50), (60, 40), weights=weights))
    assert f"{{'a': 100 (effectively {109 / 10:.3g})}}" in message
    weights[0] = 1e5
    assert "{'a': 100 (effectively 1)}" in refusal(make(0.05), cells_of((50, 50), (60, 40), weights=weights))


@pytest.mark.parametrize("make", OF_GROUPS.values(), ids=OF_GROUPS)
def test_rows_without_weight_are_not_there(make):
    weights = np.ones(130)
    weights[:10] = 0.0  # of the first group's 50 rows
    make(0.025).bind(cells_of((25, 25), (40, 40), weights=weights))
    assert "{'a': 40}" in refusal(make(0.02), cells_of((25, 25), (40, 40), weights=weights))


def test_effective_rows_are_said_of_the_cells_that_have_them():
    weights = np.append(np.ones(9), [1.0, *[0.5] * 39])
    message = refusal(DemographicParity(0.05), cells_of((5, 4), (20, 20), weights=weights))
    assert "{'a': 9}" in message  # the other group has effectively 20.5 rows
    message = refusal(DemographicParity(0.04), cells_of((5, 4), (20, 20), weights=weights))
    assert "{'a': 9, 'b': 40 (effectively 20.5)}" in message


# --- what the message lists


@pytest.mark.parametrize("n_small", [10, 11, 23])
def test_at_most_ten_cells_are_listed_the_smallest_first(n_small):
    sizes = [(k, k) for k in range(1, n_small + 1)][::-1]
    message = refusal(StatisticalParity(0.0), cells_of(*sizes, (100, 100)))
    assert "{'" + chr(ord("a") + n_small - 1) + "': 2, " in message
    assert message.count("'") == 2 * 10 + 2  # and those around 'merge'
    assert (f", and {n_small - 10} more}}" in message) == (n_small > 10)


def test_cells_without_rows_are_named_whatever_the_bound():
    data = cells_of((30, 0), (30, 30))
    for name in ("equalized_odds", "auc", "auc_of_a", "quadratic", "pairwise"):
        with pytest.raises(ValueError, match=r"compares cells of rows, but these have no rows: \{'a, y=-1': 0\}"):
            OF_BOTH_LABELS[name](None).bind(data)
        assert "{'a, y=-1': 0}" in refusal(OF_BOTH_LABELS[name](0.1), data)
    for name, kappa in product(("losses", "rates"), (0.1, None)):
        with pytest.raises(ValueError, match=r"\{'a(, y=-1)?': 0\}"):
            OF_BOTH_LABELS[name](kappa).bind(data)
    EqualOpportunity(0.1).bind(data)  # compares the positives only


@pytest.mark.parametrize("name", ["equalized_odds", "auc"])
def test_groups_that_are_the_labels_get_advice_that_helps(name):
    """No number of rows and no kappa fills a cell that is empty by its definition."""
    message = refusal(OF_BOTH_LABELS[name](0.1), cells_of((30, 0), (0, 30)))
    assert "as where the groups are the labels, has nothing to compare by label: bound a rate of all rows" in message
    assert "raise kappa" not in message
    assert "more rows" not in message
    few = refusal(OF_BOTH_LABELS[name](0.1), cells_of((30, 3), (30, 30)))
    assert few.endswith(", or raise kappa.")
    DemographicParity(0.1).bind(cells_of((30, 0), (0, 30)))


def test_overlapping_groups_have_their_own_rows():
    members = np.zeros((200, 3), dtype=bool)
    members[:120, 0] = members[90:200, 1] = members[80:110, 2] = True
    groups = Groups.of(members, overlapping=True)
    y = np.where(np.arange(200) % 2, 1.0, -1.0)
    data = FairData.from_arrays(y[:, None], y, groups.codes, groups.labels, unions=groups.unions)
    for make in (RateGap, LossParity, OF_GROUPS["intersectional"]):
        make(1 / 30).bind(data)
        assert "{'2': 30}" in refusal(make(0.03), data)
    assert "{'2, y=+1': 15, '2, y=-1': 15}" in refusal(RateGap(0.06, constraint="equalized_odds"), data)
    heavy = np.ones(200)
    heavy[100] = 4.0  # of all three groups
    data = FairData.from_arrays(y[:, None], y, groups.codes, groups.labels, heavy, unions=groups.unions)
    assert f"{{'2': 30 (effectively {33 / 4:.3g})}}" in refusal(RateGap(0.1), data)


# --- sets of rows that are no groups


def test_unions_of_groups_are_called_what_they_are():
    data = cells_of((30, 1), (20, 60), (20, 60))
    message = refusal(AUCGap(0.05, constraint="bpsn_bnsp", protected="a"), data)
    assert "{'a, y=-1': 1}" in message
    message = refusal(AUCGap(0.02, constraint="inter_group", protected="a"), data)
    assert "'b or c, y=+1': 40" in message
    assert "'a, y=+1': 30" in message
    many = cells_of((60, 60), *[(1, 60)] * 5)
    assert "{'b or c or d ..., y=+1': 5}" in refusal(AUCGap(0.1, constraint="inter_group", protected="a"), many)


def test_masks_have_no_groups_to_merge():
    data = cells_of((40, 40), (40, 40))
    masks = np.zeros((4, 160), dtype=bool)
    masks[0, :9] = masks[1, 20:60] = masks[2, 60:90] = masks[3, 90:] = True
    message = refusal(AUCGap(0.1, constraint=list(masks)), data)
    assert "{'mask G1': 9}. Merge small sets of rows, or raise kappa." in message
    assert "small_groups" not in message


def test_the_rows_of_a_share_are_all_rows():
    for kappa in (0.1, 0.9):  # as far from everything as from nothing
        share = 1 - kappa
        MinorityShare(share).bind(cells_of((1, 1), (4, 4)))
        assert "{'all rows': 9}" in refusal(MinorityShare(share), cells_of((1, 1), (4, 3)))
    MinorityShare(None).bind(cells_of((1, 1), (1, 1)))
    assert "{'all rows': 9}" in refusal(MinorityShare(0.1, ignored_groups=("c",)), cells_of((1, 1), (4, 3), (90, 9)))


def test_a_parity_pair_is_as_fine_as_it_exceeds_its_least_value():
    ParityPair(1.1).bind(cells_of((5, 5), (9, 9)))
    assert "{'a': 9}" in refusal(ParityPair(1.1), cells_of((5, 4), (9, 9)))
    ParityPair(2.3, beta=2.0).bind(cells_of((1, 1), (1, 1)))
    assert "at least 40 rows" in refusal(ParityPair(1.05, beta=2.0), cells_of((18, 18), (30, 30)))


@pytest.mark.parametrize("notion", [ClassLoss, ClassError])
def test_classes_need_samples(notion):
    y = np.repeat([0.0, 1.0, 2.0], [19, 40, 60])
    items = FairData.from_arrays(np.zeros((y.size, 1)), y, np.zeros(y.size, dtype=int), (None,))
    data = MarginData.of(items, ("u", "v", "w"))
    notion("v", 0.05, Logistic()).bind(data)
    message = refusal(notion("u", 0.05, Logistic()), data)
    assert "at least 20 rows" in message
    assert "{'class u': 19}. Merge small sets of rows" in message


# --- min_group_size


def test_a_size_that_the_user_gives_takes_the_rules_place_where_means_are_met_exactly():
    data = cells_of((4, 4), (60, 60))
    for make in (LossParity, lambda kappa, **options: RateGap(kappa, rate="sigmoid", **options)):
        assert "{'a': 8}" in refusal(make(0.02), data)
        make(0.02, min_group_size=8).bind(data)
        with pytest.raises(ValueError, match=re.escape("fewer than min_group_size=9 rows")):
            make(0.02, min_group_size=9).bind(data)
    # shares of rows cannot be met closer than by a row
    assert "{'a': 8}" in refusal(RateGap(0.02, min_group_size=8), data)
    with pytest.raises(ValueError, match=re.escape("fewer than min_group_size=9 rows")):
        RateGap(0.3, min_group_size=9).bind(data)


@pytest.mark.parametrize("make", [LossParity, RateGap])
def test_small_groups_of_overlapping_constraints_are_chosen_by_the_rule(make):
    data = cells_of((60, 60), (4, 4), (60, 60), (3, 3))
    assert make(0.02, small_groups="ignore").bind(data).groups.labels == ("a", "c")
    assert make(0.1, small_groups="merge").bind(data).groups.labels == ("a", "c", "(small groups)")
    # the second group is large enough now, but the last one by itself is not
    assert make(0.15, small_groups="merge").bind(data).groups.labels == ("a", "c", "(small groups)")
    with pytest.raises(ValueError, match=re.escape("{'(small groups)': 6}")):
        make(0.15, small_groups="merge").bind(cells_of((60, 60), (3, 3)))  # there is nothing to merge it with
