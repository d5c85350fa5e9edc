"""Mini-batches for a data loader, with rows of every group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import Sampler

from fairconstrained.checks.messages import check_integer
from fairconstrained.torch._processes import n_processes
from fairconstrained.torch._rows import vector_of

__all__ = ["StratifiedBatchSampler"]


class StratifiedBatchSampler(Sampler[list[int]]):
    """Mini-batches that have every group (and label) in its share of all rows, rounded up or down.

    In every epoch each row comes once, in a new random order, so that means over mini-batches are unbiased. A stratum
    of fewer rows than ``min_rows`` for every mini-batch is the exception: its rows come several times, and ``weights``
    make up for it. The rows of a mini-batch are sorted by stratum, which saves the constraints some time; their number
    varies by a few.

    Parameters
    ----------
    groups : Tensor or array-like of shape (n_samples,)
        The group of every row: whole numbers, or text and other labels that can be sorted.
    y : Tensor or array-like of shape (n_samples,), optional
        Labels, of the same kinds, for constraints that compare the rows of a label. Strata are then the rows of each
        group and label.
    batch_size : int
        Approximate number of rows of a mini-batch, at least 1; under distributed training, of the part of one process.
    min_rows : int, default=1
        Least number of rows of every stratum in a mini-batch, at least 1; under distributed training, in the parts of
        all processes together.
    seed : int, default=0
        Seed of the order of the rows, which also depends on the epoch.
    rank, num_replicas : int, optional
        Number of this process, from 0 on, and the number of all processes, as in
        `torch.utils.data.DistributedSampler`: each process gets its part of the same mini-batch. By default they are
        those of ``torch.distributed``.

    Attributes
    ----------
    epoch : int
        Number of the next epoch. Set it to go on after an interruption.
    weights : Tensor of shape (n_samples,)
        Weights for the mini-batches: 1, or less for a row that comes several times in an epoch.

    Raises
    ------
    ValueError
        If there are no rows, lengths differ, groups or labels have fractions, or a number is out of range.

    Examples
    --------
    >>> sampler = StratifiedBatchSampler([0, 0, 0, 0, 1, 1], batch_size=3)
    >>> [len(batch) for batch in sampler]
    [3, 3]
    """

    def __init__(
        self,
        groups: Any,
        y: Any = None,
        *,
        batch_size: int,
        min_rows: int = 1,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        self.epoch, self._seed = 0, seed
        self._world = n_processes() if num_replicas is None else check_integer("num_replicas", num_replicas)
        self._rank = rank if rank is not None else (dist.get_rank() if self._world > 1 else 0)
        if not 0 <= self._rank < self._world:
            raise ValueError(f"rank must be at least 0 and less than num_replicas={self._world}, got {self._rank}.")
        columns = [vector_of(groups, "groups")] + ([] if y is None else [vector_of(y, "y")])
        if any(not column.size or column.size != columns[0].size for column in columns):
            raise ValueError(
                "groups and y must have one entry for every row, got shapes "
                f"{', '.join(str(column.shape) for column in columns)}."
            )
        if any(column.dtype.kind == "f" and (column != np.round(column)).any() for column in columns):
            raise ValueError("groups and y must hold labels, as each value is a stratum; they have fractions.")
        numbers = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns]
        _, strata = np.unique(np.stack(numbers), axis=1, return_inverse=True)
        strata = strata.reshape(-1)
        self._n_batches = -(-strata.size // (check_integer("batch_size", batch_size) * self._world))
        least = check_integer("min_rows", min_rows) * self._n_batches
        sizes = np.bincount(strata)
        self._rows = np.split(np.argsort(strata, kind="stable"), np.cumsum(sizes)[:-1])
        self._counts = np.maximum(sizes, least)
        self.weights = torch.from_numpy((sizes / self._counts)[strata]).float()

    def __len__(self) -> int:
        return self._n_batches

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self._seed, self.epoch])
        self.epoch += 1
        rows, batches = [], []
        for own, count in zip(self._rows, self._counts.tolist(), strict=True):
            rows.append(np.resize(rng.permutation(own), count))  # again from the first one on, if there are too few
            # spread evenly over the epoch, from a random place on
            places = (np.arange(count) + rng.random()) / count
            batches.append((places * self._n_batches).astype(int).clip(max=self._n_batches - 1))
        drawn, numbers = np.concatenate(rows), np.concatenate(batches)
        in_order = drawn[np.argsort(numbers, kind="stable")]
        for batch in np.split(in_order, np.cumsum(np.bincount(numbers, minlength=self._n_batches))[:-1]):
            yield batch[self._rank :: self._world].tolist()
