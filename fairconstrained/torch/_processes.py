"""Rows of all processes of a distributed training."""

from __future__ import annotations

import numpy as np
import torch
import torch.distributed as dist

from fairconstrained.torch._rows import Rows

__all__ = ["n_processes", "of_all_processes"]


def n_processes() -> int:
    """Return the number of processes of the default group of torch.distributed; 1 where it is not initialised."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def of_all_processes(rows: Rows, device: torch.device) -> tuple[Rows, slice]:
    """Return the rows of all processes in the order of their ranks, and the places of this one's among them.

    Every process has to call it. A row takes four numbers, so that any constraint can be computed from all rows, not
    only those that are means. The processes exchange tensors on ``device``.
    """
    world, rank = dist.get_world_size(), dist.get_rank()
    weights = np.ones(rows.codes.size) if rows.weights is None else rows.weights
    own = torch.from_numpy(np.stack([*rows[:3], weights]))
    sizes = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(world)]
    dist.all_gather(sizes, torch.tensor([own.shape[1]], device=device))
    counts = [int(size) for size in sizes]
    padded = torch.zeros((len(rows), max(counts)), dtype=torch.float64, device=device)
    padded[:, : own.shape[1]] = own
    tables = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(tables, padded)
    parts = [table[:, :count].cpu() for table, count in zip(tables, counts, strict=True)]
    scores, targets, codes, weights = torch.cat(parts, dim=1).numpy()
    first = sum(counts[:rank])
    return Rows(scores, targets, codes.astype(np.int64), weights), slice(first, first + counts[rank])
