"""Rows of all processes as one table, and the work of the processes that hold them."""

from __future__ import annotations

import pickle
import traceback
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.distributed.channel import Channel
from fairconstrained.distributed.errors import ProcessLost
from fairconstrained.distributed.packing import Pickled
from fairconstrained.tables import Parts
from fairconstrained.tables.table import taken_rows

__all__ = ["NOT_PICKLED", "HeldRows", "LeaderParts", "Outcome", "attempt", "lead", "served"]

#: Errors of an object that cannot be pickled; which of them it is depends on what it holds.
NOT_PICKLED = (pickle.PicklingError, AttributeError, TypeError)


class _Request(NamedTuple):
    """Request to compute with rows."""

    #: Takes features and the columns.
    function: Callable[..., Any]
    #: A column that is kept with the rows is given as its `_Key`.
    columns: tuple[Any, ...]
    #: Number of the choice of rows; None: all rows.
    key: int | None
    #: The choice, if it is new.
    rows: np.ndarray | None
    #: New columns that are to be kept, by their numbers.
    values: dict[int, np.ndarray]
    #: Numbers of choices and columns that are not needed any more.
    forgotten: list[int]


class _Key(NamedTuple):
    """Number of a column that is kept."""

    number: int


class _KeptValues:
    """Values of a column for the rows of another process, until they have been sent."""

    def __init__(self, number: int, values: np.ndarray) -> None:
        self.key, self._unsent = _Key(number), {number: values}

    def to_send(self) -> dict[int, np.ndarray]:
        """Return the values by their number, if they have not been sent."""
        unsent, self._unsent = self._unsent, {}
        return unsent


class HeldRows:
    """Rows of this process, and what is used again and again: choices of them, such as those of a fold, and columns."""

    def __init__(self, X: Any) -> None:
        self._held: dict[Any, Any] = {None: X}

    def result(self, request: _Request) -> Any:
        """Return what is asked for."""
        for key in request.forgotten:
            self._held.pop(key, None)
        self._held.update(request.values)
        if request.rows is not None:
            self._held[request.key] = taken_rows(self._held[None], request.rows)
        columns = (self._held[each.number] if isinstance(each, _Key) else each for each in request.columns)
        return request.function(self._held[request.key], *columns)


class LeaderParts(Parts):
    """Rows of all processes, as the leader of a channel sees them: every process computes with its own.

    ``X`` are the rows of this process, and ``lengths`` the numbers of rows of all of them.

    Attributes
    ----------
    n_rounds : int
        How often the processes were asked so far.
    """

    #: As many numbers as mini-batches that are drawn at once have. More, such as a fold, stay where they are: otherwise
    #: the other processes would wait while one gathers all rows and computes alone.
    most_gathered: ClassVar[int] = 2**20

    def __init__(
        self, channel: Channel, X: Any, lengths: Sequence[int], dtype: np.dtype, names: Sequence[str] | None
    ) -> None:
        self.lengths, self.n_features, self.dtype = tuple(lengths), X.shape[1], dtype
        self.names = None if names is None else tuple(names)
        self.n_rounds = 0
        self._channel, self._own = channel, HeldRows(X)
        self._keys: dict[int, int] = {}
        self._numbers = count()
        self._forgotten: dict[int, list[int]] = defaultdict(list)

    @override
    def kept(self, part: int, values: np.ndarray) -> Any:
        if part == self._channel.leader:
            return values
        column = _KeptValues(next(self._numbers), values)
        weakref.finalize(column, self._forgotten[part].append, column.key.number)
        return column

    @override
    def results(
        self, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]], taken: Sequence[np.ndarray | None]
    ) -> Iterator[Any]:
        self.n_rounds += 1
        wanted = self.with_rows(taken)
        leader, requests = self._channel.leader, {k: self._request(k, function, columns[k], taken[k]) for k in wanted}
        others = [k for k in wanted if k != leader]
        sent = {k: attempt(self._channel.send, requests[k], k) for k in others}
        tried = {leader: attempt(self._own.result, requests[leader])} if leader in wanted else {}
        tried |= {k: sent[k] if sent[k].error else _answered(self._channel, k) for k in others}
        for each in tried.values():
            if each.error:
                raise each.error
        yield from (tried[k].result for k in wanted)

    @override
    def divided(self, calls: Iterable[Callable[[], Any]]) -> Iterator[Any]:
        every = [None] * len(self.lengths)
        asked = self.with_rows(every)
        if len(asked) == 1:
            return super().divided(calls)
        calls, leader = list(calls), self._channel.leader
        # the leader has more other work than the rest, and gets its calls after them
        order = sorted(asked, key=lambda k: k == leader)
        own = {k: calls[place :: len(order)] for place, k in enumerate(order)}
        try:  # before anything is sent
            columns = [(own.get(k, []) if k == leader else Pickled(own.get(k, [])),) for k in range(len(every))]
        except NOT_PICKLED:
            return super().divided(calls)
        found = dict(zip(asked, self.results(_results_of_calls, columns, every), strict=True))
        results: list[Any] = [None] * len(calls)
        for place, k in enumerate(order):
            results[place :: len(order)] = found[k]
        return iter(results)

    def _request(
        self, process: int, function: Callable[..., Any], columns: tuple[Any, ...], rows: np.ndarray | None
    ) -> _Request:
        kept = [column for column in columns if isinstance(column, _KeptValues)]
        values = {number: each for column in kept for number, each in column.to_send().items()}
        columns = tuple(column.key if isinstance(column, _KeptValues) else column for column in columns)
        key, new = (None, None) if rows is None else (self._keys.get(id(rows)), None)
        if rows is not None and key is None:
            key, new = next(self._numbers), rows
            self._keys[id(rows)] = key
            weakref.finalize(rows, self._forget, process, id(rows))
        forgotten = self._forgotten[process][:]
        del self._forgotten[process][: len(forgotten)]  # the list stays: finalizers know it
        return _Request(function, columns, key, new, values, forgotten)

    def _forget(self, process: int, place: int) -> None:
        self._forgotten[process].append(self._keys.pop(place))


def _results_of_calls(X: Any, calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Results of the calls that a process is asked for; the rows that it has do not matter."""
    return [call() for call in calls]


class Outcome(NamedTuple):
    """How an action ended: with a result, such as a fitted estimator or the answer to a request, or with an error."""

    result: Any
    error: Exception | None


def attempt(action: Callable[..., Any], *args: Any) -> Outcome:
    """Call an action. The answers of all processes have to be taken before an error is raised: they wait for that."""
    try:
        return Outcome(action(*args), None)
    except Exception as error:
        return Outcome(None, error)


def _answered(channel: Channel, sender: int) -> Outcome:
    """Return the answer of a process to a request, or that it is lost."""
    received = attempt(channel.receive, sender)
    return received.result or received


def served(channel: Channel, X: Any, begin: Callable[[Any], None] | None = None) -> Outcome:
    """Compute with the rows of this process for the leader, and return how it ended there, or that it is lost.

    ``begin`` takes a message of the leader that is no request.
    """
    ended = attempt(_served, channel, X, begin)
    return ended.result or ended


def _served(channel: Channel, X: Any, begin: Callable[[Any], None] | None) -> Outcome:
    held = HeldRows(X)
    while True:
        message = channel.receive(channel.leader)
        if isinstance(message, Outcome):
            return message
        if begin is not None and not isinstance(message, _Request):
            begin(message)
            continue
        try:
            answer = Outcome(held.result(message), None)
        except Exception:  # the leader raises it
            failure = f"process {channel.rank} could not compute what it was asked for:\n{traceback.format_exc()}"
            answer = Outcome(None, RuntimeError(failure))
        channel.send(answer, channel.leader)


def lead(channel: Channel, action: Callable[..., Any], *args: Any) -> Outcome:
    """Call an action in the leader, and tell all other processes how it ended; those that are lost cannot be told.

    Where the end itself cannot be sent, they are told so: they would wait for it until the timeout.
    """
    outcome = attempt(action, *args)
    told = [_told(channel, outcome, k) for k in channel.others]
    lost = [each for each in told if each.error is not None]
    return lost[0] if lost and outcome.error is None else outcome


def _told(channel: Channel, outcome: Outcome, other: int) -> Outcome:
    """Tell a process how an action ended, or why that cannot be sent to it."""
    told = attempt(channel.send, outcome, other)
    if told.error is None or isinstance(told.error, ProcessLost):
        return told
    what = "the fitted model" if outcome.error is None else f"the error {outcome.error!r}"
    message = f"process {channel.leader} has ended with {what}, which cannot be sent: {told.error}"
    return attempt(channel.send, Outcome(None, RuntimeError(message)), other)
