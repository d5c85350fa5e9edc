"""Inputs that fit and predict accept, and messages about those that they do not accept."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    AUCFairClassifier,
    CertifiedFairClassifier,
    FairBoostingClassifier,
    FairBoostingRegressor,
    FairHeadClassifier,
    FairnessWarning,
    FairRanker,
    GroupLossRegressor,
    PartialParityClassifier,
    PartialParityRegressor,
    certify,
)
from fairconstrained.constraints import GroupRates
from fairconstrained.postprocessing import GroupThresholdClassifier, ScoreShiftPostprocessor
from fairconstrained.reporting import FairnessReport


def classifier(**options):
    """Short runs under an active constraint: what is tested here is what goes in, not how far the objective comes."""
    return PartialParityClassifier(**{"kappa": 0.2, "constraint": "demographic_parity", "tol": 0.05, **options})


@pytest.fixture(scope="module")
def reference(classes):
    X, y, groups = classes
    return classifier().fit(X, y, sensitive_features=groups)


# --- formats

GROUP_FORMATS = {
    "list": lambda g: g.tolist(),
    "strings": lambda g: np.array(["f", "m"])[g],
    "objects": lambda g: np.array(["f", "m"], dtype=object)[g],
    "booleans": lambda g: g.astype(bool),
    "floats": lambda g: g.astype(float),
    "column": lambda g: g[:, None],
    "series": lambda g: pd.Series(g, index=np.arange(g.size)[::-1]),
    "categories": lambda g: pd.Series(np.array(["f", "m"])[g], dtype="category"),
    "string dtype": lambda g: pd.Series(np.array(["f", "m"])[g], dtype="string"),
    "frame": lambda g: pd.DataFrame({"sex": np.array(["f", "m"])[g]}),
    "two columns": lambda g: pd.DataFrame({"sex": np.array(["f", "m"])[g], "constant": 1}),
}


@pytest.mark.parametrize("convert", GROUP_FORMATS.values(), ids=GROUP_FORMATS.keys())
def test_formats_of_the_groups(classes, reference, convert):
    X, y, groups = classes
    model = classifier().fit(X, y, sensitive_features=convert(groups))
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    assert model.groups_.shape == (2,)


LABEL_FORMATS = {
    "strings": np.array(["no", "yes"]),
    "booleans": np.array([False, True]),
    "signs": np.array([-1, 1]),
    "floats": np.array([0.0, 1.0]),
    "objects": np.array(["no", "yes"], dtype=object),
}


@pytest.mark.parametrize("names", LABEL_FORMATS.values(), ids=LABEL_FORMATS.keys())
def test_formats_of_the_labels(classes, reference, names):
    X, y, groups = classes
    model = classifier().fit(X, names[y], sensitive_features=groups)
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(model.predict(X), names[reference.predict(X)])
    assert model.score(X, names[y]) == reference.score(X, y)


def test_labels_as_a_series_of_categories(classes, reference):
    X, y, groups = classes
    labels = pd.Series(np.array(["no", "yes"])[y], dtype="category")
    model = classifier().fit(X, labels, sensitive_features=groups)
    np.testing.assert_array_equal(model.coef_, reference.coef_)


def test_data_frames(classes, reference):
    X, y, groups = classes
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"], index=np.arange(y.size) + 1000)
    series = pd.Series(groups, index=frame.index[::-1])  # rows are matched by position, not by index
    with pytest.warns(FairnessWarning, match="the same row labels"):
        model = classifier().fit(frame, pd.Series(y), sensitive_features=series)
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(model.predict(frame), reference.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("options", [{"kappa": None}, {}, {"group_interactions": True}], ids=str)
def test_sparse_and_dense_features_agree(classes, options):
    X, y, groups = classes
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense, sparse = (classifier(**options).fit(table, y, sensitive_features=groups) for table in (X, sp.csr_array(X)))
    assert sparse.status_ == dense.status_ == "optimal"
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-3 if "kappa" not in options else 1e-5)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(X), sensitive_features=groups),
        sparse.decision_function(X, sensitive_features=groups),
        atol=1e-12,
    )


@pytest.fixture(scope="module")
def csr(classes):
    X, y, groups = classes
    model = classifier(kappa=0.3, group_interactions=True)
    return model.fit(sp.csr_array(X), y, sensitive_features=groups)


@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array])
def test_sparse_formats(classes, csr, convert):
    X, y, groups = classes
    other = clone(csr).fit(convert(X), y, sensitive_features=groups)
    np.testing.assert_array_equal(other.coef_, csr.coef_)
    np.testing.assert_array_equal(
        other.predict(convert(X), sensitive_features=groups), csr.predict(X, sensitive_features=groups)
    )


def test_float32_features(classes, reference):
    X, y, groups = classes
    model = classifier().fit(X.astype(np.float32), y, sensitive_features=groups)
    assert model.objective_ == pytest.approx(reference.objective_, rel=0.01)


def test_inputs_are_not_changed(classes):
    X, y, groups = (column.copy() for column in classes)
    weights = np.ones(y.size)
    PartialParityRegressor(0.2).fit(X, y.astype(float), sensitive_features=groups, sample_weight=weights)
    for before, after in zip((*classes, np.ones(y.size)), (X, y, groups, weights), strict=True):
        np.testing.assert_array_equal(before, after)


def test_parameters_are_stored_untouched(classes):
    X, y, groups = classes
    options = {"inner_iter": 30}
    model = classifier(interval=[0.0, 0.5], solver_options=options, max_iter=60, tol=1e-3)
    before = dict(model.get_params())
    model.fit(X, y, sensitive_features=groups)
    assert all(model.get_params()[name] is value for name, value in before.items())
    assert options == {"inner_iter": 30}


# --- errors in the data


@pytest.mark.parametrize("estimator", [PartialParityClassifier(), PartialParityRegressor()], ids=["classes", "numbers"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["X", "y", "sensitive_features", "sample_weight"])
def test_values_that_are_not_finite(classes, estimator, value, where):
    arrays = {"X": classes.X, "y": classes.y, "sensitive_features": classes.groups, "sample_weight": np.ones(600)}
    arrays[where] = arrays[where].astype(float).copy()
    arrays[where].flat[3] = value
    name = "infinity" if np.isinf(value) else "NaN"
    with pytest.raises(ValueError, match=f"(?s){where.replace('X', 'Input X')}.*{name}"):
        estimator.fit(arrays.pop("X"), arrays.pop("y"), **arrays)


def test_missing_groups_are_counted(classes):
    X, y, groups = classes
    with pytest.raises(ValueError, match="missing values in 2 rows"):
        classifier().fit(X, y, sensitive_features=[None, None, *groups[2:]])


@pytest.mark.parametrize("short", ["y", "sensitive_features", "sample_weight"])
def test_lengths(classes, short):
    arrays = {"y": classes.y, "sensitive_features": classes.groups, "sample_weight": np.ones(600)}
    arrays[short] = arrays[short][:-1]
    with pytest.raises(ValueError, match=r"599"):
        classifier().fit(classes.X, **arrays)


def test_one_class(classes):
    X, y, groups = classes
    with pytest.raises(ValueError, match="one class"):
        classifier().fit(X, np.ones(y.size), sensitive_features=groups)
    with pytest.raises(ValueError, match=r"one class only \(.*positive weight\)"):
        classifier().fit(X, y, sensitive_features=groups, sample_weight=(y == 1).astype(float))


def test_three_classes(classes):
    X, _, groups = classes
    with pytest.raises(ValueError, match=r"Only binary classification is supported.*multiclass"):
        AUCFairClassifier().fit(X, np.arange(600) % 3, sensitive_features=groups)


def test_weights(classes):
    X, y, groups = classes
    with pytest.raises(ValueError, match="Negative values"):
        classifier().fit(X, y, sensitive_features=groups, sample_weight=np.linspace(-1, 1, 600))
    with pytest.raises(ValueError, match=r"non-zero|zero for every row"):
        classifier().fit(X, y, sensitive_features=groups, sample_weight=np.zeros(600))
    with pytest.raises(ValueError, match=r"groups \[1\] have no row with a positive sample_weight"):
        classifier().fit(X, y, sensitive_features=groups, sample_weight=(groups == 0).astype(float))


def test_a_group_that_is_too_small_prints_the_counts(classes):
    X, y, _ = classes
    groups = np.where(np.arange(600) < 9, "few", "many")
    with pytest.raises(ValueError, match=r"at least 10 rows .* fewer rows: \{'few': 9\}"):
        classifier(kappa=0.1).fit(X, y, sensitive_features=groups)
    # rows without weight do not count
    with pytest.raises(ValueError, match=re.escape("{'few': 7}")):
        classifier(kappa=0.1).fit(X, y, sensitive_features=groups, sample_weight=(np.arange(600) >= 2) * 1.0)


# --- errors in the parameters


@pytest.mark.parametrize(
    ("parameter", "options"),
    [
        ("objective", ["logistic", "truncated_logistic", "hinge", "squared", "zero_one"]),
        ("constraint", ["statistical_parity", "demographic_parity"]),
        ("surrogate", ["logistic", "ramp", "smoothstep"]),
        ("solver", ["auto", "augmented_lagrangian", "idca", "switching_subgradient"]),
    ],
)
def test_unknown_names_list_the_options(classes, parameter, options):
    X, y, groups = classes
    with pytest.raises(ValueError, match=f"{parameter}.* must be .*'other'") as raised:
        classifier(**{parameter: "other"}).fit(X, y, sensitive_features=groups)
    assert all(repr(option) in str(raised.value) for option in options)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("kappa", -0.1),
        ("kappa", 1.1),
        ("kappa", "small"),
        ("kappa", np.nan),
        ("alpha", -1.0),
        ("truncation", 0.0),
        ("surrogate_width", 0.0),
        ("surrogate_width", "wide"),
        ("n_levels", 0),
        ("n_levels", 2.5),
        ("max_iter", 0),
        ("tol", -1.0),
        ("threshold", np.inf),
        ("threshold", np.nan),
        ("normalize", "yes"),
        ("group_interactions", 2),
        ("fit_intercept", None),
        ("solver_options", [("inner_iter", 3)]),
        ("random_state", "seed"),
    ],
)
def test_parameters_out_of_range(classes, parameter, value):
    X, y, groups = classes
    with pytest.raises(ValueError, match=parameter):
        classifier(**{parameter: value}).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("kappa", [0.2, None])
@pytest.mark.parametrize(
    ("interval", "message"),
    [
        ((0.4, 0.1), "alpha < beta"),
        ((0.0, 30), r"lie in \[0, 1\]"),
        ([(0.0, 0.3), (0.2, 0.4)], "not overlap"),
        ({0: (0.0, 0.3)}, r"one entry for each of the groups \[0, 1\]"),
        ("top", "pair"),
        (None, "pair"),
    ],
)
def test_intervals(classes, kappa, interval, message):
    X, y, groups = classes
    with pytest.raises(ValueError, match=message):
        classifier(kappa=kappa, interval=interval).fit(X, y, sensitive_features=groups)


def test_unknown_solver_option(classes):
    X, y, groups = classes
    with pytest.raises(ValueError, match=r"solver 'augmented_lagrangian' has no option \['step'\]; its options are"):
        classifier(solver_options={"step": 1}).fit(X, y, sensitive_features=groups)
    with pytest.raises(
        ValueError, match="schedule of solver 'switching_subgradient' must be 'static' or 'diminishing'; got 'x'"
    ):
        classifier(solver="switching_subgradient", solver_options={"schedule": "x"}).fit(
            X, y, sensitive_features=groups
        )


# --- prediction


@pytest.fixture(scope="module")
def by_group(classes):
    X, y, groups = classes
    model = classifier(group_interactions=True, kappa=0.3)
    return model.fit(X, y, sensitive_features=np.array(["f", "m"])[groups])


def test_number_of_features(classes, reference):
    with pytest.raises(ValueError, match="X has 3 features, but PartialParityClassifier is expecting 4"):
        reference.predict(classes.X[:, :3])


def test_a_shared_model_needs_no_groups_and_ignores_them(classes, reference):
    X = classes.X
    np.testing.assert_array_equal(reference.predict(X), reference.predict(X, sensitive_features=["new"] * 600))


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_groups_are_needed_where_they_have_coefficients_of_their_own(classes, by_group, method):
    with pytest.raises(ValueError, match="no sensitive_features arrived at predict"):
        getattr(by_group, method)(classes.X)


def test_an_unseen_group_is_named(classes, by_group):
    groups = np.array(["f", "m"])[classes.groups].astype(object)
    groups[5] = "x"
    with pytest.raises(ValueError, match=r"not seen in fit: \['x'\]. Known groups: \['f', 'm'\]"):
        by_group.predict(classes.X, sensitive_features=groups)


def test_lengths_at_prediction(classes, by_group):
    with pytest.raises(ValueError, match="sensitive_features has 599 rows in place of 600"):
        by_group.predict(classes.X, sensitive_features=["f"] * 599)


def test_the_name_of_a_column_is_no_group_of_every_row(classes):
    with pytest.raises(ValueError, match=r"has 1 row in place of 600\. Pass the group of every row"):
        classifier().fit(classes.X, classes.y, sensitive_features=["sex"])


def test_prediction_for_some_of_the_groups(classes, by_group):
    X, groups = classes.X, np.array(["f", "m"])[classes.groups]
    scores = by_group.decision_function(X, sensitive_features=groups)
    for group, coefficients, intercept in zip("fm", by_group.coef_, by_group.intercept_, strict=True):
        own = groups == group
        alone = by_group.decision_function(X[own], sensitive_features=groups[own])
        np.testing.assert_allclose(alone, scores[own])
        np.testing.assert_allclose(alone, X[own] @ coefficients + intercept)


# --- what a beginner may pass


@pytest.mark.parametrize("column", ["y", "sensitive_features", "sample_weight"])
@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: FairHeadClassifier(LogisticRegression(), e, cv=2)])
def test_row_labels_in_another_order(classes, column, wrap):
    X, y, groups = classes
    X = pd.DataFrame(X)
    columns = {"y": pd.Series(y), "sensitive_features": pd.Series(groups), "sample_weight": pd.Series(np.ones(y.size))}
    columns[column] = columns[column].set_axis(X.index[::-1])
    with pytest.warns(
        FairnessWarning, match=rf"X and {column} have the same row labels .* Pass {column}.loc\[X.index\]"
    ):
        wrap(classifier(new_row_folds=None)).fit(X, **columns)


def test_row_labels_of_columns_in_another_order_beside_an_array(classes):
    X, y, groups = classes
    columns = {"y": pd.Series(y), "sensitive_features": pd.Series(groups)[::-1]}
    with pytest.warns(FairnessWarning, match="y and sensitive_features have the same row labels"):
        classifier(new_row_folds=None).fit(X, **columns)


@pytest.mark.parametrize("index", [lambda i: i, lambda i: i + 1, lambda i: i // 2, lambda i: i.astype(str)])
def test_other_row_labels_are_no_contradiction(classes, index):
    X, y, groups = classes
    X = pd.DataFrame(X)
    groups = pd.Series(groups, index=index(X.index))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(new_row_folds=None).fit(X, y, sensitive_features=groups)


def test_text_among_the_features(classes):
    X, y, groups = classes
    X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(job="clerk", town="Rome")
    with pytest.raises(ValueError, match=r"X has text in the columns 'job', 'town'\. Encode it, as with OneHotEncoder"):
        classifier().fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("dtype", [object, str, "S"])
def test_text_in_an_array(classes, dtype):
    X, y, groups = classes
    text = X.astype(object)
    text[:, 1] = "clerk"
    message = r"X has text in the column 1\. Encode it, as with OneHotEncoder in a ColumnTransformer within a Pipeline"
    for make in (classifier, FairBoostingClassifier):
        with pytest.raises(ValueError, match=message):
            make().fit(text.astype(dtype), y, sensitive_features=groups)
    model = classifier(new_row_folds=None).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match=message):
        model.predict(text.astype(dtype))


def test_columns_of_objects_that_are_numbers_are_no_text(classes):
    X, y, groups = classes
    X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).astype(object).assign(job="clerk")
    with pytest.raises(ValueError, match=r"X has text in the column 'job'\."):
        classifier().fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("targets", [np.array, pd.Series, lambda labels: pd.Series(labels, dtype="category")])
def test_labels_as_the_targets_of_a_regressor(classes, targets):
    X, y, groups = classes
    labels = targets(np.where(np.asarray(y) == np.asarray(y)[0], "low", "high"))
    for model in (GroupLossRegressor(), FairBoostingRegressor()):
        with pytest.raises(ValueError, match=r"y has text\. Pass numbers, or take a classifier"):
            model.fit(X, labels, sensitive_features=groups)


MISSING_LABELS = {
    "None": lambda y: np.where(np.arange(y.size) == 3, None, np.array(["no", "yes"], dtype=object)[y]),
    "strings": lambda y: pd.Series(np.array(["no", "yes"])[y]).where(np.arange(y.size) != 3),
    "string dtype": lambda y: pd.Series(np.array(["no", "yes"])[y], dtype="string").where(np.arange(y.size) != 3),
    "categories": lambda y: pd.Series(np.array(["no", "yes"])[y], dtype="category").where(np.arange(y.size) != 3),
    "nullable": lambda y: pd.Series(y, dtype="Int64").where(np.arange(y.size) != 3),
}


@pytest.mark.parametrize("labels", MISSING_LABELS.values(), ids=MISSING_LABELS.keys())
def test_missing_labels(classes, labels):
    X, y, groups = classes
    y = (np.asarray(y) > 0).astype(int)
    given, options = labels(y), {"sensitive_features": groups}
    message = rf"y has NaN or missing values in 1 of {y.size} rows; drop these rows\."
    model = LogisticRegression().fit(X, y)
    for estimator in (
        classifier(),
        FairBoostingClassifier(),
        FairHeadClassifier(LogisticRegression(), classifier()),
        GroupThresholdClassifier(LogisticRegression()),
        ScoreShiftPostprocessor(LogisticRegression()),
        CertifiedFairClassifier(LogisticRegression(), kappa=0.1, metric="demographic_parity"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.fit(X, given, **options)
    with pytest.raises(ValueError, match=message):
        certify(model, X, given, metric="demographic_parity", **options)
    with pytest.raises(ValueError, match=message):
        FairnessReport.from_estimator(model, X, given, **options)


def test_dates_among_the_features(classes):
    X, y, groups = classes
    X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(hired=pd.Timestamp("2020-01-31"))
    with pytest.raises(ValueError, match=r"X has dates or durations in the column 'hired'\. Replace them by numbers"):
        classifier().fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        (lambda days: np.datetime64("2020-01-31") + days, "0, 1"),
        (lambda days: days, "0, 1"),
        (lambda days: (np.datetime64("2020-01-31") + days).astype(object), "0, 1"),
        (lambda days: pd.DataFrame(days, columns=["hired", "left"]), "'hired', 'left'"),
        (lambda days: pd.DataFrame({"x": 0.5, "paid": days[:, 0]}), "'paid'"),
    ],
)
def test_tables_of_dates_are_no_numbers_whose_unit_nobody_has_chosen(classes, table, columns):
    X, y, groups = classes
    days = np.arange(2 * y.size).reshape(-1, 2).astype("timedelta64[D]")
    for model in (classifier(), FairBoostingClassifier()):
        with pytest.raises(ValueError, match=rf"X has dates or durations in the columns? {columns}"):
            model.fit(table(days), y, sensitive_features=groups)
    model = FairBoostingClassifier(kappa=None, n_estimators=2).fit(X[:, :2], y, sensitive_features=groups)
    with pytest.raises(ValueError, match="X has dates or durations in the columns 0, 1"):
        model.predict(days)


def test_a_polars_table_of_dates(classes):
    polars = pytest.importorskip("polars")
    _, y, groups = classes
    days = np.arange(y.size).astype("timedelta64[ms]")
    for columns in ({"hired": np.datetime64(0, "ms") + days}, {"paid": days, "hired": np.datetime64(0, "ms") + days}):
        names = ", ".join(map(repr, columns))
        with pytest.raises(ValueError, match=rf"X has dates or durations in the columns? {names}\."):
            classifier().fit(polars.DataFrame(columns), y, sensitive_features=groups)


def test_relevance_in_words_and_dates_as_targets(classes):
    X, y, groups = classes
    queries = np.arange(y.size) // 10
    words = np.where(np.asarray(y) == np.asarray(y)[0], "good", "perfect")
    days = np.datetime64("2020-01-31") + np.arange(y.size)
    for targets in (words, words.astype(object), pd.Series(words, dtype="category")):
        with pytest.raises(ValueError, match=r"y has text\. Pass numbers, of which more is better"):
            FairRanker().fit(X, targets, qid=queries, sensitive_features=groups)
    with pytest.raises(ValueError, match="y has dates or durations"):
        FairRanker().fit(X, days, qid=queries, sensitive_features=groups)
    with pytest.raises(ValueError, match="y has dates or durations"):
        GroupLossRegressor().fit(X, days, sensitive_features=groups)
    ranker = FairRanker(kappa=None, new_row_folds=None).fit(X, np.arange(y.size) % 10, qid=queries)
    with pytest.raises(ValueError, match="y has text"):
        ranker.score(X, words, qid=queries)


@pytest.mark.parametrize("name", ["demografic_parity", "DemographicParity", "demographic parity"])
def test_a_name_that_is_nearly_right(classes, name):
    X, y, groups = classes
    with pytest.raises(ValueError, match="Did you mean 'demographic_parity'\\?"):
        classifier(constraint=name).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("n_ages", [60, 600])
def test_numbers_as_groups(classes, constraint, n_ages):
    X, y, _ = classes
    ages = np.repeat(np.linspace(18, 90, n_ages), y.size // n_ages)
    with pytest.raises(ValueError, match="cut them into bands"):
        classifier(kappa=0.05, constraint=constraint).fit(X, y, sensitive_features=ages)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("selection_rate_ratio", "GroupRates(rate='selection', rule='ratio', kappa=...)"),
        ("loss_parity", "LossParity(kappa=...)"),
        ("inter_group", "AUCGap(constraint='inter_group', kappa=...)"),
    ],
)
def test_a_name_of_another_estimators_constraint_is_told_what_takes_its_place(name, written):
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    with pytest.raises(ValueError, match=re.escape(f"got {name!r}. Give {written} in its place.")):
        PartialParityClassifier(constraint=name).fit(X, y, sensitive_features=y)


@pytest.mark.parametrize("name", ["equal_mean_scores", "equal_opportunity", "loss_parity"])
def test_a_regressor_is_told_constraints_that_it_takes(name):
    X, y, groups = np.arange(200.0)[:, None], np.arange(200.0), np.arange(200) % 2
    with pytest.raises(ValueError, match=re.escape("GroupRates(rate=..., kappa=...)")) as caught:
        PartialParityRegressor(constraint=name).fit(X, y, sensitive_features=groups)
    assert "in its place" not in str(caught.value)
    rates = re.findall("'([a-z]+)'", str(caught.value).partition("GroupRates")[2])
    assert rates == ["score", "squared", "absolute"]
    for rate in rates:
        taken = GroupRates(rate=rate, kappa=10.0)
        PartialParityRegressor(constraint=taken, new_row_folds=None).fit(X, y, sensitive_features=groups)


def test_a_name_that_there_is_not_gets_no_advice():
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    with pytest.raises(ValueError, match=r"got 'four_fifths'\.$"):
        PartialParityClassifier(constraint="four_fifths").fit(X, y, sensitive_features=y)
