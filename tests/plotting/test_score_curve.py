"""One group's share above a threshold against another's: data, marks and labels."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairconstrained.metrics import score_curve, statistical_parity_gap
from fairconstrained.plotting import ScoreCurveDisplay


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def spans(ax):
    """Extent of every band as (x0, x1, y0, y1), in the coordinates of the data across each band."""
    paths = [patch.get_path().transformed(patch.get_patch_transform()) for patch in ax.patches]
    boxes = [path.get_extents() for path in paths]
    return [tuple(np.round([b.x0, b.x1, b.y0, b.y1], 6).tolist()) for b in boxes]


def test_curve_by_hand():
    display = ScoreCurveDisplay.from_predictions(
        [8, 7, 4, 3, 8, 6, 2, 1], sensitive_features=list("aaaabbbb"), reference="a"
    )
    line = display.lines_["b"]
    # thresholds 8, 7, 6, 4, 3, 2, 1, -inf
    assert line.get_xdata().tolist() == [0, 0.25, 0.5, 0.5, 0.75, 1, 1, 1]
    assert line.get_ydata().tolist() == [0, 0.25, 0.25, 0.5, 0.5, 0.5, 0.75, 1]
    ax = display.ax_
    assert ax.get_xlabel() == "share of group a above the threshold"
    assert ax.get_ylabel() == "share of group b above the threshold"
    assert texts(ax) == ["b against a", "equal shares"]
    assert (ax.get_xlim(), ax.get_ylim(), ax.get_aspect()) == ((0, 1), (0, 1), 1)
    assert ax.xaxis.get_major_formatter()(0.25) == "25%"


def test_reference_is_the_largest_group_unless_said_otherwise(scores):
    score, groups = scores
    assert ScoreCurveDisplay.from_predictions(score, sensitive_features=groups).reference == "a"
    display = ScoreCurveDisplay.from_predictions(score, sensitive_features=groups, reference="b")
    assert list(display.lines_) == ["a"]
    assert display.ax_.get_xlabel() == "share of group b above the threshold"


def test_long_names_are_wrapped_and_shortened(scores):
    score, groups = scores
    names = np.where(groups == "a", "word " * 40, "x" * 900)
    pieces = [(i / 10, (i + 0.5) / 10) for i in range(10)]
    display = ScoreCurveDisplay.from_predictions(score, sensitive_features=names, interval=pieces)
    display.figure_.canvas.draw()
    ax = display.ax_
    assert [text.count("\n") for text in texts(ax)] == [2, 0, 2]
    assert texts(ax)[0].endswith("…")
    assert ax.get_xlabel().startswith("share of group word word")
    assert ax.xaxis.label.get_window_extent().y0 >= ax.get_legend().get_window_extent().y1
    assert ax.get_window_extent().height > 0.25 * display.figure_.bbox.height


def test_distance_from_the_diagonal_is_the_gap(scores):
    score, groups = scores
    line = ScoreCurveDisplay.from_predictions(score, sensitive_features=groups).lines_["b"]
    gap = statistical_parity_gap(None, score, sensitive_features=groups)
    assert np.abs(line.get_xdata() - line.get_ydata()).max() == pytest.approx(gap)


def test_weights_change_the_curve(scores):
    score, groups = scores
    weight = np.where(score > 0, 2.0, 1.0)
    display = ScoreCurveDisplay.from_predictions(score, sensitive_features=groups, sample_weight=weight)
    expected = score_curve(None, score, sensitive_features=groups, sample_weight=weight)
    np.testing.assert_array_equal(display.lines_["b"].get_ydata(), expected["b"])


def test_interval_is_marked_on_both_axes_and_the_curve(scores):
    score, groups = scores
    display = ScoreCurveDisplay.from_predictions(score, sensitive_features=groups, interval=(0.1, 0.3))
    assert spans(display.ax_) == [(0.1, 0.3, 0, 1), (0, 1, 0.1, 0.3)]
    assert texts(display.ax_) == ["b against a", "equal shares", "ranks 10%–30% of each"]
    line, bold = display.lines_["b"], display.bold_["b"]
    x, y = line.get_xdata(), line.get_ydata()
    tiny = 1e-9
    inside = ((x > 0.1 - tiny) & (x < 0.3 - tiny)) | ((y > 0.1 - tiny) & (y < 0.3 - tiny))
    np.testing.assert_array_equal(np.isfinite(bold.get_xdata()), inside)
    np.testing.assert_array_equal(bold.get_ydata()[inside], y[inside])
    assert 0 < inside.sum() < inside.size
    assert bold.get_color() == line.get_color()
    assert bold.get_linewidth() > line.get_linewidth()


def test_union_of_intervals(scores):
    score, groups = scores
    union = [(0.5, 0.6), (0.0, 0.1)]
    display = ScoreCurveDisplay.from_predictions(score, sensitive_features=groups, interval=union)
    assert spans(display.ax_)[::2] == [(0, 0.1, 0, 1), (0.5, 0.6, 0, 1)]
    assert texts(display.ax_)[-1] == "ranks 0%–10% and 50%–60% of each"


def test_intervals_by_group(scores):
    score, groups = scores
    by_group = {"a": (0.1, 0.2), "b": [(0.3, 0.4), (0.5, 0.6)]}
    display = ScoreCurveDisplay.from_predictions(score, sensitive_features=groups, interval=by_group)
    assert spans(display.ax_) == [(0.1, 0.2, 0, 1)]
    bars = [line for line in display.ax_.lines if str(line.get_gid()).startswith("interval")]
    assert [bar.get_ydata().tolist() for bar in bars] == [[0.3, 0.4], [0.5, 0.6]]
    assert {bar.get_color() for bar in bars} == {display.lines_["b"].get_color()}
    assert texts(display.ax_) == [
        "b against a (ranks 30%–40% and 50%–60%)", "equal shares", "ranks 10%–20% of a",
    ]  # fmt: skip


def test_more_groups_each_against_the_reference(scores):
    score, _ = scores
    groups = np.array(["a", "b", "c"])[np.arange(600) % 3]
    display = ScoreCurveDisplay.from_predictions(score, sensitive_features=groups, reference="b")
    assert list(display.lines_) == ["a", "c"]
    expected = score_curve(None, score, sensitive_features=groups)
    for group, line in display.lines_.items():
        np.testing.assert_array_equal(line.get_xdata(), expected["b"])
        np.testing.assert_array_equal(line.get_ydata(), expected[group])
    assert display.ax_.get_ylabel() == "share of the other group above the threshold"
    assert texts(display.ax_) == ["a", "c", "equal shares"]


def test_several_features_make_named_groups(scores):
    score, groups = scores
    two = np.column_stack([groups, np.where(np.arange(600) % 2, "x", "y")])
    display = ScoreCurveDisplay.from_predictions(score, sensitive_features=two, reference=("a", "x"))
    assert display.ax_.get_xlabel() == "share of group a & x above the threshold"
    assert texts(display.ax_)[0] == "a & y"


def test_several_models_share_axes(scores):
    score, groups = scores
    first = ScoreCurveDisplay.from_predictions(score, sensitive_features=groups, interval=(0.1, 0.3), name="before")
    second = ScoreCurveDisplay.from_predictions(
        score + (groups == "b"), sensitive_features=groups, interval=(0.1, 0.3), name="after", ax=first.ax_
    )
    assert second.ax_ is first.ax_
    assert texts(first.ax_) == ["before", "after", "equal shares", "ranks 10%–30% of each"]
    assert first.lines_["b"].get_color() != second.lines_["b"].get_color()
    assert len(first.ax_.patches) == 2
    with pytest.raises(ValueError, match="another group than 'b'"):
        ScoreCurveDisplay.from_predictions(
            score, sensitive_features=groups, reference="b", ax=first.ax_
        )  # fmt: skip


def test_from_estimator_uses_the_decision_function(scores):
    score, groups = scores
    X, y = score[:, None], (score > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    display = ScoreCurveDisplay.from_estimator(model, X, sensitive_features=groups, interval=(0.1, 0.3), color="red")
    # increasing in the score, so the same curve
    expected = score_curve(None, score, sensitive_features=groups)
    np.testing.assert_array_equal(display.curve.to_numpy(), expected.to_numpy())
    assert display.lines_["b"].get_color() == "red"


def test_errors(scores):
    score, groups = scores
    with pytest.raises(ValueError, match=r"reference must be one of the groups \['a', 'b'\]; got 'c'"):
        ScoreCurveDisplay.from_predictions(score, sensitive_features=groups, reference="c")
    with pytest.raises(ValueError, match="there is only 'a'"):
        ScoreCurveDisplay.from_predictions(score[:400], sensitive_features=groups[:400])
    with pytest.raises(ValueError, match="alpha < beta"):
        ScoreCurveDisplay.from_predictions(score, sensitive_features=groups, interval=(0.3, 0.1))
