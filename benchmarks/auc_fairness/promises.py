"""Promises of `AUCFairClassifier`: the presets on a9a, moments against rows and solvers, ACS income."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score

from benchmarks._common import in_own_process, load_a9a, load_acs_income, peak_memory
from benchmarks.auc_fairness.methods import GAPS, QUADRATIC
from benchmarks.auc_fairness.stream import stream
from fairconstrained import AUCFairClassifier
from fairconstrained.constraints import QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.groups import GroupEncoder
from fairconstrained.models import LinearModel
from fairconstrained.objectives import PairwiseAUC
from fairconstrained.problem import Problem
from fairconstrained.solvers import make_solver
from fairconstrained.solvers.quadratics import parameter_quadratics

#: kappa of the surrogate at which the moments are compared with other methods.
QUADRATIC_KAPPA = 0.5
#: Seconds that the level-set method may take.
PATIENCE = 100.0
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
CHUNK = 100_000


def presets() -> pd.DataFrame:
    """a9a, official split, one core: exact gap and AUC of `auto` at kappa = 0.02, and of the quadratic surrogate."""
    torch.set_num_threads(1)
    table = load_a9a()
    train, test = table.is_train, ~table.is_train
    rows = []
    settings: list[tuple[str, float | None, dict[str, Any]]] = [
        ("unconstrained", None, {}),
        ("ramp", 0.02, {}),
        *(("quadratic", kappa, QUADRATIC) for kappa in (0.05, 0.2, 0.5)),
    ]
    for metric, gap in GAPS.items():
        for surrogate, kappa, params in settings:
            model = AUCFairClassifier(kappa, constraint=metric, random_state=0, **params)
            begin = time.process_time()
            model.fit(table.X[train], table.y[train], sensitive_features=table.groups[train])
            seconds = time.process_time() - begin
            scores = model.decision_function(table.X[test])
            rows.append(
                {
                    "metric": metric,
                    "surrogate": surrogate,
                    "kappa": kappa,
                    "train_gap": model.constraint_values_[metric],
                    "test_auc": roc_auc_score(table.y[test], scores),
                    "test_gap": gap(table.y[test], scores, sensitive_features=table.groups[test]),
                    "seconds": seconds,
                    "evaluations": model.n_evaluations_,
                    "status": model.status_,
                }
            )
    return pd.DataFrame(rows)


def rows() -> pd.DataFrame:
    """Moments of a stream of generated rows, in chunks: seconds of the pass, and of what follows it."""
    found = []
    for n_rows in ROWS:
        model = AUCFairClassifier(QUADRATIC_KAPPA, **QUADRATIC)
        seconds, size = 0.0, min(CHUNK, n_rows)
        for chunk in range(n_rows // size):
            X, y, groups = make_biased_classification(n_samples=size, n_features=20, random_state=chunk)
            begin = time.process_time()
            model.partial_fit(X, y, [0, 1], groups, groups=np.unique(groups))
            seconds += time.process_time() - begin
        begin = time.process_time()
        objective = model.objective_  # the optimum is found when it is asked for
        solve = time.process_time() - begin
        found.append({"rows": n_rows, "pass_seconds": seconds, "solve_seconds": solve, "objective": objective})
    return pd.DataFrame(found)


def moments() -> pd.DataFrame:
    """a9a, inter_group: moments against SLSQP on the same problem, and against the level-set method's way to 1 %.

    Seconds are those of the solvers alone, without the checks and reports of a fit.
    """
    torch.set_num_threads(1)
    table = load_a9a()
    X, y, groups = (part[table.is_train] for part in (table.X, table.y, table.groups))
    problem = _problem(X, y, groups)
    solver, times = make_solver("moments", {}, problem), []
    for _ in range(5):
        begin = time.process_time()
        result = solver.solve(problem, None, np.random.default_rng(0))
        times.append(time.process_time() - begin)
    first = {"method": "moments", "seconds": float(np.median(times)), "objective": result.objective}
    found = [first | (result.multipliers or {}), _slsqp(problem), _level_set(problem, result.objective)]
    frame = pd.DataFrame(found)
    return frame.assign(times_moments=frame.seconds / found[0]["seconds"])


def _problem(X: Any, y: np.ndarray, groups: np.ndarray) -> Problem:
    """The quadratic surrogate of the inter-group gap under the pairwise quadratic loss."""
    encoder = GroupEncoder(groups)
    data = FairData.from_arrays(X, y.astype(float), encoder.codes, encoder.labels)
    return Problem(
        model=LinearModel(data.n_features),
        objective=PairwiseAUC("quadratic").bind(data),
        constraints=(QuadraticAUCGap(QUADRATIC_KAPPA, constraint="inter_group").bind(data),),
        data=data,
    )


def _slsqp(problem: Problem) -> dict[str, Any]:
    """A generic solver on the same functions in standardised coordinates, with its multipliers."""
    begin = time.process_time()
    f, c = (parameter_quadratics(problem, terms) for terms in ([problem.objective], problem.constraints))
    to_params, pull = problem.coordinates.to_params, problem.coordinates.pull

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        w = to_params(u)
        return float(f.values(w)[0]), pull(f.gradients(w)[0])

    def jacobian(u: np.ndarray) -> np.ndarray:
        return np.stack([pull(row) for row in c.gradients(to_params(u))])

    found = minimize(
        objective,
        np.zeros(problem.n_params),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda u: -c.values(to_params(u)), "jac": lambda u: -jacobian(u)},
        options={"ftol": 1e-15, "maxiter": 300},
    )
    seconds = time.process_time() - begin
    multipliers = np.linalg.lstsq(jacobian(found.x).T, -objective(found.x)[1], rcond=None)[0]
    return {
        "method": "SLSQP",
        "seconds": seconds,
        "objective": found.fun,
        **dict(zip(problem.component_names, multipliers, strict=True)),
    }


class _Enough(Exception):  # not an error: what there was to see has been seen
    """Ends a run from its callback."""


def _level_set(problem: Problem, optimum: float) -> dict[str, Any]:
    """Seconds until a feasible iterate is within 1 % of the optimum; after `PATIENCE` how near it has come."""
    begin = time.process_time()
    last: dict[str, float] = {}

    def watch(record: Mapping[str, Any]) -> None:
        last.update(seconds=time.process_time() - begin, objective=record["objective"])
        if record["objective"] <= 1.01 * optimum or last["seconds"] > PATIENCE:
            raise _Enough

    solver = make_solver("level_set", {"max_iter": 1000, "tol": 1e-6}, problem)
    with contextlib.suppress(_Enough):
        solver.solve(problem, None, np.random.default_rng(0), watch)
    near = f"{last['objective'] / optimum - 1:.2%}"
    return {"method": f"level_set, to {near} of the optimum", **last}


def acs() -> pd.DataFrame:
    """765,670 rows of ACS income, inter_group by sex, kappa 0.02, in a process of its own."""
    return pd.DataFrame([in_own_process(_acs_fit)])


def _acs_fit() -> dict[str, Any]:
    table = load_acs_income()
    loaded = peak_memory()
    model = AUCFairClassifier(0.02, random_state=0)
    begin = time.process_time()
    model.fit(table.X, table.y, sensitive_features=table.groups)
    return {
        "rows": table.X.shape[0],
        "columns": table.X.shape[1],
        "kappa": 0.02,
        "seconds": time.process_time() - begin,
        "loaded_GiB": loaded,
        "peak_GiB": peak_memory(),
        "train_gap": model.constraint_values_["inter_group"],
        "train_auc": roc_auc_score(table.y, model.decision_function(table.X)),
        "evaluations": model.n_evaluations_,
        "status": model.status_,
    }


PROMISES: dict[str, Callable[[], pd.DataFrame]] = {
    "presets": presets,
    "rows": rows,
    "moments": moments,
    "stream": stream,
    "acs": acs,
}
