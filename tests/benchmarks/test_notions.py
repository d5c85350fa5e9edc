"""The benchmark of every notion: numbers, standard errors, tables, and a small run."""

import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("tqdm")

from benchmarks.any_model.fronts import expected_share
from benchmarks.any_model.notions import Response
from benchmarks.notions import __main__ as command
from benchmarks.notions.catalogue import ENTRIES, Entry, Rows
from benchmarks.notions.peer import Peer
from benchmarks.notions.tables import compared, four_fifths, promise, seconds, write_tables
from benchmarks.notions.tasks import METHODS, PEERS, all_tasks, lacks
from fairconstrained.constraints.group_rates import NAMED_RATES
from fairconstrained.metrics import conditional_parity_gap, equal_opportunity_gap, group_rates, independence_gap
from fairconstrained.metrics import separation_gap as odds_gap

pytestmark = pytest.mark.slow

PLAIN = {
    "demographic_parity": independence_gap,
    "equal_opportunity": equal_opportunity_gap,
    "equalized_odds": odds_gap,
}


def _rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.where(rng.random(n) < 0.4, "a", "b")
    y = (rng.random(n) < np.where(groups == "a", 0.3, 0.6)).astype(int)
    strata = np.where(rng.random(n) < 0.5, "day", "night")
    return Rows(pd.DataFrame({"x": rng.normal(size=n)}), y, groups, strata), rng


def _scores(part, rng):
    return rng.normal(size=part.y.size) + part.y + 0.6 * (part.groups == "a")


def _of_package(name, part, scores):
    """The number that the package bounds; of a floor its complement."""
    given = {"sensitive_features": part.groups}
    if name in PLAIN:
        return PLAIN[name](part.y, (scores > 0).astype(int), **given)
    if name == "conditional_parity":
        return conditional_parity_gap(part.y, (scores > 0).astype(int), strata=part.strata, **given)
    if name in NAMED_RATES:
        return group_rates(part.y, scores, **given, **NAMED_RATES[name])
    constraint = ENTRIES[name].ask(0.3)["constraint"]
    value = group_rates(part.y, scores, **given, rate=constraint.rate, rule=constraint.rule)
    return 1 - value if constraint.rule == "floor" else value


@pytest.mark.parametrize("name", list(ENTRIES))
def test_the_numbers_are_those_that_the_package_bounds(name):
    part, rng = _rows()
    scores = _scores(part, rng) - 0.5
    measured = ENTRIES[name].measure(part, Response((scores > 0).astype(float), scores))
    assert measured.gap == pytest.approx(_of_package(name, part, scores), abs=1e-12)


@pytest.mark.parametrize("name", list(ENTRIES))
def test_standard_errors_are_those_of_repeated_samples(name):
    numbers, errors = [], []
    for seed in range(200):
        part, rng = _rows(1000, seed)
        scores = _scores(part, rng) - 0.5
        measured = ENTRIES[name].measure(part, Response((scores > 0).astype(float), scores))
        numbers.append(measured.gap)
        errors.append(measured.error)
    # the largest of several numbers, and one near zero, vary less than a single one
    assert np.mean(errors) / 2 < np.std(numbers) * 1.15
    assert np.std(numbers) < 1.3 * np.mean(errors)


def test_random_decisions_count_with_their_probability():
    part, _ = _rows()
    response = Response(np.where(part.groups == "a", 0.25, 0.75))
    assert ENTRIES["demographic_parity"].measure(part, response).gap == pytest.approx(0.5)
    assert ENTRIES["demographic_parity_ratio"].measure(part, response).gap == pytest.approx(2 / 3)
    wrong = [np.abs(part.y - response.decisions)[part.groups == group].mean() for group in "ab"]
    assert ENTRIES["error_ceiling"].measure(part, response).gap == pytest.approx(max(wrong))


def test_a_number_that_does_not_exist_is_nan():
    part, _ = _rows()
    nobody = Response(np.zeros(part.y.size))
    assert np.isnan(ENTRIES["predictive_parity"].measure(part, nobody).gap)
    assert np.isnan(ENTRIES["demographic_parity_ratio"].measure(part, nobody).gap)


def test_tasks_have_names_of_their_own():
    tasks = list(all_tasks(["adult", "bank"], list(ENTRIES), list(METHODS | PEERS), range(3)))
    assert len({task.name for task in tasks}) == len(tasks)
    assert all(task.notion in (METHODS | PEERS)[task.method].notions for task in tasks)
    assert all(task.seed < METHODS[task.method].splits for task in tasks if task.method in METHODS)
    assert {peer for method in METHODS.values() for peer in method.answers} == set(PEERS)


def _result(method, seed, gap, accuracy, against=np.nan, kappa=0.05, **more):
    row = {"data": "adult", "seed": seed, "notion": "demographic_parity", "method": method, "against": against}
    measured = {"train_gap": gap, "promised": gap, "test_gap": gap, "error": 0.01, "seconds": 1.0}
    measured |= {"floor": 0.05, "floor_of_several": 0.05}
    rest = {"status": "optimal", "bound": 0.05, "granularity": 0.001, "training_share": 0.7}
    return row | measured | rest | {"kappa": kappa, "accuracy": accuracy, "auc": np.nan, "log_loss": np.nan} | more


@pytest.fixture
def results():
    noise = {0: 0.0, 1: 0.001, 2: -0.001}
    rows = []
    for seed, extra in noise.items():
        rows += [
            _result("linear", seed, 0.05, 0.83 + extra),
            _result("linear", seed, 0.2, 0.86 + extra, kappa=np.inf),
            _result("exponentiated_gradient", seed, 0.08, 0.85 + extra, seconds=6.0),
            _result("linear", seed, 0.08, 0.84 + extra, "exponentiated_gradient", kappa=0.08, seconds=2.0),
        ]
    return pd.DataFrame(rows)


def _marked(results):
    return results.assign(is_infeasible=results.status == "infeasible")


def test_a_broken_promise_counts_as_silent_unless_the_status_says_so(results):
    assert promise(_marked(results)).silent.tolist() == [0]
    over = pd.DataFrame([_result("linear", 3, 0.07, 0.8), _result("linear", 4, 0.07, 0.8, status="infeasible")])
    line = promise(_marked(pd.concat([results, over]))).iloc[0]
    assert (line.fits, line.silent, line.infeasible) == (8, 1, 1)
    assert line.largest_excess == pytest.approx(0.02)


def test_another_package_is_compared_at_its_training_value(results):
    line = compared(_marked(results)).iloc[0]
    assert (line.splits, line.faster) == (3, 3.0)
    assert (line.difference, line.half_width) == pytest.approx((0.01, 0.0), abs=1e-12)
    assert line.dominates
    assert (line.accuracy, line.accuracy_ours) == pytest.approx((0.85, 0.84))


def test_seconds_are_medians_at_the_same_training_value(results):
    line = seconds(_marked(results)).iloc[0]
    assert (line.reduction, line.linear, line.linear_faster) == (6.0, 2.0, 3.0)
    assert np.isnan(line.estimate)


def test_the_four_fifths_rule_counts_splits(results):
    ratios = results.assign(notion="demographic_parity_ratio", bound=0.2, train_gap=0.19)
    ratios = ratios.assign(test_gap=np.where(ratios.seed == 0, 0.25, 0.15))
    table = four_fifths(_marked(ratios)).set_index("method")
    assert table.loc["linear", "share_at_least"] == pytest.approx(2 / 3)
    assert table.loc["linear", "least_training_ratio"] == pytest.approx(0.81)
    assert 0.75 < table.loc["linear", "expected"] < 0.85


def test_fewer_training_rows_lower_the_share_that_is_expected():
    table = pd.DataFrame({"kappa": [0.02], "error": 0.01, "floor": 0.021, "splits": 3})
    assert expected_share(table.assign(training_share=0.7)) == pytest.approx(expected_share(table))
    assert expected_share(table.assign(training_share=0.3)) < expected_share(table)


def test_a_summary_has_one_line_for_a_notion(results):
    table = write_tables(results)["summary"]
    assert table.notion.tolist() == ["demographic parity"]
    assert table[["points", "ahead", "behind", "silent"]].iloc[0].tolist() == [1, 1, 0, 0]


def test_what_is_not_installed_has_a_reason(monkeypatch):
    monkeypatch.setitem(PEERS, "new", Peer(lambda setting: None, "no_such_package", ()))
    assert lacks("new") == "no_such_package is not installed"
    monkeypatch.setitem(PEERS, "known", Peer(lambda setting: None, "numpy", ()))
    assert lacks("known") == lacks("linear") == ""


def test_bounds_are_there_for_all_data_sets():
    for entry in ENTRIES.values():
        assert isinstance(entry, Entry)
        assert all(0 < entry.bound_for(name) < 1 for name in (*command.DATA, "generated", "adult_whole"))


def test_a_quick_run_writes_tables_and_a_figure(monkeypatch, tmp_path):
    pytest.importorskip("lightgbm")
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks._common.RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["notions", "--quick"])
    command.main()
    raw = pd.read_csv(tmp_path / "notions_quick_raw.csv")
    assert not raw.status.str.startswith("error").any()
    assert set(command.QUICK_METHODS) - {"oxonfair"} <= set(raw.method)
    assert promise(_marked(raw)).silent.sum() == 0
    assert (tmp_path / "notions_quick.png").exists()
    command.main()  # everything is there: nothing is run again
    assert len(pd.read_csv(tmp_path / "notions_quick_raw.csv")) == len(raw)
