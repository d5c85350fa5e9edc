"""Gaps between the mean losses of groups: arithmetic done by hand, all pairs of groups, and scikit-learn."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import hinge_loss, log_loss, mean_absolute_error, mean_squared_error

from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import loss_parity_gap

CONSTRAINTS = ["demographic_parity", "equal_opportunity", "equalized_odds"]
LOSSES = ["log_loss", "hinge", "absolute", "squared"]
each_constraint = pytest.mark.parametrize("constraint", CONSTRAINTS)
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_reference = pytest.mark.parametrize("reference", ["pairwise", "overall"])
each_agg = pytest.mark.parametrize("agg", ["max", "mean"])

#: Labels compared by every constraint; None is both at once.
OVER_LABELS = {"max": max, "sum": sum}
BLOCKS = {"demographic_parity": [None], "equal_opportunity": [1], "equalized_odds": [1, 0]}

# Absolute losses |s - y| of the toy rows: a has 1 and 3 (positive), 0 and 2 (negative); b has 5 and 1; c has 0 and 4.
TOY = {
    "y_true": [1, 1, 0, 0, 1, 0, 1, 0],
    "y_score": [2.0, -2.0, -1.0, 1.0, 6.0, 0.0, 1.0, 3.0],
    "sensitive_features": list("aaaabbcc"),
}
#: Mean losses of the groups a, b, c and of all rows.
TOY_MEANS = {"all": [1.5, 3.0, 2.0, 2.0], "positive": [2.0, 5.0, 0.0, 2.25], "negative": [1.0, 1.0, 4.0, 1.75]}


def draw(n_groups=5, size=60, seed=0):
    """Rows with every label in every group, groups of different losses, and weights."""
    rng = np.random.default_rng(seed)
    group = np.append(np.repeat(np.arange(n_groups), 2), rng.integers(0, n_groups, size - 2 * n_groups))
    y = np.append(np.tile([0, 1], n_groups), rng.integers(0, 2, size - 2 * n_groups))
    return {
        "y_true": y,
        "y_score": rng.normal(size=size) * (1 + group),
        "sensitive_features": group,
        "sample_weight": rng.uniform(0.2, 3, size),
    }


def row_loss(name, score, sign):
    """Every loss of one row, written out case by case."""
    if name == "log_loss":
        return np.log(1 + np.exp(-sign * score))
    if name == "hinge":
        return max(1 - sign * score, 0.0)
    return abs(score - sign) if name == "absolute" else (score - sign) ** 2 / 2


def mean_loss(rows, loss, label, group=None):
    """Mean loss of the rows with this label in this group; None is any."""
    total = mass = 0.0
    for y, score, g, weight in zip(*rows.values(), strict=True):
        if (label is None or y == label) and (group is None or g == group):
            total += weight * row_loss(loss, score, 1 if y else -1)
            mass += weight
    return total / mass


def by_hand(rows, constraint, loss, reference, agg, agg_labels):
    """The definition: absolute differences in every label, for all pairs of groups or every group and all."""
    groups = np.unique(rows["sensitive_features"]).tolist()
    pairs = combinations(groups, 2) if reference == "pairwise" else ((g, None) for g in groups)
    gaps = [
        OVER_LABELS[agg_labels](
            [abs(mean_loss(rows, loss, v, g) - mean_loss(rows, loss, v, h)) for v in BLOCKS[constraint]]
        )
        for g, h in pairs
    ]
    return max(gaps) if agg == "max" else np.mean(gaps)


# --- values


@pytest.mark.parametrize(
    ("constraint", "reference", "agg", "expected"),
    [
        ("demographic_parity", "pairwise", "max", 1.5),  # a and b
        ("demographic_parity", "pairwise", "mean", (1.5 + 0.5 + 1.0) / 3),
        ("demographic_parity", "overall", "max", 1.0),  # b
        ("demographic_parity", "overall", "mean", (0.5 + 1.0 + 0.0) / 3),
        ("equal_opportunity", "pairwise", "max", 5.0),  # b and c
        ("equal_opportunity", "pairwise", "mean", (3.0 + 2.0 + 5.0) / 3),
        ("equal_opportunity", "overall", "max", 2.75),  # b
        ("equal_opportunity", "overall", "mean", (0.25 + 2.75 + 2.25) / 3),
        ("equalized_odds", "pairwise", "max", 5.0),  # the positive rows of b and c
        ("equalized_odds", "pairwise", "mean", (3.0 + 3.0 + 5.0) / 3),
        ("equalized_odds", "overall", "max", 2.75),  # the positive rows of b
        ("equalized_odds", "overall", "mean", (0.75 + 2.75 + 2.25) / 3),
    ],
)
def test_by_hand(constraint, reference, agg, expected):
    gap = loss_parity_gap(**TOY, constraint=constraint, reference=reference, agg=agg, loss="absolute")
    assert type(gap) is float
    assert gap == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reference", "agg", "expected"),
    [
        ("pairwise", "max", 5.0 + 3.0),  # b and c
        ("pairwise", "mean", (3.0 + 0.0 + 2.0 + 3.0 + 5.0 + 3.0) / 3),
        ("overall", "max", 2.25 + 2.25),  # c
        ("overall", "mean", (0.25 + 0.75 + 2.75 + 0.75 + 2.25 + 2.25) / 3),
    ],
)
def test_sum_over_labels_by_hand(reference, agg, expected):
    options = {"constraint": "equalized_odds", "agg_labels": "sum", "reference": reference, "agg": agg}
    assert loss_parity_gap(**TOY, loss="absolute", **options) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("log_loss", np.log(1 + np.exp(2)) - np.log(1 + np.exp(-2))),
        ("hinge", 3.0),
        ("absolute", 2.0),  # |-2 - 1| - |2 - 1|
        ("squared", 9 / 2 - 1 / 2),
    ],
)
def test_losses_of_one_row_each(loss, expected):
    """A positive row with score 2, and one with score -2."""
    gap = loss_parity_gap([1, 1], [2.0, -2.0], sensitive_features=["a", "b"], loss=loss)
    assert gap == pytest.approx(expected)


@pytest.mark.parametrize("agg_labels", ["max", "sum"])
@each_agg
@each_reference
@each_loss
@each_constraint
def test_all_pairs_of_groups(constraint, loss, reference, agg, agg_labels):
    rows = draw()
    options = {"constraint": constraint, "loss": loss, "reference": reference, "agg": agg, "agg_labels": agg_labels}
    expected = by_hand(rows, **options)
    assert expected > 0.1
    assert loss_parity_gap(**rows, **options) == pytest.approx(expected)


def test_the_sum_over_labels_is_taken_before_the_maximum_over_pairs():
    """The positive rows of a and b differ most (3), the negative ones of a and c (4), but no two groups by 3 + 4."""
    positive, negative = np.array([0.0, 3.0, 2.0]), np.array([0.0, 2.0, 4.0])  # losses of the groups
    score = np.append(1 + positive, negative - 1)
    options = {"sensitive_features": [*"abcabc"], "loss": "absolute", "constraint": "equalized_odds"}
    gap, table = loss_parity_gap([1] * 3 + [0] * 3, score, agg_labels="sum", return_groups=True, **options)
    assert gap == pytest.approx(2 + 4)
    assert table["gap"].tolist() == pytest.approx([2 + 4, 3 + 2, 2 + 4])


SKLEARN = {
    "log_loss": lambda y, s, w: log_loss(y, 1 / (1 + np.exp(-s)), sample_weight=w, labels=[0, 1]),
    # rows of weight zero, as it takes the labels from what it sees
    "hinge": lambda y, s, w: hinge_loss([*y, 0, 1], [*s, 0, 0], sample_weight=[*w, 0, 0]),
    "absolute": lambda y, s, w: mean_absolute_error(2 * y - 1, s, sample_weight=w),
    "squared": lambda y, s, w: mean_squared_error(2 * y - 1, s, sample_weight=w) / 2,
}


@each_loss
def test_mean_losses_are_those_of_scikit_learn(loss):
    rows = draw()
    parts = {"loss": slice(None), "loss_positive": rows["y_true"] == 1, "loss_negative": rows["y_true"] == 0}
    for constraint, columns in (
        ("demographic_parity", ["loss"]),
        ("equal_opportunity", ["loss_positive"]),
        ("equalized_odds", ["loss_positive", "loss_negative"]),
    ):
        _, table = loss_parity_gap(**rows, constraint=constraint, loss=loss, return_groups=True)
        assert [name for name in table if name.startswith("loss")] == columns
        for column in columns:
            y, s, groups, w = (values[parts[column]] for values in rows.values())
            expected = [SKLEARN[loss](y[groups == g], s[groups == g], w[groups == g]) for g in table.index]
            np.testing.assert_allclose(table[column], expected)


@each_agg
@each_reference
@each_constraint
def test_integer_weights_are_repeated_rows(constraint, reference, agg):
    rows = draw()
    counts = np.random.default_rng(1).integers(1, 5, rows["y_true"].size)
    options = {"constraint": constraint, "reference": reference, "agg": agg}
    weighted = loss_parity_gap(**rows | {"sample_weight": counts}, **options)
    repeated = {name: np.repeat(values, counts) for name, values in rows.items() if name != "sample_weight"}
    assert weighted == pytest.approx(loss_parity_gap(**repeated, **options))
    assert weighted != pytest.approx(loss_parity_gap(**rows | {"sample_weight": None}, **options))


def test_large_scores_have_finite_losses():
    gap = loss_parity_gap([1, 1], [1e4, -1e4], sensitive_features=["a", "b"])
    assert gap == pytest.approx(1e4)


@each_constraint
def test_the_positive_label(constraint):
    rows = draw()
    expected = loss_parity_gap(**rows, constraint=constraint)
    for names, pos_label in ((["bad", "good"], None), (["good", "bad"], "bad"), ([1, 0], 0)):
        named = rows | {"y_true": np.array(names)[rows["y_true"]]}
        assert loss_parity_gap(**named, constraint=constraint, pos_label=pos_label) == expected


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_other_labels_with_negated_scores_have_the_same_losses(constraint):
    rows = draw()
    turned = rows | {"y_true": 1 - rows["y_true"], "y_score": -rows["y_score"]}
    expected = loss_parity_gap(**rows, constraint=constraint)
    assert loss_parity_gap(**turned, constraint=constraint) == pytest.approx(expected)


@each_reference
@each_constraint
def test_table_of_one_group(constraint, reference):
    rows = draw(n_groups=1, size=9)
    with pytest.warns(FairnessWarning, match="only one group"):
        gap, table = loss_parity_gap(**rows, constraint=constraint, reference=reference, return_groups=True)
    assert np.isnan(gap)
    assert table["gap"].tolist() == pytest.approx([0], abs=1e-12)
    assert table["n_samples"].tolist() == [9]


# --- the table


@pytest.mark.parametrize(
    ("constraint", "reference", "gaps"),
    [
        ("demographic_parity", "pairwise", [1.5, 1.5, 1.0]),
        ("demographic_parity", "overall", [0.5, 1.0, 0.0]),
        ("equal_opportunity", "pairwise", [3.0, 5.0, 5.0]),
        ("equal_opportunity", "overall", [0.25, 2.75, 2.25]),
        ("equalized_odds", "pairwise", [3.0, 5.0, 5.0]),
        ("equalized_odds", "overall", [0.75, 2.75, 2.25]),
    ],
)
def test_table_by_hand(constraint, reference, gaps):
    gap, table = loss_parity_gap(**TOY, constraint=constraint, reference=reference, loss="absolute", return_groups=True)
    assert table.index.tolist() == ["a", "b", "c"]
    assert table["n_samples"].tolist() == table["weight"].tolist() == [4, 2, 2]
    assert table["gap"].tolist() == pytest.approx(gaps)
    assert gap == table["gap"].max()
    for label in ("positive", "negative"):
        if f"loss_{label}" in table:
            assert table[f"loss_{label}"].tolist() == pytest.approx(TOY_MEANS[label][:3])
    if constraint == "demographic_parity":
        assert table["loss"].tolist() == pytest.approx(TOY_MEANS["all"][:3])


def test_groups_of_several_columns():
    rows = draw(n_groups=4)
    pairs = np.array([["x", "u"], ["x", "v"], ["y", "u"], ["y", "v"]])[rows["sensitive_features"]]
    gap, table = loss_parity_gap(**rows | {"sensitive_features": pairs}, return_groups=True)
    assert table.index.tolist() == [("x", "u"), ("x", "v"), ("y", "u"), ("y", "v")]
    assert gap == loss_parity_gap(**rows)


# --- empty cells

#: Group b has no positive row.
WITHOUT = {"y_true": [1, 0, 0, 1, 0], "y_score": [1.0, 0.5, 0.2, 2.0, -3.0], "sensitive_features": list("aabcc")}


@each_reference
@pytest.mark.parametrize("constraint", ["equal_opportunity", "equalized_odds"])
def test_empty_cells(constraint, reference):
    options = {"constraint": constraint, "reference": reference}
    with pytest.raises(ValueError, match=r"(?s)on_empty='nan', the.*Rows per cell.*0  1.*a +1  1.*b +1  0.*c +1  1"):
        loss_parity_gap(**WITHOUT, **options)
    for agg in ("max", "mean"):
        assert np.isnan(loss_parity_gap(**WITHOUT, **options, agg=agg, on_empty="nan"))
    _, table = loss_parity_gap(**WITHOUT, **options, on_empty="nan", return_groups=True)
    assert np.isnan(table["loss_positive"]).tolist() == [False, True, False]
    assert np.isnan(table.loc["b", "gap"])


def test_a_cell_of_weight_zero_is_empty():
    full = WITHOUT | {"y_true": [1, 0, 1, 1, 0]}
    assert loss_parity_gap(**full, constraint="equal_opportunity") > 0
    full |= {"y_true": [1, 0, 0, 1, 0, 1], "y_score": [*full["y_score"], 1.0], "sensitive_features": list("aabccb")}
    with pytest.raises(ValueError, match="has no rows"):
        loss_parity_gap(**full, constraint="equal_opportunity", sample_weight=[1, 1, 1, 1, 1, 0])


def test_labels_that_are_not_compared_may_be_missing():
    assert loss_parity_gap(**WITHOUT) > 0
    assert loss_parity_gap([1, 1, 0, 1], [1.0, 2.0, 0.0, 0.0], sensitive_features=list("aabb"), pos_label=1) > 0


# --- what is refused


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"agg_labels": "mean"}, "agg_labels must be one of .*'max', 'sum'.*; got 'mean'"),
        ({"constraint": "independence"}, "constraint must be one of .*'equalized_odds'.*; got 'independence'"),
        ({"loss": "logistic"}, "loss must be one of .*'log_loss'.*; got 'logistic'"),
        ({"reference": "best"}, r"reference must be one of \['overall', 'pairwise'\]; got 'best'"),
        ({"agg": "sum"}, r"agg must be one of \['max', 'mean'\]; got 'sum'"),
        ({"on_empty": "drop"}, r"on_empty must be one of \['nan', 'raise'\]; got 'drop'"),
        ({"y_score": [np.nan] * 8}, "NaN"),
        ({"y_score": [np.inf] * 8}, "infinity"),
        ({"y_score": [0.0] * 7}, "inconsistent numbers of samples"),
        ({"y_score": np.zeros((8, 2))}, "one score per row"),
        ({"sensitive_features": ["a"] * 7}, "7 rows"),
        ({"sample_weight": [1.0] * 7}, "sample_weight must have shape"),
        ({"sample_weight": [1.0] * 7 + [-1.0]}, "must not be negative"),
        ({"sample_weight": [1.0] * 6 + [0.0] * 2}, "sums to zero in a group"),
        ({"y_true": [0, 1, 2, 0, 1, 2, 0, 1]}, "two labels; got 3"),
        ({"y_true": None}, "y_true must be given"),
        ({"pos_label": "yes"}, "pos_label='yes' is not among the labels"),
    ],
)
def test_what_is_refused(changed, message):
    assert loss_parity_gap(**TOY) > 0
    with pytest.raises(ValueError, match=message):
        loss_parity_gap(**TOY | changed)
