"""The gaps of a report: which there are, what they say in plain words, their values and intervals."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from fairconstrained.metrics import METRICS, MetricInfo
from fairconstrained.metrics.registry import UNITS, similar_gap
from fairconstrained.reporting._condensed import Condensed, Gap
from fairconstrained.reporting._names import isolated
from fairconstrained.reporting._resamples import Resampling, gap_intervals
from fairconstrained.reporting._rows import ReportRows

__all__ = ["READS", "check_gaps", "gap_table", "lacking", "options_of", "report_gaps"]

#: Responses that metrics read from the rows; None where the rows do not tell.
READS: dict[str, Callable[[ReportRows], np.ndarray | None]] = {
    "decisions": lambda rows: rows.y_pred,
    "signed decisions": lambda rows: rows.signed_decisions,
    "scores": lambda rows: rows.y_score,
    "log-odds": lambda rows: rows.log_odds,
    "probabilities": lambda rows: rows.probabilities,
}


def report_gaps() -> list[MetricInfo]:
    """Gaps in the order of a report: by unit, then by the response that they read."""
    units, reads = list(UNITS), list(READS)
    gaps = (info for info in METRICS.values() if info.compares_groups)
    return sorted(gaps, key=lambda info: (units.index(info.unit), reads.index(info.reads)))


def check_gaps(metrics: Iterable[str] | None, rows: ReportRows) -> list[str]:
    """Names of the gaps to report, in the order of a report: all that apply, or those that were asked for.

    Raises ValueError if a name is unknown, or a gap needs scores, log-odds, an interval or a threshold that the report
    does not have.
    """
    gaps = report_gaps()
    if metrics is None:
        return [info.name for info in gaps if not lacking(info, rows)]
    asked = [metrics] if isinstance(metrics, str) else list(metrics)
    known = {name: info for info in gaps for name in info.plain_names}
    unknown = [name for name in asked if name not in known]
    if unknown:
        similar = similar_gap(unknown[0], gaps)
        raise ValueError(f"metrics {unknown} are not gaps of a report; choose some of {sorted(known)}.{similar}")
    for name in asked:
        if lacks := lacking(known[name], rows):
            raise ValueError(f"metric {name!r} needs {lacks}, and the report has none.")
    chosen = {known[name].name for name in asked}
    return [info.name for info in gaps if info.name in chosen]


@dataclass(frozen=True, eq=False)
class _View:
    """Rows, or those of one class against all others, and the gaps that are measured on them."""

    rows: ReportRows
    #: Gaps by name.
    gaps: dict[str, Gap]

    @classmethod
    def of(cls, rows: ReportRows, names: Iterable[str]) -> _View:
        infos = [METRICS[name] for name in names]
        return cls(
            rows, {info.name: Gap(info.reads, partial(info.function, **options_of(info, rows))) for info in infos}
        )

    @cached_property
    def responses(self) -> dict[str, np.ndarray | None]:
        """Responses that the gaps read."""
        return {gap.reads: READS[gap.reads](self.rows) for gap in self.gaps.values()}

    def values(self, verbose: int) -> dict[str, float]:
        """Gaps of all rows by name."""
        bar = tqdm(self.gaps.items(), desc="gaps", leave=False, disable=verbose < 1)
        rows, groups = self.rows, self.rows.grouped
        return {
            name: float(gap.function(rows.y_true, self.responses[gap.reads], sensitive_features=groups))
            for name, gap in bar
        }


def _views(rows: ReportRows, names: list[str]) -> dict[Any, _View]:
    """All rows, for gaps that take several classes as they are, which are those of losses, and each of the classes."""
    in_turn = [name for name in names if rows.classes and METRICS[name].by_class]
    views = {None: _View.of(rows.own_label, [name for name in names if name not in in_turn])}
    views |= {label: _View.of(part, in_turn) for label, part in rows.by_class.items()}
    return {label: view for label, view in views.items() if view.gaps}


def _largest(found: Iterable[dict[str, float]], names: list[str]) -> list[float]:
    """The largest value of every gap in any view; NaN where one is not defined."""
    found = list(found)
    return [float(np.max([values[name] for values in found if name in values])) for name in names]


def gap_table(
    rows: ReportRows, names: list[str], resampling: Resampling, interval_words: str, verbose: int = 0
) -> pd.DataFrame:
    """Value, interval and words of every gap; NaN where a cell is empty, and no interval without resamples."""
    by_view = {label: view.values(verbose) for label, view in _views(rows, names).items()}
    values = dict(zip(names, _largest(by_view.values(), names), strict=True))
    ends = dict.fromkeys(names, (np.nan, np.nan))
    bounded = [name for name in names if resampling.n_resamples and np.isfinite(values[name])]
    if bounded:
        parts = [(view.gaps, Condensed.of(view.rows, view.responses)) for view in _views(rows, bounded).values()]

        def measured(drawn: np.ndarray, weights: np.ndarray) -> list[float]:
            found = (dict(zip(gaps, rows.gaps([*gaps.values()], drawn, weights), strict=True)) for gaps, rows in parts)
            return _largest(found, bounded)

        ends |= dict(zip(bounded, gap_intervals(rows, measured, resampling, verbose), strict=True))
    lines, worst = [], [_worst_class(by_view, name) for name in names]
    for name, label in zip(names, worst, strict=True):
        info, value, (lower, upper) = METRICS[name], values[name], ends[name]
        words = info.description
        if _is_partial(info):
            words += f" Only {interval_words} of each group count."
        if label is not None:
            words += f" Largest for the class “{isolated(label)}” against all others."
        # the value is that of all scores, the ends are those of rounded ones
        lines.append((info.title, value, np.minimum(lower, value), np.maximum(upper, value), info.unit, words))
    columns = ["gap", "value", "lower", "upper", "unit", "description"]
    table = pd.DataFrame(lines, index=pd.Index(names, name="metric"), columns=columns)
    if rows.classes:
        table.insert(2, "class", pd.Series(worst, index=names, dtype=object))
    return table


def _worst_class(by_view: dict[Any, dict[str, float]], name: str) -> Any:
    """The class whose gap is the largest; None where there is none."""
    found = {label: values[name] for label, values in by_view.items() if name in values}
    return max(found, key=found.__getitem__) if np.isfinite(list(found.values())).all() else None


def _parameters(info: MetricInfo) -> Any:
    return inspect.signature(info.function).parameters


def _is_partial(info: MetricInfo) -> bool:
    return "interval" in _parameters(info)


def lacking(info: MetricInfo, rows: ReportRows) -> str:
    """Say what a gap needs and the rows do not have; empty if nothing is missing."""
    if READS[info.reads](rows) is None:
        return "y_score" if rows.y_score is None else info.reads
    if _is_partial(info) and rows.interval is None:
        return "an interval"
    return "a threshold" if "threshold" in _parameters(info) and np.isnan(rows.threshold) else ""


def options_of(info: MetricInfo, rows: ReportRows) -> dict[str, Any]:
    """Arguments of a metric: its own, and those of the report that it takes."""
    of_report = {"interval": rows.interval, "threshold": rows.threshold, "on_empty": "nan"}
    known = _parameters(info)
    return {option: value for option, value in of_report.items() if option in known} | dict(info.report_params)
