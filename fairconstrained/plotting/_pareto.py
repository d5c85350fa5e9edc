"""Performance against fairness, and the Pareto front of the candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score

from fairconstrained.checks.inputs import without_none
from fairconstrained.checks.messages import shortened
from fairconstrained.metrics import independence_gap
from fairconstrained.model_selection import pareto_front
from fairconstrained.model_selection.response import check_model
from fairconstrained.model_selection.selection import fairness_column
from fairconstrained.plotting._candidates import (
    column_words,
    deviation_of,
    listed,
    scorer_of,
    scoring_name,
)
from fairconstrained.plotting._display import Display
from fairconstrained.plotting.style import GREY, add_legend, line_style, prepare_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ParetoFrontDisplay"]

Scoring = str | Callable[..., float]

# How the candidates of one axes were drawn, told by the gid of the front; also names the dominated points.
_BY_GAP, _BY_FAIRNESS, _DOMINATED = "front-by-gap", "front-by-fairness", "dominated"


class ParetoFrontDisplay(Display):
    """Performance against fairness of several candidates, with their Pareto front.

    The horizontal axis shows the gap (smaller is fairer) if all fairness values are at most 0, as those of
    the scorers are, and the values themselves (larger is fairer) otherwise. Plot several methods into the
    same axes to compare them.

    Use :meth:`from_cv_results`, :meth:`from_path`, :meth:`from_report`, :meth:`from_estimator` or
    :meth:`from_predictions` to create one.

    Parameters
    ----------
    performance, fairness : array-like of shape (n_candidates,)
        Greater is better. Candidates with a NaN are not drawn.
    performance_std, fairness_std : array-like of shape (n_candidates,), default=None
        Standard deviations, for error bars.
    performance_name, fairness_name : str
        Names of the axes.
    name : str, default=None
        Name of the method in the legend.

    Attributes
    ----------
    front : ndarray of int, of shape (n_front,)
        Positions of the candidates on the front, from the least to the most fair.
    line_ : matplotlib Line2D
        The front.
    dominated_ : matplotlib PathCollection
        The other candidates.
    error_bars_ : matplotlib ErrorbarContainer or None
        The error bars.

    Examples
    --------
    >>> from fairconstrained.plotting import ParetoFrontDisplay
    >>> display = ParetoFrontDisplay([0.90, 0.85, 0.80], [-0.30, -0.08, -0.10])
    >>> display.front.tolist()
    [0, 1]
    """

    def __init__(
        self,
        performance: Any,
        fairness: Any,
        *,
        performance_std: Any = None,
        fairness_std: Any = None,
        performance_name: str = "performance",
        fairness_name: str = "fairness",
        name: str | None = None,
    ) -> None:
        self.performance = np.asarray(performance, dtype=float)
        self.fairness = np.asarray(fairness, dtype=float)
        if self.performance.shape != self.fairness.shape or self.performance.ndim != 1:
            raise ValueError(
                "performance and fairness must be two columns of the same length; "
                f"got shapes {self.performance.shape} and {self.fairness.shape}."
            )
        self.performance_std = performance_std
        self.fairness_std = fairness_std
        self.performance_name = performance_name
        self.fairness_name = fairness_name
        self.name = name
        table = pd.DataFrame({"performance": self.performance, "fairness": self.fairness})
        self.front = pareto_front(table, "performance", "fairness").index.to_numpy()

    @classmethod
    def from_cv_results(
        cls,
        results: Mapping[str, Any] | pd.DataFrame,
        *,
        performance: str = "mean_test_accuracy",
        fairness: str | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the candidates of a search.

        Parameters
        ----------
        results : dict or DataFrame
            ``cv_results_`` of a search with several scorers, or any table of candidates.
        performance, fairness : str
            Columns, both greater is better (a negated gap, as the scorers give it); ``fairness=None`` is the only
            other column of scores that are never positive. The columns ``std_test_...`` beside ``mean_test_...`` serve
            as error bars.

        Raises
        ------
        ValueError
            If a column is missing, or ``fairness`` is None and the columns leave a choice or none.
        """
        fairness = fairness_column(results, performance) if fairness is None else fairness
        pareto_front(results, performance, fairness)  # names the columns there are, if one is missing
        display = cls(
            results[performance],
            results[fairness],
            performance_std=deviation_of(results, performance),
            fairness_std=deviation_of(results, fairness),
            performance_name=column_words(performance),
            fairness_name=column_words(fairness),
            name=name,
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_path(
        cls,
        path: Any,
        *,
        performance: str | None = None,
        held_out: bool | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the models of a path: performance against the largest gap that is bounded.

        Parameters
        ----------
        path : FairnessPath
            Result of :func:`fairconstrained.paths.fairness_path`.
        performance : str, default=None
            Name of the score on the vertical axis, one of ``path.scores``; None is the first one.
        held_out : bool, default=None
            True: means over the held-out parts of the folds, with their standard deviations as error bars. False: the
            values on the training rows. None: whether the path has folds.
        **kwargs : object
            Passed to :meth:`plot`; ``error_bars=False`` leaves them out.

        Raises
        ------
        ValueError
            If there is no such measure of performance, or ``held_out`` is asked for and the path has no folds.
        TypeError
            If ``path`` is no path.
        """
        if not hasattr(path, "scores") or not hasattr(path, "table"):
            raise TypeError(f"path must be a FairnessPath, as fairness_path returns it; got {path!r}.")
        performance = path.scores[0] if performance is None else performance
        if performance not in path.scores:
            raise ValueError(f"performance must be one of {shortened(path.scores)}; got {performance!r}.")
        held_out = bool(path.n_splits) if held_out is None else held_out
        if held_out and not path.n_splits:
            raise ValueError(f"held_out={held_out!r} takes a path with folds (cv=...), and this one has none.")
        column, gap = (f"mean_test_{performance}", "mean_test_gap") if held_out else (f"train_{performance}", "gap")
        table = path.table.assign(**{gap: -path.table.get(gap, np.nan)})
        pareto_front(table, column, gap)  # names the columns there are, if one is missing
        where = "mean of test folds" if held_out else "training rows"
        display = cls(
            table[column],
            table[gap],
            performance_std=deviation_of(table, column),
            fairness_std=deviation_of(table, gap),
            performance_name=f"{column_words(performance)}, {where}",
            fairness_name=f"{column_words(path.gaps[0]) if len(path.gaps) == 1 else 'largest'} gap, {where}",
            name=name,
        )
        return display.plot(ax, **{"error_bars": held_out, **kwargs})

    @classmethod
    def from_report(cls, report: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the path of a report.

        Parameters
        ----------
        **kwargs : object
            Passed to :meth:`from_path`.

        Raises
        ------
        ValueError
            If the report has no path.
        """
        if report.path is None:
            raise ValueError("this report has no path; make one with path=fairness_path(...).")
        return cls.from_path(report.path, ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimators: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        performance: Scoring = "accuracy",
        fairness: Scoring = "neg_independence_gap",
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw fitted estimators, measured on the same data.

        Parameters
        ----------
        estimators : estimator or iterable of estimators
            Fitted classifiers or regressors.
        performance, fairness : str or scorer
            A name that :func:`~fairconstrained.model_selection.get_fairness_scorer` knows, or a scorer called
            as ``scorer(estimator, X, y, sensitive_features=...)``.

        Raises
        ------
        ValueError
            If a name is unknown.
        TypeError
            If a candidate is no estimator.
        """
        candidates = [estimators] if hasattr(estimators, "fit") else listed(estimators, "estimators")
        for candidate in candidates:
            check_model(candidate, "estimators: each")
        scorers = [scorer_of(performance, "performance"), scorer_of(fairness, "fairness")]
        metadata = without_none(sensitive_features=sensitive_features, sample_weight=sample_weight)
        values = [[scorer(candidate, X, y, **metadata) for candidate in candidates] for scorer in scorers]
        names = [column_words(s) if isinstance(s, str) else scoring_name(s) for s in (performance, fairness)]
        display = cls(*values, performance_name=names[0], fairness_name=names[1], name=name)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_preds: Iterable[Any],
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        performance: Callable[..., float] = accuracy_score,
        gap: Callable[..., Any] = independence_gap,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw candidates known by their predictions (or scores, for metrics of scores).

        Parameters
        ----------
        y_preds : iterable of array-like of shape (n_samples,)
            The predictions of every candidate.
        performance : callable, default=accuracy_score
            ``performance(y_true, y_pred)``, greater is better.
        gap : callable, default=independence_gap
            ``gap(y_true, y_pred, sensitive_features=...)``, smaller is better.

        Raises
        ------
        TypeError
            If ``performance`` or ``gap`` is no function.
        """
        weights = without_none(sample_weight=sample_weight)
        candidates = listed(y_preds, "y_preds")
        for parameter, function in {"performance": performance, "gap": gap}.items():
            if not callable(function):
                raise TypeError(f"{parameter} must be a function of labels and predictions; got {function!r}.")
        display = cls(
            [performance(y_true, y_pred, **weights) for y_pred in candidates],
            [-gap(y_true, y_pred, sensitive_features=sensitive_features, **weights) for y_pred in candidates],
            performance_name=scoring_name(performance),
            fairness_name=scoring_name(gap),
            name=name,
        )
        return display.plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        step: bool = True,
        error_bars: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Draw the candidates and their front.

        Parameters
        ----------
        step : bool, default=True
            Join the front by steps, which show what can be reached at every gap; False for straight lines.
        error_bars : bool, default=False
            Draw one standard deviation around the candidates on the front.
        **kwargs : object
            Style of the front, passed to :meth:`matplotlib.axes.Axes.plot`.

        Raises
        ------
        ValueError
            If ``error_bars`` are asked for without standard deviations, or the axes show a front by gaps and
            this one has fairness values, or the reverse.
        """
        ax = prepare_axes(ax, size=(5.6, 4.2))
        by_gap = not np.any(self.fairness > 0)
        kind = _claim_axes(ax, by_gap)
        x = 0.0 - self.fairness if by_gap else self.fairness
        defaults = {
            # from least to most fair, "pre" is the best performance at each bound on the gap in between
            "drawstyle": "steps-pre" if step else "default",
            "label": name or self.name or "Pareto front",
            "gid": kind,
        }
        self._plot_candidates(ax, x, line_style(defaults, kwargs))
        self.error_bars_ = self._plot_error_bars(ax, x) if error_bars else None
        # a name says what the values are, and here they are negated back
        fairness_name = self.fairness_name.removeprefix("negated ") if by_gap else self.fairness_name
        ax.set_xlabel(f"{fairness_name} ({'smaller' if by_gap else 'larger'} is fairer)")
        ax.set_ylabel(self.performance_name)
        add_legend(ax, extra=_dominated_key(ax))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_candidates(self, ax: Axes, x: np.ndarray, style: dict[str, Any]) -> None:
        defaults: dict[str, Any] = {"marker": "o", "markersize": 5, "linewidth": 1.3, "zorder": 3}
        (self.line_,) = ax.plot(x[self.front], self.performance[self.front], **(defaults | style))
        rest = np.setdiff1d(np.arange(x.size), self.front)
        self.dominated_ = ax.scatter(
            x[rest],
            self.performance[rest],
            s=18,
            color=self.line_.get_color(),
            alpha=0.3,
            linewidths=0,
            gid=_DOMINATED,
            zorder=2,
        )

    def _plot_error_bars(self, ax: Axes, x: np.ndarray) -> Any:
        if self.performance_std is None and self.fairness_std is None:
            raise ValueError("error_bars needs performance_std or fairness_std, as from_cv_results finds them.")
        deviations = [
            None if std is None else np.asarray(std, dtype=float)[self.front]
            for std in (self.fairness_std, self.performance_std)
        ]
        return ax.errorbar(
            x[self.front],
            self.performance[self.front],
            xerr=deviations[0],
            yerr=deviations[1],
            fmt="none",
            ecolor=self.line_.get_color(),
            elinewidth=0.8,
            alpha=0.6,
            zorder=2.5,
        )


def _claim_axes(ax: Axes, by_gap: bool) -> str:
    """The gid that marks a front, after making sure that all fronts of the axes share one horizontal axis."""
    kind, other = (_BY_GAP, _BY_FAIRNESS) if by_gap else (_BY_FAIRNESS, _BY_GAP)
    if any(line.get_gid() == other for line in ax.lines):
        raise ValueError(
            "These axes show gaps (all fairness values at most 0) and this front fairness values, or the "
            "reverse. Use the same measure for every method."
        )
    return kind


def _dominated_key(ax: Axes) -> list[Any]:
    """One entry of the legend for the dominated points of all methods, if there are any."""
    from matplotlib.lines import Line2D

    points = [c for c in ax.collections if c.get_gid() == _DOMINATED and len(np.asarray(c.get_offsets()))]
    style: dict[str, Any] = {
        "marker": "o",
        "markersize": 4.5,
        "color": GREY,
        "alpha": 0.4,
        "markeredgewidth": 0,
    }
    return [Line2D([], [], linestyle="none", label="dominated", **style)] if points else []
