"""Displays of a classifier of several classes: one against all others."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairconstrained.metrics import inter_group_auc_gap
from fairconstrained.metrics.classes import class_margins
from fairconstrained.plotting import ScoreCurveDisplay, ScoreDensityDisplay, SubsetRocDisplay
from fairconstrained.reporting import fairness_report


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 3, 300), rng.choice(["a", "b"], 300)
    X = rng.normal(size=(300, 3)) + np.eye(3)[y]
    return LogisticRegression().fit(X, y), X, y, groups


def test_one_class_against_all_others(rows):
    model, X, y, groups = rows
    margins = class_margins(model.decision_function(X))[:, 2]
    drawn = SubsetRocDisplay.from_estimator(model, X, y, sensitive_features=groups, pos_label=2)
    assert drawn.gap == pytest.approx(inter_group_auc_gap(y == 2, margins, sensitive_features=groups))
    same = SubsetRocDisplay.from_predictions(y, margins, sensitive_features=groups, pos_label=2)
    assert same.gap == drawn.gap
    for display in (ScoreCurveDisplay, ScoreDensityDisplay):
        of_model = display.from_estimator(model, X, sensitive_features=groups, pos_label=2)
        of_scores = display.from_predictions(margins, sensitive_features=groups)
        for one, other in zip(of_model.ax_.lines, of_scores.ax_.lines, strict=True):
            np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())


@pytest.mark.parametrize("display", [ScoreCurveDisplay, ScoreDensityDisplay, SubsetRocDisplay])
def test_errors_say_what_to_do(rows, display):
    model, X, y, groups = rows
    labels = [y] if display is SubsetRocDisplay else []
    with pytest.raises(ValueError, match="more than two classes: pass as pos_label"):
        display.from_estimator(model, X, *labels, sensitive_features=groups)
    report = fairness_report(y, model.decision_function(X), sensitive_features=groups, n_resamples=0)
    with pytest.raises(ValueError, match="make one with pos_label"):
        display.from_report(report)
