"""Learning-to-rank data in the text format of LETOR and MSLR-WEB10K."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

__all__ = ["load_letor"]


def load_letor(
    path: str | Path | IO[bytes], *, n_features: int | None = None, as_sparse: bool = False
) -> tuple[Any, np.ndarray, np.ndarray]:
    r"""Read documents with grades and queries: MSLR-WEB10K, MSLR-WEB30K, LETOR, Yahoo.

    A line is ``grade qid:query feature:value ...``, with features counted from 1. The files of MSLR-WEB10K, which
    Microsoft offers for research, have 136 of them; the groups are for the user to choose, such as pages of low and
    high quality: feature 133, "QualityScore2".

    Parameters
    ----------
    path : str, Path or binary file
        A name that ends with ".gz" or ".bz2" is decompressed.
    n_features : int, optional
        Of the documents, so that several files have as many columns. None: as many as occur.
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
        If a line is not of this format, or has no query.

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
    source = path if hasattr(path, "read") else str(path)
    X, y, qid = load_svmlight_file(source, n_features=n_features, query_id=True, zero_based=False)
    if qid.size != y.size:
        raise ValueError(f"{qid.size} of {y.size} lines have a query; every line needs one: 'grade qid:query ...'.")
    return sp.csr_array(X) if as_sparse else X.toarray(), y, qid
