"""One group's share above a threshold against another group's, for all thresholds."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from fairconstrained.checks.messages import shortened
from fairconstrained.metrics import PercentileIntervals, score_curve
from fairconstrained.plotting._display import ScoresDisplay
from fairconstrained.plotting.group_names import group_name, interval_name, largest_group, pieces_of
from fairconstrained.plotting.style import (
    DIAGONAL,
    GREY,
    LEGEND_ROW,
    add_legend,
    letters_in,
    line_style,
    plot_shares,
    prepare_axes,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ScoreCurveDisplay"]

# gids by which a second display in the same axes recognises what the first one drew
_CURVE, _INTERVAL = "curve against", "interval"


class ScoreCurveDisplay(ScoresDisplay):
    r"""Share of one group above a threshold against that of a reference group, for all thresholds.

    The curve :math:`\theta \mapsto (\bar F_r(\theta), \bar F_g(\theta))` with
    :math:`\bar F_g(\theta) = P(s > \theta \mid g)` lies on the diagonal if the two groups are scored alike.
    A percentile interval is a band on either axis; the part of the curve in a band, drawn bold, is what the
    partial metrics on that interval compare. Plot several models into the same axes to compare them.

    Use :meth:`from_estimator`, :meth:`from_predictions` or :meth:`from_report` to create one.

    Parameters
    ----------
    curve : DataFrame of shape (n_thresholds, n_groups)
        Result of :func:`fairconstrained.metrics.score_curve`: shares in [0, 1], one column for each group.
    reference : object
        The group on the horizontal axis; every other one gets a curve.
    interval : pair of floats, list of pairs, or dict from group to either, default=None
        Percentile interval as fractions; 0 is the top. None marks nothing.
    name : str, default=None
        Name of the model in the legend.

    Attributes
    ----------
    lines_ : dict
        The curve (matplotlib Line2D) of every group but the reference.
    bold_ : dict
        Part of every line that lies in the interval, NaN elsewhere; empty without an interval.

    Raises
    ------
    ValueError
        If there is one group only, ``reference`` is not a group, or ``interval`` is not valid.

    See Also
    --------
    ScoreDensityDisplay : Where the scores of the groups lie.

    Examples
    --------
    >>> from fairconstrained.metrics import score_curve
    >>> from fairconstrained.plotting import ScoreCurveDisplay
    >>> curve = score_curve(None, [8, 7, 4, 8, 6, 2], sensitive_features=list("aaabbb"))
    >>> ScoreCurveDisplay(curve, reference="a", interval=(0, 0.5)).others
    ['b']
    """

    def __init__(
        self, curve: pd.DataFrame, *, reference: Hashable, interval: Any = None, name: str | None = None
    ) -> None:
        groups: list[Hashable] = list(curve.columns)
        if reference not in groups:
            raise ValueError(f"reference must be one of the groups {shortened(groups)}; got {reference!r}.")
        if len(groups) < 2:
            raise ValueError(f"A curve compares two groups; there is only {groups[0]!r}.")
        self.curve = curve
        self.reference = reference
        self.interval = interval
        self.name = name
        self.groups = groups
        self.others = [group for group in groups if group != reference]
        self.intervals = None if interval is None else PercentileIntervals.parse(interval, groups)

    @classmethod
    def from_predictions(
        cls,
        y_score: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        interval: Any = None,
        reference: Hashable | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of given scores.

        Parameters
        ----------
        reference : object, default=None
            The group on the horizontal axis; by default the largest one.
        """
        curve = score_curve(None, y_score, sensitive_features=sensitive_features, sample_weight=sample_weight)
        if reference is None:
            reference = largest_group(sensitive_features)
        return cls(curve, reference=reference, interval=interval, name=name).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curves, the diagonal and the interval.

        Parameters
        ----------
        **kwargs : object
            Style of the curves, passed to :meth:`matplotlib.axes.Axes.plot`.

        Raises
        ------
        ValueError
            If the axes show curves against another group.
        """
        entries = len(self.others) + 1 + (self.interval is not None)
        ax = prepare_axes(ax, size=(4.4, 4.2 + LEGEND_ROW * entries))
        against = f"{_CURVE} {group_name(self.reference)}"
        drawn = [str(line.get_gid()) for line in ax.lines]
        if any(gid.startswith(_CURVE) and gid != against for gid in drawn):
            raise ValueError(
                f"These axes show curves against another group than {self.reference!r}; draw these on new axes."
            )
        self.lines_: dict[Hashable, Any] = {}
        self.bold_: dict[Hashable, Any] = {}
        for group in self.others:
            label = self._label(group, name or self.name)
            self._plot_curve(ax, group, {"label": label, "gid": against, **kwargs})
        if DIAGONAL not in drawn:
            self._plot_frame(ax)
        self._plot_interval(ax)
        add_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _pieces(self, group: Hashable) -> np.ndarray:
        """The interval of a group, of shape (n_pieces, 2)."""
        assert self.intervals is not None
        return pieces_of(self.intervals, self.groups.index(group))

    def _same_intervals(self) -> bool:
        shared = self._pieces(self.reference)
        return all(np.array_equal(self._pieces(group), shared) for group in self.others)

    def _label(self, group: Hashable, name: str | None) -> str:
        if len(self.others) == 1:
            label = name or f"{group_name(group)} against {group_name(self.reference)}"
        else:
            label = f"{name}: {group_name(group)}" if name else group_name(group)
        if self.intervals is None or self._same_intervals():
            return label
        return f"{label} ({interval_name(self._pieces(group))})"

    def _plot_curve(self, ax: Axes, group: Hashable, kwargs: dict[str, Any]) -> None:
        style = line_style({"linewidth": 2.2, "solid_capstyle": "round", "zorder": 3}, kwargs)
        curve = self.curve.to_numpy()
        pair = [self.groups.index(self.reference), self.groups.index(group)]
        shares = curve[:, pair]
        if self.intervals is None:
            (self.lines_[group],) = ax.plot(*shares.T, **style)
            return
        # either rank in its interval: what the rank gap compares, and all that the normalised gap depends on
        inside = self.intervals.contains(curve)[:, pair].any(axis=1, keepdims=True)
        bold = np.where(inside, shares, np.nan)
        (self.bold_[group],) = ax.plot(*bold.T, **style)
        thin = {"color": self.bold_[group].get_color(), "linewidth": 0.9, "label": "_", "zorder": 2.5}
        (self.lines_[group],) = ax.plot(*shares.T, **{**style, **thin})

    def _plot_frame(self, ax: Axes) -> None:
        """The diagonal, the axes and their labels, once for all displays in the axes."""
        plot_shares(ax, "equal shares", limits=(0, 1))
        other = f"group {group_name(self.others[0])}" if len(self.others) == 1 else "the other group"
        letters = letters_in(min(ax.bbox.size) / ax.figure.dpi, "axes.labelsize")
        ax.set_xlabel(wrapped(f"share of group {group_name(self.reference)} above the threshold", letters))
        ax.set_ylabel(wrapped(f"share of {other} above the threshold", letters))

    def _plot_interval(self, ax: Axes) -> None:
        """Bands across the axes where the intervals of the two groups lie, each set of them once."""
        if self.intervals is None:
            return
        across, same = self._pieces(self.reference), self._same_intervals()
        gid = f"{_INTERVAL} {[self._pieces(group).tolist() for group in self.groups]}"
        if any(patch.get_gid() == gid for patch in ax.patches):
            return
        label: str | None = f"{interval_name(across)} of {'each' if same else group_name(self.reference)}"
        band: dict[str, Any] = {
            "facecolor": GREY,
            "edgecolor": "none",
            "alpha": 0.16,
            "zorder": 0,
            "gid": gid,
        }
        for low, high in across:
            ax.axvspan(low, high, label=label, **band)
            label = None
            if same:
                ax.axhspan(low, high, **band)
        for column, group in enumerate([] if same else self.others):
            # bars beside the axes: bands across them would cover each other
            color, x = self.bold_[group].get_color(), 1.02 + 0.02 * column
            for ends in self._pieces(group):
                ax.plot([x, x], ends, color=color, linewidth=3, solid_capstyle="butt", clip_on=False, gid=gid)
