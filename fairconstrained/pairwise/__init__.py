"""Means over all pairs of two samples, without ever forming the pairs.

Every pairwise quantity (AUC, pairwise losses, group AUC) is ``sum_ij a_i b_j kernel((s_i - t_j) / width)``.
`pair_mean` computes it, and its gradient in ``s`` and ``t``, by the route that suits the kernel: moments, sorted
windows, or a grid. For quadratic losses, `PairTerms` writes it as a function of means and variances.
"""

from fairconstrained.pairwise._means import SoftplusKernel, interval_weights, pair_mean, pair_table
from fairconstrained.pairwise._quadratics import CellQuadratics, PairTerms

__all__ = [
    "CellQuadratics",
    "PairTerms",
    "SoftplusKernel",
    "interval_weights",
    "pair_mean",
    "pair_table",
]
