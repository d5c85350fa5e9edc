"""Data for ranking: the generator's promise, and the text format of LETOR."""

import gzip
import re
from io import BytesIO

import numpy as np
import pytest
import scipy.sparse as sp

from fairconstrained.datasets import load_letor, make_biased_ranking
from fairconstrained.metrics import pairwise_ranking_gap


def gap_of_z(**setting):
    X, y, qid, groups = make_biased_ranking(3000, 12, 4, random_state=0, **setting)
    return pairwise_ranking_gap(y, X[:, :2].sum(axis=1), qid=qid, sensitive_features=groups)


def test_equal_groups_are_ranked_alike_and_shifted_ones_are_not():
    assert gap_of_z(group_shift=0.0) < 0.02
    assert gap_of_z(group_shift=(0.0, -1.0)) > 0.15


def test_shapes_and_grades():
    X, y, qid, groups = make_biased_ranking(200, 50, 5, n_grades=4, group_proportions=(0.5, 0.3, 0.2), group_shift=0.0)
    assert X.shape == (10_000, 5)
    np.testing.assert_array_equal(np.bincount(qid), np.full(200, 50))
    assert (np.diff(qid) >= 0).all()
    assert np.bincount(y) / y.size == pytest.approx(np.full(4, 0.25), abs=0.03)
    assert np.bincount(groups) / y.size == pytest.approx((0.5, 0.3, 0.2), abs=0.03)


def test_the_seed_decides():
    one, same, other = (make_biased_ranking(5, 4, random_state=seed) for seed in (0, 0, 1))
    for a, b in zip(one, same, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize("wrong", [{"n_queries": 0}, {"n_documents": 0}, {"n_grades": 1}, {"separation": (1, 2, 3)}])
def test_arguments_out_of_range(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make_biased_ranking(**wrong)


LINES = b"2 qid:10 1:0.5 3:1\n0 qid:10 2:4\n1 qid:7 3:-2 # a comment\n"


@pytest.mark.parametrize("as_sparse", [False, True])
def test_letor(as_sparse):
    X, y, qid = load_letor(BytesIO(LINES), n_features=4, as_sparse=as_sparse)
    assert sp.issparse(X) == as_sparse
    dense = X.toarray() if as_sparse else X
    np.testing.assert_array_equal(dense, [[0.5, 0, 1, 0], [0, 4, 0, 0], [0, 0, -2, 0]])
    np.testing.assert_array_equal(y, [2, 0, 1])
    np.testing.assert_array_equal(qid, [10, 10, 7])


def test_letor_from_a_file(tmp_path):
    path = tmp_path / "fold.txt"
    path.write_bytes(LINES)
    assert load_letor(path)[0].shape == (3, 3)


def test_letor_compressed(tmp_path):
    path = tmp_path / "fold.txt.gz"
    path.write_bytes(gzip.compress(LINES))
    np.testing.assert_array_equal(load_letor(path)[0], load_letor(BytesIO(LINES))[0])


def test_comments_and_empty_lines_are_no_documents():
    X, y, qid = load_letor(BytesIO(b"# a head\n\n2 qid:10 1:0.5\n   \n0\tqid:10\n"))
    assert X.tolist() == [[0.5], [0.0]]
    assert y.tolist() == [2, 0]
    assert qid.tolist() == [10, 10]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2 1:0.5", "second entry is not a query"),
        ("2", "second entry is not a query"),
        ("2 qid:x 1:1", "invalid literal for int"),
        ("2 qid:1.5 1:1", "invalid literal for int"),
        ("2 qid:99999999999999999999 1:1", "too large"),
        ("two qid:1 1:1", "could not convert string to float: b'two'"),
        ("2 qid:1 1:high", "could not convert string to float: b'high'"),
        ("2 qid:1 1", "unpack"),
        ("2 qid:1 a:1", "invalid literal for int"),
        ("2 qid:1 0:1", "Invalid index 0"),
        ("2 qid:1 3:1 2:1", "should be sorted and unique"),
        ("2 qid:1 99999999999999999999:1", "too large"),
        ("nan qid:1 1:1", "holds nan; grades and values must be finite numbers"),
        ("2 qid:1 1:nan", "holds nan; grades and values must be finite numbers"),
        ("2 qid:1 1:1 2:-inf", "holds -inf; grades and values must be finite numbers"),
    ],
)
def test_errors_name_the_line(line, message, tmp_path):
    """The fourth one of the file, whatever way it is read."""
    path = tmp_path / "fold.txt"
    path.write_bytes(b"# a head\n1 qid:7 1:1\n\n" + line.encode() + b"\n0 qid:7 2:1\n")
    for source in (path, str(path), BytesIO(path.read_bytes())):
        with pytest.raises(ValueError, match=f"^line 4 of the file .*{re.escape(message)}"):
            load_letor(source)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_a_huge_index_makes_no_huge_array(as_sparse):
    lines = b"2 qid:1 1:1\n2 qid:1 3:1 999999999:1\n"
    with pytest.raises(
        ValueError, match=r"^line 2 of the file holds feature 999999999, .* up to 100,000 unless n_features"
    ):
        load_letor(BytesIO(lines), as_sparse=as_sparse)
    X, _, _ = load_letor(BytesIO(lines), n_features=10**9, as_sparse=True)  # as asked for
    assert X.shape == (2, 10**9)
    assert X.nnz == 3


def test_more_features_than_stated():
    with pytest.raises(ValueError, match=r"^line 1 of the file holds feature 3, but n_features=2"):
        load_letor(BytesIO(LINES), n_features=2)


@pytest.mark.parametrize("n_features", [0, -1, 2.0, "136", True])
def test_number_of_features_out_of_range(n_features):
    with pytest.raises(ValueError, match=f"n_features must be a positive integer or None, got {n_features!r}"):
        load_letor(BytesIO(LINES), n_features=n_features)


def test_a_file_without_documents():
    with pytest.raises(ValueError, match="no documents"):
        load_letor(BytesIO(b"# nothing\n"))
