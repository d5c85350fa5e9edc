"""Mini-batches: of rows by group and target, or of whole clusters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch

from fairconstrained.checks.queries import rows_by_number
from fairconstrained.data import FairData

__all__ = ["ClusterSampler", "Sampler", "sampler_of"]

#: Groups up to which every one has a row in every mini-batch, however small that was meant to be.
_FEW_GROUPS = 32
#: Numbers that are gathered for mini-batches at a time, about.
_AT_ONCE = 2**20


def sampler_of(
    data: FairData, size: int, balance: float = 0.0, strata: np.ndarray | None = None
) -> Sampler | ClusterSampler:
    """Return a `Sampler` of mini-batches of about ``size`` rows, or a `ClusterSampler` where there are clusters."""
    if data.clusters is not None:
        return ClusterSampler.of(data, data.clusters, size)
    return Sampler.of(data, size, balance, strata)


@dataclass(frozen=True, eq=False)
class Sampler:
    """Mini-batches whose weighted means are unbiased.

    The rows stand by group and target, every one as long as its probability, and one is drawn from each of ``size``
    parts of equal length. So where groups have whole numbers of rows in a batch, every batch has as many of them, and
    as many of a group and target as are expected, rounded up or down. The rows of a batch ascend.

    Attributes
    ----------
    data : FairData
    size : int
        Rows of a batch.
    factors : ndarray of shape (n_samples,)
        Ratio of the probability of a row to its weight; the weights in the batch make up for it.
    order : ndarray of shape (n_samples,), optional
        The rows by stratum and target. None: as they are.
    """

    data: FairData
    size: int
    factors: np.ndarray
    order: np.ndarray | None = None

    @classmethod
    def of(cls, data: FairData, size: int, balance: float = 0.0, strata: np.ndarray | None = None) -> Self:
        """Return batches of about ``size`` rows, with rows of every group unless there are too many groups.

        Parameters
        ----------
        data : FairData
        size : int
            Number of rows, at least 1.
        balance : float, default=0.0
            Mix of the groups' shares: as they are at 0, and equal at 1.
        strata : ndarray of shape (n_samples,), optional
            Numbers from 0 on that stand for the groups here.
        """
        codes = data.codes if strata is None else strata
        shares = np.bincount(codes, data.weights.numpy())
        there = shares > 0  # of a few rows, some groups may have none
        wanted = ((1 - balance) * shares + balance / there.sum()) * there
        counts = np.maximum(np.round(size * wanted), 1) * there
        if counts.sum() <= max(2 * size, shares.size if shares.size <= _FEW_GROUPS else 0):
            # whole rows: every batch then has the same number of every group
            size, wanted = int(counts.sum()), counts / counts.sum()
        factors = np.divide(wanted, shares, out=np.zeros_like(shares), where=there)[codes]
        order = np.lexsort((data.y.numpy(), codes))
        return cls(data, size, factors, order if (np.diff(order) < 0).any() else None)

    @cached_property
    def _ends(self) -> np.ndarray:
        """Ends of the parts of the rows of ``order``, in rows of the batch; ndarray of shape (n_samples,)."""
        lengths = self.data.weights.numpy() * self.factors
        ends = np.cumsum(lengths if self.order is None else lengths[self.order])
        return ends * (self.size / ends[-1])

    def _rows_at(self, at: np.ndarray) -> np.ndarray:
        """Return the rows that stand at these places, ascending in every batch."""
        rows = np.searchsorted(self._ends, at, side="right").clip(max=self.data.n_samples - 1)
        return rows if self.order is None else np.sort(self.order[rows])

    def batches(self, rng: np.random.Generator, n_batches: int | None = None) -> Iterator[FairData]:
        """Mini-batches, endless unless ``n_batches`` says how many.

        Parameters
        ----------
        rng : numpy.random.Generator
        n_batches : int, optional
        """
        at_once = int(np.clip(_AT_ONCE // (self.size * self.data.n_features), 1, 64))
        done = 0
        while n_batches is None or done < n_batches:
            count = at_once if n_batches is None else min(at_once, n_batches - done)
            yield from self._draw(rng, count)
            done += count

    def _draw(self, rng: np.random.Generator, n_batches: int) -> Iterator[FairData]:
        at = np.arange(self.size) + rng.random((n_batches, self.size))
        per_epoch = -(-self.data.n_samples // self.size)  # the rows of more batches may never be asked for
        for first in range(0, n_batches, per_epoch):
            yield from self._gathered(self._rows_at(at[first : first + per_epoch]))

    def _gathered(self, rows: np.ndarray) -> Iterator[FairData]:
        """Mini-batches of these rows, of shape (n_batches, size)."""
        codes, factors = self.data.codes[rows], self.factors[rows]
        usual_codes, usual_factors, usual_weights = self._usual
        if (codes == usual_codes).all() and (factors == usual_factors).all():
            return self.data.batches(rows, usual_weights, usual_codes)
        return self.data.batches(rows, torch.from_numpy(1 / (self.size * factors)))

    @cached_property
    def _usual(self) -> tuple[np.ndarray, np.ndarray, torch.Tensor]:
        """Groups, factors and weights of a batch, which are those of every batch if the parts end where groups end."""
        rows = self._rows_at(np.arange(self.size) + 0.5)
        factors = self.factors[rows]
        return self.data.codes[rows], factors, torch.from_numpy(1 / (self.size * factors))


@dataclass(frozen=True, eq=False)
class ClusterSampler:
    """Mini-batches of whole clusters, every cluster as often as any other.

    Weighted sums over the rows are unbiased; the weights of a mini-batch sum to one on average.

    Attributes
    ----------
    data : FairData
    rows : tuple of ndarray
        The rows of every cluster.
    size : int
        Clusters of a mini-batch.
    """

    data: FairData
    rows: tuple[np.ndarray, ...]
    size: int

    @classmethod
    def of(cls, data: FairData, clusters: np.ndarray, size: int) -> Self:
        """Return batches of about ``size`` rows, and of at least one cluster."""
        rows = rows_by_number(clusters)
        return cls(data, tuple(rows), int(np.clip(round(size * len(rows) / clusters.size), 1, len(rows))))

    def batches(self, rng: np.random.Generator, n_batches: int | None = None) -> Iterator[FairData]:
        """Implement `Sampler.batches`; no cluster comes twice before as many as possible have come once."""
        done, factor = 0, len(self.rows) / self.size
        while True:
            drawn = rng.permutation(len(self.rows))
            for first in range(0, drawn.size - self.size + 1, self.size):
                if done == n_batches:
                    return
                rows = np.sort(np.concatenate([self.rows[k] for k in drawn[first : first + self.size]]))
                batch = self.data.at(rows, self.data.weights[torch.from_numpy(rows)] * factor)
                yield replace(batch, is_sample=True)
                done += 1
