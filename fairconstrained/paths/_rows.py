"""Rows with what belongs to them, through the transformers of a pipeline and into folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold, StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _check_method_params

from fairconstrained.groups import Groups

__all__ = ["Rows", "folds"]

_QUERIES = "qid"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, and what the last step of a pipeline sees of them.

    Attributes
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        As the user gave it.
    y : array-like of shape (n_samples,)
    metadata : dict
        Groups, weights and other arguments of `fit`.
    seen : array-like, DataFrame or sparse matrix of shape (n_samples, n_transformed)
        After the transformers.
    """

    X: Any
    y: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)
    seen: Any = None

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows, by their numbers."""
        X, y = (_safe_indexing(column, rows) for column in indexable(self.X, self.y))
        return Rows(X, y, _check_method_params(self.X, dict(self.metadata), rows))

    def fit_transformed(self, transformers: Pipeline | None, others: Sequence[str] = ()) -> Rows:
        """These rows as the last step sees them in training; fits ``transformers``.

        ``others`` are the metadata that are transformed as well (`Pipeline.transform_input`).
        """
        if transformers is None:
            return replace(self, seen=self.X)
        # The requests of the steps say what they get, as in `Pipeline.fit` with metadata routing.
        with sklearn.config_context(enable_metadata_routing=True):
            consumed = get_routing_for_object(transformers).consumes("fit_transform", self.metadata.keys())
            seen = transformers.fit_transform(self.X, self.y, **{name: self.metadata[name] for name in consumed})
        changed = {name: transformers.transform(self.metadata[name]) for name in others if name in self.metadata}
        return replace(self, seen=seen, metadata={**self.metadata, **changed})

    def transformed(self, transformers: Pipeline | None) -> Rows:
        """These rows as the last step sees them in prediction."""
        return replace(self, seen=self.X if transformers is None else transformers.transform(self.X))


def folds(cv: Any, estimator: Any, rows: Rows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the training and of the held-out rows of every fold.

    An integer stands for folds with the same share of every group, and of a classifier of every group and class;
    of documents, all of one query are in the same fold.
    """
    if cv is None:
        return []
    queries = rows.metadata.get(_QUERIES)
    if not isinstance(cv, Integral):
        splitter = check_cv(cv, rows.y, classifier=is_classifier(estimator))
        return list(splitter.split(*indexable(rows.X, rows.y), groups=queries))
    if queries is not None:
        return list(GroupKFold(cv).split(rows.X, rows.y, queries))
    strata = _strata(estimator, rows)
    sizes = np.bincount(strata)
    # Rare cells together, as each of them alone cannot have a row in every fold.
    strata = np.where(sizes[strata] < cv, sizes.size, strata)
    return list(StratifiedKFold(cv).split(np.zeros(strata.size), strata))


def _strata(estimator: Any, rows: Rows) -> np.ndarray:
    """Cell of every row by group and class; ndarray of int, of shape (n_samples,)."""
    y, groups = np.asarray(rows.y), rows.metadata.get("sensitive_features")
    cells = np.zeros((y.shape[0], 2), dtype=np.int64)
    if groups is not None:
        cells[:, 0] = Groups.of(groups, estimator._takes_overlapping_groups).codes
    if is_classifier(estimator):
        cells[:, 1] = np.unique(y, return_inverse=True)[1].ravel()  # y may be a column
    return np.unique(cells, axis=0, return_inverse=True)[1]
