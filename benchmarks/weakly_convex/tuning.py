"""Eight sets of options for every method, on a problem that is not shown.

The best set takes the fewest passes to an objective within 0.001 of the optimum (that of "auto") with a constraint of
at most 1e-4. Where none gets there, it is the one that ends with the least violation, and then objective. All runs of a
method have one length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks._common import set_threads
from benchmarks.weakly_convex.cases import TUNING
from benchmarks.weakly_convex.convergence import DISTANCE, VIOLATION, shortened, way_of
from benchmarks.weakly_convex.parameters import FIXED, GRIDS

__all__ = ["measure"]


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Where every set ended and when it had arrived, and which one is the best of its method."""
    set_threads(1)
    best = way_of(TUNING, "auto", FIXED["auto"]).iloc[-1].objective
    rows = []
    for method, chosen in tqdm([(method, chosen) for method, grid in GRIDS.items() for chosen in grid], desc="sets"):
        options = FIXED[method] | chosen
        way = way_of(TUNING, method, shortened(options) if quick else options)
        near = way[(way.constraint <= VIOLATION) & (way.objective <= best + DISTANCE)]
        last, arrived = way.iloc[-1], near.passes.iloc[0] if len(near) else np.nan
        rows.append((method, _said(chosen), arrived, last.objective - best, last.constraint, last.passes))
    table = pd.DataFrame(rows, columns=["method", "set", "arrived", "above_best", "constraint", "passes"])
    ranks = table.assign(violation=table.constraint.clip(lower=VIOLATION)).sort_values(
        ["arrived", "violation", "above_best"], kind="stable"
    )
    return {"tuning": table.assign(chosen=table.index.isin(ranks.groupby("method").head(1).index))}


def _said(chosen: dict[str, Any]) -> str:
    named = {name: f"{value:.3g}" if isinstance(value, float) else value for name, value in chosen.items()}
    return ", ".join(f"{name}={value}" for name, value in named.items())
