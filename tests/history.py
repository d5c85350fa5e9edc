"""Records of runs, made comparable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

#: What differs between two runs that are the same, or what only a callback gets.
_OF_ONE_RUN = {"seconds", "params", "state"}


def comparable(history: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Records without the clock and without what only callbacks get, and arrays as lists."""
    return [
        {
            key: value.tolist() if isinstance(value, np.ndarray) else value
            for key, value in record.items()
            if key not in _OF_ONE_RUN
        }
        for record in history
    ]
