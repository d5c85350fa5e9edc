"""Scores of the protected group stretched and shifted: the post-processing baseline of the AUC fairness paper."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from fairconstrained.checks.inputs import as_targets, take_names
from fairconstrained.checks.messages import PASS_GROUPS, is_number, nothing_to_compare, warn_user
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.checks.protected import one_of_two
from fairconstrained.constraints.base import check_kappa
from fairconstrained.estimators.grouping import as_labels, encode_groups
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning
from fairconstrained.metrics.auc_sets import AUC_METRICS, auc_differences
from fairconstrained.postprocessing._base import Postprocessor
from fairconstrained.postprocessing._search import ROUNDING, ShiftedAUCs, best_shift
from fairconstrained.solvers import Status

__all__ = ["ScoreShiftPostprocessor"]

#: The paper's grid (section E.3).
_SLOPES, _SHIFTS = np.arange(101) / 20, np.arange(-30, 31) / 10


@with_parameters
class ScoreShiftPostprocessor(Postprocessor):
    r"""Any classifier, with the scores of the protected group stretched and shifted until an AUC gap is small.

    .. math:: \max_{w_1, w_2} \; \mathrm{AUC}(\text{positives}, \text{negatives})
              \quad \text{s.t.} \quad \left| \mathrm{AUC}(G_1, G_1') - \mathrm{AUC}(G_2, G_2') \right| \le \kappa

    where the scores of the protected group are :math:`w_1 h(x) + w_2` and those of all other rows are :math:`h(x)`.
    The slope and the shift are found by exact search on the rows given to `fit`: no other pair that is allowed has a
    better AUC there. Both AUCs are those of the definition, in which a tie counts one half.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the exact gap on the training data, in [0, 1]. None: the best AUC, whatever the gap.
    constraint : str, default="group_auc"
        Name of the AUCs that are compared. With the protected group a and the others b, positives + and negatives -,
        the two AUCs are those of a over b and of everything over everything, which is 1/2 ("group_auc"); of a+ over b-
        and of b+ over a- ("inter_group"); of a+ over all positives and 1/2 ("positive_equality"); of a- over all
        negatives and 1/2 ("negative_equality"); of all positives over a- and of a+ over all negatives ("bpsn_bnsp").
        "intra_group", the AUC within a against that within b, is an error: no slope and no shift changes it.
    protected : object, default=None
        The group whose scores change, and which is compared with all the others. With two groups None is the one of
        less weight, and the gap is the largest over both groups. With more than two groups it has to be given.
    slopes : array-like of shape (n_slopes,), default=None
        Values of :math:`w_1`, at least 0; None is the paper's 0, 0.05, ..., 5.
    shifts : array-like of shape (n_shifts,) or "all", default=None
        Values of :math:`w_2` in units of the scores; None is the paper's -3, -2.9, ..., 3. "all" allows every number,
        whatever the units of the scores; the AUC is then within 1e-5 of the best.
    threshold : float, default=0.0
        Score above which the positive class is predicted, after the shift.

    Attributes
    ----------
    protected_ : object
        The group whose scores change; None with a single group.
    slope_, shift_ : float
        :math:`w_1` and :math:`w_2`; 1 and 0 with a single group.
    auc_ : float
        Overall AUC on the training data after the shift.
    constraint_values_ : dict
        The exact gap on the training data after the shift, by its name.
    violation_ : float
        Excess of the gap over ``kappa``, at least 0.
    status_ : {"optimal", "infeasible", "unconstrained"}
        "infeasible": no slope and shift brings the gap to ``kappa`` plus its granularity, the largest share of a set
        of the metric that one row stands for. The gap is then the least of all. "unconstrained": a bound was asked
        for, but there is only one group.
    n_evaluations_ : int
        Pairs of slope and shift that the search has looked at.

    Notes
    -----
    The scores are taken as they are, as in the paper, so the paper's grid suits scores of about the size of log-odds.
    ``shifts="all"`` does not depend on their size.

    A pair of slope and shift costs one look-up of the protected rows among the others, sorted. The AUCs between the
    two sides rise with the shift, which bounds AUC and gap between any two shifts, so that only a small part of the
    grid has to be looked at. A slope of 0 makes the protected rows one block of ties.

    References
    ----------
    Yao, Lin, Yang, "Stochastic Methods for AUC Optimization Subject to AUC-Based Fairness Constraints", AISTATS 2023,
    arXiv:2212.12603: sections 3, E.2 and E.3. Kallus, Zhou, "The Fairness of Risk Scores Beyond Classification",
    NeurIPS 2019.

    Examples
    --------
    >>> from fairconstrained.datasets import make_biased_classification
    >>> from fairconstrained.postprocessing import ScoreShiftPostprocessor
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y, group = make_biased_classification(n_samples=500, random_state=0)
    >>> model = ScoreShiftPostprocessor(LogisticRegression(), kappa=0.02)
    >>> model.fit(X, y, sensitive_features=group).status_
    'optimal'
    >>> model.constraint_values_["group_auc"] <= 0.02
    True
    """

    kappa: float | None = parameter(0.05, [Interval(Real, 0, 1, closed="both"), None])
    constraint: str = parameter("group_auc", [StrOptions(set(AUC_METRICS))])
    protected: Hashable | None = parameter(None)
    slopes: Any = parameter(None, ["array-like", None])
    shifts: Any = parameter(None, ["array-like", StrOptions({"all"}), None])
    threshold: float = parameter(0.0, [Interval(Real, None, None, closed="neither")])

    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> None:
        slopes, shifts = self._check_parameters()
        y = as_targets(y)
        weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
        groups = encode_groups(sensitive_features, y, weights)
        codes, labels = groups.codes, groups.labels
        self.estimator_ = self._fitted_estimator(X, y, sensitive_features, sample_weight)
        take_names(self, self.estimator_)
        positive = self._encode_target(y, weights).values > 0
        scores = self._raw_scores(X, sensitive_features)
        check_consistent_length(scores, y)
        self.groups_ = as_labels(labels if sensitive_features is not None else ())
        self._labels, self._group_columns = labels, groups.column_names
        if len(labels) == 1:
            # no search: an AUC needs the two classes only
            self.protected_, self.slope_, self.shift_ = None, 1.0, 0.0
            self._report(roc_auc_score(positive, scores, sample_weight=weights), 0.0, 0.0, 0)
            return
        code = one_of_two(labels, self.protected, default=int(np.bincount(codes, weights).argmin()))
        self.protected_ = labels[code]
        rows = weights > 0
        sides = weights[rows], codes[rows] == code, positive[rows]
        # The moved side is group 0 of two. Unless the user names a group, both are compared with everything.
        _, differences = auc_differences(self.constraint, 2, None if self.protected is None else 0)
        aucs = ShiftedAUCs(scores[rows], *sides, differences)
        best = best_shift(aucs, self.kappa, slopes, shifts)
        self.slope_, self.shift_ = best.slope, best.shift
        # measured once more on the scores that prediction gives
        shifted = ShiftedAUCs(self._changed(scores, codes)[rows], *sides, differences)
        self._report(*shifted.auc_and_gap(1.0, 0.0), aucs.granularity, best.n_evaluations)

    def _check_parameters(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The slopes and the shifts, None for all shifts."""
        if self.constraint == "intra_group":
            raise ValueError(
                "constraint='intra_group' compares the AUC within the groups, which no slope and no shift of a group's "
                "scores changes; moving its positives and its negatives differently would need the labels at "
                f"prediction. Choose one of {sorted(set(AUC_METRICS) - {'intra_group'})}, or a constrained classifier."
            )
        check_kappa(self.kappa)
        slopes = _SLOPES if self.slopes is None else _numbers("slopes", self.slopes)
        if slopes.min() < 0:
            raise ValueError(
                f"slopes must not be negative: that would reverse the group's order; got {slopes.min():g}."
            )
        if isinstance(self.shifts, str):
            return slopes, None
        return slopes, _SHIFTS if self.shifts is None else _numbers("shifts", self.shifts)

    def _report(self, auc: float, gap: float, granularity: float, n_evaluations: int) -> None:
        """Set the fitted attributes that tell how it went, and warn."""
        kappa = 1.0 if self.kappa is None else self.kappa
        feasible = gap <= kappa + granularity + ROUNDING
        self.auc_, self.n_evaluations_ = float(auc), n_evaluations
        self.constraint_values_ = {self.constraint: gap} if len(self._labels) > 1 else {}
        self.violation_ = max(gap - kappa, 0.0)
        is_vacuous = len(self._labels) == 1 and self.kappa is not None
        kept = Status.UNCONSTRAINED if is_vacuous else Status.OPTIMAL
        self.status_ = (kept if feasible else Status.INFEASIBLE).value
        if is_vacuous:
            warn_user(
                nothing_to_compare(self.groups_, "The scores stay as they are.", f"{PASS_GROUPS}, or set kappa=None."),
                FairnessWarning,
            )
        if not feasible:
            warn_user(
                f"the gap {self.constraint!r} is {gap:.4g} on the training data, the least of all slopes and shifts, "
                f"and exceeds kappa={kappa:g} by more than its granularity ({granularity:.2g}). Raise kappa, or allow "
                "more slopes and shifts (shifts='all').",
                ConvergenceWarning,
            )

    def _changed(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        if len(self._labels) == 1:
            return scores
        return np.where(codes == self._labels.index(self.protected_), self.slope_ * scores + self.shift_, scores)

    @property
    def _why_groups(self) -> str:
        return f"the scores of group {self.protected_!r} are shifted"


def _numbers(name: str, values: Any) -> np.ndarray:
    """``values`` as a vector; raises ValueError if there are none, or one is not finite."""
    numbers = list(values)
    if not numbers or not all(map(is_number, numbers)):
        raise ValueError(f"{name} must be a list of finite numbers, at least one; got {values!r}.")
    return np.array(numbers, dtype=np.float64)
