"""`LastOfData`: the last result of a computation on every data set, for runs on the same data under other bounds."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from fairconstrained.data import FairData

__all__ = ["LastOfData"]


class LastOfData:
    """Results that are kept for as long as the data are there; the fits of a path have the same data.

    One for every data set is enough, as a path asks for the same again and again. No path has to say so, unlike for
    ``SharedRows`` of the estimators, which keeps the data themselves. Neither the needs nor the results may refer to
    the data, which would then never be freed.

    Parameters
    ----------
    same : callable, optional
        Function of a need of the last call and one of this call: whether they are the same. By default, whether they
        are one object.
    """

    def __init__(self, same: Callable[[Any, Any], bool] = operator.is_) -> None:
        self._same = same
        self._known: WeakKeyDictionary[FairData, tuple[tuple[Any, ...], Any]] = WeakKeyDictionary()

    def get(self, data: FairData, needs: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """The result for the same ``needs`` as the last time on these data; else a new one."""
        last = self._known.get(data)
        if last is None or len(last[0]) != len(needs) or not all(map(self._same, last[0], needs)):
            last = self._known[data] = needs, compute()
        return last[1]
