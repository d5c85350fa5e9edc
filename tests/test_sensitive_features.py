"""Sensitive features that are accepted, and messages about all others, alike in all places that take them."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    AUCFairClassifier,
    FairHeadClassifier,
    LossParityClassifier,
    PartialParityClassifier,
    RateParityClassifier,
    certify,
    fairness_report,
    gap_interval,
)
from fairconstrained.checks.messages import shortened_table
from fairconstrained.estimators.grouping import as_labels
from fairconstrained.exceptions import CostlyBoundWarning, FairnessWarning
from fairconstrained.groups import GroupEncoder, Groups
from fairconstrained.metrics import (
    granularity,
    independence_gap,
    minority_share,
    pairwise_ranking_gap,
    partial_statistical_parity_gap,
    rate_gap,
    statistical_parity_gap,
    subset_auc_gap,
)
from fairconstrained.postprocessing import GroupThresholdClassifier, ScoreShiftPostprocessor

N = 120
CODES = np.arange(N) % 2
X = np.random.default_rng(0).normal(size=(N, 2)) + 0.5 * CODES[:, None]
Y = (X[:, 0] + np.random.default_rng(1).normal(size=N) > 0.3).astype(int)
SCORES = X[:, 0]
MEMBERS = {"all": [True] * N, "odd": (CODES == 1).tolist(), "third": (np.arange(N) % 3 == 0).tolist()}

MODEL = PartialParityClassifier(None).fit(X, Y, sensitive_features=CODES)


def model():
    return PartialParityClassifier(None, group_interactions=True)


CERTIFY = {"metric": independence_gap, "allow_training_data": True}

#: Everything that takes sensitive features, as a function of them.
TAKERS = {
    "fit": lambda groups: model().fit(X, Y, sensitive_features=groups),
    "predict": lambda groups: model().fit(X, Y, sensitive_features=CODES).predict(X, sensitive_features=groups),
    "constraint_values": lambda groups: MODEL.constraint_values(X, Y, sensitive_features=groups),
    "label metric": lambda groups: independence_gap(Y, Y, sensitive_features=groups),
    "score metric": lambda groups: statistical_parity_gap(Y, SCORES, sensitive_features=groups),
    "rate metric": lambda groups: rate_gap(2 * Y - 1, SCORES, sensitive_features=groups),
    "ranking metric": lambda groups: pairwise_ranking_gap(Y, SCORES, qid=[0] * N, sensitive_features=groups),
    "granularity": granularity,
    "certify": lambda groups: certify(MODEL, X, Y, sensitive_features=groups, **CERTIFY),
    "gap_interval": lambda groups: gap_interval(independence_gap, Y, Y, sensitive_features=groups, n_resamples=400),
    "report": lambda groups: fairness_report(Y, SCORES, sensitive_features=groups, n_resamples=None),
}
REFUSED = {
    "empty": ([], "is empty"),
    "ragged": ([["a"]] * (N - 1) + [["a", "b"]], "is ragged"),
    "dict": ({"sex": CODES.tolist()}, r"is a dict with the keys \['sex'\].*pd.DataFrame"),
    "record array": (np.rec.fromarrays([CODES, CODES], names="sex,age"), r"fields \['sex', 'age'\].*pd.DataFrame"),
    "string": ("sex", "got 'sex'"),
    "three dimensions": (np.zeros((N, 1, 1)), "got 3 dimensions"),
    "unhashable": (pd.Series([[code] for code in CODES]), "no labels.*unhashable"),
    "masked": (np.ma.array(CODES, mask=np.arange(N) < 3), "missing values in 3 rows"),
    "masked table": (np.ma.array(np.c_[CODES, CODES], mask=np.c_[CODES > 2, np.arange(N) < 2]), "in 2 rows"),
    "missing": ([None, *CODES[1:].tolist()], "missing values in 1 rows"),
}


@pytest.mark.parametrize("taker", TAKERS.values(), ids=TAKERS.keys())
@pytest.mark.parametrize(("groups", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_is_refused_in_one_voice_everywhere(taker, groups, message):
    with pytest.raises(ValueError, match=f"sensitive_features.*{message}"):
        taker(groups)


@pytest.mark.parametrize("taker", [name for name in TAKERS if name not in ("rate metric", "report")])
def test_a_sparse_matrix_where_groups_must_not_overlap(taker):
    with pytest.raises(ValueError, match=r"sparse matrix.*must not overlap.*RateParityClassifier"):
        TAKERS[taker](sp.csr_array(np.c_[CODES, 1 - CODES]))


def test_a_report_of_a_sparse_matrix_says_what_to_pass():
    with pytest.raises(ValueError, match="A report compares groups that do not overlap"):
        TAKERS["report"](sp.csr_array(np.c_[CODES, 1 - CODES]))


# --- labels keep their types

LABELS = {
    "ints and strings": ([1, "a"], (1, "a")),
    "strings and ints": (["b", 10, 9], (9, 10, "b")),
    "tuples": ([("x", 1), ("y", 2)], (("x", 1), ("y", 2))),
    "tuples of types": ([("x", 1), (2, "y")], ((2, "y"), ("x", 1))),
    "tuples and strings": ([("x",), "y"], ("y", ("x",))),
    "tuples of lengths": ([("x",), ("x", 2)], (("x",), ("x", 2))),
}


def exactly(labels):
    return [(type(label), label) for label in labels]


@pytest.mark.parametrize(("given", "labels"), LABELS.values(), ids=LABELS.keys())
def test_labels_keep_their_types(given, labels):
    column = pd.Series([given[i % len(given)] for i in range(N)])
    encoder = GroupEncoder(column)
    assert exactly(encoder.labels) == exactly(labels)
    assert [encoder.labels[code] for code in encoder.codes] == column.tolist()
    assert exactly(as_labels(encoder.labels).tolist()) == exactly(labels)
    np.testing.assert_array_equal(GroupEncoder.encode(column.iloc[::-1], encoder.labels), encoder.codes[::-1])


@pytest.mark.slow
@pytest.mark.parametrize("labels", [[1, "a"], [("x", 1), (2, "y")]], ids=["mixed", "tuples"])
def test_such_labels_through_fit_metric_certificate_and_report(labels):
    column = [labels[code] for code in CODES]
    fitted = model().fit(X, Y, sensitive_features=column)
    plain = model().fit(X, Y, sensitive_features=CODES)
    assert sorted(map(str, fitted.groups_.tolist())) == sorted(map(str, labels))
    assert {type(label) for label in fitted.groups_.tolist()} == {type(label) for label in labels}
    np.testing.assert_allclose(
        fitted.decision_function(X, sensitive_features=column), plain.decision_function(X, sensitive_features=CODES)
    )
    gap, table = independence_gap(Y, Y, sensitive_features=column, return_groups=True)
    assert gap == independence_gap(Y, Y, sensitive_features=CODES) > 0
    assert set(table.index) == set(labels)
    assert certify(MODEL, X, Y, sensitive_features=column, **CERTIFY).gap == pytest.approx(
        independence_gap(Y, MODEL.predict(X), sensitive_features=CODES)
    )
    low, high = TAKERS["gap_interval"](column)
    assert low <= gap <= high
    report = fairness_report(Y, SCORES, sensitive_features=column, n_resamples=None)
    assert report.rows.grouped.n_groups == 2


def test_a_list_of_rows_keeps_the_types_of_its_columns():
    assert GroupEncoder([[1, "a"], [2, "b"], [1, "a"]]).labels == ((1, "a"), (2, "b"))
    assert Groups.of([[True, "a"], [False, "a"]]).labels == ((False, "a"), (True, "a"))


def test_the_groups_of_a_subset_function_keep_their_types():
    seen = []

    def subsets(positive, groups):
        seen.extend(groups)
        first = np.array([group == 1 for group in groups])
        return [first, first, ~first, ~first]

    subset_auc_gap(Y, SCORES, subsets=subsets, sensitive_features=[[1, "a"][code] for code in CODES])
    assert set(seen) == {1, "a"}


def test_a_masked_array_without_masked_values_is_honoured():
    masked = np.ma.array(CODES, mask=np.zeros(N, dtype=bool))
    assert GroupEncoder(masked).labels == (0, 1)
    model().fit(np.ma.array(X, mask=np.zeros(X.shape, dtype=bool)), np.ma.array(Y), sensitive_features=masked)


@pytest.mark.parametrize(
    ("taker", "name"),
    [
        (lambda masked: model().fit(np.ma.column_stack([masked, masked]), Y, sensitive_features=CODES), "X"),
        (lambda masked: MODEL.predict(np.ma.column_stack([masked, masked])), "X"),
        (lambda masked: model().fit(X, masked > 0, sensitive_features=CODES), "y"),
        (lambda masked: certify(MODEL, X, masked > 0, sensitive_features=CODES, **CERTIFY), "y"),
        (lambda masked: statistical_parity_gap(Y, masked, sensitive_features=CODES), "y_score"),
        (lambda masked: independence_gap(Y, masked > 0, sensitive_features=CODES), "y_pred"),
        (lambda masked: independence_gap(Y, Y, sensitive_features=CODES, sample_weight=masked), "sample_weight"),
    ],
)
def test_masked_values_elsewhere_are_refused(taker, name):
    masked = np.ma.array(SCORES**2, mask=np.arange(N) == 5)
    with pytest.raises(ValueError, match=f"{name} is a masked array with . masked values; fill"):
        taker(masked)


# --- other libraries


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame if library == "polars" else frames.table
    strings = frame({"sex": np.array(["f", "m"])[CODES].tolist()})
    assert GroupEncoder(strings).labels == ("f", "m")
    several = frame({"sex": np.array(["f", "m"])[CODES].tolist(), "old": MEMBERS["third"]})
    assert GroupEncoder(several).labels == (("f", False), ("f", True), ("m", False), ("m", True))
    members = frame(MEMBERS)
    expected = Groups.of(pd.DataFrame(MEMBERS), overlapping=True)
    found = Groups.of(members, overlapping=True)
    assert found.names == ("all", "odd", "third")
    np.testing.assert_array_equal(found.codes, expected.codes)
    assert rate_gap(Y, SCORES, sensitive_features=members) == rate_gap(
        Y, SCORES, sensitive_features=pd.DataFrame(MEMBERS)
    )
    fitted = RateParityClassifier(0.5).fit(X, Y, sensitive_features=members)
    assert fitted.groups_.tolist() == ["all", "odd", "third"]
    missing = frame({"sex": [None, *MEMBERS["odd"][1:]]})
    with pytest.raises(ValueError, match="missing values in 1 rows"):
        GroupEncoder(missing)


@pytest.mark.slow
def test_a_polars_series():
    polars = pytest.importorskip("polars")
    series = polars.Series("sex", ["f", "m"]).gather(CODES.tolist())
    assert GroupEncoder(series).labels == ("f", "m")
    assert GroupEncoder(series.cast(polars.Categorical)).labels == ("f", "m")
    low, high = TAKERS["gap_interval"](series)
    assert low <= high


# --- strings for scores


@pytest.mark.parametrize(
    "scores", [np.full(N, "0.5"), ["high"] * N, pd.Series(["0.5"] * N), [0.5, "0.5"] * (N // 2)], ids=str
)
def test_scores_of_strings_are_a_readable_error(scores):
    with pytest.raises(ValueError, match=r"y_score holds strings such as.*decision_function"):
        statistical_parity_gap(Y, scores, sensitive_features=CODES)


# --- many groups in messages


def test_a_table_in_a_message_shows_the_ten_smallest():
    table = pd.DataFrame({"n": np.r_[np.arange(20, 40), 0]}, index=[f"g{i}" for i in range(21)])
    shown = shortened_table(table).splitlines()
    assert len(shown) == 12
    assert shown[-2].split() == ["g20", "0"]  # the smallest ones are shown
    assert shown[-1] == "... and 11 more"


MANY = [f"group {i:02d}" for i in range(40)] * 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda: GroupEncoder.encode(MANY, tuple(f"other {i}" for i in range(40))),
        lambda: Groups.of(np.zeros((5, 40), dtype=bool), overlapping=True),
        lambda: minority_share(None, SCORES, sensitive_features=MANY, minority="x"),
        lambda: partial_statistical_parity_gap(Y, SCORES, sensitive_features=MANY, interval={"group 00": (0, 1)}),
        lambda: independence_gap(Y, Y, sensitive_features=MANY, sample_weight=[0.0] * 40 + [1.0, 0.0] * 40),
        lambda: model().fit(X, Y, sensitive_features=MANY, sample_weight=[0.0, 1.0] * 60),
    ],
)
def test_no_message_lists_more_than_ten_groups(ask):
    with pytest.raises(ValueError, match=r"\.\.\. and \d+ more") as error:
        ask()
    listed = [line for line in str(error.value).split("Known") if line]
    assert all(text.count("group ") <= 12 for text in listed)


@pytest.mark.parametrize(
    "estimator",
    [
        PartialParityClassifier(None, group_interactions=True),
        FairHeadClassifier(LogisticRegression(), RateParityClassifier(0.3), use_groups=True, random_state=0),
        GroupThresholdClassifier(LogisticRegression(), 0.5, random_state=0),
        GroupThresholdClassifier(LogisticRegression(), 0.1, small_groups="merge", random_state=0),
        ScoreShiftPostprocessor(LogisticRegression(), kappa=0.2, protected=(0, 1)),
    ],
    ids=["interactions", "head", "thresholds", "merged", "shifts"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_several_columns_are_told_apart_by_their_names(estimator):
    groups = COLUMNS  # groups of 48, 24, 36 and 12 rows
    y = (SCORES + groups["female"] + np.random.default_rng(2).normal(size=N) > 0.6).astype(int)
    fitted = estimator.fit(X, y, sensitive_features=groups)

    def scores(features):
        return fitted.decision_function(X, sensitive_features=features)

    expected = scores(groups)
    np.testing.assert_array_equal(scores(TURNED), expected)
    np.testing.assert_array_equal(scores(groups.to_numpy()), expected)
    renamed = groups.set_axis(["black", "sex"], axis=1)  # other names: the columns count as they come
    np.testing.assert_array_equal(scores(renamed), expected)
    assert not np.array_equal(scores(groups.to_numpy()[:, ::-1]), expected)


#: Two columns with the same values, and the same in another order.
COLUMNS = pd.DataFrame({"female": np.arange(N) % 5 < 2, "black": np.arange(N) % 10 % 3 == 1}).astype(int)
TURNED = COLUMNS[["black", "female"]]


def test_columns_in_another_order_are_measured_as_the_same_groups():
    fitted = AUCFairClassifier(0.5, protected=(0, 1), random_state=0).fit(X, Y, sensitive_features=COLUMNS)
    measured = fitted.constraint_values(X, Y, sensitive_features=TURNED)
    assert measured == fitted.constraint_values(X, Y, sensitive_features=COLUMNS)
    assert measured != fitted.constraint_values(X, Y, sensitive_features=TURNED.to_numpy())


@pytest.mark.parametrize(
    "estimator",
    [
        AUCFairClassifier(0.05, surrogate="quadratic", objective="auc", protected=(0, 1)),
        LossParityClassifier(0.01, hidden_layer_sizes=(3,), batch_size=30, random_state=0),
    ],
    ids=["moments", "epochs"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_streams_tell_columns_apart_by_their_names(estimator):
    def streamed(second):
        fitted = clone(estimator).partial_fit(X, Y, classes=[0, 1], sensitive_features=COLUMNS)
        return fitted.partial_fit(X, 1 - Y, sensitive_features=second).decision_function(X)

    expected = streamed(COLUMNS)
    np.testing.assert_array_equal(streamed(TURNED), expected)
    assert not np.array_equal(streamed(TURNED.to_numpy()), expected)


def test_two_columns_of_one_name_count_as_they_come():
    groups = pd.DataFrame(np.column_stack([CODES, np.arange(N) % 3 % 2]), columns=["sex", "sex"])
    fitted = model().fit(X, Y, sensitive_features=groups)
    expected = fitted.decision_function(X, sensitive_features=groups.to_numpy())
    np.testing.assert_array_equal(fitted.decision_function(X, sensitive_features=groups), expected)


#: Fits that warn of groups that look alike.
FITS = {
    "estimator": lambda: RateParityClassifier(kappa=0.5, new_row_folds=None),
    "small groups": lambda: RateParityClassifier(kappa=0.01, new_row_folds=None, small_groups="ignore"),
    "head": lambda: FairHeadClassifier(LogisticRegression(), RateParityClassifier(kappa=0.5, new_row_folds=None)),
    "thresholds": lambda: GroupThresholdClassifier(LogisticRegression(), kappa=0.5),
    "shift": lambda: ScoreShiftPostprocessor(LogisticRegression(), kappa=0.5, protected="male"),
}


#: Streams that warn of them in the first call.
STREAMS = {
    "epochs": lambda: LossParityClassifier(kappa=0.5, hidden_layer_sizes=(2,), random_state=0),
    "moments": lambda: AUCFairClassifier(kappa=0.5, surrogate="quadratic", protected="male"),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_streams_warn_once_of_groups_that_look_alike(stream):
    names = np.array(["Female", "male", "female "], dtype=object)[np.arange(N) % 3]
    model = STREAMS[stream]()
    with pytest.warns(FairnessWarning, match=r"\['Female', 'female '\]\. Write them alike"):
        model.partial_fit(X, Y, classes=[0, 1], sensitive_features=names)
    model.partial_fit(X, Y, sensitive_features=names)


@pytest.mark.parametrize("fit", FITS)
def test_fits_warn_of_groups_that_look_alike(fit):
    names = np.array(["Female", "male", "female "], dtype=object)[np.arange(N) % 3]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FITS[fit]().fit(X, Y, sensitive_features=names)
    (told,) = [str(each.message) for each in caught if "differ in blanks" in str(each.message)]
    assert told.startswith("sensitive_features: some values differ in blanks, capitals or type alone, and are groups")
    assert "['Female', 'female ']. Write them alike if they mean the same." in told


def test_merged_groups_of_several_columns_are_told_apart_by_column():
    names = np.array(["Female"] * 2 + ["male"] * 2, dtype=object)[np.arange(N) % 4]
    names[:3] = "female "
    model = PartialParityClassifier(kappa=0.1, constraint="demographic_parity", small_groups="merge")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y, sensitive_features=pd.DataFrame({"site": CODES, "sex": names}))
    assert "(small groups)" in model.groups_.tolist()
    told = [str(each.message) for each in caught if "differ in blanks" in str(each.message)]
    assert len(told) == 1
    assert told[0].startswith("column 'sex' of sensitive_features: some values differ")


@pytest.mark.parametrize(
    "groups",
    [
        pd.Series(["A1", "A2", "a 1"] * (N // 3)),
        CODES.astype(bool),
        pd.DataFrame({"yes": ["no", "yes"] * (N // 2), "no": ["Yes", "Yes", "No"] * (N // 3)}),
    ],
    ids=["names", "booleans", "the same words in two columns"],
)
def test_ordinary_groups_bring_no_warning(groups):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=CostlyBoundWarning)
        RateParityClassifier(kappa=0.9, new_row_folds=None).fit(X, Y, sensitive_features=groups)
