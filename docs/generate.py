"""Pages that follow from the package and the repository: the API reference, the metrics and the changelog.

The reference lists ``__all__`` of every public module, so that a new name appears by itself.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import standing
from sphinx.pycode import ModuleAnalyzer

import fairconstrained
from fairconstrained.metrics import METRICS

ROOT = Path(__file__).parents[1]
#: Public names of the package by what they are for; all others come last.
TASKS = {
    "Linear models and networks": [
        "PartialParityClassifier",
        "PartialParityRegressor",
        "RateParityClassifier",
        "AUCFairClassifier",
        "LossParityClassifier",
        "GroupLossClassifier",
        "GroupLossRegressor",
        "FairRanker",
        "MinorityRateClassifier",
        "ParityPairClassifier",
        "NeymanPearsonClassifier",
    ],
    "Any model": ["FairHeadClassifier", "FairHeadRegressor", "FairBoostingClassifier", "FairBoostingRegressor"],
    "Choosing kappa": [
        "fairness_path",
        "FairnessPath",
        "FairnessPathCV",
        "PartialParityClassifierCV",
        "AUCFairClassifierCV",
    ],
    "Certificates and reports": [
        "certify",
        "Certificate",
        "CertifiedFairClassifier",
        "gap_interval",
        "fairness_report",
        "FairnessReport",
    ],
    "Methods to compare with": [
        "PairwiseParityClassifier",
        "RegularizedParityClassifier",
        "CorrelationPenaltyClassifier",
    ],
}
#: Modules by what they are for; all others are for those who extend the package.
MODULES = {
    "Train": [
        "",
        "estimators",
        "heads",
        "postprocessing",
        "torch",
        "constraints",
        "callbacks",
        "tables",
        "distributed",
    ],
    "Choose, measure, report": ["metrics", "model_selection", "paths", "certification", "reporting", "plotting"],
    "Data and theory": ["datasets", "groups", "theory", "exceptions"],
}


def write_pages(folder: Path) -> None:
    """Write ``changelog.inc``, ``metrics.inc``, ``where_we_stand.csv`` and ``modules/*.rst``."""
    (folder / "modules").mkdir(parents=True, exist_ok=True)
    _write(folder / "changelog.inc", _changelog())
    _write(folder / "metrics.inc", _metrics())
    standing.write(folder / "where_we_stand.csv")
    documented: dict[int, str] = {}
    modules = list(public_modules())
    for module in modules:
        _write(folder / "modules" / f"{module.__name__}.rst", _module_page(module, documented))
    for page in (folder / "modules").glob("*.rst"):
        if page.stem not in {module.__name__ for module in modules}:
            page.unlink()
    _write(folder / "modules.inc", _index(modules))


def public_modules() -> Iterator[ModuleType]:
    """The package and its public modules, as far as they export anything; in the order of their names."""
    yield fairconstrained
    for info in pkgutil.iter_modules(fairconstrained.__path__, "fairconstrained."):
        if not info.name.rpartition(".")[2].startswith("_"):
            module = importlib.import_module(info.name)
            if getattr(module, "__all__", ()):
                yield module


def _index(modules: list[ModuleType]) -> str:
    """Public names by task; then lists of the modules with the first paragraphs of their docstrings."""
    known = {name for names in TASKS.values() for name in names}
    others = [
        name
        for name in sorted(fairconstrained.__all__, key=str.lower)
        if callable(getattr(fairconstrained, name)) and name not in known
    ]
    parts = [".. currentmodule:: fairconstrained\n\n"]
    for title, names in {**TASKS, "Also in the package": others}.items():
        lines = "".join(f"   {name}\n" for name in names)
        parts.append(f"{_heading(title)}.. autosummary::\n   :nosignatures:\n\n{lines}\n")
    left = {module.__name__.partition(".")[2]: module for module in modules}
    for title, names in MODULES.items():
        parts.append(_module_list(f"Modules: {title.lower()}", [left.pop(name) for name in names if name in left]))
    parts.append(_module_list("Modules: inside the package", list(left.values())))
    return "\n".join(parts)


def _module_list(title: str, modules: list[ModuleType]) -> str:
    """Section with a line for every module, and their place in the table of contents."""
    lines = [_heading(title)]
    for module in modules:
        summary = " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())
        lines.append(f":doc:`{module.__name__} <generated/modules/{module.__name__}>`\n   {summary}\n")
    names = [module.__name__.partition(".")[2] or module.__name__ for module in modules]
    pages = "".join(
        f"   {name} <generated/modules/{module.__name__}>\n" for name, module in zip(names, modules, strict=True)
    )
    return "\n".join(lines) + f"\n.. toctree::\n   :caption: {title}\n   :hidden:\n\n{pages}"


def _heading(title: str) -> str:
    return f"{title}\n{'-' * len(title)}\n\n"


def _module_page(module: ModuleType, documented: dict[int, str]) -> str:
    """One page: the module's docstring and tables of what it exports, each name on the first page that has it."""
    name = module.__name__
    sections: dict[str, list[str]] = {"Classes": [], "Functions": [], "Data": [], "Also here": []}
    for exported in sorted(module.__all__, key=str.lower):
        value = getattr(module, exported)
        if exported.startswith("__") or inspect.ismodule(value):
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            if id(value) in documented:
                sections["Also here"].append(f"- `{exported} <{documented[id(value)]}>`\n")
                continue
            documented[id(value)] = f"{name}.{exported}"
            kind = "Classes" if inspect.isclass(value) else "Functions"
            sections[kind].append(f"   {exported}\n")
        else:
            sections["Data"].append(f".. py:data:: {exported}\n\n   {_comment(module, exported, value)}\n\n")
    page = [name, "\n", "=" * len(name), f"\n\n.. automodule:: {name}\n   :no-members:\n\n"]
    page.append(f".. currentmodule:: {name}\n\n")
    for title, lines in sections.items():
        if lines:
            page += [title, "\n", "-" * len(title), "\n\n"]
            if title in ("Classes", "Functions"):
                page.append(".. autosummary::\n   :toctree: ../api\n\n")
            page += [*lines, "\n"]
    return "".join(page)


def _comment(module: ModuleType, name: str, value: Any) -> str:
    """The ``#:`` comment above a constant, wherever in the module or package it is assigned."""
    sources = [module.__name__]
    if hasattr(module, "__path__"):
        sources += [info.name for info in pkgutil.iter_modules(module.__path__, module.__name__ + ".")]
    for source in sources:
        lines = ModuleAnalyzer.for_module(source).find_attr_docs().get(("", name))
        if lines:
            return " ".join(lines).strip()
    return f"A `{type(value).__name__}`."


def _changelog() -> str:
    """``CHANGELOG.md`` as reStructuredText: headings, code and links; lists are the same in both."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    text = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", r"``\1``", text)
    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"`\1 <\2>`__", text)

    def underlined(match: re.Match[str]) -> str:
        return f"{match[2]}\n{'=-~^'[len(match[1]) - 1] * len(match[2])}\n"

    return re.sub(r"^(#{1,4}) +(.+)$", underlined, text, flags=re.MULTILINE)


def _metrics() -> str:
    """Table of the metrics from their entries."""
    lines = [".. list-table::\n   :header-rows: 1\n\n", "   * - Metric, and its other names\n     - In papers\n"]
    lines.append("     - Compared\n     - Unit\n")
    for info in METRICS.values():
        others = "".join(f", ``{name}``" for name in info.names[1:])
        lines.append(f"   * - `~fairconstrained.metrics.{info.name}`{others}\n     - {info.symbol}\n")
        lines.append(f"     - {info.description}\n     - {info.unit}\n")
    return "".join(lines)


def _write(path: Path, text: str) -> None:
    """Write only what changed, so that Sphinx reads no page twice."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
