"""Sketches that a fit remembers of its rows."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from fairconstrained.estimators import row_sketch
from fairconstrained.estimators.row_sketch import RowSketch, row_hashes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 6)) * (RNG.random((500, 6)) > 0.3)


@pytest.mark.parametrize("convert", [sp.csr_array, sp.csr_matrix, np.asfortranarray, lambda X: X + -0.0])
def test_hashes_do_not_depend_on_the_layout(convert):
    np.testing.assert_array_equal(row_hashes(convert(X)), row_hashes(X))


def test_hashes_tell_rows_apart():
    """Rows that differ in one entry, in its place or in the order of entries have different hashes."""
    row = np.array([1.0, 2.0, 0.0])
    others = np.array(
        [row, row + np.array([0, 0, 1e-300]), [2.0, 1.0, 0.0], [0.0, 1.0, 2.0], np.nextafter(row, 9), -row]
    )
    assert np.unique(row_hashes(others)).size == len(others)
    assert np.unique(row_hashes(X)).size == 500
    split = sp.csr_array((np.array([0.5, 0.5, 2.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 3))
    assert row_hashes(split) == row_hashes(row[None])
    assert split.nnz == 3  # the user's matrix is as it was


def test_shares():
    seen, other = X[:300], X[200:]
    sketch = RowSketch.of(seen)
    assert sketch.share_seen(seen) == 1.0
    assert sketch.share_seen(X[400:]) == 0.0
    assert sketch.share_seen(other) == pytest.approx(1 / 3)
    assert sketch.share_repeated == 0.0
    assert RowSketch.of(np.repeat(X[:40], 2, axis=0)).share_repeated == 1.0
    assert RowSketch.of(X[[0, 1, 1, 2]]).share_repeated == 0.5


def test_many_rows_are_sampled_by_their_hashes(monkeypatch):
    monkeypatch.setattr(row_sketch, "_SIZE", 100)
    doubled = np.vstack([X, X[:250]])
    sketch = RowSketch.of(doubled)
    assert sketch.hashes.size == 100
    assert sketch.n_testable(X) == 100
    assert sketch.share_seen(X) == 1.0
    assert sketch.share_seen(X + 1) == 0.0
    assert sketch.share_repeated == pytest.approx(2 / 3, abs=0.15)


@pytest.mark.parametrize("size", [5000, 100])
@pytest.mark.parametrize("parts", [[300, 200], [1] * 20 + [480], [500]])
def test_joined_is_the_sketch_of_all_rows(monkeypatch, size, parts):
    monkeypatch.setattr(row_sketch, "_SIZE", size)
    rows = np.vstack([X, X[::7]])[: sum(parts)]
    rows[::5] = rows[0]
    first, *rest = np.split(rows, np.cumsum(parts)[:-1])
    sketch = RowSketch.of(first)
    for part in rest:
        sketch = sketch.joined(part)
    whole = RowSketch.of(rows)
    np.testing.assert_array_equal(sketch.hashes, whole.hashes)
    np.testing.assert_array_equal(sketch.counts, whole.counts)
    assert sketch.limit == whole.limit


def test_the_record_of_many_rows_is_small():
    many = np.random.default_rng(1).normal(size=(20_000, 2))
    sketch = RowSketch.of(many)
    assert len(pickle.dumps(sketch)) < 64_000
    assert sketch.hashes.size == 5000
    assert sketch.share_remembered == pytest.approx(1 / 4, rel=0.05)
    assert RowSketch.of(X).share_remembered == 1.0
    assert len(pickle.dumps(sketch.joined(many[:100]))) < 64_000


def test_missing_values_are_equal_whatever_their_bits():
    first, second = X.copy(), X.copy()
    first[::3, 2] = np.nan
    second[::3, 2] = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]
    np.testing.assert_array_equal(row_hashes(first), row_hashes(second))
    assert (row_hashes(first) != row_hashes(X))[::3].all()


def test_rows_may_have_any_shape():
    np.testing.assert_array_equal(row_hashes(X.reshape(500, 3, 2)), row_hashes(X))


def test_dense_rows_are_read_in_blocks_not_column_by_column(monkeypatch):
    """Reading a column of rows that lie one after the other takes as long as reading all of them."""
    blocks = []
    monkeypatch.setattr(row_sketch, "_entries", lambda values, columns: blocks.append(values.shape) or np.ones((64, 1)))
    row_hashes(np.ones((2 * 64, 2**12)))
    assert blocks == [(64, 2**12)] * 2
