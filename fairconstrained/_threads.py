"""How many threads the numerical libraries may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock

import torch
from threadpoolctl import ThreadpoolController

__all__ = ["limited_threads"]

#: Rows that make another thread worth while.
_ROWS_PER_THREAD = 100_000


_lock = Lock()
_running = 0
_restore = ExitStack()


@cache
def _libraries() -> ThreadpoolController:
    """Those of the process at the first fit; to look for them takes as long as a small fit."""
    return ThreadpoolController()


@contextmanager
def limited_threads(n_samples: int) -> Iterator[None]:
    """Use one thread per so many rows: for fewer, waiting costs more than another thread gains.

    torch keeps a number of its own; BLAS, in L-BFGS, is threadpoolctl's. Both belong to the process, so of fits that
    overlap the first one sets them and the last one puts them back.
    """
    global _running
    with _lock:
        if _running == 0:
            available = torch.get_num_threads()
            wanted = min(available, max(1, n_samples // _ROWS_PER_THREAD))
            _restore.callback(torch.set_num_threads, available)
            torch.set_num_threads(wanted)
            _restore.enter_context(_libraries().limit(limits=wanted))
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0:
                _restore.close()
