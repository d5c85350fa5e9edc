"""Means over all pairs of two samples, without ever forming the pairs.

Every pairwise quantity (AUC, pairwise losses, group AUC) is ``sum_ij a_i b_j kernel((s_i - t_j) / width)``.
`pair_mean` computes it, and its gradient in ``s`` and ``t``, by the route that suits the kernel: moments, sorted
windows, or a grid. For quadratic losses, `PairTerms` writes it as a function of means and variances.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
