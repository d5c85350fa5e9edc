"""`SharedRows`: what fits to the same rows compute once, whatever they bound."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

__all__ = ["SharedRows"]


class SharedRows:
    """Results that do not depend on the bound: checked rows in the order of the data, parts of them, and the like.

    Every fit asks such an object for them. The fits of a path have one together, which keeps them; that of a single fit
    keeps nothing, so that a part is there only as long as it is needed.

    Solvers have a second cache, ``LastOfData``, because they know the data but not whether other fits follow. What they
    keep is small beside the rows, and goes when the data go. Kept rows are copies of X, and one cannot wait for the end
    of the data to let them go, as the data are among them: here the path decides.

    Attributes
    ----------
    last : object
        The last fit to the rows, which may be the next one as well; None if nothing is kept.
    """

    def __init__(self, keeps: bool = True) -> None:
        self.keeps = keeps
        self.last: Any = None
        self._known: dict[Hashable, Any] = {}

    def remember(self, last: Any) -> None:
        """Keep the last fit, unless nothing is kept."""
        if self.keeps:
            self.last = last

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """The result that is kept under a key, computed where there is none."""
        if not self.keeps:
            return compute()
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def each(self, key: Hashable, compute: Callable[[], Iterable[Any]]) -> Iterable[Any]:
        """The results that are kept under a key; one after the other where nothing is kept."""
        return self.once(key, lambda: tuple(compute())) if self.keeps else compute()

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedRows, (self.keeps,)  # another process computes its own
