"""Values, ratios and tables of groups against those of Fairlearn, on generated rows with weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, precision_score, zero_one_loss

from fairconstrained.metrics import conditional_parity_gap, find_metric, group_rates, metric_names, separation_gap
from fairconstrained.metrics.group_rates import GROUP_RATES, RULE_NAMES

fairlearn = pytest.importorskip("fairlearn.metrics")

DIFFERENCES = {
    "accuracy_score_difference",
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "false_negative_rate_difference",
    "false_positive_rate_difference",
    "selection_rate_difference",
    "true_negative_rate_difference",
    "true_positive_rate_difference",
    "zero_one_loss_difference",
}
RATIOS = {
    "accuracy_score_ratio",
    "demographic_parity_ratio",
    "equal_opportunity_ratio",
    "equalized_odds_ratio",
    "false_positive_rate_ratio",
    "selection_rate_ratio",
    "true_positive_rate_ratio",
    "zero_one_loss_ratio",
}
#: Fairlearn's function of the rows of a group, by our name of the rate.
RATES = {
    "selection": fairlearn.selection_rate,
    "true_positive": fairlearn.true_positive_rate,
    "false_positive": fairlearn.false_positive_rate,
    "true_negative": fairlearn.true_negative_rate,
    "false_negative": fairlearn.false_negative_rate,
    "error": zero_one_loss,
    "accuracy": accuracy_score,
    "positive_predictive_value": precision_score,
}
#: Fairlearn's number of a frame, by our rule.
RULES = {
    "difference": lambda frame: frame.difference(method="between_groups"),
    "to_overall": lambda frame: frame.difference(method="to_overall"),
    "ratio": lambda frame: 1 - frame.ratio(method="between_groups"),
    "floor": lambda frame: frame.group_min(),
    "ceiling": lambda frame: frame.group_max(),
}
#: Fairlearn's names of the worst group, with our rate and rule.
WORST = {
    "accuracy_score_group_min": ("accuracy", "floor"),
    "recall_score_group_min": ("true_positive", "floor"),
    "precision_score_group_min": ("positive_predictive_value", "floor"),
    "zero_one_loss_group_max": ("error", "ceiling"),
}


@st.composite
def rows(draw, max_groups=4):
    """Decisions of rows with weights, in which every group has every pair of true and predicted label."""
    n_groups = draw(st.integers(2, max_groups))
    row = st.tuples(st.integers(0, n_groups - 1), st.integers(0, 1), st.integers(0, 1))
    corners = [(g, y, p) for g in range(n_groups) for y in (0, 1) for p in (0, 1)]
    group, y_true, y_pred = np.array(corners + draw(st.lists(row, max_size=25))).T
    data = {"y_true": y_true, "y_pred": y_pred, "sensitive_features": np.array(list("dbca"))[group]}
    if draw(st.booleans()):
        weight = st.floats(0.01, 5, allow_nan=False)
        data["sample_weight"] = np.array(draw(st.lists(weight, min_size=y_true.size, max_size=y_true.size)))
    return data


def frame_of(functions, data, **more):
    """Frame of functions by name, with the weights if there are any."""
    weights = {"sample_weight": data["sample_weight"]} if "sample_weight" in data else {}
    columns = {name: data[name] for name in ("y_true", "y_pred", "sensitive_features")}
    return fairlearn.MetricFrame(metrics=functions, sample_params=dict.fromkeys(functions, weights), **columns, **more)


def scored(data):
    """Arguments of a metric that reads scores."""
    return {("y_score" if name == "y_pred" else name): values for name, values in data.items()} | {
        "y_score": 2.0 * data["y_pred"] - 1
    }


def test_names_of_both_packages_are_all_compared():
    shared = {name for name in dir(fairlearn) if name in metric_names()}
    assert shared == DIFFERENCES | RATIOS


@settings(max_examples=3)  # Fairlearn makes a frame for every name, which takes long
@given(data=rows())
def test_a_name_of_fairlearn_is_the_same_number(data):
    for name in DIFFERENCES | RATIOS:
        info, params = find_metric(name)
        ours = info.function(data["y_true"], **{k: v for k, v in data.items() if k != "y_true"}, **params)
        theirs = getattr(fairlearn, name)(**data)
        assert ours == pytest.approx(theirs if name in DIFFERENCES else 1 - theirs, abs=1e-12), name


@given(data=rows())
def test_rates_and_rules_are_those_of_a_metric_frame(data):
    frame = frame_of(RATES, data)
    numbers = {rule: of_frame(frame) for rule, of_frame in RULES.items()}
    for rate in RATES:
        for rule, theirs in numbers.items():
            ours, table = group_rates(**scored(data), rate=rate, rule=rule, return_groups=True)
            assert ours == pytest.approx(theirs[rate], abs=1e-12), (rate, rule)
        (column,) = table.filter(regex=f"^{rate}")
        assert table[column].to_dict() == pytest.approx(frame.by_group[rate].to_dict(), abs=1e-12)


@settings(max_examples=3)
@given(data=rows())
def test_the_worst_group_is_that_of_fairlearn(data):
    for name, (rate, rule) in WORST.items():
        theirs = getattr(fairlearn, name)(**data)
        assert group_rates(**scored(data), rate=rate, rule=rule) == pytest.approx(theirs, abs=1e-12), name


@given(data=rows(), seed=st.integers(0, 99))
def test_the_ceiling_of_the_log_loss_is_that_of_fairlearn(data, seed):
    scores = np.random.default_rng(seed).normal(size=data["y_true"].size)
    ours = group_rates(**scored(data) | {"y_score": scores}, rate="log_loss", rule="ceiling")
    probabilities = data | {"y_pred": 1 / (1 + np.exp(-scores))}
    assert ours == pytest.approx(fairlearn.log_loss_group_max(**probabilities), abs=1e-12)


@given(data=rows(max_groups=2))
def test_the_sum_over_labels_is_twice_the_mean_of_fairlearn(data):
    # of two groups; of more the mean is of differences of different pairs
    ours = separation_gap(**data, agg_labels="sum")
    assert ours == pytest.approx(2 * fairlearn.equalized_odds_difference(**data, agg="mean"), abs=1e-12)


@given(data=rows(), seed=st.integers(0, 99))
def test_strata_are_control_features(data, seed):
    strata = np.random.default_rng(seed).integers(0, 2, data["y_true"].size)
    twice = {name: np.concatenate([values, values]) for name, values in data.items()}
    # every group is in every stratum: the rows once more, in the other one
    strata = np.concatenate([strata, 1 - strata])
    theirs = frame_of({"rate": fairlearn.selection_rate}, twice, control_features=strata).difference()
    assert conditional_parity_gap(**twice, strata=strata) == pytest.approx(theirs["rate"].max(), abs=1e-12)


def test_all_rates_and_rules_are_compared():
    # Fairlearn and scikit-learn have no function for a negative predictive value, and none for both rates at once
    without = {"negative_predictive_value", "true_and_false_positive"}
    assert {name for name, rate in GROUP_RATES.items() if rate.counts_rows} - without == set(RATES)
    assert set(RULE_NAMES) == set(RULES)


@pytest.mark.parametrize("name", ["demographic_parity", "equal_opportunity"])
def test_ratio_is_zero_where_the_rate_of_one_group_is(name):
    rate = {"demographic_parity": "selection", "equal_opportunity": "true_positive"}[name]
    y, positive = np.array([1, 0, 1, 0, 1, 0, 1, 0]), np.array([1, 1, 0, 1, 0, 0, 0, 0])
    groups = np.repeat(["a", "b"], 4)
    theirs = getattr(fairlearn, f"{name}_ratio")(y, positive, sensitive_features=groups)
    value, table = group_rates(
        y, positive - 0.5, sensitive_features=groups, rate=rate, rule="ratio", return_groups=True
    )
    assert value == 1 - theirs == 1.0
    assert table["gap"].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="no group has a rate above 0"):
        group_rates(y, positive - 2.0, sensitive_features=groups, rate=rate, rule="ratio")


def test_rates_that_are_zero_in_all_groups_are_equal():
    y, groups = np.array([1, 0, 1, 0, 1, 0, 0, 0]), np.repeat(["a", "b"], 4)
    compared = {"sensitive_features": groups, "rate": "true_and_false_positive", "rule": "ratio"}
    assert group_rates(y, y - 0.5, **compared) == 1 - fairlearn.equalized_odds_ratio(y, y, sensitive_features=groups)
    half = np.where(np.arange(8) == 0, 0, y)  # one of two positives, and no negative
    value, table = group_rates(y, half - 0.5, **compared, return_groups=True)
    assert value == 1 - fairlearn.equalized_odds_ratio(y, half, sensitive_features=groups) == 0.5
    assert table["gap"].tolist() == [0.5, 0.5]
    only = np.array([0, 1, 0, 1, 0, 1, 0, 0])  # no positive, but negatives of both groups: Fairlearn has NaN
    assert group_rates(y, only - 0.5, **compared) == pytest.approx(2 / 3)
    assert np.isnan(group_rates(y, np.full(8, -1.0), **compared, on_empty="nan"))


def test_a_ratio_of_negative_scores_does_not_exist():
    groups, ratio = np.repeat(["a", "b"], 2), {"rate": "score", "rule": "ratio"}
    assert group_rates(None, [1.0, 3.0, 0.5, 0.5], sensitive_features=groups, **ratio) == 0.75
    for scores in ([1.0, 1.0, -0.5, -0.5], [-1.0, -1.0, -0.5, -0.5]):
        with pytest.raises(ValueError, match=r"does not exist, as a group has a rate below 0. Compare differences"):
            group_rates(None, scores, sensitive_features=groups, **ratio)
        assert np.isnan(group_rates(None, scores, sensitive_features=groups, **ratio, on_empty="nan"))
