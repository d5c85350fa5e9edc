"""The benchmark of minimax group loss: multiplicative weights near the exact optimum, and a small run."""

import numpy as np
import pytest

from benchmarks.any_model.data import Part
from benchmarks.notions.minimax import (
    COLUMNS,
    METHODS,
    difference_interval,
    main,
    multiplicative_weights,
    worst_losses,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    groups = np.where(rng.random(1000) < 0.3, "a", "b")
    X = rng.normal(size=(1000, 3))
    slopes = np.where((groups == "a")[:, None], [1.0, -1.0, 0.0], [1.0, 1.0, 0.5])
    return Part(X, ((X * slopes).sum(axis=1) + rng.logistic(size=1000) > 0).astype(int), groups)


def test_worst_losses_by_hand(rows):
    scores = np.linspace(-1, 1, 1000)
    losses = np.log1p(np.exp(-np.where(rows.y == 1, 1, -1) * scores))
    expected = max(losses[rows.groups == g].mean() for g in "ab"), losses.mean()
    assert worst_losses(rows, scores) == pytest.approx(expected)


def test_the_interval_of_a_difference_is_that_of_the_normal_law_where_one_group_is_worst(rows):
    groups = np.where(np.arange(1000) < 500, "worst", "best")
    rng, scores = np.random.default_rng(0), np.where(rows.y == 1, 3.0, -3.0)
    scores[:500] = rng.normal(size=500)  # much larger losses
    moved = scores + 0.1 * rng.normal(size=1000)
    signs = np.where(rows.y == 1, 1, -1)[:500]
    paired = np.logaddexp(0, -signs * moved[:500]) - np.logaddexp(0, -signs * scores[:500])
    found = difference_interval(rows._replace(groups=groups), moved, scores)
    expected = paired.mean() + 1.96 * paired.std() / np.sqrt(500) * np.array([-1, 1])
    np.testing.assert_allclose(found, expected, atol=0.1 * np.ptp(expected))
    assert difference_interval(rows, scores, scores) == (0, 0)


def test_multiplicative_weights_come_near_the_exact_optimum_and_never_below(rows):
    exact = METHODS["exact_minimax"](rows)
    lower = worst_losses(rows, exact.scores(rows.X))[0] * (1 - 1e-3)
    few, many = (worst_losses(rows, multiplicative_weights(rows, n).scores(rows.X))[0] for n in (5, 200))
    assert lower <= many <= few
    assert many <= 1.02 * lower


def test_a_small_run(tmp_path, capsys):
    names = [
        name for name in METHODS if name in ("unconstrained", "minimax", "exact_minimax", "multiplicative_weights")
    ]
    table = main(["--data", "generated", "--splits", "0", "--methods", *names, "--output", str(tmp_path)])
    assert list(table.columns) == list(COLUMNS)
    assert table.method.tolist() == names
    worst = table.set_index("method").train_worst
    assert worst["exact_minimax"] <= worst["multiplicative_weights"] + 1e-4
    assert worst["exact_minimax"] <= worst["minimax"] <= worst["unconstrained"]
    others = table[table.method != "minimax"]
    assert (others.difference_low <= others.difference_high).all()
    assert table.set_index("method").loc["minimax", ["difference_low", "difference_high"]].isna().all()
    assert (tmp_path / "minimax.csv").exists()
    assert "test_worst" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Setting")  # in Fairlearn
@pytest.mark.parametrize("name", ["exponentiated_gradient", "grid_search"])
def test_fairlearn(rows, name):
    pytest.importorskip("fairlearn")
    found = METHODS[name](rows)
    assert worst_losses(rows, found.scores(rows.X))[0] < worst_losses(rows, np.zeros(1000))[0]
