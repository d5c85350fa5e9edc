"""``solver_options="paper"``: the options and the problem of the papers' experiments."""

import warnings

import numpy as np
import pytest

from fairconstrained import (
    AUCFairClassifier,
    ConvergenceWarning,
    FairRanker,
    LossParityClassifier,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    PairwiseParityClassifier,
    PartialParityClassifier,
    RateParityClassifier,
)
from fairconstrained.datasets import make_biased_classification

ALL = [
    (PartialParityClassifier, "idca"),
    (PartialParityClassifier, "switching_subgradient"),
    (PartialParityClassifier, "stochastic_idca"),
    (AUCFairClassifier, "level_set"),
    (AUCFairClassifier, "iqrc"),
    (LossParityClassifier, "stochastic_ghost"),
    (LossParityClassifier, "ssl_alm"),
    (LossParityClassifier, "alm"),
    (LossParityClassifier, "stochastic_switching"),
    (RateParityClassifier, "plada"),
    (MinorityRateClassifier, "ipc"),
]
#: What the papers say of the solvers' options beyond the defaults.
OPTIONS = {
    "switching_subgradient": {"max_iter": 50_000},
    "plada": {"learning_rate": 1e-3, "slack_rate": 0.1, "alpha": 10.0, "beta": 0.1, "gamma": 0.1},
    "ipc": {"proximity": 10**-2.5},
}


@pytest.fixture(scope="module")
def rows():
    return make_biased_classification(400, n_features=3, random_state=0)


class Asked(Exception):
    """The problem that was to be solved, and its solver."""


@pytest.fixture
def asked(rows, monkeypatch):
    """``asked(model)``: the solver and the problem that a fit comes to, and the model's parameters at that moment."""

    def solve(self, solver, problem, start, rng):
        raise Asked(solver, problem, self.get_params(deep=False))

    def ask(model):
        X, y, groups = rows
        with monkeypatch.context() as patched:
            patched.setattr(type(model), "_solve", solve)
            with pytest.raises(Asked) as found:
                model.fit(X, y, sensitive_features=groups)
        return found.value.args

    return ask


@pytest.mark.parametrize(("kind", "solver"), ALL)
def test_solver_and_problem_are_those_of_the_paper(kind, solver, asked):
    model = kind(solver=solver, solver_options="paper")
    given = model.get_params(deep=False)
    ran, problem, params = asked(model)
    by_hand = kind(solver=solver, solver_options=OPTIONS.get(solver)).set_params(**kind._published[solver])
    expected, its_problem, its_params = asked(by_hand)
    assert ran == expected
    assert repr(problem) == repr(its_problem)
    assert {**params, "solver_options": None} == {**its_params, "solver_options": None}
    assert model.get_params(deep=False) == given  # also where a fit fails


def test_networks_have_a_set_of_their_own(asked):
    ran, *_ = asked(RateParityClassifier(solver="plada", solver_options="paper", hidden_layer_sizes=(4,)))
    assert (ran.learning_rate, ran.slack_rate, ran.alpha, ran.beta, ran.gamma) == (0.1, 0.01, 10.0, 0.5, 0.1)


def test_iterations_that_are_given_are_kept(asked):
    ran, *_ = asked(PartialParityClassifier(solver="switching_subgradient", solver_options="paper", max_iter=7))
    assert ran.max_iter == 7


@pytest.mark.slow
def test_idca_is_the_papers(rows):
    X, y, groups = rows
    model = PartialParityClassifier(0.1, solver="idca", solver_options="paper", max_iter=3)
    given = model.get_params(deep=False)
    problem = {"surrogate": "ramp", "surrogate_width": 1.0, "n_levels": 10, "alpha": 0.0, "group_interactions": True}
    by_hand = PartialParityClassifier(0.1, solver="idca", max_iter=3, **problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # three iterations
        for each in (model, by_hand):
            each.fit(X, y, sensitive_features=groups)
    scores = [each.decision_function(X, sensitive_features=groups) for each in (model, by_hand)]
    assert np.ptp(scores[0]) > 0
    np.testing.assert_array_equal(*scores)
    assert model.published_params_ == problem
    assert model.get_params(deep=False) == given
    assert not hasattr(by_hand, "published_params_")


def test_a_fit_with_other_options_forgets_the_published_ones(rows):
    X, y, groups = rows
    model = RateParityClassifier(solver="plada", solver_options="paper", max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a single iteration
        assert model.fit(X, y, sensitive_features=groups).published_params_["rate"] == "sigmoid"
        model.set_params(solver_options=None).fit(X, y, sensitive_features=groups)
    assert not hasattr(model, "published_params_")


@pytest.mark.parametrize("kind", [PartialParityClassifier, RateParityClassifier])
def test_our_own_solvers_have_no_published_settings(kind, rows):
    X, y, groups = rows
    model = kind(solver_options="paper")
    with pytest.raises(ValueError, match=rf"{kind.__name__}, solver must be one of \['\w+.*got 'auto'"):
        model.fit(X, y, sensitive_features=groups)
    assert model.get_params()["solver_options"] == "paper"


@pytest.mark.parametrize("model", [NeymanPearsonClassifier({0: 0.1}), FairRanker(), PairwiseParityClassifier()])
def test_estimators_without_a_papers_solver_take_no_such_word(model, rows):
    X, y, groups = rows
    keywords = {
        NeymanPearsonClassifier: {},
        FairRanker: {"qid": np.arange(len(y)) // 20, "sensitive_features": groups},
        PairwiseParityClassifier: {"sensitive_features": groups},
    }[type(model)]
    with pytest.raises(ValueError, match="'solver_options' parameter"):
        model.set_params(solver_options="paper").fit(X, (y > 0).astype(int), **keywords)


def test_another_word_is_refused(rows):
    X, y, groups = rows
    with pytest.raises(ValueError, match="solver_options"):
        RateParityClassifier(solver="plada", solver_options="papers").fit(X, y, sensitive_features=groups)
