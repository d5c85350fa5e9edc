"""Data for ranking: the generator's promise, and the text format of LETOR."""

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


def test_lines_without_queries():
    with pytest.raises(ValueError, match="every line needs one"):
        load_letor(BytesIO(b"2 1:0.5\n0 2:4\n"))
    with pytest.raises(ValueError, match="every line needs one"):
        load_letor(BytesIO(b"2 1:0.5\n0 qid:3 2:4\n"))
