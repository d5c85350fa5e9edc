"""The solvers of `fairconstrained.LossParityClassifier`: step by step, or as `fit` runs them to their own end."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.loss_parity.methods._setting import BATCH, Outcome, Setting
from benchmarks.loss_parity.network import HIDDEN, parameters_of
from benchmarks.loss_parity.problems import problem_of
from fairconstrained import LossParityClassifier
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.problem import Problem
from fairconstrained.solvers import StochasticPenalty, StochasticSolver
from fairconstrained.solvers.stochastic import Method
from fairconstrained.views import Stochastic

#: Rows of a mini-batch of the methods that end by themselves.
BATCH_OF_FIT = 256


def train(setting: Setting, solver: StochasticSolver) -> Outcome:
    """The steps that `fit` takes with a solver, for the time that there is and with records between epochs."""
    problem = problem_of(setting.train, setting.kappa, **setting.constraint.params)
    rng = np.random.default_rng(setting.seed)
    method = solver.first_method(problem, None, rng)
    n_params = problem.n_params
    iterations = setting.follow(_steps(solver, method, problem, rng), lambda: method.z[:n_params])
    return Outcome(method.output()[:n_params], iterations)


def train_penalty(setting: Setting) -> Outcome:
    """A penalty of weight 1 on what exceeds kappa; eight rows of every group give it and the objective."""
    n_groups = np.unique(setting.train.groups).size
    return train(setting, StochasticPenalty(batch_size=BATCH * n_groups))


def _steps(solver: StochasticSolver, method: Method, problem: Problem, rng: np.random.Generator) -> Iterator[None]:
    view, n_steps = problem.view(Stochastic), solver.n_steps(problem)
    while True:
        method.begin_epoch()
        source = solver.new_source(view, rng)
        for _ in range(n_steps):
            solver.take_step(method, source, problem)
            if not np.isfinite(method.z @ method.z):
                raise FloatingPointError("the parameters are not finite")
            yield


def fit(setting: Setting, solver: str, **params: Any) -> Outcome:
    """Fit to the end, with a record of every epoch."""
    train, iterations = setting.train, [0]
    steps = max(1, train.y.size // BATCH_OF_FIT)

    def record(entry: Mapping[str, Any]) -> None:
        iterations.append(entry["n_iter"] * steps)
        setting.record(iterations[-1], entry["params"])

    model = LossParityClassifier(
        setting.kappa,
        **setting.constraint.params,
        solver=solver,
        batch_size=BATCH_OF_FIT,
        hidden_layer_sizes=HIDDEN,
        device="cpu",
        callbacks=[record],
        random_state=setting.seed,
        **params,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap tells
        model.fit(train.X, train.y, sensitive_features=train.groups)
    return Outcome(parameters_of(model.module_), iterations[-1])
