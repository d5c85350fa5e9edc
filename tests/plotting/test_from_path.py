"""The Pareto display of a path: held-out means with their spread, or the training rows."""

import numpy as np
import pytest

from fairconstrained import RateParityClassifier, fairness_path
from fairconstrained.datasets import make_biased_classification
from fairconstrained.plotting import ParetoFrontDisplay


@pytest.fixture(scope="module")
def path():
    X, y, groups = make_biased_classification(500, 3, random_state=0)
    return fairness_path(
        RateParityClassifier(),
        X,
        y,
        sensitive_features=groups,
        kappas=[None, 0.1, 0.02],
        cv=2,
        scoring=["accuracy", "roc_auc"],
    )


@pytest.mark.slow
def test_held_out_means_with_error_bars(path):
    display = ParetoFrontDisplay.from_path(path, name="rates")
    table = path.table
    np.testing.assert_allclose(display.performance, table["mean_test_accuracy"])
    np.testing.assert_allclose(display.line_.get_xdata(), table["mean_test_gap"].to_numpy()[display.front])
    across, up = (np.array(bars.get_segments()) for bars in display.error_bars_.lines[2])
    front = display.front
    np.testing.assert_allclose(np.ptp(across[:, :, 0], axis=1), 2 * table["std_test_gap"].to_numpy()[front])
    np.testing.assert_allclose(np.ptp(up[:, :, 1], axis=1), 2 * table["std_test_accuracy"].to_numpy()[front])
    assert display.ax_.get_xlabel() == "demographic parity gap, mean of test folds (smaller is fairer)"
    assert display.ax_.get_ylabel() == "accuracy, mean of test folds"
    assert display.ax_.get_legend().get_texts()[0].get_text() == "rates"


def test_training_rows_and_another_score(path):
    display = path.plot(held_out=False, performance="roc_auc")
    np.testing.assert_allclose(display.performance, path.table["train_roc_auc"])
    np.testing.assert_allclose(-display.fairness, path.table["gap"])
    assert display.error_bars_ is None
    assert display.ax_.get_ylabel() == "roc auc, training rows"
    again = path.plot(display.ax_, held_out=False, performance="roc_auc", error_bars=False, color="black")
    assert again.ax_ is display.ax_
    assert again.line_.get_color() == "black"


def test_what_a_path_does_not_have(path):
    with pytest.raises(ValueError, match="performance must be one of"):
        path.plot(performance="f1")
    alone = type(path)(path.table.drop(columns=path.table.filter(like="_test_").columns), path.models, path.scores)
    assert alone.plot().error_bars_ is None
    with pytest.raises(ValueError, match="takes a path with folds"):
        alone.plot(held_out=True)
