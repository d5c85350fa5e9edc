"""A method of another package: the package that it needs, its notions, and how it is fitted and asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.any_model.methods import Outcome, quiet
from benchmarks.any_model.notions import Response
from benchmarks.any_model.trees import Seconds
from benchmarks.notions.setting import Setting


@dataclass(frozen=True)
class Peer:
    """A method of another package.

    Parameters
    ----------
    fit : callable
    package : str
        Name by which it is imported.
    notions : tuple of str
    """

    fit: Callable[[Setting], Outcome]
    package: str
    notions: tuple[str, ...]


def answered(setting: Setting, fit: Callable[[Any], Callable[[Any], np.ndarray]]) -> Outcome:
    """Fit on the training rows, which is timed, and take the decisions on both parts.

    ``fit`` takes the training rows and returns a function from rows to decisions, or to their probabilities.
    """
    seconds = Seconds()
    with seconds.count(), quiet():
        decisions = fit(setting.split.train)
    with quiet():
        test, train = (Response(np.asarray(decisions(part), dtype=float).ravel()) for part in setting.split[::-1])
    return Outcome(setting.bound, test, train, seconds.total)
