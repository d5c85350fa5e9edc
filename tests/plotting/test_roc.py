"""ROC curves of the sets that an AUC gap compares: data, areas, words."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve

from fairconstrained import metrics
from fairconstrained.metrics.auc_sets import AUC_METRICS
from fairconstrained.plotting import SubsetRoc, SubsetRocDisplay

METRICS = {name: metrics.find_metric(name)[0].function for name in AUC_METRICS}


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.fixture
def labelled(scores):
    """Labels, scores, weights and three groups."""
    score, _ = scores
    rng = np.random.default_rng(1)
    label = (score + rng.normal(size=600) > 0).astype(int)
    return label, score.round(1), rng.uniform(0.5, 2, 600), np.array(["a", "b", "c"])[rng.integers(0, 3, 600)]


def test_curves_by_hand():
    # a+ {8, 6}, a- {7, 2}; b+ {6, 3}, b- {4, 1}
    display = SubsetRocDisplay.from_predictions(
        [1, 1, 0, 0, 1, 1, 0, 0], [8, 6, 7, 2, 6, 3, 4, 1], sensitive_features=list("aaaabbbb")
    )
    first, second = display.lines_
    assert (first.get_xdata().tolist(), first.get_ydata().tolist()) == ([0, 0, 0, 1], [0, 0.5, 1, 1])
    # down from 7, 6, 3, 2
    assert (second.get_xdata().tolist(), second.get_ydata().tolist()) == ([0, 0.5, 0.5, 1], [0, 0, 1, 1])
    assert display.gap == 0.5
    assert texts(display.ax_) == [
        "AUC(a+ over b−) = 1.000",
        "AUC(b+ over a−) = 0.500",
        "inter-group AUC gap = 0.500",
        "AUC = 0.5",
    ]
    assert display.ax_.get_xlabel() == "share of the second set above the threshold"
    assert display.ax_.get_ylabel() == "share of the first set above the threshold"
    assert display.ax_.get_aspect() == 1


@pytest.mark.parametrize(
    ("metric", "names"),
    [
        ("group_auc", ["b over not b"]),
        ("inter_group", ["b+ over not b−", "not b+ over b−"]),
        ("intra_group", ["b+ over b−", "not b+ over not b−"]),
        ("positive_equality", ["b+ over all+"]),
        ("negative_equality", ["b− over all−"]),
        ("bpsn_bnsp", ["all+ over b−", "b+ over all−"]),
    ],
)
def test_areas_are_the_aucs_and_their_difference_the_gap(labelled, metric, names):
    label, score, weight, group = labelled
    display = SubsetRocDisplay.from_predictions(
        label, score, sensitive_features=group, sample_weight=weight, metric=metric, protected="b"
    )
    assert [curve.name for curve in display.curves] == names
    areas = [trapezoid(curve.above, curve.below) for curve in display.curves]
    assert areas == pytest.approx([curve.auc for curve in display.curves])
    expected = METRICS[metric](label, score, sensitive_features=group, sample_weight=weight, protected="b")
    assert display.gap == pytest.approx(expected)
    assert abs(areas[0] - (areas[1] if len(areas) == 2 else 0.5)) == pytest.approx(expected)
    assert any(text.endswith(f"gap = {expected:.3f}") for text in texts(display.ax_))


def test_same_as_scikit_learn(labelled):
    label, score, weight, group = labelled
    curve = SubsetRocDisplay.from_predictions(
        label, score, sensitive_features=group, sample_weight=weight, metric="intra_group", protected="c"
    ).curves[0]
    rows = group == "c"
    below, above, _ = roc_curve(label[rows], score[rows], sample_weight=weight[rows])
    np.testing.assert_allclose(curve.below, below)
    np.testing.assert_allclose(curve.above, above)


@pytest.mark.parametrize("metric", AUC_METRICS)
def test_without_protected_the_worst_is_drawn(labelled, metric):
    label, score, weight, group = labelled
    options = {"sensitive_features": group, "sample_weight": weight}
    display = SubsetRocDisplay.from_predictions(label, score, metric=metric, **options)
    assert display.gap == pytest.approx(METRICS[metric](label, score, **options))
    aucs = [curve.auc for curve in display.curves]
    assert abs(aucs[0] - (aucs[1] if len(aucs) == 2 else 0.5)) == pytest.approx(display.gap)


def test_from_estimator_uses_the_decision_function_and_its_classes(labelled):
    label, score, weight, group = labelled
    X, y = score[:, None], np.where(label, "yes", "no")
    model = LogisticRegression().fit(X, y)
    options = {"sensitive_features": group, "sample_weight": weight, "protected": "a"}
    display = SubsetRocDisplay.from_estimator(model, X, y, color="red", **options)
    expected = SubsetRocDisplay.from_predictions(label, score, **options)
    assert display.gap == pytest.approx(expected.gap)
    np.testing.assert_allclose(display.curves[1].above, expected.curves[1].above)
    assert display.lines_[0].get_color() == "red"
    # the scores of "no" are those of "yes" upside down, and the two labels change places
    other = SubsetRocDisplay.from_estimator(model, X, y, pos_label="no", **options)
    assert [curve.auc for curve in other.curves] == pytest.approx([curve.auc for curve in display.curves][::-1])


def test_several_models_share_axes(labelled):
    label, score, _, group = labelled
    first = SubsetRocDisplay.from_predictions(label, score, sensitive_features=group, metric="group_auc", name="one")
    second = SubsetRocDisplay.from_predictions(
        label, score + (group == "a"), sensitive_features=group, metric="group_auc", name="two", ax=first.ax_
    )
    assert second.ax_ is first.ax_
    listed = texts(first.ax_)
    assert [text.split()[0] for text in listed] == ["one:", "one:", "two:", "two:", "AUC"]
    assert first.lines_[0].get_color() != second.lines_[0].get_color()
    dashed = [line for line in first.ax_.lines if line.get_gid() == "diagonal"]
    assert len(dashed) == 1


def test_several_features_make_named_groups(labelled):
    label, score, _, group = labelled
    two = np.column_stack([group, np.where(np.arange(600) % 2, "x", "y")])
    display = SubsetRocDisplay.from_predictions(
        label, score, sensitive_features=two, metric="group_auc", protected=("a", "x")
    )
    assert display.curves[0].name == "a & x over not (a & x)"


def test_the_legend_lies_within_the_figure():
    curve = SubsetRoc("Non-White+ over White−", np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.5)
    display = SubsetRocDisplay([curve, curve], gap=0.0, name="ours").plot()
    display.figure_.canvas.draw()
    legend, figure = display.ax_.get_legend().get_window_extent(), display.figure_.bbox
    # to the pixel
    assert legend.x0 >= -1
    assert legend.x1 <= figure.x1 + 1
    assert legend.y0 >= -1
    assert legend.y1 <= display.ax_.xaxis.label.get_window_extent().y0


def test_the_users_axes_name_and_style_win():
    _, ax = plt.subplots()
    curve = SubsetRoc("a over b", np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.5)
    display = SubsetRocDisplay([curve], gap=0.0, name="x").plot(ax, name="y", lw=4, label="mine")
    assert display.ax_ is ax
    assert display.lines_[0].get_linewidth() == 4
    assert texts(ax) == ["mine", "y: AUC gap = 0.000", "AUC = 0.5"]


def test_errors(labelled):
    label, score, _, group = labelled
    options = {"sensitive_features": group}
    with pytest.raises(ValueError, match=r"metric must be one of \['bpsn_bnsp', .*got 'xauc'"):
        SubsetRocDisplay.from_predictions(label, score, metric="xauc", **options)
    with pytest.raises(ValueError, match=r"protected must be one of the groups \['a', 'b', 'c'\] or None, got 'd'"):
        SubsetRocDisplay.from_predictions(label, score, protected="d", **options)
    with pytest.raises(ValueError, match="there is only 'a'"):
        SubsetRocDisplay.from_predictions(label, score, sensitive_features=["a"] * 600)
    with pytest.raises(ValueError, match=r"no rows(.|\n)*c +\d+ +0"):
        SubsetRocDisplay.from_predictions(np.where(group == "c", 0, label), score, protected="c", **options)
