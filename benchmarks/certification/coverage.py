"""How often the gap of the population exceeds the bound, for every metric and method that needs no distribution."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.certification.populations import Scenario, sample, scenarios
from fairconstrained.certification.evidence import evidence_of, methods_of
from fairconstrained.certification.sample import resolve_metric

__all__ = ["DELTA", "Case", "coverage", "row"]

DELTA = 0.05
_DRAWS, _QUICK_DRAWS = 1000, 20
#: Metrics whose narrowest bounds are all but exact, so that 1,000 draws would often be above delta by chance.
_CLOSE, _TIMES = ("inaccuracy", "minority_share", "independence_gap"), 10

#: A metric and its parameters.
Case = tuple[str, dict[str, Any]]


def coverage(cases: list[Case], quick: bool) -> pd.DataFrame:
    """One row for every metric, method and scenario."""
    tables = [
        pd.DataFrame(_summary(scenario, name, _with_minority(name, params, scenario), quick))
        for scenario in scenarios(quick)
        for name, params in cases
    ]
    return pd.concat(tables, ignore_index=True)


def _with_minority(name: str, params: dict[str, Any], scenario: Scenario) -> dict[str, Any]:
    return params | ({"minority": scenario.minority} if name == "minority_share" else {})


def _summary(scenario: Scenario, name: str, params: Mapping[str, Any], quick: bool) -> list[dict[str, Any]]:
    """One row for every method; draws in which a cell is empty have no certificate and do not count."""
    rng = np.random.default_rng(0)
    true_gap = scenario.population.gap(name, params)
    bounds: dict[str, list[tuple[float, float, float]]] = {}
    for _ in range((_QUICK_DRAWS if quick else _DRAWS) * (_TIMES if name in _CLOSE else 1)):
        rows = scenario.population.draw(scenario.n_samples, rng)
        try:
            taken = sample(name, params, rows)
        except ValueError:
            continue
        for method in methods_of(resolve_metric(name, params)[0]):
            if method == "bootstrap":
                continue
            begin = time.process_time()
            try:
                evidence = evidence_of(taken, method)
            except ValueError:  # not with these parameters
                continue
            bound = evidence.upper(DELTA)
            bounds.setdefault(method, []).append((bound, bound - taken.gap, time.process_time() - begin))
    return [row(scenario, name, params, method, True, true_gap, np.array(found)) for method, found in bounds.items()]


def row(
    scenario: Scenario,
    name: str,
    params: Mapping[str, Any],
    method: str,
    free: bool,
    true_gap: float,
    found: np.ndarray,
) -> dict[str, Any]:
    """A row of the tables; ``found`` has the bound, its distance from the gap of the sample, and the seconds."""
    shown = ", ".join(f"{key}={value}" for key, value in params.items() if key != "minority")
    return {
        "population": scenario.name,
        "metric": name,
        "parameters": shown,
        "method": method,
        "distribution_free": free,
        "n": scenario.n_samples,
        "draws": len(found),
        "true_gap": true_gap,
        # up to rounding: of a gap of 1 the bound is often 1
        "violated": float((found[:, 0] < true_gap - 1e-12).mean()),
        "mean_bound": found[:, 0].mean(),
        "mean_width": found[:, 1].mean(),
        "seconds": found[:, 2].mean(),
    }
