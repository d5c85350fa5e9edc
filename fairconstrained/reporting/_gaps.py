"""The gaps of a report: which there are, what they say in plain words, their values and intervals."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from fairconstrained.metrics import METRICS
from fairconstrained.reporting._condensed import Condensed, Gap
from fairconstrained.reporting._resamples import Resampling, gap_intervals
from fairconstrained.reporting._rows import ReportRows

__all__ = ["GAPS", "GapNote", "check_gaps", "gap_table"]

#: What metrics read: of the rows, None where the rows have no scores.
READS: dict[str, Callable[[ReportRows], np.ndarray | None]] = {
    "decisions": lambda rows: rows.y_pred,
    "signed decisions": lambda rows: rows.signed_decisions,
    "scores": lambda rows: rows.y_score,
    "log-odds": lambda rows: rows.log_odds,
    "probabilities": lambda rows: rows.probabilities,
}


class GapNote(NamedTuple):
    """One gap of a report.

    Attributes
    ----------
    title : str
        Short name.
    words : str
        What it is, in plain words.
    reads : str
        A key of `READS`.
    unit : {"rate", "AUC", "loss", "squared probability"}
        Gaps of the same unit can be compared.
    options : dict
        Arguments of the metric, beyond those that follow from the report.
    """

    title: str
    words: str
    reads: str = "scores"
    unit: str = "rate"
    options: dict[str, Any] = {}  # noqa: RUF012

    def describe(self, partial: bool, interval: str) -> str:
        """The words, with the interval of a partial gap."""
        return f"{self.words} Only {interval} of each group count." if partial else self.words


#: The gaps by the name of their metric, in the order of the report.
GAPS: dict[str, GapNote] = {
    "independence_gap": GapNote(
        "Positive rate (demographic parity)",
        "Difference between the shares of two groups that get a positive decision.",
        "decisions",
    ),
    "rate_gap": GapNote(
        "Positive rate against everybody",
        "Difference between the share of a group that gets a positive decision and that of all rows.",
        "signed decisions",
        options={"constraint": "intersectional"},
    ),
    "equal_opportunity_gap": GapNote(
        "True positive rate (equal opportunity)",
        "Difference between the shares of the positives of two groups that get a positive decision.",
        "decisions",
    ),
    "separation_gap": GapNote(
        "True or false positive rate (equalized odds)",
        "Difference between the shares of the positives, or of the negatives, of two groups that get a positive "
        "decision, whichever is larger.",
        "decisions",
    ),
    "sufficiency_gap": GapNote(
        "Precision (sufficiency)",
        "The differences of two groups in the share of positives among those with a positive decision, and in that "
        "among those with a negative one, added up; at most 2.",
        "decisions",
    ),
    "statistical_parity_gap": GapNote(
        "Scores (statistical parity)",
        "Difference between the shares of two groups above a threshold, for the threshold at which it is largest.",
    ),
    "partial_statistical_parity_gap": GapNote(
        "Scores, part of the ranks (pSP)",
        "Difference between the shares of two groups above a threshold, divided by the length of the interval, for the "
        "threshold at which it is largest.",
    ),
    "partial_demographic_parity_gap": GapNote(
        "Positive rate, part of the ranks (pDP)",
        "Difference between the shares of two groups above the threshold, divided by the length of the interval.",
    ),
    "partial_equal_opportunity_gap": GapNote(
        "True positive rate, part of the ranks (pEOP)",
        "Difference between the shares of the positives of two groups above the threshold, divided by the length of "
        "the interval.",
    ),
    "partial_equalized_odds_gap": GapNote(
        "True or false positive rate, part of the ranks (pEOD)",
        "Difference between the shares of the positives, or of the negatives, of two groups above the threshold, "
        "whichever is larger, divided by the length of the interval.",
    ),
    "group_auc_gap": GapNote(
        "One group above another (group AUC)",
        "How far the chance that a row of one group scores above a row of another is from one half.",
        unit="AUC",
    ),
    "partial_group_auc_gap": GapNote(
        "One group above another, part of the ranks (pGAUC)",
        "How far the chance that a row of one group scores above a row of another is from one half.",
        unit="AUC",
    ),
    "intra_group_auc_gap": GapNote(
        "Ranking within the groups (intra-group AUC)",
        "Difference of two groups in how well the score tells their own positives from their own negatives.",
        unit="AUC",
    ),
    "inter_group_auc_gap": GapNote(
        "Positives of one group, negatives of another (inter-group AUC)",
        "Difference between the chance that a positive of one group scores above a negative of the other, and the same "
        "with the groups exchanged.",
        unit="AUC",
    ),
    "positive_equality_gap": GapNote(
        "Positives of a group among all positives",
        "How far the chance that a positive of the group scores above a positive of everybody is from one half.",
        unit="AUC",
    ),
    "negative_equality_gap": GapNote(
        "Negatives of a group among all negatives",
        "How far the chance that a negative of the group scores above a negative of everybody is from one half.",
        unit="AUC",
    ),
    "bpsn_bnsp_gap": GapNote(
        "Errors for a group against the background (BPSN, BNSP)",
        "Difference between the chance that a positive of everybody scores above a negative of the group, and that a "
        "positive of the group scores above a negative of everybody.",
        unit="AUC",
    ),
    "wasserstein_gap": GapNote(
        "Distance of the probabilities (Wasserstein)",
        "Squared distance by which the probabilities of one group have to move to be distributed as those of another.",
        "probabilities",
        "squared probability",
    ),
    "loss_parity_gap": GapNote(
        "Log loss (loss parity)",
        "Difference between the mean log losses of two groups.",
        "log-odds",
        "loss",
    ),
}


def check_gaps(metrics: Iterable[str] | None, rows: ReportRows) -> list[str]:
    """Names of the gaps to report, in the order of `GAPS`: all that apply, or those that were asked for.

    Raises
    ------
    ValueError
        If a name is unknown, or a gap was asked for that needs scores or an interval which there are not.
    """
    lacks = {name: _lacks(name, rows) for name in GAPS}
    if metrics is None:
        return [name for name in GAPS if not lacks[name]]
    asked = [metrics] if isinstance(metrics, str) else list(metrics)
    unknown = [name for name in asked if name not in GAPS]
    if unknown:
        raise ValueError(f"metrics {unknown} are not gaps of a report; choose some of {list(GAPS)}.")
    for name in asked:
        if lacks[name]:
            raise ValueError(f"metric {name!r} needs {lacks[name]}, and the report has none.")
    return [name for name in GAPS if name in asked]


def gap_table(
    rows: ReportRows, names: list[str], resampling: Resampling, interval_words: str, verbose: int = 0
) -> pd.DataFrame:
    """Value, interval and words of every gap; NaN where a cell is empty, and no interval without resamples."""
    gaps = {name: Gap(GAPS[name].reads, partial(METRICS[name].function, **_options(name, rows))) for name in names}
    responses = {reads: response(rows) for reads, response in READS.items()}
    values = {
        name: float(gap.function(rows.y_true, responses[gap.reads], sensitive_features=rows.grouped))
        for name, gap in tqdm(gaps.items(), desc="gaps", leave=False, disable=verbose < 1)
    }
    ends = dict.fromkeys(names, (np.nan, np.nan))
    bounded = [name for name in names if resampling.n_resamples and np.isfinite(values[name])]
    if bounded:
        condensed = Condensed.of(rows, responses)
        found = gap_intervals(rows, condensed, [gaps[name] for name in bounded], resampling, verbose)
        ends |= dict(zip(bounded, found, strict=True))
    lines = []
    for name in names:
        note, value, (lower, upper) = GAPS[name], values[name], ends[name]
        words = note.describe(_is_partial(name), interval_words)
        # the value is that of all scores, the ends are those of rounded ones
        lines.append((note.title, value, np.minimum(lower, value), np.maximum(upper, value), note.unit, words))
    columns = ["gap", "value", "lower", "upper", "unit", "description"]
    return pd.DataFrame(lines, index=pd.Index(names, name="metric"), columns=columns)


def _parameters(name: str) -> Any:
    return inspect.signature(METRICS[name].function).parameters


def _is_partial(name: str) -> bool:
    return "interval" in _parameters(name)


def _lacks(name: str, rows: ReportRows) -> str:
    """What a gap needs and the rows do not have; empty if nothing."""
    if READS[GAPS[name].reads](rows) is None:
        return "y_score"
    return "an interval" if _is_partial(name) and rows.interval is None else ""


def _options(name: str, rows: ReportRows) -> dict[str, Any]:
    """Arguments of a metric: its own, and those of the report that it takes."""
    of_report = {"interval": rows.interval, "threshold": rows.threshold, "on_empty": "nan"}
    known = _parameters(name)
    return {option: value for option, value in of_report.items() if option in known} | GAPS[name].options
