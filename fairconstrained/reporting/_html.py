"""HTML from plain text that is escaped wherever it comes from: a string is markup only if `tag` made it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from fairconstrained.reporting._names import printable

__all__ = ["Cell", "Html", "folded", "joined", "table", "tag", "template"]


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


class Cell(NamedTuple):
    """A cell of a table."""

    #: Content of the cell; `Html` for markup.
    text: str
    #: The number that sorting goes by, NaN comes last; None to sort by the text.
    value: float | None = None


def tag(name: str, *content: Any, **attributes: Any) -> Html:
    """An element; trailing underscores of attributes are dropped, others become hyphens, None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(printable(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{joined(*content)}</{name}>")


def joined(*content: Any) -> Html:
    """Pieces one after the other, those that are no markup escaped."""
    return Html("".join(piece if isinstance(piece, Html) else escape(printable(piece)) for piece in content))


def template(name: str, **values: Any) -> Html:
    """A template of the package filled in, values that are no markup escaped."""
    text = files("fairconstrained.reporting").joinpath("templates", name).read_text(encoding="utf-8")
    return Html(Template(text).substitute({key: joined(value) for key, value in values.items()}) if values else text)


def table(
    caption: str, headings: Sequence[Cell], body: Sequence[Sequence[Cell]], foot: Sequence[Sequence[Cell]] = ()
) -> Html:
    """A table that `report.js` makes sortable; rows of the foot stay where they are."""
    head = [
        tag("th", heading.text, scope="col", class_=_kind(column))
        for heading, column in zip(headings, zip(*body, *foot, strict=True), strict=True)
    ]
    parts = [tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *map(_row, body))]
    if foot:
        parts.append(tag("tfoot", *map(_row, foot)))
    return tag(
        "div", tag("table", *parts, class_="sortable"), class_="scroll", role="region", aria_label=caption, tabindex="0"
    )


def folded(summary: str, content: Html) -> Html:
    """Return a part that readers can open."""
    return tag("details", tag("summary", summary), content)


def _row(cells: Sequence[Cell]) -> Html:
    first, *others = cells
    return tag(
        "tr",
        tag("th", first.text, scope="row", class_=_kind((first,)), data_value=_sorting(first)),
        *map(_cell, others),
    )


def _cell(cell: Cell) -> Html:
    return tag("td", cell.text, class_=_kind((cell,)), data_value=_sorting(cell))


def _kind(column: Sequence[Cell]) -> str | None:
    return "number" if all(cell.value is not None for cell in column) else None


def _sorting(cell: Cell) -> str | None:
    """Return the key by which the script sorts; an empty word is NaN."""
    if cell.value is None:
        return None
    return "" if cell.value != cell.value else repr(float(cell.value))
