"""Squared 2-Wasserstein distances between weighted samples on the line. Array functions only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

__all__ = ["group_distributions", "group_histograms", "largest_squared_wasserstein", "squared_wasserstein"]

# Atoms in increasing order and their masses.
Distribution = tuple[np.ndarray, np.ndarray]

#: Amount by which rounding may move a bound; distances are those of probabilities.
_ROUNDING = 1e-9
#: Pieces of equal length into which quantile functions are cut to bound their distances.
_PIECES = 64


def group_distributions(
    scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int
) -> list[Distribution]:
    """The empirical distribution of the scores in every group."""
    order = np.lexsort((scores, codes))
    borders = np.searchsorted(codes[order], np.arange(n_groups + 1)).tolist()
    scores, weights = scores[order], weights[order]
    return [(scores[start:stop], weights[start:stop]) for start, stop in pairwise(borders)]


def group_histograms(
    scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int, n_bins: int
) -> list[Distribution]:
    """Histograms with every score in [0, 1] moved to the centre of its bin (the last bin holds 1)."""
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


def largest_squared_wasserstein(distributions: Sequence[Distribution]) -> float:
    """The largest distance of all pairs, computed for the few that bounds leave.

    A quantile function is its means over ``_PIECES`` pieces, plus a rest of length r. So the squared distance of two of
    them is that of the means, which is one of points in space, plus at most ``(r_1 + r_2)^2``. And a pair with a point
    close to the middle of all cannot be the one that is farthest apart.

    Returns
    -------
    distance : float
        0 for a single one.
    """
    means, rest = _quantile_means(distributions)
    points = (means - means.mean(axis=0)) / np.sqrt(_PIECES)
    norms = (points**2).sum(axis=1)
    reach = np.sqrt(norms) + rest
    order = np.argsort(-reach)
    largest = 0.0
    for place in range(1, order.size):
        own, others = order[place], order[:place]
        if (reach[own] + reach[others[0]]) ** 2 <= largest:
            break
        between = np.maximum(norms[own] + norms[others] - 2 * points[others] @ points[own], 0.0)
        most = between + (rest[own] + rest[others]) ** 2 + _ROUNDING
        for other in np.argsort(-most):
            if most[other] <= largest:
                break
            pair = distributions[min(own, others[other])], distributions[max(own, others[other])]
            largest = max(largest, squared_wasserstein(*pair))
    return largest


def _quantile_means(distributions: Sequence[Distribution]) -> tuple[np.ndarray, np.ndarray]:
    """Means of the quantile functions over pieces of equal length, and the root mean square of what they leave."""
    n_groups = len(distributions)
    atoms, mass = (np.concatenate(parts) for parts in zip(*distributions, strict=True))
    group = np.repeat(np.arange(n_groups), [own.size for own, _ in distributions])
    mass = mass / np.bincount(group, mass)[group]
    # the quantile functions one after the other, each on a stretch of length 1
    levels, integral = (np.concatenate([[0.0], np.cumsum(parts)]) for parts in (mass, mass * atoms))
    ends = np.arange(n_groups * _PIECES + 1) / _PIECES
    means = _PIECES * np.diff(np.interp(ends, levels, integral)).reshape(n_groups, _PIECES)
    rest = np.bincount(group, mass * atoms**2) - (means**2).mean(axis=1)
    return means, np.sqrt(np.maximum(rest, 0.0))
