"""Imports point downwards, and importing the package loads only what is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import fairconstrained

PACKAGE = Path(fairconstrained.__file__).parent
#: Lowest first; every layer may import from itself and from earlier ones.
LAYERS = (
    "checks",
    "devices",
    "cells",
    "groups",
    "features",
    "tables",
    "data",
    "sampling",
    "slopes",
    "kernels",
    "surrogates",
    "pairwise",
    "domains",
    "metrics",
    "models",
    "views",
    "objectives",
    "constraints",
    "terms",
    "points",
    "problem",
    "solvers",
    "theory",
    "torch",
    "callbacks",
    "estimators",
    "model_selection",
    "postprocessing",
    "datasets",
    "plotting",
    "paths",
    "certification",
    "reporting",
    "heads",
    "distributed",
    "command_line",
    "__main__",
)
#: What belongs to no layer: every layer may import it, and it imports no layer.
ANYWHERE = ("exceptions", "version")


def files(layer: str) -> list[Path]:
    """Empty for a layer that is planned and not there yet."""
    return sorted([*(PACKAGE / layer).rglob("*.py"), *PACKAGE.glob(f"{layer}.py")])


@cache
def imported(path: Path) -> set[str]:
    """Full names of all modules that a file imports, wherever in the file the import stands."""
    package = path.relative_to(PACKAGE.parent).parent.parts
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            # "from package import module" imports the module as well
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def layers_imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported(path) if name.startswith("fairconstrained.")}


def test_every_module_of_the_package_is_in_a_layer():
    present = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    assert present - {"__init__"} <= {*LAYERS, *ANYWHERE}
    assert len(present) >= 16


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if files(layer)])
def test_imports_point_downwards(layer):
    allowed = {*LAYERS[: LAYERS.index(layer) + 1], *ANYWHERE}
    upwards = {
        path.relative_to(PACKAGE).as_posix(): above
        for path in files(layer)
        if (above := layers_imported(path) - allowed)
    }
    assert upwards == {}
    # A layer that takes names from the top of the package would depend on everything.
    assert not any("fairconstrained" in imported(path) for path in files(layer))


@pytest.mark.parametrize("module", ANYWHERE)
def test_what_every_layer_may_import_imports_no_layer(module):
    assert layers_imported(PACKAGE / f"{module}.py") <= set(ANYWHERE)


def private_of_others(path: Path) -> set[str]:
    """Private modules of folders that a file is not in, and private names of other modules, that it imports."""
    found = set()
    for name in imported(path):
        package, *parts = name.split(".")
        private = [place for place, part in enumerate(parts) if re.match("_(?!_)", part)]
        if package == "fairconstrained" and private and PACKAGE.joinpath(*parts[: private[0]]) not in path.parents:
            found.add(name)
    return found


def test_underscores_are_private_to_their_folder():
    own = list(PACKAGE.rglob("*.py"))
    others = [path for folder in ("benchmarks", "docs", "examples") for path in (PACKAGE.parent / folder).rglob("*.py")]
    assert len(own) > 200
    found = {path.relative_to(PACKAGE.parent).as_posix(): private_of_others(path) for path in own + others}
    assert {name: private for name, private in found.items() if private} == {}


def test_metrics_need_no_torch_even_indirectly():
    reached, waiting = set(), ["metrics"]
    while waiting:
        layer = waiting.pop()
        reached.add(layer)
        for path in files(layer):
            assert not any(name.split(".")[0] == "torch" for name in imported(path)), path.name
            waiting += layers_imported(path) - reached
    assert reached <= {"metrics", "cells", "groups", "checks", *ANYWHERE}


def test_no_solver_reads_features():
    """Scores and their gradients are asked of the model, so that features may be anything that it takes."""
    for path in files("solvers"):
        read = [
            node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)
        ]
        assert not [node.lineno for node in read if node.attr in ("X", "blocks")], path.name


def test_the_rule_can_fail(tmp_path, monkeypatch):
    """The reader of imports sees all their forms, also inside functions."""
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path / "fairconstrained")
    path = tmp_path / "fairconstrained" / "metrics" / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import fairconstrained.problem\n"
        "from fairconstrained import solvers\n"
        "from fairconstrained.data import FairData\n"
        "from ..models import linear\n"
        "def late():\n    from fairconstrained.estimators._base import Target\n"
    )
    assert layers_imported(path) == {"problem", "solvers", "data", "models", "estimators"}


def test_private_names_of_other_folders_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path / "fairconstrained")
    path = tmp_path / "fairconstrained" / "metrics" / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "from sklearn.base import _fit_context\n"
        "from fairconstrained.metrics._own import _name\n"
        "from fairconstrained.metrics import _other\n"
        "from fairconstrained.metrics.auc import auc, _rows\n"
        "from fairconstrained.groups import Groups, _code\n"
        "def late():\n    import fairconstrained.models._base\n"
    )
    assert private_of_others(path) == {
        "fairconstrained.groups._code",
        "fairconstrained.metrics.auc._rows",
        "fairconstrained.models._base",
    }


def test_import_loads_only_what_is_used():
    """One interpreter for all parts, as to start one takes seconds."""
    code = """
import sys, fairconstrained
def loaded(*names):
    return sorted(name for name in sys.modules if name.removeprefix("fairconstrained.").startswith(names))
print(loaded("numpy", "scipy", "pandas", "sklearn", "torch"))
fairconstrained.GroupLossClassifier
print(loaded("certification", "heads", "paths", "plotting", "reporting", "estimators.rate_parity"))
types = fairconstrained.skops_trusted_types()  # of every module of the package
print({"fairconstrained.plotting._roc.SubsetRoc", "fairconstrained.torch.multipliers.Multipliers"} <= {*types})
print(loaded("matplotlib", "fairlearn", "lightgbm", "folktables"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["[]", "[]", "True", "[]", ""]
