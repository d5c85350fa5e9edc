"""Docstrings are phrases that a stranger understands: they name the thing, or begin with a verb."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import fairconstrained
from fairconstrained.checks.docstrings import entries

PACKAGE = Path(fairconstrained.__file__).parent
ROOT = Path(__file__).parents[1]
#: Beginnings that leave out the thing which is meant.
RIDDLES = re.compile(r"(What|Of|The same|See)\b")
#: Beginnings of descriptions; "See" is one, as a class may document a parameter for others.
RIDDLES_OF_ENTRIES = re.compile(r"(What|Of|The same|Those|Whose|As in)\b")


def docstrings(source):
    """Every docstring, with the number of the line that it documents."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def riddles(source):
    """Line and text of summaries, and of descriptions of parameters and results, that leave out what is meant."""
    found = []
    for line, text in docstrings(source):
        if RIDDLES.match(text):
            found.append((line, text.splitlines()[0]))
        for section in ("Parameters", "Attributes", "Returns"):
            for _, entry in entries(text, section):
                _, _, description = entry.partition("\n")
                if RIDDLES_OF_ENTRIES.match(inspect.cleandoc(description)):
                    found.append((line, entry.strip()))
    return found


@pytest.mark.parametrize("folder", ["fairconstrained", "benchmarks", "docs/snippets", "examples", "tests"])
def test_docstrings_name_the_thing(folder):
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    found = {str(path.relative_to(ROOT)): riddles(path.read_text(encoding="utf-8")) for path in paths}
    assert {path: texts for path, texts in found.items() if texts} == {}


def test_the_rule_can_fail():
    source = (
        '"""Whatever."""\nclass A:\n    """What a class is."""\n    def f():\n        """Of it."""\n'
        'def g():\n    """Return it.\n\n    Parameters\n    ----------\n    x : int\n        Of it.\n    """\n'
    )
    assert riddles(source) == [(2, "What a class is."), (6, "x : int\n    Of it."), (4, "Of it.")]


def test_comments_on_constants_name_the_thing():
    found = [
        f"{path.name}: {comment}"
        for path in PACKAGE.rglob("*.py")
        for comment in re.findall(r"#: (.*)", path.read_text(encoding="utf-8"))
        if RIDDLES.match(comment)
    ]
    assert found == []
