"""Public names are listed once, and what a package says of them agrees: ``__all__``, ``dir`` and ``import *``."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import fairconstrained

PACKAGE = Path(fairconstrained.__file__).parent
LAZY = sorted(".".join(stub.parent.relative_to(PACKAGE.parent).parts) for stub in PACKAGE.rglob("__init__.pyi"))


@pytest.mark.parametrize("name", LAZY)
def test_names_of_a_package_agree(name):
    package = importlib.import_module(name)
    listed = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    names = [alias.name for line in listed for alias in line.names]
    assert sorted(names) == package.__all__ == dir(package)
    # Type checkers export only what is named twice.
    assert names == [alias.asname for line in listed for alias in line.names]
    imported = {}
    exec(f"from {name} import *", imported)
    assert imported.keys() - {"__builtins__"} == {*names}
    assert all(value is getattr(package, known) for known, value in imported.items() if known in names)


def test_modules_are_attributes_of_the_package():
    """All public ones but ``torch``, which ``import *`` would put in the place of PyTorch."""
    names = [module.name for module in pkgutil.iter_modules(fairconstrained.__path__)]
    public = {name for name in names if hasattr(importlib.import_module(f"fairconstrained.{name}"), "__all__")}
    attributes = {name for name in fairconstrained.__all__ if inspect.ismodule(getattr(fairconstrained, name))}
    assert attributes == public - {"torch"}


def test_an_unknown_name_is_missed():
    with pytest.raises(ImportError, match="GroupLossClassifer"):
        from fairconstrained import GroupLossClassifer  # noqa: F401
    assert not hasattr(fairconstrained, "GroupLossClassifer")
