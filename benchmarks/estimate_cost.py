"""Seconds of the estimates for new rows beside those of the fits: ``python -m benchmarks.estimate_cost``.

Fits with default arguments to the first split of every data set, by notion, and adds up the processor seconds of the
estimate (one thread, means over ``kappa`` of 0.02 and 0.05). The rest is the fit, with the second one that makes up for
the optimism of losses and AUCs. ``--quick`` takes a small generated data set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from benchmarks._common import command_line, keep, parsed, set_threads
from benchmarks.any_model.data import CASES, Part, load_split
from benchmarks.any_model.methods import quiet
from benchmarks.any_model.notions import NOTIONS
from benchmarks.any_model.trees import Seconds
from benchmarks.new_rows.methods import DATA, features_of, linear_model
from fairconstrained import FairBoostingClassifier, LossParityClassifier
from fairconstrained.estimators.new_rows import TellsNewRows

KAPPAS = (0.02, 0.05)
#: Methods of estimators that estimate, and do nothing else.
_ESTIMATES = ("_estimated", "_estimated_by_steps", "_estimated_after", "_gaps_of")


class Clock(Seconds):
    """Processor seconds of the outermost of some calls, which call each other."""

    _is_running = False

    def counting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method, which is counted."""

        def counted(*args: Any, **kwargs: Any) -> Any:
            if self._is_running:
                return method(*args, **kwargs)
            self._is_running = True
            try:
                with self.count():
                    return method(*args, **kwargs)
            finally:
                self._is_running = False

        return counted


@contextmanager
def clock_of_estimates() -> Iterator[Clock]:
    """A clock that counts the estimates of all fits, which are made in this process."""
    clock = Clock()
    with ExitStack() as stack:
        for owner, name in product(FairBoostingClassifier.__mro__, _ESTIMATES):
            if name in vars(owner):  # boosted trees have estimates of their own
                stack.enter_context(mock.patch.object(owner, name, clock.counting(vars(owner)[name])))
        stack.enter_context(mock.patch.object(TellsNewRows, "_begun", lambda self, estimate, problem: estimate))
        yield clock


def models() -> dict[str, Callable[[float], Any]]:
    """Estimators with their default arguments, by what they bound; given ``kappa``."""
    linear = {name: partial(linear_model, notion, random_state=0) for name, notion in NOTIONS.items()}
    rates = ("demographic_parity", "equalized_odds")
    errors = {f"{name}, fewest errors": partial(linear[name], objective="zero_one") for name in rates}
    trees = {f"{name}, boosted trees": partial(FairBoostingClassifier, constraint=name) for name in rates}
    return linear | errors | {"loss_parity, network": partial(LossParityClassifier, random_state=0)} | trees


def seconds_of(model: Any, rows: Part) -> tuple[float, float]:
    """Processor seconds of a fit without the estimate, and of the estimate."""
    whole = Seconds()
    with clock_of_estimates() as estimates, quiet(), whole.count():
        model.fit(rows.X, rows.y, sensitive_features=rows.groups)
    return whole.total - estimates.total, estimates.total


def table(data: str, kappas: tuple[float, ...] = KAPPAS) -> pd.DataFrame:
    """A line for every notion: seconds of the fits and of the estimates, and how many times as long these take."""
    lines = []
    for name, model in models().items():
        rows = load_split(data, 0).train if "trees" in name else features_of(data, 0).train
        fit, estimate = np.mean([seconds_of(model(kappa), rows) for kappa in kappas], axis=0)
        lines.append({"data": CASES[data].title, "bound": name, "fit": fit, "estimate": estimate})
    return pd.DataFrame(lines).assign(times=lambda each: each.estimate / each.fit)


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSV and print it."""
    parser = command_line(__doc__, "one small generated data set, to see that it runs")
    options = parsed(parser, arguments)
    set_threads(1)
    found = table("generated", KAPPAS[1:]) if options.quick else pd.concat(map(table, DATA))
    keep(found, "estimate_cost", options, shown=found.round({"fit": 3, "estimate": 3, "times": 2}))


if __name__ == "__main__":
    main()
