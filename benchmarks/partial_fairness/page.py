"""The figures and tables of the documentation's page, as far as they have been run."""

from __future__ import annotations

from pathlib import Path

#: Figures of every section of the page, with descriptions for readers who do not see them, and its tables.
SECTIONS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "published": (
        {"published_pSP": "Accuracy against fairness on three data sets: our front beside the published points"},
        ("published",),
    ),
    "pareto_pSP": (
        {"pareto_pSP": "Fronts of accuracy and partial statistical parity of all methods, three data sets"},
        (),
    ),
    "pareto_pDP": (
        {"pareto_pDP": "Fronts of accuracy and partial demographic parity of all methods, three data sets"},
        (),
    ),
    "acs": ({"acs_pSP": "Accuracy against fairness of our models and of other methods on ACS income"}, ("acs",)),
    "curves": (
        {
            "curves_pSP": "Share of one group above each threshold against that of the other, statistical parity",
            "curves_pDP": "Share of one group above each threshold against that of the other, demographic parity",
        },
        (),
    ),
    "densities": (
        {
            "densities_pSP": "Densities of the scores of both groups for each method, statistical parity",
            "densities_pDP": "Densities of the scores of both groups for each method, demographic parity",
        },
        (),
    ),
    "robustness": (
        {"robustness_pSP": "Fronts of accuracy and fairness for shifted and longer intervals"},
        ("robustness",),
    ),
    "convergence": (
        {
            "convergence_pSP": "Objective and violation against seconds for the solvers, statistical parity",
            "convergence_pDP": "Objective and violation against seconds for the solvers, demographic parity",
            "convergence_long_pSP": "Objective and violation against seconds in long runs, statistical parity",
        },
        ("convergence",),
    ),
    "full": ({"full_pSP": "Fronts of accuracy and fairness with a bound on all ranks and on an interval"}, ("full",)),
    "levels": ({"levels_pSP": "Fronts of accuracy and fairness for several numbers of levels"}, ("levels",)),
    "celeba": ({"celeba_pSP": "Accuracy against fairness on CelebA beside the published points"}, ("celeba",)),
    "progress": ({}, ("progress",)),
}


def write_sections(docs: Path, stem: str) -> None:
    """Write ``docs/benchmarks/stem_NAME.inc`` for every section, with the figures and tables that are there."""
    for section, (figures, tables) in SECTIONS.items():
        images = {docs / "images" / f"{stem}_{name}.png": alt for name, alt in figures.items()}
        files = [docs / "benchmarks" / f"{stem}_{name}.csv" for name in tables]
        blocks = [
            f".. image:: ../images/{path.name}\n   :alt: {alt}\n" for path, alt in images.items() if path.exists()
        ]
        blocks += [f".. csv-table::\n   :file: {path.name}\n   :header-rows: 1\n" for path in files if path.exists()]
        text = "\n".join(blocks) or "Not run yet.\n"
        (docs / "benchmarks" / f"{stem}_{section}.inc").write_text(text, encoding="utf-8")
