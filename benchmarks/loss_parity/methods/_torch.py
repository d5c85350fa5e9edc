"""Common parts of the methods in plain torch: the data as tensors, and the loop around their steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch._dynamo  # the first optimiser would import it, which takes seconds of the time to train
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.loss_parity.constraints import Constraint
from benchmarks.loss_parity.datasets import Part
from benchmarks.loss_parity.methods._setting import Outcome, Setting
from benchmarks.loss_parity.network import parameters_of


class Rows(NamedTuple):
    """Rows as float32 tensors: features, labels in {-1, 1}, and memberships 0 or 1 of shape (n, n_groups)."""

    X: Tensor
    y: Tensor
    member: Tensor

    @classmethod
    def of(cls, part: Part) -> Rows:
        """The rows of a part, its groups in sorted order."""
        member = part.groups[:, None] == np.unique(part.groups)
        return cls(*(torch.from_numpy(values.astype(np.float32)) for values in (part.X, part.y, member)))

    @property
    def group_weights(self) -> Tensor:
        """Weights of the groups that make the rows of an evenly drawn mini-batch a sample of all rows."""
        return self.member.mean(dim=0) * self.member.shape[1]


def row_losses(logits: Tensor, y: Tensor) -> Tensor:
    """Log loss of every row."""
    return binary_cross_entropy_with_logits(logits, (y + 1) / 2, reduction="none")


def n_differences(constraint: Constraint, n_groups: int) -> int:
    """Number of differences that a constraint bounds, for so many groups."""
    return constraint.differences(torch.zeros(n_groups), torch.ones(n_groups), torch.eye(n_groups)).numel()


def even_batches(rows: Rows, size: int, seed: int) -> Iterator[Rows]:
    """Endless mini-batches of as many rows of every group, drawn with replacement and many at a time."""
    generator = torch.Generator().manual_seed(seed)
    members = [torch.nonzero(column).ravel() for column in rows.member.T]
    each = size // len(members)
    while True:
        drawn = [own[torch.randint(own.numel(), (256, each), generator=generator)] for own in members]
        for index in torch.cat(drawn, dim=1):
            yield Rows(*(values[index] for values in rows))


def follow(setting: Setting, network: nn.Module, steps: Iterator[None]) -> Outcome:
    """Take steps until the time is over; see `Setting.follow`."""
    iterations = setting.follow(steps, lambda: parameters_of(network))
    return Outcome(parameters_of(network), iterations)
