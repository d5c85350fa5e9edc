"""Displays of a report draw what they draw of the same scores, groups, weights and interval."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fairconstrained.metrics import inter_group_auc_gap
from fairconstrained.plotting import ParetoFrontDisplay, ScoreCurveDisplay, ScoreDensityDisplay, SubsetRocDisplay

DISPLAYS = [ScoreCurveDisplay, ScoreDensityDisplay, SubsetRocDisplay]


@pytest.fixture
def report(scores):
    """The attributes of a report that displays read, and no others."""
    score, groups = scores
    rng = np.random.default_rng(1)
    return SimpleNamespace(
        y_true=(score + rng.normal(size=600) > 0).astype(int),
        y_score=score,
        sensitive_features=pd.DataFrame({"group": groups}),
        sample_weight=rng.uniform(0.5, 2.0, 600),
        interval=(0.1, 0.4),
        score_name="predicted probability",
    )


def arguments(report):
    return {"sensitive_features": report.sensitive_features, "sample_weight": report.sample_weight}


def test_score_curve(report):
    drawn = ScoreCurveDisplay.from_report(report, reference="b", name="model", color="red")
    alike = ScoreCurveDisplay.from_predictions(
        report.y_score, interval=(0.1, 0.4), reference="b", name="model", **arguments(report)
    )
    np.testing.assert_array_equal(drawn.bold_["a"].get_xydata(), alike.bold_["a"].get_xydata())
    assert drawn.bold_["a"].get_color() == "red"
    assert drawn.bold_["a"].get_label() == "model"


@pytest.mark.parametrize("method", ["kde", "hist"])
def test_score_density(report, method):
    drawn = ScoreDensityDisplay.from_report(report, method=method)
    alike = ScoreDensityDisplay.from_predictions(
        report.y_score, interval=(0.1, 0.4), method=method, **arguments(report)
    )
    for group in "ab":
        np.testing.assert_array_equal(drawn.lines_[group].get_xydata(), alike.lines_[group].get_xydata())
        np.testing.assert_array_equal(drawn.densities[group].ranges, alike.densities[group].ranges)
    assert drawn.ax_.get_xlabel() == "predicted probability"


def test_subset_roc(report):
    drawn = SubsetRocDisplay.from_report(report, name="model")
    assert drawn.gap == pytest.approx(inter_group_auc_gap(report.y_true, report.y_score, **arguments(report)))
    assert SubsetRocDisplay.from_report(report, metric="group_auc").gap_name == "group AUC gap"


def test_labels_of_a_report_may_be_one_only(report):
    report.y_true[:] = 0
    with pytest.raises(ValueError, match="y_true=1"):
        SubsetRocDisplay.from_report(report)


@pytest.mark.parametrize("display", DISPLAYS)
def test_decisions_have_no_scores_to_draw(report, display):
    report.y_score = None
    with pytest.raises(ValueError, match="decisions and no scores"):
        display.from_report(report)


def test_pareto_front_draws_the_path_of_the_report(report):
    table = pd.DataFrame({"kappa": [np.inf, 0.1], "gap": [0.3, 0.1], "train_accuracy": [0.9, 0.8]})
    report.path = SimpleNamespace(table=table, scores=("accuracy",), gaps=("demographic_parity",), n_splits=0)
    drawn = ParetoFrontDisplay.from_report(report, name="path")
    assert sorted(map(tuple, drawn.line_.get_xydata().tolist())) == [(0.1, 0.8), (0.3, 0.9)]
    assert drawn.line_.get_label() == "path"


def test_pareto_front_needs_a_path(report):
    report.path = None
    with pytest.raises(ValueError, match="no path"):
        ParetoFrontDisplay.from_report(report)
