"""Tightening of the surrogates: their blur, and the margins that they keep from ``kappa``."""

from __future__ import annotations

import numpy as np

from fairconstrained.constraints import BoundConstraint

__all__ = ["N_RESTARTS", "Surrogates"]

#: Last blur of the surrogate in standard deviations of the scores, narrow enough that the margins have little left to
#: correct.
_FINAL_BLUR = 0.02
#: First and last blur of a run that begins anew, for the first and for the second time, in multiples of its first blur.
_WIDER = ((1.0, 0.5), (2.0, 2.0))
#: How often a run may begin anew.
N_RESTARTS = len(_WIDER)


class Surrogates:
    """How closely the surrogates follow the metrics: their blur, and the margins that they keep from ``kappa``.

    Attributes
    ----------
    blur : float
        Width of the surrogates, in standard deviations of the scores.
    scales : ndarray of shape (n_constraints,)
        Lengths of one unit of the metrics in units of the surrogates' components.
    margins : ndarray of shape (n_constraints,)
        Amounts that are subtracted from ``kappa``; negative where the surrogate is stricter than the metric.
    """

    def __init__(self, constraints: tuple[BoundConstraint, ...]) -> None:
        self._first = max((c.first_blur for c in constraints), default=_FINAL_BLUR)
        self.blur, self._final = self._first, _FINAL_BLUR
        #: Number by which the blur is divided after an iteration.
        self._narrowing = 2.0
        #: Whether the values of the surrogates are those of the metrics at the present scores.
        self._follows_metric = True
        self.margins = np.zeros(len(constraints))
        self._kappas = np.array([c.kappa for c in constraints])
        self.scales = np.array([c.scale for c in constraints])
        granularity = np.array([c.granularity for c in constraints])
        # A finer surrogate than this sees no more than a few rows at a time, and no slope.
        self._finest = 3 * float((granularity * self.scales).max(initial=0.0))

    @property
    def is_widest(self) -> bool:
        """Whether the blur is still the first one."""
        return self.blur >= self._first

    @property
    def is_narrowing(self) -> bool:
        """Whether the blur is still larger than planned."""
        return self.blur > self._final

    def start_narrow(self) -> None:
        """Begin with the final blur."""
        self.blur = self._final

    def narrow_in_two_steps(self) -> None:
        """Begin with the first blur, and reach the final one sooner."""
        self.blur, self._narrowing = self._first, (self._first / _FINAL_BLUR) ** 0.5

    def restart(self, n_restarts: int) -> None:
        """Begin anew, with surrogates that look further than a few rows; the last time they also keep their own values.

        Where scores have few values, most moves leave the metric as it is: surrogates that are set to it again and
        again do not tell how far the scores have moved, and narrow ones have no slope between two of the values. So
        they keep theirs until an iterate is feasible. ``n_restarts`` includes this time.
        """
        self.margins = np.zeros_like(self.margins)
        self.blur, self._final = (factor * self._first for factor in _WIDER[n_restarts - 1])
        self._follows_metric = n_restarts < N_RESTARTS

    def refined(self, constraints: tuple[BoundConstraint, ...], scores: np.ndarray) -> tuple[BoundConstraint, ...]:
        """The constraints with surrogates that are nearer to the metrics around these scores."""
        pairs = zip(constraints, self.margins, strict=True)
        refined = (c.refined(scores, blur=self.blur, margin=margin) for c, margin in pairs)
        return tuple(c if self._follows_metric else c.uncorrected() for c in refined)

    def tighten(self, violations: np.ndarray, unresolved: float, is_settled: np.ndarray) -> None:
        """Set the next blur, and then the margins, from the exact values less ``kappa``.

        ``unresolved`` is the largest component of the surrogates, which is for the multipliers to resolve and not for
        the margins; those that are settled may move all the same.
        """
        if not self._follows_metric and (violations <= 0).all():  # there is a point to improve on from now on
            self._follows_metric, self._final = True, self._first / 2
            self.margins = np.zeros_like(self.margins)
        if self.is_narrowing:
            self.blur = max(self.blur / self._narrowing, self._final)
            return
        resolved = (violations <= 0) | (violations > 2 * unresolved / self.scales) | is_settled
        self.margins = np.minimum(self.margins + resolved * violations / 2, self._kappas)
        if (self.margins >= self._kappas).any():
            # The surrogate has no tolerance left; only a finer one can do better, as far as there are rows to see.
            self.blur, self.margins = min(self.blur, max(self.blur / 2, self._finest)), self.margins / 2
