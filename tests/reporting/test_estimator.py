"""Reports of fitted models of several libraries, and what a model says about its bounds."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fairconstrained import (
    ConvergenceWarning,
    FairnessReport,
    GroupLossClassifier,
    GroupLossRegressor,
    MinorityRateClassifier,
    PartialParityClassifier,
    PartialParityClassifierCV,
    RateParityClassifier,
    fairness_report,
)
from fairconstrained.constraints import GroupRates, RateGap, StatisticalParity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import statistical_parity_gap
from fairconstrained.reporting._model import Bound
from fairconstrained.reporting._words import bound_sentences


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(n_samples=250, random_state=0)
    return X, np.where(y == 1, "good", "bad"), groups


def test_attributes_of_other_libraries_with_the_names_of_ours(data):
    X, y, _ = data
    model = LogisticRegression().fit(X, y)
    model.objective_, model.status_, model.hints_ = "binary", 4, None  # LightGBM's objective_ is a text
    report = report_on(model, data)
    assert (report.bounds, report.status, report.hints) == ([], "", [])


@pytest.fixture(scope="module")
def fair(data):
    X, y, groups = data
    return PartialParityClassifier(kappa=0.1).fit(X, y, sensitive_features=groups)


def report_on(model, data, **kwargs):
    X, y, groups = data
    return FairnessReport.from_estimator(model, X, y, sensitive_features=groups, n_resamples=0, **kwargs)


def test_scores_and_decisions_are_those_of_the_model(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    report = report_on(model, data)
    np.testing.assert_array_equal(report.y_score, model.decision_function(X))
    np.testing.assert_array_equal(report.y_pred, model.predict(X) == "good")
    assert report.settings["Labels"] == "“good” is positive, “bad” negative"
    assert report.settings["Scores"] == "log-odds"
    by_hand = fairness_report(y, model.decision_function(X), sensitive_features=groups, n_resamples=0)
    np.testing.assert_array_equal(report.table, by_hand.table)
    np.testing.assert_array_equal(report.gaps["value"], by_hand.gaps["value"])


def test_positive_label(data):
    X, y, _ = data
    model = LogisticRegression().fit(X, y)
    report = report_on(model, data, pos_label="bad")
    np.testing.assert_array_equal(report.y_score, -model.decision_function(X))
    assert report.table.loc["overall", "base_rate"] == np.mean(y == "bad")


def test_probabilities_where_there_is_no_decision_function(data):
    X, y, _ = data
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    report = report_on(model, data)
    np.testing.assert_array_equal(report.y_score, model.predict_proba(X)[:, 1])
    assert (report.rows.threshold, report.score_name) == (0.5, "predicted probability")


def test_probabilities_on_demand(data):
    X, y, _ = data
    model = LogisticRegression().fit(X, y)
    report = report_on(model, data, response="predict_proba")
    np.testing.assert_array_equal(report.y_score, model.predict_proba(X)[:, 1])
    assert report.table.loc["overall", "log_loss"] == pytest.approx(
        report_on(model, data).table.loc["overall", "log_loss"]
    )


@pytest.mark.parametrize("response", ["auto", "predict"])
def test_models_that_only_decide(data, response):
    X, _, _ = data

    class Decides(ClassifierMixin, BaseEstimator):
        classes_ = np.array(["bad", "good"])

        def predict(self, X):
            return np.where(X[:, 0] > 0, "good", "bad")

    report = report_on(Decides(), data, response=response)
    assert report.y_score is None
    assert report.table.loc["overall", "positive_rate"] == np.mean(X[:, 0] > 0)
    with pytest.raises(TypeError, match="gives no scores"):
        report_on(Decides(), data, response="decision_function")


def test_margins_of_a_small_data_set_are_no_probabilities(data):
    X, y, groups = data
    model = LinearSVC(random_state=0).fit(X, y)
    inside = (model.decision_function(X) > 0) & (model.decision_function(X) < 1)
    report = report_on(model, (X[inside], y[inside], groups[inside]))
    assert not report.rows.has_probabilities


def test_regressors_of_two_labels(data):
    X, y, groups = data
    model = LinearRegression().fit(X, np.where(y == "good", 1, -1))
    report = FairnessReport.from_estimator(model, X, np.where(y == "good", 1, -1), sensitive_features=groups,
                                           n_resamples=0)  # fmt: skip
    np.testing.assert_array_equal(report.y_pred, model.predict(X) > 0)


def test_the_threshold_of_a_regressor_is_the_middle_of_the_labels(data):
    X, y, groups = data
    labels = (y == "good").astype(int)
    for model in (GroupLossRegressor(kappa=None), LinearRegression()):
        report = report_on(model.fit(X, labels), (X, labels, groups))
        assert report.rows.threshold == 0.5
        np.testing.assert_array_equal(report.y_pred, model.predict(X) > 0.5)
    assert report_on(model, (X, labels, groups), threshold=0.3).rows.threshold == 0.3


def test_predictions_of_a_regressor_are_no_log_odds(data):
    X, y, groups = data
    rows = X, (y == "good").astype(int), groups
    model = LinearRegression().fit(X, rows[1])
    report = report_on(model, rows)
    assert report.y_score.min() < 0
    assert "log_loss" not in report.table
    assert "auc" in report.table
    assert not {"loss_parity_gap", "wasserstein_gap"} & set(report.gaps.index)
    assert report.settings["Scores"].startswith("neither probabilities nor log-odds")
    assert "log loss" not in report.to_html().lower()
    with pytest.raises(ValueError, match="'loss_parity_gap' needs log-odds, and the report has none"):
        report_on(model, rows, metrics=["loss_parity_gap"])
    inside = (report.y_score > 0) & (report.y_score < 1)
    assert "log_loss" in report_on(model, tuple(column[inside] for column in rows)).table


def test_a_metric_frame_of_a_regressor_has_its_aucs(data):
    pytest.importorskip("fairlearn")
    X, y, groups = data
    rows = X, (y == "good").astype(int), groups
    report = report_on(LinearRegression().fit(X, rows[1]), rows)
    np.testing.assert_allclose(report.to_metric_frame().by_group["auc"], report.table["auc"][:-1])


def test_several_classes(data):
    X, _, groups = data
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    report = FairnessReport.from_estimator(model, X, y, sensitive_features=groups, pos_label=2, n_resamples=0)
    assert report.table.loc["overall", "base_rate"] == np.mean(y == 2)
    assert report.settings["Labels"] == "“2” is positive, “not 2” negative"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Fairlearn, about pandas
def test_fairlearn_models(data):
    pytest.importorskip("fairlearn")
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    X, y, groups = data
    binary = X, (y == "good").astype(int), groups
    chosen = ThresholdOptimizer(estimator=LogisticRegression(), predict_method="predict_proba")
    chosen.fit(X, binary[1], sensitive_features=groups)
    report = report_on(chosen, binary, random_state=3)
    expected = chosen.predict(X, sensitive_features=groups, random_state=3)
    np.testing.assert_array_equal(report.y_pred, expected)
    reduced = ExponentiatedGradient(LogisticRegression(), DemographicParity(), max_iter=3)
    reduced.fit(X, binary[1], sensitive_features=groups)
    np.testing.assert_array_equal(report_on(reduced, binary).y_pred, reduced.predict(X, random_state=0))


def test_models_with_coefficients_for_each_group(data):
    X, y, groups = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = PartialParityClassifier(kappa=0.9, group_interactions=True).fit(X, y, sensitive_features=groups)
        report = report_on(model, data)
    np.testing.assert_array_equal(report.y_score, model.decision_function(X, sensitive_features=groups))


def test_pipelines_whose_model_needs_the_groups(data):
    """Fitted with metadata routing, which is off when the report is made."""
    X, y, groups = data
    model = make_pipeline(StandardScaler(), PartialParityClassifier(kappa=0.9, group_interactions=True))
    with sklearn.config_context(enable_metadata_routing=True):
        model.fit(X, y, sensitive_features=groups)
        expected = model.decision_function(X, sensitive_features=groups)
    report = report_on(model, data)
    np.testing.assert_array_equal(report.y_score, expected)
    assert not sklearn.get_config()["enable_metadata_routing"]
    assert report.bounds[0].here == pytest.approx(statistical_parity_gap(None, expected, sensitive_features=groups))


@pytest.mark.slow
def test_bounds_in_a_pipeline_in_a_search(data, fair):
    X, y, groups = data
    (alone,) = report_on(fair, data).bounds
    pipeline = make_pipeline(StandardScaler(), PartialParityClassifier(kappa=0.9))
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline, {"partialparityclassifier__alpha": [1e-4]}, cv=2)
        search.fit(X, y, sensitive_features=groups)
        report = report_on(search, data)
    (bound,) = report.bounds
    assert (bound.name, bound.kappa) == (alone.name, 0.9)
    assert bound.here == pytest.approx(statistical_parity_gap(None, report.y_score, sensitive_features=groups))
    assert bound.here == pytest.approx(bound.trained)  # the same rows
    assert report.status == search.best_estimator_[-1].status_


@pytest.mark.slow
def test_one_kappa_for_each_constraint(data):
    X, y, groups = data
    model = RateParityClassifier(
        constraint=[
            ("shares", RateGap(0.1, rate="sigmoid")),
            ("recalls", RateGap(0.2, constraint="equal_opportunity", rate="sigmoid")),
        ]
    ).fit(X, y, sensitive_features=groups)
    assert [bound.kappa for bound in report_on(model, data).bounds] == [0.1, 0.2]
    listed = [("all", StatisticalParity(kappa=0.9)), ("top", StatisticalParity(kappa=None, interval=(0, 0.2)))]
    model = PartialParityClassifier(constraint=listed).fit(X, y, sensitive_features=groups)
    assert [(bound.name, bound.kappa) for bound in report_on(model, data).bounds] == [("all", 0.9), ("top", None)]
    assert model.named_kappas() == {"all": 0.9, "top": None}
    model = PartialParityClassifier(constraint=StatisticalParity(kappa=0.8)).fit(X, y, sensitive_features=groups)
    assert model.named_kappas() == {"statistical_parity": 0.8}


def test_floors_and_least_losses_are_no_bounds_from_above(data):
    X, y, groups = data
    listed = [
        ("hits", GroupRates("true_positive", rule="floor", kappa=0.5)),
        ("loss", GroupRates("log_loss", rule="ceiling", kappa=5.0)),
    ]
    model = RateParityClassifier(constraint=listed, new_row_folds=None).fit(X, y, sensitive_features=groups)
    assert [bound.is_floor for bound in report_on(model, data).bounds] == [True, False]
    model = GroupLossClassifier("minimax", new_row_folds=None).fit(X, y, sensitive_features=groups)
    report = report_on(model, data)
    (said,) = bound_sentences(report.bounds, report.status)
    assert said.startswith("Bounded group loss: trained to be as small as it can be, it is ")


def test_bounds_of_models_that_hold_another(data, fair):
    X, y, groups = data
    fixed = FixedThresholdClassifier(FrozenEstimator(fair), threshold=0.2).fit(X, y)
    (bound,) = report_on(fixed, data).bounds
    assert (bound.kappa, bound.trained) == (0.1, fair.constraint_values_["statistical_parity"])
    chosen = PartialParityClassifierCV(bound=0.9, kappas=[0.9], cv=2).fit(X, y, sensitive_features=groups)
    (bound,) = report_on(chosen, data).bounds
    assert (bound.kappa, bound.trained) == (0.9, chosen.constraint_values_["statistical_parity"])


def test_bounds_of_another_name_than_kappa(data):
    X, y, groups = data
    model = MinorityRateClassifier(min_share=0.2, minority=1).fit(X, y, sensitive_features=groups)
    for bound in report_on(model, data).bounds:
        assert np.isnan(bound.kappa)
        assert bound.trained == model.constraint_values_[bound.name]


@pytest.mark.slow
def test_price_predicts_what_a_looser_bound_gains():
    """To first order: the sentence against a second fit, of rows enough that both do not differ by single ones."""
    data = make_biased_classification(n_samples=4000, random_state=0)
    X, y, groups = data
    fair, loose = (PartialParityClassifier(kappa).fit(X, y, sensitive_features=groups) for kappa in (0.1, 0.12))
    (bound,) = report_on(fair, data).bounds
    gain = fair.objective_ - loose.objective_
    assert bound.price * 0.02 == pytest.approx(gain, rel=0.25)
    said = report_on(fair, data).to_html()
    assert "A price is what the model pays for a bound" in said
    assert f"(it is {fair.objective_:.3g})" in said
    assert f"would lower the training objective by about {bound.price * 0.01:.2g}" in said


def test_a_method_without_multipliers_has_no_price(data):
    X, y, groups = data
    model = PartialParityClassifier(kappa=0.3, solver="ssg", max_iter=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its kappa bounds the surrogate
        model.fit(X, y, sensitive_features=groups)
    said = report_on(model, data).to_html()
    assert "not known, as the method that trained the model gives no price" in said
    assert "would not lower the training objective" not in said
    assert "A price is what" not in said


def test_rows_without_a_kind_that_the_bound_compares(data, fair):
    """constraint_values raises; the report leaves the value out."""
    X, y, groups = data
    model = RateParityClassifier(constraint="equal_opportunity", kappa=0.2).fit(X, y, sensitive_features=groups)
    few = (groups == 0) | (y == "bad")
    (bound,) = report_on(model, (X[few], y[few], groups[few])).bounds
    assert np.isnan(bound.here)
    assert "on the rows of this report" not in bound_sentences([bound], "optimal")[0]


def test_words_about_bounds():
    binding = Bound("statistical_parity", 0.05, 0.0496, 0.07, 0.12)
    assert bound_sentences([binding], "optimal") == [
        "Statistical parity: trained with the bound kappa = 0.05, it is 0.0496 on the training rows; on the "
        "rows of this report it is 0.07.",
        "Price of statistical parity: loosening kappa from 0.05 by 0.01 would lower the training objective by about "
        "0.0012, to first order.",
    ]
    (told, _) = bound_sentences([binding._replace(new_rows=0.083, error=0.0123)], "optimal")
    assert "on the training rows, and 0.083 (standard error 0.01) by the fit's estimate for new rows; on the" in told
    (_, told) = bound_sentences([binding._replace(objective=0.34567)], "optimal")
    assert "would lower the training objective by about 0.0012 (it is 0.346), to first order." in told
    (_, free) = bound_sentences([binding._replace(price=0.0)], "optimal")
    assert "none" in free
    (_, small) = bound_sentences([binding._replace(kappa=0.005)], "optimal")
    assert "from 0.005 by 0.001 would lower the training objective by about 0.00012" in small
    (_, unknown) = bound_sentences([binding._replace(price=np.nan)], "optimal")
    assert unknown == "Price of statistical parity: not known, as the method that trained the model gives no price."
    assert len(bound_sentences([binding._replace(price=np.nan, kappa=None)], "optimal")) == 1
    elsewhere, price = bound_sentences([binding._replace(kappa=np.nan)], "optimal")
    assert elsewhere.startswith("Statistical parity: it is 0.0496")
    assert price.startswith("Price of statistical parity: loosening the bound by 0.01 would lower")
    assert len(bound_sentences([binding._replace(kappa=np.nan, price=0.0)], "optimal")) == 1
    unbounded, broken = bound_sentences([binding._replace(kappa=None, price=0.0)], "infeasible")
    assert "trained without a bound" in unbounded
    (floor, _) = bound_sentences([binding._replace(is_floor=True)], "optimal")
    assert "the bound kappa = 0.05, the least value allowed, it is 0.0496 on the training rows" in floor
    assert "did not keep its bounds" in broken


def test_what_the_model_calls_itself_is_the_same_in_every_run(data):
    X, y, _ = data

    class Named(LogisticRegression):
        def __repr__(self):
            return f"Named(function={object()!r})"

    words = report_on(Named().fit(X, y), data).settings["Model"]
    assert words == "Named(function=<object object>)"


def test_model_of_given_scores(data, fair):
    X, y, groups = data
    report = fairness_report(y, fair.decision_function(X), sensitive_features=groups, n_resamples=0, model=fair)
    assert report.bounds[0].trained == fair.constraint_values_["statistical_parity"]
    assert np.isnan(report.bounds[0].here)


def test_unknown_response(data, fair):
    with pytest.raises(ValueError, match="response must be 'auto' or one of"):
        report_on(fair, data, response="score")


def test_label_that_the_model_does_not_know(data, fair):
    X, y, groups = data
    with pytest.raises(ValueError, match="not fitted with"):
        report_on(fair, (X, np.where(y == "bad", "worse", y), groups))


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        ("m", TypeError, r"model must be a fitted estimator \(an instance with predict\); got 'm'"),
        (LogisticRegression, TypeError, r"model must be a fitted estimator \(an instance with predict\); got <class"),
        (
            LogisticRegression(C=3),
            NotFittedError,
            r"model must be .*, and LogisticRegression\(C=3\) is not: call its fit",
        ),
        (make_pipeline(PartialParityClassifier()), NotFittedError, "model must be .*call its fit"),
    ],
)
def test_what_is_no_fitted_model(model, error, message):
    given = {"sensitive_features": list("aabb"), "n_resamples": 0}
    with pytest.raises(error, match=message):
        fairness_report([0, 1, 0, 1], [-1.0, 1.0, 2.0, -2.0], model=model, **given)
    with pytest.raises(error, match=message):
        FairnessReport.from_estimator(model, np.eye(4), [0, 1, 0, 1], **given)


def test_a_model_that_nothing_was_bounded_in_says_so():
    assert bound_sentences([], "unconstrained") == [
        "Training had no groups to compare, so the model has no bound (status “unconstrained”)."
    ]
    assert bound_sentences([], "optimal") == []


def test_whether_the_rows_are_those_of_the_fit_is_said(data, fair):
    X, y, groups = data
    given = {"sensitive_features": groups, "n_resamples": 0, "metrics": "independence_gap"}

    def said(model, X):
        return FairnessReport.from_estimator(model, X, y, **given).settings["Training rows"]

    assert said(fair, X) == "The model was fitted on 100% of these rows."
    assert said(fair, X + 1e-9).startswith("No sign that the model was fitted on these rows; of 3 of them or more")
    assert "no record that tells" in said(LogisticRegression().fit(X, y), X)
