"""Constraints in a training loop of your own: values on mini-batches of any torch network, and their multipliers.

`bind` makes a constraint or an objective of the package a function of a mini-batch's scores, labels and groups;
`Multipliers` turns a loss and constraints into what is backpropagated; `StratifiedBatchSampler` draws mini-batches that
hold rows of every group.
"""

from fairconstrained.torch.batch_terms import BatchConstraint, BatchObjective, ConstraintValues, bind
from fairconstrained.torch.multipliers import MODES, Multipliers
from fairconstrained.torch.sampler import StratifiedBatchSampler

__all__ = [
    "MODES",
    "BatchConstraint",
    "BatchObjective",
    "ConstraintValues",
    "Multipliers",
    "StratifiedBatchSampler",
    "bind",
]
