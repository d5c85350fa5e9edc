"""Fits in several processes: the model of one process, however the rows are divided, or the same error everywhere."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from itertools import pairwise
from queue import Queue

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from fairconstrained import AUCFairClassifier, LossParityClassifier, PartialParityClassifier, RateParityClassifier
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.distributed.requests import LeaderParts, Outcome, _Request, lead, served
from fairconstrained.distributed.second_leader import FirstParts, SecondLeader
from fairconstrained.estimators.new_rows import TellsNewRows
from fairconstrained.features import divided, product
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import cross_fitted
from fairconstrained.solvers._linear_losses import LinearLosses
from fairconstrained.tables import Table, array_table
from tests.distributed.channels import DirectChannel, QueueChannel, fits_of

N = 300
ESTIMATORS = {
    "demographic parity": PartialParityClassifier(0.2, constraint="demographic_parity", random_state=0),
    "zero one": PartialParityClassifier(0.3, constraint="equalized_odds", objective="zero_one", random_state=0),
    "AUC": AUCFairClassifier(0.1, random_state=0),
    "four fifths": RateParityClassifier(0.5, constraint="demographic_parity_ratio", random_state=0),
    "network": LossParityClassifier(0.1, hidden_layer_sizes=(3,), max_epochs=2, random_state=0),
}


def rows():
    X, y, group = make_biased_classification(N, n_features=4, random_state=0)
    return X, y, np.where(group == 1, "women", "men")


def shards_of(X, y, group, ends):
    bounds = [0, *ends, N]
    return [(X[a:b], {"y": y[a:b], "sensitive_features": group[a:b]}) for a, b in pairwise(bounds)]


def assert_same(model, whole, X):
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-7)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-9)
    assert model.constraint_values_ == pytest.approx(whole.constraint_values_, abs=1e-9)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_process_returns_the_model_of_all_rows(name):
    X, y, group = rows()
    whole = clone(ESTIMATORS[name]).fit(X, y, sensitive_features=group)
    found = fits_of(ESTIMATORS[name], shards_of(X, y, group, [100, 170]))
    for model in found:
        assert_same(model, whole, X)
    assert not hasattr(ESTIMATORS[name], "status_")


@pytest.mark.usefixtures("in_parts")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, N), min_size=1, max_size=4).map(sorted), st.booleans(), st.booleans())
@example([0], False, False)
def test_rows_may_be_divided_in_any_way(ends, by_group, sparse):
    """Also with processes without rows, such as the first one, and groups of which one process has all rows."""
    X, y, group = rows()
    order = np.argsort(group, kind="stable") if by_group else np.arange(N)
    X, y, group = X[order], y[order], group[order]
    X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0)) if sparse else X
    estimator = ESTIMATORS["demographic parity"]
    whole = clone(estimator).fit(X, y, sensitive_features=group)
    for model in fits_of(estimator, shards_of(X, y, group, ends)):
        assert_same(model, whole, X)


def test_processes_may_read_their_rows_from_files():
    X, y, group = rows()
    shards = [(array_table(part, block_size=20), columns) for part, columns in shards_of(X, y, group, [140])]
    whole = clone(ESTIMATORS["demographic parity"]).fit(X, y, sensitive_features=group)
    assert_same(fits_of(ESTIMATORS["demographic parity"], shards)[1], whole, X)


def test_frames_keep_their_names_and_columns_of_groups_are_combined():
    X, y, group = rows()
    frame, groups = pd.DataFrame(X).add_prefix("x"), pd.DataFrame({"sex": group, "old": X[:, 0] > 0})
    shards = [
        (frame[a:b], {"y": y[a:b], "sensitive_features": groups[a:b], "sample_weight": np.ones(b - a)})
        for a, b in ((0, 200), (200, N))
    ]
    model = fits_of(PartialParityClassifier(0.5, constraint="demographic_parity", random_state=0), shards)[1]
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    assert len(model.groups_) == 4


def recorded_estimates(monkeypatch, change):
    """Threads in which estimates for new rows have been made; ``change`` is called with every one of them."""
    threads, estimated = [], TellsNewRows._estimated

    def recorded(self, *given, **options):
        threads.append(threading.current_thread())
        return change(estimated(self, *given, **options))

    recorded.__name__ = "_estimated"  # by which it is sent
    monkeypatch.setattr(TellsNewRows, "_estimated", recorded)
    return threads


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("size", [2, 3])
def test_the_second_process_leads_the_estimate_for_new_rows(monkeypatch, size):
    X, y, group = rows()
    estimator = clone(ESTIMATORS["demographic parity"]).set_params(new_row_folds=2)
    whole = clone(estimator).fit(X, y, sensitive_features=group)
    threads = recorded_estimates(monkeypatch, lambda estimated: estimated)
    # the first process tells that it waits
    monkeypatch.setattr("fairconstrained.distributed.second_leader._SHARE", 0.0)
    for model in fits_of(estimator, shards_of(X, y, group, [100, 180][: size - 1])):
        assert_same(model, whole, X)
        for name, gap in whole.new_row_gaps_.items():
            assert model.new_row_gaps_[name][:2] == pytest.approx(gap[:2], abs=1e-9)
    assert [thread.name for thread in threads] == [SecondLeader.THREAD]


@pytest.mark.usefixtures("in_parts")
def test_an_estimate_that_cannot_be_sent_is_made_by_the_first_process(monkeypatch):
    X, y, group = rows()
    threads = recorded_estimates(monkeypatch, lambda estimated: estimated)
    as_bound = PartialParityClassifier._problem
    monkeypatch.setattr(
        PartialParityClassifier, "_problem", lambda *given: with_attribute(as_bound(*given), lambda: "no name")
    )
    estimator = clone(ESTIMATORS["demographic parity"]).set_params(new_row_folds=2)
    whole = clone(estimator).fit(X, y, sensitive_features=group)
    for model in fits_of(estimator, shards_of(X, y, group, [100])):
        assert_same(model, whole, X)
    assert SecondLeader.THREAD not in [thread.name for thread in threads]


def with_attribute(problem, value):
    """The problem, which holds something that cannot be pickled."""
    object.__setattr__(problem, "unnamed", value)
    return problem


def failed(*given):
    raise ValueError("it has failed")


def test_an_estimate_that_fails_is_an_error_in_all_processes(monkeypatch):
    X, y, group = rows()
    threads = recorded_estimates(monkeypatch, failed)
    estimator = clone(ESTIMATORS["demographic parity"]).set_params(new_row_folds=2)
    for error in fits_of(estimator, shards_of(X, y, group, [100])):
        assert str(error) == "it has failed"
    assert [thread.name for thread in threads] == [SecondLeader.THREAD]


def test_the_estimate_ends_with_a_fit_that_fails(monkeypatch):
    X, y, group = rows()
    threads = recorded_estimates(monkeypatch, lambda estimated: estimated)
    monkeypatch.setattr(PartialParityClassifier, "_solve_all", failed)
    estimator = clone(ESTIMATORS["demographic parity"]).set_params(new_row_folds=2)
    for error in fits_of(estimator, shards_of(X, y, group, [100])):
        assert str(error) == "it has failed"
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.usefixtures("in_parts")
def test_an_evaluation_sends_no_number_for_every_row():
    """But for the first one, which sends what is kept with the rows as long as it is in use."""
    X, y, _ = rows()
    parts = FirstParts(None, DirectChannel(X[100:]), X[:100], [100, N - 100], X.dtype, None)
    data = FairData.from_arrays(Table(parts), np.where(y > 0, 1.0, -1.0), np.zeros(N, dtype=int), ("all",))
    in_memory = replace(data, X=X[data.order])
    model = LinearModel(4, alpha=0.1)
    problems = [Problem(Logistic().bind(each), (), each, model=model) for each in (data, in_memory)]
    losses, expected = map(LinearLosses, problems)
    channel, sizes = parts._channel, []
    for params in np.random.default_rng(0).normal(size=(3, 5)):
        value, gradient = losses.of_all(params)
        assert value == pytest.approx(expected.of_all(params)[0])
        np.testing.assert_allclose(gradient, expected.of_all(params)[1])
        sizes.append(channel.sent_bytes)
    assert parts.n_rounds == 3
    assert sizes[0] > 8 * 2 * (N - 100) > 2000 > sizes[1]
    assert len(channel.other._held) == 1 + 2  # the rows and two columns
    del losses
    product(data.X, np.ones(4))
    assert len(channel.other._held) == 1


@pytest.mark.usefixtures("in_parts")
def test_scores_without_a_fold_need_no_choice_of_rows():
    X, y, _ = rows()
    channel = DirectChannel(X[100:])
    table = Table(FirstParts(None, channel, X[:100], [100, N - 100], X.dtype, None))
    data = FairData.from_arrays(table, np.where(y > 0, 1.0, -1.0), np.zeros(N, dtype=int), ("all",))
    unseen, model, params = np.arange(0, N, 5), LinearModel(4), np.arange(5.0)
    rest = data.part(np.delete(np.arange(N), unseen))
    found = model.scores_of_fold(params, data, rest, unseen)
    assert list(channel.other._held) == [None]  # all rows
    for scores, part in zip(found, (rest, data.part(unseen)), strict=True):
        np.testing.assert_allclose(scores, model.training_scores(params, part))


@pytest.mark.parametrize(("lengths", "by_other"), [((200, 100), 3), ((0, N), 0), ((N, 0), 0)])
def test_calls_are_divided_among_the_processes_with_rows(lengths, by_other):
    X = rows()[0]
    channel = DirectChannel(X[lengths[0] :])
    table = Table(LeaderParts(channel, X[: lengths[0]], lengths, X.dtype, None))
    assert list(divided(table, (partial(np.square, k) for k in range(5)))) == [0, 1, 4, 9, 16]
    request = channel._request
    assert (0 if request is None else len(request.columns[0])) == by_other


class CountedCall:
    """A call that knows how often such calls were pickled."""

    n_pickles = 0

    def __reduce__(self):
        CountedCall.n_pickles += 1
        return CountedCall, ()

    def __call__(self):
        return 1


def test_calls_of_other_processes_are_pickled_once_and_those_of_the_leader_not_at_all(monkeypatch):
    monkeypatch.setattr(CountedCall, "n_pickles", 0)
    X = rows()[0]
    table = Table(LeaderParts(DirectChannel(X[200:]), X[:200], [200, 100], X.dtype, None))
    assert list(divided(table, [CountedCall() for _ in range(5)])) == [1] * 5
    assert CountedCall.n_pickles == 3


def test_calls_that_cannot_be_sent_are_made_by_the_leader():
    X = rows()[0]
    channel = DirectChannel(X[200:])
    table = Table(LeaderParts(channel, X[:200], [200, 100], X.dtype, None))
    assert list(divided(table, (lambda k=k: k**2 for k in range(5)))) == [0, 1, 4, 9, 16]
    assert channel._request is None


@pytest.mark.usefixtures("in_parts", "new_row_estimates")
@pytest.mark.parametrize("objective", ["logistic", "zero_one"])
def test_models_without_a_fold_are_found_by_all_processes(objective, monkeypatch):
    X, y, group = make_biased_classification(2_400, n_features=3, random_state=0)
    options = {"constraint": "demographic_parity", "solver": "cross_fitted", "random_state": 0}
    estimator = PartialParityClassifier(0.05, objective=objective, **options)
    whole, makers = clone(estimator).fit(X, y, sensitive_features=group), []
    found = cross_fitted._numbers_without

    def watched(*given, **named):
        makers.append(threading.current_thread().name)
        return found(*given, **named)

    watched.__module__, watched.__qualname__ = found.__module__, found.__qualname__
    monkeypatch.setattr(cross_fitted, "_numbers_without", watched)
    parts = np.split(np.arange(len(X)), [800, 1_600])
    for model in fits_of(estimator, [(X[own], {"y": y[own], "sensitive_features": group[own]}) for own in parts]):
        assert_same(model, whole, X)
        gaps = {name: gap.estimate for name, gap in whole.new_row_gaps_.items()}
        assert {name: gap.estimate for name, gap in model.new_row_gaps_.items()} == pytest.approx(gaps, abs=1e-9)
    assert sorted(map(makers.count, set(makers))) == [1, 2, 2]


def test_folds_stay_where_their_rows_are():
    """One process alone would compute with them otherwise."""
    X = np.ones((20, 2**19), dtype=np.int8)
    table = Table(LeaderParts(DirectChannel(X[10:]), X[:10], [10, 10], X.dtype, None))
    assert isinstance(table[np.arange(0, 20, 5)], Table)
    assert isinstance(table[np.arange(0, 20, 10)], np.ndarray)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda X, columns: (X[:, :3], columns), "X has 3 columns in process 1 and 4 in process 0"),
        (lambda X, columns: (pd.DataFrame(X).add_prefix("x"), columns), "columns of X in process 1 are .'x0'"),
        (lambda X, columns: (X, {"y": columns["y"]}), r"process 1 has \['y'\] and process 0 has"),
        (lambda X, columns: (X, {**columns, "y": columns["y"][1:]}), "in process 1: y has 199 rows and X has 200"),
        (lambda X, columns: (np.char.add(X.astype(str), "a"), columns), "in process 1: X has text in the columns 0, 1"),
        (
            lambda X, columns: (pd.DataFrame(X).add_prefix("x").assign(job="clerk"), columns),
            "in process 1: X has text in the column 'job'",
        ),
        (lambda X, columns: (np.where(X > 2, np.nan, X), columns), "NaN or infinity in"),
        (lambda X, columns: (X, {**columns, "sensitive_features": [None] * 200}), "in process 1: .*missing values"),
        (lambda X, columns: (X, {**columns, "sensitive_features": np.ones((200, 2))}), "columns of sensitive_features"),
        (lambda X, columns: (X, {**columns, "y": np.full(200, "1")}), "y has numbers in process 0 and text in"),
        (lambda X, columns: (X, {**columns, "sensitive_features": np.ones(200)}), "text in process 0 and numbers in"),
    ],
)
def test_invalid_rows_of_one_process_are_an_error_in_all(changed, message):
    X, y, group = rows()
    first, second = shards_of(X, y, group, [100])
    for error in fits_of(ESTIMATORS["demographic parity"], [first, changed(*second)]):
        assert isinstance(error, ValueError)
        with pytest.raises(ValueError, match=message):
            raise error


def test_tables_of_groups_may_be_sparse():
    X, y, group = rows()
    table = np.column_stack([group == "men", group == "women", X[:, 0] > 0])
    estimator = RateParityClassifier(0.2, new_row_folds=None, random_state=0)
    expected = clone(estimator).fit(X, y, sensitive_features=table)
    shards = [(X[k], {"y": y[k], "sensitive_features": sp.csr_array(table[k])}) for k in (slice(100), slice(100, N))]
    for model in fits_of(estimator, shards):
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-6)


def test_no_rows_at_all_are_refused():
    shard = np.empty((0, 4)), {"y": np.empty(0), "sensitive_features": []}
    for error in fits_of(ESTIMATORS["demographic parity"], [shard, shard]):
        assert "no process has any rows" in str(error)


def test_a_column_of_groups_may_have_a_name_in_one_process():
    X, y, group = rows()
    first, (X_second, second) = shards_of(X, y, group, [100])
    named = X_second, {**second, "sensitive_features": pd.Series(second["sensitive_features"], name="sex")}
    plain, model = (fits_of(ESTIMATORS["demographic parity"], [first, own])[0] for own in ((X_second, second), named))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)


def test_an_estimator_that_cannot_be_sent_is_an_error_before_the_fit():
    """The others would wait for the model until the timeout."""
    estimator = clone(ESTIMATORS["network"]).set_params(callbacks=[lambda record: pytest.fail("it is trained")])
    shards = shards_of(*rows(), [N // 2])
    for error in fits_of(estimator, shards):
        with pytest.raises(ValueError, match="the estimator cannot be sent to the other processes"):
            raise error


def test_an_error_that_cannot_be_sent_is_told_to_the_others():
    class Local(Exception):
        """Known to nobody else."""

    def fails():
        raise Local("broken")

    channel = DirectChannel(np.zeros((1, 1)))
    assert isinstance(lead(channel, fails).error, Local)
    assert "has ended with the error Local('broken'), which cannot be sent" in str(channel._request.error)


def test_a_process_that_cannot_compute_says_so_and_goes_on():
    """Its rows lack what a request asks for; the next one is answered, and then the fit ends."""
    channel = QueueChannel(rank=1, size=2, leader=0, queues={(0, a, b): Queue() for a, b in [(0, 1), (1, 0)]})
    leader = replace(channel, rank=0)
    for columns in (np.ones(3), np.ones(2)):
        leader.send(_Request(product, (columns,), None, None, {}, []), 1)
    leader.send(Outcome("the end", None), 1)
    assert served(channel, np.ones((4, 2))) == Outcome("the end", None)
    failed, answered = leader.receive(1), leader.receive(1)
    assert isinstance(failed.error, RuntimeError)
    assert "process 1 could not compute what it was asked for:\nTraceback" in str(failed.error)
    np.testing.assert_array_equal(answered.result, np.full(4, 2.0))
