"""How many threads the numerical libraries may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

__all__ = ["limited_threads"]

#: Rows that make another thread worth while.
_ROWS_PER_THREAD = 100_000


@cache
def _libraries(kind: str) -> ThreadpoolController:
    """Those of the process at the first fit; to look for them takes as long as a small fit."""
    return ThreadpoolController().select(user_api=kind)


@contextmanager
def limited_threads(n_samples: int) -> Iterator[None]:
    """Use one thread per so many rows: for fewer, waiting costs more than another thread gains.

    OpenMP, which torch computes with, keeps a number for every thread of Python, so every fit limits its own. BLAS, in
    L-BFGS, has one for the process.
    """
    wanted = max(1, n_samples // _ROWS_PER_THREAD)
    torch.get_num_threads()  # torch sets the number of a new thread when it is first asked, and not later then
    with _limit(_libraries("openmp"), wanted), _blas.limited(wanted):
        yield


class _Shared:
    """A limit of the process: of fits that overlap the first one sets it and the last one puts it back.

    threadpoolctl lets no thread change what another one has set that is still alive. So the limit is set by a thread
    that ends at once: then the last fit may put it back, whichever thread it runs in.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._lock = Lock()
        self._running = 0
        self._limit: Any = None

    @contextmanager
    def limited(self, wanted: int) -> Iterator[None]:
        """Keep the limit at least until the end of the block."""
        with self._lock:
            if self._running == 0:
                self._limit = _in_another_thread(_limit, _libraries(self._kind), wanted)
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0:
                    _in_another_thread(self._limit.restore_original_limits)


_blas = _Shared("blas")


def _limit(libraries: ThreadpoolController, wanted: int) -> Any:
    """At most ``wanted`` threads from now on; a context manager that puts the numbers back."""
    present = [lib["num_threads"] or wanted for lib in libraries.info()]
    return libraries.limit(limits=min([wanted, *present]))


def _in_another_thread(function: Callable[..., Any], *args: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()
