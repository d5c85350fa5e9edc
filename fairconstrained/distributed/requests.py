"""Rows of all processes as one table, and the work of the processes that hold them."""

from __future__ import annotations

import traceback
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.distributed.channel import Channel
from fairconstrained.distributed.errors import ProcessLost
from fairconstrained.tables import Parts
from fairconstrained.tables.table import taken_rows

__all__ = ["Attempt", "LeaderParts", "Outcome", "attempt", "serve", "tell"]


class _Request(NamedTuple):
    """Request to compute with rows.

    Attributes
    ----------
    function : callable
        Takes features and the columns.
    columns : tuple
    key : int or None
        Number of the choice of rows; None: all rows.
    rows : ndarray or None
        The choice, if it is new.
    forgotten : list of int
        Numbers of choices that are not needed any more.
    """

    function: Callable[..., Any]
    columns: tuple[Any, ...]
    key: int | None
    rows: np.ndarray | None
    forgotten: list[int]


class _HeldRows:
    """Rows of this process, and choices of them that are used again and again, such as those of a fold."""

    def __init__(self, X: Any) -> None:
        self._rows: dict[int | None, Any] = {None: X}

    def result(self, request: _Request) -> Any:
        """Return what is asked for."""
        for key in request.forgotten:
            self._rows.pop(key, None)
        if request.rows is not None:
            self._rows[request.key] = taken_rows(self._rows[None], request.rows)
        return request.function(self._rows[request.key], *request.columns)


class LeaderParts(Parts):
    """Rows of all processes, as the first one of them sees them: every process computes with its own.

    Parameters
    ----------
    channel : Channel
    X : ndarray, CSR array or Table
        Rows of this process.
    lengths : sequence of int
        Number of rows of every process.
    dtype : numpy.dtype
    names : sequence of str or None

    Attributes
    ----------
    n_rounds : int
        How often the processes were asked so far.
    """

    def __init__(
        self, channel: Channel, X: Any, lengths: Sequence[int], dtype: np.dtype, names: Sequence[str] | None
    ) -> None:
        self.lengths, self.n_features, self.dtype = tuple(lengths), X.shape[1], dtype
        self.names = None if names is None else tuple(names)
        self.n_rounds = 0
        self._channel, self._own = channel, _HeldRows(X)
        self._keys: dict[int, int] = {}
        self._numbers = count()
        self._forgotten: dict[int, list[int]] = defaultdict(list)

    @override
    def results(
        self, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]], taken: Sequence[np.ndarray | None]
    ) -> Iterator[Any]:
        self.n_rounds += 1
        wanted = self.with_rows(taken)
        requests = {k: self._request(k, function, columns[k], taken[k]) for k in wanted}
        others = [k for k in wanted if k]
        sent = {k: attempt(self._channel.send, requests[k], k) for k in others}
        tried = {0: attempt(self._own.result, requests[0])} if 0 in wanted else {}
        tried |= {k: sent[k] if sent[k].error else attempt(self._channel.receive, k) for k in others}
        for each in tried.values():
            if each.error:
                raise each.error
        for k in others:
            if tried[k].result.failure:
                raise RuntimeError(f"process {k} could not compute with its rows:\n{tried[k].result.failure}")
        yield from (tried[k].result.result if k else tried[k].result for k in wanted)

    def _request(
        self, process: int, function: Callable[..., Any], columns: tuple[Any, ...], rows: np.ndarray | None
    ) -> _Request:
        key, new = (None, None) if rows is None else (self._keys.get(id(rows)), None)
        if rows is not None and key is None:
            key, new = next(self._numbers), rows
            self._keys[id(rows)] = key
            weakref.finalize(rows, self._forget, process, id(rows))
        return _Request(function, columns, key, new, self._forgotten.pop(process, []))

    def _forget(self, process: int, place: int) -> None:
        self._forgotten[process].append(self._keys.pop(place))


class _Answer(NamedTuple):
    """Answer to a request: a result, or the traceback of a failure."""

    result: Any
    failure: str


class Attempt(NamedTuple):
    """Result of an action, or its error."""

    result: Any
    error: Exception | None


def attempt(action: Callable[..., Any], *args: Any) -> Attempt:
    """Call an action. The answers of all processes have to be taken before an error is raised: they wait for that."""
    try:
        return Attempt(action(*args), None)
    except Exception as error:
        return Attempt(None, error)


class Outcome(NamedTuple):
    """How a fit ended in the first process: with a fitted estimator, or with an error."""

    estimator: Any
    error: BaseException | None


def serve(channel: Channel, X: Any) -> Outcome:
    """Compute with the rows of this process for the first one, until that has finished."""
    held = _HeldRows(X)
    while True:
        request = channel.receive(0)
        if isinstance(request, Outcome):
            return request
        try:
            answer = _Answer(held.result(request), "")
        except Exception:  # the first process raises it
            answer = _Answer(None, traceback.format_exc())
        channel.send(answer, 0)


def tell(channel: Channel, outcome: Outcome) -> None:
    """Tell all other processes how the fit ended; those that are lost cannot be told."""
    for k in range(1, channel.size):
        try:
            channel.send(outcome, k)
        except ProcessLost:
            if outcome.error is None:
                raise
