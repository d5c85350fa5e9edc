"""Percentile intervals: what a user may write, validated once and ready for arrays of ranks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.checks.messages import shortened

__all__ = ["ALL_RANKS", "RANK_TOLERANCE", "PercentileIntervals"]

# Ranks are sums of weights divided by a total, so they carry rounding error; no row of a data set that fits
# in memory weighs this little, so ranks closer than this are the same rank.
RANK_TOLERANCE = 1e-11


@dataclass(frozen=True, eq=False)
class PercentileIntervals:
    """One union of disjoint intervals ``[alpha, beta)`` of ranks for every group.

    Build it with :meth:`parse`. A rank is the share of a group that scores higher, so 0 is the top.

    Parameters
    ----------
    alpha, beta : ndarray of shape (n_pieces, n_groups) or (n_pieces, 1)
        Ends of the pieces. One column means that all groups share the intervals; a group with fewer pieces
        than another is padded with pieces of length zero.
    """

    alpha: np.ndarray
    beta: np.ndarray

    @classmethod
    def parse(cls, interval: Any, labels: Sequence[Hashable], name: str = "interval") -> PercentileIntervals:
        """Read what the user wrote.

        Parameters
        ----------
        interval : pair of floats, list of pairs, or mapping from group label to either
            Fractions, ``0 <= alpha < beta <= 1``. A list stands for the union of its disjoint pieces.
        labels : sequence
            Group labels, in the order of the group codes.
        name : str, default="interval"
            Name of the parameter in messages.

        Returns
        -------
        intervals : PercentileIntervals

        Raises
        ------
        ValueError
            If an interval is empty, reversed, outside [0, 1], not a pair, overlaps another piece, or if the
            mapping lacks a group or names an unknown one.
        """
        if not isinstance(interval, Mapping):
            pieces = _parse_union(interval, name)
            return cls(pieces[:, :1], pieces[:, 1:])
        if set(interval) != set(labels):
            raise ValueError(
                f"{name} must have one entry for each of the groups {shortened(labels)}; got entries for "
                f"{shortened(interval.keys())}."
            )
        unions = [_parse_union(interval[label], name) for label in labels]
        padded = np.zeros((max(map(len, unions)), len(unions), 2))
        for group, pieces in enumerate(unions):
            padded[: len(pieces), group] = pieces
        return cls(padded[..., 0], padded[..., 1])

    @property
    def length(self) -> np.ndarray:
        """Total length of the pieces, ``beta - alpha``; shape (n_groups,) or (1,)."""
        return (self.beta - self.alpha).sum(axis=0)

    def of_codes(self, codes: np.ndarray) -> PercentileIntervals:
        """The intervals of the groups with these codes, one column for each, unless all groups share them."""
        is_shared = self.alpha.shape[1] == 1
        return self if is_shared else PercentileIntervals(self.alpha[:, codes], self.beta[:, codes])

    def clip(self, ranks: np.ndarray) -> np.ndarray:
        """Part of the top ``ranks`` that lies in the interval.

        ``clip(F) = min(F, beta) - min(F, alpha)``, summed over the pieces; in ``[0, length]``.

        Parameters
        ----------
        ranks : ndarray of shape (..., n_groups)

        Returns
        -------
        clipped : ndarray of shape (..., n_groups)
        """
        clipped = np.zeros_like(ranks)
        for alpha, beta in zip(self.alpha, self.beta, strict=True):
            clipped += np.clip(ranks, alpha, beta) - alpha
        return clipped

    def rank_at(self, share: np.ndarray, side: str) -> np.ndarray:
        """Rank above which the given share of the interval lies: the inverse of ``clip(rank) / length``.

        Parameters
        ----------
        share : ndarray of shape (n_shares,)
            Values outside [0, 1] count as 0 or 1.
        side : {"left", "right"}
            The smallest or the largest such rank, where there are many: between two pieces, and before the
            first and after the last one.

        Returns
        -------
        ranks : ndarray of shape (n_columns, n_shares)
            One row for every group, or one for all if they share the interval.
        """
        rows = []
        for alpha, beta in zip(self.alpha.T, self.beta.T, strict=True):
            used = beta > alpha
            alpha, beta = alpha[used], beta[used]
            ends = np.concatenate([[0.0], np.cumsum(beta - alpha)])
            inside = np.clip(share, 0, 1) * ends[-1]
            if side == "left":
                piece = np.searchsorted(ends, inside - RANK_TOLERANCE) - 1
                rank = alpha[piece.clip(0)] + inside - ends[piece.clip(0)]
                rows.append(np.where(piece < 0, 0.0, rank))
            else:
                piece = np.searchsorted(ends, inside + RANK_TOLERANCE, side="right") - 1
                last = piece >= alpha.size
                piece = piece.clip(max=alpha.size - 1)
                rows.append(np.where(last, 1.0, alpha[piece] + inside - ends[piece]))
        return np.stack(rows)

    def contains(self, ranks: np.ndarray) -> np.ndarray:
        """Whether each rank lies in its group's interval; half-open, and robust to rounding at the ends.

        Parameters
        ----------
        ranks : ndarray of shape (..., n_groups)

        Returns
        -------
        inside : ndarray of bool, of shape (..., n_groups)
        """
        inside = np.zeros_like(ranks, dtype=bool)
        for alpha, beta in zip(self.alpha, self.beta, strict=True):
            inside |= (ranks >= alpha - RANK_TOLERANCE) & (ranks < beta - RANK_TOLERANCE)
        return inside


def _parse_union(interval: Any, name: str) -> np.ndarray:
    """Pieces in increasing order, of shape (n_pieces, 2)."""
    try:
        given = np.atleast_2d(np.asarray(interval))
        pieces = given.astype(float) if given.dtype.kind in "iufO" else np.empty((0, 0))
    except (TypeError, ValueError):
        pieces = np.empty((0, 0))
    if pieces.ndim != 2 or pieces.shape[0] == 0 or pieces.shape[1] != 2:
        raise ValueError(
            f"{name} must be a pair (alpha, beta), e.g. (0.05, 0.3), or a list of such pairs; got {interval!r}."
        )
    if not np.all((pieces >= 0) & (pieces <= 1)):
        raise ValueError(f"{name} must lie in [0, 1]; got {interval!r}. Write 5% as 0.05.")
    if np.any(pieces[:, 1] - pieces[:, 0] <= RANK_TOLERANCE):
        raise ValueError(f"{name} must have alpha < beta; got {interval!r}. Swap or widen the ends.")
    pieces = pieces[np.argsort(pieces[:, 0])]
    if np.any(pieces[:-1, 1] > pieces[1:, 0] + RANK_TOLERANCE):
        raise ValueError(f"the pieces of {name} must not overlap; got {interval!r}. Merge the ones that do.")
    return pieces


#: All ranks of every group.
ALL_RANKS = PercentileIntervals.parse((0.0, 1.0), ())
