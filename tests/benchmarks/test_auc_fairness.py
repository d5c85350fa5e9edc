"""The AUC fairness benchmark: what the methods are built of, and which of their models a front has."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("tqdm")

from benchmarks._common import Table
from benchmarks.auc_fairness import promises, tasks
from benchmarks.auc_fairness.figures import write_tables
from benchmarks.auc_fairness.fronts import choose, costs, means, same_splits
from benchmarks.auc_fairness.methods import (
    BOUNDS,
    CASES,
    GAPS,
    METHODS,
    MODELS,
    UNCONSTRAINED,
    IterateKeeper,
    Setting,
    scores_of,
)
from benchmarks.auc_fairness.tasks import COLUMNS, Task, all_tasks, run_task
from benchmarks.partial_fairness.cases import Case
from fairconstrained import AUCFairClassifier
from fairconstrained.constraints import QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import group_auc_gap

pytestmark = pytest.mark.slow


def _result(gap, validation, test, seed=0, method="ours", granularity=0.0, task="a"):
    shared = {"data": "a9a", "metric": "group_auc", "model": "linear", "method": method, "seed": seed, "task": task}
    values = {"train_gap": gap, "val_auc": validation, "test_auc": test, "test_gap": gap, "train_auc": validation}
    return shared | values | {"granularity": granularity, "parameter": 0.1, "seconds": 2.0}


def _chosen(rows):
    return choose(pd.DataFrame(rows)).set_index("bound").test_auc.to_dict()


def test_the_best_validation_auc_within_the_bound_is_chosen():
    rows = [_result(0.004, 0.6, 0.61), _result(0.02, 0.8, 0.71), _result(0.045, 0.7, 0.9), _result(0.3, 0.9, 0.81)]
    assert _chosen(rows) == {0.01: 0.61, 0.02: 0.71, 0.05: 0.71, 0.1: 0.71, UNCONSTRAINED: 0.81}


def test_a_gap_may_exceed_its_bound_by_what_one_row_counts():
    assert 0.01 in _chosen([_result(0.0101, 0.6, 0.6, granularity=0.0002)])
    assert 0.01 not in _chosen([_result(0.0101, 0.6, 0.6, granularity=0.00005)])


def test_constant_scores_are_no_model():
    assert _chosen([_result(0.0, 0.5, 0.5), _result(0.2, 0.6, 0.7)]) == {UNCONSTRAINED: 0.7}


def test_means_say_in_how_many_splits_there_was_a_model():
    rows = [_result(0.01, 0.6, 0.60), _result(0.01, 0.6, 0.70, seed=1), _result(0.05, 0.6, 0.8, seed=2)]
    table = means(choose(pd.DataFrame(rows))).set_index("bound")
    assert table.loc[0.01, ["test_auc", "seeds", "of_seeds"]].tolist() == pytest.approx([0.65, 2, 3])
    assert table.loc[0.05, ["test_auc", "seeds", "of_seeds"]].tolist() == pytest.approx([0.7, 3, 3])
    # Student's t of one degree of freedom: 12.706 deviations of the mean
    assert table.loc[0.01, "test_auc_ci"] == pytest.approx(12.7062 * 0.1 / 2**0.5 / 2**0.5, rel=1e-4)


def test_methods_are_compared_on_the_same_splits():
    rows = [_result(0.01, 0.6, 0.6, seed=seed) for seed in range(3)]
    rows += [_result(0.01, 0.6, 0.6, seed=seed, method="moments") for seed in range(3)]
    rows += [_result(0.01, 0.6, 0.6, method="level set")]
    # of seed 3 there is one data set of two
    rows += [_result(0.01, 0.6, 0.6, seed=seed) | {"data": "bank"} for seed in range(4)]
    parts = same_splits(pd.DataFrame(rows))
    found = {name: set(zip(part.method, part.seed, strict=True)) for name, part in parts.items()}
    many = {(method, seed) for method in ("ours", "moments") for seed in range(3)}
    assert found == {"fronts": many, "first_split": {("ours", 0), ("moments", 0), ("level set", 0)}}
    assert same_splits(pd.DataFrame(rows[:6]))["first_split"].empty


def test_a_fit_of_many_models_costs_its_seconds_once(tmp_path):
    rows = pd.DataFrame([_result(0.01, 0.6, 0.6), _result(0.02, 0.7, 0.7), _result(0.02, 0.7, 0.7, task="b")])
    assert costs(rows)[["splits", "fits", "seconds_a9a"]].to_numpy().tolist() == [[1, 2, 2.0]]
    write_tables(rows, tmp_path, "it")
    assert pd.read_csv(tmp_path / "it_fronts.csv", keep_default_na=False).bound.tolist()[-1] == "none"


def test_tasks_are_unique_and_begin_with_seed_0():
    found = list(all_tasks(5, list(MODELS), list(METHODS)))
    assert len({task.name for task in found}) == len(found)
    seeds = [task.seed for task in found]
    assert seeds == sorted(seeds)
    assert {task.method for task in found} == set(METHODS)


def test_every_front_of_ours_has_every_bound():
    found = {(t.data, t.metric, t.model, t.parameter) for t in all_tasks(1, list(MODELS), ["ours"])}
    assert found == {(d, g, m, bound) for d in CASES for g in GAPS for m in MODELS for bound in BOUNDS[m]}


@pytest.fixture
def small(monkeypatch):
    """A data set of 300 generated rows in place of COMPAS."""
    X, y, groups = make_biased_classification(n_samples=300, n_features=3, random_state=0)
    table = Table("small", X, np.where(y > 0, 1, -1), np.where(groups == groups.min(), "caucasian", "other"))
    monkeypatch.setitem(CASES, "compas", Case(lambda: table, (0.0, 1.0), (0.6, 0.2), {}))
    for cached in (tasks._prepared, tasks._unconstrained):
        cached.cache_clear()
    yield table
    for cached in (tasks._prepared, tasks._unconstrained):
        cached.cache_clear()


# on linear scores where a method is for these
@pytest.mark.parametrize(("method", "model"), [(name, min(METHODS[name].plans)) for name in METHODS])
def test_a_task_keeps_the_models_that_a_bound_can_lead_to(small, method, model):
    parameter, step = METHODS[method].plans[model].parameters[-1]
    rows = run_task(Task("compas", "group_auc", model, method, parameter, step, 0))
    assert rows
    gaps, validation = ([row[name] for row in rows] for name in ("train_gap", "val_auc"))
    assert gaps == sorted(gaps)
    assert validation == sorted(set(validation))
    assert all(set(row) == set(COLUMNS) for row in rows)


def test_the_tolerance_of_a_bound_is_that_of_the_estimator(small):
    row = run_task(Task("compas", "group_auc", "linear", "ours", 0.4, 0.0, 0))[0]
    rows = tasks._prepared("compas", 0, None)[2]["train"]
    fitted = AUCFairClassifier(0.4, constraint="group_auc")
    fitted.fit(small.X[rows], small.y[rows], sensitive_features=small.groups[rows])
    assert row["granularity"] == pytest.approx(fitted.granularity_["group_auc"])


def test_the_kept_iterates_are_those_of_the_solver(small):
    setting = Setting("compas", "group_auc", "linear", 0.05, 0.1, 0, lambda: None)
    y, groups = small.y, small.groups
    fitted = METHODS["proxy-Lagrangian"].build(setting).fit(small.X, y, sensitive_features=groups)
    assert isinstance(fitted, IterateKeeper)
    gaps = [group_auc_gap(y, scores(small.X, groups), sensitive_features=groups) for scores in scores_of(fitted)]
    assert gaps == pytest.approx([record["group_auc"] for record in fitted.history_])
    assert len(gaps) > 90


def test_the_score_shift_moves_the_group_of_the_paper(small):
    rows = run_task(Task("compas", "group_auc", "linear", "score shift", 0.05, 0.0, 0))
    assert len(rows) == 1
    shared = tasks._unconstrained("compas", "linear", 0, None, surrogate="quadratic", objective="auc")
    shift = METHODS["score shift"].build(Setting("compas", "group_auc", "linear", 0.05, 0.0, 0, lambda **_: shared))
    assert shift.fit(small.X, small.y, sensitive_features=small.groups).protected_ == "caucasian"


@pytest.mark.parametrize("kappa", [1.1, 1.4])
def test_the_factor_of_the_loss_adds_nothing_to_the_front(kappa):
    X, y, groups = make_biased_classification(n_samples=400, n_features=3, random_state=1)
    data = FairData.from_arrays(X, np.where(y > 0, 1.0, -1.0), groups.astype(int), (0, 1))
    bounds = [QuadraticAUCGap(kappa, c1=1.0), QuadraticAUCGap((kappa - 1) / 2, c1=0.5)]
    scores = np.random.default_rng(0).normal(size=(30, 400)) * np.linspace(0.1, 1.0, 30)[:, None]
    # what exceeds the bound, is the same but for the factor of two
    first, second = (np.array([bound.bind(data).exact(row) for row in scores]) for bound in bounds)
    assert first == pytest.approx(2 * second, abs=1e-12)
    assert (first <= 0).any()
    assert (first > 0).any()


def test_our_estimator_is_built_without_a_bound_for_no_constraint(small):
    fits = []

    def unconstrained(**params):
        fits.append(AUCFairClassifier(None, **params).fit(small.X, small.y, sensitive_features=small.groups))
        return fits[-1]

    setting = Setting("compas", "group_auc", "linear", UNCONSTRAINED, 0.0, 0, unconstrained)
    assert METHODS["ours (AUC)"].build(setting).status_ == fits[0].status_
    assert fits[0].objective == "auc"


def test_moments_are_compared_with_solvers_of_the_same_problem(monkeypatch):
    """A whole fit, with its checks and reports, is no measure of a solver."""
    X, y, groups = make_biased_classification(n_samples=300, n_features=4, random_state=0)
    table = Table("tiny", X, np.where(y == y.max(), 1, -1), np.asarray(groups).astype(str), np.ones(300, dtype=bool))
    monkeypatch.setattr(promises, "load_a9a", lambda: table)
    monkeypatch.setattr(promises, "AUCFairClassifier", None)
    found = promises.moments().set_index("method")
    names = [name for name in found if name.startswith("inter_group")]
    multipliers = found[names].astype(float).fillna(0.0)  # those that are not active have none
    np.testing.assert_allclose(multipliers.loc["moments"], multipliers.loc["SLSQP"], atol=1e-4)
    assert found.loc["moments", "objective"] == pytest.approx(found.loc["SLSQP", "objective"], rel=1e-6)
    assert (found["seconds"] > 0).all()
