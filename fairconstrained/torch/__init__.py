"""Constraints in a training loop of your own: values on mini-batches of any torch network, and their multipliers.

`bind` makes a constraint or an objective of the package a function of a mini-batch's scores, labels and groups;
`Multipliers` turns a loss and constraints into what is backpropagated; `StratifiedBatchSampler` draws mini-batches that
hold rows of every group.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
