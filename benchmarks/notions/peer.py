"""A method of another package: how it is fitted, the package that it needs, and its notions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.any_model.methods import Outcome
from benchmarks.notions.setting import Setting


@dataclass(frozen=True)
class Peer:
    """A method of another package.

    Parameters
    ----------
    fit : callable
    package : str
        Name by which it is imported.
    notions : tuple of str
    """

    fit: Callable[[Setting], Outcome]
    package: str
    notions: tuple[str, ...]

    @property
    def missing(self) -> str:
        """The reason why it cannot be run here; empty if it can."""
        return "" if find_spec(self.package) is not None else f"{self.package} is not installed"
