"""Summaries of docstrings are phrases that a stranger understands: they name the thing, or begin with a verb."""

import ast
import re
from pathlib import Path

import pytest

import fairconstrained

PACKAGE = Path(fairconstrained.__file__).parent
#: Beginnings that leave out the thing which is meant.
RIDDLES = re.compile(r"(What|Of|The same|See)\b")


def summaries(source):
    """The first line of every docstring, with the number of the line that it documents."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text.splitlines()[0]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_summaries_name_the_thing(path):
    found = [(line, text) for line, text in summaries(path.read_text(encoding="utf-8")) if RIDDLES.match(text)]
    assert found == []


def test_the_rule_can_fail():
    source = '"""Whatever."""\nclass A:\n    """What a class is."""\n    def f():\n        """Of it."""\n'
    assert [line for line, text in summaries(source) if RIDDLES.match(text)] == [2, 4]


def test_comments_on_constants_name_the_thing():
    found = [
        f"{path.name}: {comment}"
        for path in PACKAGE.rglob("*.py")
        for comment in re.findall(r"#: (.*)", path.read_text(encoding="utf-8"))
        if RIDDLES.match(comment)
    ]
    assert found == []
