"""Squared 2-Wasserstein distances between weighted samples on the line. Array functions only."""

from __future__ import annotations

import numpy as np

__all__ = ["group_distributions", "group_histograms", "squared_wasserstein"]

# Atoms in increasing order and their masses.
Distribution = tuple[np.ndarray, np.ndarray]


def group_distributions(
    scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int
) -> list[Distribution]:
    """The empirical distribution of the scores in every group."""
    order = np.lexsort((scores, codes))
    borders = np.searchsorted(codes[order], np.arange(1, n_groups))
    return list(zip(np.split(scores[order], borders), np.split(weights[order], borders), strict=True))


def group_histograms(
    scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int, n_bins: int
) -> list[Distribution]:
    """The same with every score in [0, 1] moved to the centre of its bin (the last bin holds 1)."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bins = np.searchsorted(edges[1:-1], scores, side="right")
    masses = np.bincount(codes * n_bins + bins, weights, minlength=n_groups * n_bins)
    centres = (edges[:-1] + edges[1:]) / 2
    return [(centres, mass) for mass in masses.reshape(n_groups, n_bins)]


def squared_wasserstein(first: Distribution, second: Distribution) -> float:
    """``W_2^2``, the integral over u in (0, 1) of ``(Q_1(u) - Q_2(u))^2``, Q the quantile functions.

    Parameters
    ----------
    first, second : tuple of two ndarrays
        Atoms in increasing order and their masses, of positive sum.

    Returns
    -------
    distance : float
    """
    (atoms_1, mass_1), (atoms_2, mass_2) = first, second
    levels_1, levels_2 = np.cumsum(mass_1), np.cumsum(mass_2)
    levels_1, levels_2 = levels_1 / levels_1[-1], levels_2 / levels_2[-1]
    # Both quantile functions are constant between consecutive levels. The levels are two sorted runs, which
    # the stable sort merges.
    levels = np.sort(np.concatenate([levels_1, levels_2]), kind="stable")
    quantiles_1 = atoms_1[np.searchsorted(levels_1, levels)]
    quantiles_2 = atoms_2[np.searchsorted(levels_2, levels)]
    return float(np.diff(levels, prepend=0.0) @ (quantiles_1 - quantiles_2) ** 2)
