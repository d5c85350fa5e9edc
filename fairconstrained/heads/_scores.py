"""Scores of a fitted model of any kind as numbers that a head can work with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.base import is_classifier

from fairconstrained.checks.inputs import as_table, check_group_of_every_row
from fairconstrained.checks.messages import shortened
from fairconstrained.estimators.grouping import SmallGroups
from fairconstrained.groups import GroupEncoder, Groups
from fairconstrained.model_selection.response import get_response
from fairconstrained.tables import Table

__all__ = ["GroupTargets", "base_scores", "classifies", "group_probabilities"]

#: Methods of a classifier that gives scores.
_WITH_SCORES = ("decision_function", "predict_proba")
#: Probabilities are taken as at least this far from 0 and 1: forests are certain, and their log-odds infinite.
_CERTAINTY = 1e-5


def classifies(model: Any) -> bool:
    """Whether a model is a classifier; one that is none of scikit-learn's kind is, if it has scores."""
    if hasattr(model, "__sklearn_tags__"):
        return is_classifier(model)
    return any(hasattr(model, name) for name in _WITH_SCORES)


def base_scores(model: Any, X: Any, sensitive_features: Any = None) -> np.ndarray:
    """Scores of a fitted classifier, as log-odds where it has probabilities, or predictions of a regressor.

    Parameters
    ----------
    model : estimator
    X : {array-like, DataFrame, sparse matrix, Table} of shape (n_samples, n_features)
    sensitive_features : array-like of shape (n_samples,), optional
        Handed on to a model that requests it.

    Returns
    -------
    scores : ndarray of shape (n_samples, n_scores)
        One column for a regressor and for two classes, otherwise one for every class.

    Raises
    ------
    TypeError
        If a classifier has neither ``decision_function`` nor ``predict_proba``.
    ValueError
        If a score is not finite.
    """
    groups = () if sensitive_features is None else (sensitive_features,)
    return _of_rows(partial(_base_scores, model), model, X, *groups)


def _of_rows(function: Callable[..., np.ndarray], model: Any, X: Any, *columns: Any) -> np.ndarray:
    """Return a function of rows, where they are: a table is asked block by block, with the names that a model knows."""
    if not isinstance(X, Table):
        return function(X, *columns)
    names = X.names if hasattr(model, "feature_names_in_") else None
    return X.map_rows(partial(_of_block, function, names), *map(np.asarray, columns))


def _of_block(
    function: Callable[..., np.ndarray], names: Sequence[str] | None, block: Any, *columns: Any
) -> np.ndarray:
    if names is not None and not sp.issparse(block):
        block = pd.DataFrame(block, columns=list(names))
    return function(block, *columns)


def _base_scores(model: Any, X: Any, sensitive_features: Any = None) -> np.ndarray:
    if classifies(model) and not any(hasattr(model, name) for name in _WITH_SCORES):
        raise TypeError(
            f"{type(model).__name__} has neither decision_function nor predict_proba, so it has no scores for a head. "
            "Take a classifier with scores, such as one in CalibratedClassifierCV."
        )
    if not classifies(model):
        scores = np.asarray(get_response(model, X, "predict", sensitive_features=sensitive_features).values, float)
    elif hasattr(model, "predict_proba"):
        shares = get_response(model, X, "predict_proba", sensitive_features=sensitive_features).values
        shares = np.clip(np.asarray(shares, dtype=float), _CERTAINTY, 1 - _CERTAINTY)
        shares = shares[:, 1] if shares.ndim == 2 and shares.shape[1] == 2 else shares  # of a model without classes_
        scores = np.asarray(logit(shares)) if shares.ndim == 1 else np.log(shares)
    else:
        response = get_response(model, X, "decision_function", sensitive_features=sensitive_features)
        scores = np.asarray(response.values, dtype=float)
    scores = scores.reshape(scores.shape[0], -1)
    if scores.shape[1] > 1:  # adding a constant to the scores of all classes changes nothing
        scores = scores - scores.mean(axis=1, keepdims=True)
    if not np.isfinite(scores).all():
        n_bad = int((~np.isfinite(scores).all(axis=1)).sum())
        raise ValueError(f"{type(model).__name__} gave {n_bad} rows a score that is not finite; check its inputs.")
    return scores


class GroupTargets(NamedTuple):
    """Targets of the models of the groups."""

    #: The group of every row, or for groups that overlap, whether it belongs to each of them; without rows in a fitted
    #: model.
    columns: np.ndarray  # of int, of shape (n_samples, n_models)
    #: Names of the groups.
    labels: tuple[Hashable, ...]
    #: Whether groups overlap.
    overlap: bool
    #: Names of the columns of sensitive features if there are several, in the order of the values in a label.
    column_names: tuple[Hashable, ...] = ()

    @classmethod
    def of(cls, sensitive_features: Any, n_samples: int, overlapping: bool) -> GroupTargets:
        """Encode the groups of the rows, as an estimator takes them; a single group if there are none."""
        if sensitive_features is None:
            return cls(np.zeros((n_samples, 1), dtype=int), (None,), False)
        groups = Groups.of(sensitive_features, overlapping)
        check_group_of_every_row(groups.codes.size, n_samples)
        if groups.unions is None:
            return cls(groups.codes[:, None], groups.labels, False, groups.column_names)
        return cls(groups.unions.of_rows(groups.codes).toarray().astype(int), groups.names, True)

    @property
    def compares(self) -> bool:
        """Whether there is more than one group."""
        return len(self.labels) > 1

    @property
    def cells(self) -> np.ndarray:
        """A number for every row that is the same for rows of the same groups; ndarray of shape (n_samples,)."""
        return np.unique(self.columns, axis=0, return_inverse=True)[1].ravel()

    @property
    def n_smallest(self) -> int:
        """Number of rows of the smallest group."""
        counts = self.columns.sum(axis=0) if self.overlap else np.bincount(self.columns[:, 0])
        return int(counts.min())

    def without_rows(self) -> GroupTargets:
        """Names of the groups, without the rows."""
        return self._replace(columns=self.columns[:0])

    def told_apart_by(self, parts: Sequence[np.ndarray]) -> GroupTargets:
        """The targets that models can learn from each of these parts of the rows.

        Groups without rows in one of the parts are joined, with the smallest other one if need be. Of groups that
        overlap, those are left out of which a part has no rows, or no others.

        Parameters
        ----------
        parts : sequence of ndarray
            Numbers of the rows that the models are fitted on, by fold.

        Raises
        ------
        ValueError
            If no groups are left to tell apart; the message names those that lack rows.
        """
        rare = self._rare(parts)
        if self.overlap:
            kept = np.setdiff1d(np.arange(len(self.labels)), rare)
            told = GroupTargets(self.columns[:, kept], tuple(self.labels[column] for column in kept), True)
            is_enough = kept.size > 0
        else:
            told, lacking = self, rare
            while told.compares and lacking.size:
                told = told._joined(lacking)
                lacking = told._rare(parts)
            is_enough = told.compares
        if not is_enough:
            names = shortened([self.labels[code] for code in rare])
            raise ValueError(
                f"the training rows of a fold lack the groups {names}, so that no model can tell groups apart; take "
                "other or fewer folds, or set group_estimator=None or use_groups=True."
            )
        return told

    def _rare(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Codes of the groups that one of the parts has no rows of or, where groups overlap, no others."""
        if self.overlap:
            shares = np.array([self.columns[part].mean(axis=0) for part in parts])
            return np.flatnonzero(((shares == 0) | (shares == 1)).any(axis=0))
        counts = np.array([np.bincount(self.columns[part, 0], minlength=len(self.labels)) for part in parts])
        return np.flatnonzero((counts == 0).any(axis=0))

    def _joined(self, rare: np.ndarray) -> GroupTargets:
        """These groups as one behind the others; a single one is joined with the smallest other one."""
        groups = Groups(self.columns[:, 0], self.labels)
        small = SmallGroups(merged=tuple(self.labels[code] for code in rare))
        joined = (small if rare.size > 1 else small.joined_by_smallest(groups)).applied(groups)
        return self._replace(columns=joined.codes[:, None], labels=joined.labels)

    def indicators(self) -> np.ndarray:
        """Membership of the rows, without the first of groups that do not overlap; shape (n_samples, n_columns)."""
        if self.overlap:
            return self.columns.astype(float)
        return np.eye(len(self.labels))[self.columns[:, 0]][:, 1:]

    def indicators_of(self, sensitive_features: Any) -> np.ndarray:
        """`indicators` of other rows.

        Raises ValueError if a row belongs to a group that was not seen in `fit` (the message names it), and for a table
        of groups that overlap with other columns or values than 0 and 1.
        """
        if not self.overlap:
            codes = GroupEncoder.encode(sensitive_features, self.labels, self.column_names)
            return np.eye(len(self.labels))[codes][:, 1:]
        given = as_table(sensitive_features)
        table = pd.DataFrame(given.toarray()) if sp.issparse(given) else given
        if table.shape[1] != len(self.labels):
            raise ValueError(f"sensitive_features has {table.shape[1]} columns, in fit it had {len(self.labels)}.")
        if set(self.labels) == set(table.columns):
            table = table[list(self.labels)]  # whatever their order is
        elif not sp.issparse(given) and any(isinstance(name, str) for name in table.columns):
            raise ValueError(
                f"sensitive_features has the columns {shortened(list(table.columns))}, in fit it had "
                f"{shortened(list(self.labels))}."
            )
        if not table.isin([0, 1]).all(axis=None):
            raise ValueError("sensitive_features must hold True and False (or 1 and 0), as in fit.")
        return table.to_numpy().astype(float)


def group_probabilities(models: Mapping[int, Any], targets: GroupTargets, X: Any) -> np.ndarray:
    """Probabilities of the groups by one model for each column of the targets; shape (n_samples, n_columns).

    Of groups that do not overlap the first one is left out, as the probabilities sum to one.
    """
    if targets.overlap:
        return np.hstack([_probabilities_of(models[column], X, 2)[:, 1:] for column in sorted(models)])
    return _probabilities_of(models[0], X, len(targets.labels))[:, 1:]


def _probabilities_of(model: Any, X: Any, n_classes: int) -> np.ndarray:
    return _of_rows(partial(_probabilities, model, n_classes), model, X)


def _probabilities(model: Any, n_classes: int, X: Any) -> np.ndarray:
    """Probabilities of the classes 0, 1, ..., also of those that the model has not seen."""
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(X), dtype=float)
    else:
        scores = np.asarray(model.decision_function(X), dtype=float)
        scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
        found = expit(scores)
        found /= found.sum(axis=1, keepdims=True)
    every = np.zeros((found.shape[0], n_classes))
    every[:, np.asarray(model.classes_, dtype=int)] = found
    return every
