"""Resamples of several processes: the same bounds and intervals as those of one."""

from __future__ import annotations

import joblib
import numpy as np
import pytest

from fairconstrained import PartialParityClassifier, certify, fairness_path, fairness_report, gap_interval
from fairconstrained.certification.resampling import values_of
from fairconstrained.datasets import make_biased_classification

pytestmark = pytest.mark.slow


def test_values_come_in_the_order_of_the_resamples():
    drawn = [np.array([number]) for number in range(60)]
    found = list(values_of(lambda rows: int(rows[0]), iter(drawn), n_jobs=2))
    assert found == list(range(60)) == list(values_of(lambda rows: int(rows[0]), iter(drawn)))


def test_bounds_and_intervals_do_not_depend_on_the_number_of_processes():
    X, y, group = make_biased_classification(600, n_features=3, random_state=0)
    rows = {"sensitive_features": group}
    model = PartialParityClassifier(0.2, random_state=0).fit(X[:300], y[:300], sensitive_features=group[:300])
    scores = model.decision_function(X)
    options = {"metric": "statistical_parity_gap", "method": "bootstrap", "n_resamples": 200, "random_state": 0}
    one, two = (
        certify(model, X[300:], y[300:], sensitive_features=group[300:], n_jobs=jobs, **options) for jobs in (1, 2)
    )
    assert one.upper_bound == two.upper_bound
    one, two = (
        gap_interval("independence_gap", None, scores > 0, n_resamples=400, random_state=0, n_jobs=jobs, **rows)
        for jobs in (None, 2)
    )
    assert one == two
    one, two = (fairness_report(y, scores, n_jobs=jobs, **rows).gaps for jobs in (None, 2))
    assert one.equals(two)


@pytest.mark.filterwarnings("ignore")  # Dask leaves sockets to the garbage collector
def test_folds_and_resamples_run_on_a_dask_cluster():
    distributed = pytest.importorskip("dask.distributed")
    X, y, group = make_biased_classification(400, n_features=3, random_state=0)
    estimator = PartialParityClassifier(constraint="demographic_parity", random_state=0)
    options = {"sensitive_features": group, "kappas": [0.3, 0.2], "cv": 2}
    expected = fairness_path(estimator, X, y, **options)
    interval = {"sensitive_features": group, "n_resamples": 400, "random_state": 0}
    alone = gap_interval("independence_gap", None, X[:, 0] > 0, **interval)
    with (
        distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None),
        joblib.parallel_config(backend="dask"),
    ):
        path = fairness_path(estimator, X, y, n_jobs=2, **options)
        assert gap_interval("independence_gap", None, X[:, 0] > 0, n_jobs=2, **interval) == alone
    columns = ["kappa", "gap", "mean_test_gap"]
    np.testing.assert_allclose(path.table[columns], expected.table[columns], rtol=1e-9)
