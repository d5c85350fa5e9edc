"""Calls that a second process leads while the first one goes on with a fit."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from typing_extensions import override

from fairconstrained.distributed.channel import Channel
from fairconstrained.distributed.errors import ProcessLost
from fairconstrained.distributed.packing import Pickler
from fairconstrained.distributed.requests import NOT_PICKLED, LeaderParts, Outcome, lead, served

__all__ = ["Begin", "FirstParts", "SecondLeader"]

#: Share of the timeout of a channel after which a process that waits sends a message, so that others do not give up.
_SHARE = 0.25


class Begin(NamedTuple):
    """Message that the second leader is to begin with a call.

    It has the pickled call without the rows that it asks, the numbers of rows of all processes, and the type and the
    names of the features.
    """

    call: bytes
    lengths: tuple[int, ...]
    dtype: np.dtype
    names: tuple[str, ...] | None


class SecondLeader:
    """Part that this process has in the call of the second leader: it leads it, or computes with its rows for it.

    A context, which ends with the call; where an error ends the context, the call ends with its next request.

    Parameters
    ----------
    channel : Channel
        Channel of the second leader.
    X : ndarray, CSR array or Table
        Rows of this process.
    """

    #: Name of the thread in which this process takes part.
    THREAD: ClassVar[str] = "call of the second leader"

    def __init__(self, channel: Channel, X: Any) -> None:
        self._channel, self._X = channel, X
        self._thread: Thread | None = None
        self._outcome: Outcome | None = None
        self._is_abandoned = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_abandoned = any(error)
        self.finished()

    def begin(self, begin: Begin) -> None:
        """Take part in a call from now on, in a thread of its own."""
        self._thread = Thread(target=self._run, args=(begin,), name=self.THREAD, daemon=True)
        self._thread.start()

    def finished(self, seconds: float | None = None) -> Outcome | None:
        """Wait for the end of the call, and return how it ended; None if there is none, or it takes longer."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._outcome

    def _run(self, begin: Begin) -> None:
        channel = self._channel
        self._outcome = lead(channel, self._called, begin) if channel.leads else served(channel, self._X)

    def _called(self, begin: Begin) -> Any:
        parts = _SecondParts(self._check, self._channel, self._X, *begin[1:])
        return _Unpickler(begin.call, parts).load()()

    def _check(self) -> None:
        if self._is_abandoned:
            raise ProcessLost("the fit that this call belongs to has ended.")


class _SecondParts(LeaderParts):
    """Rows of all processes, as the second leader sees them; ``check`` is called before every request."""

    def __init__(self, check: Callable[[], None], *given: Any) -> None:
        super().__init__(*given)
        self._check = check

    @override
    def results(self, *given: Any) -> Iterator[Any]:
        self._check()
        yield from super().results(*given)


class FirstParts(LeaderParts):
    """Rows of all processes, as the first one of them sees them; the second one can lead a call beside it.

    Parameters
    ----------
    second : SecondLeader or None
        None where there is only one process.
    *given
        Arguments of `LeaderParts`.
    """

    def __init__(self, second: SecondLeader | None, *given: Any) -> None:
        super().__init__(*given)
        self._second = second

    @override
    def beside(self, call: Callable[[], Any]) -> Callable[[], Any]:
        second, self._second = self._second, None  # which leads one call
        content = None if second is None else _pickled(call, self)
        if second is None or content is None:
            return call
        begin = Begin(content, self.lengths, self.dtype, self.names)
        for k in self._channel.others:
            self._channel.send(begin, k)
        second.begin(begin)

        def result() -> Any:
            while (outcome := second.finished(_SHARE * self._channel.timeout)) is None:
                list(self.results(_nothing, [()] * len(self.lengths), [None] * len(self.lengths)))
            if outcome.error is not None:
                raise outcome.error
            return outcome.result

        return result


def _nothing(X: Any) -> None:
    """Answer of a process that is only to know that the first one is there."""


class _Pickler(Pickler):
    """Leaves the rows out, which the receiver has, too."""

    def __init__(self, file: io.BytesIO, parts: LeaderParts) -> None:
        super().__init__(file)
        self._parts = parts

    @override
    def persistent_id(self, obj: Any) -> Any:
        return True if obj is self._parts else None


class _Unpickler(pickle.Unpickler):
    """Puts the rows in as the receiver sees them."""

    def __init__(self, content: bytes, parts: LeaderParts) -> None:
        super().__init__(io.BytesIO(content))
        self._parts = parts

    @override
    def persistent_load(self, pid: Any) -> Any:
        return self._parts


def _pickled(call: Callable[[], Any], parts: LeaderParts) -> bytes | None:
    """The pickled call without the rows; None where it cannot be sent, as it holds a function without a name."""
    file = io.BytesIO()
    try:
        _Pickler(file, parts).dump(call)
    except NOT_PICKLED:
        return None
    return file.getvalue()
