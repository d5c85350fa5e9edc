"""Densities of the scores of every group, and the scores within a percentile interval."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.stats import gaussian_kde

from fairconstrained.cells import effective_size
from fairconstrained.metrics import PercentileIntervals
from fairconstrained.metrics.intervals import RANK_TOLERANCE
from fairconstrained.metrics.validation import check_groups, check_option, check_scores
from fairconstrained.plotting._display import ScoresDisplay, scores_of
from fairconstrained.plotting.group_names import group_name, interval_name, pieces_of
from fairconstrained.plotting.style import (
    GREY,
    LEGEND_ROW,
    add_legend,
    line_style,
    prepare_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GroupDensity", "ScoreDensityDisplay"]

_GRID = 400  # points of a curve
_MOST_BARS = 60  # of a histogram
_BINS = 2000  # more rows than this are binned before a kernel estimate, which no eye can tell apart
_SCORE_NAMES = {
    "decision_function": "score",
    "predict_proba": "predicted probability",
    "predict": "prediction",
}


class GroupDensity(NamedTuple):
    """The scores of one group.

    Attributes
    ----------
    n_samples : int
    scores : ndarray of shape (n_points,)
        Increasing.
    density : ndarray of shape (n_points,)
        Density at ``scores``, with integral 1.
    ranges : ndarray of shape (n_pieces, 2)
        Lowest and highest score in every piece of the interval; no rows without an interval.
    pieces : ndarray of shape (n_pieces, 2)
        The percentile interval, as fractions from the top.
    """

    n_samples: int
    scores: np.ndarray
    density: np.ndarray
    ranges: np.ndarray
    pieces: np.ndarray


class ScoreDensityDisplay(ScoresDisplay):
    """Density of the scores in every group, shaded where the percentile interval lies.

    The same percentiles of two groups can lie at different scores: that is what partial metrics compare.

    Use :meth:`from_estimator`, :meth:`from_predictions` or :meth:`from_report` to create one.

    Parameters
    ----------
    densities : dict of group to GroupDensity
        One entry for each group.
    score_name : str, default="score"
        Name of the horizontal axis.

    Attributes
    ----------
    lines_ : dict
        The density (matplotlib Line2D) of every group.
    shades_ : dict
        The shaded parts (list of matplotlib PolyCollection) of every group.

    See Also
    --------
    ScoreCurveDisplay : One group's share above a threshold against another's.

    Examples
    --------
    >>> from fairconstrained.plotting import ScoreDensityDisplay
    >>> ScoreDensityDisplay.from_predictions(  # doctest: +SKIP
    ...     model.decision_function(X), sensitive_features=groups, interval=(0.05, 0.3)
    ... )
    """

    def __init__(self, densities: Mapping[Hashable, GroupDensity], *, score_name: str = "score") -> None:
        self.densities = dict(densities)
        self.score_name = score_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        sensitive_features: Any,
        response: str = "decision_function",
        pos_label: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores that a fitted estimator gives.

        Parameters
        ----------
        response : {"decision_function", "predict_proba", "predict"}, default="decision_function"
            Method that gives the scores; a classifier without ``decision_function`` gives the log-odds of its
            probabilities.
        **kwargs : object
            Passed to :meth:`from_predictions`, such as ``sample_weight``, ``interval``, ``method`` or ``ax``.
        """
        asked = {"sensitive_features": sensitive_features, "pos_label": pos_label}
        values = scores_of(estimator, X, response, **asked).values
        return cls.from_predictions(
            values,
            sensitive_features=sensitive_features,
            score_name=_SCORE_NAMES[response],
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_score: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        interval: Any = None,
        method: str = "kde",
        score_name: str = "score",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw given scores.

        Parameters
        ----------
        y_score : array-like of shape (n_samples,)
            Scores. If all lie in [0, 1], so do the curves.
        interval : pair of floats, list of pairs, or dict from group to either, default=None
            Percentile interval to shade, as fractions; 0 is the top.
        method : {"kde", "hist"}, default="kde"
            Kernel density estimate or histogram.
        score_name : str, default="score"
            Name of the horizontal axis.

        Raises
        ------
        ValueError
            If scores, weights and groups differ in length or are not finite, ``method`` or ``interval`` is
            not valid, or a kernel estimate is asked for a group whose scores are all equal.
        """
        densities = _densities(y_score, sensitive_features, sample_weight, interval, method)
        return cls(densities, score_name=score_name).plot(ax, **kwargs)

    @staticmethod
    def _of_report(report: Any) -> dict[str, Any]:
        return {"interval": report.interval, "score_name": report.score_name}

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the densities and shade the interval.

        Parameters
        ----------
        **kwargs : object
            Style of the curves, passed to :meth:`matplotlib.axes.Axes.plot`.
        """
        size = (5.6, 3.4 + LEGEND_ROW * len(self.densities))
        ax = prepare_axes(ax, size=size)
        pieces = [group.pieces for group in self.densities.values()]
        same = all(np.array_equal(other, pieces[0]) for other in pieces)
        # the shades of more than two groups cover each other: bars then say where each one begins and ends
        crowded = len(self.densities) > 2 and any(group.size for group in pieces)
        alpha = 0.12 if crowded else 0.3
        self.lines_: dict[Hashable, Any] = {}
        self.shades_: dict[Hashable, list[Any]] = {}
        for label, group in self.densities.items():
            words = f"{group_name(label)} (n = {group.n_samples:,})"
            if not same:
                words += f", {interval_name(group.pieces)}"
            style = line_style({"linewidth": 1.6, "label": words, "zorder": 3}, kwargs)
            (line,) = ax.plot(group.scores, group.density, **style)
            self.lines_[label] = line
            self.shades_[label] = [_shade(ax, group, ends, line.get_color(), alpha) for ends in group.ranges]
        ax.set_xlabel(self.score_name)
        ax.set_ylabel("density within the group")
        ax.set_ylim(bottom=0, auto=True)
        if crowded:
            self._plot_bars(ax)
        add_legend(ax, extra=_shade_key(pieces[0]) if same else [])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_bars(self, ax: Axes) -> None:
        """The ranges of scores as bars above the curves, one row for each group."""
        peak = max(float(group.density.max()) for group in self.densities.values())
        rows = 1.06 + 0.045 * np.arange(len(self.densities))[::-1]
        for height, (label, group) in zip(rows, self.densities.items(), strict=True):
            for ends in group.ranges:
                color = self.lines_[label].get_color()
                ax.plot(ends, [height * peak] * 2, color=color, linewidth=3, solid_capstyle="butt", zorder=3)
        ax.set_ylim(top=(rows[0] + 0.045) * peak)


def _densities(
    y_score: Any, sensitive_features: Any, sample_weight: Any, interval: Any, method: str
) -> dict[Hashable, GroupDensity]:
    scores = check_scores(y_score)
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    check_option("method", method, _ESTIMATES)
    intervals = None if interval is None else PercentileIntervals.parse(interval, rows.labels)
    densities: dict[Hashable, GroupDensity] = {}
    for code, label in enumerate(rows.labels):
        members = np.flatnonzero((rows.codes == code) & (rows.weights > 0))
        own, weights = scores[members], rows.weights[members]
        if method == "kde" and own.min() == own.max():
            raise ValueError(
                f"All scores of group {group_name(label)!r} are equal, so they have no kernel density "
                "estimate; use method='hist'."
            )
        x, density = _ESTIMATES[method](own, weights, scores)
        pieces = np.empty((0, 2)) if intervals is None else pieces_of(intervals, code)
        densities[label] = GroupDensity(members.size, x, density, _score_ranges(own, weights, pieces), pieces)
    return densities


def _kernel_estimate(own: np.ndarray, weights: np.ndarray, everyone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Scott's rule for the rows, before any binning: gaussian_kde would count the bins as rows
    scott = effective_size(weights) ** -0.2
    low, high = own.min(), own.max()
    if own.size > _BINS:
        weights, edges = np.histogram(own, bins=_BINS, weights=weights)
        own = (edges[1:] + edges[:-1]) / 2
    estimate = gaussian_kde(own, bw_method=scott, weights=weights)
    reach = 3 * float(np.sqrt(estimate.covariance[0, 0]))
    x = np.linspace(low - reach, high + reach, _GRID)
    if everyone.min() >= 0 and everyone.max() <= 1:
        x = np.linspace(max(x[0], 0.0), min(x[-1], 1.0), _GRID)
    return x, estimate(x)


def _histogram(own: np.ndarray, weights: np.ndarray, everyone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The outline of a histogram whose bins all groups share."""
    edges = np.histogram_bin_edges(everyone, bins="auto")
    if edges.size > _MOST_BARS + 1:
        edges = np.histogram_bin_edges(everyone, bins=_MOST_BARS)
    density, _ = np.histogram(own, bins=edges, weights=weights, density=True)
    return np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(density, 2), [0.0]])


_ESTIMATES: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "kde": _kernel_estimate,
    "hist": _histogram,
}


def _score_ranges(scores: np.ndarray, weights: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """Lowest and highest score whose row lies, at least in part, in each piece; shape (n_pieces, 2)."""
    order = np.argsort(-scores)
    through = np.cumsum(weights[order]) / weights.sum()
    above = np.concatenate([[0.0], through[:-1]])
    ranges = np.empty(pieces.shape)
    for piece, (low, high) in enumerate(pieces):
        inside = scores[order][(through > low + RANK_TOLERANCE) & (above < high - RANK_TOLERANCE)]
        ranges[piece] = inside[-1], inside[0]
    return ranges


def _shade(ax: Axes, group: GroupDensity, ends: np.ndarray, color: Any, alpha: float) -> Any:
    between = (group.scores > ends[0]) & (group.scores < ends[1])
    x = np.concatenate([ends[:1], group.scores[between], ends[1:]])
    height = np.concatenate(
        [
            np.interp(ends[:1], group.scores, group.density),
            group.density[between],
            np.interp(ends[1:], group.scores, group.density),
        ]
    )
    return ax.fill_between(x, height, color=color, alpha=alpha, linewidth=0, zorder=2)


def _shade_key(pieces: np.ndarray) -> list[Any]:
    """The entry of the legend for an interval that all groups share."""
    from matplotlib.patches import Patch

    if not pieces.size:
        return []
    label = f"{interval_name(pieces)} of each group"
    return [Patch(facecolor=GREY, alpha=0.4, linewidth=0, label=label)]
