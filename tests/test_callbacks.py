"""Callbacks that watch, stop and save training, and the model that is left when it ends early."""

import csv
import itertools
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from fairconstrained import FairBoostingClassifier, LossParityClassifier
from fairconstrained.callbacks import Checkpoint, HistoryCSV, ProgressBar, StopTraining, TimeLimit, TrainingCallback
from fairconstrained.datasets import make_biased_classification
from fairconstrained.estimators._held_out import HeldOut, StopEarly
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.metrics import loss_parity_gap
from fairconstrained.problem import Start
from fairconstrained.solvers import loop

X, Y, GROUPS = make_biased_classification(300, 4, group_shift=(0.0, -1.0), separation=(2.0, 0.8), random_state=0)
KAPPA = 0.02


def classifier(*callbacks, **options):
    small = {"kappa": KAPPA, "hidden_layer_sizes": (8,), "batch_size": 64, "max_epochs": 6, "random_state": 0}
    return LossParityClassifier(callbacks=list(callbacks), **{**small, **options})


def loose(*callbacks, **options):
    """Without a promise to keep, so that nothing warns whatever the solver is."""
    return classifier(*callbacks, **{"solver": "ssl_alm", "kappa": 5.0, **options})


def fit(model):
    return model.fit(X, Y, sensitive_features=GROUPS)


def check_promise(model):
    gap = loss_parity_gap(Y, model.decision_function(X), sensitive_features=GROUPS)
    assert gap <= KAPPA + 1e-6
    assert model.constraint_values_ == {"loss_parity": pytest.approx(gap)}
    assert model.status_ == "completed"


def assert_same(one, other):
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert one.multipliers_ == other.multipliers_
    assert one.n_iter_ == other.n_iter_
    assert one.n_evaluations_ == other.n_evaluations_
    assert [record["objective"] for record in one.history_] == [record["objective"] for record in other.history_]


class Raise:
    """Raises something after so many epochs."""

    def __init__(self, error, after=3):
        self.error, self.after = error, after

    def __call__(self, record):
        if record["n_iter"] == self.after:
            raise self.error


class Crash(Exception):
    """Crash of the machine, for instance."""


# --- who is called, and with what


def test_any_function_gets_the_records():
    records = []
    model = fit(classifier(lambda record: records.append(dict(record)), max_epochs=4, alpha=0.0))
    assert [record["n_iter"] for record in records] == [1, 2, 3, 4]
    for record, kept in zip(records, model.history_[:4], strict=True):
        assert {name: record[name] for name in kept} == {**kept, "multipliers": record["multipliers"]}
        assert kept.keys() >= {"seconds", "n_evaluations", "objective", "loss_parity", "multipliers"}
        scores = model._fitted.model.scores(record["params"], X)
        gap = loss_parity_gap(Y, scores, sensitive_features=GROUPS)
        assert record["loss_parity"] == pytest.approx(gap)
        loss = np.logaddexp(0, (1 - 2 * Y) * scores).mean()
        assert record["objective"] == pytest.approx(loss)
    assert np.all(np.diff([record["seconds"] for record in records]) > 0)
    assert not np.array_equal(records[0]["params"], records[-1]["params"])


def test_to_watch_changes_nothing():
    assert_same(fit(classifier(len)), fit(classifier()))


@pytest.mark.parametrize(
    ("callback", "message"),
    [
        (TimeLimit, r"got the class TimeLimit. Pass an object of it, TimeLimit\(...\)"),
        (Checkpoint, r"got the class Checkpoint"),
    ],
)
def test_what_is_no_callback_is_told(callback, message):
    with pytest.raises(ValueError, match=message):
        fit(loose(callback))


@pytest.mark.parametrize("solver", ["auto", "ssl_alm", "switching_subgradient"])
def test_what_a_callback_writes_into_its_record_changes_nothing(solver):
    def write(record):
        record["params"][:] = 0.0
        record["objective"] = np.nan

    options = {"solver": solver, "kappa": KAPPA if solver == "auto" else 5.0}
    assert_same(fit(classifier(write, **options)), fit(classifier(**options)))


class Order(TrainingCallback):
    """Tells when it is called."""

    def __init__(self, log, name, error=None):
        self.log, self.name, self.error = log, name, error

    def __deepcopy__(self, memo):
        return self

    def begin(self):
        self.log.append(("begin", self.name))

    def __call__(self, record):
        self.log.append((record["n_iter"], self.name))
        if self.error:
            raise self.error

    def end(self):
        self.log.append(("end", self.name))


def test_the_order_of_calls():
    log = []
    fit(loose(Order(log, "a"), Order(log, "b"), max_epochs=2))
    calls = [(epoch, name) for epoch in (1, 2) for name in "ab"]
    assert log == [("begin", "a"), ("begin", "b"), *calls, ("end", "b"), ("end", "a")]


@pytest.mark.parametrize(
    "error", [Crash(), KeyboardInterrupt(), StopTraining()], ids=lambda error: type(error).__name__
)
def test_the_end_comes_whatever_happens(error):
    log = []
    model = loose(Order(log, "a", error), Order(log, "b"))
    if isinstance(error, StopTraining):
        fit(model)
    else:
        with pytest.raises(type(error)):
            fit(model)
        assert not hasattr(model, "module_")
    assert log == [("begin", "a"), ("begin", "b"), (1, "a"), ("end", "b"), ("end", "a")]


def test_who_has_not_begun_does_not_end():
    class Broken(ProgressBar):
        def begin(self):
            raise Crash

    log = []
    with pytest.raises(Crash):  # and not that there is no bar to be closed
        fit(loose(Order(log, "a"), Broken()))
    assert log == [("begin", "a"), ("end", "a")]


# --- the end of training


def test_stop_training():
    model = fit(classifier(Raise(StopTraining()), max_epochs=50))
    check_promise(model)
    assert model.n_iter_ == 3
    whole = fit(loose(max_epochs=3))
    assert_same(fit(loose(Raise(StopTraining()), max_epochs=50)), whole)


@pytest.mark.parametrize("solver", ["ssl_alm", "stochastic_switching", "adam"])
def test_stop_training_with_earlier_parameters(solver):
    params = []

    def first_of_three(record):
        params.append(record["params"].copy())
        if len(params) == 3:
            raise StopTraining(params[0])

    model = fit(loose(first_of_three, solver=solver))
    np.testing.assert_array_equal(model._fitted.start.model_state, params[0])
    assert not np.array_equal(params[0], params[2])
    assert model.n_iter_ == 3


@pytest.mark.parametrize("solver", ["auto", "ssl_alm", "switching_subgradient", "augmented_lagrangian"])
def test_parameters_that_are_none_of_a_record_are_refused(solver):
    with pytest.raises(ValueError, match=r"parameters of shape \(3,\), .* the shape \(49,\); give it the params"):
        fit(classifier(Raise(StopTraining(np.zeros(3)), after=1), solver=solver))


def test_records_without_parameters_leave_nothing_to_choose():
    stop = Raise(StopTraining(np.zeros(3)), after=1)
    with pytest.raises(ValueError, match="the records of this solver have none; raise it without"):
        fit(FairBoostingClassifier(0.5, n_estimators=2, callbacks=[stop]))


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["callback", "max_time"])
def test_a_limit_of_time(limit):
    by_callback = limit == "callback"
    callbacks = [TimeLimit(0.0)] if by_callback else []
    model = fit(classifier(*callbacks, max_epochs=1000, max_time=None if by_callback else 1e-9))
    check_promise(model)
    assert model.n_iter_ == 1
    more = fit(classifier(TimeLimit(1e6), max_epochs=5))
    assert more.n_iter_ == 5


def test_a_limit_of_time_is_counted_from_the_beginning_of_every_fit():
    callback = TimeLimit(1e6)
    callback.begin()
    callback._end = 0.0  # long ago
    assert fit(loose(callback)).n_iter_ == 6


class Stop(TrainingCallback):
    """Ends training at its record of a number, and counts what it is told."""

    def __init__(self, after, error=StopTraining):
        self.after, self.error, self.n_begun, self.n_records = after, error, 0, 0

    def begin(self):
        self.n_begun += 1

    def __call__(self, record):
        self.n_records += 1
        if self.n_records == self.after:
            raise self.error


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of what came of the stop
@pytest.mark.parametrize("error", [StopTraining, KeyboardInterrupt])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_fit_that_was_stopped_beyond_its_stricter_bounds_does_not_begin_again(after, error):
    stop, options = Stop(after, error), {"solver_options": {"keep_on_interrupt": True}, "new_row_folds": 2}
    model = fit(classifier(stop, solver="augmented_lagrangian", hidden_layer_sizes=(), **options))
    assert (stop.n_begun, stop.n_records) == (1, after)
    assert len(model.history_) == after
    assert model.status_ == "max_iter"
    assert model.constraint_values_["loss_parity"] <= KAPPA + 1e-6
    # the whole fit makes up for the optimism besides, at the price of a larger objective
    whole = fit(classifier(solver="augmented_lagrangian", hidden_layer_sizes=(), new_row_folds=2))
    assert model.objective_ < whole.objective_
    assert whole.constraint_values_["loss_parity"] < KAPPA


@pytest.mark.parametrize(
    ("callbacks", "max_time", "advice"),
    [
        ([Stop(7)], None, "was stopped by a callback before its objective settled. Let it train for longer."),
        ([], 1e-9, "or raise max_time."),
    ],
    ids=["callback", "time"],
)
def test_the_advice_after_a_stop_is_about_what_stopped_the_fit(callbacks, max_time, advice):
    model = classifier(*callbacks, solver="augmented_lagrangian", hidden_layer_sizes=(), max_time=max_time)
    with pytest.warns(ConvergenceWarning) as caught:
        fit(model)
    (warning,) = caught
    assert str(warning.message).endswith(advice)
    assert "max_epochs" not in str(warning.message)


def test_a_limit_of_time_holds_for_the_fits_of_folds(monkeypatch):
    n_iter, run = [], loop.Loop.run

    def counted(self):
        result = run(self)
        n_iter.append(result.n_iter)
        return result

    monkeypatch.setattr(loop.Loop, "run", counted)
    model = loose(TimeLimit(0.0), len, solver="adam", kappa=0.5, max_epochs=50, new_row_folds=3)
    assert fit(model).n_iter_ == 1
    assert n_iter == [1] * 4  # that of all rows, and one for each fold


def test_a_warm_start_has_all_of_its_own_time(monkeypatch):
    """By a clock that goes on by a second whenever it is read: once in every step, and for every record."""
    ticks = itertools.count()
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    model = loose(solver="adam", warm_start=True, max_time=9.5, max_epochs=100)
    n_epochs = [fit(model).n_iter_ for _ in range(3)]
    assert n_epochs == [3, 6, 9]  # two epochs, and the first step of another one
    seconds = [record["seconds"] for record in model.history_]
    assert len(seconds) == 9
    assert seconds == sorted(seconds)


def test_solvers_that_take_all_rows_end_too():
    model = fit(classifier(TimeLimit(0.0), solver="switching_subgradient", kappa=1.0, hidden_layer_sizes=(2,)))
    assert len(model.history_) == 1


# --- interruptions


@pytest.mark.parametrize("solver", ["auto", "ssl_alm"])
def test_an_interruption_leaves_the_estimator_as_it_was(solver):
    model = classifier(Raise(KeyboardInterrupt()), solver=solver)
    with pytest.raises(KeyboardInterrupt):
        fit(model)
    assert vars(model).keys() == vars(classifier()).keys()
    fitted = fit(loose())
    before = dict(vars(fitted))
    with pytest.raises(KeyboardInterrupt):
        fit(fitted.set_params(callbacks=[Raise(KeyboardInterrupt())]))
    assert vars(fitted).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(fitted).items() if name != "callbacks")


def test_an_interruption_that_keeps_the_best_model():
    records = []

    def watch(record):
        records.append(record)
        if len(records) == 4:
            raise KeyboardInterrupt

    model = loose(watch, solver="adam", learning_rate=0.05, kappa=0.1, solver_options={"keep_on_interrupt": True})
    with pytest.warns(
        ConvergenceWarning, match=r"stopped in step 4 of epoch 4: it was interrupted, and the best model"
    ):
        fit(model)
    assert model.n_iter_ == 4
    fair = [record for record in records if record["loss_parity"] <= 0.1]
    assert 0 < len(fair) < 4
    best = min(fair, key=lambda record: record["objective"])
    np.testing.assert_array_equal(model._fitted.start.model_state, best["params"])
    assert model.constraint_values_["loss_parity"] == best["loss_parity"]
    assert model.status_ == "completed"


def test_the_promise_survives_an_interruption():
    model = classifier(Raise(KeyboardInterrupt()), solver_options={"keep_on_interrupt": True})
    with pytest.warns(ConvergenceWarning, match="in step 4 of epoch 3: it was interrupted"):
        fit(model)
    check_promise(model)
    assert model.n_iter_ == 3


# --- history


def test_the_history_in_a_file(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("of another fit")
    model = fit(loose(HistoryCSV(path)))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == model.n_iter_ == 6
    for row, record in zip(rows, model.history_, strict=True):
        assert {name: float(value) for name, value in row.items()} == {
            name: value for name, value in record.items() if name != "multipliers"
        }
    assert list(rows[0])[:4] == ["n_iter", "seconds", "n_evaluations", "objective"]


def test_the_file_is_written_while_training_goes_on(tmp_path):
    path = tmp_path / "history.csv"
    with pytest.raises(Crash):
        fit(classifier(HistoryCSV(str(path)), Raise(Crash())))
    assert len(path.read_text().splitlines()) == 4  # names and three epochs


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of the few iterations
@pytest.mark.parametrize("solver", ["auto", "augmented_lagrangian"])
def test_the_numbers_of_a_history_go_on_from_one_run_to_the_next(solver):
    """The epochs and the last layer of a network, or a run that has missed stricter bounds and one under its own."""
    model = fit(classifier(solver=solver, hidden_layer_sizes=(), new_row_folds=2, max_epochs=2))
    numbers = [record["n_iter"] for record in model.history_]
    assert (np.diff(numbers) <= 0).any()  # there are two runs
    for name in ("seconds", "n_evaluations"):
        assert np.all(np.diff([record[name] for record in model.history_]) >= 0)
    assert model.history_[-1]["n_evaluations"] <= model.n_evaluations_


# --- the bar


def test_a_progress_bar(capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")  # a bar is as wide as the terminal
    fit(loose(verbose=1))
    out, err = capfd.readouterr()
    assert out.startswith("LossParityClassifier: completed after ")
    assert "6/6" in err
    assert re.search(r"objective 0\.\d+, loss_parity 0\.\d+ \(kappa 5\)", err)
    assert "violation" not in err
    fit(loose(verbose=0))
    assert capfd.readouterr() == ("", "")


def test_the_bar_knows_how_many_epochs_auto_takes(capfd):
    fit(classifier(Raise(StopTraining(), after=1), verbose=1, max_epochs=None, batch_size=300))
    assert "/500 " in capfd.readouterr().err  # steps, of which every epoch is one


def test_a_narrow_terminal_shows_the_objective_and_a_gap_beside_its_bound():
    bar = ProgressBar(50, kappas={"demographic_parity": 0.05}, unit="iteration")
    bar.begin()
    bar._bar.ncols = 80
    bar({"n_iter": 7, "seconds": 1.0, "objective": 0.45678, "demographic_parity": 0.053219})
    text = str(bar._bar)
    bar.end()
    assert len(text) <= 80
    assert text.startswith("objective 0.4568, demographic_parity 0.05322 (kappa 0.05); 7/50 iterations")


def test_the_bar_is_closed_when_training_fails():
    bar = ProgressBar(total=6)
    closed = []

    class Watched(ProgressBar):
        def __deepcopy__(self, memo):
            return self

        def end(self):
            super().end()
            closed.append(self._bar.disable)  # what tqdm sets in the end

    with pytest.raises(Crash):
        fit(loose(Watched(), Raise(Crash())))
    assert closed == [True]
    assert bar.total == 6


def test_lines_in_place_of_a_bar(capfd):
    fit(loose(verbose=2))
    out, err = capfd.readouterr()
    assert err == ""
    *records, summary, bound, accuracy = out.splitlines()
    assert [line.split()[:2] for line in records] == [["n_iter", str(epoch)] for epoch in range(1, 7)]
    assert summary.startswith("LossParityClassifier: completed after ")
    assert re.fullmatch(r"  loss_parity: 0\.\d+ on the training rows; kappa is 5", bound)
    assert accuracy.startswith("  accuracy: 0.")


# --- checkpoints


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("solver", ["auto", "ssl_alm", "stochastic_switching", "stochastic_ghost"])
def test_a_fit_that_was_cut_off_ends_as_if_it_had_not_been(tmp_path, solver, every):
    path = tmp_path / "checkpoint"
    options = {"solver": solver, "kappa": KAPPA if solver == "auto" else 5.0}
    whole = fit(classifier(**options))
    with pytest.raises(Crash):
        fit(classifier(Checkpoint(path, every=every), Raise(Crash()), **options))
    epochs = []
    model = classifier(Checkpoint(path, every=every), lambda record: epochs.append(record["n_iter"]), **options)
    fit(model)
    assert epochs == [4, 5, 6] if every == 1 else [3, 4, 5, 6]
    assert_same(model, whole)
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]  # nothing else is left
    if solver == "auto":
        check_promise(model)


def test_a_finished_fit_is_not_repeated_but_goes_on(tmp_path):
    path = tmp_path / "checkpoint"
    whole = fit(loose(Checkpoint(path)))
    records = []
    again = fit(loose(Checkpoint(path), records.append))
    assert_same(again, whole)
    assert records == []
    more = fit(loose(Checkpoint(path), max_epochs=8))
    assert_same(more, fit(loose(max_epochs=8)))


def test_a_checkpoint_may_be_ignored(tmp_path):
    path = tmp_path / "checkpoint"
    fit(loose(Checkpoint(path), random_state=1))
    first = path.read_bytes()
    model = fit(loose(Checkpoint(path, resume=False)))
    assert_same(model, fit(loose()))
    assert path.read_bytes() != first


def test_checkpoints_of_others(tmp_path):
    path = tmp_path / "checkpoint"
    fit(loose(Checkpoint(path)))
    model = loose(Checkpoint(path), hidden_layer_sizes=(5,))
    with pytest.raises(ValueError, match=r"from 49 parameters, but the model has 31. .* pass resume=False"):
        fit(model)
    assert not hasattr(model, "module_")
    other = fit(loose(Checkpoint(path), solver="adam"))  # of the same network: from its parameters
    assert other.n_iter_ == 6
    assert other.objective_ < fit(loose(solver="adam")).objective_


def test_checkpoints_of_other_kinds_of_models_and_of_other_data(tmp_path):
    of_network, of_trees = tmp_path / "network", tmp_path / "trees"
    trees = FairBoostingClassifier(0.5, n_estimators=2, callbacks=[Checkpoint(of_trees)])
    fit(trees)
    fit(loose(Checkpoint(of_network)))
    with pytest.raises(ValueError, match=r"of type ndarray, which is no state of this kind of model. .*resume=False"):
        fit(trees.set_params(callbacks=[Checkpoint(of_network)]))
    with pytest.raises(ValueError, match="of type Ensemble, which is no state of this kind of model"):
        fit(loose(Checkpoint(of_trees)))
    all_rows = loose(Checkpoint(tmp_path / "all"), solver="augmented_lagrangian")
    fit(all_rows)
    with pytest.raises(ValueError, match="reached with other data"):
        all_rows.fit(X + 1, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a checkpoint that this version can read"),
        (b"n_iter,objective\n1,0.5\n", "is not a checkpoint that this version can read"),
        (pickle.dumps(Start(np.zeros(3)))[:-9], "is not a checkpoint that this version can read"),
        (pickle.dumps([1, 2]), r"is not a checkpoint: it holds an object of <class 'list'>"),
        (pickle.dumps(Start(np.zeros(3))), "from 3 parameters, but the model has 49"),
    ],
    ids=["empty", "text", "cut off", "another object", "another model"],
)
def test_files_that_are_no_checkpoint(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        fit(loose(Checkpoint(path)))
    assert path.read_bytes() == content


@pytest.mark.parametrize(("path", "message"), [("none/file", "there is no folder .*none"), (".", "is a folder; pass")])
def test_a_place_where_no_checkpoint_can_be_is_told_before_the_training(tmp_path, path, message):
    n_iter = []
    model = loose(lambda record: n_iter.append(record["n_iter"]), Checkpoint(tmp_path / path))
    with pytest.raises(ValueError, match=message):
        fit(model)
    assert n_iter == []


@pytest.mark.parametrize("every", [0, -1])
def test_checkpoints_at_least_every_epoch(every):
    with pytest.raises(ValueError, match=f"every must be at least 1, got {every}"):
        Checkpoint("file", every=every)


def test_callbacks_survive_clone(tmp_path):
    model = classifier(Checkpoint(tmp_path / "file", every=3), TimeLimit(5.0), HistoryCSV(tmp_path / "history"))
    copied = clone(model)
    assert [vars(callback) for callback in copied.callbacks] == [vars(callback) for callback in model.callbacks]
    assert [type(callback) for callback in copied.callbacks] == [Checkpoint, TimeLimit, HistoryCSV]


# --- early stopping


def noise():
    """Labels that have nothing to do with the features: all that is learnt is noise."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 5)), rng.integers(0, 2, 200), rng.integers(0, 2, 200)


@pytest.mark.parametrize(("solver", "rate"), [("adam", 0.05), ("stochastic_switching", 2.0)])
def test_early_stopping_returns_what_is_best_on_the_held_out_rows(solver, rate):
    X, y, groups = noise()
    params, options = [], {"solver": solver, "learning_rate": rate, "max_epochs": 200, "kappa": 5.0}
    model = classifier(
        lambda record: params.append(record["params"].copy()), early_stopping=True, validation_fraction=0.3, **options
    )
    model.fit(X, y, sensitive_features=groups)
    assert 10 < model.n_iter_ < 200
    assert len(params) == model.n_iter_
    seed = np.random.RandomState(0).randint(2**31)
    held = HeldOut.of(X, y, groups, np.ones(200), 0.3, seed)
    assert held.rows.size == 60
    network = model._fitted.model
    losses = [np.logaddexp(0, (1 - 2 * held.y) * network.scores(z, held.X)).mean() for z in params]
    best = int(np.argmin(losses))
    assert best == model.n_iter_ - 11  # ten epochs without an improvement, and the end
    np.testing.assert_array_equal(model._fitted.start.model_state, params[best])
    rest = np.setdiff1d(np.arange(200), held.rows)
    gap = loss_parity_gap(y[rest], model.decision_function(X[rest]), sensitive_features=groups[rest])
    assert model.constraint_values_ == {"loss_parity": pytest.approx(gap)}  # of the rows that it was trained on


def test_early_stopping_and_the_promise():
    X, y, groups = noise()
    model = classifier(early_stopping=True, learning_rate=0.05, max_epochs=200).fit(X, y, sensitive_features=groups)
    assert model.n_iter_ < 200
    assert model.constraint_values_["loss_parity"] <= KAPPA + 1e-6
    weights = np.random.default_rng(1).uniform(0.8, 1.25, 200)
    weighted = clone(model).fit(X, y, sensitive_features=groups, sample_weight=weights)
    assert weighted.constraint_values_["loss_parity"] <= KAPPA + 1e-6
    assert not np.array_equal(weighted.decision_function(X), model.decision_function(X))


def test_nothing_is_stopped_while_the_loss_improves():
    model = fit(loose(early_stopping=True, solver="adam", max_epochs=15))
    assert model.n_iter_ == 15


def test_rows_of_every_group_and_class_are_set_aside():
    groups = GROUPS.copy()
    groups[np.flatnonzero(Y == 1)[0]] = 2
    groups[np.flatnonzero(Y == 0)[:5]] = 2
    with pytest.raises(ValueError, match=r"two of every group and class. .*early_stopping=False"):
        classifier(early_stopping=True).fit(X, Y, sensitive_features=groups)


def test_no_weight_at_all_and_early_stopping():
    with pytest.raises(ValueError, match="zero"):
        classifier(early_stopping=True).fit(X, Y, sensitive_features=GROUPS, sample_weight=np.zeros(300))


def test_patience():
    losses = iter([3.0, 2.0, 2.5, 1.0, 1.0, 1.5, 9.0])
    stop = StopEarly(lambda params: next(losses), patience=3)
    for number in range(6):
        stop({"params": np.array([number])})
    with pytest.raises(StopTraining) as raised:
        stop({"params": np.array([6])})
    assert raised.value.params.tolist() == [3]  # of two that are alike, the first
