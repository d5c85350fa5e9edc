"""The figures and tables of the documentation's page, as far as they have been run."""

from __future__ import annotations

from pathlib import Path

#: What every section of the page shows: figures and tables.
SECTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "published": (("published_pSP",), ("published",)),
    "pareto_pSP": (("pareto_pSP",), ()),
    "pareto_pDP": (("pareto_pDP",), ()),
    "acs": (("acs_pSP",), ("acs",)),
    "curves": (("curves_pSP", "curves_pDP"), ()),
    "densities": (("densities_pSP", "densities_pDP"), ()),
    "robustness": (("robustness_pSP",), ("robustness",)),
    "convergence": (("convergence_pSP", "convergence_pDP", "convergence_long_pSP"), ("convergence",)),
    "full": (("full_pSP",), ("full",)),
    "levels": (("levels_pSP",), ("levels",)),
    "celeba": (("celeba_pSP",), ("celeba",)),
    "progress": ((), ("progress",)),
}


def write_sections(docs: Path, stem: str) -> None:
    """Write ``docs/benchmarks/stem_NAME.inc`` for every section, with the figures and tables that are there."""
    for section, (figures, tables) in SECTIONS.items():
        images = [docs / "images" / f"{stem}_{name}.png" for name in figures]
        files = [docs / "benchmarks" / f"{stem}_{name}.csv" for name in tables]
        blocks = [f".. image:: ../images/{path.name}\n   :alt: {section}\n" for path in images if path.exists()]
        blocks += [f".. csv-table::\n   :file: {path.name}\n   :header-rows: 1\n" for path in files if path.exists()]
        text = "\n".join(blocks) or "Not run yet.\n"
        (docs / "benchmarks" / f"{stem}_{section}.inc").write_text(text, encoding="utf-8")
