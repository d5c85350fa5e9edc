"""How many threads the numerical libraries may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

__all__ = ["limited_threads"]

#: Rows that make another thread worth while.
_ROWS_PER_THREAD = 100_000


@contextmanager
def limited_threads(n_samples: int) -> Iterator[None]:
    """Use one thread per so many rows: for fewer, waiting costs more than another thread gains.

    torch keeps a number of its own; BLAS, in L-BFGS, is threadpoolctl's.
    """
    available = torch.get_num_threads()
    wanted = min(available, max(1, n_samples // _ROWS_PER_THREAD))
    torch.set_num_threads(wanted)
    try:
        with threadpool_limits(wanted):
            yield
    finally:
        torch.set_num_threads(available)
