"""Heads on the scores of finished models, whose rows are not in memory: the head of the same rows in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    FairBoostingClassifier,
    FairHeadClassifier,
    FairHeadRegressor,
    PartialParityClassifier,
    PartialParityRegressor,
)
from fairconstrained.datasets import make_biased_classification
from fairconstrained.distributed import DaskEstimator
from fairconstrained.tables import array_table

pytestmark = pytest.mark.usefixtures("in_parts")

NAMES = list("abcde")
X, Y, GROUP = make_biased_classification(700, n_features=5, random_state=0)
FRAME, SEEN, NEW = pd.DataFrame(X, columns=NAMES), slice(300), slice(300, 700)
GROUPS = np.where(np.arange(700) % 3 == 0, "other", np.where(GROUP == 1, "men", "women"))
HEAD = PartialParityClassifier(0.1, constraint="demographic_parity", random_state=0)
BASES = {
    "a pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "an estimator of the package": PartialParityClassifier(None),
}


def table(rows, names=NAMES):
    return array_table(X[rows], names=names, block_size=70)


def head(base, **options):
    """The head before its fit; `clone` would forget the fit of the base."""
    return FairHeadClassifier(base, clone(HEAD), cv="prefit", random_state=0, **options)


@pytest.mark.parametrize("named", [True, False], ids=["names", "no names"])
@pytest.mark.parametrize("name", BASES)
def test_a_head_on_a_table_is_that_on_an_array(name, named):
    frame, names = (FRAME, NAMES) if named else (X, None)
    base = clone(BASES[name]).fit(frame[SEEN], Y[SEEN])
    groups = PartialParityClassifier(None, random_state=0)
    whole = head(base, group_estimator=groups).fit(frame[NEW], Y[NEW], sensitive_features=GROUPS[NEW])
    model = head(base).fit(table(NEW, names), Y[NEW], sensitive_features=GROUPS[NEW])
    scores = whole.decision_function(frame[NEW])
    np.testing.assert_allclose(model.decision_function(table(NEW, names)), scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(frame[NEW]), scores, rtol=1e-5, atol=1e-6)
    assert model.constraint_values_ == pytest.approx(whole.constraint_values_)
    if named:
        assert model.feature_names_in_.tolist() == NAMES
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(table(NEW, NAMES[::-1]))


def test_scores_and_groups_alone_make_the_very_same_head():
    base = LogisticRegression().fit(X[SEEN], Y[SEEN])
    for options in ({"group_estimator": None}, {"use_groups": True}):
        whole = head(base, **options).fit(X[NEW], Y[NEW], sensitive_features=GROUPS[NEW])
        model = head(base, **options).fit(table(NEW, None), Y[NEW], sensitive_features=GROUPS[NEW])
        found = model.decision_function(table(NEW, None), sensitive_features=GROUPS[NEW])
        np.testing.assert_array_equal(found, whole.decision_function(X[NEW], sensitive_features=GROUPS[NEW]))


def test_a_base_under_a_bound_by_group_gets_the_groups_of_its_block():
    base = PartialParityClassifier(0.3, constraint="demographic_parity", group_interactions=True, random_state=0)
    base.fit(X[SEEN], Y[SEEN], sensitive_features=GROUPS[SEEN])
    whole = head(base, group_estimator=None).fit(X[NEW], Y[NEW], sensitive_features=GROUPS[NEW])
    model = head(base, group_estimator=None).fit(table(NEW, None), Y[NEW], sensitive_features=GROUPS[NEW])
    found = model.predict(table(NEW, None), sensitive_features=GROUPS[NEW])
    np.testing.assert_array_equal(found, whole.predict(X[NEW], sensitive_features=GROUPS[NEW]))


def test_models_of_the_package_are_fitted_by_folds_to_a_table():
    free = PartialParityClassifier(None, random_state=0)
    options = {"group_estimator": free, "cv": 2, "random_state": 0}
    whole = FairHeadClassifier(free, clone(HEAD), **options).fit(X, Y, sensitive_features=GROUPS)
    model = FairHeadClassifier(free, clone(HEAD), **options).fit(table(slice(None)), Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(model.decision_function(FRAME), whole.decision_function(X), rtol=1e-4, atol=1e-4)
    assert model.constraint_values_ == pytest.approx(whole.constraint_values_, abs=1e-9)


def test_predictions_of_a_regressor_on_a_table():
    target = X[:, 0] + GROUP
    base = LinearRegression().fit(X[SEEN], target[SEEN])
    options = {"cv": "prefit", "group_estimator": None, "random_state": 0}
    whole = FairHeadRegressor(base, PartialParityRegressor(0.3, random_state=0), **options)
    model = FairHeadRegressor(base, PartialParityRegressor(0.3, random_state=0), **options)
    whole.fit(X[NEW], target[NEW], sensitive_features=GROUPS[NEW])
    model.fit(table(NEW, None), target[NEW], sensitive_features=GROUPS[NEW])
    np.testing.assert_array_equal(model.predict(table(NEW, None)), whole.predict(X[NEW]))


def test_columns_for_the_groups_need_rows_in_memory():
    base = clone(BASES["a pipeline"]).fit(FRAME[SEEN], Y[SEEN])
    with pytest.raises(ValueError, match=r"rows in memory. Pass 'auto' or None"):
        head(base, group_estimator=["a"]).fit(table(NEW), Y[NEW], sensitive_features=GROUPS[NEW])


def test_models_that_need_arrays_for_their_fit_say_how_to_go_on():
    with pytest.raises(TypeError, match=r"FairHeadClassifier\(model, cv='prefit'\)"):
        FairHeadClassifier(LogisticRegression()).fit(table(NEW), Y[NEW], sensitive_features=GROUPS[NEW])
    boosting = FairBoostingClassifier(0.5, n_estimators=5, random_state=0)
    with pytest.raises(TypeError, match=r"in memory, and X is a Table. .*FairHeadClassifier\(trees, cv='prefit'\)"):
        boosting.fit(table(NEW), Y[NEW], sensitive_features=GROUPS[NEW])
    boosting.fit(X[NEW], Y[NEW], sensitive_features=GROUPS[NEW])
    with pytest.raises(TypeError, match=r"map_rows\(model.predict\)"):
        boosting.predict(table(NEW))
    np.testing.assert_array_equal(table(NEW).map_rows(boosting.predict), boosting.predict(X[NEW]))


def test_the_rows_that_a_finished_model_was_fitted_on_are_refused():
    base = PartialParityClassifier(None).fit(X[SEEN], Y[SEEN])
    with pytest.raises(ValueError, match="100% of the rows are among those that PartialParityClassifier"):
        head(base).fit(table(SEEN, None), Y[SEEN], sensitive_features=GROUPS[SEEN])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dask_collections_are_scored_by_their_workers():
    distributed = pytest.importorskip("dask.distributed")
    dd = pytest.importorskip("dask.dataframe")
    base = clone(BASES["a pipeline"]).fit(FRAME[SEEN], Y[SEEN])
    whole = head(base, group_estimator=None).fit(FRAME[NEW], Y[NEW], sensitive_features=GROUPS[NEW])
    people = dd.from_pandas(FRAME[NEW].assign(label=Y[NEW], group=GROUPS[NEW]), npartitions=3)
    with (
        warnings.catch_warnings(),
        distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None),
    ):
        model = head(base, group_estimator=None)
        model.fit(people[NAMES], people["label"], sensitive_features=people["group"])
        scores = model.decision_function(people[NAMES])
        ready = DaskEstimator(model)
        ready.estimator_ = model
        by_partition = ready.decision_function(people[NAMES]).compute()
    np.testing.assert_array_equal(scores, whole.decision_function(FRAME[NEW]))
    np.testing.assert_array_equal(by_partition, scores)
