"""The Pareto display: what is drawn where, for one method and for several."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score

from fairconstrained.metrics import independence_gap, inter_group_auc_gap, statistical_parity_gap
from fairconstrained.model_selection import make_fairness_scorer
from fairconstrained.plotting import ParetoFrontDisplay
from fairconstrained.plotting.style import COLORS

ACCURACY = [0.90, 0.85, 0.80, 0.70, np.nan]
NEGATED = [-0.30, -0.08, -0.10, -0.02, 0.0]


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def results(**columns):
    return {f"{key}_test_{name}": value for key, pairs in columns.items() for name, value in pairs.items()}


def test_front_and_dominated_points_show_gaps():
    display = ParetoFrontDisplay(ACCURACY, NEGATED, name="ours").plot()
    np.testing.assert_allclose(display.line_.get_xdata(), [0.30, 0.08, 0.02])
    np.testing.assert_allclose(display.line_.get_ydata(), [0.90, 0.85, 0.70])
    np.testing.assert_allclose(display.dominated_.get_offsets().compressed(), [0.10, 0.80])
    assert display.ax_.get_xlabel() == "fairness (smaller is fairer)"
    assert texts(display.ax_) == ["ours", "dominated"]
    assert display.figure_ is display.ax_.figure


def test_steps_show_the_best_performance_at_every_bound():
    display = ParetoFrontDisplay([0.9, 0.7], [-0.3, -0.1]).plot()
    assert display.line_.get_drawstyle() == "steps-pre"
    # between the two gaps only the fairer candidate is allowed
    assert display.line_.get_path().vertices.tolist() == [[0.3, 0.9], [0.3, 0.7], [0.1, 0.7]]
    assert ParetoFrontDisplay([0.9, 0.7], [-0.3, -0.1]).plot(step=False).line_.get_drawstyle() == "default"


def test_fairness_values_are_shown_as_they_are():
    display = ParetoFrontDisplay([0.9, 0.7], [0.7, 0.9], fairness_name="1 - gap").plot()
    assert display.line_.get_xdata().tolist() == [0.7, 0.9]
    assert display.ax_.get_xlabel() == "1 - gap (larger is fairer)"
    assert texts(display.ax_) == ["Pareto front"]


def test_several_methods_share_axes_in_colours_for_everyone():
    first = ParetoFrontDisplay(ACCURACY, NEGATED, name="one").plot()
    second = ParetoFrontDisplay(ACCURACY, NEGATED, name="two").plot(first.ax_)
    assert second.ax_ is first.ax_
    assert texts(first.ax_) == ["one", "two", "dominated"]
    assert [first.line_.get_color(), second.line_.get_color()] == list(COLORS[:2])
    with pytest.raises(ValueError, match="Use the same measure for every method"):
        ParetoFrontDisplay([0.9], [0.9]).plot(first.ax_)


def test_the_users_axes_and_style_win():
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    display = ParetoFrontDisplay(ACCURACY, NEGATED).plot(ax, name="x", lw=3, color="black", marker="s")
    assert display.ax_ is ax
    assert (display.line_.get_linewidth(), display.line_.get_marker()) == (3, "s")
    assert display.line_.get_color() == "black"


def test_legend_lies_outside_the_data():
    display = ParetoFrontDisplay(ACCURACY, NEGATED, name="ours").plot()
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend().get_window_extent()
    label = display.ax_.xaxis.label.get_window_extent()
    assert legend.y1 <= label.y0
    assert legend.y0 >= 0  # the layout made room for it


def test_from_cv_results_reads_means_and_deviations():
    table = results(mean={"accuracy": ACCURACY, "pSP": NEGATED}, std={"accuracy": [0.01] * 5, "pSP": [0.02] * 5})
    display = ParetoFrontDisplay.from_cv_results(table, name="ours", error_bars=True)
    assert display.ax_.get_xlabel() == "pSP, mean of test folds (smaller is fairer)"
    assert display.ax_.get_ylabel() == "accuracy, mean of test folds"
    across, up = (np.array(bars.get_segments()) for bars in display.error_bars_.lines[2])
    np.testing.assert_allclose(across[:, 1, 0] - across[:, 0, 0], 0.04)
    np.testing.assert_allclose(up[:, 1, 1] - up[:, 0, 1], 0.02)
    np.testing.assert_allclose(up[:, 0, 0], display.line_.get_xdata())


def test_errors():
    with pytest.raises(ValueError, match=r"fairness=None stands for the only column.*'mean_test_accuracy'"):
        ParetoFrontDisplay.from_cv_results({"mean_test_accuracy": [0.9]})
    with pytest.raises(ValueError, match="error_bars needs"):
        ParetoFrontDisplay(ACCURACY, NEGATED).plot(error_bars=True)
    with pytest.raises(ValueError, match=r"same length; got shapes \(2,\) and \(1,\)"):
        ParetoFrontDisplay([0.9, 0.8], [-0.1])


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], size=200)
    X = rng.normal(size=(200, 2)) + (groups == "a")[:, None]
    y = (X[:, 0] + rng.normal(size=200) > 0.5).astype(int)
    return [LogisticRegression(C=C).fit(X, y) for C in (1e-4, 1e-2, 1.0)], X, y, groups


def test_from_estimator_scores_every_candidate(fitted):
    models, X, y, groups = fitted
    display = ParetoFrontDisplay.from_estimator(models, X, y, sensitive_features=groups, name="C")
    accuracies = [accuracy_score(y, model.predict(X)) for model in models]
    gaps = [independence_gap(y, model.predict(X), sensitive_features=groups) for model in models]
    np.testing.assert_allclose(display.performance, accuracies)
    np.testing.assert_allclose(display.fairness, -np.array(gaps))
    assert len(set(gaps)) == 3
    assert display.ax_.get_xlabel() == "independence gap (smaller is fairer)"
    one = ParetoFrontDisplay.from_estimator(models[2], X, y, sensitive_features=groups)
    assert one.performance.tolist() == [accuracies[2]]


def test_from_estimator_takes_scorers_and_weights(fitted):
    models, X, y, groups = fitted
    weight = np.where(y == 1, 3.0, 1.0)
    display = ParetoFrontDisplay.from_estimator(
        models,
        X,
        y,
        sensitive_features=groups,
        sample_weight=weight,
        performance="neg_log_loss",
        fairness=make_fairness_scorer(statistical_parity_gap),
    )
    score = models[0].decision_function(X)
    gap = statistical_parity_gap(y, score, sensitive_features=groups, sample_weight=weight)
    assert display.fairness[0] == pytest.approx(-gap)
    assert display.ax_.get_xlabel() == "statistical parity gap (smaller is fairer)"
    assert display.ax_.get_ylabel() == "negated log loss"


def test_auc_against_an_auc_gap(fitted):
    models, X, y, groups = fitted
    display = ParetoFrontDisplay.from_estimator(
        models, X, y, sensitive_features=groups, performance="roc_auc", fairness="neg_inter_group_auc_gap"
    )
    scores = [model.decision_function(X) for model in models]
    np.testing.assert_allclose(display.performance, [roc_auc_score(y, score) for score in scores])
    gaps = [inter_group_auc_gap(y, score, sensitive_features=groups) for score in scores]
    np.testing.assert_allclose(display.fairness, -np.array(gaps))
    assert display.ax_.get_xlabel() == "inter group auc gap (smaller is fairer)"
    assert display.ax_.get_ylabel() == "roc auc"
    ours = ParetoFrontDisplay.from_predictions(
        y, scores, sensitive_features=groups, performance=roc_auc_score, gap=inter_group_auc_gap
    )
    np.testing.assert_allclose(ours.line_.get_xydata(), display.line_.get_xydata())


def test_from_predictions_equals_from_estimator(fitted):
    models, X, y, groups = fitted
    weight = np.where(y == 1, 3.0, 1.0)
    metadata = {"sensitive_features": groups, "sample_weight": weight}
    theirs = ParetoFrontDisplay.from_estimator(models, X, y, **metadata)
    ours = ParetoFrontDisplay.from_predictions(y, [model.predict(X) for model in models], **metadata)
    np.testing.assert_allclose(ours.performance, theirs.performance)
    np.testing.assert_allclose(ours.fairness, theirs.fairness)
    assert ours.ax_.get_xlabel() == theirs.ax_.get_xlabel()
