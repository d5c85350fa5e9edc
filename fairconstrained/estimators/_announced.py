"""Estimators with `partial_fit`, and the classes and groups that their streams of rows are announced to have."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fairconstrained.checks.inputs import check_group_of_every_row
from fairconstrained.checks.messages import nothing_to_compare, shortened, warn_user
from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators.grouping import alike_groups, as_labels
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.groups import GroupEncoder, is_membership

__all__ = ["STREAMED", "TakesStream", "announced_classes", "class_codes", "codes_of"]

#: Documentation of what all `partial_fit` have in common.
STREAMED = """Parameters
----------
X : array-like or CSR matrix of shape (n_samples, n_features)
y : array-like of shape (n_samples,)
classes : array-like of shape (n_classes,)
    All classes; needed in the first call only, unless `fit` has seen them.
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
groups : array-like of shape (n_groups,) or (n_groups, n_columns), optional
    All groups that may come. None: those of the first call.
sample_weight : array-like of shape (n_samples,), optional

Returns
-------
self : estimator
    Unchanged if an error occurs.

Warns
-----
FairnessWarning
    In the first call, if there is only one group although a bound is asked for, and of groups whose names differ in
    blanks, capitals or type alone.
"""


class TakesStream(BaseFairEstimator):
    """Estimators that are trained on the parts of a stream."""

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    random_state: Any
    classes_: np.ndarray

    def _announce(self, classes: np.ndarray, sensitive_features: Any, groups: Any) -> tuple:
        """Set the classes of a stream and the groups that may come, and return the labels of the groups.

        Warns of a vacuous constraint, and of groups whose names look alike. Where there are no groups the labels are
        ``(None,)``.

        Parameters
        ----------
        sensitive_features : array-like or None
            Groups of the first rows.
        groups : array-like or None
            All groups; None: those of the first rows.
        """
        known = sensitive_features if groups is None else groups
        if self._takes_overlapping_groups and known is not None and is_membership(known):
            raise ValueError(
                "partial_fit takes no overlapping groups, such as a table of booleans in sensitive_features; call fit "
                "with all rows."
            )
        encoder = None if known is None else GroupEncoder(known)
        labels, column_names = ((None,), ()) if encoder is None else (encoder.labels, encoder.column_names)
        given = as_labels(() if encoder is None else labels)
        for message in alike_groups(given, column_names=column_names):
            warn_user(message, FairnessWarning)
        if len(labels) == 1 and self._asks_for_fairness() and not (given.size and self._limits_single_groups()):
            warn_user(
                nothing_to_compare(
                    given,
                    "Nothing is bounded.",
                    "Announce all groups by groups= in the first call of partial_fit, or set kappa=None.",
                ),
                FairnessWarning,
            )
        self.classes_, self.groups_, self._group_columns = classes, given, column_names
        return labels


def announced_classes(classes: Any, known: np.ndarray | None, several: bool = False) -> np.ndarray:
    """The classes, sorted; ``known`` are those of an earlier fit. Raises ValueError unless they are two, or several."""
    classes = known if classes is None else classes
    if classes is None:
        raise ValueError("classes must be given in the first call of partial_fit.")
    classes = np.unique(classes)
    if classes.size != 2 and not (several and classes.size > 2):
        raise ValueError(f"classes must be two{' or more' if several else ''}, got {shortened(classes)}.")
    return classes


def class_codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Number of the class of every row; raises ValueError for an unknown one."""
    unknown = np.setdiff1d(y, classes)
    if unknown.size:
        raise ValueError(
            f"y has the unknown classes {shortened(unknown)}; those that the model knows are {shortened(classes)}."
        )
    return np.searchsorted(classes, y)


def codes_of(
    y: np.ndarray, sensitive_features: Any, classes: np.ndarray, labels: tuple, column_names: tuple
) -> np.ndarray:
    """Group of every row; raises ValueError for a class or group that was not announced."""
    class_codes(y, classes)
    if len(labels) > 1 and sensitive_features is None:
        raise ValueError("partial_fit needs the sensitive_features of every row once there are groups.")
    if sensitive_features is None:
        return np.zeros(len(y), dtype=int)
    codes = GroupEncoder.encode(sensitive_features, labels, column_names)
    check_group_of_every_row(codes.size, len(y))
    return codes
