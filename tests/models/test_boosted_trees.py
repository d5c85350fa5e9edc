"""Ensembles: their scores, their one booster, and what a problem needs of them."""

import pickle
import sys

import lightgbm as lgb
import numpy as np
import pytest

from fairconstrained.data import FairData
from fairconstrained.models.boosted_trees import BoostedTrees, Ensemble, Growth, Part, lightgbm


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.nan_to_num(X[:, 0]) + rng.normal(size=300)


@pytest.fixture(scope="module")
def boosters(rows):
    X, y = rows
    return [lgb.train({"num_leaves": n, "verbosity": -1}, lgb.Dataset(X, y), 6) for n in (4, 5)]


def data_of(rows):
    X, y = rows
    return FairData.from_arrays(X, y, np.arange(len(y)) % 2, ("a", "b"))


def test_scores_are_sums_of_the_first_trees(rows, boosters):
    X, _ = rows
    state = Ensemble((Part(boosters[0], 3, 0.5), Part(boosters[1], 2)), constant=1.25)
    expected = 1.25 + 0.5 * boosters[0].predict(X, num_iteration=3) + boosters[1].predict(X, num_iteration=2)
    np.testing.assert_allclose(state.scores(X), expected, rtol=1e-14)
    assert state.n_trees == 5


def test_one_booster_has_the_scores_of_all_parts(rows, boosters):
    X, _ = rows
    state = Ensemble((Part(boosters[0], 3, -0.5), Part(boosters[1], 6, 3.0)), constant=-2.0)
    joined = state.joined()
    (part,) = joined.parts
    assert (part.n_trees, part.booster.num_trees(), joined.constant) == (9, 9, 0.0)
    np.testing.assert_allclose(part.booster.predict(X, raw_score=True), state.scores(X), rtol=1e-13)
    gains = boosters[0].feature_importance("gain", iteration=3) + boosters[1].feature_importance("gain")
    np.testing.assert_allclose(part.booster.feature_importance("gain"), gains, rtol=1e-5)


def test_no_trees_are_a_constant(rows):
    X, _ = rows
    state = Ensemble(constant=0.5).joined()
    np.testing.assert_array_equal(state.scores(X), 0.5)
    assert BoostedTrees().attributes(state, 0.0, 1.0) == {"booster_": None, "n_trees_": 0}


def test_scores_from_memory_are_those_of_the_state(rows, boosters):
    data = data_of(rows)
    model, state = BoostedTrees(), Ensemble((Part(boosters[0], 4),), constant=0.3)
    computed = model.training_scores(state, data)
    np.testing.assert_allclose(computed, state.scores(rows[0])[data.order])
    model.remember(state, data, 10 + computed)  # another number, to see where it comes from
    np.testing.assert_allclose(model.training_scores(state, data), 10 + computed)
    scaled = model.rescaling(state, data).at(2.0, -1.0)
    np.testing.assert_allclose(model.training_scores(scaled, data), 2 * (10 + computed) - 1)
    np.testing.assert_allclose(model.portable().training_scores(scaled, data), 2 * computed - 1)
    shorter = Ensemble((Part(boosters[0], 3),), constant=0.3)
    np.testing.assert_allclose(model.training_scores(shorter, data), shorter.scores(data.X))
    other = data_of(rows)
    np.testing.assert_allclose(model.training_scores(state, other), computed)


def test_shifts_and_constant_scores(rows, boosters):
    data = data_of(rows)
    model, state = BoostedTrees(), Ensemble((Part(boosters[0], 4),))
    shifts = model.shifts(data)
    assert shifts.n_shifts == 1
    moved = shifts.moved(state, np.array([0.75]))
    np.testing.assert_allclose(moved.scores(data.X), state.scores(data.X) + 0.75)
    assert model.rescaling(state, data).at(0.0, 2.0).scores(data.X) == pytest.approx(2.0)


def growth_on(data, unseen=(), begin=Ensemble(), **params):  # noqa: B008 - immutable
    model = BoostedTrees({"num_leaves": 4, "min_child_samples": 5, **params})
    return Growth(model.binned(data, learning_rate=0.5), np.array(unseen, dtype=int), begin)


@pytest.mark.parametrize("unseen", [[], range(0, 300, 3)])
def test_growth_follows_the_scores_of_all_rows(rows, unseen):
    data, y = data_of(rows), data_of(rows).y.numpy()
    growth = growth_on(data, unseen, Ensemble(constant=1.0))
    assert set(growth.scores) == {1.0}
    for _ in range(4):
        assert growth.grow(growth.scores - y, np.ones(y.size))
        np.testing.assert_allclose(growth.scores, growth.state().scores(data.X), rtol=1e-12)
    assert np.var(growth.scores - y) < 0.8 * np.var(y)
    before = growth_on(data, unseen, growth.state())
    assert before.grow(before.scores - y, np.ones(y.size))
    np.testing.assert_allclose(before.scores, before.state().scores(data.X), rtol=1e-12)
    assert before.state().n_trees == 5
    before.undo()
    np.testing.assert_allclose(before.scores, growth.scores, rtol=1e-12)
    assert before.state().n_trees == 4


def test_trees_do_not_depend_on_rows_that_they_do_not_see(rows):
    data, unseen, trees = data_of(rows), np.arange(0, 300, 3), []
    for sign in (1.0, -1.0):
        growth, slopes = growth_on(data, unseen), data.y.numpy().copy()
        slopes[unseen] *= sign
        assert growth.grow(-slopes, np.ones(slopes.size))
        trees.append(growth.scores)
    np.testing.assert_array_equal(*trees)


@pytest.mark.parametrize("params", [{"min_child_samples": 200}, {"min_gain_to_split": 1e9}])
def test_growth_says_that_there_is_no_tree_to_add(rows, params):
    data = data_of(rows)
    growth = growth_on(data, **params)
    assert not growth.grow(np.ones(data.n_samples), np.ones(data.n_samples))
    assert growth.state().n_trees == 0


def test_means_of_ensembles_can_be_split_again_also_as_one_booster(rows, boosters):
    X, _ = rows
    first = Ensemble((Part(boosters[0], 2, 0.5), Part(boosters[1], 3)), constant=1.0)
    second = Ensemble((Part(boosters[1], 2, 2.0), Part(boosters[0], 3)), constant=1.0)
    mean = Ensemble.mean([first, second])
    np.testing.assert_allclose(mean.scores(X), (first.scores(X) + second.scores(X)) / 2, rtol=1e-13)
    assert mean.n_trees == 10
    for state in (mean, mean.joined()):
        for found, expected in zip(state.split(2), (first, second), strict=True):
            np.testing.assert_allclose(found.scores(X), expected.scores(X), rtol=1e-12)
            assert found.n_trees == 5
    assert [each.scores(X[:1]) for each in Ensemble(constant=0.5).split(3)] == [0.5] * 3
    (same,) = first.split(1)
    np.testing.assert_array_equal(same.scores(X), first.scores(X))


def test_states_are_pickled(rows, boosters):
    state = Ensemble((Part(boosters[0], 4, 2.0),), constant=0.1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(state)).scores(rows[0]), state.scores(rows[0]))


def test_the_command_is_named_where_lightgbm_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"pip install 'fairconstrained\[boosting\]'"):
        lightgbm()
