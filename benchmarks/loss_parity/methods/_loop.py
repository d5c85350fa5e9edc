"""The loop that all methods with a time limit share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.loss_parity.methods import Setting

__all__ = ["follow", "record_times"]

#: Records of a run: the first ones close together, and then as far from each other as these many in the whole time.
EARLY, EVEN = 25, 30


def record_times(seconds: float) -> np.ndarray:
    """When a run has records, ascending, in seconds of training."""
    early, even = np.geomspace(seconds / 300, seconds, EARLY), np.linspace(0, seconds, EVEN + 1)[1:]
    return np.unique(np.concatenate([early, even]).round(6))


def follow(setting: Setting, steps: Iterator[None], where: Callable[[], np.ndarray]) -> int:
    """Take steps until the time is over, with records on the way; returns how many there were.

    Parameters
    ----------
    setting : Setting
        Has a time limit.
    steps : iterator
        Takes a step of the method whenever it is asked for the next item.
    where : callable
        Returns the parameters as they are.
    """
    assert setting.seconds is not None  # these methods have no other end
    due = iter(record_times(setting.seconds)[:-1])  # the last one is what the run returns
    following, iterations = next(due), 0
    for iterations, _ in enumerate(steps, start=1):
        elapsed = setting.elapsed
        if elapsed >= setting.seconds:
            break
        if elapsed >= following:
            setting.record(iterations, where())
            following = next((time for time in due if time > elapsed), np.inf)
    return iterations
