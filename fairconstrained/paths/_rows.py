"""Rows with what belongs to them, through the transformers of a pipeline and into folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _check_method_params, _num_samples

from fairconstrained.checks.messages import shortened, warn_user
from fairconstrained.estimators.shared_rows import SharedRows
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.groups import Groups
from fairconstrained.model_selection.cell_folds import cell_folds, cells_of, given_folds
from fairconstrained.model_selection.pipelines import transformed

__all__ = ["Rows", "folds", "smallest_group"]

_QUERIES = "qid"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, and what the last step of a pipeline sees of them."""

    #: As the user gave it.
    X: Any  # array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
    y: Any  # array-like of shape (n_samples,)
    #: Groups, weights and other arguments of `fit`.
    metadata: Mapping[str, Any] = field(default_factory=dict)
    #: The rows after the transformers.
    seen: Any = None  # array-like, DataFrame or sparse matrix of shape (n_samples, n_transformed)
    #: Results that all fits to these rows share.
    shared: SharedRows = field(default_factory=SharedRows)

    def groups(self, estimator: Any) -> Groups:
        """The groups as an estimator takes them; a single one if there are none."""
        if (features := self.metadata.get("sensitive_features")) is None:
            return Groups(np.zeros(_num_samples(self.y), dtype=np.int64), (None,))
        return Groups.of(features, estimator._takes_overlapping_groups)

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows, by their numbers."""
        X, y = (_safe_indexing(column, rows) for column in indexable(self.X, self.y))
        return Rows(X, y, _check_method_params(self.X, dict(self.metadata), rows))

    def fit_transformed(self, transformers: Pipeline | None, others: Sequence[str] = ()) -> Rows:
        """These rows as the last step sees them in training; fits ``transformers``.

        ``others`` are the metadata that are transformed as well (`Pipeline.transform_input`).
        """
        if transformers is None:
            return replace(self, seen=self.X, shared=SharedRows())
        # The requests of the steps say what they get, as in `Pipeline.fit` with metadata routing.
        with sklearn.config_context(enable_metadata_routing=True):
            consumed = get_routing_for_object(transformers).consumes("fit_transform", self.metadata.keys())
            seen = transformers.fit_transform(self.X, self.y, **{name: self.metadata[name] for name in consumed})
        changed = {name: transformers.transform(self.metadata[name]) for name in others if name in self.metadata}
        return replace(self, seen=seen, metadata={**self.metadata, **changed}, shared=SharedRows())

    def transformed(self, transformers: Pipeline | None) -> Rows:
        """These rows as the last step sees them in prediction."""
        return replace(self, seen=self.X if transformers is None else transformed(transformers, self.X, self.metadata))


def folds(cv: Any, estimator: Any, rows: Rows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the training and of the held-out rows of every fold.

    An integer stands for folds with the same share of every group, and of a classifier of every group and class;
    of documents, all of one query are in the same fold.

    Raises ValueError if there are no folds, or if a part of one has a single group, or lacks one of those that may
    overlap.
    """
    if cv is None:
        return []
    n_rows, groups = _num_samples(rows.y), rows.groups(estimator)
    queries = rows.metadata.get(_QUERIES)
    n_units, unit = (n_rows, "n_samples") if queries is None else (np.unique(queries).size, "n_queries")
    if isinstance(cv, Integral) and not 2 <= int(cv) <= n_units:
        raise ValueError(f"cv={cv} must be a number of folds, at least 2 and at most {unit}={n_units}.")
    if not isinstance(cv, Integral):
        parts = _given(cv, is_classifier(estimator), rows, queries)
    elif queries is not None:
        parts = list(GroupKFold(cv).split(np.zeros(n_rows), groups=queries))
    else:
        parts = _stratified(int(cv), groups.codes, rows.y if is_classifier(estimator) else np.zeros(n_rows))
    _check_groups(parts, groups)
    return parts


def smallest_group(estimator: Any, rows: Rows, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> int:
    """Rows of the smallest group that an estimator compares, in all rows or in the training part of a fold."""
    groups, weights = rows.groups(estimator), rows.metadata.get("sample_weight")
    counted = np.ones(groups.codes.size) if weights is None else (np.asarray(weights) > 0).astype(float)
    every = np.arange(counted.size)
    params = estimator.get_params()
    given = [params[name] for name in params if name.rpartition("__")[2] == "min_group_size"]
    least = min((size for size in given if not isinstance(size, str)), default=1)
    smallest = []
    for part in [every, *(train for train, _ in parts)]:
        sizes = groups.sums(np.where(np.isin(every, part), counted, 0.0))
        smallest.append(sizes[sizes >= least].min(initial=sizes.sum()))  # smaller ones are merged or left out
    return int(min(smallest))


def _given(cv: Any, classifier: bool, rows: Rows, queries: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds of a splitter of scikit-learn, or of an iterable; ``queries`` are its groups."""
    try:
        return given_folds(cv, *indexable(rows.X, rows.y), classifier=classifier, groups=queries)
    except ValueError as error:
        if queries is None and "groups" in str(error):
            raise ValueError(
                f"cv={cv!r} needs groups of its own. Give its folds: cv=list(splitter.split(X, y, groups))."
            ) from error
        raise


def _stratified(n_splits: int, codes: np.ndarray, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds with the same share of every cell by group and class."""
    classes = np.unique(np.asarray(y), return_inverse=True)[1].ravel()  # y may be a column
    return cell_folds(n_splits, cells_of(codes, classes))


def _check_groups(parts: list[tuple[np.ndarray, np.ndarray]], groups: Groups) -> None:
    """Raise or warn where a part of a fold lacks groups, which its gaps then leave out."""
    if len(groups.names) == 1:
        return
    lacking = []
    for number, fold in enumerate(parts, start=1):
        for kind, rows in zip(("training", "held-out"), fold, strict=True):
            sizes = groups.sums(np.bincount(rows, minlength=groups.codes.size))
            missing = [name for name, size in zip(groups.names, sizes, strict=True) if size == 0]
            if missing:
                lacking.append(f"the {kind} rows of fold {number} of {len(parts)} lack {shortened(missing)}")
            if missing and groups.unions is not None:
                raise ValueError(
                    f"{lacking[-1]}, columns of sensitive_features without a row; take other or fewer folds, or merge "
                    "small groups."
                )
            if len(missing) >= len(groups.names) - 1:
                raise ValueError(f"{lacking[-1]}, so that there is nothing to compare; take other or fewer folds.")
    if lacking:
        warn_user(
            f"Not every group is in every part of the folds ({'; '.join(lacking)}), and gaps are measured without "
            "those that are not. Take fewer folds, or merge small groups.",
            FairnessWarning,
        )
