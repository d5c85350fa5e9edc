"""Random rows to fit: features of all kinds, labels, groups of several layouts, and weights; from a generator alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["LAYOUTS", "WEIGHTS", "Rows", "draw_rows"]

LAYOUTS = ("balanced", "tiny", "like the label", "shifted", "overlapping")
WEIGHTS = ("none", "uniform", "heavy", "zeros")
_NAMES = (("no", "yes"), (0, 1), (-1, 1), (False, True), ("declined", "granted"))
_LARGEST, _SMALLEST = 2000, 60


@dataclass(frozen=True, eq=False)
class Rows:
    """Data that an estimator is given, and the plain arrays that gaps are computed from.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Labels, as the user would have them.
    positive : ndarray of bool, of shape (n_samples,)
    target : ndarray of shape (n_samples,)
        Target of a regression.
    groups : ndarray
        The sensitive features, of shape (n_samples,), (n_samples, 2), or a table of booleans.
    labels : tuple
        Labels of the groups, in their sorted order.
    members : ndarray of bool, of shape (n_samples, n_groups)
    sample_weight : ndarray of shape (n_samples,) or None
    layout, weighting, features : str
        Words that say how the rows were drawn.
    """

    X: Any
    y: np.ndarray
    positive: np.ndarray
    target: np.ndarray
    groups: np.ndarray
    labels: tuple
    members: np.ndarray
    sample_weight: np.ndarray | None
    layout: str
    weighting: str
    features: str

    @property
    def weights(self) -> np.ndarray:
        """The weights, 1 where none are given."""
        return np.ones(self.y.size) if self.sample_weight is None else self.sample_weight

    @property
    def overlaps(self) -> bool:
        """Whether the groups are a table of booleans."""
        return self.layout == "overlapping"


def draw_rows(rng: np.random.Generator, overlapping: bool, largest: int = _LARGEST) -> Rows:
    """Draw a data set.

    Parameters
    ----------
    rng : Generator
    overlapping : bool
        Whether a table of booleans may say which rows belong to a group.
    largest : int
        Rows at most.
    """
    n = int(np.exp(rng.uniform(np.log(_SMALLEST), np.log(largest), size=2).max()))
    d = int(rng.integers(1, 26))
    latent = rng.normal(size=(n, d))
    layout = str(rng.choice(LAYOUTS, p=[0.3, 0.15, 0.15, 0.3, 0.1]))
    if layout == "overlapping" and not overlapping:
        layout = "balanced"
    n_groups = int(rng.integers(2, min(8, max(2, n // 120)) + 1))
    direction = rng.normal(size=d) * (rng.random(d) < 0.7)
    signal = latent @ direction / max(float(np.linalg.norm(direction)), 1e-9)
    target = rng.uniform(0.3, 3) * signal + rng.normal(size=n)
    positive = _labels(rng, target)
    codes = _codes(rng, layout, n_groups, positive)
    if layout in ("shifted", "overlapping"):
        latent = latent + (rng.normal(size=(n_groups, d)) * rng.uniform(0.2, 2))[codes]
    X, features = _features(rng, latent)
    groups, labels, members = _groups(rng, layout, codes, n_groups)
    weighting = str(rng.choice(WEIGHTS, p=[0.5, 0.2, 0.15, 0.15]))
    names = _NAMES[int(rng.integers(len(_NAMES)))]
    return Rows(
        X=X,
        y=np.array(names)[positive.astype(int)],
        positive=positive,
        target=target * 10 ** rng.uniform(-3, 3) + rng.normal() * 10 ** rng.uniform(-3, 3),
        groups=groups,
        labels=labels,
        members=members,
        sample_weight=_weights(rng, weighting, positive, members),
        layout=layout,
        weighting=weighting,
        features=features,
    )


def _labels(rng: np.random.Generator, target: np.ndarray) -> np.ndarray:
    """The largest targets, from a tenth to nine tenths; at least three rows of either label."""
    share = rng.uniform(0.1, 0.9)
    order = np.argsort(np.argsort(-target))
    return order < np.clip(round(share * target.size), 3, target.size - 3)


def _codes(rng: np.random.Generator, layout: str, n_groups: int, positive: np.ndarray) -> np.ndarray:
    """The group of every row; every group has rows."""
    n = positive.size
    if layout == "tiny":
        n_tiny = int(rng.integers(3, max(4, min(90, n // 2))))
        others = 1 + rng.integers(max(n_groups - 1, 1), size=n)
        codes = np.where(rng.permutation(n) < n_tiny, 0, others)
    elif layout == "like the label":
        codes = np.where(rng.random(n) < 0.07, ~positive, positive).astype(int)
        if n_groups > 2:
            codes = codes + 2 * rng.integers(2, size=n)
    else:
        codes = rng.permutation(np.arange(n) % n_groups)
    return np.unique(codes, return_inverse=True)[1]


def _features(rng: np.random.Generator, latent: np.ndarray) -> tuple[Any, str]:
    """The columns as a user may have them, and a word for them."""
    X, (n, d) = latent.copy(), latent.shape
    kind = str(rng.choice(["gaussian", "binary", "heavy", "mixed"]))
    binary = np.full(d, kind == "binary") | ((kind == "mixed") & (rng.random(d) < 0.4))
    heavy = np.full(d, kind == "heavy") | ((kind == "mixed") & (rng.random(d) < 0.3))
    X[:, binary] = X[:, binary] > rng.normal() / 2
    X[:, heavy & ~binary] = np.sinh(2 * X[:, heavy & ~binary])
    words = [kind]
    if rng.random() < 0.15 and d > 1:
        X[:, int(rng.integers(d))] = X[:, int(rng.integers(d))]
        words.append("duplicated")
    if rng.random() < 0.15:
        X[:, int(rng.integers(d))] = rng.choice([0.0, 1.0, 1e6])
        words.append("constant")
    if rng.random() < 0.2:
        X = X * 10 ** rng.uniform(-4, 4, size=d)
        words.append("units")
    if rng.random() < 0.2:
        words.append("sparse")
        return sp.csr_array(X * (rng.random((n, d)) < 0.5)), " ".join(words)
    return X, " ".join(words)


def _groups(
    rng: np.random.Generator, layout: str, codes: np.ndarray, n_groups: int
) -> tuple[np.ndarray, tuple, np.ndarray]:
    """Sensitive features as they are passed, the labels in sorted order, and the members of every group."""
    if layout == "overlapping":
        table = np.eye(n_groups, dtype=bool)[codes] | (rng.random((codes.size, n_groups)) < 0.3)
        table[rng.random(codes.size) < 0.1] = False
        table[:n_groups] |= np.eye(n_groups, dtype=bool)  # nobody's group is empty
        return table, tuple(range(n_groups)), table
    n_found = int(codes.max()) + 1
    members = np.eye(n_found, dtype=bool)[codes]
    style = int(rng.integers(3))
    if style == 0:
        return codes, tuple(range(n_found)), members
    if style == 1:
        names = tuple("abcdefgh"[:n_found])
        return np.array(names)[codes], names, members
    columns = np.column_stack([codes // 2, codes % 2])
    return columns, tuple((c // 2, c % 2) for c in range(n_found)), members


def _weights(rng: np.random.Generator, weighting: str, positive: np.ndarray, members: np.ndarray) -> np.ndarray | None:
    if weighting == "none":
        return None
    n = positive.size
    if weighting == "uniform":
        return rng.uniform(0.5, 1.5, size=n)
    if weighting == "heavy":
        return np.exp(rng.uniform(0.5, 1.5) * rng.normal(size=n))
    weights = (rng.random(n) < 0.8).astype(float)
    for rows in (positive, ~positive, *members.T):  # a class or group without weight is an error of its own
        weights[np.flatnonzero(rows)[:2]] = 1.0
    return weights
