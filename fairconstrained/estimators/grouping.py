"""The groups of training rows, and those of them that are too small for a bound."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairconstrained.checks.inputs import check_group_of_every_row, in_memory
from fairconstrained.checks.messages import alike, shortened
from fairconstrained.constraints import BoundConstraint
from fairconstrained.groups import MERGED, GroupEncoder, Groups, Strata

__all__ = ["NO_SMALL_GROUPS", "SmallGroups", "Stratified", "alike_groups", "as_labels", "encode_groups"]


class Stratified(NamedTuple):
    """Sensitive features of rows with their strata, as `fit` was given both."""

    #: Sensitive features; None if there are none.
    features: Any
    #: The stratum of every row; None where there are none.
    strata: Any = None

    @classmethod
    def of(cls, sensitive_features: Any) -> Stratified:
        """Return the features with their strata, or without if they come alone."""
        return sensitive_features if isinstance(sensitive_features, cls) else cls(sensitive_features)

    @classmethod
    def joined(cls, sensitive_features: Any, strata: Any) -> Any:
        """Return the features alone where there are no strata; Dask collections are computed here, once for a fit."""
        sensitive_features, strata = in_memory(sensitive_features), in_memory(strata)
        return sensitive_features if strata is None else cls(sensitive_features, strata)

    def encoded(self, n_samples: int) -> Strata | None:
        """Encode the strata, if there are any; raises ValueError for another number of rows."""
        return Strata.of_rows(self.strata, n_samples, "y has")


class SmallGroups(NamedTuple):
    """Labels of the groups that are too small for the bounds, by what became of them."""

    merged: tuple[Hashable, ...] = ()
    ignored: tuple[Hashable, ...] = ()

    @classmethod
    def found(cls, bound: tuple[BoundConstraint, ...], labels: tuple[Hashable, ...], what: str) -> SmallGroups:
        """The groups with a cell that is too small for one of the constraints; ``what`` is "merge" or "ignore"."""
        small: set[int] = set()
        for constraint in bound:
            sizes = constraint.compared_cells()
            if sizes is not None:
                small |= set(sizes.small_groups(constraint.resolution).tolist())
        found = tuple(labels[code] for code in sorted(small))
        return cls(merged=found) if what == "merge" else cls(ignored=found)

    def joined_by_smallest(self, groups: Groups) -> SmallGroups:
        """Return the same with the group of fewest rows of all others merged as well."""
        counts = np.bincount(groups.codes, minlength=len(groups.labels)).astype(float)
        counts[[label in self.merged for label in groups.labels]] = np.inf
        merged = {*self.merged, groups.labels[int(counts.argmin())]}
        return self._replace(merged=tuple(label for label in groups.labels if label in merged))

    def applied(self, groups: Groups) -> Groups:
        """The groups with the merged ones as one, and the ignored ones behind the others."""
        if not (self.merged or self.ignored):
            return groups
        small = {**dict.fromkeys(self.merged, MERGED), **{label: label for label in self.ignored}}
        kept = [label for label in groups.labels if label not in small]
        labels = tuple(dict.fromkeys([*kept, *(small[label] for label in groups.labels if label in small)]))
        place = {label: code for code, label in enumerate(labels)}
        codes = np.array([place[small.get(label, label)] for label in groups.labels], dtype=np.int64)
        return groups._replace(codes=codes[groups.codes], labels=labels)

    def n_ignored(self, groups: Groups) -> int:
        """How many of the groups are left out of the constraints."""
        return len(set(self.ignored).intersection(groups.labels))

    def encode(
        self, sensitive_features: Any, labels: tuple[Hashable, ...], column_names: tuple[Hashable, ...]
    ) -> np.ndarray:
        """Codes of new rows among the labels of a fit, of which one may stand for all merged groups.

        ``column_names`` are those of the fit, see `in_order_of`.

        Raises ValueError if a row belongs to a group that was not seen in `fit`; the message names it.
        """
        if not self.merged:
            return GroupEncoder.encode(sensitive_features, labels, column_names)
        places = {label: code for code, label in enumerate(labels)}
        places |= dict.fromkeys(self.merged, labels.index(MERGED))
        codes = GroupEncoder.encode(sensitive_features, tuple(places), column_names)
        return np.array(list(places.values()), dtype=np.int64)[codes]


NO_SMALL_GROUPS = SmallGroups()


def encode_groups(
    sensitive_features: Any,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    overlapping: bool = False,
    name: str = "sensitive_features",
) -> Groups:
    """The groups of the rows, a single one if there are no features; see `Groups.of`.

    ``name`` is the argument that the error for another number of rows names.

    Raises ValueError if lengths differ, or all rows of a group have no weight.
    """
    sensitive_features = Stratified.of(sensitive_features).features
    if sensitive_features is None:
        return Groups(np.zeros(y.shape[0], dtype=np.int64), (None,))
    groups = Groups.of(sensitive_features, overlapping)
    check_group_of_every_row(groups.codes.size, y.shape[0], name)
    if sample_weight is not None:
        empty = [name for name, w in zip(groups.names, groups.sums(sample_weight), strict=True) if w == 0]
        if empty:
            raise ValueError(f"groups {shortened(empty)} have no row with a positive sample_weight; drop their rows.")
    return groups


def alike_groups(
    groups: np.ndarray, small: SmallGroups = NO_SMALL_GROUPS, column_names: tuple[Hashable, ...] = ()
) -> Iterator[str]:
    """Warnings of groups of a fit whose names look alike, see `alike`; by column where they combine several."""
    labels = [label for label in groups.tolist() if label != MERGED] + list(small.merged)
    columns: dict[str, Sequence[Hashable]] = {"sensitive_features": labels}
    if column_names:
        names = (f"column {name!r} of sensitive_features" for name in column_names)
        columns = dict(zip(names, zip(*labels, strict=True), strict=True))
    found = (alike(where, "groups", dict.fromkeys(values)) for where, values in columns.items())
    return filter(None, found)


def as_labels(labels: tuple) -> np.ndarray:
    """Labels as a vector; tuples, and labels of several types, stay as they are."""
    if not any(isinstance(label, tuple) for label in labels):
        plain = np.array(labels)
        if plain.tolist() == list(labels):
            return plain
    vector = np.empty(len(labels), dtype=object)
    vector[:] = labels
    return vector
