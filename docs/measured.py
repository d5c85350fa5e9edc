"""A line on every page with measured figures: version and day, and whether the measured code has changed since.

The line follows from ``docs/benchmarks/manifest.csv`` and from the tables and pictures that the page shows; nobody
writes it by hand. Benchmarks have it below the title, other pages at their end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes

from benchmarks.manifest import MANIFEST, Entry, benchmark_of, entries, remark


def entries_of(page: str, shown: set[str], pictures: set[str]) -> list[Entry]:
    """Lines of the manifest about a page, its tables and its pictures.

    Parameters
    ----------
    page : str
        Name of the page below ``docs``, without its ending.
    shown : set of str
        Names of the files that it includes.
    pictures : set of str
        Names of its pictures; those of a benchmark come from the tables of it.
    """
    known = entries()
    own = {name for name in (*shown, *pictures, f"{page}.rst") if any(entry.file == name for entry in known)}
    drawn = {benchmark_of(name) for name in pictures - own}
    drawn -= {entry.benchmark for entry in known if entry.file in own}
    return [entry for entry in known if entry.file in own or entry.benchmark in drawn]


def add_line(app: Any, doctree: nodes.document) -> None:
    """Add the line to a page; Sphinx calls this for every page that it has read."""
    page, sections = app.env.docname, list(doctree.findall(nodes.section))
    shown = {Path(name).name for name in app.env.dependencies.get(page, ())}
    pictures = {Path(image["uri"]).name.replace("_dark.", ".") for image in doctree.findall(nodes.image)}
    found = entries_of(page, shown, pictures)
    if not found or not sections:
        return
    app.env.note_dependency(str(MANIFEST))
    line = nodes.paragraph("", "", nodes.emphasis("", remark(found)), classes=["measured"])
    place = 1 if page.startswith("benchmarks/") else len(sections[0])
    sections[0].insert(place, line)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("doctree-read", add_line)
    return {"parallel_read_safe": True}
