"""The tables against counts by hand, scikit-learn and the metrics; what goes in, and what is refused."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as skm
from sklearn.utils import check_random_state

from fairconstrained import metrics
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import METRICS
from fairconstrained.reporting import FairnessReport, fairness_report
from fairconstrained.reporting._gaps import READS, report_gaps

HAND = {
    # group a: labels 1 1 0 0 0, decisions 1 0 1 0 0; group b: labels 1 1 1, decisions 1 1 0
    "n_samples": [5, 3, 8],
    "share": [5 / 8, 3 / 8, 1],
    "base_rate": [2 / 5, 1, 5 / 8],
    "positive_rate": [2 / 5, 2 / 3, 4 / 8],
    "true_positive_rate": [1 / 2, 2 / 3, 3 / 5],
    "false_positive_rate": [1 / 3, np.nan, 1 / 3],
    "precision": [1 / 2, 1, 3 / 4],
    "accuracy": [3 / 5, 2 / 3, 5 / 8],
    # of the six pairs of a: 3 > 2, 1, -1 and -2 > none but none; of all 15: 3 beats 3, -2 none, 4 3, 5 3, -3 none
    "auc": [3 / 6, np.nan, 9 / 15],
}
Y_TRUE, SCORE, GROUP = [1, 1, 0, 0, 0, 1, 1, 1], [3.0, -2.0, 2.0, -0.5, -1.0, 4.0, 5.0, -3.0], list("aaaaabbb")


def make(y_true=Y_TRUE, y_score=SCORE, **kwargs):
    return fairness_report(y_true, y_score, **{"sensitive_features": GROUP, "n_resamples": 0} | kwargs)


def test_table_by_hand():
    table = make().table
    expected = pd.DataFrame(HAND, index=pd.Index(["a", "b", "overall"], name="group"))
    pd.testing.assert_frame_equal(table.drop(columns="log_loss"), expected, check_dtype=False)


def test_row_labels_in_another_order():
    groups = pd.Series(GROUP, index=range(8)[::-1])
    with pytest.warns(FairnessWarning, match=r"Pass sensitive_features.loc\[y_true.index\]"):
        make(pd.Series(Y_TRUE), sensitive_features=groups)


def test_losses_and_areas_are_those_of_scikit_learn(rows):
    y_true, scores, groups = rows
    probability = 1 / (1 + np.exp(-scores))
    weights = np.random.default_rng(1).uniform(0.2, 2, 600)
    for report in (
        make(y_true, scores, sensitive_features=groups, sample_weight=weights),
        make(y_true, probability, sensitive_features=groups, sample_weight=weights, threshold=0.5),
    ):
        for name, members in {"a": groups == "a", "b": groups == "b", "overall": groups != "c"}.items():
            own = report.table.loc[name]
            sample = y_true[members], probability[members]
            assert own["log_loss"] == pytest.approx(skm.log_loss(*sample, sample_weight=weights[members]))
            assert own["auc"] == pytest.approx(skm.roc_auc_score(*sample, sample_weight=weights[members]))


def test_weights_stand_for_repeated_rows(rows):
    y_true, scores, groups = rows
    times = np.random.default_rng(2).integers(0, 4, 600)
    weighted = make(y_true, scores, sensitive_features=groups, sample_weight=times, interval=(0, 0.3))
    repeated = make(*(np.repeat(column, times) for column in (y_true, scores)), interval=(0, 0.3),
                    sensitive_features=np.repeat(groups, times))  # fmt: skip
    columns = weighted.table.columns.drop("n_samples")
    pd.testing.assert_frame_equal(weighted.table[columns], repeated.table[columns])
    np.testing.assert_allclose(weighted.gaps["value"], repeated.gaps["value"], atol=1e-12)


def test_gaps_are_those_of_the_metrics(rows, report):
    y_true, scores, groups = rows
    positive = (scores > 0).astype(int)
    expected = {
        "independence_gap": metrics.independence_gap(y_true, positive, sensitive_features=groups),
        "separation_gap": metrics.separation_gap(y_true, positive, sensitive_features=groups),
        "inter_group_auc_gap": metrics.inter_group_auc_gap(y_true, scores, sensitive_features=groups),
        "loss_parity_gap": metrics.loss_parity_gap(y_true, scores, sensitive_features=groups),
        "wasserstein_gap": metrics.wasserstein_gap(None, 1 / (1 + np.exp(-scores)), sensitive_features=groups),
        "partial_statistical_parity_gap": metrics.partial_statistical_parity_gap(
            None, scores, sensitive_features=groups, interval=(0, 0.3)
        ),
        "rate_gap": metrics.rate_gap(y_true, scores, sensitive_features=groups, constraint="intersectional"),
    }
    for name, value in expected.items():
        assert report.gaps.loc[name, "value"] == pytest.approx(value, abs=1e-12), name


def test_every_metric_has_an_entry_and_reads_what_the_metric_reads():
    assert set(METRICS) - {info.name for info in report_gaps()} == {"inaccuracy"}  # no gap, but a column of the table
    reads = {"decisions": "predict", "probabilities": "predict_proba"}
    for info in report_gaps():
        assert reads.get(info.reads, "decision_function") == info.response, info.name
    assert {info.reads for info in report_gaps()} == set(READS)


def test_gaps_are_chosen_by_any_of_their_names(rows):
    y_true, scores, groups = rows
    report = fairness_report(
        y_true, y_score=scores, sensitive_features=groups, metrics=["equalized_odds", "inter_group"]
    )
    assert list(report.gaps.index) == ["separation_gap", "inter_group_auc_gap"]


def test_columns_of_the_table_and_gaps_agree(rows):
    """Where a gap is the range of a column, for three groups too."""
    y_true, scores, _ = rows
    report = make(y_true, scores, sensitive_features=np.arange(600) % 3)
    groups, gaps = report.table.iloc[:-1], report.gaps["value"]
    for column, name in {
        "positive_rate": "independence_gap",
        "true_positive_rate": "equal_opportunity_gap",
        "auc": "intra_group_auc_gap",
        "log_loss": "loss_parity_gap",
    }.items():
        assert np.ptp(groups[column]) == pytest.approx(gaps[name])


def test_partial_gaps_only_with_an_interval(rows, report):
    y_true, scores, groups = rows
    without = make(y_true, scores, sensitive_features=groups)
    left_out = report.gaps.index.difference(without.gaps.index)
    assert len(left_out) == 5
    assert all(name.startswith("partial_") for name in left_out)
    assert "Only ranks 0%–30% of each group" in report.gaps.loc["partial_group_auc_gap", "description"]


def test_interval_by_group(rows):
    y_true, scores, groups = rows
    own = {"a": (0, 0.3), "b": [(0, 0.1), (0.5, 0.6)]}
    report = make(y_true, scores, sensitive_features=groups, interval=own)
    name = "partial_statistical_parity_gap"
    assert report.gaps.loc[name, "value"] == pytest.approx(
        METRICS[name].function(None, scores, sensitive_features=groups, interval=own)
    )
    assert report.settings["Percentile interval"] == "ranks 0%–30% of a; ranks 0%–10% and 50%–60% of b"
    assert "ranks 0%–10% and 50%–60%" in report.to_html()


def test_decisions_alone():
    report = make(y_score=None, y_pred=[1, 0, 1, 0, 0, 1, 1, 0])
    assert "auc" not in report.table
    assert report.table.loc["a", "precision"] == 0.5
    assert set(report.gaps.index) == {info.name for info in report_gaps() if "decisions" in info.reads}
    html = report.to_html()
    assert "<figure" not in html
    assert "a report of decisions" in html


def test_decisions_of_another_origin_than_the_threshold():
    report = make(y_pred=[1] * 8)
    assert report.table["positive_rate"].tolist() == [1, 1, 1]
    assert report.gaps.loc["rate_gap", "value"] == 0
    assert "In 4 of 8 rows the decision is not that of the threshold 0." in str(report)


def test_labels_of_any_kind():
    words = np.where(np.array(Y_TRUE) == 1, "yes", "no")
    report = make(words)
    np.testing.assert_array_equal(report.table, make().table)
    assert report.settings["Labels"] == "“yes” is positive, “no” negative"
    swapped = make(words, pos_label="no", y_score=-np.array(SCORE))
    assert swapped.table.loc["overall", "base_rate"] == 3 / 8


@pytest.mark.slow
def test_several_columns_make_combinations():
    table = pd.DataFrame({"sex": list("mmffmmff"), "old": [True, False] * 4})
    report = make(sensitive_features=table.astype(str), interval=(0, 0.5))
    assert report.table.index.tolist() == [("f", "False"), ("f", "True"), ("m", "False"), ("m", "True"), "overall"]
    assert "by sex and old" in report.settings["Rows"]
    assert "f &amp; old True" in report.to_html()


def test_ranges_stand_in_the_order_of_their_numbers():
    ages, ordered = ["100+", "25-40", "<25", "unknown", "41-99"] * 4, ["<25", "25-40", "41-99", "100+", "unknown"]
    rows = {"y_true": [0, 1] * 10, "y_score": None, "y_pred": [0, 1, 1, 0] * 5, "n_resamples": 0}
    assert fairness_report(**rows, sensitive_features=ages).table.index.tolist() == [*ordered, "overall"]
    several = fairness_report(**rows, sensitive_features=pd.DataFrame({"sex": ["m", "f"] * 10, "age": ages}))
    assert several.table.index.tolist() == [*((sex, age) for sex in "fm" for age in ordered), "overall"]
    assert several.table["n_samples"].tolist() == [2] * 10 + [20]


def test_an_empty_cell_is_nan_and_said(rows):
    y_true, scores, groups = rows
    groups = groups.astype(object)
    groups[:3], y_true = "tiny", np.where(np.arange(600) < 3, 0, y_true)
    report = make(y_true, scores, sensitive_features=groups)
    assert report.table.loc["tiny", ["true_positive_rate", "auc"]].isna().all()
    assert np.isnan(report.gaps.loc["equal_opportunity_gap", "value"])
    assert np.isfinite(report.gaps.loc["independence_gap", "value"])
    for words in (
        "True positive rate is not defined for tiny: no positives.",
        "Fewer than 30 rows, so hardly more than anecdotes: tiny.",
        "Left out here, for fewer than 30 rows: tiny.",
    ):
        assert words in str(report)


def test_intervals_of_few_rows_are_said_to_be_narrow(rows):
    y_true, scores, groups = rows
    groups = np.where(np.arange(600) < 3, "tiny", groups)
    report = make(y_true, scores, sensitive_features=groups, n_resamples=400, metrics=["independence_gap"])
    assert "hardly more than anecdotes: tiny. Intervals of gaps that they enter may be too narrow." in str(report)
    assert "too narrow" not in str(make(y_true, scores, sensitive_features=groups))


def test_one_label_only():
    report = make([1] * 8)
    assert report.table["base_rate"].tolist() == [1, 1, 1]
    assert report.table["auc"].isna().all()
    assert "<h1>" in report.to_html()


def test_groups_that_do_not_differ_in_anything():
    report = make([0, 1] * 4, [2.0] * 8, sensitive_features=list("aabbaabb"), interval=(0, 0.5), threshold=0)
    assert report.verdict[0] == "Positive rate (share whose decision is positive): 100.0% for all groups."
    assert "Accuracy: 50.0% for all groups." in report.verdict
    assert "Scores: the same for all groups." in report.verdict
    assert "Scores within ranks 0%–50%: the same for all groups." in report.verdict
    assert not any("apart" in sentence for sentence in report.verdict)


def test_scores_within_an_interval_are_said_to_be_those_there(report):
    (everywhere,) = [sentence for sentence in report.verdict if sentence.startswith("Scores:")]
    (within,) = [sentence for sentence in report.verdict if sentence.startswith("Scores within ranks 0%–30%:")]
    assert "of the rows there" not in everywhere
    scores, groups = report.y_score, report.rows.grouped.codes
    threshold = float(within.split(" are above ")[1].split(",")[0])
    for code, name in enumerate("ab"):
        top = np.sort(scores[groups == code])[::-1][: round(0.3 * np.sum(groups == code))]
        share = float(within.split(f"% of those of {name}")[0].split()[-1])
        # the threshold is rounded, by less than one score
        assert share == pytest.approx(100 * np.mean(top > threshold), abs=100 / top.size + 0.05)


def test_a_group_called_overall():
    report = make(sensitive_features=["overall"] * 5 + ["b"] * 3)
    assert report.table.index.tolist() == ["b", "overall", "overall"]
    assert report.table["n_samples"].tolist() == [3, 5, 8]
    assert "<h1>" in report.to_html()


def test_text_in_a_terminal(report):
    assert repr(report).startswith("FairnessReport(600 rows, 2 groups): ")
    assert "\n" not in repr(report)
    text = str(report)
    assert all(name in text for name in ("overall", "inter_group_auc_gap", "positive_rate"))
    assert max(map(len, text.splitlines())) <= 200


def test_seed_of_a_generator_is_kept():
    report = make(random_state=np.random.RandomState(3))
    assert report.random_state == check_random_state(3).randint(2**31)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y_score": [0.1, 0.9] * 4}, r"probabilities.*Pass threshold=0\.5"),
        ({"y_score": [0, 1] * 4}, "decisions: pass them as y_pred"),
        ({"y_score": [0, 30, 99, 4, 2, 70, 80, 9]}, "from 0 to 99, .* pass as threshold the score above which"),
        ({"y_score": None}, "needs y_score, or y_pred"),
        ({"y_true": [], "y_score": [], "sensitive_features": []}, "y_true is empty"),
        ({"y_score": SCORE[:-1]}, "inconsistent numbers of samples"),
        ({"y_score": [*SCORE[:-1], np.nan]}, "NaN"),
        ({"y_true": [0, 1, 2, 0, 1, 2, 0, 1]}, "3 labels, and y_score has no column for each"),
        ({"y_true": [0.5] * 8}, "continuous"),
        ({"y_true": range(8)}, "is about class labels: .* pass whether they exceed a value, such as y > 100"),
        ({"y_pred": [1, 0, 2] + [0] * 5}, "3 labels, and y_score has no column for each"),
        ({"pos_label": 7}, "pos_label=7"),
        ({"sensitive_features": ["a"] * 8}, "only one: 'a'"),
        ({"sensitive_features": list("ab")}, "has 2 rows"),
        ({"sensitive_features": [*"aaaabbb", None]}, "missing values in 1 rows"),
        ({"sensitive_features": np.eye(8, 2, dtype=bool)}, "do not overlap"),
        ({"sensitive_features": np.eye(8, 2, dtype=bool).tolist()}, "do not overlap"),
        ({"sensitive_features": np.zeros((8, 1, 1))}, "sensitive_features must be .*got 3 dimensions"),
        ({"sample_weight": [-1] * 8}, "negative"),
        ({"threshold": np.inf}, "finite number, in units of the scores; got inf"),
        ({"threshold": "0"}, "finite number, in units of the scores; got '0'"),
        ({"interval": (0.3, 0.1)}, "alpha < beta"),
        ({"interval": {"a": (0, 1)}}, "one entry for each"),
        ({"metrics": ["independence_gap", "no_gap"]}, r"metrics \['no_gap'\] are not gaps"),
        ({"metrics": ["demographic_parity_diference"]}, "Did you mean 'demographic_parity_difference'?"),
        ({"metrics": ["Sp"]}, "Did you mean 'separation_gap'?"),
        ({"metrics": "partial_group_auc_gap"}, "needs an interval"),
        ({"metrics": ["group_auc_gap"], "y_score": None, "y_pred": Y_TRUE}, "needs y_score"),
        ({"level": 1.0}, "between 0 and 1"),
        ({"n_resamples": 399}, "at least 400 for intervals of level 0.95"),
        ({"n_resamples": 400, "level": 0.99}, "at least 2000"),
        ({"n_resamples": 0.5}, "must be 0"),
        ({"path": [1]}, "FairnessPath, got list"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_scores_of_zero_are_those_of_a_constant_model():
    report = make(y_score=np.zeros(8))
    assert report.settings["Scores"] == "log-odds"
    assert not report.table["positive_rate"].any()
    assert report.table["log_loss"].to_numpy() == pytest.approx(np.log(2))
    assert make(y_score=np.zeros(8), threshold=0.5).settings["Scores"] == "probabilities"


def test_points_have_no_losses():
    points = 10.0 * (np.array(SCORE) + 4)
    plain = make()
    report = make(y_score=points, threshold=40)
    columns = plain.table.columns.drop("log_loss")
    pd.testing.assert_frame_equal(report.table, plain.table[columns])
    assert set(plain.gaps.index) - set(report.gaps.index) == {"loss_parity_gap", "wasserstein_gap"}
    assert "log_loss" in make(y_score=points, threshold=0).table  # says that these are log-odds


def test_a_gap_at_a_threshold_needs_one():
    points, decisions = 10.0 * (np.array(SCORE) + 4), (np.array(SCORE) > 0).astype(int)
    given = {"y_score": points, "y_pred": decisions, "interval": (0, 0.5)}
    report = make(**given)
    assert "partial_statistical_parity_gap" in report.gaps.index
    assert "partial_demographic_parity_gap" not in report.gaps.index
    assert "Threshold" not in report.settings
    assert "the decision is not" not in str(report)
    with pytest.raises(ValueError, match="'partial_demographic_parity' needs a threshold"):
        make(**given, metrics=["partial_demographic_parity"])
    assert "partial_demographic_parity_gap" in make(**given, threshold=40).gaps.index


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(range(40), name="age"),
        pd.Series(np.linspace(0, 1, 40), name="age", dtype="Float64"),
        pd.Series(pd.date_range("1990", periods=40), name="age"),
        pd.DataFrame({"sex": list("fm") * 20, "age": range(40)}),
    ],
    ids=["whole numbers", "nullable numbers", "dates", "two columns"],
)
def test_numbers_that_nobody_cut(column):
    labels, scores = [0, 1, 1, 0] * 10, np.linspace(-1, 1, 40)
    message = "40 groups, 40 of them with fewer than 30 rows, as every value of 'age' is a group. Cut .* pandas.cut"
    with pytest.warns(FairnessWarning, match=message):
        make(labels, scores, sensitive_features=column, metrics=["independence_gap"])
    # names are no numbers, and few numbers are groups as well as names are
    make(labels, scores, sensitive_features=[f"town {k}" for k in range(40)], metrics=["independence_gap"])
    make(labels, scores, sensitive_features=np.arange(40) % 8, metrics=["independence_gap"])
    both = pd.DataFrame({"town": [f"town {k}" for k in range(40)], "sex": np.arange(40) % 2})
    make(labels, scores, sensitive_features=both, metrics=["independence_gap"])  # 0 and 1 need no bands


@pytest.mark.parametrize(
    ("column", "is_told"),
    [
        (pd.date_range("2024-03-01", periods=40).astype(str), True),
        ([f"2024-03-{day}T12:00+0{1 + (day > 30)}:00" for day in range(10, 32)] * 2, True),
        (pd.date_range("2024-03-01", periods=40).strftime("%Y%m%d"), False),
        (np.arange(1020, 1060).astype(str), False),
    ],
    ids=["dates", "summer time", "without hyphens", "codes"],
)
def test_dates_as_text(column, is_told):
    labels, scores = [0, 1] * (len(column) // 2), np.linspace(-1, 1, len(column))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(labels, scores, sensitive_features=list(column), metrics=["independence_gap"])
    told = ["write the year or the decade in place of dates." in str(warning.message) for warning in caught]
    assert told == [True] * is_told


@pytest.mark.parametrize("values", [("Black", "Black "), ("black", "BLACK"), ("1", 1)])
def test_values_that_look_alike(values):
    groups = pd.Series([*values, "other", "x"] * 2, dtype=object)
    with pytest.warns(FairnessWarning, match=f"column 'group' of .*: {re.escape(repr(list(values)))}"):
        report = make(sensitive_features=groups)
    assert report.rows.grouped.n_groups == 4
    with pytest.warns(FairnessWarning, match="column 'race' of sensitive_features: some values differ"):
        make(sensitive_features=pd.DataFrame({"sex": list("fm") * 4, "race": groups}))


def test_labels_that_look_alike():
    labels = ["yes", "yes ", "no", "no", "no", "yes", "yes", "yes"]
    with pytest.warns(
        FairnessWarning, match="y_true: some values differ in .* are labels of their own: .'yes', 'yes '"
    ):
        report = make(labels, pos_label="yes")
    assert report.table.loc["overall", "base_rate"] == 4 / 8


def test_gaps_by_the_symbols_of_papers():
    report = make(metrics=["pSP", "Ind"], interval=(0, 0.5))
    named = make(metrics=["partial_statistical_parity", "demographic_parity"], interval=(0, 0.5))
    pd.testing.assert_frame_equal(report.gaps, named.gaps)


def test_a_name_without_letters_leaves_no_hole():
    one = make(sensitive_features=[""] * 5 + ["b"] * 3)
    assert "for (empty), " in str(one)
    two = make(sensitive_features=pd.DataFrame({"x": ["", "u"] * 4, "z": [" "] * 5 + ["v"] * 3}))
    assert {"x (empty) & z (empty)", "u & v"} < set(map(two.rows.names.words, two.rows.grouped.labels))


def test_values_that_tell_nothing_have_the_name_of_their_column():
    coded = make(sensitive_features=pd.Series([0] * 5 + [1] * 3, name="veteran"))
    assert "for veteran 0, " in str(coded)
    assert "2 groups: veteran 0 and veteran 1" in re.sub("<[^>]+>", "", coded.to_html()).replace(", ", " and ")
    assert coded.table.index.tolist() == [0, 1, "overall"]
    words = make(sensitive_features=pd.Series(["f"] * 5 + ["m"] * 3, name="sex"))
    assert " for f, " in str(words)
    nameless = make(sensitive_features=[0] * 5 + [1] * 3)
    assert " for 0, " in str(nameless)


def test_chosen_gaps_come_in_the_order_of_the_report():
    assert make(metrics=("loss_parity_gap", "independence_gap")).gaps.index.tolist() == [
        "independence_gap",
        "loss_parity_gap",
    ]
    assert make(metrics=[]).gaps.empty
    assert "Gaps between groups" not in make(metrics=[]).to_html()


def test_public_names():
    import fairconstrained

    assert fairconstrained.fairness_report is fairness_report
    assert fairconstrained.FairnessReport is FairnessReport
