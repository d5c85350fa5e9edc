"""The default solver on the Oklahoma sample, ten seeds: gap on the training part, inaccuracy on the test part, time.

``seconds`` is of wall-clock, ``cpu_seconds`` of the processor, with one thread.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from benchmarks._common import set_threads
from benchmarks.loss_parity.constraints import CONSTRAINTS
from benchmarks.loss_parity.datasets import load_parts
from benchmarks.loss_parity.network import HIDDEN
from benchmarks.loss_parity.tasks import KAPPA, N_SEEDS
from fairconstrained import LossParityClassifier


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Measure runs of the default solver; the last line has the largest gap and the means of the others."""
    set_threads(1)
    runs = pd.DataFrame([_run(seed) for seed in range(2 if quick else N_SEEDS)])
    last = runs.drop(columns="status").mean().to_dict() | {"train_gap": runs.train_gap.max()}
    status = f"{(runs.status == 'completed').sum()} of {len(runs)} completed"
    every = pd.concat([runs, pd.DataFrame([last | {"status": status}])], ignore_index=True)
    every["seed"] = [*runs.seed.astype(int).astype(str), "all"]
    return {"auto": every}


def _run(seed: int) -> dict[str, float | str]:
    train, test = load_parts("acs_income_ok", seed)
    model = LossParityClassifier(KAPPA, hidden_layer_sizes=HIDDEN, random_state=seed)
    begin, cpu_begin = time.perf_counter(), time.process_time()
    model.fit(train.X, train.y, sensitive_features=train.groups)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    scores = {name: model.decision_function(part.X) for name, part in (("train", train), ("test", test))}
    return {
        "seed": seed,
        "train_gap": CONSTRAINTS["demographic_parity"].gap(train.y, scores["train"], train.groups),
        "test_gap": CONSTRAINTS["demographic_parity"].gap(test.y, scores["test"], test.groups),
        "train_inaccuracy": float(np.mean((scores["train"] > 0) != (train.y > 0))),
        "test_inaccuracy": float(np.mean((scores["test"] > 0) != (test.y > 0))),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "status": model.status_,
    }
