"""The pull of constraints on scores that grow by themselves: surrogates, multipliers, and how strongly they react."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, compress, pairwise
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor
from typing_extensions import override

from fairconstrained.objectives import BoundObjective
from fairconstrained.problem import Start
from fairconstrained.solvers._decision_costs import follow_costs
from fairconstrained.terms import Terms, TermsPoint
from fairconstrained.views import RowLosses

__all__ = ["STEP", "Pressure", "Pull"]

#: Blur of the surrogates in standard deviations of the scores, at first and finally. The scores of a few trees have few
#: values, of which a narrow surrogate sees none or a whole group. It stays wider where the bounded scores are those of
#: trees which have not seen the rows: trees memorise which rows are next to the threshold, so that boosters of
#: different rows differ there, and their mean has a larger gap than each of them.
_FIRST_BLUR, _FINAL_BLUR, _FINAL_BLUR_OF_UNSEEN = 1.0, 0.1, 0.3
#: Share of all rounds from which on wide surrogates take the place of narrow ones where a metric exceeds its bound, and
#: by how much of ``kappa`` it has to do so.
_NARROW_ROUNDS, _FAR = 0.5, 0.25
#: Share of all rounds in which the blur is halved, and after which the reaction may change.
_PERIOD = 1 / 15
#: Change of the multipliers for a violation: the part that follows the present violation, in units of what the next
#: tree would need to resolve it, and the share of it by which the lasting part moves in a round.
_PROPORTIONAL, _LASTING, _FASTEST = 2.0, 0.1, 0.3
#: Largest reactions to a violation, and to the slack of a constraint that has a multiplier. They are doubled where this
#: has not fallen by a quarter within a period, and halved where it has changed sign.
_STRONGEST, _STRONGEST_OF_SLACK = 100.0, 4.0
#: Length of the step of a row in standard deviations of the scores (of at most 3) that the constraints alone can cause.
STEP, _WIDEST = 0.6, 3.0
#: Largest sum of the absolute slopes of the constraints, in multiples of that of the objective. More would only push
#: rows apart whose gap no tree can close.
_MOST = 3.0
#: Rounds that slopes of the constraints serve besides their own: a tree changes them little, and they take longer.
_OLDEST = 1
#: Shares of a violation that the margin from ``kappa`` grows by, and of the margin that it loses, at every measurement;
#: and the largest margin as a share of ``kappa``.
_TIGHTEN, _EASE, _MOST_OF_KAPPA = 0.2, 0.1, 0.5
#: Share of the rounds that are left in which learning has to bring losses within their bounds; it slows down.
_IN_TIME = 0.2
#: Share of a round in the mean of the multipliers that is reported.
_ROUND = 0.1
#: Rounds of curvature below this share of the mean count as much as that when the reaction of a tree is estimated.
_LEAST = 0.3


class Pull(NamedTuple):
    """The pull of the constraints on the scores in a round."""

    #: slopes and curvature: their slopes in the scores, and the curvature that holds the steps along them short.
    slopes: np.ndarray  # of shape (n_samples,)
    curvature: np.ndarray  # of shape (n_samples,)
    #: Cost of deciding a row positive, less that of deciding it negative; zero unless the objective has such costs.
    costs: np.ndarray  # of shape (n_samples,)


class _Direction(NamedTuple):
    """Where the constraints pulled last: scores there, slopes, costs of decisions, and norm of the multipliers."""

    scores: np.ndarray
    slopes: np.ndarray
    costs: np.ndarray
    norm: float


@dataclass(frozen=True)
class _Nothing(BoundObjective):
    """An objective of zero: the constraints are differentiated alone."""

    @override
    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        return scores.new_zeros(1)


class Pressure:
    r"""Slopes of :math:`\sum_j m_j c_j(s)` in the scores, with multipliers that follow the violations.

    In every round, :math:`m_j = \max(\lambda_j + \rho c_j, 0)`, and then :math:`\lambda_j \leftarrow \max(\lambda_j +
    0.1 \rho c_j, 0)`, where the :math:`c_j` agree with the exact metrics at the scores of the last `refine`. The weight
    :math:`\rho` is relative to the response of the scores: with the slopes d of a combination of the :math:`c_j`, a
    Newton step moves it by :math:`\sum_i d_i^2 / h_i` per unit of its multiplier, and a tree, whose leaves move as one,
    by :math:`\sum_L (\sum_{i \in L} d_i)^2 / \sum_{i \in L} h_i`. The geometric mean of the two is the response,
    because later trees can follow slopes that this one cannot.

    There may be several boosters, each with its scores of all rows, and bounds on scores by those that have not seen
    the row. Multipliers and margins are those of these, and the slopes those of each booster with these multipliers.
    Where decisions at a threshold are compared then, and a bound is exceeded in the second half of the rounds, the
    surrogate becomes the logistic function of width one, with a slope for every row: narrow ones move the few rows next
    to the threshold, which trees memorise, and unseen rows do not follow.

    Where the objective has costs of decisions, constraints on decisions add to those of all rows, beside their slopes
    at the threshold.

    Bounds on mean losses are exceeded by the first scores, and learning alone brings these losses down. They do not
    pull while it would do so in a fifth of the rounds that are left, at its present pace: the multipliers would follow
    how little is learnt yet, and the weights of rows that come of it hinder learning.

    Parameters
    ----------
    terms : Terms
        Terms of the rows.
    start : Start or None
        A start with multipliers.
    n_rounds : int
        Rounds to come, which say how fast surrogates and multipliers have to be.
    n_before : int, default=0
        Rounds before these, whose scores are kept.
    for_unseen_rows : bool, default=False
        Whether the bounded scores are those of trees that have not seen the rows.
    has_costs : bool, default=False
        Whether the objective has costs of decisions, which constraints can add to.
    step : float, default=0.6
        Length of the step of a row, in standard deviations of the scores, that the constraints alone can cause.

    Attributes
    ----------
    mean : ndarray of shape (n_components,)
        Mean of the multipliers over about the last ten rounds.
    """

    def __init__(
        self,
        terms: Terms,
        start: Start | None,
        n_rounds: int,
        n_before: int = 0,
        for_unseen_rows: bool = False,
        has_costs: bool = False,
        step: float = STEP,
    ) -> None:
        constraints, self._lasting = (start or Start(None)).continued(terms.constraints)
        nothing = _Nothing(terms.objective.loss, terms.data)
        self._has_costs, self._widens = has_costs, for_unseen_rows
        self._final_blur = _FINAL_BLUR_OF_UNSEEN if for_unseen_rows else _FINAL_BLUR
        self._last_narrow = _NARROW_ROUNDS * (n_before + n_rounds) - n_before
        self._step = step
        self._terms = Terms(nothing, constraints, terms.data, terms.threshold)
        self.mean = self._lasting.copy()
        self._kappas = np.array([c.kappa for c in constraints])
        self._margins = np.zeros(len(constraints))
        self._waits = np.array([c.is_fitted_loss for c in constraints], dtype=bool)
        self._n_planned, self._pace = n_rounds, np.full(len(constraints), np.inf)
        self._last_exceeded: tuple[int, np.ndarray] | None = None
        self._n_rounds, self._spread = 0, 1.0
        self._period = max(round(_PERIOD * n_rounds), 1)
        self._next_change = self._period
        self._lasting_share = max(_LASTING, min(_FASTEST, 1.5 / self._period))
        self._response, self._gain, self._last_worst = 0.0, 1.0, (0, 0.0)
        self._age, self._last = _OLDEST, list[Pull]()
        self._direction: _Direction | None = None
        self.worst = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the components."""
        return self._terms.component_names

    @property
    def begins_late(self) -> bool:
        """Whether there are bounds that may have waited before they pull, and the response is not known yet."""
        return not self._response and any(c.is_fitted_loss for c in self._terms.constraints)

    @property
    def blur(self) -> float:
        """Blur of the surrogates, in standard deviations of the scores."""
        return max(self._final_blur, _FIRST_BLUR * 0.5 ** (self._n_rounds / self._period))

    def components(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Components and multipliers of every constraint, for a `Start`."""
        return tuple(c.components for c in self._terms.constraints), tuple(self._lasting[part] for part in self._parts)

    @property
    def _parts(self) -> list[slice]:
        """Places of the components of every constraint among all."""
        sizes = [len(c.component_names) for c in self._terms.constraints]
        return [slice(a, b) for a, b in pairwise(accumulate(sizes, initial=0))]

    def refine(self, scores: np.ndarray, judged: np.ndarray) -> None:
        """Bring the surrogates to the exact metrics at the scores that are bounded.

        The next margins are to make up for the exact violations there, which are ``judged``.
        """
        if self._widens and self._n_rounds >= self._last_narrow and (judged > _FAR * self._kappas).any():
            self._widen()
        refined = self._terms.refined(scores, self.blur, self._margins)
        new = [len(c.component_names) for c in refined.constraints]
        self._lasting, self.mean = (self._extended(old, new) for old in (self._lasting, self.mean))
        self._terms = refined
        spread = float(scores.std())
        self._spread = spread if spread > 1e-9 * np.abs(scores).max() else 1.0
        self._age = _OLDEST
        self._set_waits(judged)
        self._set_margins(np.where(self._waits, 0.0, judged))

    def _widen(self) -> None:
        """Give the surrogates of decisions slopes for all rows, from now on."""
        self._widens = False
        wide = (c if c.decision_threshold is None else c.with_logistic_slopes() for c in self._terms.constraints)
        self._terms = replace(self._terms, constraints=tuple(wide))

    def _set_waits(self, judged: np.ndarray) -> None:
        """Let bounds on losses wait as long as these fall fast enough to be within the bounds in time."""
        before, exceeded = self._last_exceeded, judged.clip(min=0.0)
        self._last_exceeded = self._n_rounds, exceeded
        if before is not None and self._n_rounds > before[0]:
            pace = (before[1] - exceeded) / (self._n_rounds - before[0])
            self._pace = np.where(np.isinf(self._pace), pace, (self._pace + pace) / 2)
            self._waits &= exceeded <= self._pace * _IN_TIME * (self._n_planned - self._n_rounds)

    def _extended(self, old: np.ndarray, sizes: list[int]) -> np.ndarray:
        """Values of the components with zeros for those that are new."""
        pairs = zip(self._parts, sizes, strict=True)
        return np.concatenate([np.pad(old[part], (0, size - part.stop + part.start)) for part, size in pairs])

    def pull(self, scores: np.ndarray, boosters: Sequence[np.ndarray], force: float) -> list[Pull]:
        """Slopes, curvature and costs of this round, for each of some boosters with these scores.

        ``scores`` are those that are bounded; ``force`` is the sum of the absolute slopes of the objective, or of its
        costs of decisions, for the first booster.
        """
        self._n_rounds += 1
        moves = any(c.n_aux for c in self._terms.constraints)  # thresholds, say, that follow the scores
        if self._age < _OLDEST and not moves:
            self._age += 1
            return self._last
        self._age, self._last = 0, self._new_pull(scores, boosters, force)
        return self._last

    def _new_pull(self, scores: np.ndarray, boosters: Sequence[np.ndarray], force: float) -> list[Pull]:
        point = self._at(scores)
        excess = point.constraints
        self.worst = float(excess.max(initial=0.0))
        for part in compress(self._parts, self._waits):
            excess[part] = excess[part].clip(max=0.0)
        self._set_gain(excess)
        multipliers = self._multipliers(excess)
        self._direction = None
        if not multipliers.any():
            return [self._no_pull()] * len(boosters)
        pulls = [self._pull_on(each, point if each is scores else self._at(each), multipliers) for each in boosters]
        slopes, _, costs = pulls[0]
        self._direction = _Direction(boosters[0], slopes, costs, float(np.linalg.norm(multipliers)))
        share = min(1.0, _MOST * force / max(float(np.abs(slopes).sum()), np.finfo(float).tiny))
        if share == 1:
            return pulls
        self._lasting = self._lasting * share
        return [Pull(*(share * each for each in pull)) for pull in pulls]

    def _at(self, scores: np.ndarray) -> TermsPoint:
        return self._terms.at_scores(torch.from_numpy(scores.copy()), self._terms.initial_aux(scores))

    def _pull_on(self, scores: np.ndarray, point: TermsPoint, multipliers: np.ndarray) -> Pull:
        """The pull on the scores of a booster, of whatever strength it comes to."""
        costs, slopes = self._costs(scores, multipliers), point.slopes(0.0, multipliers)[0].numpy()
        others, curvature = self._convex_curvature(scores, multipliers)
        straight = slopes if others is multipliers else point.slopes(0.0, others)[0].numpy()
        curvature = curvature + np.abs(straight) / (self._step * min(self._spread, _WIDEST))
        return Pull(slopes, curvature, costs)

    def _no_pull(self) -> Pull:
        zeros = np.zeros(self._terms.data.n_samples)
        return Pull(zeros, zeros, zeros)

    def _costs(self, scores: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        """Costs of deciding each row positive, of the constraints that are about these decisions."""
        costs = np.zeros_like(scores)
        if self._has_costs:
            for constraint, part in zip(self._terms.constraints, self._parts, strict=True):
                if constraint.decision_threshold == self._terms.threshold:
                    own = constraint.decision_costs(scores, multipliers[part])
                    costs += 0.0 if own is None else own
        return costs

    def _convex_curvature(self, scores: np.ndarray, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers of the constraints that have no curvature of their own, and the curvature of the others.

        Bounds on mean losses from above are weights of the rows in these losses, whose Newton steps are known.
        """
        curvature = np.zeros_like(scores)
        for constraint, part in zip(self._terms.constraints, self._parts, strict=True):
            if isinstance(constraint, RowLosses) and constraint.row_loss.is_smooth_and_convex:
                weights, _ = constraint.row_weights(multipliers[part])
                if weights.any() and weights.min() >= 0:
                    at = torch.from_numpy(scores.copy())
                    curvature += weights * constraint.row_loss.curvature(at, constraint.data.y).numpy()
                    multipliers = multipliers.copy()
                    multipliers[part] = 0.0
        return multipliers, curvature

    def _multipliers(self, excess: np.ndarray) -> np.ndarray:
        """The multipliers of this round; moves the lasting ones."""
        if not self._response:  # not known before the first tree: any small pull shows it
            pull = excess.clip(min=0.0)
            return np.maximum(self._lasting, 1e-3 * pull / max(pull.max(initial=0.0), 1e-3))
        weight = self._gain * _PROPORTIONAL / self._response
        multipliers = np.maximum(self._lasting + weight * excess, 0)
        self._lasting = np.maximum(self._lasting + self._lasting_share * weight * excess, 0)
        self.mean = self.mean + _ROUND * (multipliers - self.mean)
        return multipliers

    def _set_margins(self, judged: np.ndarray) -> None:
        """Tighten the bounds of the surrogates where the exact ones are exceeded, and give way where they are not.

        The surrogates agree with the metrics where they were refined. So a bound that stays exceeded is one that the
        multipliers do not reach while trees are added, and for a metric that is the largest of many differences
        another one of these takes the place of each that they resolve.
        """
        margins = (1 - _EASE) * self._margins + _TIGHTEN * judged.clip(min=0.0)
        self._margins = np.minimum(margins, _MOST_OF_KAPPA * self._kappas)

    def _set_gain(self, excess: np.ndarray) -> None:
        if self._n_rounds < self._next_change or not excess.size:
            return
        self._next_change = self._n_rounds + self._period
        active = (excess > 0) | (self._lasting > 0)  # violated, or slack although something is paid for it
        at = int(np.where(active, np.abs(excess), -1.0).argmax())
        worst = float(excess[at]) if active.any() else 0.0
        last_at, last = self._last_worst
        # Two components of one difference are never violated at once: it is the last one that shows an overshoot.
        if last_at < excess.size and float(excess[last_at]) * last < 0:
            self._gain = max(self._gain / 2, 1.0)
        elif abs(worst) > 0.75 * abs(last) > 0:
            most = _STRONGEST if worst > 0 else max(self._gain, _STRONGEST_OF_SLACK)
            self._gain = min(2 * self._gain, most)
        self._last_worst = at, worst

    def observe(self, change: np.ndarray, curvature: np.ndarray) -> None:
        """Estimate how the scores respond, from the change by a tree.

        ``change`` is that of the scores of the first booster, the same for the rows of a leaf, and ``curvature`` that
        of the objective there.
        """
        if self._direction is None:
            return
        at, threshold = self._direction, self._terms.threshold
        pull = (at.slopes + follow_costs(at.costs, expit(at.scores - threshold))[0]) / at.norm
        direction = at.slopes / at.norm
        curvature = np.maximum(curvature, _LEAST * curvature.mean())
        _, leaf = np.unique(np.round(change, 9), return_inverse=True)
        together = np.bincount(leaf, direction) * np.bincount(leaf, pull)
        of_tree = float(np.abs(together / np.bincount(leaf, curvature)).sum())
        of_rows = float(np.abs(direction * pull / curvature).sum())
        found = np.sqrt(of_tree * of_rows)
        if found > 0:
            self._response = np.sqrt(self._response * found) if self._response else float(found)
