"""Steps of SSL-ALM, ours and those of ``humancompatible-train``: same data and network, one thread, in turns.

``batch`` is the number of rows of a group. The package draws one mini-batch for a step, with so many of both; ours
draws two of them for the constraints, and so many rows of all for the objective. The package's loop is that of its
README; the line "drawn beforehand" is the same without the package's sampler and torch's loader. "fit" is all that
`fit` does, with a record of every epoch. "network" is what the network costs in bare NumPy: to fetch the rows of the
three mini-batches, three passes and two gradients; ``overhead`` is what the step spends on everything else.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice, pairwise, repeat
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import set_threads
from benchmarks.loss_parity.constraints import CONSTRAINTS
from benchmarks.loss_parity.datasets import Part, load_parts
from benchmarks.loss_parity.methods import _humancompatible as package
from benchmarks.loss_parity.methods._torch import Rows, even_batches
from benchmarks.loss_parity.network import HIDDEN, new_network
from benchmarks.loss_parity.problems import problem_of
from benchmarks.loss_parity.promises import side_by_side, stepper
from benchmarks.loss_parity.tasks import KAPPA
from fairconstrained import LossParityClassifier
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.solvers import SSLALM

BATCHES = (8, 256)


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Measure the seconds of a step by group rows, ours and those of the package."""
    set_threads(1)
    part = load_parts("acs_income_ok", 0).train
    found = [_measure(part, batch, calls=64 if quick else 128, repeats=3 if quick else 15) for batch in BATCHES]
    return {"throughput": pd.DataFrame([row for rows in found for row in rows])}


def _measure(part: Part, batch: int, calls: int, repeats: int) -> list[dict[str, Any]]:
    rows = Rows.of(part)
    loader = package.loader_of(rows, 2 * batch, 0)
    batches = {
        "package, as in its README": (Rows(*b) for epoch in repeat(loader) for b in epoch),
        "package, drawn beforehand": iter(list(islice(even_batches(rows, 2 * batch, 0), calls)) * (repeats + 1)),
    }
    functions: dict[str, Callable[[], Any]] = {
        "ours": stepper(problem_of(part, KAPPA), SSLALM(batch_size=batch)),
        **{name: partial(next, _package_steps(rows, drawn)) for name, drawn in batches.items()},
        "network": _bare_network(rows.X.double().numpy(), batch),
    }
    seconds = dict(zip(functions, side_by_side(list(functions.values()), calls, repeats), strict=True))
    seconds["ours, fit"] = _fit_seconds(part, batch)
    return [
        {
            "batch": batch,
            "what": name,
            "microseconds": 1e6 * value,
            "per_second": 1 / value,
            "times_package": seconds["package, as in its README"] / value,
            "overhead": 1 - seconds["network"] / value if name == "ours" else np.nan,
        }
        for name, value in seconds.items()
    ]


def _package_steps(rows: Rows, batches: Any) -> Any:
    network = new_network(rows.X.shape[1], 0)
    return package.steps(network, batches, rows.group_weights, CONSTRAINTS["demographic_parity"], KAPPA, smooth=True)


def _fit_seconds(part: Part, batch: int, epochs: int = 3) -> float:
    """Processor seconds of a step, from fits that differ by ``epochs`` epochs and make no estimates for new rows."""
    times = []
    for n_epochs in (1, 1 + epochs):
        model = LossParityClassifier(
            KAPPA,
            solver="ssl_alm",
            hidden_layer_sizes=HIDDEN,
            batch_size=batch,
            max_epochs=n_epochs,
            new_row_folds=None,  # the fits to folds are steps as well
            random_state=0,
        )
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # so short a run keeps no bound
            model.fit(part.X, part.y, sensitive_features=part.groups)
        times.append(time.process_time() - begin)
    return (times[1] - times[0]) / (epochs * max(1, part.y.size // batch))


def _bare_network(X: np.ndarray, batch: int) -> Callable[[], Any]:
    """Three forward passes, each on other rows, and two gradients of the network, and nothing else."""
    rng = np.random.default_rng(0)
    of_all, of_groups = (cycle(rng.integers(len(X), size=(1000, size))) for size in (batch, 2 * batch))
    sizes = (X.shape[1], *HIDDEN, 1)
    weights = [rng.normal(size=shape) / np.sqrt(shape[0]) for shape in pairwise(sizes)]
    biases = [np.zeros(size) for size in sizes[1:]]

    def forward(drawn: Iterator[np.ndarray]) -> list[np.ndarray]:
        values = [X[next(drawn)]]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            values.append(np.maximum(values[-1] @ weight + bias, 0))
        return [*values, values[-1] @ weights[-1] + biases[-1]]

    def gradient(values: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        found, slopes = [], np.full((len(values[0]), 1), 1 / batch)
        for k in reversed(range(len(weights))):
            found.append((values[k].T @ slopes, slopes.sum(axis=0)))
            if k:
                slopes = (slopes @ weights[k].T) * (values[k] > 0)
        return found

    def step() -> Any:
        forward(of_groups)
        return gradient(forward(of_all)), gradient(forward(of_groups))

    return step
