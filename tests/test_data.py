"""FairData: rows ordered by group, weights that mean shares, and mini-batches that are unbiased."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fairconstrained.data import FairData

CODES = np.array([1, 0, 2, 1, 0, 1, 2, 0])
LABELS = ("a", "b", "c")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(8, 3)), rng.normal(size=8), rng.uniform(0.5, 2, 8)


def dense(block):
    return block.toarray() if sp.issparse(block) else block


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_rows_are_contiguous_by_group_and_keep_what_belongs_to_them(table, convert):
    X, y, weights = table
    data = FairData.from_arrays(convert(X), y, CODES, LABELS, weights)
    assert (np.diff(CODES[data.order]) >= 0).all()
    np.testing.assert_array_equal(np.sort(data.order), np.arange(8))
    np.testing.assert_array_equal(np.vstack([dense(block) for block in data.blocks]), X[data.order])
    np.testing.assert_array_equal(data.y.numpy(), y[data.order])
    np.testing.assert_allclose(data.weights.numpy(), weights[data.order] / weights.sum())
    np.testing.assert_array_equal(data.codes, CODES[data.order])
    for group, rows in enumerate(data.slices):
        np.testing.assert_array_equal(data.codes[rows], group)


def test_shape_and_counts(table):
    X, y, _ = table
    data = FairData.from_arrays(X, y, CODES, LABELS)
    assert (data.n_samples, data.n_features, data.n_groups) == (8, 3, 3)
    assert data.counts() == {"a": 3, "b": 3, "c": 2}


def test_weights_sum_to_one_over_all_rows_and_within_every_group(table):
    X, y, weights = table
    data = FairData.from_arrays(X, y, CODES, LABELS, weights)
    assert data.weights.sum().item() == pytest.approx(1)
    for group, rows in enumerate(data.slices):
        assert data.group_weights[rows].sum().item() == pytest.approx(1)
        own = weights[np.equal(CODES, group)]
        np.testing.assert_allclose(np.sort(data.group_weights[rows].numpy()), np.sort(own / own.sum()))


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_rows_of_weight_zero_are_as_if_never_given(table, convert):
    X, y, weights = table
    keep = np.array([True, True, True, False, True, True, True, False])
    with_zeros = FairData.from_arrays(convert(X), y, CODES, LABELS, weights * keep)
    without = FairData.from_arrays(convert(X[keep]), y[keep], CODES[keep], LABELS, weights[keep])
    for one, other in zip(with_zeros.blocks, without.blocks, strict=True):
        np.testing.assert_array_equal(dense(one), dense(other))
    assert torch.equal(with_zeros.weights, without.weights)
    assert torch.equal(with_zeros.y, without.y)
    assert with_zeros.counts() == without.counts()


def test_blocks_of_an_ordered_csr_matrix_share_its_memory(table):
    X = sp.csr_array(table[0])
    data = FairData.from_arrays(X, np.zeros(len(CODES)), np.sort(CODES), LABELS)
    assert all(np.shares_memory(block.data, X.data) for block in data.blocks)


def test_is_frozen(table):
    data = FairData.from_arrays(*table[:2], CODES, LABELS)
    with pytest.raises(FrozenInstanceError):
        data.y = data.y + 1


def test_inputs_are_not_changed(table):
    X, y, weights = table
    copies = X.copy(), y.copy(), weights.copy()
    FairData.from_arrays(X, y, CODES, LABELS, weights).group_weights.sum()
    for before, after in zip(copies, (X, y, weights), strict=True):
        np.testing.assert_array_equal(before, after)


# --- mini-batches


@pytest.mark.parametrize("sparse", [False, True])
def test_sample_holds_rows_of_every_group_with_their_targets(make_data, sparse):
    data = make_data(counts=(40, 3, 80), sparse=sparse, classes=False)
    batch = data.sample(np.random.default_rng(0), 12)
    full = np.vstack([dense(block) for block in data.blocks])
    position = {row: place for place, row in enumerate(data.order)}
    drawn = [position[row] for row in batch.order]
    np.testing.assert_array_equal(np.vstack([dense(block) for block in batch.blocks]), full[drawn])
    np.testing.assert_array_equal(batch.y.numpy(), data.y.numpy()[drawn])
    np.testing.assert_array_equal(batch.codes, data.codes[drawn])
    assert batch.labels == data.labels
    assert min(batch.counts().values()) >= 1
    assert abs(batch.n_samples - 12) <= 2


@pytest.mark.parametrize("weighted", [False, True])
def test_sample_keeps_the_share_of_every_group(make_data, weighted):
    data = make_data(counts=(40, 3, 80), weighted=weighted)
    batch = data.sample(np.random.default_rng(1), 20)
    for rows, part in zip(data.slices, batch.slices, strict=True):
        assert batch.weights[part].sum().item() == pytest.approx(data.weights[rows].sum().item())


@pytest.mark.parametrize("weighted", [False, True])
def test_weighted_means_over_samples_are_unbiased(make_data, weighted):
    data = make_data(counts=(15, 5, 25), weighted=weighted, classes=False)
    rng = np.random.default_rng(2)
    batches = [data.sample(rng, 16) for _ in range(3000)]
    totals = np.array([(batch.weights @ batch.y).item() for batch in batches])
    expected = (data.weights @ data.y).item()
    assert abs(totals.mean() - expected) < 4 * totals.std() / np.sqrt(totals.size)
    for group, rows in enumerate(data.slices):
        means = np.array([(b.group_weights[b.slices[group]] @ b.y[b.slices[group]]).item() for b in batches])
        expected = (data.group_weights[rows] @ data.y[rows]).item()
        assert abs(means.mean() - expected) < 4 * means.std() / np.sqrt(means.size)


def test_sample_is_determined_by_the_generator(make_data):
    data = make_data(weighted=True)
    one, other = (data.sample(np.random.default_rng(7), 16) for _ in range(2))
    np.testing.assert_array_equal(one.order, other.order)
    assert not np.array_equal(one.order, data.sample(np.random.default_rng(8), 16).order)
