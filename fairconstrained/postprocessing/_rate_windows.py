"""Rates of decisions at every threshold of a group, and bounds on them as windows that hold those of all groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairconstrained.cells import quotients
from fairconstrained.constraints import BoundConstraint, GroupRates
from fairconstrained.constraints.offsets import cuts_between
from fairconstrained.metrics.group_rates import Rate
from fairconstrained.objectives import DecisionLoss
from fairconstrained.postprocessing._choice import ROUNDING, Candidates, best_choice, best_decisions

__all__ = ["RateBound", "Thresholds", "check_rates"]

#: Precision of the least slack.
_LEAST_SLACK = 1e-6
#: Stands for the logarithm of a rate of zero, further from any other one than a window is wide.
_OF_ZERO = -1e3
#: Scores and targets that stand for true negatives, false positives, false negatives and true positives.
_SCORES, _TARGETS = np.array([[-1.0, 1.0, -1.0, 1.0], [-1.0, -1.0, 1.0, 1.0]])[:, :, None]


class _Window(NamedTuple):
    """Numbers that have to lie within a width of each other, of those thresholds that a bound allows a group.

    A rule makes those of the rates among all targets, of shape (n_targets, n_thresholds); a window is about one.
    """

    numbers: np.ndarray
    width: float
    allowed: np.ndarray


def _difference(rates: np.ndarray, kappa: float) -> _Window:
    return _Window(rates, kappa, ~np.isnan(rates))


def _ratio(rates: np.ndarray, kappa: float) -> _Window:
    """Differences of logarithms; where all rates are zero, there is no ratio, and otherwise zeros are alike."""
    if kappa >= 1:
        return _difference(rates, np.inf)
    logarithms = np.log(rates, out=np.full(rates.shape, _OF_ZERO), where=rates > 0)
    return _Window(logarithms, -np.log1p(-kappa), ~np.isnan(rates) & (rates > 0).any(axis=0))


def _floor(rates: np.ndarray, kappa: float) -> _Window:
    return _Window(rates, np.inf, rates >= kappa - ROUNDING)


def _ceiling(rates: np.ndarray, kappa: float) -> _Window:
    return _Window(rates, np.inf, rates <= kappa + ROUNDING)


#: Windows by rule. All but a floor are looser for a larger kappa.
_RULES: dict[str, Callable[[np.ndarray, float], _Window]] = {
    "difference": _difference,
    "ratio": _ratio,
    "floor": _floor,
    "ceiling": _ceiling,
}


@dataclass(frozen=True)
class RateBound:
    """A bound on rates of decisions in groups."""

    rate: Rate
    rule: str  # {"difference", "ratio", "floor", "ceiling"}
    #: The bound, or the share of a row where that is larger: finer bounds would only choose thresholds at which one row
    #: decides.
    kappa: float
    #: Whether the bound is about each group; it may leave out those that are too small.
    compares: np.ndarray  # of bool, of shape (n_groups,)

    @classmethod
    def of(cls, constraint: GroupRates, bound: BoundConstraint) -> RateBound:
        """The bound of a constraint, and of the same on data."""
        renamed = bound.compared_as.items()
        compares = np.array([(str(label), None) not in renamed for label in bound.data.labels])
        return cls(check_rates(constraint), constraint.rule, max(bound.kappa, bound.granularity), compares)

    def windows(self, counts: np.ndarray, groups: np.ndarray, slack: float) -> list[_Window]:
        """Windows at the four counts of every threshold (see `Thresholds`), for a bound that is looser by a slack.

        Thresholds of a group that is not compared have NaN as numbers.
        """
        kappa = self.kappa - slack if self.rule == "floor" else self.kappa + slack
        numbers, width, allowed = _RULES[self.rule](self._rates(counts), kappa)
        is_free = ~self.compares[groups]
        numbers, allowed = np.where(is_free, np.nan, numbers), allowed | is_free
        return [_Window(own, width, kept) for own, kept in zip(numbers, allowed, strict=True)]

    def _rates(self, counts: np.ndarray) -> np.ndarray:
        """The rate among the rows of each target, NaN where there are none; of shape (n_targets, n_thresholds)."""
        values, weights = self.rate.values(_SCORES, _TARGETS), self.rate.weights(counts, _SCORES, _TARGETS)
        found = []
        for target in self.rate.targets or (None,):
            own = weights if target is None else weights * (target == _TARGETS)
            hits, mass = (values * own).sum(axis=0), own.sum(axis=0)
            found.append(quotients(hits, mass))
        return np.stack(found)


def check_rates(constraint: GroupRates) -> Rate:
    """Return the rate of a constraint; raises ValueError where thresholds of groups cannot be searched for it."""
    rate = constraint.named_rate()
    if not rate.counts_rows:
        raise ValueError(
            f"rate={constraint.rate!r} does not depend on thresholds, which are all that is chosen here; bound a rate "
            "of decisions, such as 'selection' or 'true_positive'."
        )
    if constraint.rule not in _RULES:
        raise ValueError(
            f"rule={constraint.rule!r} compares with all rows, whose rate depends on the thresholds of all groups at "
            f"once. Choose one of {sorted(_RULES)}."
        )
    if constraint.within is not None or not isinstance(constraint.among, str):
        raise ValueError(
            "thresholds of groups are searched for rates among all rows of a group or those of a label: set "
            "within=None, and among='all', 'positives', 'negatives' or a label."
        )
    return rate


@dataclass(frozen=True, eq=False)
class Thresholds:
    """All thresholds of all groups that decide differently, those of the first group first."""

    #: Scores above which rows are positive.
    at: np.ndarray  # of shape (n_thresholds,)
    groups: np.ndarray  # of int, of shape (n_thresholds,)
    #: Weights of the true negatives, false positives, false negatives and true positives of the group.
    counts: np.ndarray  # of shape (4, n_thresholds)
    #: Sums over the positive rows that an objective is a function of.
    columns: np.ndarray  # of shape (n_columns, n_thresholds)

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        is_positive: np.ndarray,
        weights: np.ndarray,
        parts: Sequence[slice],
        columns: np.ndarray,
    ) -> Thresholds:
        """Find them for rows that are ordered by group; ``parts`` are the rows of every group."""
        groups, at, counts, sums = [], [], [], []
        for group, rows in enumerate(parts):
            of_label = [weights[rows] * (is_positive[rows] == label) for label in (False, True)]
            cuts = cuts_between(scores[rows], *of_label)
            missed = [own.sum() - above for own, above in zip(of_label, (cuts.rate, cuts.gain), strict=True)]
            counts.append(np.maximum([missed[0], cuts.rate, missed[1], cuts.gain], 0.0))
            sums.append([cuts_between(scores[rows], column, column).gain for column in columns[:, rows]])
            groups.append(np.full(cuts.at.size, group))
            at.append(cuts.at)
        return cls(np.concatenate(at), np.concatenate(groups), np.hstack(counts), np.hstack(sums))

    def candidates(self, bounds: Sequence[RateBound], slack: float) -> tuple[np.ndarray, Candidates] | None:
        """Numbers of the thresholds that all bounds allow, each looser by ``slack``, and the `Candidates` made of them.

        None if a group has no such threshold.
        """
        windows = [window for bound in bounds for window in bound.windows(self.counts, self.groups, slack)]
        allowed = np.logical_and.reduce([np.ones(self.at.size, dtype=bool), *(window.allowed for window in windows)])
        places = np.flatnonzero(allowed)
        if np.unique(self.groups[places]).size < self.groups[-1] + 1:
            return None
        kept = [window for window in windows if np.isfinite(window.width)]
        numbers = np.array([window.numbers[places] for window in kept]).reshape(len(kept), places.size)
        return places, Candidates(self.groups[places], numbers, np.array([window.width for window in kept]))

    def best(self, bounds: Sequence[RateBound], loss: DecisionLoss) -> np.ndarray:
        """Numbers of the thresholds of least loss within the bounds, or else of those that exceed them least.

        Raises ValueError if no thresholds give every group the rates that are bounded.
        """
        chosen = self._best(bounds, loss, 0.0)
        if chosen is None:
            chosen = self._best(bounds, loss, self._least_slack(bounds))
        if chosen is None:
            raise ValueError(
                "a group has no threshold at which all bounded rates exist, such as a share of positives among "
                "positive decisions. Drop a bound, or give the estimator more rows of that group."
            )
        return chosen

    def _best(self, bounds: Sequence[RateBound], loss: DecisionLoss, slack: float) -> np.ndarray | None:
        found = self.candidates(bounds, slack)
        if found is None:
            return None
        places, candidates = found
        chosen = best_decisions(candidates, self.columns[:, places], loss)
        return None if chosen is None else places[chosen]

    def _least_slack(self, bounds: Sequence[RateBound]) -> float:
        """The least slack with which there are thresholds within the bounds, found by halving."""
        low, high = 0.0, 1.0
        while high - low > _LEAST_SLACK:
            middle = (low + high) / 2
            found = self.candidates(bounds, middle)
            is_possible = found and best_choice(found[1], np.zeros(found[0].size), -np.inf) is not None
            low, high = (low, middle) if is_possible else (middle, high)
        return high
