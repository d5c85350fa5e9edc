"""Learning-to-rank data in the text format of LETOR and MSLR-WEB10K."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

__all__ = ["load_letor"]

#: Features that a file has without being asked; public collections have up to 700. A larger number is a slip or a hash,
#: and one of a billion would make an array that no memory holds.
MOST_FEATURES = 100_000
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
_FORMAT = "'grade qid:query feature:value ...'"


def load_letor(
    path: str | Path | IO[bytes], *, n_features: int | None = None, as_sparse: bool = False
) -> tuple[Any, np.ndarray, np.ndarray]:
    r"""Read documents with grades and queries: MSLR-WEB10K, MSLR-WEB30K, LETOR, Yahoo.

    A line is ``grade qid:query feature:value ...``, with features counted from 1, in increasing order. What follows a
    "#" is left out. The files of MSLR-WEB10K, which Microsoft offers for research, have 136 features; the groups are
    for the user to choose, such as pages of low and high quality: feature 133, "QualityScore2".

    Parameters
    ----------
    path : str, Path or binary file
        A name that ends with ".gz" or ".bz2" is decompressed.
    n_features : int, optional
        Number of features of the documents, so that several files have as many columns. None takes as many as occur, up
        to 100,000.
    as_sparse : bool, default=False
        Whether X is a CSR matrix.

    Returns
    -------
    X : ndarray or csr_array of shape (n_documents, n_features)
        Float64; column j is feature j + 1.
    y : ndarray of shape (n_documents,)
        Grades.
    qid : ndarray of shape (n_documents,)
        Queries, for `fairconstrained.FairRanker`.

    Raises
    ------
    ValueError
        With the number of the line, if it is not of this format, has no query, a number that is not finite, or a
        feature beyond ``n_features`` (or 100,000). If there are no documents. If ``n_features`` is no positive integer.

    References
    ----------
    Qin, Liu, Introducing LETOR 4.0 Datasets, arXiv:1306.2597.

    Examples
    --------
    >>> from io import BytesIO
    >>> from fairconstrained.datasets import load_letor
    >>> X, y, qid = load_letor(BytesIO(b"2 qid:10 1:0.5 3:1\\n0 qid:10 2:4\\n"))
    >>> X.shape, y.tolist(), qid.tolist()
    ((2, 3), [2.0, 0.0], [10, 10])
    """
    if n_features is not None and (
        isinstance(n_features, bool) or not isinstance(n_features, Integral) or n_features < 1
    ):
        raise ValueError(f"n_features must be a positive integer or None, got {n_features!r}.")
    if hasattr(path, "read"):
        lines, (X, y, qid) = _parse(path)
    else:
        with _OPENERS.get(Path(path).suffix, open)(path, "rb") as file:
            lines, (X, y, qid) = _parse(file)
    if not y.size:
        raise ValueError(f"the file has no documents; every line should read {_FORMAT}.")
    for values, rows in ((y, range(y.size)), (X.data, _rows_of(X))):
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            number = values[wrong[0]]
            raise lines.error(rows[wrong[0]], f"holds {number}; grades and values must be finite numbers")
    most = MOST_FEATURES if n_features is None else n_features
    if X.shape[1] > most:
        remedy = (
            f"a file may have up to {most:,} unless n_features says how many (with as_sparse=True, if they are many)"
            if n_features is None
            else f"n_features={n_features}"
        )
        raise lines.error(_rows_of(X)[X.indices.argmax()], f"holds feature {X.shape[1]}, but {remedy}")
    if n_features is not None:
        X.resize(y.size, n_features)
    return sp.csr_array(X) if as_sparse else X.toarray(), y, qid


class _Lines:
    """The lines of a file that hold documents, which knows their numbers.

    scikit-learn's parser iterates over what it takes for a file, so that the last line it was given is the one that it
    fails at.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self._numbers: list[int] = []
        self._last = b""

    def __iter__(self) -> Iterator[bytes]:
        for number, line in enumerate(self._lines, start=1):
            self._last = line.partition(b"#")[0].strip()
            if self._last:
                self._numbers.append(number)
                _, *rest = self._last.split(None, 1)
                if not (rest and rest[0].startswith(b"qid:")):
                    raise ValueError("its second entry is not a query, 'qid:' and an integer")
                yield self._last

    def read(self) -> bytes:
        """Nobody reads at once: it is this method that scikit-learn knows a file by."""
        raise NotImplementedError

    def error(self, row: int, what: str) -> ValueError:
        """About the line of a document."""
        return ValueError(f"line {self._numbers[row]} of the file {what}.")

    def misread(self, reason: Exception) -> ValueError:
        """About the last line."""
        begin = self._last[:50].decode(errors="replace") + ("..." if len(self._last) > 50 else "")
        return self.error(-1, f"is not of the form {_FORMAT} ({reason}); it reads {begin!r}")


def _parse(file: Any) -> tuple[_Lines, tuple[sp.csr_matrix, np.ndarray, np.ndarray]]:
    lines = _Lines(file)
    try:
        return lines, load_svmlight_file(lines, query_id=True, zero_based=False)
    except (ValueError, OverflowError) as reason:
        raise lines.misread(reason) from reason


def _rows_of(X: sp.csr_matrix) -> np.ndarray:
    """Row of every entry that is stored."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
