"""One problem: the fit, and which promises it breaks."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.trial.obvious import (
    accuracy,
    best_constant,
    best_constant_accuracy,
    best_rescaling,
    feasible_constants,
)
from benchmarks.trial.problem import Bound, Problem
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning
from fairconstrained.solvers import solver_class

__all__ = ["COLUMNS", "PROMISES", "judge", "run"]

#: What no problem may do, by the word that the results have for it.
PROMISES = {
    "crash": "raises another exception than ValueError",
    "refused": "is refused although no row weighs more than max(kappa, 0.02) of a compared cell",
    "silent miss": "exceeds kappa by more than the allowance, and does not say so",
    "wrong value": "reports another gap than the one computed apart from the package",
    "infeasible": "ends infeasible although constant scores are feasible",
    "wrong status": "ends infeasible although its gaps are within kappa, or optimal where nothing is compared",
    "above constant": "has an objective above that of a feasible constant",
    "above rescaling": (
        "has an objective above that of its own scores, scaled and shifted within the bounds, unless its solver "
        "shrinks scores for new rows"
    ),
    "below majority": "has an accuracy below that of a feasible constant, where the objective counts errors",
    "slow": "takes more than ten seconds of one core",
}
#: By how much an objective may be above another one, relatively, and gaps may differ.
_OBJECTIVE, _GAP = 1e-6, 1e-9
_SLOW = 10.0

COLUMNS = (
    "task", "seed", "estimator", "notion", "loss", "n", "d", "groups", "layout", "weights", "features", "words",
    "kappa", "outcome", "status", "warned", "seconds", "cpu_seconds", "gap", "reported", "allowance", "excess",
    "objective", "of_constant", "of_rescaling", "scale", "shift", "accuracy", "accuracy_of_constant", "too_heavy",
    "broken", "message",
)  # fmt: skip


def run(problem: Problem) -> dict[str, Any]:
    """Fit, and judge; the row of the results."""
    rows = problem.rows
    row: dict[str, Any] = {
        "seed": problem.seed,
        "estimator": problem.estimator,
        "notion": problem.notion,
        "loss": problem.loss,
        "n": rows.X.shape[0],
        "d": rows.X.shape[1],
        "groups": rows.members.shape[1],
        "layout": rows.layout,
        "weights": rows.weighting,
        "features": rows.features,
        "words": ", ".join(problem.words),
        "kappa": problem.kappa,
        "too_heavy": problem.too_heavy,
        "status": "",
        "message": "",
    }
    broken: list[str] = []
    begin, begin_cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = problem.make().fit(rows.X, problem.target, **problem.fit_params)
            row["outcome"] = "fitted"
        except ValueError as error:
            row |= {"outcome": "refused", "message": _one_line(error)}
            broken += [] if problem.too_heavy else ["refused"]
        except Exception as error:  # whatever it is, it is what the trial looks for
            row |= {"outcome": "crash", "message": _one_line(f"{type(error).__name__}: {error}")}
            broken.append("crash")
    row |= {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - begin_cpu}
    if row["outcome"] == "fitted":
        said = [w for w in caught if issubclass(w.category, (ConvergenceWarning, FairnessWarning))]
        others = sorted({w.category.__name__ for w in caught} - {w.category.__name__ for w in said})
        facts, found = judge(problem, model, any(issubclass(w.category, ConvergenceWarning) for w in said))
        row |= facts
        row["message"] = _one_line("; ".join([*(str(w.message) for w in said), *others]))
        broken += found
    # of one thread: what the fit itself takes, whatever else the machine is busy with
    broken += ["slow"] if row["cpu_seconds"] > _SLOW else []
    return row | {"broken": "; ".join(broken)}


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())[:400]


def judge(problem: Problem, model: Any, warned: bool) -> tuple[dict[str, Any], list[str]]:
    """Facts about a fitted model, and the promises that it breaks."""
    scores = problem.scores_of(model)
    facts, broken = _gaps(problem, model, scores, warned)
    infeasible = str(model.status_).startswith("infeasible")
    constants = feasible_constants(problem)
    if infeasible and constants:
        broken.append("infeasible")
    vacuous = all(bound.is_vacuous for bound in problem.bounds)
    if (infeasible and all(bound.holds(scores, _GAP) for bound in problem.bounds)) or (
        vacuous and model.status_ == "optimal"
    ):
        broken.append("wrong status")
    if not infeasible:
        better, found = _objectives(problem, model, scores, constants)
        facts |= better
        broken += found
    return facts | {"status": model.status_, "warned": warned}, broken


def _gaps(problem: Problem, model: Any, scores: np.ndarray, warned: bool) -> tuple[dict[str, Any], list[str]]:
    """The worst gap, against kappa and against what is reported."""
    facts: dict[str, Any] = {"excess": -np.inf}
    broken, missed = [], False
    for bound in problem.bounds:
        if bound.is_vacuous:
            continue
        gap, reported = bound.gap(scores), model.constraint_values_.get(bound.name, np.nan)
        if not abs(gap - reported) <= _GAP and "wrong value" not in broken:
            broken.append("wrong value")
        allowance = _allowance(bound, model)
        excess = -np.inf if bound.kappa is None else gap - bound.kappa
        missed |= excess > allowance + _GAP
        if excess >= facts["excess"]:
            facts |= {"gap": gap, "reported": reported, "allowance": allowance, "excess": excess}
    if missed and not (str(model.status_).startswith("infeasible") and warned):
        broken.append("silent miss")
    return facts, broken


def _allowance(bound: Bound, model: Any) -> float:
    """By how much kappa may be missed: the granularity, and never more than max(kappa, 0.02)."""
    return min(model.granularity_.get(bound.name, 0.0), bound.finest)


def _objectives(
    problem: Problem, model: Any, scores: np.ndarray, constants: list[np.ndarray]
) -> tuple[dict[str, Any], list[str]]:
    """The objective of a model that keeps its bounds, against what is obvious."""
    facts: dict[str, Any] = {}
    broken = []
    if problem.counts_errors:
        facts = {"accuracy": accuracy(problem, scores)}
        facts["accuracy_of_constant"] = best_constant_accuracy(problem, constants)
        return facts, ["below majority"] if facts["accuracy"] < facts["accuracy_of_constant"] - _GAP else []
    if problem.objective is None:
        return facts, broken
    penalty = problem.penalty(model)
    facts["objective"] = problem.objective.value(scores) + penalty
    facts["of_constant"] = best_constant(problem, constants)
    if _is_above(facts["objective"], facts["of_constant"]):
        broken.append("above constant")
    minimises = not solver_class(model.solver_).is_final
    if problem.is_linear and problem.objective.is_convex and minimises and not _in_a_ball(model):
        # what the model was allowed: its own gaps, where one row makes them larger than kappa
        limits = [
            np.inf if bound.kappa is None else max(bound.kappa, bound.gap(scores)) + 1e-12 for bound in problem.bounds
        ]
        best = best_rescaling(problem, scores, penalty, limits)
        if best is not None:
            facts |= {"of_rescaling": best.objective, "scale": best.scale, "shift": best.shift}
            if _is_above(facts["objective"], best.objective):
                broken.append("above rescaling")
    return facts, broken


def _in_a_ball(model: Any) -> bool:
    """Whether the coefficients are bounded, so that scores must not be scaled up."""
    return getattr(model, "l1_radius", None) is not None or getattr(model, "radius", None) is not None


def _is_above(objective: float, other: float) -> bool:
    return bool(objective - other > _OBJECTIVE * abs(other))
