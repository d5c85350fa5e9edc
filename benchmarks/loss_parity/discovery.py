"""Discovery of data sets, constraints, methods and promises: the modules of a folder."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

__all__ = ["missing", "modules_of"]


def modules_of(folder: str) -> dict[str, ModuleType]:
    """The modules of a subfolder by their names, those with a smaller ``PLACE`` first."""
    package = import_module(f"{__package__}.{folder}")
    names = [info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_")]
    found = {name: import_module(f"{package.__name__}.{name}") for name in sorted(names)}
    return dict(sorted(found.items(), key=lambda item: getattr(item[1], "PLACE", 100)))


def missing(module: ModuleType) -> list[str]:
    """Packages that the module ``REQUIRES`` and that are not installed."""
    return [name for name in getattr(module, "REQUIRES", ()) if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False
