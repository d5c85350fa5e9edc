"""Many groups: a table with 12 attributes and over 10^9 possible cells, and time per step against groups and batch.

Table "cells": a million rows, seconds of `GroupEncoder`; and `auto` for two epochs with the large observed cells
compared and the small ones merged or left out: seconds in all, microseconds of a step of the second epoch with the
passes over all rows that belong to it, and seconds of what follows the epochs. Table "groups": 100,000 rows in groups
of equal size, microseconds of a step of SSL-ALM, all of whose mini-batches have as many rows, and of ``auto``.
Everything is processor time with one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import set_threads
from benchmarks.loss_parity.datasets import Part
from benchmarks.loss_parity.network import HIDDEN
from benchmarks.loss_parity.problems import problem_of
from benchmarks.loss_parity.promises import side_by_side, stepper
from fairconstrained import LossParityClassifier
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.groups import GroupEncoder
from fairconstrained.solvers import SSLALM, AdamLagrangian, StochasticSolver

ATTRIBUTES, VALUES = 12, 6
#: Shares of the values of every attribute: a few cells are large, and most of the others have a row or two.
SHARES = (0.72, 0.17, 0.06, 0.03, 0.015, 0.005)
ROWS, QUICK_ROWS, FEATURES = 1_000_000, 20_000, 20
#: Rows of a cell that is compared.
LEAST, QUICK_LEAST = 200, 20
BATCH = 256
GROUPS, BATCHES, STEP_ROWS = (2, 20, 200, 1000), (64, 256, 1024), 100_000
KAPPA = 0.1
NAMES = {SSLALM.name: "ssl_alm", AdamLagrangian.name: "auto"}


def make_table(rows: int) -> tuple[Part, pd.DataFrame]:
    """Rows whose labels depend on features and attributes, and the attributes as a table of strings."""
    rng = np.random.default_rng(0)
    attributes = rng.choice(VALUES, size=(rows, ATTRIBUTES), p=SHARES)
    X = rng.normal(size=(rows, FEATURES)) + 0.3 * attributes[:, np.arange(FEATURES) % ATTRIBUTES]
    logits = X[:, :8].sum(axis=1) / 2 - 1 + 0.4 * attributes[:, :4].sum(axis=1)
    y = np.where(rng.random(rows) < 1 / (1 + np.exp(-logits)), 1, -1)
    names = np.array([f"v{value}" for value in range(VALUES)], dtype=object)
    frame = pd.DataFrame({f"a{k}": names[attributes[:, k]] for k in range(ATTRIBUTES)})
    return Part(X, y, np.empty(0)), frame


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Measure the encoding of many groups, and the time of a step."""
    set_threads(1)
    steps = [row for n_groups in GROUPS for row in _of_steps(n_groups, calls=10 if quick else 100)]
    cells = _of_cells(QUICK_ROWS, QUICK_LEAST) if quick else _of_cells(ROWS, LEAST)
    return {"groups": pd.DataFrame(steps), "cells": pd.DataFrame(cells)}


def _of_cells(rows: int, least: int) -> list[dict[str, Any]]:
    part, frame = make_table(rows)
    begin = time.process_time()
    encoder = GroupEncoder(frame)
    shared = {"rows": rows, "observed_cells": len(encoder.labels), "encode_seconds": time.process_time() - begin}
    return [shared | fit(part, frame, small, least) for small in ("merge", "ignore")]


def fit(part: Part, frame: pd.DataFrame, small: str, least: int) -> dict[str, Any]:
    """Two epochs of `auto` with cells of at least that many rows compared, and what it took."""
    clock = [time.process_time()]

    def tick(_: Mapping[str, Any]) -> None:
        clock.append(time.process_time())

    model = LossParityClassifier(
        KAPPA,
        hidden_layer_sizes=HIDDEN,
        min_group_size=least,
        small_groups=small,
        batch_size=BATCH,
        max_epochs=2,
        callbacks=[tick],
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status tells
        model.fit(part.X, part.y, sensitive_features=frame)
    seconds = time.process_time() - clock[0]
    table = model.group_losses_
    return {
        "small_groups": small,
        "compared": int(table.compared_as.nunique()),
        "fit_seconds": seconds,
        "step_microseconds": 1e6
        * (clock[-1] - clock[-2])
        / (part.y.size // BATCH),  # the first epoch begins after the set-up
        "afterwards_seconds": time.process_time() - clock[-1],
        "train_gap": model.constraint_values_["loss_parity"],
        "status": model.status_,
    }


def _of_steps(n_groups: int, calls: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(STEP_ROWS, FEATURES))
    y = np.where(X[:, 0] + rng.normal(size=STEP_ROWS) > 0, 1, -1)
    problem = problem_of(Part(X, y, np.arange(STEP_ROWS) % n_groups), KAPPA)
    short = 1e-6  # so that the network stays where it is, and steps are alike
    solvers: list[StochasticSolver] = [
        *(SSLALM(batch_size=batch, constraint_batch_size=batch, learning_rate=short) for batch in BATCHES),
        *(AdamLagrangian(batch_size=batch, learning_rate=short) for batch in BATCHES),
    ]
    seconds = side_by_side([stepper(problem, solver) for solver in solvers], calls, repeats=3)
    return [
        {"solver": NAMES[solver.name], "groups": n_groups, "batch": solver.batch_size, "microseconds": 1e6 * value}
        for solver, value in zip(solvers, seconds, strict=True)
    ]
