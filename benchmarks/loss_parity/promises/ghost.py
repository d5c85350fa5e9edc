"""The subproblem of the ghost method with n = 2,800 variables and m = 2 constraints against the QP solver Clarabel.

``seconds`` is of processor time; ours includes finding the bound that the constraints are relaxed to, which Clarabel is
given. ``difference`` is the largest entry of the two directions' difference, with Clarabel's tolerances as small as it
reaches; ``clarabel_seconds`` is with its own ones. ``active`` and ``at_bounds`` are shares of the constraints that hold
with equality, and of the entries that are as large as allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from benchmarks._common import set_threads
from benchmarks.loss_parity.datasets import load_parts
from benchmarks.loss_parity.problems import problem_of
from benchmarks.loss_parity.promises import side_by_side
from benchmarks.loss_parity.tasks import KAPPA
from fairconstrained.problem import FullBatchView
from fairconstrained.solvers.published.ghost_direction import ghost_direction, least_violation
from fairconstrained.views import Stochastic

N, M = 2800, 2
TAU, BETA, RHO, SHARE = 1.0, 10.0, 0.8, 0.5
#: A bound on the entries that a third of them reach.
TIGHT = 1 / np.sqrt(N)
#: The first one that Clarabel reaches is that of the comparison.
TOLERANCES = (1e-14, 1e-13, 1e-12)


class Instance(NamedTuple):
    """Gradient of the objective, values and Jacobian of the constraints, and the bound on the direction's entries."""

    gradient: np.ndarray
    values: np.ndarray
    jacobian: np.ndarray
    beta: float = BETA

    @property
    def rho(self) -> float:
        """Radius with which kappa is found; it may not be larger than ``beta``."""
        return min(RHO, RHO * self.beta)


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Measure objective, violation and seconds of both solvers."""
    set_threads(1)
    count = 3 if quick else 20
    kinds: dict[str, Iterator[Instance]] = {
        "random": (_random(seed, BETA) for seed in range(count)),
        "random, many entries at their bounds": (_random(seed, TIGHT) for seed in range(count)),
        "the network, batches of 8": _of_network(count),
    }
    found = []
    for kind, instances in kinds.items():
        table = pd.DataFrame([_compare(instance, repeats=2 if quick else 5) for instance in instances])
        found.append(
            {
                "instances": kind,
                "count": count,
                "difference": table.difference.max(),
                "active": table.active.mean(),
                "at_bounds": table.at_bounds.mean(),
                "ours_seconds": table.ours.median(),
                "clarabel_seconds": table.clarabel.median(),
                "ratio": (table.clarabel / table.ours).median(),
                "least_ratio": (table.clarabel / table.ours).min(),
            }
        )
    return {"ghost": pd.DataFrame(found)}


def _random(seed: int, beta: float) -> Instance:
    rng = np.random.default_rng(seed)
    gradient, jacobian = rng.normal(size=N) / np.sqrt(N), rng.normal(size=(M, N)) / np.sqrt(N)
    return Instance(gradient, np.array([0.1, 0.05]) * rng.uniform(0.5, 1.5), jacobian * rng.uniform(0.1, 3.0), beta)


def _of_network(count: int) -> Iterator[Instance]:
    """Mini-batches of the experiment in the neighbourhood of the network's start."""
    problem = problem_of(load_parts("acs_income_ok", 0).train, KAPPA)
    rng = np.random.default_rng(0)
    batches = problem.view(Stochastic).batches(rng, 8, 1.0)
    z = problem.fair_start(None, rng)
    for _ in range(count):
        batch: FullBatchView = next(batches)
        point = batch.at(z + rng.normal(scale=0.1, size=z.size))
        jacobian = np.stack([point.gradient(0.0, row) for row in np.eye(M)])
        yield Instance(point.gradient(1.0, np.zeros(M)), point.constraints, jacobian)


def _compare(at: Instance, repeats: int) -> dict[str, float]:
    kappa = (1 - SHARE) * max(at.values.max(), 0.0) + SHARE * least_violation(at.values, at.jacobian, at.rho)

    def ours() -> np.ndarray:
        return ghost_direction(at.gradient, at.values, at.jacobian, tau=TAU, beta=at.beta, rho=at.rho, share=SHARE)

    reference, direction = next(_accurate(at, kappa)), ours()
    seconds = side_by_side([ours, partial(_clarabel, at, kappa)], 1, repeats)
    return {
        "difference": float(np.abs(direction - reference).max()),
        "active": float(np.mean(np.abs(at.values + at.jacobian @ direction - kappa) < 1e-9)),
        "at_bounds": float(np.mean(np.abs(direction) >= at.beta)),
        "ours": seconds[0],
        "clarabel": seconds[1],
    }


def _accurate(at: Instance, kappa: float) -> Iterator[np.ndarray]:
    """Clarabel's solutions to those of the tolerances that it reaches."""
    for tolerance in TOLERANCES:
        found = _clarabel(at, kappa, tolerance)
        if str(found.status) == "Solved":
            yield np.array(found.x)


def _clarabel(at: Instance, kappa: float, tolerance: float | None = None) -> Any:
    """Solve ``min g'd + tau/2 |d|^2`` over ``c + J d <= kappa`` and ``|d| <= beta``."""
    import clarabel

    n = at.gradient.size
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    if tolerance is not None:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    rows = sp.csc_matrix(sp.vstack([at.jacobian, sp.eye(n), -sp.eye(n)]))
    bounds = np.concatenate([kappa - at.values, np.full(2 * n, at.beta)])
    quadratic = sp.csc_matrix(TAU * sp.eye(n))
    cones = [clarabel.NonnegativeConeT(bounds.size)]
    return clarabel.DefaultSolver(quadratic, at.gradient, rows, bounds, cones, settings).solve()
