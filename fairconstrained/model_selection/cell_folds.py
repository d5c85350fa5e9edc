"""Folds with the same share of every cell of rows, such as those of a group and a class, and those of a user."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils.validation import _num_samples

from fairconstrained.checks.seeds import seed_of

__all__ = ["cell_folds", "cells_of", "given_folds", "scoring_folds"]


def cells_of(*codes: np.ndarray) -> np.ndarray:
    """Return a number for every row that is the same for rows which agree in all codes; shape (n_samples,)."""
    return np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)[1].ravel()


def cell_folds(n_splits: int, cells: np.ndarray, seed: int | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the training and of the held-out rows of every fold, with the same share of every cell.

    Parameters
    ----------
    cells : ndarray of int, of shape (n_samples,)
        Number of the cell of every row, from 0 on.
    seed : int, optional
        Seed with which the rows are shuffled; None leaves them in their order.

    Raises
    ------
    ValueError
        If there are fewer rows than folds, or fewer than two folds.
    """
    sizes = np.bincount(cells)
    # rare cells together, as each of them alone cannot have a row in every fold
    cells = np.where(sizes[cells] < n_splits, sizes.size, cells)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splitter = StratifiedKFold(n_splits, shuffle=seed is not None, random_state=seed)
        return list(splitter.split(np.zeros(cells.size), cells))


def given_folds(
    cv: Any, X: Any, y: Any, *, classifier: bool, groups: Any = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the training and of the held-out rows of every fold that a user gave.

    Parameters
    ----------
    cv : cross-validation splitter or iterable
        As :func:`sklearn.model_selection.check_cv` takes it.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    groups : array-like of shape (n_samples,), optional
        Tells a splitter which rows to keep together.

    Raises
    ------
    ValueError
        If there are no folds, as of a generator that an earlier fit has used up.
    """
    every = np.arange(_num_samples(y))
    folds = [(every[train], every[test]) for train, test in check_cv(cv, y, classifier=classifier).split(X, y, groups)]
    if not folds:
        raise ValueError(
            f"cv={cv!r} has no folds. A generator has them for one fit only: give the splitter itself, or a list of "
            "its folds, such as cv=list(splitter.split(X, y))."
        )
    return folds


def scoring_folds(
    cv: Any, X: Any, y: np.ndarray, codes: np.ndarray, *, classifier: bool, random_state: Any, groups: Any = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the rows to fit on and to score by every fold, each row scored once.

    Parameters
    ----------
    cv : int, cross-validation splitter or iterable
        An integer stands for shuffled folds with the same share of every group, and for a classifier of every group and
        class.
    X, y, classifier, groups
        See `given_folds`.
    codes : ndarray of int, of shape (n_samples,)
        Group of every row.
    random_state : int, RandomState instance or None
        Seed of shuffled folds.

    Raises
    ------
    ValueError
        If there are no folds, rows are scored twice or never, or there is no splitter to keep rows together.
    """
    if isinstance(cv, Integral):
        if groups is not None:
            raise ValueError(f"groups keeps rows in one fold, which needs a splitter; set cv=GroupKFold({cv}).")
        classes = np.unique(y, return_inverse=True)[1] if classifier else np.zeros(y.size, dtype=int)
        folds = cell_folds(int(cv), cells_of(classes, codes), seed_of(random_state))
    else:
        folds = given_folds(cv, X, y, classifier=classifier, groups=groups)
    counts = np.bincount(np.concatenate([test for _, test in folds]), minlength=y.size)
    if (counts != 1).any():
        raise ValueError(
            f"cv leaves out {int((counts == 0).sum())} rows and has {int((counts > 1).sum())} in several test parts; "
            "every row must be in exactly one, as with KFold."
        )
    return folds
