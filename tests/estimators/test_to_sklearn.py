"""Linear fits as plain models of scikit-learn, which ONNX and SHAP take; the rest is an error that says what to do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    AUCFairClassifier,
    CorrelationPenaltyClassifier,
    FairRanker,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    PairwiseParityClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    RegularizedParityClassifier,
)
from fairconstrained.datasets import make_biased_ranking

CLASSIFIERS = {
    "partial parity": PartialParityClassifier(0.3),
    "truncated": PartialParityClassifier(0.3, objective="truncated_logistic"),
    "hinge": PartialParityClassifier(0.3, objective="hinge"),
    "no intercept": PartialParityClassifier(None, fit_intercept=False),
    "rates": RateParityClassifier(0.2),
    "auc": AUCFairClassifier(0.2),
    "correlation": CorrelationPenaltyClassifier(0.1),
    "pairwise": PairwiseParityClassifier(0.5, solver="augmented_lagrangian"),
    "regularized": RegularizedParityClassifier(0.1, max_iter=20),
    "minority": MinorityRateClassifier(0.1, minority=0),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.parametrize("estimator", CLASSIFIERS.values(), ids=CLASSIFIERS.keys())
def test_a_classifier(classes, estimator):
    X, y, groups = classes
    frame, labels = pd.DataFrame(X, columns=list("abcd")), np.array(["no", "yes"])[y]
    model = estimator.fit(frame, labels, sensitive_features=groups)
    plain = model.to_sklearn()
    assert type(plain) is LogisticRegression
    assert plain.n_features_in_ == 4
    assert plain.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(plain.classes_, model.classes_)
    np.testing.assert_array_equal(plain.predict(frame), model.predict(frame))
    np.testing.assert_allclose(plain.decision_function(frame), model.decision_function(frame), atol=1e-10)
    np.testing.assert_allclose(plain.predict_proba(frame), model.predict_proba(frame), atol=1e-10)


def test_the_squared_objective_has_probabilities_of_its_own(classes):
    X, y, groups = classes
    model = PartialParityClassifier(None, objective="squared").fit(X, y, sensitive_features=groups)
    plain = model.to_sklearn()
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_allclose(plain.decision_function(X), model.decision_function(X), atol=1e-10)
    assert np.abs(plain.predict_proba(X) - model.predict_proba(X)).max() > 0.05


def test_the_copy_shares_nothing_with_the_fit(classes):
    X, y, groups = classes
    model = PartialParityClassifier(None).fit(X, y, sensitive_features=groups)
    plain, before = model.to_sklearn(), model.coef_.copy()
    plain.coef_ += 1
    np.testing.assert_array_equal(model.coef_, before)


def test_a_threshold_is_absorbed_only_if_that_is_asked_for(classes):
    X, y, groups = classes
    model = PartialParityClassifier(None, threshold=0.4).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"threshold=0.4.*decides at 0.*absorb_threshold=True"):
        model.to_sklearn()
    plain = model.to_sklearn(absorb_threshold=True)
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    assert (plain.predict(X) != (model.decision_function(X) > 0)).any()
    np.testing.assert_allclose(plain.decision_function(X), model.decision_function(X) - 0.4, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_several_classes(classes, n_classes):
    X = classes.X
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, np.quantile(X[:, 0], [0.4, 0.8])[: n_classes - 1])
    model = NeymanPearsonClassifier().fit(X, y)
    plain = model.to_sklearn()
    assert plain.coef_.shape == (1 if n_classes == 2 else 3, 4)
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_allclose(plain.decision_function(X), model.decision_function(X), atol=1e-10)
    np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-10)


def test_a_regressor(numbers):
    X, y, groups = numbers
    model = PartialParityRegressor(0.3).fit(X, 100 * y + 7, sensitive_features=groups)
    plain = model.to_sklearn()
    assert type(plain) is LinearRegression
    assert plain.coef_.shape == (4,)
    np.testing.assert_allclose(plain.predict(X), model.predict(X))


def test_a_ranker():
    X, y, groups, qid = make_biased_ranking(20, 10, random_state=0)
    model = FairRanker(None).fit(X, y, qid=qid, sensitive_features=groups)
    plain = model.to_sklearn()
    assert type(plain) is LinearRegression
    np.testing.assert_allclose(plain.predict(X), model.predict(X))


@pytest.mark.parametrize("make", [PartialParityClassifier, PartialParityRegressor])
def test_coefficients_of_every_group_are_an_error(classes, make):
    X, y, groups = classes
    model = make(None, group_interactions=True).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"coefficients of its own for every group.*group_interactions=False"):
        model.to_sklearn()


def test_networks_are_an_error(classes):
    X, y, groups = classes
    model = PartialParityClassifier(None, hidden_layer_sizes=(2,), random_state=0, max_iter=5, solver="adam_lagrangian")
    model.fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"those of a network.*torch.onnx.export\(model.module_"):
        model.to_sklearn()


# --- other tools


@pytest.fixture(scope="module")
def fitted(classes):
    X, y, groups = classes
    pipeline = make_pipeline(StandardScaler(), PartialParityClassifier(0.3))
    pipeline.fit(X, y, partialparityclassifier__sensitive_features=groups)
    return pipeline, make_pipeline(pipeline[0], pipeline[-1].to_sklearn())


def test_onnx(classes, fitted):
    convert = pytest.importorskip("skl2onnx").to_onnx
    runtime = pytest.importorskip("onnxruntime")
    ours, plain = fitted
    X = classes.X.astype(np.float32)
    exported = convert(plain, X[:1], options={"zipmap": False})
    session = runtime.InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    predicted, probabilities = session.run(None, {"X": X})
    assert (predicted == ours.predict(X)).mean() > 0.995  # single precision
    np.testing.assert_allclose(probabilities, ours.predict_proba(X), atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # those of numba and shap are not ours
def test_shap(classes, fitted):
    shap = pytest.importorskip("shap")
    ours, plain = fitted
    X = plain[0].transform(classes.X)
    explanation = shap.LinearExplainer(plain[-1], X)(X)
    np.testing.assert_allclose(
        explanation.values.sum(axis=1) + explanation.base_values, ours[-1].decision_function(X), atol=1e-8
    )


# --- what scikit-learn does not route


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("meta", ["cross_val_predict", "threshold", "bagging"])
def test_what_hands_no_groups_to_predict_says_what_is_missing_and_what_to_do(classes, meta):
    X, y, groups = classes
    model = PartialParityClassifier(None, group_interactions=True)
    options = {"cv": 2}
    ask = {
        "cross_val_predict": lambda: cross_val_predict(model, X, y, params={"sensitive_features": groups}, **options),
        "threshold": lambda: TunedThresholdClassifierCV(model, **options).fit(X, y, sensitive_features=groups),
        "bagging": lambda: BaggingClassifier(model, 2, random_state=0).fit(X, y, sensitive_features=groups).predict(X),
    }[meta]
    with pytest.raises(
        ValueError,
        match=r"group_interactions=True.*no sensitive_features arrived.*Pass them to predict.*"
        r"enable_metadata_routing=True.*cross_val_predict.*group_interactions=False",
    ):
        ask()
