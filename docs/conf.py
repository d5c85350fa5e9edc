"""Configuration of the documentation; see https://www.sphinx-doc.org for what the names mean."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

import generate  # noqa: E402

import fairconstrained  # noqa: E402

project = "fairconstrained"
author = "The fairconstrained developers"
copyright = author
version = release = fairconstrained.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "mathml",
    "measured",
    "numpydoc",
    "pictures",
    "runcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "check", "snippets"]
default_role = "py:obj"

autosummary_generate = True
# Words for which the search should find a class, besides its name and its description.
RATES = ["demographic parity", "equal opportunity", "equalized odds", "four-fifths rule", "disparate impact"]
autosummary_context = {
    "topics": {
        "fairconstrained.RateParityClassifier": [*RATES, "predictive parity", "intersectional groups"],
        "fairconstrained.PartialParityClassifier": ["demographic parity", "statistical parity", "partial parity"],
        "fairconstrained.FairBoostingClassifier": ["demographic parity", "gradient boosting", "equalized odds"],
        "fairconstrained.FairHeadClassifier": ["demographic parity", "equalized odds", "pretrained model"],
        "fairconstrained.postprocessing.GroupThresholdClassifier": [*RATES, "thresholds"],
        "fairconstrained.LossParityClassifier": ["loss parity", "accuracy parity"],
        "fairconstrained.GroupLossClassifier": ["bounded group loss", "minimax"],
        "fairconstrained.AUCFairClassifier": ["xAUC", "AUC fairness"],
    }
}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# The column at the right has no room for "Class.method".
toc_object_entries_show_parents = "hide"
# The class template lists the members; numpydoc would list them a second time.
numpydoc_show_class_members = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"fairconstrained {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": project},
    "collapse_navigation": True,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages without others below them have nothing to list at the left.
html_sidebars = {page: [] for page in ("index", "quick_start", "papers", "glossary", "changelog")}
# Only code has a button to copy it, not what code prints.
copybutton_selector = "div.highlight-python pre, div.highlight-default pre, div.highlight-bash pre"

SECTIONS = ("start", "notions", "kappa", "models", "networks", "reports")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # examples/ may hold scripts that are not for the gallery
    "ignore_pattern": r"(^|[\\/])(?!plot_)[^\\/]*\.py$",
    "subsection_order": [f"../examples/{part}" for part in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"plot_",
    "reset_modules": ("matplotlib", "seaborn", "gallery.plain_warnings"),
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("fairconstrained",),
    "plot_gallery": True,
    # as many examples beside each other as sphinx-build -j says
    "parallel": True,
    "abort_on_example_error": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    # the page of times asks other hosts for its scripts; every example says its own time
    "write_computation_times": False,
    "show_signature": False,
}


def skip_foreign_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class inherits from scikit-learn, torch or the standard library."""
    origin = getattr(obj, "fget", None) or getattr(obj, "func", None) or obj
    module = getattr(origin, "__module__", None) or type(origin).__module__
    if isinstance(module, str) and module.split(".")[0] != "fairconstrained":
        return True
    return None


def own_source(app: Any, module: str, attribute: str) -> str | None:
    """Show the source of what the package defines; what it takes from others has its source elsewhere."""
    value: Any = importlib.import_module(module)
    for name in attribute.split("."):
        value = getattr(value, name, None)
    defined = getattr(value, "__module__", None) or module
    return defined if defined.split(".")[0] == "fairconstrained" else module


def setup(app: Any) -> None:
    """Sphinx calls this; it reads the pages that `generate` writes only afterwards."""
    generate.write_pages(HERE / "generated")
    app.connect("autodoc-skip-member", skip_foreign_member)
    app.connect("viewcode-follow-imported", own_source)
