"""FairData: rows ordered by group, weights that mean shares, and mini-batches that are unbiased."""

import weakref
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fairconstrained.data import FairData
from fairconstrained.sampling import Sampler, sampler_of

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


def test_sums_by_group_are_weighted(table):
    X, y, weights = table
    data = FairData.from_arrays(X, y, CODES, LABELS, weights)
    members = np.equal.outer(range(3), CODES)
    np.testing.assert_allclose(data.sums(), members @ weights / weights.sum())
    np.testing.assert_allclose(data.sums(data.y.numpy()), members @ (weights * y) / weights.sum())


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
    batch = next(Sampler.of(data, 12).batches(np.random.default_rng(0), 1))
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
    batch = next(Sampler.of(data, 20).batches(np.random.default_rng(1), 1))
    for rows, part in zip(data.slices, batch.slices, strict=True):
        assert batch.weights[part].sum().item() == pytest.approx(data.weights[rows].sum().item())


@pytest.mark.parametrize("weighted", [False, True])
def test_weighted_means_over_samples_are_unbiased(make_data, weighted):
    data = make_data(counts=(15, 5, 25), weighted=weighted, classes=False)
    rng = np.random.default_rng(2)
    batches = [next(Sampler.of(data, 16).batches(rng, 1)) for _ in range(2000)]
    totals = np.array([(batch.weights @ batch.y).item() for batch in batches])
    expected = (data.weights @ data.y).item()
    assert abs(totals.mean() - expected) < 4 * totals.std() / np.sqrt(totals.size)
    for group, rows in enumerate(data.slices):
        means = np.array([(b.group_weights[b.slices[group]] @ b.y[b.slices[group]]).item() for b in batches])
        expected = (data.group_weights[rows] @ data.y[rows]).item()
        assert abs(means.mean() - expected) < 4 * means.std() / np.sqrt(means.size)


def test_sample_is_determined_by_the_generator(make_data):
    data = make_data(weighted=True)
    one, other = (next(Sampler.of(data, 16).batches(np.random.default_rng(7), 1)) for _ in range(2))
    np.testing.assert_array_equal(one.order, other.order)
    assert not np.array_equal(one.order, next(Sampler.of(data, 16).batches(np.random.default_rng(8), 1)).order)


# --- streams of mini-batches


@pytest.fixture(scope="module")
def many():
    """Two hundred groups of one to twelve rows, with weights."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(200), rng.integers(1, 13, 200))
    X = rng.normal(size=(codes.size, 2))
    return FairData.from_arrays(X, X[:, 0] + codes / 50, codes, tuple(range(200)), rng.uniform(0.3, 3, codes.size))


def places(data, batch):
    """Where the rows of the batch stand in the data."""
    position = np.empty(data.order.max() + 1, dtype=int)
    position[data.order] = np.arange(data.n_samples)
    return position[batch.order]


def totals_by_row(data, batches):
    """Weight of every row of the data in every batch; ndarray of shape (n_batches, n_samples)."""
    totals = np.zeros((len(batches), data.n_samples))
    for total, batch in zip(totals, batches, strict=True):
        np.add.at(total, places(data, batch), batch.weights.numpy())
    return totals


def check_unbiased(draws, expected, bound=4.5):
    """``bound`` standard errors; what does not vary has to be exact."""
    deviation = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) <= bound * deviation + 1e-12).all()


@pytest.mark.parametrize(
    ("balance", "expected"), [(0.0, [20, 4, 40]), (0.5, [21, 13, 31]), (1.0, [21, 21, 21])], ids=str
)
def test_balance_takes_the_groups_from_their_shares_to_equal_numbers(make_data, balance, expected):
    data = make_data(counts=(50, 10, 100))
    for batch in Sampler.of(data, 64, balance).batches(np.random.default_rng(0), 20):
        assert list(batch.counts().values()) == expected
        # the weights make up for it
        shares = [batch.weights[rows].sum().item() for rows in batch.slices]
        assert shares == pytest.approx([50 / 160, 10 / 160, 100 / 160])


def test_shares_are_those_of_the_weights(make_data):
    data = make_data(counts=(30, 30, 60), weighted=True)
    shares = np.bincount(data.codes, data.weights.numpy())
    batch = next(Sampler.of(data, 1000).batches(np.random.default_rng(0)))
    np.testing.assert_array_equal(np.bincount(batch.codes), np.round(1000 * shares))


@pytest.mark.parametrize("balance", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_streams_are_unbiased(make_data, weighted, balance):
    data = make_data(counts=(15, 5, 25), weighted=weighted)
    batches = list(Sampler.of(data, 12, balance).batches(np.random.default_rng(0), 1500))
    draws, weights = totals_by_row(data, batches), data.weights.numpy()
    assert draws.std(axis=0).min() > 0
    check_unbiased(draws, weights)
    values = np.random.default_rng(1).normal(size=data.n_samples)
    check_unbiased(draws @ values, weights @ values)
    for rows in data.slices:
        np.testing.assert_allclose(draws[:, rows].sum(axis=1), weights[rows].sum())
        means = draws[:, rows] @ values[rows] / draws[:, rows].sum(axis=1)
        check_unbiased(means, data.group_weights[rows].numpy() @ values[rows])


@pytest.mark.parametrize("balance", [0.0, 0.5, 1.0])
def test_streams_of_many_groups(many, balance):
    """Not every group has a row in a batch, which is as large as it is asked to be, and still unbiased."""
    batches = list(Sampler.of(many, 64, balance).batches(np.random.default_rng(0), 2000))
    assert {batch.n_samples for batch in batches} == {64}
    draws, weights = totals_by_row(many, batches), many.weights.numpy()
    check_unbiased(draws @ many.y.numpy(), weights @ many.y.numpy())
    check_unbiased(draws.sum(axis=1), 1.0)
    groups = np.eye(many.n_groups)[many.codes]
    check_unbiased(draws @ groups, weights @ groups)
    check_unbiased(draws @ (groups * many.y.numpy()[:, None]), weights @ (groups * many.y.numpy()[:, None]))
    rates = np.array([np.bincount(batch.codes, minlength=many.n_groups) for batch in batches])
    check_unbiased(rates, 64 * ((1 - balance) * weights @ groups + balance / many.n_groups))
    assert rates.min() == 0


@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_labels_come_as_often_as_expected_up_to_rounding(make_data, balance):
    data = make_data(counts=(40, 20, 90), weighted=True)
    batches = list(Sampler.of(data, 30, balance).batches(np.random.default_rng(0), 200))
    for group, rows in enumerate(data.slices):
        positive = data.group_weights[rows][data.y[rows] > 0].sum().item()
        expected = positive * batches[0].counts()["abc"[group]]
        counts = [int((batch.y[batch.slices[group]] > 0).sum()) for batch in batches]
        assert set(counts) == {int(np.floor(expected)), int(np.ceil(expected))}


@pytest.mark.parametrize(("size", "n_rows"), [(1, 3), (2, 3), (3, 4), (12, 12)])
def test_few_groups_have_a_row_in_every_batch_however_small(make_data, size, n_rows):
    data = make_data(counts=(15, 5, 25))
    for batch in Sampler.of(data, size).batches(np.random.default_rng(0), 50):
        assert batch.n_samples == n_rows
        assert min(batch.counts().values()) >= 1


@pytest.mark.parametrize("size", [1, 10, 99])
def test_many_groups_do_not_enlarge_a_small_batch(many, size):
    assert {batch.n_samples for batch in Sampler.of(many, size).batches(np.random.default_rng(0), 20)} == {size}


def test_groups_without_rows_are_passed_over(make_data):
    data = make_data(counts=(40, 20, 90), weighted=True)
    rows = np.flatnonzero(data.codes != 1)
    part = data.at(rows, data.weights[rows] / data.weights[rows].sum())
    for balance in (0.0, 1.0):
        batches = list(Sampler.of(part, 20, balance).batches(np.random.default_rng(0), 500))
        assert all(batch.counts()["b"] == 0 for batch in batches)
        check_unbiased(totals_by_row(part, batches), part.weights.numpy())
    assert batches[0].counts()["a"] == batches[0].counts()["c"]


@pytest.mark.parametrize(("balance", "expected"), [(0.0, [6, 12, 2]), (1.0, [7, 7, 7])], ids=str)
@pytest.mark.parametrize("names", [[0, 1, 2], [1, 0, 4]], ids=["in order", "with gaps"])
def test_strata_that_are_not_next_to_each_other(make_data, names, balance, expected):
    """The first, third and last of five groups, the second, and the fourth; a batch has as many rows of each."""
    data = make_data(counts=(12, 60, 8, 10, 10))
    strata = np.array([names[k] for k in (0, 1, 0, 2, 0)])[data.codes]
    batches = list(Sampler.of(data, 20, balance, strata).batches(np.random.default_rng(0), 800))
    for batch in batches:
        drawn = places(data, batch)
        assert (np.diff(drawn) >= 0).all()
        np.testing.assert_array_equal(batch.y, data.y[drawn])
        assert np.bincount(strata[drawn], minlength=5)[names].tolist() == expected
    draws = totals_by_row(data, batches)
    check_unbiased(draws, data.weights.numpy())
    groups = [sum(rows.stop - rows.start for rows in (batch.slices[k] for k in (0, 2, 4))) for batch in batches]
    assert set(groups) == {expected[0]}
    positive = (data.y.numpy() > 0) & (strata == names[0])
    counts = [positive[places(data, batch)].sum() for batch in batches]
    mean = expected[0] * positive.sum() / (strata == names[0]).sum()
    assert set(counts) == {np.floor(mean), np.ceil(mean)}


@pytest.mark.parametrize("balance", [0.0, 0.5, 1.0])
def test_the_groups_as_strata_change_nothing(make_data, balance):
    data = make_data(counts=(30, 8, 50), weighted=True)
    streams = [
        Sampler.of(data, 16, balance, strata).batches(np.random.default_rng(0), 5) for strata in (None, data.codes)
    ]
    for one, other in zip(*streams, strict=True):
        np.testing.assert_array_equal(one.order, other.order)
        np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_streams_are_determined_by_the_generator(make_data, balance):
    sampler = Sampler.of(make_data(weighted=True), 16, balance)
    orders = [[batch.order for batch in sampler.batches(np.random.default_rng(seed), 150)] for seed in (0, 0, 1)]
    np.testing.assert_array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])
    assert len(np.unique(orders[0], axis=0)) > 140  # the batches of a stream differ
    endless = sampler.batches(np.random.default_rng(0))
    np.testing.assert_array_equal([next(endless).order for _ in range(150)], orders[0])


@pytest.mark.parametrize("balance", [0.0, 1.0])
@pytest.mark.parametrize("n_features", [3, 1001], ids=["few features", "many features"])
@pytest.mark.parametrize("sparse", [False, True])
def test_batches_hold_the_rows_of_the_data_in_ascending_order(make_data, sparse, n_features, balance):
    data = make_data(counts=(40, 3, 80), n_features=n_features, sparse=sparse, weighted=True)
    full = dense(data.X)
    for batch in Sampler.of(data, 12, balance).batches(np.random.default_rng(0), 70):
        drawn = places(data, batch)
        assert (np.diff(drawn) >= 0).all()
        assert (np.diff(batch.codes) >= 0).all()
        np.testing.assert_array_equal(dense(batch.X), full[drawn])
        np.testing.assert_array_equal(np.vstack([dense(block) for block in batch.blocks]), full[drawn])
        np.testing.assert_array_equal(batch.y, data.y[drawn])
        np.testing.assert_array_equal(batch.codes, data.codes[drawn])
        assert batch.labels == data.labels
        if sp.issparse(batch.X):
            product = batch.X @ np.ones(n_features), np.ones(batch.n_samples) @ batch.X
            np.testing.assert_allclose(product[0], full[drawn].sum(axis=1))
            np.testing.assert_allclose(product[1], full[drawn].sum(axis=0))
    assert sp.issparse(batch.X) == (sparse and n_features > 1000)


@pytest.mark.parametrize("sparse", [False, True])
def test_tables_of_rows(make_data, sparse):
    """Given rows, some of them twice."""
    data = make_data(counts=(10, 12), sparse=sparse, weighted=True)
    table = np.array([[0, 0, 5, 11], [3, 10, 10, 21]])
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]], dtype=torch.float64)
    for given in (None, weights):
        for k, batch in enumerate(data.batches(table, given)):
            one = data.at(table[k], None if given is None else given[k])
            np.testing.assert_array_equal(dense(batch.X), dense(one.X))
            np.testing.assert_array_equal(dense(batch.X), dense(data.X)[table[k]])
            for name in ("y", "weights", "codes", "order"):
                np.testing.assert_array_equal(getattr(batch, name), getattr(one, name))
            expected = np.full(4, 0.25) if given is None else given[k]
            np.testing.assert_allclose(batch.weights, expected)


# --- fewer rows that stand for all


@pytest.mark.parametrize("sparse", [False, True])
def test_thinned_rows_are_rows_with_their_targets(make_data, sparse):
    data = make_data(counts=(400, 30, 800), sparse=sparse, weighted=True)
    thin = data.thinned(np.random.default_rng(0), 120)
    position = {row: place for place, row in enumerate(data.order)}
    drawn = [position[row] for row in thin.order]
    full = np.vstack([dense(block) for block in data.blocks])
    np.testing.assert_array_equal(np.vstack([dense(block) for block in thin.blocks]), full[drawn])
    np.testing.assert_array_equal(thin.y.numpy(), data.y.numpy()[drawn])
    np.testing.assert_array_equal(thin.codes, data.codes[drawn])
    assert (np.diff(drawn) >= 0).all()  # still ordered by group and target
    assert abs(thin.n_samples - 120) < 30


@pytest.mark.parametrize("weighted", [False, True])
def test_thinned_keeps_the_shares_of_groups_and_labels(make_data, weighted):
    data = make_data(counts=(400, 300, 800), weighted=weighted)
    thin = data.thinned(np.random.default_rng(0), 150)
    assert thin.weights.sum().item() == pytest.approx(1)
    for rows, part in zip(data.slices, thin.slices, strict=True):
        assert thin.weights[part].sum().item() == pytest.approx(data.weights[rows].sum().item())
        positive = data.group_weights[rows][data.y[rows] > 0].sum().item()
        # rows stand at equal distances, so that the share is off by less than one of them
        kept = thin.group_weights[part][thin.y[part] > 0].sum().item()
        assert abs(kept - positive) <= 1 / (part.stop - part.start)


def test_thinned_takes_small_groups_whole(make_data):
    data = make_data(counts=(2000, 20, 30))
    thin = data.thinned(np.random.default_rng(0), 180)
    assert thin.counts() == {"a": 176, "b": 20, "c": 30}
    for group in (1, 2):
        np.testing.assert_array_equal(thin.blocks[group], data.blocks[group])


@pytest.mark.parametrize("weighted", [False, True])
def test_thinned_means_are_unbiased(make_data, weighted):
    data = make_data(counts=(150, 50, 250), weighted=weighted, classes=False)
    rng = np.random.default_rng(2)
    draws = [data.thinned(rng, 60) for _ in range(1500)]
    column = np.concatenate([block[:, 0] for block in data.blocks])
    for values in (data.y.numpy(), column):
        by_row = dict(zip(data.order.tolist(), values.tolist(), strict=True))
        means = np.array([thin.weights.numpy() @ [by_row[row] for row in thin.order.tolist()] for thin in draws])
        assert abs(means.mean() - data.weights.numpy() @ values) < 4 * means.std() / np.sqrt(means.size)
        assert means.std() > 0


def test_thinned_with_more_groups_than_rows_and_with_groups_without_any():
    rng = np.random.default_rng(0)
    codes, y = np.sort(rng.integers(0, 300, 1000)), rng.normal(size=1000)
    data = FairData.from_arrays(rng.normal(size=(1000, 1)), y, codes, tuple(range(301)), rng.uniform(1, 2, 1000))
    thin = data.thinned(rng, 100)
    assert thin.n_samples == 100
    assert thin.weights.sum().item() == pytest.approx(1)
    draws = [data.thinned(rng, 100) for _ in range(2000)]
    assert np.mean([d.weights @ d.y for d in draws]) == pytest.approx(float(data.weights @ data.y), abs=0.01)
    few = FairData.from_arrays(np.ones((40, 1)), y[:40], np.repeat([0, 2], 20), ("a", "b", "c"))
    np.testing.assert_array_equal(np.bincount(few.thinned(rng, 20).codes), [10, 0, 10])


def test_thinned_is_determined_by_the_generator(make_data):
    data = make_data(counts=(200, 300), weighted=True)
    one, other = (data.thinned(np.random.default_rng(7), 50) for _ in range(2))
    np.testing.assert_array_equal(one.order, other.order)
    assert not np.array_equal(one.order, data.thinned(np.random.default_rng(8), 50).order)


# --- cells


@pytest.mark.parametrize("weighted", [False, True])
def test_the_cells_of_a_label(make_data, weighted):
    data = make_data(counts=(40, 30), weighted=weighted)
    weights, y = data.weights.numpy(), data.y.numpy()
    for target, name in ((1.0, "+1"), (-1.0, "-1")):
        cells = data.groups_with_label(target)
        assert cells.labels == (f"a, y={name}", f"b, y={name}")
        assert len(cells) == 2
        for code, rows in enumerate(cells.slices):
            own = (data.codes == code) & (y == target)
            np.testing.assert_array_equal(np.flatnonzero(own), np.arange(rows.start, rows.stop))
            np.testing.assert_allclose(cells.weights[rows].numpy(), weights[own] / weights[own].sum())
            assert cells.largest_shares()[code] == pytest.approx(weights[own].max() / weights[own].sum())
            assert (cells.codes[rows] == code).all()
        outside = y != target
        assert (cells.codes.numpy()[outside] == 2).all()
        assert not cells.weights.numpy()[outside].any()


def test_a_cell_may_be_empty(make_data):
    data = make_data(counts=(40, 30))
    cells = data.groups_with_label(0.5)
    assert cells.labels == ("a, y=+0.5", "b, y=+0.5")
    assert all(rows.start == rows.stop for rows in cells.slices)
    assert not cells.weights.any()


# --- mini-batches of whole clusters


def test_clusters_stay_together_and_sums_are_unbiased():
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 12, 200)
    codes = np.sort(rng.integers(0, 3, 200))
    data = FairData.from_arrays(
        rng.normal(size=(200, 2)), rng.normal(size=200), codes, ("a", "b", "c"), rng.uniform(1, 2, 200), None, clusters
    )
    np.testing.assert_array_equal(data.clusters, clusters[data.order])
    sampler = sampler_of(data, 50)
    assert sampler.size == 3
    batches = list(sampler.batches(rng, 8))  # all clusters twice
    total = np.zeros(200)
    for batch in batches:
        drawn = np.unique(batch.clusters)
        assert drawn.size == 3
        assert set(batch.order) == set(np.flatnonzero(np.isin(clusters, drawn)))
        assert (np.diff(batch.codes) >= 0).all()
        np.testing.assert_array_equal(batch.X, data.X[np.isin(data.clusters, drawn)])
        total[batch.order] += batch.weights.numpy() / 8
    np.testing.assert_allclose(total[data.order], data.weights)


def test_one_cluster_at_least_and_all_at_most():
    data = FairData.from_arrays(np.ones((6, 1)), np.ones(6), np.zeros(6, int), ("a",), clusters=np.arange(6) // 3)
    assert [sampler_of(data, size).size for size in (1, 3, 6, 100)] == [1, 1, 2, 2]
    assert next(sampler_of(data, 100).batches(np.random.default_rng(0))).n_samples == 6


def test_data_whose_groups_are_all_compared_do_not_keep_themselves_alive(table):
    X, y, _ = table
    data = FairData.from_arrays(X, y, CODES, LABELS)
    assert data.compared is data
    alive = weakref.ref(data)
    del data
    assert alive() is None
