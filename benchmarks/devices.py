"""Fits on a CUDA device against the same fits on the CPU.

``python -m benchmarks.devices [--quick] [--docs]`` measures the products with the rows of a table and the fits to it,
and networks with their parameter ``device``, in wall-clock seconds. Each is run once to warm up, on fewer rows. Without
a CUDA device the CPU takes its place, to see that it works. "difference" is the largest of the scores on both devices,
divided by the standard deviation of the scores.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from benchmarks._common import Table, command_line, keep, load_acs_income, parsed, save, significant
from benchmarks.speed import a9a_dense, acs_dense
from fairconstrained import AUCFairClassifier, LossParityClassifier, PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import ConvergenceWarning, NewRowsWarning
from fairconstrained.features import product as product_of
from fairconstrained.features import sums_of_products
from fairconstrained.tables import torch_table

N_COLUMNS = 10


def generated() -> Table:
    """A million rows of 200 generated features."""
    X, y, groups = make_biased_classification(1_000_000, n_features=200, random_state=0)
    return Table("generated", X.astype(np.float32), y, groups)


def acs_float() -> Table:
    table = acs_dense()
    return table._replace(X=table.X.astype(np.float32))


def acs_sparse() -> Table:
    return load_acs_income()._replace(name="acs_sparse")


def partial_parity(**options: Any) -> PartialParityClassifier:
    return PartialParityClassifier(0.02, constraint="demographic_parity", random_state=0, **options)


LINEAR = {
    "demographic parity": partial_parity(),
    "demographic parity, all directions": partial_parity(solver="augmented_lagrangian", new_row_folds=None),
    "AUC gap": AUCFairClassifier(0.02, surrogate="quadratic", objective="auc", new_row_folds=None, random_state=0),
}
NETWORKS = {"loss parity, 64 and 32 units": (64, 32), "loss parity, 512 and 512 units": (512, 512)}


def seconds_of(function: Callable[[], Any]) -> tuple[Any, float]:
    """Result and wall-clock seconds of a call, until the device is done."""
    begin = time.perf_counter()
    found = function()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return found, time.perf_counter() - begin


def products(table: Table, device: str) -> Iterator[dict[str, Any]]:
    """Seconds until the rows are on the device, and of a product and a sum of several columns."""
    rng = np.random.default_rng(0)
    columns, slopes = (rng.normal(size=(n, N_COLUMNS)) for n in table.X.shape[::-1])
    tasks: dict[str, Callable[[Any], np.ndarray]] = {
        f"product with {N_COLUMNS} columns": lambda X: product_of(X, columns),
        f"sums of {N_COLUMNS} columns": lambda X: sums_of_products(X, slopes),
    }
    placed = torch_table(table.X, device)
    for name, task in tasks.items():
        _, first = seconds_of(lambda task=task: task(placed))
        found = [seconds_of(lambda task=task: task(placed))[1] for _ in range(5)]
        own = [seconds_of(lambda task=task: task(table.X))[1] for _ in range(3)]
        yield {
            "task": name,
            "seconds on the CPU": min(own),
            "seconds on the device": min(found),
            "with the first move": first,
            "difference": float(np.abs(task(placed) - task(table.X)).max() / task(table.X).std()),
        }


def linear_fits(table: Table, device: str) -> Iterator[dict[str, Any]]:
    """Fits to an array, by the CPU, and to a table, by the device."""
    few = table.some(2000)
    for name, estimator in LINEAR.items():
        clone(estimator).fit(torch_table(few.X, device), few.y, sensitive_features=few.groups)
        fits, times = {}, {}
        for where, X in (("CPU", table.X), ("device", torch_table(table.X, device))):
            fit = partial(clone(estimator).fit, X, table.y, sensitive_features=table.groups)
            fits[where], times[where] = seconds_of(fit)
        yield compared(name, table, fits, times)


def networks(table: Table, device: str) -> Iterator[dict[str, Any]]:
    """Networks whose parameter ``device`` says where they are trained."""
    few = table.some(500)
    for name, layers in NETWORKS.items():
        fits, times = {}, {}
        for where, chosen in (("CPU", "cpu"), ("device", device)):
            network = LossParityClassifier(
                0.02, hidden_layer_sizes=layers, max_epochs=3, new_row_folds=None, device=chosen, random_state=0
            )
            clone(network).set_params(max_epochs=1).fit(few.X, few.y, sensitive_features=few.groups)
            fit = partial(network.fit, table.X, table.y, sensitive_features=table.groups)
            fits[where], times[where] = seconds_of(fit)
        yield compared(name, table, fits, times)


def compared(task: str, table: Table, fits: dict[str, Any], times: dict[str, float]) -> dict[str, Any]:
    """Seconds of the same fit on both, its status, and how far the scores are apart."""
    own, found = (fits[where].decision_function(table.X) for where in ("CPU", "device"))
    (gap,) = fits["device"].constraint_values_.values()
    return {
        "task": task,
        "seconds on the CPU": times["CPU"],
        "seconds on the device": times["device"],
        "difference": float(np.abs(own - found).max() / own.std()),
        "status": fits["device"].status_,
        "gap": gap,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSV and print it."""
    parser = command_line(__doc__, "2,000 rows of every data set")
    options = parsed(parser, arguments)
    for category in (ConvergenceWarning, NewRowsWarning):  # the status is in the table, and seconds are asked for
        warnings.simplefilter("ignore", category)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    name = "devices_quick" if options.quick else "devices"
    rows = products, linear_fits
    runs = {a9a_dense: (networks,), acs_float: rows, generated: rows, acs_sparse: rows}
    lines: list[dict[str, Any]] = []
    for load, parts in runs.items():
        table = load().some(2000 if options.quick else None)
        for line in chain.from_iterable(measure(table, device) for measure in parts):
            what = {"data": table.name, "rows": table.y.size, "columns": table.X.shape[1]}
            lines.append(what | line | {"device": card, "threads": torch.get_num_threads()})
            save(significant(pd.DataFrame(lines)), name, show=False)  # what there is, if it is cut off
    found = significant(pd.DataFrame(lines))
    found.insert(5, "times faster", (found["seconds on the CPU"] / found["seconds on the device"]).round(1))
    keep(found, "devices", options)


if __name__ == "__main__":
    main()
