"""Invariances that hold for every metric, on generated data."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import fairconstrained
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import (
    METRICS,
    conditional_parity_gap,
    group_rates,
    pairwise_ranking_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
    statistical_parity_gap,
)

PARTIAL = {name for name in METRICS if name.startswith("partial_")}
AT_THRESHOLD = {"partial_demographic_parity_gap", "partial_equal_opportunity_gap", "partial_equalized_odds_gap"}
UPPER = {"sufficiency_gap": 2.0} | dict.fromkeys(
    ["partial_group_auc_gap", "group_auc_gap", "positive_equality_gap", "negative_equality_gap"], 0.5
)


@st.composite
def samples(draw, max_groups=4):
    """Rows in which every group has every pair of true and predicted label, so that no cell is empty."""
    n_groups = draw(st.integers(2, max_groups))
    row = st.tuples(st.integers(0, n_groups - 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 20))
    corners = [(g, y, p, 4 * g + 2 * y) for g in range(n_groups) for y in (0, 1) for p in (0, 1)]
    rows = np.array(corners + draw(st.lists(row, max_size=25)))
    group, y_true, y_pred, score = rows.T
    return {"group": group, "y_true": y_true, "predict": y_pred, "score": score / 20}


@st.composite
def intervals(draw):
    ends = draw(st.lists(st.integers(0, 10), min_size=2, max_size=4, unique=True).map(sorted))
    pieces = [(low / 10, high / 10) for low, high in zip(ends[::2], ends[1::2], strict=False)]
    return pieces[0] if len(pieces) == 1 else pieces


def evaluate(name, data, interval=(0.0, 1.0), **options):
    if name in PARTIAL:
        options |= {"interval": interval}
    if name in AT_THRESHOLD:
        options |= {"threshold": 0.5}
    info = METRICS[name]
    response = data["predict"] if info.response == "predict" else data["score"]
    return info.function(data["y_true"], response, sensitive_features=data["group"], **options)


@pytest.mark.parametrize("name", METRICS)
@given(data=samples(), interval=intervals(), seed=st.integers(0, 99))
def test_order_of_rows_and_names_of_groups_do_not_matter(name, data, interval, seed):
    value = evaluate(name, data, interval)
    order = np.random.default_rng(seed).permutation(data["group"].size)
    shuffled = {key: column[order] for key, column in data.items()}
    assert evaluate(name, shuffled, interval) == pytest.approx(value, abs=1e-12)
    renamed = data | {"group": np.array(["z", "m", "b", "a"])[data["group"]]}
    assert evaluate(name, renamed, interval) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
@given(data=samples(), interval=intervals(), seed=st.integers(0, 99))
def test_integer_weights_are_repeated_rows(name, data, interval, seed):
    weight = np.random.default_rng(seed).integers(1, 5, data["group"].size)
    repeated = {key: np.repeat(column, weight) for key, column in data.items()}
    value = evaluate(name, data, interval, sample_weight=weight)
    assert value == pytest.approx(evaluate(name, repeated, interval), abs=1e-12)
    # Rows of weight zero are not there.
    kept = np.arange(data["group"].size) < 4 * (data["group"].max() + 1)
    present = {key: column[kept] for key, column in data.items()}
    value = evaluate(name, data, interval, sample_weight=kept.astype(float))
    assert value == pytest.approx(evaluate(name, present, interval), abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
@given(data=samples(), interval=intervals())
def test_range_and_aggregation(name, data, interval):
    value = evaluate(name, data, interval)
    assert 0 <= value <= UPPER.get(name, 1.0)
    if name == "inaccuracy":
        return
    mean = evaluate(name, data, interval, agg="mean")
    assert 0 <= mean <= value + 1e-12
    with_table, table = evaluate(name, data, interval, return_groups=True)
    computed_twice = name in {"partial_group_auc_gap", "wasserstein_gap"}  # with and without the table
    assert with_table == (pytest.approx(value, abs=1e-12) if computed_twice else value)
    assert table["n_samples"].tolist() == np.bincount(data["group"]).tolist()


@pytest.mark.parametrize("name", [name for name, info in METRICS.items() if info.compares_groups])
@pytest.mark.parametrize("agg", ["max", "mean"])
@pytest.mark.parametrize("labels", [[1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]], ids=["both", "positives", "negatives"])
def test_a_single_group_has_no_gap(name, agg, labels):
    data = {"group": list("aaaa"), "y_true": labels, "predict": [1, 0, 0, 1], "score": [0.9, 0.2, 0.1, 0.8]}
    with pytest.warns(FairnessWarning, match="The value is NaN: there is only one group, 'a'") as caught:
        assert np.isnan(evaluate(name, data, agg=agg))
    assert not caught[0].filename.startswith(str(Path(fairconstrained.__file__).parent))
    if "on_empty" in inspect.signature(METRICS[name].function).parameters:
        assert np.isnan(evaluate(name, data, agg=agg, on_empty="nan"))  # without a warning


@pytest.mark.parametrize("rule", ["difference", "to_overall", "ratio", "floor", "ceiling"])
def test_rates_of_a_single_group_exist_where_nothing_is_compared(rule):
    arguments = {"sensitive_features": list("aaaa"), "rule": rule}
    if rule in ("floor", "ceiling"):
        assert group_rates(None, [1.0, -1.0, -1.0, -1.0], **arguments) == 0.25
        return
    with pytest.warns(FairnessWarning, match="there is only one group"):
        assert np.isnan(group_rates(None, [1.0, -1.0, -1.0, -1.0], **arguments))


def test_a_single_group_of_a_membership_is_compared_with_all_rows():
    belongs = csr_array(np.array([[1], [1], [0], [0]]))
    arguments = {"sensitive_features": belongs, "sample_weight": None}
    scores = [1.0, -1.0, -1.0, -1.0]
    assert group_rates(None, scores, rule="to_overall", **arguments) == 0.25
    with pytest.warns(FairnessWarning, match="there is only one group"):
        assert np.isnan(group_rates(None, scores, rule="difference", **arguments))


def test_the_table_of_a_single_group_has_its_auc():
    with pytest.warns(FairnessWarning, match="there is only one group"):
        _, table = partial_group_auc_gap(None, [3, 2, 1], sensitive_features=list("aaa"), return_groups=True)
    assert table["auc"].tolist() == [0.5]


def test_a_gap_of_pairs_needs_two_kinds_of_pairs():
    data = {"qid": [0, 0], "sensitive_features": ["a", "b"]}
    assert np.isnan(pairwise_ranking_gap([1, 0], [2.0, 1.0], **data))  # a above b, and no pair with b above a
    with pytest.warns(FairnessWarning, match="there is only one group"):
        assert np.isnan(
            pairwise_ranking_gap([1, 0], [2.0, 1.0], qid=[0, 0], sensitive_features=["a", "a"], pairs="all")
        )


def test_conditional_parity_of_a_single_group_is_nan():
    with pytest.warns(FairnessWarning, match="there is only one group"):
        gap = conditional_parity_gap(None, [1.0, -1.0], sensitive_features=["a", "a"], strata=["s", "t"])
    assert np.isnan(gap)


@given(data=samples(), interval=intervals(), normalize=st.booleans())
def test_only_the_order_of_scores_matters(data, interval, normalize):
    value = evaluate("partial_statistical_parity_gap", data, interval, normalize=normalize)
    stretched = data | {"score": np.exp(3 * data["score"]) - 5}
    assert evaluate("partial_statistical_parity_gap", stretched, interval, normalize=normalize) == value


@given(data=samples(), normalize=st.booleans())
def test_the_whole_interval_gives_statistical_parity(data, normalize):
    whole = evaluate("partial_statistical_parity_gap", data, (0.0, 1.0), normalize=normalize)
    pieces = evaluate("partial_statistical_parity_gap", data, [(0.0, 0.3), (0.3, 1.0)], normalize=normalize)
    expected = evaluate("statistical_parity_gap", data)
    assert whole == expected
    assert pieces == pytest.approx(expected)


@given(
    group=st.lists(st.sampled_from("abc"), max_size=30).map(lambda drawn: [*drawn, "a", "b"]),
    score=st.floats(-1e6, 1e6),
    interval=intervals(),
    normalize=st.booleans(),
    seed=st.integers(0, 99),
)
def test_constant_scores_are_fair(group, score, interval, normalize, seed):
    scores = np.full(len(group), score)
    weight = np.random.default_rng(seed).uniform(0.1, 5, len(group))
    options = {"sensitive_features": group, "sample_weight": weight}
    assert statistical_parity_gap(None, scores, **options) == 0.0
    options |= {"interval": interval, "normalize": normalize}
    assert partial_statistical_parity_gap(None, scores, **options) == 0.0
