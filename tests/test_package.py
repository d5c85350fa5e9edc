"""Metadata of what is published, the page on an index, and what the extras install."""

import ast
import re
import runpy
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Names of distributions whose modules have another one.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


@pytest.fixture(scope="module")
def without_files():
    pytest.importorskip("setuptools")
    return runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["without_files"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("![Alt text](docs/a.png) b", " b"),
        ("![a](docs/a.png)\n\n*What it\nshows.*\n\nb *c*", "\n\nb *c*"),
        ("[the guide](docs/guide.md) and `code`", "the guide and `code`"),
        ('<picture>\n<source srcset="docs/b.png">\n<img src="docs/a.png">\n</picture>c', "c"),
        ('<img alt="x" src="docs/a.png" width="9"> d', " d"),
        ("[here](https://example.org/x) and [there](#part)", "[here](https://example.org/x) and [there](#part)"),
        ('![p](https://example.org/p.png) <img src="https://example.org/p.png">', None),
        ("x[0] (not a link) f(a)[b]", None),
    ],
)
def test_the_page_on_an_index_needs_no_files(without_files, text, expected):
    assert without_files(text) == (text if expected is None else expected)


def test_the_readme_has_no_files_left_on_an_index(without_files):
    page = without_files((ROOT / "README.md").read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)]*)\)|src=\"([^\"]*)\"", re.sub(r"```.*?```", "", page, flags=re.DOTALL))
    assert [target for pair in targets for target in pair if target and not re.match(r"https?:|#", target)] == []
    assert page.count("```python") >= 1


def test_python_versions_begin_with_the_lowest():
    versions = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert versions[0] == PROJECT["requires-python"].removeprefix(">=")
    numbers = [int(version.partition(".")[2]) for version in versions]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def names(requirements):
    return {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in requirements}


def test_the_demo_installs_what_it_imports_and_no_tools():
    extras = PROJECT["optional-dependencies"]
    plot, *own = extras["demo"]
    assert plot == "fairconstrained[plot]"
    installed = names([*PROJECT["dependencies"], *extras["plot"], *own])
    tree = ast.parse((ROOT / "examples" / "demo.py").read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    others = {name.partition(".")[0] for name in modules} - {*sys.stdlib_module_names, "fairconstrained", "examples"}
    assert names(DISTRIBUTIONS.get(name, name) for name in others) - installed == set()
    assert not installed & names(extras["dev"])


def test_the_addresses_of_the_project_stand_in_one_place():
    """Whoever fills them in need not look for more."""
    places = [path for pattern in ("*.md", "*.cff", "docs/**/*.rst", "docs/*.py") for path in ROOT.glob(pattern)]
    places = [path for path in places if "generated" not in path.parts and "_build" not in path.parts]
    urls = set(PROJECT["urls"].values())
    assert [path.name for path in places if any(url in path.read_text(encoding="utf-8") for url in urls)] == []


def test_the_citation_has_the_papers_of_the_documentation():
    papers = (ROOT / "docs" / "papers.rst").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert set(re.findall(r"arXiv:\d+\.\d+", papers)) == set(re.findall(r"arXiv:\d+\.\d+", citation))
    assert citation.count("  - type: article") == 5
    assert f"license: {PROJECT['license']}" in citation


def test_the_readme_names_every_extra():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in PROJECT["optional-dependencies"] if f"`{name}`" not in readme] == []
