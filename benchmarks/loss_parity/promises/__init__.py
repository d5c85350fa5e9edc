"""Promises of `LossParityClassifier` and its solvers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairconstrained.problem import Problem
from fairconstrained.solvers import StochasticSolver
from fairconstrained.views import Stochastic

__all__ = ["side_by_side", "stepper"]


def stepper(problem: Problem, solver: StochasticSolver) -> Callable[[], Any]:
    """A function that takes one step of the solver; epochs and records are left out."""
    rng = np.random.default_rng(0)
    method = solver.first_method(problem, None, rng)
    source = solver.new_source(problem.view(Stochastic), rng)
    return lambda: solver.take_step(method, source, problem)


def side_by_side(functions: Sequence[Callable[[], Any]], calls: int, repeats: int) -> list[float]:
    """Seconds of processor time of a call of each, medians over turns: what else the machine does hits all alike."""
    times = []
    for _ in range(repeats + 1):
        turn = []
        for function in functions:
            begin = time.process_time()
            for _ in range(calls):
                function()
            turn.append((time.process_time() - begin) / calls)
        times.append(turn)
    return np.median(times[1:], axis=0).tolist()  # the first turn was to warm up
