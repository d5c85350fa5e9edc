"""Fits to Dask collections on a cluster of this process: the models and predictions of arrays in memory."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from fairconstrained import FairHeadClassifier, PartialParityClassifier, certify, fairness_path, fairness_report
from fairconstrained.datasets import make_biased_classification
from fairconstrained.distributed import DaskEstimator
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.tables import dask_table

pytest.importorskip("dask.distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Dask leaves sockets to the garbage collector

NAMES = ["a", "b", "c", "d"]
ESTIMATOR = PartialParityClassifier(0.2, constraint="demographic_parity", random_state=0)


@pytest.fixture(scope="module")
def client():
    from dask.distributed import Client

    with (
        warnings.catch_warnings(),
        Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def people():
    X, y, group = make_biased_classification(300, n_features=4, random_state=0)
    return pd.DataFrame(X, columns=NAMES).assign(y=np.where(y == 1, "yes", "no"), sex=np.where(group == 1, "f", "m"))


def test_a_dataframe_is_fitted_and_predicted_partition_by_partition(client, people):
    import dask.array as da
    import dask.dataframe as dd

    frame = dd.from_pandas(people, npartitions=3)
    whole = clone(ESTIMATOR).fit(people[NAMES], people["y"], sensitive_features=people["sex"])
    model = DaskEstimator(ESTIMATOR, client).fit(frame[NAMES], frame["y"], sensitive_features=frame["sex"])
    assert type(model.estimator_) is PartialParityClassifier
    assert model.estimator_.feature_names_in_.tolist() == NAMES
    assert is_classifier(model)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == NAMES
    assert model.score(frame[NAMES], frame["y"]) == whole.score(people[NAMES], people["y"])
    assert model.score(people[NAMES], people["y"]) == whole.score(people[NAMES], people["y"])
    assert model.estimator_.constraint_values_ == pytest.approx(whole.constraint_values_, abs=1e-12)
    for method, columns in (("predict", ()), ("decision_function", ()), ("predict_proba", (2,))):
        found = getattr(model, method)(frame[NAMES])
        assert isinstance(found, da.Array)
        assert found.shape[1:] == columns
        expected = getattr(whole, method)(people[NAMES])
        if method == "predict":
            np.testing.assert_array_equal(found.compute(), expected)
        else:
            np.testing.assert_allclose(found.compute(), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(model.predict(people[NAMES]), whole.predict(people[NAMES]))


def test_few_columns_of_files_have_the_partitions_of_many(client, people, tmp_path):
    import dask.dataframe as dd

    wide = pd.concat([people, pd.DataFrame(np.zeros((300, 30))).add_prefix("z")], axis=1)
    for number in range(4):
        wide[75 * number : 75 * number + 75].to_parquet(tmp_path / f"{number}.parquet")
    frame = dd.read_parquet(tmp_path / "*.parquet")
    by_group = clone(ESTIMATOR).set_params(group_interactions=True, new_row_folds=None)
    X, groups = frame[[*NAMES, *wide.columns[6:]]], {"sensitive_features": frame["sex"]}
    model = DaskEstimator(by_group, client).fit(X, frame["y"], **groups)
    expected = model.estimator_.predict(wide[X.columns.tolist()], sensitive_features=wide["sex"])
    np.testing.assert_array_equal(model.predict(X, **groups).compute(), expected)


@pytest.mark.parametrize("verify_meta", [True, False])
def test_dataframes_may_come_from_delayed_functions(client, people, verify_meta):
    import dask
    import dask.dataframe as dd

    parts = [dask.delayed(people.iloc)[k : k + 100] for k in (0, 100, 200)]
    frame = dd.from_delayed(parts, meta=people[:0], verify_meta=verify_meta)
    model = DaskEstimator(ESTIMATOR, client)
    model.estimator_ = clone(ESTIMATOR).set_params(kappa=None).fit(people[NAMES], people["y"])
    np.testing.assert_array_equal(model.predict(frame[NAMES]).compute(), model.estimator_.predict(people[NAMES]))


def test_labels_and_groups_may_be_persisted_on_another_cluster_than_the_current(client, people):
    import dask.dataframe as dd
    from dask.distributed import Client

    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with warnings.catch_warnings(), Client(**options, set_as_default=False) as other:
        frame = other.persist(dd.from_pandas(people, npartitions=2))
        model = DaskEstimator(ESTIMATOR, other).fit(frame[NAMES], frame["y"], sensitive_features=frame["sex"])
    expected = clone(ESTIMATOR).fit(people[NAMES], people["y"], sensitive_features=people["sex"])
    assert model.estimator_.constraint_values_ == pytest.approx(expected.constraint_values_, abs=1e-12)


@pytest.mark.parametrize(
    ("as_array", "changed", "told"),
    [
        (False, "X", ["X and y", "X and sensitive_features"]),
        (False, "groups", ["X and sensitive_features"]),
        (True, "groups", ["y and sensitive_features"]),
        (False, "", []),
    ],
)
def test_columns_in_another_order_are_told(client, people, as_array, changed, told):
    import dask.dataframe as dd

    frame, other = dd.from_pandas(people, npartitions=2), dd.from_pandas(people[::-1], npartitions=2, sort=False)
    X, groups = ((other if name == changed else frame) for name in ("X", "groups"))
    X = X[NAMES].to_dask_array(lengths=True) if as_array else X[NAMES]
    estimator = clone(ESTIMATOR).set_params(kappa=None)
    for model in (DaskEstimator(estimator, client), estimator):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, frame["y"], sensitive_features=groups["sex"])
        messages = [str(each.message) for each in caught if issubclass(each.category, FairnessWarning)]
        assert [message.partition(" have the same row labels")[0] for message in messages] == told


def test_a_client_is_shared_by_clones_and_not_saved(client, people):
    import dask.dataframe as dd

    frame = dd.from_pandas(people, npartitions=2)
    model = DaskEstimator(ESTIMATOR, client).fit(frame[NAMES], frame["y"], sensitive_features=frame["sex"])
    assert clone(model).client is client
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.client is None
    np.testing.assert_array_equal(loaded.predict(people[NAMES]), model.predict(people[NAMES]))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_blocks_of_arrays_may_be_sparse_empty_or_cut_by_columns(client, people, layout):
    import dask.array as da

    X = people[NAMES].to_numpy()
    array = da.from_array(X, chunks=((100, 0, 200), (4,)))
    array = array.map_blocks(layout, dtype=float) if layout is sp.csr_array else array.rechunk({1: 3})
    whole = clone(ESTIMATOR).fit(X, people["y"], sensitive_features=people["sex"])
    model = DaskEstimator(ESTIMATOR, client).fit(array, people["y"], sensitive_features=people["sex"])
    np.testing.assert_allclose(
        model.decision_function(array).compute(), whole.decision_function(X), rtol=1e-7, atol=1e-7
    )


def test_models_of_groups_predict_with_the_groups_of_the_partitions(client, people):
    import dask.dataframe as dd

    frame = dd.from_pandas(people, npartitions=2)
    estimator = clone(ESTIMATOR).set_params(group_interactions=True)
    model = DaskEstimator(estimator, client).fit(frame[NAMES], frame["y"], sensitive_features=frame["sex"])
    found = model.predict(frame[NAMES], sensitive_features=frame["sex"]).compute()
    expected = model.estimator_.predict(people[NAMES], sensitive_features=people["sex"])
    np.testing.assert_array_equal(found, expected)
    weights = dd.from_pandas(pd.Series(np.arange(300.0)), npartitions=2)
    score = model.score(frame[NAMES], frame["y"], weights, sensitive_features=people["sex"])
    assert score == pytest.approx(np.average(expected == people["y"], weights=np.arange(300)))
    with pytest.raises(ValueError, match="3 partitions and X has 2"):
        model.predict(frame[NAMES], sensitive_features=dd.from_pandas(people["sex"], npartitions=3))
    with pytest.raises(ValueError, match="sensitive_features has to be a Dask collection"):
        model.predict(frame[NAMES], sensitive_features=people["sex"])


@pytest.mark.parametrize("routing", [True, False])
def test_a_search_scores_models_of_dask_arrays_by_itself(client, people, routing):
    import dask.array as da

    X, y, options = people[NAMES].to_numpy(), people["y"].to_numpy(), {"cv": 2, "error_score": "raise"}
    groups, free = {"sensitive_features": people["sex"].to_numpy()}, clone(ESTIMATOR).set_params(kappa=None)
    with config_context(enable_metadata_routing=routing):
        whole = GridSearchCV(free, {"alpha": [0.1, 10.0]}, **options).fit(X, y, **groups)
        search = GridSearchCV(DaskEstimator(free, client), {"estimator__alpha": [0.1, 10.0]}, **options)
        search.fit(da.from_array(X, chunks=(100, 4)), y, **groups)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    assert search.n_features_in_ == 4
    assert not hasattr(search.best_estimator_, "feature_names_in_")
    assert not hasattr(clone(search.best_estimator_), "n_features_in_")


def test_certificates_and_reports_take_predictions_of_partitions(client, people):
    import dask.dataframe as dd

    frame = dd.from_pandas(people, npartitions=3)
    model = DaskEstimator(ESTIMATOR, client).fit(
        frame[NAMES].partitions[:2], frame["y"].partitions[:2], sensitive_features=frame["sex"].partitions[:2]
    )
    new = frame.partitions[2:]
    options = {"metric": "independence_gap", "kappa": 0.9}
    certificate = certify(model, new[NAMES], new["y"], sensitive_features=new["sex"], **options)
    in_memory = new.compute()
    groups = in_memory["sex"]
    expected = certify(model.estimator_, in_memory[NAMES], in_memory["y"], sensitive_features=groups, **options)
    assert certificate.upper_bound == pytest.approx(expected.upper_bound)
    assert certificate.noticeable_overlap is not None  # the rows of the fit are known
    other = dd.from_pandas(in_memory[::-1], npartitions=2, sort=False)
    with pytest.warns(FairnessWarning, match="X and y have the same row labels"):
        certify(model, other[NAMES], new["y"], sensitive_features=other["sex"], **options)
    with pytest.raises(ValueError, match="among those that PartialParityClassifier was fitted on"):
        certify(model, frame[NAMES], frame["y"], sensitive_features=frame["sex"], metric="independence_gap")
    report = fairness_report(
        new["y"], model.decision_function(new[NAMES]), sensitive_features=new["sex"], n_resamples=0, pos_label="yes"
    )
    assert len(report.to_html()) > 1000


def test_estimators_and_paths_take_collections_themselves(client, people):
    import dask.dataframe as dd

    frame = dd.from_pandas(people, npartitions=2)
    path = fairness_path(
        ESTIMATOR, dask_table(frame[NAMES]), people["y"], sensitive_features=people["sex"], kappas=[0.3, 0.2]
    )
    model = clone(ESTIMATOR).fit(frame[NAMES], frame["y"], sensitive_features=frame["sex"])
    expected = clone(ESTIMATOR).fit(people[NAMES], people["y"], sensitive_features=people["sex"])
    scores = model.decision_function(frame[NAMES])
    np.testing.assert_allclose(scores, expected.decision_function(people[NAMES]), rtol=1e-7, atol=1e-7)
    assert path.table["kappa"].tolist() == [0.3, 0.2]


@pytest.mark.parametrize("kind", ["ndarray", "DataFrame", "Delayed", "Series", "Index", "Scalar", "Array", "list"])
def test_other_kinds_of_rows_are_refused_before_they_are_computed(client, people, kind):
    import dask
    import dask.dataframe as dd

    frame, delayed = dd.from_pandas(people, npartitions=2), dask.delayed(people[NAMES])
    X = {
        "ndarray": people[NAMES].to_numpy(),
        "DataFrame": people[NAMES],
        "Delayed": delayed,
        "Series": frame["a"],
        "Index": frame.index,
        "Scalar": frame["a"].sum(),
        "Array": frame["a"].to_dask_array(lengths=True),
        "list": [delayed],
    }[kind]
    message = f"X has to be a Dask array or dataframe of two dimensions; got {kind}.*from_delayed"
    model = DaskEstimator(ESTIMATOR, client)
    with pytest.raises(ValueError, match=message):
        model.fit(X, people["y"], sensitive_features=people["sex"])
    model.estimator_ = clone(ESTIMATOR).set_params(kappa=None).fit(people[NAMES], people["y"])
    if kind not in ("ndarray", "DataFrame", "list"):
        with pytest.raises(ValueError, match=message):
            model.predict(X)
    with pytest.raises(ValueError, match="sensitive_features has to be a Dask collection in partitions"):
        model.predict(frame[NAMES], sensitive_features=delayed["sex"])


def test_what_cannot_be_fitted_is_said(client, people):
    import dask.array as da
    import dask.dataframe as dd
    from dask.distributed import Client

    X, y, sex = people[NAMES].to_numpy(), people["y"], people["sex"]
    array = da.from_array(X, chunks=(100, 4))
    with pytest.raises(TypeError, match=r"cv=.prefit."):
        DaskEstimator(FairHeadClassifier(LogisticRegression()), client).fit(array, y, sensitive_features=sex)
    narrow = da.from_array(X, chunks=(100, 4)).map_blocks(lambda block: block[:, :3], dtype=float)
    broken = da.concatenate([array, narrow])
    with pytest.raises(ValueError, match="X has 3 columns in partition 3 and 4 in partition 0"):
        DaskEstimator(ESTIMATOR, client).fit(broken, pd.concat([y, y]), sensitive_features=pd.concat([sex, sex]))
    with pytest.raises(ValueError, match="X has text in the columns 'y', 'sex'"):
        DaskEstimator(ESTIMATOR, client).fit(dd.from_pandas(people, npartitions=2), y, sensitive_features=sex)
    other = Client(client.cluster, set_as_default=False)
    other.close()
    with pytest.raises(RuntimeError, match="the Dask client is closed"):
        DaskEstimator(ESTIMATOR, other).fit(array, y, sensitive_features=sex)
