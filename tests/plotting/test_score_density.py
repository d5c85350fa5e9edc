"""Score densities by group: curves, shaded percentiles, legends."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import gaussian_kde
from sklearn.linear_model import LogisticRegression

from fairconstrained.plotting import ScoreDensityDisplay


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("method", ["kde", "hist"])
def test_densities_integrate_to_one(scores, method):
    score, groups = scores
    display = ScoreDensityDisplay.from_predictions(score, sensitive_features=groups, method=method)
    for line in display.lines_.values():
        assert trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(1, abs=2e-3)
    assert texts(display.ax_) == ["a (n = 400)", "b (n = 200)"]
    assert display.ax_.get_xlabel() == "score"
    assert display.ax_.get_ylabel() == "density within the group"
    assert display.ax_.get_ylim()[0] == 0


def test_kernel_estimate_is_scipys(scores):
    score, groups = scores
    weight = np.where(score > 0, 2.0, 1.0)
    display = ScoreDensityDisplay.from_predictions(score, sensitive_features=groups, sample_weight=weight)
    for group, line in display.lines_.items():
        expected = gaussian_kde(score[groups == group], weights=weight[groups == group])(line.get_xdata())
        np.testing.assert_allclose(line.get_ydata(), expected)


def test_binning_many_rows_changes_nothing_visible():
    score = np.random.default_rng(0).normal(size=30_000)
    groups = np.repeat(["a", "b"], [20_000, 10_000])
    display = ScoreDensityDisplay.from_predictions(score, sensitive_features=groups)
    line = display.lines_["a"]
    expected = gaussian_kde(score[:20_000])(line.get_xdata()[::40])
    np.testing.assert_allclose(line.get_ydata()[::40], expected, atol=2e-4)


def test_probabilities_stay_between_zero_and_one(scores):
    score, groups = scores
    probability = 1 / (1 + np.exp(-3 * score))
    display = ScoreDensityDisplay.from_predictions(probability, sensitive_features=groups)
    for line in display.lines_.values():
        assert line.get_xdata().min() >= 0
        assert line.get_xdata().max() <= 1


@pytest.mark.parametrize("method", ["kde", "hist"])
def test_shades_cover_the_percentiles_of_each_group(method):
    score = np.concatenate([np.arange(20), np.arange(10)]).astype(float)
    groups = np.repeat(["a", "b"], [20, 10])
    display = ScoreDensityDisplay.from_predictions(score, sensitive_features=groups, interval=(0.1, 0.3), method=method)
    # of 20 rows the positions 3 to 6 from the top, of 10 rows 2 and 3
    for group, ends in {"a": (14, 17), "b": (7, 8)}.items():
        (shade,) = display.shades_[group]
        (path,) = shade.get_paths()
        assert (path.vertices[:, 0].min(), path.vertices[:, 0].max()) == ends
        assert path.vertices[:, 1].min() == 0
        line = display.lines_[group]
        assert path.vertices[:, 1].max() <= line.get_ydata().max() + 1e-12
    assert texts(display.ax_) == ["a (n = 20)", "b (n = 10)", "ranks 10%–30% of each group"]


def test_weighted_percentiles():
    score = np.arange(5).astype(float)
    display = ScoreDensityDisplay.from_predictions(
        np.tile(score, 2),
        sensitive_features=np.repeat(["a", "b"], 5),
        sample_weight=[1, 1, 1, 1, 1, 1, 1, 1, 1, 4],
        interval=(0, 0.5),
    )
    # a: 2.5 of 5 rows from the top; b: the top row alone weighs half
    assert display.densities["a"].ranges.tolist() == [[2, 4]]
    assert display.densities["b"].ranges.tolist() == [[4, 4]]


def test_unions_and_intervals_by_group(scores):
    score, groups = scores
    display = ScoreDensityDisplay.from_predictions(
        score, sensitive_features=groups, interval={"a": [(0, 0.1), (0.5, 0.6)], "b": (0.2, 0.3)}
    )
    assert [len(display.shades_[group]) for group in "ab"] == [2, 1]
    assert texts(display.ax_) == ["a (n = 400), ranks 0%–10% and 50%–60%", "b (n = 200), ranks 20%–30%"]
    top = display.densities["a"].ranges[0]
    assert top.tolist() == [np.sort(score[groups == "a"])[-40], score[groups == "a"].max()]


def test_bars_name_the_ranges_of_more_than_two_groups(scores):
    score, _ = scores
    groups = np.array(["a", "b", "c"])[np.arange(600) % 3]
    display = ScoreDensityDisplay.from_predictions(score, sensitive_features=groups, interval=(0.1, 0.3))
    bars = [line for line in display.ax_.lines if line not in display.lines_.values()]
    assert len(bars) == 3
    peak = max(line.get_ydata().max() for line in display.lines_.values())
    for bar, (group, density) in zip(bars, display.densities.items(), strict=True):
        assert bar.get_xdata().tolist() == density.ranges[0].tolist()
        assert bar.get_color() == display.lines_[group].get_color()
        assert peak < bar.get_ydata()[0] < display.ax_.get_ylim()[1]


def test_from_estimator(scores):
    score, groups = scores
    X, y = score[:, None], (score > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    display = ScoreDensityDisplay.from_estimator(
        model, X, sensitive_features=groups, interval=(0, 0.2), response="predict_proba", linestyle="--"
    )
    assert display.ax_.get_xlabel() == "predicted probability"
    assert display.lines_["a"].get_linestyle() == "--"
    probability = model.predict_proba(X)[groups == "a", 1]
    assert display.densities["a"].ranges[0, 1] == pytest.approx(probability.max())


def test_errors(scores):
    score, groups = scores
    with pytest.raises(ValueError, match=r"All scores of group 'b' are equal.*method='hist'"):
        ScoreDensityDisplay.from_predictions(np.where(groups == "b", 0, score), sensitive_features=groups)
    with pytest.raises(ValueError, match=r"method must be one of \['hist', 'kde'\]"):
        ScoreDensityDisplay.from_predictions(score, sensitive_features=groups, method="box")
    with pytest.raises(ValueError, match="sensitive_features has 10 rows"):
        ScoreDensityDisplay.from_predictions(score, sensitive_features=groups[:10])


def test_constant_scores_have_a_histogram(scores):
    _, groups = scores
    display = ScoreDensityDisplay.from_predictions(
        np.zeros(600), sensitive_features=groups, method="hist", interval=(0, 0.5)
    )
    assert display.densities["a"].ranges.tolist() == [[0, 0]]
