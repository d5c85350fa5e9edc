"""One ROC curve for each AUC that an AUC gap compares."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.metrics import roc_curve

from fairconstrained.metrics import METRICS
from fairconstrained.metrics.auc_gaps import GroupComparison, compare_groups
from fairconstrained.metrics.auc_sets import AUC_METRICS
from fairconstrained.metrics.comparisons import AUCDifferences
from fairconstrained.metrics.validation import check_option
from fairconstrained.plotting._display import ScoresDisplay, scores_of
from fairconstrained.plotting.group_names import group_name
from fairconstrained.plotting.style import (
    DIAGONAL,
    LEGEND_ROW,
    add_legend,
    line_style,
    plot_shares,
    prepare_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SubsetRoc", "SubsetRocDisplay"]

# by whether a set has positives, and whether it has negatives; short, since a line of the legend has two of them
_KINDS = {(True, False): "+", (False, True): "−", (True, True): ""}


class SubsetRoc(NamedTuple):
    """Comparison of the ranks of two sets of rows.

    Attributes
    ----------
    name : str
        The two sets, with signs for their labels: "F+ over M−".
    above, below : ndarray of shape (n_thresholds,)
        Share of the first and of the second set above the thresholds, increasing from 0 to 1: the true and the
        false positive rate, if the sets are positives and negatives.
    auc : float
        Area under ``above`` as a function of ``below``, in [0, 1].
    """

    name: str
    above: np.ndarray
    below: np.ndarray
    auc: float


class SubsetRocDisplay(ScoresDisplay):
    r"""ROC curves of the sets of rows that an AUC gap compares.

    Each AUC is the probability that a row of one set has a higher score than a row of another, and the area under the
    curve :math:`\theta \mapsto (P(s > \theta \mid G'), P(s > \theta \mid G))`. The gap is the difference of two such
    areas; curves that cross can have equal areas. An AUC of 1/2 by definition (all rows against all rows) is the
    diagonal. In the legend "AUC(F+ over M−)" is that of the positives of F against the negatives of M. Plot several
    models into the same axes to compare them.

    Use :meth:`from_estimator`, :meth:`from_predictions` or :meth:`from_report` to create one.

    Parameters
    ----------
    curves : sequence of SubsetRoc
        One or two.
    gap : float
        Absolute difference of the AUCs, or of the only one and 1/2.
    gap_name : str, default="AUC gap"
        Name of the gap in the legend.
    name : str, default=None
        Name of the model in the legend.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The curves.

    See Also
    --------
    ScoreCurveDisplay : One group's share above a threshold against another's, and the percentile interval.

    References
    ----------
    .. [1] Yao, Lin, Yang, arXiv:2212.12603: definition 2 and appendix A.

    Examples
    --------
    >>> from fairconstrained.plotting import SubsetRocDisplay
    >>> SubsetRocDisplay.from_predictions(  # doctest: +SKIP
    ...     y, model.decision_function(X), sensitive_features=groups, metric="inter_group", protected="F"
    ... )
    """

    def __init__(
        self, curves: Sequence[SubsetRoc], *, gap: float, gap_name: str = "AUC gap", name: str | None = None
    ) -> None:
        self.curves = list(curves)
        self.gap = gap
        self.gap_name = gap_name
        self.name = name

    @classmethod
    def from_estimator(  # type: ignore[override]  # an AUC takes labels, too
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        pos_label: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of a fitted estimator.

        Parameters
        ----------
        **kwargs : object
            Passed to :meth:`from_predictions`, such as ``sample_weight``, ``metric``, ``protected`` or ``ax``.
        """
        response = scores_of(
            estimator, X, "decision_function", sensitive_features=sensitive_features, pos_label=pos_label
        )
        return cls.from_predictions(
            response.encode(y),
            response.values,
            sensitive_features=sensitive_features,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_score: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        metric: str = "inter_group",
        protected: Hashable = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of given scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            Labels; only ``metric="group_auc"`` works without them.
        metric : {"group_auc", "inter_group", "intra_group", "positive_equality", "negative_equality", \
                "bpsn_bnsp"}, default="inter_group"
            Name of the metric whose sets are drawn; see :mod:`fairconstrained.metrics`.
        protected : object, default=None
            The group to compare with all others, or with all rows; None draws the groups with the largest gap.
        pos_label : object, default=None
            The positive label; None for the larger of the two.

        Raises
        ------
        ValueError
            If ``metric`` is unknown, ``protected`` is not a group, there is one group only, or a set is empty.
        """
        check_option("metric", metric, AUC_METRICS)
        found = compare_groups(metric, y_true, y_score, sensitive_features, sample_weight, pos_label, protected)
        if found.rows.n_groups < 2:
            raise ValueError(f"An AUC gap compares two groups; there is only {found.rows.labels[0]!r}.")
        worst = int(found.gaps.argmax())
        (label,) = (info.label for info in METRICS.values() if info.compared == AUCDifferences(metric))
        return cls(_curves(found, worst), gap=float(found.gaps[worst]), gap_name=label, name=name).plot(ax, **kwargs)

    @staticmethod
    def _of_report(report: Any) -> dict[str, Any]:
        return {"y_true": report.y_true, "pos_label": 1}  # labels of a report are 0 and 1

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curves and the diagonal, and say the gap in the legend.

        Parameters
        ----------
        **kwargs : object
            Style of the curves, passed to :meth:`matplotlib.axes.Axes.plot`.
        """
        entries = len(self.curves) + 2
        ax = prepare_axes(ax, size=(4.6, 4.2 + LEGEND_ROW * entries))
        prefix = f"{name or self.name}: " if name or self.name else ""
        if all(line.get_gid() != DIAGONAL for line in ax.lines):
            # a little more than the shares, since good curves run along the edges
            plot_shares(ax, "AUC = 0.5", limits=(-0.01, 1.01))
            ax.set_xlabel("share of the second set above the threshold")
            ax.set_ylabel("share of the first set above the threshold")
        self.lines_: list[Any] = []
        for curve in self.curves:
            label = f"{prefix}AUC({curve.name}) = {curve.auc:.3f}"
            style = line_style({"linewidth": 1.8, "zorder": 3, "label": label}, kwargs)
            self.lines_ += ax.plot(curve.below, curve.above, **style)
        # An entry without a mark, so that every model in the axes has its own; it stands beside its curves.
        ax.plot([], [], linestyle="none", label=f"{prefix}{self.gap_name} = {self.gap:.3f}", zorder=3)
        add_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _curves(found: GroupComparison, place: int) -> list[SubsetRoc]:
    """The two curves of a difference; without that of everything against everything, which is the diagonal."""
    sets = found.differences[place]
    pairs = [(sets.above, sets.below), (sets.reference_above, sets.reference_below)]
    return [
        _curve(found, above, below, auc)
        for (above, below), auc in zip(pairs, found.aucs[place], strict=True)
        if above != below
    ]


def _curve(found: GroupComparison, above: tuple[int, ...], below: tuple[int, ...], auc: float) -> SubsetRoc:
    # the sets may overlap: a row in both of them counts in both
    first, second = (np.flatnonzero(np.isin(found.cells, cells)) for cells in (above, below))
    both = np.concatenate([first, second])
    is_first = np.repeat([True, False], [first.size, second.size])
    second_share, first_share, _ = roc_curve(is_first, found.scores[both], sample_weight=found.rows.weights[both])
    name = f"{_set_name(found, above)} over {_set_name(found, below)}"
    return SubsetRoc(name, first_share, second_share, float(auc))


def _set_name(found: GroupComparison, cells: tuple[int, ...]) -> str:
    """Words for a union of cells: "F+", "all−"."""
    n_groups = found.rows.n_groups
    groups = sorted({cell % n_groups for cell in cells})
    kind = _KINDS[min(cells) < n_groups, max(cells) >= n_groups]
    return f"{'all' if len(groups) == n_groups else group_name(found.rows.labels[groups[0]])}{kind}"
