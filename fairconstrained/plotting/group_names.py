"""Groups and their intervals in words, and what a plot has to know about them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from fairconstrained.groups import GroupEncoder
from fairconstrained.metrics import PercentileIntervals

__all__ = ["group_name", "interval_name", "largest_group", "pieces_of"]


def group_name(label: Hashable) -> str:
    """Words for a group; the values of several sensitive features are joined: "25-60 & married"."""
    return " & ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def interval_name(pieces: np.ndarray) -> str:
    """Words for a union of intervals of shape (n_pieces, 2): "ranks 5%–30%" (rank 0 is the top)."""
    return "ranks " + " and ".join(f"{100 * low:g}%–{100 * high:g}%" for low, high in pieces)


def largest_group(sensitive_features: Any) -> Hashable:
    """The group of most rows; the first in sorted order among equals."""
    groups = GroupEncoder(sensitive_features)
    return groups.labels[int(np.bincount(groups.codes).argmax())]


def pieces_of(intervals: PercentileIntervals, group: int) -> np.ndarray:
    """The intervals of one group, of shape (n_pieces, 2), from the top down."""
    column = group if intervals.alpha.shape[1] > 1 else 0
    pieces = np.column_stack([intervals.alpha[:, column], intervals.beta[:, column]])
    # a group with fewer pieces than another one is padded with empty ones
    return pieces[pieces[:, 0] < pieces[:, 1]]
