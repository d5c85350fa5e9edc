"""The area under the ROC curve as the objective."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fairconstrained import PartialParityClassifier
from fairconstrained.metrics import granularity, partial_statistical_parity_gap


def classifier(**options):
    return PartialParityClassifier(**{"kappa": 0.1, "objective": "auc", **options})


@pytest.fixture(scope="module")
def skewed():
    """Few positives, some of them where no linear score finds them."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 800)
    y = (rng.random(800) < 0.2).astype(int)
    X = rng.normal(size=(800, 2)) + 1.2 * y[:, None] * np.array([1.0, 0.3])
    outliers = (y == 1) & (rng.random(800) < 0.15)
    X[outliers] = rng.normal(size=(outliers.sum(), 2)) + np.array([2.0, -9.0])
    return X, y, groups


def ranking(model, X, y, **options):
    return roc_auc_score(y, model.decision_function(X), **options)


@pytest.mark.slow
@pytest.mark.parametrize("auc_loss", ["logistic", "hinge", "quadratic"])
def test_kappa_is_kept_and_rows_are_ranked(classes, auc_loss):
    X, y, groups = classes
    model = classifier(auc_loss=auc_loss, interval=(0.0, 0.5)).fit(X, y, sensitive_features=groups)
    gap = partial_statistical_parity_gap(
        None, model.decision_function(X), sensitive_features=groups, interval=(0.0, 0.5)
    )
    assert gap <= 0.1 + granularity(groups, interval=(0.0, 0.5)) + 1e-9
    assert model.constraint_values_ == {"statistical_parity": pytest.approx(gap)}
    fair = PartialParityClassifier(0.1, interval=(0.0, 0.5)).fit(X, y, sensitive_features=groups)
    assert ranking(model, X, y) > ranking(fair, X, y) - 0.01


@pytest.mark.parametrize("kappa", [None, 0.1])
def test_it_ranks_at_least_as_well_as_a_fit_of_probabilities(skewed, kappa):
    X, y, groups = skewed
    auc = classifier(kappa=kappa).fit(X, y, sensitive_features=groups)
    logistic = classifier(kappa=kappa, objective="logistic").fit(X, y, sensitive_features=groups)
    assert ranking(auc, X, y) > ranking(logistic, X, y)


def test_it_needs_no_intercept(skewed):
    """Far from the origin, probabilities without an intercept need coefficients that spoil the order of the rows."""
    X, y, groups = skewed[0] + 3, *skewed[1:]
    options = {"kappa": None, "fit_intercept": False}
    auc = classifier(**options).fit(X, y, sensitive_features=groups)
    logistic = classifier(objective="logistic", **options).fit(X, y, sensitive_features=groups)
    assert ranking(auc, X, y) > ranking(logistic, X, y) + 0.1
    with_intercept = classifier(kappa=None).fit(*skewed[:2], sensitive_features=groups)
    np.testing.assert_allclose(auc.coef_, with_intercept.coef_, atol=1e-5)


@pytest.mark.slow
def test_a_part_of_the_curve():
    """The first tenth of the false positive rates, which a few negatives fill that are hard to tell from positives."""
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 2, 800)
    y = (rng.random(800) < 0.3).astype(int)
    hard = (y == 0) & (rng.random(800) < 0.15)
    X = rng.normal(size=(800, 2)) + np.select([y[:, None] == 1, hard[:, None]], [[2.0, 2.0], [2.0, -1.0]], [-2.0, 1.5])
    whole, part = (
        classifier(kappa=None, auc_interval=interval).fit(X, y, sensitive_features=groups)
        for interval in ((0.0, 1.0), (0.0, 0.1))
    )
    assert ranking(part, X, y, max_fpr=0.1) > ranking(whole, X, y, max_fpr=0.1) + 0.002
    assert ranking(part, X, y) < ranking(whole, X, y)
    kept = classifier(kappa=0.06, auc_interval=(0.0, 0.1)).fit(X, y, sensitive_features=groups)
    assert part.constraint_values_["statistical_parity"] > 0.07
    assert kept.constraint_values_["statistical_parity"] <= 0.06 + granularity(groups) + 1e-9
    assert ranking(kept, X, y, max_fpr=0.1) > ranking(whole, X, y, max_fpr=0.1) - 0.03


@pytest.mark.parametrize("options", [{}, {"kappa": None}, {"group_interactions": True}, {"threshold": 0.7}], ids=str)
def test_predictions_make_the_fewest_errors_that_a_shift_allows(skewed, options):
    X, y, groups = skewed
    model = classifier(**options).fit(X, y, sensitive_features=groups)
    scores = model.decision_function(X, sensitive_features=groups)
    accuracy = model.score(X, y, sensitive_features=groups)
    assert accuracy >= max(y.mean(), 1 - y.mean())
    # statistical parity is the same for shifted scores, so that every shift is allowed
    shifted = [(y == (scores > at)).mean() for at in np.append(scores, scores.min() - 1)]
    assert accuracy == pytest.approx(max(shifted))
    probabilities = model.predict_proba(X, sensitive_features=groups)[:, 1]
    np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-scores)))


@pytest.mark.parametrize("parity", ["demographic_parity", "equal_opportunity", "equalized_odds"])
def test_the_shift_keeps_what_depends_on_it(classes, parity):
    X, y, groups = classes
    model = classifier(constraint=parity, kappa=0.06).fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"
    assert model.score(X, y) > max(y.mean(), 1 - y.mean())


def test_with_a_module(skewed):
    X, y, groups = skewed
    options = {"hidden_layer_sizes": (3,), "activation": "tanh", "random_state": 0, "alpha": 1e-3}
    model = classifier(constraint="demographic_parity", **options).fit(X, y, sensitive_features=groups)
    linear = classifier(constraint="demographic_parity").fit(X, y, sensitive_features=groups)
    assert ranking(model, X, y) > ranking(linear, X, y)
    assert model.constraint_values_["demographic_parity"] <= 0.1 + granularity(groups) + 1e-9
    assert model.score(X, y) >= 1 - y.mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"auc_loss": "exponential"}, "'auc_loss' parameter"),
        ({"auc_interval": (0.5, 0.2)}, "alpha < beta"),
        ({"auc_interval": [(0.0, 0.1), (0.2, 0.3)]}, "one interval"),
    ],
)
def test_invalid_parameters(classes, options, message):
    with pytest.raises(ValueError, match=message):
        classifier(**options).fit(classes.X, classes.y, sensitive_features=classes.groups)
