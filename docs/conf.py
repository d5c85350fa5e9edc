"""Configuration of the documentation; see https://www.sphinx-doc.org for what the names mean."""

from __future__ import annotations

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
    "mathml",
    "measured",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "snippets"]
default_role = "py:obj"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# The class template lists the members; numpydoc would list them a second time.
numpydoc_show_class_members = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"fairconstrained {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"quick_start": [], "changelog": []}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # examples/ may hold scripts that are not for the gallery
    "ignore_pattern": r"(^|[\\/])(?!plot_)[^\\/]*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"plot_",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("fairconstrained",),
    "plot_gallery": True,
    # as many examples beside each other as sphinx-build -j says
    "parallel": True,
    "abort_on_example_error": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
}


def skip_foreign_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class inherits from scikit-learn, torch or the standard library."""
    origin = getattr(obj, "fget", None) or getattr(obj, "func", None) or obj
    module = getattr(origin, "__module__", None) or type(origin).__module__
    if isinstance(module, str) and module.split(".")[0] != "fairconstrained":
        return True
    return None


def setup(app: Any) -> None:
    """Sphinx calls this; it reads the pages that `generate` writes only afterwards."""
    generate.write_pages(HERE / "generated")
    app.connect("autodoc-skip-member", skip_foreign_member)
