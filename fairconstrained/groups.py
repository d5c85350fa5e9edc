"""Sensitive features as groups: any column-like input becomes integer codes and readable labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fairconstrained.checks.inputs import as_table
from fairconstrained.checks.messages import shortened

__all__ = [
    "MERGED",
    "GroupEncoder",
    "Groups",
    "Membership",
    "Strata",
    "Unions",
    "in_order_of",
    "is_membership",
    "threshold_groups",
]

#: Name of small groups that are put together.
MERGED = "(small groups)"
_MAX_KEYS = 2**62  # keys are 64-bit integers


class GroupEncoder:
    """Integer codes for sensitive features, in the sorted order of their observed values.

    Several columns become one group per *observed* combination, labelled by a tuple.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Strings, numbers, booleans, categories or tuples, without missing values; values of several types in one
        column keep theirs. A Series or DataFrame may be of any library.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        Group of every row, in ``0 .. n_groups - 1``.
    labels : tuple
        The value (or tuple of values) each code stands for.
    column_names : tuple
        Names of several columns, in the order of the values in a label; empty if a name stands for two of them.

    Raises
    ------
    ValueError
        If a value is missing or infinite, there are no rows, or the input is no column or table of columns.
    """

    def __init__(self, sensitive_features: Any) -> None:
        table = as_table(sensitive_features)
        if sp.issparse(table):
            raise ValueError(
                "sensitive_features is a sparse matrix, which says which groups a row belongs to, and groups must not "
                "overlap here. Pass one column with the group of every row. Groups that overlap are taken by "
                "RateParityClassifier, LossParityClassifier, GroupLossClassifier and GroupLossRegressor, alone or as "
                "heads, and by the metrics rate_gap, loss_parity_gap and group_rates."
            )
        self.column_names: tuple[Hashable, ...] = ()
        self.labels: tuple[Hashable, ...]
        if table.shape[1] == 1:
            codes, values = _ranks(table.iloc[:, 0])
            self.labels = tuple(values)
        else:
            codes, self.labels = _combinations(table)
            if table.columns.is_unique:
                self.column_names = tuple(table.columns.tolist())
        self.codes: np.ndarray = np.asarray(codes, dtype=np.int64)

    @staticmethod
    def encode(
        sensitive_features: Any, labels: tuple[Hashable, ...], column_names: tuple[Hashable, ...] = ()
    ) -> np.ndarray:
        """Codes of new rows among known labels.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        labels : tuple
        column_names : tuple, default=()
            Names of the columns in the order of the values in a label, see `in_order_of`.

        Returns
        -------
        codes : ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If a row belongs to a group that is not among ``labels``; the message names it.
        """
        seen = GroupEncoder(in_order_of(sensitive_features, column_names))
        position = {label: code for code, label in enumerate(labels)}
        unknown = [label for label in seen.labels if label not in position]
        if unknown:
            raise ValueError(
                f"sensitive_features contains groups that were not seen in fit: {shortened(unknown)}. "
                f"Known groups: {shortened(labels)}."
            )
        return np.array([position[label] for label in seen.labels], dtype=np.int64)[seen.codes]


def in_order_of(sensitive_features: Any, column_names: tuple[Hashable, ...]) -> Any:
    """Return sensitive features with their columns in the order of these names; those with other names as they are."""
    if not column_names:
        return sensitive_features
    table = as_table(sensitive_features)
    if sp.issparse(table) or len(column_names) != table.shape[1] or set(column_names) != set(table.columns):
        return sensitive_features
    return table[list(column_names)]


def is_membership(sensitive_features: Any) -> bool:
    """Whether sensitive features say which of several groups a row belongs to: sparse, or columns of booleans."""
    table = as_table(sensitive_features)
    if sp.issparse(table):
        return True
    return table.shape[1] > 1 and all(pd.api.types.is_bool_dtype(dtype) for dtype in table.dtypes)


class Unions(NamedTuple):
    """Groups that may overlap, each a union of parts into which the rows are divided.

    Attributes
    ----------
    labels : tuple
        Names of the groups.
    members : csr_array of shape (n_groups, n_parts)
        1 where a part belongs to a group.
    """

    labels: tuple[Hashable, ...]
    members: sp.csr_array

    def of_rows(self, codes: np.ndarray) -> sp.csr_array:
        """Return the membership of the rows in the groups, by the rows' parts; of shape (n_samples, n_groups)."""
        return sp.csr_array(self.members.T)[codes]


class Strata(NamedTuple):
    """Strata into which the rows are divided, such as jobs or departments; groups are compared within each.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        Stratum of every row.
    labels : tuple
        Names of the strata.
    """

    codes: np.ndarray
    labels: tuple[Hashable, ...]

    @classmethod
    def of(cls, strata: Any) -> Self:
        """Encode one column, or several whose combinations are the strata."""
        try:
            encoder = GroupEncoder(strata)
        except ValueError as error:  # which speaks of groups
            raise ValueError(str(error).replace("sensitive_features", "strata")) from error
        return cls(encoder.codes, encoder.labels)

    @classmethod
    def of_rows(cls, strata: Any, n_samples: int, others: str) -> Self | None:
        """Encode the strata of rows, if there are any.

        Parameters
        ----------
        strata : array-like of shape (n_samples,) or (n_samples, n_columns), or None
        n_samples : int
        others : str
            Beginning of what the error says about ``n_samples``, such as "y has".

        Raises
        ------
        ValueError
            If the strata have another number of rows.
        """
        if strata is None:
            return None
        found = cls.of(strata)
        if found.codes.size != n_samples:
            raise ValueError(f"strata has {found.codes.size} rows, {others} {n_samples}.")
        return found

    @property
    def values(self) -> np.ndarray:
        """Name of the stratum of every row; ndarray of objects, of shape (n_samples,)."""
        names = np.empty(len(self.labels), dtype=object)
        names[:] = self.labels  # tuples, where there are several columns, stay as they are
        return names[self.codes]

    def at(self, rows: Any) -> Self:
        """Return the strata of some rows, a slice or their numbers; there may be none of a stratum."""
        return self._replace(codes=self.codes[rows])

    def among(self, rows: Any) -> Self:
        """Return the strata of some rows, those alone that have any of them."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return type(self)(codes, tuple(self.labels[code] for code in present))


class Membership:
    """Membership of the rows in several groups, which may overlap; a row may be in none.

    Rows that belong to the same groups make up a *part*. What holds for rows is summed up by part, once, and then by
    group, so that many groups cost little more than few.

    Parameters
    ----------
    matrix : array-like, DataFrame of any library, or sparse matrix of shape (n_samples, n_groups)
        Booleans; the names of a DataFrame's columns are those of the groups.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        Part of every row.
    labels : tuple of tuple
        The numbers of the groups of every part.
    unions : Unions
        The groups, by the names of their columns or by their numbers.

    Raises
    ------
    ValueError
        If a group has no rows (the message names it), or a sparse matrix holds other numbers than 0 and 1.
    """

    def __init__(self, matrix: Any) -> None:
        given = as_table(matrix)
        names = range(given.shape[1]) if sp.issparse(given) else given.columns.tolist()
        table = sp.csr_array(given if sp.issparse(given) else given.to_numpy(dtype=bool), dtype=np.float64)
        if not np.isin(table.data, (0.0, 1.0)).all():
            raise ValueError("a sparse matrix of sensitive_features may only hold True and False (or 1 and 0).")
        table.eliminate_zeros()
        table.sort_indices()
        groups = tuple(names)
        sizes = np.bincount(table.indices, minlength=len(groups))
        empty = [group for group, size in zip(groups, sizes, strict=True) if size == 0]
        if empty:
            raise ValueError(f"groups {shortened(empty)} of sensitive_features have no rows; drop their columns.")
        first, self.codes = _alike(table)
        parts = table[first]
        self.labels = tuple(tuple(row.tolist()) for row in np.split(parts.indices, parts.indptr[1:-1]))
        self.unions = Unions(groups, sp.csr_array(parts.T))


class Groups(NamedTuple):
    """The groups of rows.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        Group, or part of groups, of every row.
    labels : tuple
        Names of the codes.
    unions : Unions, optional
        The groups, if they overlap.
    column_names : tuple, optional
        Names of the columns of sensitive features if there are several, in the order of the values in a label.
    """

    codes: np.ndarray
    labels: tuple[Hashable, ...]
    unions: Unions | None = None
    column_names: tuple[Hashable, ...] = ()

    @classmethod
    def of(cls, sensitive_features: Any, overlapping: bool = False) -> Self:
        """Encode sensitive features; with ``overlapping``, they may be a table of booleans, see `is_membership`."""
        if overlapping:
            sensitive_features = as_table(sensitive_features)
            if is_membership(sensitive_features):
                membership = Membership(sensitive_features)
                return cls(membership.codes, membership.labels, membership.unions)
        encoder = GroupEncoder(sensitive_features)
        return cls(encoder.codes, encoder.labels, column_names=encoder.column_names)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the groups."""
        return self.labels if self.unions is None else self.unions.labels

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of the rows' values in every group; ndarray of shape (n_groups,)."""
        by_part = np.bincount(self.codes, values, minlength=len(self.labels))
        return by_part if self.unions is None else self.unions.members @ by_part

    def rows(self) -> Iterator[np.ndarray]:
        """Numbers of the rows of every group."""
        for group in range(len(self.names)):
            parts = [group] if self.unions is None else self.unions.members[[group]].indices
            yield np.flatnonzero(np.isin(self.codes, parts))


def _alike(table: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of the rows of every kind, and the kind of every row, by random keys of the columns.

    Two different rows have the same key with a probability of about 2^-62.
    """
    keys = np.random.default_rng(0).integers(2**62, size=table.shape[1])
    sums = np.append(0, np.cumsum(keys[table.indices]))  # modulo 2^64
    row_keys = sums[table.indptr[1:]] - sums[table.indptr[:-1]]
    _, first, codes = np.unique(row_keys, return_index=True, return_inverse=True)
    return first, codes.astype(np.int64)


def _combinations(frame: pd.DataFrame) -> tuple[np.ndarray, tuple[Hashable, ...]]:
    """Codes and labels of the observed combinations of several columns, in lexicographic order.

    Only integers are compared: a row's key is the number whose digits are the ranks of its values, in the mixed
    radix of the columns' counts of values. Where the next digit would not fit, the keys give way to their ranks.

    Returns
    -------
    codes : ndarray of shape (n_samples,)
    labels : tuple of tuple
    """
    keys, n_keys = np.zeros(len(frame), dtype=np.int64), 1
    columns: list[tuple[np.ndarray, list[Hashable]]] = []
    for _, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            # Combinations are ordered by the values alone, not by the order of the categories.
            column = column.astype(column.cat.categories.dtype)
        ranks, values = _ranks(column)
        columns.append((ranks, values))
        if n_keys * len(values) > _MAX_KEYS:
            observed, keys = np.unique(keys, return_inverse=True)
            n_keys = len(observed)
        keys = keys * len(values) + ranks
        n_keys *= len(values)
    _, rows, codes = np.unique(keys, return_index=True, return_inverse=True)
    decoded = ([values[rank] for rank in ranks[rows].tolist()] for ranks, values in columns)
    return codes, tuple(zip(*decoded, strict=True))


def _ranks(column: pd.Series[Any]) -> tuple[np.ndarray, list[Hashable]]:
    """Rank of every value of a column among its sorted distinct ones, and these as Python scalars."""
    try:
        codes, values = pd.factorize(column)
    except TypeError as error:  # what cannot be looked up
        raise ValueError(
            f"sensitive_features holds values that are no labels ({error}); a group is a string, a number, a boolean "
            "or a tuple of these."
        ) from error
    # A column of objects may hold NumPy scalars.
    labels = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    try:
        order = np.asarray(values.argsort())
    except TypeError:  # of several types
        order = np.array(sorted(range(len(labels)), key=lambda code: _sort_key(labels[code])))
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[order] = np.arange(len(labels))
    return ranks[codes], [labels[code] for code in order]


def _sort_key(label: Hashable) -> tuple[str, Any]:
    """Return the key that orders labels of several types: numbers first, then by type."""
    if isinstance(label, tuple):
        return "tuple", tuple(map(_sort_key, label))
    if isinstance(label, Real):
        return "", label
    return type(label).__name__, str(label)


def threshold_groups(
    X: Any, columns: Sequence[Any], quantiles: int | Sequence[float] = 10, min_share: float = 0.01
) -> pd.DataFrame:
    r"""Overlapping groups of rows whose values are large in several columns at once.

    For every choice of one quantile :math:`q_j` for each column j, the rows with :math:`x_j \ge q_j` for all j.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_samples, n_features)
        Numbers.
    columns : sequence of str or int
        Names, or numbers where X has no names.
    quantiles : int or sequence of float, default=10
        Levels in [0, 1]; a number k stands for 0, 1/k, ..., (k - 1)/k, the first of which asks for nothing.
    min_share : float, default=0.01
        Groups need a larger share of the rows than this.

    Returns
    -------
    members : DataFrame of bool, of shape (n_samples, n_groups)
        Table for ``sensitive_features``; names say the conditions of the groups, such as ``"income>=0.5 & age>=30"``.
        Groups of the same rows appear once, under the first of their names.

    Raises
    ------
    ValueError
        If no column is chosen, a column is missing, holds NaN or is not a number, a level is out of range, or no group
        is large enough.

    References
    ----------
    "A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness constraints",
    appendix E: ten thresholds on each of three columns.
    """
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    if not len(columns):
        raise ValueError(f"columns is empty; choose some of {shortened(frame.columns)}.")
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(f"X has no columns {shortened(missing)}; choose some of {shortened(frame.columns)}.")
    levels = np.linspace(0, 1, quantiles, endpoint=False) if isinstance(quantiles, int) else np.asarray(quantiles)
    if levels.ndim != 1 or not levels.size or levels.min() < 0 or levels.max() > 1:
        raise ValueError(f"quantiles must be a positive number of them or levels in [0, 1], got {quantiles!r}.")
    values = frame[list(columns)].to_numpy(dtype=float)
    if np.isnan(values).any():
        raise ValueError(f"columns {list(columns)} contain NaN; fill or drop these rows.")
    groups: dict[bytes, tuple[str, np.ndarray]] = {}
    steps = [
        [(f"{column}>={at:g}", values[:, j] >= at) for at in np.unique(np.quantile(values[:, j], levels))]
        for j, column in enumerate(columns)
    ]
    for choice in product(*steps):
        rows = np.logical_and.reduce([chosen for _, chosen in choice])
        if rows.mean() > min_share:
            name = " & ".join(part for part, chosen in choice if not chosen.all()) or "all"
            groups.setdefault(np.packbits(rows).tobytes(), (name, rows))
    if not groups:
        raise ValueError(f"no group has more than min_share={min_share:g} of the rows; lower it or the quantiles.")
    return pd.DataFrame(dict(groups.values()), index=frame.index)
