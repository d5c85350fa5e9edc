"""The search for bounds on training rows under which estimates for new rows are as small as they are to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Trial", "best_of", "next_margins"]

#: Bounds that are tried at most. Every one costs a fit without each fold.
_MOST_TRIALS = 5
#: How much an estimate is expected to fall by, for each unit that the bound falls by: before two trials have told it,
#: at least and at most. With less, a noisy estimate would lead far too low, and with more hardly anywhere.
_SLOPE, _LEAST_SLOPE, _LARGEST_SLOPE = 1.0, 0.25, 1.5
#: How much further a step leads than to where the estimate is expected to be small enough.
_FURTHER = 1.2
#: Share of a bound that one trial takes off at most. Bounds near zero leave hardly a model, and take the longest fits.
_LARGEST_STEP = 2 / 3
#: Multiples of the fall that is expected of a bound of zero, beyond which no bound will do, and the share of a bound
#: that has to be taken off before this is said: the noise of an estimate hides what smaller steps bring.
_HOPELESS, _TOLD_BY = 2.0, 0.5
#: Share of ``kappa`` that is worth one more trial, if a bound may be as much larger.
_WORTH_A_TRIAL = 0.2
#: Where that trial lies between the bound that is expected to be just small enough, and the one known to be.
_INWARDS = 0.25


class Trial(NamedTuple):
    """Estimates under one choice of bounds."""

    #: By how much the bounds on training rows are stricter than those asked for.
    margins: np.ndarray  # of shape (n_constraints,)
    #: By how much the estimates exceed what is aimed at; at most 0 where they do not.
    excess: np.ndarray  # of shape (n_constraints,)
    #: Whether one of the models gives all rows the same score. Then the estimates say nothing, and the bounds are
    #: small enough: smaller ones are likely to lead to constant scores as well.
    has_constant: bool = False

    @property
    def beyond(self) -> float:
        """The largest excess; the bounds are small enough where it is not positive."""
        return -np.inf if self.has_constant else float(np.nan_to_num(self.excess, nan=np.inf).max(initial=-np.inf))


def next_margins(trials: Sequence[Trial], largest: np.ndarray) -> np.ndarray | None:
    """Return the margins to try next, or None where the search ends.

    An estimate is a noisy function of the bound on training rows, which falls nearly always when the bound falls. Until
    an estimate is small enough, the bounds become smaller: by as much as the line through the last two trials tells,
    and a little more, since a bound slightly too large costs one more trial. Where that has led much further than
    needed, one trial in between looks for a larger bound, which costs less.

    Parameters
    ----------
    trials : sequence of Trial
        In the order in which they were made, the first one without margins.
    largest : ndarray of shape (n_constraints,)
        Margins that leave bounds of zero; infinite where a bound has no such end.
    """
    last = trials[-1]
    if len(trials) == _MOST_TRIALS:
        return None
    if last.beyond > 0:
        return None if any(trial.beyond <= 0 for trial in trials) else _larger(trials, largest)
    if len(trials) == 1 or trials[-2].beyond <= 0:
        return None
    return _between(trials[-2], last, largest)


def best_of(trials: Sequence[Trial]) -> int:
    """Return the number of the trial with the largest bounds that are small enough, else of the nearest estimates."""

    def rank(number: int) -> tuple[float, float]:
        trial = trials[number]
        return max(trial.beyond, 0.0), float(trial.margins.sum())

    return min(range(len(trials)), key=rank)


def _larger(trials: Sequence[Trial], largest: np.ndarray) -> np.ndarray | None:
    """Margins that are expected to be large enough; None where larger ones cannot help."""
    first, last = trials[0], trials[-1]
    left, is_missed = largest - last.margins, last.excess > 0
    slopes = np.full(left.shape, _SLOPE)
    if len(trials) > 1:
        needed = np.divide(last.excess, left, out=np.full(left.shape, np.inf), where=left > 0)
        is_told = (last.margins >= _TOLD_BY * largest) & (len(trials) > 2)  # one step may be flat by chance
        is_hopeless = (is_missed & is_told & (needed > _HOPELESS * np.maximum(_slopes(first, last), 0.0))).any()
        if is_hopeless or len(trials) == _MOST_TRIALS - 1:  # a bound of zero is the last that can help
            ends = np.where(is_missed & np.isfinite(left), left, 0.0)
            return last.margins + ends if ends.any() else None
        slopes = np.clip(_slopes(trials[-2], last), _LEAST_SLOPE, _LARGEST_SLOPE)
    steps = np.where(is_missed, np.minimum(_FURTHER * last.excess / slopes, _LARGEST_STEP * left), 0.0)
    return last.margins + steps if steps.any() else None


def _slopes(before: Trial, after: Trial) -> np.ndarray:
    """How much the excess has fallen by for each unit of margin, by constraint; `_SLOPE` where there was no step."""
    steps = after.margins - before.margins
    return np.divide(before.excess - after.excess, steps, out=np.full(steps.shape, _SLOPE), where=steps > 0)


def _between(missed: Trial, kept: Trial, largest: np.ndarray) -> np.ndarray | None:
    """Margins between too small ones and ones that are large enough; None where they would not be much smaller."""
    share = 0.5 if kept.has_constant else missed.beyond / (missed.beyond - kept.beyond)
    share += _INWARDS * (1 - share)
    step = kept.margins - missed.margins
    gain = (1 - share) * step
    return missed.margins + share * step if (gain > _WORTH_A_TRIAL * largest).any() else None
