"""A report in plain words: the groups that differ most, the price of a bound, and limitations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairconstrained.metrics import PercentileIntervals, partial_statistical_parity_gap
from fairconstrained.plotting.group_names import interval_name, pieces_of
from fairconstrained.reporting._measures import MEASURES
from fairconstrained.reporting._model import Bound
from fairconstrained.reporting._names import GroupNames, isolated
from fairconstrained.reporting._rows import FEW, ReportRows
from fairconstrained.version import __version__

if TYPE_CHECKING:
    from fairconstrained.reporting._report import FairnessReport

__all__ = [
    "FORMS",
    "PRICE_WORDS",
    "Verdict",
    "bound_sentences",
    "interval_words",
    "label_words",
    "listed",
    "remark_sentences",
    "setting_words",
    "verdict_of",
]

#: More names than this are not listed one by one.
_MOST_NAMES = 6
#: How values of the forms of `MEASURES` are written.
FORMS: dict[str, Callable[[float], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "rate": lambda value: f"{100 * value:.1f}%",
    "number": lambda value: f"{value:.3f}",
}


#: Explanation of a price.
PRICE_WORDS = (
    "A price is what the model pays for a bound: by how much the training objective, which the fit makes as small as "
    "it can, such as an average loss, would fall if the bound were a little looser. It says nothing about accuracy, "
    "nor about other rows."
)


#: Sentences about the ways in which a training can end.
_STATUS_WORDS = {
    "infeasible": "Training did not keep its bounds (status “infeasible”).",
    "unconstrained": "Training had no groups to compare, so the model has no bound (status “unconstrained”).",
}


class Contrast(NamedTuple):
    """The two groups that differ most in a column of the table."""

    measure: str
    high: Any
    low: Any
    values: tuple[float, float]
    codes: tuple[int, int]
    label: Any = None

    @property
    def difference(self) -> float:
        """First of the two values less the second."""
        return self.values[0] - self.values[1]

    def words(self, gaps: pd.DataFrame, level: float, names: GroupNames, explain: bool) -> str:
        """One sentence, with the interval of the gap where there is one."""
        measure = MEASURES[self.measure]
        high, low = (FORMS[measure.form](value) for value in self.values)
        is_rate = measure.form == "rate"
        apart = f"{100 * self.difference:.1f} percentage points" if is_rate else f"{self.difference:.3f}"
        between = self._interval(gaps, level, 100 if is_rate else 1)
        of_class = "" if self.label is None else f" for the class “{isolated(self.label)}” against all others"
        name = _capital(measure.title) + of_class + (f" ({measure.words})" if explain else "")
        if self.high == self.low:
            return f"{name}: {high} for all groups."
        return (
            f"{name}: {high} for {names.words(self.high)}, {low} for {names.words(self.low)}, {apart} apart{between}."
        )

    def _interval(self, gaps: pd.DataFrame, level: float, scale: float) -> str:
        """The interval of the gap in brackets; empty where there is none, or where the gap is that of other groups."""
        metric = MEASURES[self.measure].metric
        if metric is None or metric not in gaps.index:
            return ""
        value, *ends = gaps[["value", "lower", "upper"]].loc[metric].to_numpy(dtype=float)
        if not np.isclose(value, self.difference) or not np.isfinite(ends).all():
            return ""
        lower, upper = (f"{scale * end:.{1 if scale == 100 else 3}f}" for end in ends)
        return f" ({100 * level:g}% interval {lower} to {upper})"


class Verdict(NamedTuple):
    """The groups that differ most, for every measure."""

    #: Decisions first, the largest difference on top, then scores, then labels.
    sentences: list[str]
    #: Codes of the groups that are farthest apart in anything, in increasing order.
    groups: np.ndarray  # of int


def verdict_of(report: FairnessReport) -> Verdict:
    """Compare the groups.

    Groups of few rows are left out, as long as two are left: their differences are mostly due to chance.
    """
    rows, table = report.rows, report.table
    kept = np.flatnonzero(rows.sizes >= FEW)
    kept = np.arange(rows.grouped.n_groups) if kept.size < 2 else kept
    contrasts = _largest_contrasts({None: table, **report.class_tables}, kept)
    # decisions and scores are the model's doing, unlike the labels; shares can be compared with each other
    order = {"rate": 0, "number": 1}
    contrasts.sort(key=lambda c: (c.measure == "base_rate", order[MEASURES[c.measure].form], -c.difference))
    sentences = [
        c.words(report.gaps, report.level, rows.names, explain=number == 0) for number, c in enumerate(contrasts)
    ]
    last = sum(c.measure != "base_rate" for c in contrasts)
    of_scores = _score_sentences(rows, kept)
    sentences = sentences[:last] + [sentence for sentence, _ in of_scores] + sentences[last:]
    if kept.size < rows.grouped.n_groups:
        left_out = [rows.grouped.labels[code] for code in np.flatnonzero(rows.sizes < FEW)]
        sentences.append(f"Left out here, for fewer than {FEW} rows: {listed(left_out, rows.names)}.")
    named = [c.codes for c in contrasts] + [codes for _, codes in of_scores]
    return Verdict(sentences, np.unique(np.array(named, dtype=int)))


def bound_sentences(bounds: list[Bound], status: str) -> list[str]:
    """Say whether the bounds of a model hold in training and on the rows of the report, and their prices."""
    sentences = []
    for bound in bounds:
        name, here, estimated = bound.name.replace("_", " "), "", ""
        if np.isfinite(bound.new_rows):
            estimated = (
                f", and {bound.new_rows:.2g} (standard error {bound.error:.1g}) by the fit's estimate for new rows"
            )
        if np.isfinite(bound.here):
            here = f"; on the rows of this report it is {bound.here:.4g}"
        trained = f"{_asked(bound)}it is {bound.trained:.4g} on the {bound.rows}"
        sentences.append(f"{_capital(name)}: {trained}{estimated}{here}.")
        # a penalty has no price, and no bound that could be loosened
        if abs(bound.price) > 0 or (bound.is_known and bound.price == 0):
            sentences.append(f"Price of {name}: {_price(bound)}.")
        elif bound.is_known and np.isnan(bound.price):
            sentences.append(f"Price of {name}: not known, as the method that trained the model gives no price.")
    return sentences + [words for known, words in _STATUS_WORDS.items() if known == status]


def remark_sentences(report: FairnessReport) -> list[str]:
    """Warn the reader of empty cells, groups of few rows, and decisions of another origin."""
    rows, table, gaps = report.rows, report.table, report.gaps
    sentences = _empty_cells(table, rows.names)
    for label, of_class in report.class_tables.items():
        sentences += [f"Class “{isolated(label)}”: {sentence}" for sentence in _empty_cells(of_class, rows.names)]
    few = [label for label, size in zip(rows.grouped.labels, rows.sizes, strict=True) if size < FEW]
    if few:
        narrow = " Intervals of gaps that they enter may be too narrow." if report.n_resamples else ""
        sentences.append(f"Fewer than {FEW} rows, so hardly more than anecdotes: {listed(few, rows.names)}.{narrow}")
    if gaps["value"].isna().any():
        sentences.append(
            f"{int(gaps['value'].isna().sum())} of {len(gaps)} gaps are not defined, as a group has no rows of a kind "
            "that they compare. Merge small groups, or leave them out."
        )
    unknown = gaps["gap"][gaps["value"].notna() & gaps["lower"].isna()].to_list() if report.n_resamples else []
    if unknown:
        sentences.append(f"No interval, as a cell is empty in too many resamples: {listed(unknown, rows.names)}.")
    differing = (
        0 if rows.decisions_of_scores is None else int(np.count_nonzero(rows.decisions_of_scores != rows.y_pred))
    )
    if differing:
        usual = "the class of the largest score" if rows.classes else f"that of the threshold {rows.threshold:g}"
        sentences.append(f"In {differing:,} of {rows.n_samples:,} rows the decision is not {usual}.")
    return sentences


def _empty_cells(table: pd.DataFrame, names: GroupNames) -> list[str]:
    """Say which columns are not defined for which groups."""
    sentences = []
    for name in table.columns:
        empty = table.index[:-1][table[name].isna().to_numpy()[:-1]]
        if len(empty):
            groups = listed(list(empty), names)
            sentences.append(
                f"{_capital(MEASURES[name].title)} is not defined for {groups}: no {MEASURES[name].needs}."
            )
    return sentences


def setting_words(report: FairnessReport) -> dict[str, str]:
    """Describe the measured quantities, the rows and the methods."""
    rows = report.rows
    weighted = "" if rows.sample_weight is None else f", with weights that add up to {rows.grouped.weights.sum():g}"
    names = list(rows.sensitive_features.columns)
    by = "" if names == ["group"] else f" by {' and '.join(map(isolated, names))}"
    intervals = (
        f"{100 * report.level:g}%, two-sided; bootstrap of {report.n_resamples:,} resamples within the groups (seed "
        f"{report.random_state}), BCa quantiles or the plain ones, whichever lie farther out. For one gap at a time, "
        "and for rows of the same origin as these."
    )
    entries = {
        "Model": report.model_words,
        "Rows": f"{rows.n_samples:,} in {rows.grouped.n_groups:,} groups{by}{weighted}",
        "Training rows": report.overlap,
        "Labels": label_words(rows),
        "Scores": _score_words(rows),
        "Threshold": "" if rows.y_score is None or rows.classes or np.isnan(rows.threshold) else f"{rows.threshold:g}",
        "Percentile interval": interval_words(rows),
        "Intervals": intervals if report.n_resamples else "none were computed",
        "Package": f"fairconstrained {__version__}",
    }
    return {name: words for name, words in entries.items() if words}


def label_words(rows: ReportRows) -> str:
    """Say which label is positive."""
    names = [f"“{isolated(name)}”" for name in rows.labels]
    if rows.classes:
        return f"{', '.join(names)}: each of them in turn is positive against all others"
    return f"{names[1]} is positive, {names[0]} negative"


def _score_words(rows: ReportRows) -> str:
    if rows.y_score is None:
        return "none: a report of decisions"
    kinds = {"probabilities": rows.has_probabilities, "log-odds": rows.are_log_odds}
    kind = next(
        (name for name, holds in kinds.items() if holds), "neither probabilities nor log-odds, so without losses"
    )
    return f"{kind} of every class, of which its excess over the largest of the others counts" if rows.classes else kind


def interval_words(rows: ReportRows) -> str:
    """The percentile interval in words; empty if there is none."""
    if rows.interval is None:
        return ""
    labels = rows.grouped.labels
    intervals = PercentileIntervals.parse(rows.interval, labels)
    pieces = [pieces_of(intervals, code) for code in range(len(labels))]
    if all(np.array_equal(pieces[0], other) for other in pieces):
        return interval_name(pieces[0])
    each = [
        f"{interval_name(own)} of {rows.names.words(label)}"
        for own, label in zip(pieces, labels[:_MOST_NAMES], strict=False)
    ]
    left_out = len(labels) - len(each)
    return "; ".join(each) + (f"; others of {left_out:,} more" if left_out else "")


def listed(labels: list[Any], names: GroupNames) -> str:
    """Names of groups, the first few of many."""
    named = ", ".join(names.words(label) for label in labels[:_MOST_NAMES])
    return named if len(labels) <= _MOST_NAMES else f"{named} and {len(labels) - _MOST_NAMES:,} more"


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _largest_contrasts(tables: dict[Any, pd.DataFrame], kept: np.ndarray) -> list[Contrast]:
    """The largest contrast of every measure in any of the tables."""
    largest: dict[str, Contrast] = {}
    for label, table in tables.items():
        for name in table.columns:
            found = _contrast(table, kept, name)
            if found is not None and (name not in largest or found.difference > largest[name].difference):
                largest[name] = found._replace(label=label)
    return list(largest.values())


def _contrast(table: pd.DataFrame, kept: np.ndarray, name: str) -> Contrast | None:
    """None for what says nothing about fairness by itself, and where fewer than two groups have a value."""
    if name in ("n_samples", "share"):
        return None
    values = table[name].to_numpy(dtype=float)
    if np.isfinite(values[kept]).sum() < 2:
        return None
    high, low = int(kept[np.nanargmax(values[kept])]), int(kept[np.nanargmin(values[kept])])
    return Contrast(name, table.index[high], table.index[low], (float(values[high]), float(values[low])), (high, low))


def _score_sentences(rows: ReportRows, kept: np.ndarray) -> list[tuple[str, tuple[int, int]]]:
    """Where the score distributions are farthest apart, and of which groups: everywhere, and within the interval."""
    if rows.y_score is None or rows.classes:
        return []
    sentences = []
    everything, own = (0.0, 1.0), rows.interval_of_codes
    if isinstance(own, dict):
        own = {code: own[code] for code in kept.tolist()}
    members = np.isin(rows.grouped.codes, kept)
    for interval in [everything] + [own] * (own is not None):
        result: Any = partial_statistical_parity_gap(
            None,
            rows.y_score[members],
            sensitive_features=rows.grouped.codes[members],
            sample_weight=rows.grouped.weights[members],
            interval=interval,
            return_groups=True,
        )
        found = result[1]
        share = found["partial_rank"].to_numpy()
        high, low = int(share.argmax()), int(share.argmin())
        codes = int(kept[high]), int(kept[low])
        is_part = interval is not everything
        within = f" within {interval_words(rows)}" if is_part else ""
        if high == low:
            sentences.append((f"Scores{within}: the same for all groups.", codes))
            continue
        of_these, those_of = ("of the rows there, ", "those of ") if is_part else ("", "")
        (first, most), (second, least) = (
            (rows.names.words(rows.grouped.labels[kept[place]]), 100 * share[place]) for place in (high, low)
        )
        words = (
            f"Scores{within}: {of_these}{most:.1f}% of {those_of}{first} and {least:.1f}% of {those_of}{second} are "
            f"above {found['threshold'].iloc[0]:.3g}, {most - least:.1f} percentage points apart, the largest "
            "difference of all thresholds."
        )
        sentences.append((words, codes))
    return sentences


def _asked(bound: Bound) -> str:
    """Say what training was to do about a value; empty where that is not known."""
    if bound.is_minimised:
        return "trained to be as small as it can be, "
    if bound.kappa is None:
        return "trained without a bound, "
    if not bound.is_known:
        return ""
    return f"trained with the bound kappa = {bound.kappa:g}, {'the least value allowed, ' if bound.is_floor else ''}"


def _price(bound: Bound) -> str:
    """The multiplier in words: what a looser bound would gain in training."""
    if not bound.price:
        return "none, since loosening this bound would not lower the training objective"
    step = _step(bound.kappa) if bound.is_known and bound.kappa else 0.01
    what = f"kappa from {bound.kappa:g}" if bound.is_known else "the bound"
    gain = f"{abs(bound.price) * step:.2g}"  # the price of a floor is negative
    now = f" (it is {bound.objective:.3g})" if np.isfinite(bound.objective) else ""
    return f"loosening {what} by {step:g} would lower the training objective by about {gain}{now}, to first order"


def _step(kappa: float) -> float:
    """A round change of kappa that is small beside it."""
    return 0.01 if kappa >= 0.02 else float(f"{kappa / 5:.0e}")
