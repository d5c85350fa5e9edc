"""The metrics in plain numpy, restated from their definitions: nothing of the package is used.

All take scores of shape (n_samples,), who belongs to which group as booleans of shape (n_samples, n_groups), and the
weights of the rows. A cell is a set of rows whose mean, ranks or pairs are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = [
    "auc",
    "auc_sets",
    "auc_sets_gap",
    "class_error",
    "class_loss",
    "compared_pairs",
    "gap_of_means",
    "group_auc_gap",
    "heaviest_share",
    "majority_share",
    "pair_accuracy_gap",
    "parity_gap",
    "query_pairs",
    "row_values",
    "spread",
    "statistical_gap",
]

#: Ranks are sums of weights over a total; closer than this they are the same.
_SAME_RANK = 1e-11

#: The pieces of the interval of every group.
Pieces = Sequence[Sequence[tuple[float, float]]]


def heaviest_share(cells: Sequence[np.ndarray], weights: np.ndarray, lengths: Sequence[float]) -> float:
    """The largest share of a cell, or of its interval, that one row weighs; infinite where a cell is empty."""
    shares = []
    for cell, length in zip(cells, lengths, strict=True):
        total = weights[cell].sum()
        shares.append(weights[cell].max() / total / length if total > 0 else np.inf)
    return float(max(shares))


def spread(values: np.ndarray) -> float:
    """The largest difference of two values."""
    return float(values.max() - values.min())


def row_values(function: str, scores: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """A rate or loss of every row, by its name."""
    y = np.where(positive, 1.0, -1.0)
    functions: dict[str, Callable[[], np.ndarray]] = {
        "indicator": lambda: (scores > 0).astype(float),
        "sigmoid": lambda: np.exp(-np.logaddexp(0.0, -scores)),
        "hinge": lambda: np.maximum(1 - y * scores, 0.0),
        "log_loss": lambda: np.logaddexp(0.0, -y * scores),
        "absolute": lambda: np.abs(scores - y),
        "squared": lambda: (scores - y) ** 2 / 2,
    }
    return functions[function]()


def _means(values: np.ndarray, members: np.ndarray, weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Weighted mean of every group's rows that are kept."""
    return np.array([np.average(values[cell & kept], weights=weights[cell & kept]) for cell in members.T])


def gap_of_means(
    values: np.ndarray,
    members: np.ndarray,
    weights: np.ndarray,
    subsets: Sequence[np.ndarray],
    reference: str = "pairwise",
    agg: str = "max",
) -> float:
    """Largest gap of the groups' means, the larger one of several subsets of rows.

    With the reference "overall" it is to the mean of all rows, and "excess" is how far groups are above that.
    """
    gaps = []
    for kept in subsets:
        means = _means(values, members, weights, kept)
        overall = np.average(values[kept], weights=weights[kept])
        if reference == "pairwise":
            gaps.append(spread(means))
        else:
            apart = np.abs(means - overall) if reference == "overall" else means - overall
            gaps.append(float(apart.mean() if agg == "mean" else apart.max()))
    return max(gaps)


def _clip(ranks: np.ndarray, pieces: Sequence[tuple[float, float]]) -> np.ndarray:
    """The part of the top ``ranks`` that lies in the pieces."""
    return sum((np.minimum(ranks, end) - np.minimum(ranks, begin) for begin, end in pieces), np.zeros_like(ranks))


def _length(pieces: Sequence[tuple[float, float]]) -> float:
    return sum(end - begin for begin, end in pieces)


def _ranks(scores: np.ndarray, thresholds: np.ndarray, members: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Share of every group that scores above every threshold; ndarray of shape (n_thresholds, n_groups)."""
    mass = members * weights[:, None]
    above = (scores > thresholds[:, None]).astype(float) @ mass / mass.sum(axis=0)
    return np.where(above > 1 - _SAME_RANK, 1.0, above)


def _gap_of_ranks(ranks: np.ndarray, pieces: Pieces, normalize: bool) -> float:
    """Largest gap over thresholds and pairs of groups."""
    if normalize:
        parts = np.column_stack([_clip(r, own) / _length(own) for r, own in zip(ranks.T, pieces, strict=True)])
        return float((parts.max(axis=1) - parts.min(axis=1)).max())
    inside = np.column_stack(
        [
            np.any([(r >= begin - _SAME_RANK) & (r < end - _SAME_RANK) for begin, end in own], axis=0)
            for r, own in zip(ranks.T, pieces, strict=True)
        ]
    )
    differences = np.abs(ranks[:, :, None] - ranks[:, None, :])
    counted = inside[:, :, None] | inside[:, None, :]
    return float((differences * counted).max())


def statistical_gap(
    scores: np.ndarray, members: np.ndarray, weights: np.ndarray, pieces: Pieces, normalize: bool = True
) -> float:
    """Largest gap of the groups' shares above any threshold, within the intervals."""
    thresholds = np.append(np.unique(scores), -np.inf)
    return _gap_of_ranks(_ranks(scores, thresholds, members, weights), pieces, normalize)


def parity_gap(
    scores: np.ndarray,
    members: np.ndarray,
    weights: np.ndarray,
    subsets: Sequence[np.ndarray],
    threshold: float,
    pieces: Pieces,
    normalize: bool = True,
) -> float:
    """Largest gap of the groups' shares above one threshold, within the intervals and some subsets of the rows."""
    at = np.array([threshold])
    return max(
        _gap_of_ranks(_ranks(scores[kept], at, members[kept], weights[kept]), pieces, normalize) for kept in subsets
    )


def group_auc_gap(scores: np.ndarray, members: np.ndarray, weights: np.ndarray, pieces: Pieces) -> float:
    """Largest distance of the AUC of two groups from one half, of the rows within the intervals.

    A block of ties counts with the part of its weight that lies within the interval.
    """
    thresholds = np.append(np.unique(scores)[::-1], -np.inf)
    ranks = _ranks(scores, thresholds, members, weights)
    masses = []
    for r, own in zip(ranks.T, pieces, strict=True):
        masses.append(np.diff(_clip(r, own)) / _length(own))  # of every distinct score, from the largest on
    gaps = [0.0]
    for g, first in enumerate(masses):
        for second in masses[:g]:
            below = second.sum() - np.cumsum(second)
            gaps.append(abs(float(first @ (below + second / 2)) - 0.5))
    return max(gaps)


def auc(scores: np.ndarray, weights: np.ndarray, above: np.ndarray, below: np.ndarray) -> float:
    """``P(s > s') + P(s = s') / 2`` for s of the one set of rows and s' of the other, over all pairs."""
    first, second = np.flatnonzero(above), np.flatnonzero(below)
    order = second[np.argsort(scores[second], kind="stable")]
    cumulative = np.append(0.0, np.cumsum(weights[order]))
    lower = cumulative[np.searchsorted(scores[order], scores[first], side="left")]
    not_higher = cumulative[np.searchsorted(scores[order], scores[first], side="right")]
    return float(weights[first] @ (lower + not_higher) / 2 / weights[first].sum() / weights[second].sum())


def auc_sets(metric: str, members: np.ndarray, positive: np.ndarray, protected: int | None) -> list[tuple]:
    """The four sets of rows of every difference of AUCs, from the table in the paper; None twice stands for 1/2."""
    n_groups = members.shape[1]
    if metric in ("group_auc", "inter_group", "intra_group"):
        pairs = [(g, h) for g in range(n_groups) for h in range(g)]
        sides = [(members[:, g], members[:, h]) for g, h in pairs]
    else:
        sides = [(members[:, g], ~members[:, g]) for g in range(n_groups)]
    if protected is not None:
        sides = [(members[:, protected], ~members[:, protected])]
    negative = ~positive
    sets: dict[str, Callable[[np.ndarray, np.ndarray], tuple]] = {
        "group_auc": lambda a, b: (a, b, None, None),
        "inter_group": lambda a, b: (a & positive, b & negative, b & positive, a & negative),
        "intra_group": lambda a, b: (a & positive, a & negative, b & positive, b & negative),
        "positive_equality": lambda a, b: (a & positive, positive, None, None),
        "negative_equality": lambda a, b: (a & negative, negative, None, None),
        "bpsn_bnsp": lambda a, b: (positive, a & negative, a & positive, negative),
    }
    return [sets[metric](a, b) for a, b in sides]


def auc_sets_gap(scores: np.ndarray, weights: np.ndarray, sets: Sequence[tuple]) -> float:
    """Largest difference of two AUCs."""
    gaps = []
    for above, below, other_above, other_below in sets:
        reference = 0.5 if other_above is None else auc(scores, weights, other_above, other_below)
        gaps.append(abs(auc(scores, weights, above, below) - reference))
    return max(gaps)


def majority_share(scores: np.ndarray, minority: np.ndarray, weights: np.ndarray, rate: str) -> float:
    """Share of the positive predictions that the others get; 0 where nobody is positive."""
    rates = weights * row_values(rate, scores, minority)
    return 0.0 if rates.sum() == 0 else float(rates[~minority].sum() / rates.sum())


def query_pairs(relevance: np.ndarray, qid: np.ndarray) -> np.ndarray:
    """Pairs of documents of one query of which the first is more relevant; shape (n_pairs, 2)."""
    better = (relevance[:, None] > relevance) & (qid[:, None] == qid)
    return np.argwhere(better)


def compared_pairs(pairs: np.ndarray, codes: np.ndarray, compared: str) -> np.ndarray:
    """Which pairs are of a kind that is compared; boolean, of shape (n_pairs,)."""
    first, second = codes[pairs].T
    return {"between": first != second, "within": first == second, "all": np.ones(len(pairs), dtype=bool)}[compared]


def pair_accuracy_gap(
    scores: np.ndarray, pairs: np.ndarray, codes: np.ndarray, compared: str, rate: str = "indicator"
) -> float:
    """Largest gap of the kinds of pairs (better of group a, worse of group b) in the mean rate of their difference."""
    first, second = codes[pairs].T
    values = row_values(rate, scores[pairs[:, 0]] - scores[pairs[:, 1]], np.ones(len(pairs), dtype=bool))
    chosen = compared_pairs(pairs, codes, compared)
    kinds = first * (codes.max() + 1) + second
    means = np.array([values[kinds == kind].mean() for kind in np.unique(kinds[chosen])])
    return spread(means) if means.size > 1 else 0.0


def class_error(outputs: np.ndarray, codes: np.ndarray, k: int, weights: np.ndarray) -> float:
    """Share of a class that is predicted to be another one, from outputs of shape (n_samples, n_classes)."""
    rows = codes == k
    return float(np.average(outputs[rows].argmax(axis=1) != k, weights=weights[rows]))


def class_loss(outputs: np.ndarray, codes: np.ndarray, k: int, weights: np.ndarray, loss: Any) -> float:
    """Mean over a class of the sum of the losses of its margins over the other classes."""
    rows = codes == k
    others = [j for j in range(outputs.shape[1]) if j != k]
    margins = outputs[rows, k][:, None] - outputs[rows][:, others]
    return float(np.average(loss(margins).sum(axis=1), weights=weights[rows]))
