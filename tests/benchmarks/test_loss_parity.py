"""The loss parity benchmark: gaps in torch, a tiny run of methods, and the tables made of it."""

import numpy as np
import pandas as pd
import pytest
import torch

pytest.importorskip("tqdm")
pytest.importorskip("matplotlib")

from benchmarks._common import Table, missing
from benchmarks._runner import read, run_all
from benchmarks.loss_parity import figures, tables, tasks
from benchmarks.loss_parity.constraints import CONSTRAINTS
from benchmarks.loss_parity.datasets import DATASETS, SPLITS, Dataset, Part, load_parts, split_seed
from benchmarks.loss_parity.methods import METHODS, Setting, published
from benchmarks.loss_parity.methods._ours import _steps
from benchmarks.loss_parity.methods._setting import record_times
from benchmarks.loss_parity.methods._torch import Rows, even_batches
from benchmarks.loss_parity.network import new_network, parameters_of, scores
from benchmarks.loss_parity.problems import problem_of
from benchmarks.loss_parity.promises import throughput
from fairconstrained import LossParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.estimators import new_rows
from fairconstrained.solvers import make_solver

pytestmark = pytest.mark.slow

TINY = "tiny"


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A data set of 300 rows beside the others, and a folder for the results."""
    X, y, groups = make_biased_classification(n_samples=300, n_features=4, random_state=0)
    table = Table(TINY, X, np.where(y == y.max(), 1, -1), np.asarray(groups).astype(str))
    monkeypatch.setitem(DATASETS, TINY, Dataset("tiny", lambda: table))
    monkeypatch.setattr(tasks, "RESULTS", tmp_path)
    load_parts.cache_clear()
    yield tmp_path
    load_parts.cache_clear()


def test_every_method_has_a_label_of_its_own():
    assert len({method.label for method in METHODS.values()}) == len(METHODS)


@pytest.mark.parametrize("name", ["demographic_parity", "equal_opportunity", "equalized_odds"])
def test_differences_in_torch_are_the_metric(name):
    rng = np.random.default_rng(0)
    y, groups = rng.choice([-1, 1], 60), rng.choice(["a", "b", "c"], 60)
    found = rng.normal(size=60)
    member = torch.from_numpy((groups[:, None] == np.unique(groups)).astype(float))
    losses = torch.from_numpy(np.logaddexp(0, -y * found))
    constraint = CONSTRAINTS[name]
    differences = constraint.differences(losses, torch.from_numpy(y), member)
    assert differences.max().item() == pytest.approx(constraint.gap(y, found, groups), abs=1e-12)


def test_a_group_without_positive_rows_is_not_compared():
    y, member = torch.tensor([1.0, 1.0, -1.0]), torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    losses = torch.tensor([1.0, 3.0, 7.0])
    assert CONSTRAINTS["equal_opportunity"].differences(losses, y, member).tolist() == [0.0, 0.0]
    assert CONSTRAINTS["demographic_parity"].differences(losses, y, member).tolist() == [-5.0, 5.0]


def test_parameters_are_those_of_the_network():
    network = new_network(3, seed=0)
    torch.nn.init.normal_(network[-1].weight)
    X = np.random.default_rng(0).normal(size=(5, 3))
    with torch.no_grad():
        expected = network(torch.from_numpy(X).float()).squeeze(1).numpy()
    np.testing.assert_allclose(scores(parameters_of(network), X), expected, atol=1e-5)


def test_even_batches_and_weights_make_up_all_rows():
    part = Part(np.arange(10.0)[:, None], np.ones(10), np.repeat(["a", "b"], [8, 2]))
    rows = Rows.of(part)
    batch = next(even_batches(rows, 4, seed=0))
    assert batch.member.sum(dim=0).tolist() == [2, 2]
    assert rows.group_weights.tolist() == pytest.approx([1.6, 0.4])


def test_signed_gaps_are_the_second_group_minus_the_first():
    y, groups = np.array([1, 1, -1, -1, 1, -1]), np.array(["a", "a", "a", "b", "b", "b"])
    found = np.array([0.3, -1.0, 0.2, 1.5, 0.1, -0.4])
    losses = np.logaddexp(0, -y * found)
    for name, expected in [
        ("demographic_parity", losses[3:].mean() - losses[:3].mean()),
        ("equal_opportunity", losses[4] - losses[:2].mean()),
        ("equalized_odds", losses[4] - losses[:2].mean() + losses[[3, 5]].mean() - losses[2]),
    ]:
        constraint = CONSTRAINTS[name]
        assert constraint.signed_gap(y, found, groups) == pytest.approx(expected, abs=1e-12)
        assert abs(expected) <= constraint.gap(y, found, groups) + 1e-12
    assert np.isnan(CONSTRAINTS["demographic_parity"].signed_gap(y, found, np.arange(6) % 3))


def test_a_fixed_split_is_the_same_for_every_seed(tiny):
    fixed, redrawn = ([load_parts(TINY, split_seed(split, seed)).test.X for seed in (0, 1)] for split in SPLITS)
    np.testing.assert_array_equal(*fixed)
    assert not np.array_equal(*redrawn)


def test_records_are_close_at_first_and_then_as_far_apart_as_ever():
    times = record_times(30.0)
    assert times[0] == pytest.approx(0.1)
    assert times[-1] == 30
    steps = np.diff(times)
    assert steps.max() <= 1 + 1e-9
    assert steps.min() > 0
    assert (times < 1).sum() >= 8


@pytest.mark.parametrize("name", ["ssl_alm", "stochastic_ghost", "stochastic_switching", "sgd"])
def test_the_steps_of_a_run_are_those_of_the_solver(tiny, name):
    """Bit for bit, in the second epoch as well."""
    problem = problem_of(load_parts(TINY, 0).train, tasks.KAPPA)
    solver, states, rng = make_solver(name, {"batch_size": 16, "max_epochs": 2}, problem), [], np.random.default_rng(3)
    solver.solve(problem, None, np.random.default_rng(3), lambda record: states.append(record["params"].copy()))
    method = solver.first_method(problem, None, rng)
    steps = _steps(solver, method, problem, rng)
    for state in states:
        for _ in range(solver.n_steps(problem)):
            next(steps)
        np.testing.assert_array_equal(method.z, state)


def test_steps_of_a_fit_are_timed_without_those_of_its_folds(tiny, monkeypatch):
    """Fits to folds train as well, and would count as overhead of a step."""
    monkeypatch.setitem(new_rows._FOLDS, "training", 2)
    fitted = []

    def recorded(*arguments, **options):
        fitted.append(LossParityClassifier(*arguments, **options))
        return fitted[-1]

    monkeypatch.setattr(throughput, "LossParityClassifier", recorded)
    assert throughput._fit_seconds(load_parts(TINY, 0).train, batch=16) > 0
    assert [model.new_row_gaps_ for model in fitted] == [{}, {}]


def test_lines_of_a_table_have_the_same_seeds():
    shared = {"dataset": "d", "split": "fixed", "constraint": "c"}
    runs = [("sgd", 0), ("sgd", 1), ("alm", 0), ("alm", 2), ("sgd", 2)]
    other = [shared | {"split": "redrawn", "method": "sgd", "seed": 7}]
    results = pd.DataFrame([*(shared | {"method": name, "seed": seed} for name, seed in runs), *other])
    kept = tables.same_seeds(results)
    assert sorted(zip(kept.method, kept.seed, strict=True)) == [
        ("alm", 0),
        ("alm", 2),
        ("sgd", 0),
        ("sgd", 2),
        ("sgd", 7),
    ]


def _milliseconds(setting: Setting) -> float:
    """A clock that moves on by a millisecond whenever it is read."""
    reads = vars(setting)["reads"] = vars(setting).get("reads", 0) + 1
    return reads / 1000


def test_a_tiny_run(tiny, monkeypatch):
    # How many records a run has must not depend on the machine's speed.
    monkeypatch.setattr(Setting, "elapsed", property(_milliseconds))
    chosen = ("ssl_alm", "sgd_fairret", "auto", "humancompatible_ssl_alm")
    names = [name for name in chosen if not missing(METHODS[name].requires)]
    todo = list(tasks.all_tasks(([TINY], ["fixed"], ["demographic_parity"], names), seeds=1, limits={TINY: 0.02}))
    path = tiny / "loss_parity.csv"
    run_all(todo, tasks.run_task, path, tasks.COLUMNS, jobs=1)
    results = read(path, tasks.COLUMNS)
    assert tuple(results.columns) == tasks.COLUMNS
    assert results.method.tolist() == names
    values = results[[f"{part}_{name}" for part in tasks.PARTS for name in ("Ind", "Sp", "Ina", "Wd", "gap", "loss")]]
    assert np.isfinite(values.to_numpy()).all()
    (auto,) = results[results.method == "auto"].to_dict("records")
    assert auto["status"] == "completed"
    assert auto["train_gap"] <= tasks.KAPPA + tasks.TOLERANCE
    assert np.isnan(auto["limit"])

    history = tasks.histories(results, "loss_parity")
    assert tuple(history.columns) == (
        "task",
        "dataset",
        "split",
        "constraint",
        "method",
        "seed",
        "limit",
        *tasks.HISTORY,
    )
    last = history.groupby("task").last()
    expected = results.set_index("task").loc[last.index]
    shown = ["train_loss", "test_gap", "test_signed"]
    np.testing.assert_allclose(last[shown], expected[shown], atol=1e-12)
    np.testing.assert_allclose(last.test_signed.abs(), last.test_gap, atol=1e-12)
    assert (history[history.method == "ssl_alm"].groupby("task").size() >= 3).all()  # within the first epoch
    predictions = tasks.probabilities(results, "loss_parity")
    assert set(predictions.columns) == {"group", "probability", *tasks.PROBABILITIES}
    assert predictions.groupby("method").size().eq(60).all()

    made = {"results": results, "histories": history, "probabilities": predictions}
    assert all(path.exists() for path in figures.draw_all(made, tiny, "loss_parity"))
    assert len(list(tiny.glob("*.png"))) == len(figures.FIGURES)


def test_tables_stand_beside_the_published_ones():
    shared = {"dataset": "acs_income_ok", "split": "fixed", "constraint": "demographic_parity", "method": "ssl_alm"}
    shared |= {"limit": 30.0, "late_within": 0.25}
    numbers = dict.fromkeys([*tables.VALUES, *tables.COSTS], 1.0)
    rows = [shared | numbers | {"seed": s, "status": "infeasible", "test_Ind": v} for s, v in enumerate((0.1, 0.3))]
    results = pd.DataFrame([*rows, rows[0] | {"limit": 2.0, "test_Ind": 9.0}])
    (line,) = tables.summary(tables.with_limit(results, {"acs_income_ok": 30.0})).to_dict("records")
    assert line["runs"] == 2
    assert line["within_kappa"] == 0
    assert line["test_Ind_mean"] == pytest.approx(0.2)
    assert line["test_Ind_sd"] == pytest.approx(np.sqrt(0.02))
    assert line["test_Ind_published"] == 0.066243
    assert line["test_Ind_sd_published"] == 0.011337
    assert line["train_gap_published"] == 0.026
    ours, paper = tables.for_reading(pd.DataFrame([line]), "test").to_dict("records")
    assert ours["Ind"] == "0.200 ± 0.141"
    assert ours["within kappa"] == "0 of 2"
    assert (ours["within kappa"], ours["late records within kappa"]) == ("0 of 2", "25%")
    assert paper["Ind"] == "0.066 ± 0.011"
    assert paper["signed"] == ""


def test_the_share_of_late_records_within_kappa():
    runs = pd.DataFrame({"task": ["a", "b"]})
    history = pd.DataFrame(
        [("a", s, 10.0, gap) for s, gap in ((1, 0.0), (5, 0.0), (6, 0.1), (7, 0.005), (9, 0.001), (10, 0.2))]
        + [("b", 3.0, np.nan, 0.0)],
        columns=["task", "seconds", "limit", "train_gap"],
    )
    late = tables.with_shares(runs, history).set_index("task").late_within
    assert late["a"] == 0.5
    assert np.isnan(late["b"])


def test_splits_are_compared_on_the_same_seeds():
    shared = {"dataset": "acs_income_ok", "constraint": "demographic_parity", "method": "alm", "status": "completed"}
    shared |= {"late_within": np.nan} | dict.fromkeys([*tables.VALUES, *tables.COSTS], 1.0)
    runs = [("fixed", 0, 0.1), ("fixed", 1, 0.2), ("redrawn", 1, 0.4), ("redrawn", 0, 0.8), ("fixed", 2, 9.0)]
    results = pd.DataFrame([shared | {"split": split, "seed": s, "test_Ind": v} for split, s, v in runs])
    fixed, redrawn, paper = tables.of_splits(results).to_dict("records")
    assert (fixed["split"], fixed["Ind"], fixed["within kappa"]) == ("fixed", "0.150 ± 0.071", "2 of 2")
    assert (redrawn["split"], redrawn["Ind"]) == ("redrawn", "0.600 ± 0.283")
    assert (paper["method"], paper["split"], paper["Ind"]) == ("ALM, published", "fixed", "0.058 ± 0.012")


def test_published_lines_may_lack_deviations():
    line = published("1 2+-0.5 3 4 5", "6 7 8 9 10+-0.25", train_gap=0.5)
    assert line["train_Sp"] == 2
    assert line["train_Sp_sd"] == 0.5
    assert line["test_Wd_sd"] == 0.25
    assert len([name for name in line if name.endswith("_sd")]) == 2
