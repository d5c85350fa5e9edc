"""The solvers of `fairconstrained.LossParityClassifier`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.loss_parity.methods import BATCH, Outcome, Setting
from benchmarks.loss_parity.network import HIDDEN, parameters_of
from fairconstrained import LossParityClassifier
from fairconstrained.exceptions import ConvergenceWarning

#: More epochs than any time limit has room for.
_ENDLESS = 10**9


def fit(setting: Setting, solver: str, *, batch_size: int = BATCH, **params: Any) -> Outcome:
    """Fit with a solver; a time limit, if there is one, takes the place of its own number of epochs."""
    if setting.seconds is not None:
        params |= {"max_time": setting.seconds, "max_epochs": _ENDLESS}
    train = setting.train
    steps = max(1, train.y.size // batch_size)
    counter = _Counter(steps, setting.seconds)

    def record(entry: Mapping[str, Any]) -> None:
        setting.record(counter.after(entry), entry["params"])

    model = LossParityClassifier(
        setting.kappa,
        **setting.constraint.PARAMS,
        solver=solver,
        hidden_layer_sizes=HIDDEN,
        batch_size=batch_size,
        device="cpu",
        callbacks=[record],
        random_state=setting.seed,
        **params,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap tells
        model.fit(train.X, train.y, sensitive_features=train.groups)
    return Outcome(parameters_of(model.module_), counter.iterations)


class _Counter:
    """Iterations so far; the records tell of epochs, and the last one may have been cut off by the time limit."""

    def __init__(self, steps: int, limit: float | None) -> None:
        self._steps, self._limit = steps, limit
        self._last, self.iterations = 0.0, 0.0

    def after(self, entry: Mapping[str, Any]) -> float:
        """Iterations with one more epoch."""
        seconds, epochs = entry["seconds"], entry["n_iter"]
        if self._limit is None or seconds < self._limit:
            self.iterations = float(epochs * self._steps)
            self._last = seconds
        elif epochs == 1:
            self.iterations = np.nan
        else:  # as fast as the epochs before it
            self.iterations *= min(seconds / self._last, epochs / (epochs - 1))
        return self.iterations
