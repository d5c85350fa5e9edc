"""The refit rule and the Pareto front."""

import pickle

import numpy as np
import pandas as pd
import pytest

from fairconstrained.exceptions import FairnessWarning
from fairconstrained.model_selection import best_feasible, pareto_front


def results(accuracy, gap):
    return {"mean_test_accuracy": np.array(accuracy), "mean_test_gap": -np.array(gap)}


@pytest.mark.parametrize(
    ("accuracy", "gap", "best"),
    [
        ([0.9, 0.8, 0.7], [0.3, 0.1, 0.0], 1),  # the best one is not fair enough
        ([0.7, 0.8, 0.9], [0.0, 0.1, 0.05], 2),
        ([0.8, 0.8, 0.8], [0.1, 0.05, 0.05], 1),  # equals: the smaller gap, then the first
        ([np.nan, 0.6, 0.5], [0.0, 0.1, 0.0], 1),  # a missing score never wins
        ([0.9, 0.6, 0.5], [np.nan, 0.1, 0.0], 1),
        ([np.inf, 0.6, 0.5], [0.0, 0.1, 0.0], 1),
    ],
)
def test_best_feasible_takes_the_best_within_the_bound(accuracy, gap, best):
    chosen = best_feasible("gap", 0.1, "accuracy")(results(accuracy, gap))
    assert chosen == best
    assert isinstance(chosen, int)


def test_a_mean_gap_at_the_bound_is_feasible_despite_rounding():
    gap = np.mean([0.1, 0.1, 0.1])
    assert gap > 0.1
    assert best_feasible("gap", 0.1, "accuracy")(results([0.9, 0.5], [gap, 0.0])) == 0


@pytest.mark.parametrize(
    ("accuracy", "gap", "best"),
    [
        ([0.9, 0.8, 0.7], [0.3, 0.2, 0.25], 1),
        ([0.7, 0.9, 0.8], [0.2, 0.3, 0.2], 2),
        ([0.9, 0.8], [0.3, np.nan], 0),
    ],
)
def test_nothing_feasible_takes_the_least_gap_and_warns(accuracy, gap, best):
    with pytest.warns(FairnessWarning, match=r"'gap' of at most 0.1.*least gap, 0.[23]"):
        assert best_feasible("gap", 0.1, "accuracy")(results(accuracy, gap)) == best


def test_errors_of_best_feasible():
    rule = best_feasible("gap", 0.1, "accuracy")
    with pytest.raises(ValueError, match="No candidate has both"):
        rule(results([np.nan, 0.9], [0.1, np.nan]))
    with pytest.raises(ValueError, match="positive, so they are not negated gaps"):
        rule(results([0.9], [-0.2]))
    with pytest.raises(ValueError, match=r"no column 'mean_test_pSP'.*mean_test_gap"):
        best_feasible("pSP", 0.1, "accuracy")(results([0.9], [0.2]))
    for bound in (-0.1, np.nan):
        with pytest.raises(ValueError, match="bound must be"):
            best_feasible("gap", bound, "accuracy")


def test_best_feasible_pickles():
    rule = pickle.loads(pickle.dumps(best_feasible("gap", 0.1, "accuracy")))
    assert rule(results([0.9, 0.8], [0.3, 0.1])) == 1
    assert repr(rule) == "best_feasible('gap', 0.1, 'accuracy')"


def front_by_definition(performance, fairness):
    keep = []
    for i in range(len(performance)):
        dominated = any(
            performance[j] >= performance[i]
            and fairness[j] >= fairness[i]
            and (performance[j] > performance[i] or fairness[j] > fairness[i])
            for j in range(len(performance))
        )
        if not dominated and not np.isnan(performance[i]) and not np.isnan(fairness[i]):
            keep.append(i)
    return sorted(keep, key=lambda i: (fairness[i], i))


@pytest.mark.parametrize("seed", range(30))
def test_front_equals_the_definition(seed):
    rng = np.random.default_rng(seed)
    # few distinct values, so that ties of every kind occur
    performance, fairness = rng.integers(0, 6, size=(2, 25)).astype(float)
    performance[rng.random(25) < 0.1] = np.nan
    fairness[rng.random(25) < 0.1] = np.nan
    front = pareto_front({"p": performance, "f": fairness}, "p", "f")
    assert front.index.tolist() == front_by_definition(performance, fairness)
    assert front["f"].is_monotonic_increasing
    assert front["p"].is_monotonic_decreasing


def test_front_keeps_index_columns_and_equal_rows():
    table = pd.DataFrame(
        {"p": [0.9, 0.8, 0.9, 0.5], "f": [-0.3, -0.3, -0.3, -0.1], "kappa": [1, 2, 3, 4]}, index=list("wxyz")
    )
    front = pareto_front(table, "p", "f")
    assert front.index.tolist() == ["w", "y", "z"]
    assert front["kappa"].tolist() == [1, 3, 4]
    assert len(table) == 4


def test_front_of_nothing_is_empty():
    for column in ([], [np.nan, np.nan]):
        front = pareto_front({"p": column, "f": column}, "p", "f")
        assert front.empty
        assert list(front.columns) == ["p", "f"]


def test_front_of_infinite_scores():
    table = {"p": [-np.inf, 1.0], "f": [2.0, 1.0]}
    assert pareto_front(table, "p", "f").index.tolist() == [1, 0]


def test_front_defaults_and_missing_columns():
    table = {"mean_test_accuracy": [0.9, 0.8], "mean_test_pSP": [-0.1, -0.2], "params": [{}, {}]}
    assert pareto_front(table).index.tolist() == [0]
    gaps = {"performance": "mean_test_accuracy", "fairness": "mean_test_gap"}
    # two scores may be meant, or none: one that is positive is no negated gap
    table |= {"mean_test_gap": [-0.3, -0.1], "mean_test_f1": [0.7, 0.6]}
    assert pareto_front(table, **gaps).index.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"several, \['mean_test_pSP', 'mean_test_gap'\], may be meant"):
        pareto_front(table)
    with pytest.raises(ValueError, match=r"none of .*'mean_test_f1'.* is"):
        pareto_front({"mean_test_accuracy": [0.9], "mean_test_f1": [0.7]})
    with pytest.raises(ValueError, match=r"no column 'mean_test_Ind'.*mean_test_pSP"):
        pareto_front(table, fairness="mean_test_Ind")


@pytest.mark.slow
def test_front_of_a_million_rows_is_quick():
    rng = np.random.default_rng(0)
    fairness = rng.permutation(1_000_000).astype(float)
    front = pareto_front({"p": -fairness, "f": fairness}, "p", "f")  # every row survives
    assert len(front) == 1_000_000
