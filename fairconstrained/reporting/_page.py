"""The page of a report: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairconstrained.metrics import find_metric, metric_names
from fairconstrained.reporting._figures import path_figure, score_figures
from fairconstrained.reporting._html import Cell, Html, folded, joined, table, tag, template
from fairconstrained.reporting._measures import MEASURES
from fairconstrained.reporting._names import GroupNames, isolated
from fairconstrained.reporting._words import FORMS, PRICE_WORDS, bound_sentences, listed, remark_sentences
from fairconstrained.version import __version__

if TYPE_CHECKING:
    from fairconstrained.certification import Certificate
    from fairconstrained.reporting._report import FairnessReport

__all__ = ["page"]

_NONE = "–"
#: With more groups the table is one of the largest groups and those that differ most ...
_MOST_ROWS, _MOST_LARGEST = 20, 10
#: ... and up to so many, all of them are there to unfold.
_MOST_FOLDED = 500
#: Columns of the table of a path that the page leaves out: what differs from run to run, and what is no number.
_NOT_SHOWN = ("seconds", "multipliers", "n_evaluations")


def page(report: FairnessReport) -> Html:
    """The whole page."""
    script = template("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rows = report.rows
    decisions = (
        f"Decisions are among {len(rows.classes)} classes: {', '.join(map(isolated, rows.labels))}."
        if rows.classes
        else f"A positive decision is “{isolated(rows.labels[1])}”."
    )
    groups = f"{rows.grouped.n_groups:,} groups: {listed(list(rows.grouped.labels), rows.names)}"
    facts = f"{rows.n_samples:,} rows in {groups}. {decisions}"
    sections = [
        _verdict(report),
        _groups(report),
        _gaps(report),
        _certificates(report),
        _scores(report),
        _path(report),
        _bounds(report),
        _method(report),
    ]
    return template(
        "report.html",
        title=report.title,
        version=__version__,
        style=template("report.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        facts=facts,
        sections=joined(*sections),
    )


def _section(heading: str, *content: Any, class_: str | None = None) -> Html:
    return tag("section", tag("h2", heading), *content, class_=class_)


def _list(sentences: Sequence[str]) -> Html:
    return tag("ul", *[tag("li", sentence) for sentence in sentences]) if sentences else Html("")


def _verdict(report: FairnessReport) -> Html:
    first, *others = (_strong(sentence) for sentence in report.verdict)
    return _section("Where the groups differ most", tag("p", first), _list(others), class_="verdict")


def _strong(sentence: str) -> Html:
    """Set the subject of a sentence, up to its colon, in bold."""
    about, colon, rest = sentence.partition(": ")
    if not colon:
        return joined(sentence)
    return joined(tag("strong", about + colon), rest)


def _groups(report: FairnessReport) -> Html:
    tables = [report.table, *report.class_tables.values()]
    columns = [name for name in MEASURES if any(name in part for part in tables)]
    return _section(
        "By group",
        *_group_tables(report),
        *[_of_class(report, label) for label in report.class_tables],
        _list(remark_sentences(report)),
        tag(
            "dl",
            *[tag("div", tag("dt", MEASURES[name].title), tag("dd", MEASURES[name].words)) for name in columns],
            class_="glossary",
        ),
    )


def _table_of(frame: pd.DataFrame, names: GroupNames, codes: np.ndarray, caption: str) -> Html:
    """Some groups, and the row of all rows."""
    headings = [Cell(tag("span", MEASURES[name].title, title=MEASURES[name].words)) for name in frame.columns]
    forms = [MEASURES[name].form for name in frame.columns]
    part = frame.iloc[[*codes, -1]]
    lines = [
        [Cell(names.words(label)), *map(_value, values, forms)]
        for label, values in zip(part.index, part.itertuples(index=False), strict=True)
    ]
    return table(caption, [Cell("group"), *headings], lines[:-1], lines[-1:])


def _first_groups(report: FairnessReport) -> np.ndarray:
    """All groups; of many, those that a reader looks for first."""
    if len(report.rows.sizes) <= _MOST_ROWS:
        return np.arange(len(report.rows.sizes))
    largest = np.argsort(-report.rows.sizes, kind="stable")[:_MOST_LARGEST]
    return np.union1d(largest, report._verdict.groups)


def _of_class(report: FairnessReport, label: Any) -> Html:
    """One of several classes against all others, to unfold."""
    caption = f"The class “{isolated(label)}” against all others"
    of = partial(_table_of, report.class_tables[label], report.rows.names)
    return folded(caption, of(_first_groups(report), f"{caption}."))


def _group_tables(report: FairnessReport) -> list[Html]:
    """All groups; of many, those that a reader looks for first, and the others folded or counted."""
    caption, n_groups = (
        "How the decisions and scores fare in each group, and in all rows together.",
        len(report.rows.sizes),
    )
    of, first = partial(_table_of, report.table, report.rows.names), _first_groups(report)
    if len(first) == n_groups:
        return [of(first, caption)]
    shown = of(
        first,
        f"{caption} Shown are {len(first)} of {n_groups:,} groups: the {_MOST_LARGEST} largest, and those that are "
        "farthest apart in what the words above compare.",
    )
    if n_groups <= _MOST_FOLDED:
        return [shown, folded(f"All {n_groups:,} groups", of(np.arange(n_groups), caption))]
    elsewhere = f"A page does not hold the other {n_groups - len(first):,} groups; all are in the report's table, "
    return [shown, tag("p", elsewhere, tag("code", "report.table"), ".", class_="facts")]


def _gaps(report: FairnessReport) -> Html:
    gaps = report.gaps
    if gaps.empty:
        return Html("")
    comparable = gaps["unit"].isin(["rate", "AUC"])
    scale = _scale(gaps.loc[comparable, ["value", "upper"]].to_numpy(dtype=float))
    ends = tag("span", tag("span", "0"), tag("span", f"{scale:g}"), class_="ends")
    between = [Cell(f"{100 * report.level:g}% interval")] if report.n_resamples else []
    headings = [Cell("gap"), Cell("value"), *between, Cell(ends)]
    lines = []
    numbers = gaps[["value", "lower", "upper"]].to_numpy(dtype=float)
    words = gaps[["gap", "description", "unit"]].to_numpy(dtype=str)
    for (value, lower, upper), (name, description, unit), on_scale in zip(numbers, words, comparable, strict=True):
        bar = (
            _bar(value, lower, upper, scale) if on_scale else tag("span", f"not on this scale: {unit}", class_="words")
        )
        named = joined(name, tag("span", description, class_="words"))
        written = f"{lower:.3f} to {upper:.3f}" if np.isfinite(lower) else _NONE
        between = [Cell(written, lower)] if report.n_resamples else []
        lines.append([Cell(named), _value(value, "number"), *between, Cell(bar)])
    note = (
        "0 means that no two groups differ. A gap is that of the two groups that differ most, so chance alone makes it "
        "positive, and the smaller the groups the larger."
    )
    return _section("Gaps between groups", table(note, headings, lines))


def _certificates(report: FairnessReport) -> Html:
    if not report.certificates:
        return Html("")
    return _section("In the population", *map(_certificate, report.certificates))


def _certificate(certificate: Certificate) -> Html:
    """The bound of one gap under its title in the table of the gaps."""
    metric = certificate.metric
    title = find_metric(metric)[0].title if metric in metric_names() else metric
    return joined(tag("p", tag("strong", title)), _list(str(certificate).splitlines()))


def _scale(values: np.ndarray) -> float:
    """A round number that no value exceeds, for the end of the bars."""
    largest = float(np.nanmax(values, initial=0.01))
    unit = 10.0 ** np.floor(np.log10(largest))
    return float(np.ceil(largest / unit - 1e-9) * unit)


def _bar(value: float, lower: float, upper: float, scale: float) -> Html:
    """A value and its interval on the scale that all gaps of rates and AUCs share."""
    if not np.isfinite(value):
        return Html("")
    shapes = [tag("line", x1=0, x2=200, y1=6, y2=6, style="stroke: var(--rule); stroke-width: 1")]
    if np.isfinite([lower, upper]).all():
        left, width = 200 * lower / scale, 200 * max(upper - lower, 0.0) / scale
        shapes.append(tag("rect", x=f"{left:.2f}", width=f"{width:.2f}", y=3, height=6, rx=1, style="fill: var(--bar)"))
    at = 200 * value / scale
    shapes.append(tag("circle", cx=f"{at:.2f}", cy=6, r="2.6", style="fill: var(--accent)"))
    return tag("svg", *shapes, class_="bar", aria_hidden="true", viewBox="-3 0 206 12")


def _scores(report: FairnessReport) -> Html:
    if report.y_score is None:
        return Html("")
    if report.rows.classes:
        why = "Curves and densities show the score of one class; a report with that class as pos_label has them."
        return _section("Scores", tag("p", why, class_="facts"))
    return _section("Scores", tag("div", *score_figures(report.rows), class_="figures"))


def _path(report: FairnessReport) -> Html:
    if report.path is None:
        return Html("")
    shown = report.path.table.drop(columns=list(_NOT_SHOWN), errors="ignore")
    shown = shown[[name for name in shown.columns if not name.startswith("std_")]]
    headings = [Cell(str(name).replace("_", " ")) for name in shown.columns]
    lines = [
        [_free(value, digits=4 if name != "kappa" else None) for name, value in zip(shown.columns, values, strict=True)]
        for values in shown.itertuples(index=False)
    ]
    models = table("Models of the path, from loose to tight.", headings, lines)
    return _section("The trade-off", tag("div", path_figure(report), class_="figures"), models)


def _bounds(report: FairnessReport) -> Html:
    sentences = [*bound_sentences(report.bounds, report.status), *report.hints]
    if not sentences:
        return Html("")
    has_price = any(np.isfinite(bound.price) for bound in report.bounds)
    explained = tag("p", PRICE_WORDS, class_="facts") if has_price else ""
    return _section("The price of fairness", explained, _list([_strong(s) for s in sentences]))


def _method(report: FairnessReport) -> Html:
    entries = report.settings
    parts = [joined(tag("dt", name), tag("dd", words)) for name, words in entries.items()]
    return _section("How this was measured", tag("dl", *parts))


def _value(value: float, form: str) -> Cell:
    value = float(value)
    return Cell(FORMS[form](value) if np.isfinite(value) else _NONE, value)


def _free(value: Any, digits: int | None) -> Cell:
    """A cell of a table that the report did not make: a number, also no bound at all, or words."""
    if not isinstance(value, Real):
        return Cell(str(value))
    number = float(value)
    written = f"{number:.{digits}f}" if digits and 1e-3 <= abs(number) < 1e4 else f"{number:.4g}"
    return Cell({"nan": _NONE, "inf": "none"}.get(written, written), number)
