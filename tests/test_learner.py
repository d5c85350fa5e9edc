"""A model of one's own that is no parameter vector, with a solver of one's own: trees, which slopes of the terms drive.

`fairconstrained.models.BoostedTrees` keeps every bound, which tests/estimators/test_fair_boosting.py checks.
"""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeRegressor

from fairconstrained import FairnessWarning, PartialParityClassifier
from fairconstrained.constraints import DemographicParity, LossParity
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.models import Model, Rescaling, ScoreShifts
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import SOLVERS, Recorder, Solver, SolverResult, Status
from fairconstrained.views import FullBatch

RATE = 0.3


@dataclass(frozen=True)
class Ensemble:
    """The state: trees, and what their sum is multiplied with and moved by."""

    trees: tuple[DecisionTreeRegressor, ...] = ()
    factor: float = 1.0
    constant: float = 0.0

    def scores(self, X):
        return self.constant + self.factor * RATE * sum((tree.predict(X) for tree in self.trees), np.zeros(len(X)))


class Trees(Model):
    """Its states are ensembles, which nothing but this class looks into."""

    name = "trees"
    layout = "trees"

    def training_scores(self, state: Ensemble, data: FairData) -> np.ndarray:
        return state.scores(data.X)

    def scores(self, state: Ensemble, X: Any, codes: np.ndarray | None = None) -> np.ndarray:
        return state.scores(X)

    def attributes(self, state: Ensemble, offset: float, scale: float) -> dict[str, Any]:
        return {"trees_": state.trees}

    def shifts(self, data: FairData, shared: bool = False) -> ScoreShifts:
        return Shifted()

    def rescaling(self, state: Ensemble, data: FairData) -> Rescaling:
        return Rescaled(state, data.n_samples)


class Shifted(ScoreShifts):
    n_shifts = 1

    def moved(self, state: Ensemble, offsets: np.ndarray) -> Ensemble:
        return replace(state, constant=state.constant + offsets[0])


class Rescaled(Rescaling):
    can_shift = True

    def __init__(self, state: Ensemble, n_samples: int) -> None:
        self._state, self.signs = state, np.ones(n_samples)

    def at(self, factor: float, shift: float) -> Ensemble:
        state = self._state
        return replace(state, factor=factor * state.factor, constant=factor * state.constant + shift)


@dataclass(frozen=True)
class Boosting(Solver):
    """Every tree follows the slopes of the Lagrangian, and multipliers rise with the violation of the surrogates."""

    requires = (FullBatch,)
    model = Trees
    keeps_metric = True

    n_trees: int = 40
    ascent: float = 4.0

    def solve(self, problem: Problem, start=None, random_state=None, callback=None) -> SolverResult:
        X, weights = problem.data.X, problem.data.weights.numpy()
        state, multipliers, recorder = Ensemble(), np.zeros(len(problem.component_names)), Recorder(callback, 0)
        states = [state]
        for n_trees in range(1, self.n_trees + 1):
            scores = problem.scores(state)
            aux = problem.fair_aux() if n_trees == 1 else problem.initial_aux(scores)
            point = problem.at_scores(torch.from_numpy(scores.copy()), aux)
            multipliers = np.maximum(multipliers + self.ascent * point.constraints / n_trees**0.5, 0)
            slopes, _ = point.slopes(1.0, multipliers)
            tree = DecisionTreeRegressor(max_depth=2, random_state=0)
            state = replace(state, trees=(*state.trees, tree.fit(X, -slopes.numpy() / weights, weights)))
            states.append(state)
            recorder.add(n_iter=n_trees, loss=point.loss)
        feasible = [state for state in states if problem.holds(problem.scores(state))]
        best = min(feasible or states[-1:], key=lambda kept: problem.objective_at(kept, problem.scores(kept)))
        scores = problem.scores(best)
        return SolverResult(
            model_state=best,
            status=Status.COMPLETED if feasible else Status.INFEASIBLE,
            n_iter=self.n_trees,
            n_evaluations=self.n_trees,
            objective=problem.objective_at(best, scores),
            constraint_values={c.name: c.metric(scores) for c in problem.constraints},
            surrogate_violation=float(point.constraints.max(initial=0.0)),
            multipliers=dict(zip(problem.component_names, multipliers.tolist(), strict=True)),
            history=tuple(recorder.records),
            candidates=tuple(states[::8]),
        )


Boosting.name = "boosting"  # set here, it does not enter the registry that other tests read


class BoostedTreesClassifier(PartialParityClassifier):
    """Estimator of a user's own model, with all that it needs."""

    def _model(self, data: FairData) -> Model:
        return Trees()

    def _solver(self, problem: Problem, **special: Any) -> Solver:
        return Boosting()


@pytest.fixture(scope="module")
def rows():
    return make_biased_classification(
        600, 4, group_proportions=(0.6, 0.4), group_shift=(0.8, 0.0), separation=(1.0, 2.0), random_state=0
    )


def fitted(rows, **params):
    X, y, groups = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)  # rates of probabilities are not those of decisions
        return BoostedTreesClassifier(**params).fit(X, y, sensitive_features=groups)


@pytest.fixture(scope="module")
def free(rows):
    return fitted(rows, kappa=None)


@pytest.mark.parametrize(
    "constraint", [DemographicParity(0.15), pytest.param(LossParity(0.03), marks=pytest.mark.slow)]
)
def test_a_model_and_a_solver_of_ones_own_keep_a_bound(rows, free, constraint):
    X, y, groups = rows
    model = fitted(rows, constraint=[("bound", constraint)])
    before = free._without_bound().set_params(constraint=[("bound", constraint)])
    assert before.constraint_values(X, y, sensitive_features=groups)["bound"] > 1.5 * constraint.kappa
    assert model.constraint_values_ == pytest.approx(model.constraint_values(X, y, sensitive_features=groups))
    assert model.violation_ <= model.granularity_["bound"] + 1e-9
    assert model.status_ == "completed"
    assert free.objective_ < model.objective_ < 0.98 * np.log(2)
    assert model.prices_["bound"] > 0


def test_fitted_trees_are_pickled(rows, free):
    X = rows[0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(free)).predict(X), (free.decision_function(X) > 0))
    assert len(free.trees_) == len(free.history_)


def test_solvers_of_parameters_do_not_take_trees(rows):
    X, y, groups = rows
    data = FairData.from_arrays(X, 2.0 * y - 1, groups, ("a", "b"))
    problem = Problem(Logistic().bind(data), (), data, model=Trees())
    assert problem.working_solvers() == []
    for name in SOLVERS:
        with pytest.raises(IncompatibleProblem, match="ParametricModel, which 'trees' does not offer"):
            problem.check_solver(name)
    with pytest.raises(IncompatibleProblem, match="ParametricModel"):
        problem.view(FullBatch)
