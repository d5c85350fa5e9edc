"""The Displays of the package as inline SVG: text stays text, colours follow the page, ids are unique."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from fairconstrained.plotting import ParetoFrontDisplay, ScoreCurveDisplay, ScoreDensityDisplay
from fairconstrained.plotting.style import COLORS, require_matplotlib
from fairconstrained.reporting._html import Html, tag
from fairconstrained.reporting._names import isolated, printable
from fairconstrained.reporting._rows import ReportRows, ShownRows

__all__ = ["MOST_GROUPS", "path_figure", "score_figures"]

#: More groups than colours cannot be told apart in a figure.
MOST_GROUPS = len(COLORS)

_LONGEST_NAME = 28
_BLACK = "#000000"
# the page gives each colour one that is as clear on a dark ground
_PAGE_COLORS = {_BLACK: "currentColor"} | {
    color.lower(): f"var(--series-{number}, {color.lower()})"
    for number, color in enumerate(COLORS, start=1)
    if color.lower() != _BLACK
}


class Figure(NamedTuple):
    """A figure of the page: what names it, what describes it, and how to draw it into axes."""

    name: str
    title: str
    caption: str
    size: tuple[float, float]
    draw: Callable[[Any], object]

    def html(self) -> Html:
        """The figure with its caption."""
        return tag("figure", _svg(self), tag("figcaption", tag("strong", f"{self.title}. "), self.caption))


def score_figures(rows: ReportRows) -> list[Html]:
    """The positive-rate curve and the densities of the scores, of the largest groups if there are many."""
    shown, names = _largest(rows)
    method = _method(shown)
    entries = len(names) + 1 + (rows.interval is not None)
    left_out = rows.grouped.n_groups - len(names)
    among = f" Shown are the {len(names)} largest of {rows.grouped.n_groups} groups." if left_out else ""
    marked = " The percentile interval is marked." if rows.interval is not None else ""
    kind = "Estimated density" if method == "kde" else "Histogram"
    curve = Figure(
        "curve",
        "Positive rates at every threshold",
        "Each point of a curve is a threshold: the share of the largest group above it, and that of another group. "
        f"Groups that are scored alike are on the diagonal.{marked}{among}",
        (5.6, 5.2 + 0.2 * entries),
        lambda ax: ScoreCurveDisplay.from_report(shown, ax=ax),
    )
    density = Figure(
        "density",
        "Scores of the groups",
        f"{kind} of the scores within each group, as if all groups were of one size.{marked}{among}",
        (5.6, 4.4 + 0.2 * entries),
        lambda ax: ScoreDensityDisplay.from_report(shown, method=method, ax=ax),
    )
    return [curve.html(), density.html()]


def path_figure(report: Any) -> Html:
    """The Pareto front of a path."""
    return Figure(
        "front",
        "What fairness costs",
        "Each point is a model of the path. No other model is better than those on the line both in performance and in "
        "fairness.",
        (5.6, 4.2),
        lambda ax: ParetoFrontDisplay.from_report(report, ax=ax),
    ).html()


def _largest(rows: ReportRows) -> tuple[ShownRows, list[str]]:
    """The rows of the largest groups, by names that fit a legend."""
    codes = np.sort(np.argsort(-rows.sizes, kind="stable")[:MOST_GROUPS])
    names: dict[int, str] = {}
    for code in codes.tolist():
        name = _short(rows.names.plain(rows.grouped.labels[code]))
        names[code] = name if name not in names.values() else f"{name} ({code})"
    names = {code: isolated(name) for code, name in names.items()}
    return rows.among(codes, names), list(names.values())


def _short(name: str) -> str:
    """A name that fits a legend, and that matplotlib reads neither as mathematics nor as a secret."""
    words = " ".join(printable(name).split())
    if len(words) > _LONGEST_NAME:
        words = words[: _LONGEST_NAME - 1].rstrip() + "…"
    words = words.replace("$", r"\$")
    return f" {words}" if words.startswith("_") else words


def _method(shown: ShownRows) -> str:
    """A kernel estimate needs two scores in every group that differ."""
    assert shown.y_score is not None
    spread = np.asarray([np.ptp(own) for _, own in _scores_by_group(shown)])
    return "kde" if np.all(spread > 0) else "hist"


def _scores_by_group(shown: ShownRows) -> Iterator[tuple[str, np.ndarray]]:
    """Scores of positive weight by group."""
    assert shown.y_score is not None
    kept = np.ones(shown.y_score.size, dtype=bool) if shown.sample_weight is None else shown.sample_weight > 0
    for name, members in shown.sensitive_features.groupby("group").indices.items():
        own = shown.y_score[members][kept[members]]
        yield str(name), own


@contextmanager
def _style(name: str) -> Iterator[None]:
    """The style that matplotlib comes with, whatever the user has set; text as text, the same ids in every run."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # the browser draws the text, in fonts of its own
        warnings.filterwarnings("ignore", r"Glyph .* missing from|Matplotlib currently does not support", UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": f"fairconstrained {name}"})
        yield


def _svg(figure: Figure) -> Html:
    """Draw, and make the SVG a part of the page."""
    require_matplotlib("FairnessReport.to_html")
    from matplotlib.figure import Figure as Canvas

    written = io.StringIO()
    with _style(figure.name):
        canvas = Canvas(figsize=figure.size, layout="constrained")
        figure.draw(canvas.subplots())
        # cropped, as axes of equal scales do not fill their place
        crop = {"bbox_inches": "tight", "pad_inches": 0.04}
        canvas.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None}, **crop)
    root = ElementTree.fromstring(written.getvalue())
    _drop_what_pages_have(root)
    _make_ids_unique(root, figure.name)
    for element in root.iter():
        for key in ("style", "fill", "stroke"):
            if key in element.attrib:
                element.attrib[key] = _page_colors(element.attrib[key])
    root.attrib |= {"role": "img", "aria-labelledby": f"{figure.name}-title", "style": "stroke-linejoin: round"}
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    title = ElementTree.Element("title", {"id": f"{figure.name}-title"})
    title.text = f"{figure.title}. {figure.caption}"
    root.insert(0, title)
    return Html(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def _drop_what_pages_have(root: ElementTree.Element) -> None:
    """Names without namespaces, no metadata and no style sheet of its own, which would reach the whole page."""
    for element in list(root.iter()):
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style"):
                parent.remove(child)


def _make_ids_unique(root: ElementTree.Element, name: str) -> None:
    """The ids that something refers to get the name of the figure in front; the others go."""
    used = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "href":
                used.add(value.removeprefix("#"))
                element.attrib[key] = f"#{name}-{value.removeprefix('#')}"
            else:
                used.update(re.findall(r"url\(#([^)]+)\)", value))
                element.attrib[key] = value.replace("url(#", f"url(#{name}-")
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in used:
            element.attrib["id"] = f"{name}-{own}"


def _page_colors(style: str) -> str:
    """Colours of the page for those of the Displays."""
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda found: _PAGE_COLORS.get(found[0].lower(), found[0]), style)
