"""The bounds of a path: its own grid, which ends where the groups end to tell anything, and given ones."""

import numpy as np
import pytest

from fairconstrained import (
    AUCFairClassifier,
    FairnessWarning,
    GroupLossClassifier,
    NeymanPearsonClassifier,
    PartialParityClassifier,
    RateParityClassifier,
    fairness_path,
)
from fairconstrained.metrics import partial_demographic_parity_gap


def path_of(estimator, sample, **options):
    return fairness_path(estimator, sample.X, sample.y, sensitive_features=sample.groups, **options)


def rates(**options):
    return PartialParityClassifier(**{"constraint": "demographic_parity", **options})


@pytest.mark.slow
def test_the_grid_goes_from_the_gap_to_what_the_groups_resolve(classes):
    path = path_of(rates(), classes, n_kappas=4)
    free = rates(kappa=None).fit(classes.X, classes.y, sensitive_features=classes.groups)
    gap = partial_demographic_parity_gap(
        classes.y, free.decision_function(classes.X), sensitive_features=classes.groups
    )
    error = 0.5 / np.sqrt(np.bincount(classes.groups).min())  # of a share of one half
    assert path.kappas[0] == np.inf
    np.testing.assert_allclose(path.kappas[1:], error + (gap - error) * np.array([4 / 9, 1 / 9, 0]))
    assert path.models[0].kappa is None


@pytest.mark.slow
def test_with_folds_the_grid_ends_where_the_training_parts_resolve_it(classes):
    folds = [(np.arange(100, 400), np.arange(100)), (np.arange(300), np.arange(300, 400))]
    path = path_of(rates(), classes, n_kappas=2, cv=folds)
    smallest = min(np.bincount(classes.groups[train]).min() for train, _ in folds)
    assert path.kappas[-1] == pytest.approx(0.5 / np.sqrt(smallest))
    assert smallest < np.bincount(classes.groups).min()


@pytest.mark.slow
def test_the_grid_of_bounded_losses_ends_at_the_least_that_can_be_kept(classes):
    path = path_of(GroupLossClassifier(new_row_folds=None), classes, n_kappas=4)
    minimax = GroupLossClassifier("minimax", slack=0.0, new_row_folds=None)
    minimax.fit(classes.X, classes.y, sensitive_features=classes.groups)
    least, largest = minimax.group_losses_["loss"].max(), path.table["gap"].iloc[0]
    assert largest > 1.01 * least
    assert path.kappas[-1] == pytest.approx(least + 0.01 * (largest - least), rel=1e-4)
    assert (path.table["status"] == "optimal").all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
def test_the_grid_is_about_groups_where_the_granularity_is_not(classes):
    """The granularity of smooth metrics is a numerical tolerance, and that of pairs of rows is below one row."""
    path = path_of(RateParityClassifier(rate="sigmoid"), classes, n_kappas=2)
    error = 0.5 / np.sqrt(np.bincount(classes.groups).min())
    assert path.kappas.tolist() == [np.inf, pytest.approx(error)]
    with pytest.warns(FairnessWarning, match=f"its gap is 0.004979, and the groups .* below {error:.4g} cannot"):
        other = path_of(AUCFairClassifier(), classes)
    grains = [max(one.models[0].granularity_.values()) for one in (path, other)]
    assert max(grains) < 1e-3 < 1 / np.bincount(classes.groups).min()


@pytest.mark.slow
def test_groups_that_are_not_compared_do_not_end_the_grid(classes):
    groups = np.where(np.arange(400) < 5, 2, classes.groups)
    estimator = RateParityClassifier(min_group_size=20, small_groups="ignore")
    path = fairness_path(estimator, classes.X, classes.y, sensitive_features=groups, n_kappas=2)
    assert path.kappas[1] == pytest.approx(0.5 / np.sqrt(np.bincount(groups)[:2].min()))
    counted = np.arange(400) % 2  # rows without weight are none
    weighted = path_of(RateParityClassifier(), classes, n_kappas=2, sample_weight=3 * counted)
    assert weighted.kappas[1] == pytest.approx(0.5 / np.sqrt(np.bincount(classes.groups, counted).min()))


def test_without_groups_all_rows_end_the_grid(classes):
    estimator = NeymanPearsonClassifier({0: 0.1}, constraint="error")
    path = fairness_path(estimator, classes.X, classes.y, sensitive_features=None, n_kappas=2)
    assert path.kappas.tolist() == [np.inf, pytest.approx(0.5 / np.sqrt(400))]


def test_a_gap_that_cannot_be_resolved_makes_a_path_of_one(classes):
    few = [column[:60] for column in classes]
    groups = np.arange(60) % 30 < 29  # two rows against 58: the gap is within one row
    with pytest.warns(FairnessWarning, match=r"one model, the unconstrained one: its gap is 0\.\d+.*below 0.5 cannot"):
        path = fairness_path(rates(), *few[:2], sensitive_features=groups)
    assert path.kappas.tolist() == [np.inf]
    assert path.models[0].kappa is None


def test_without_groups_there_is_nothing_to_bound(classes):
    with pytest.warns(FairnessWarning, match="one model") as caught:
        path = fairness_path(rates(), classes.X, classes.y, sensitive_features=None, cv=2)
    assert len(caught) == 1
    assert path.table["gap"].tolist() == [0.0]
    assert path.gaps == ()


@pytest.mark.slow
def test_given_bounds_are_sorted_from_loose_to_tight(classes):
    path = path_of(RateParityClassifier(), classes, kappas=[0.05, None, 0.2])
    assert path.kappas.tolist() == [np.inf, 0.2, 0.05]
    assert path_of(RateParityClassifier(), classes, kappas=np.array([0.05, np.inf])).models[0].kappa is None


@pytest.mark.parametrize(
    ("kappas", "message"),
    [
        ([0.1, 0.1], r"more than once: \[0.1\]"),
        ([None, np.inf], "None is infinity"),
        ([0.1, -0.1], "at least 0; got -0.1"),
        ([0.1, np.nan], "without NaN"),
        ([], "at least one number"),
        (["small"], "must be a list of at least one number"),
    ],
)
def test_bounds_that_make_no_path(classes, kappas, message):
    with pytest.raises(ValueError, match=message):
        path_of(rates(), classes, kappas=kappas)
