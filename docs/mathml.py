"""Formulas as MathML, which browsers show by themselves: no script, and no request to anyone's server."""

from __future__ import annotations

import re
from typing import Any

from docutils.writers._html_base import HTMLTranslator

# What docutils' converter takes differently from TeX: an accent under which it puts the subscript, and \tfrac12.
_REWRITE = (
    (re.compile(r"\\(bar|hat|tilde) ?(\\[a-zA-Z]+|[a-zA-Z])(?=[_^])"), r"{{}\\\1{\2}}"),
    (re.compile(r"\\(t?frac)(\d)(\d)"), r"\\\1{\2}{\3}"),
)


def _visit(translator: Any, node: Any) -> None:
    text = node.astext()
    # words need no backslash before "_", and docutils would show it
    text = re.sub(r"\\text\{[^}]*\}", lambda words: words[0].replace(r"\_", "_"), text)
    for pattern, replacement in _REWRITE:
        text = pattern.sub(replacement, text)
    translator.math_output, translator.math_options = "mathml", ""
    # docutils' own writer knows MathML; the one of Sphinx, a subclass, asks a renderer such as this instead
    HTMLTranslator.visit_math(translator, type(node)(node.rawsource, text))


def _depart(translator: Any, node: Any) -> None:
    pass


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (_visit, _depart), (_visit, _depart))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
