"""Stratified mini-batches: shares, epochs, small strata, seeds and processes."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from fairconstrained.torch import StratifiedBatchSampler

GROUPS = np.random.default_rng(0).permutation(np.repeat([0, 1, 5], [300, 90, 10]))
LABELS = np.random.default_rng(1).integers(0, 2, 400)


def test_every_epoch_has_each_row_once_in_its_share():
    sampler = StratifiedBatchSampler(torch.from_numpy(GROUPS), batch_size=40)
    epochs = [list(sampler) for _ in range(2)]
    assert len(sampler) == 10
    for batches in epochs:
        assert len(batches) == 10
        assert sorted(chain.from_iterable(batches)) == list(range(400))
        counts = np.array([[(GROUPS[batch] == g).sum() for g in (0, 1, 5)] for batch in batches])
        assert (counts == [30, 9, 1]).all()
    assert epochs[0] != epochs[1]
    assert (sampler.weights == 1).all()


def test_shares_that_are_no_whole_numbers_are_rounded_up_or_down():
    for seed in range(5):
        sampler = StratifiedBatchSampler(GROUPS, LABELS, batch_size=64, seed=seed)
        cells = 2 * GROUPS + LABELS
        counts = np.array([np.bincount(cells[batch], minlength=12) for batch in sampler])
        expected = np.bincount(cells, minlength=12) / len(sampler)
        assert ((counts >= np.floor(expected)) & (counts <= np.ceil(expected))).all() or (expected < 1).any()
        many = expected >= 1
        assert (abs(counts - expected)[:, many] < 1).all()


def test_small_strata_come_several_times_and_weights_make_up_for_it():
    sampler = StratifiedBatchSampler(GROUPS, batch_size=40, min_rows=3)
    batches = list(sampler)
    assert all((GROUPS[batch] == 5).sum() == 3 for batch in batches)
    assert all(len(set(batch)) == len(batch) for batch in batches)  # none twice in one mini-batch
    times = np.bincount(np.concatenate(batches), minlength=400)
    np.testing.assert_allclose(times * sampler.weights.numpy(), 1, rtol=1e-6)
    values = np.random.default_rng(2).normal(size=400)
    weights = sampler.weights.numpy()
    means = [np.average(values[batch], weights=weights[batch]) for batch in batches]
    sizes = [weights[batch].sum() for batch in batches]
    assert np.average(means, weights=sizes) == pytest.approx(values.mean(), abs=1e-6)


def test_rows_of_a_batch_are_sorted_by_stratum():
    for batch in StratifiedBatchSampler(GROUPS, LABELS, batch_size=64):
        assert (np.diff(2 * GROUPS[batch] + LABELS[batch]) >= 0).all()


def test_seed_and_epoch_decide():
    first, same, other = (StratifiedBatchSampler(GROUPS, batch_size=40, seed=s) for s in (3, 3, 4))
    state = torch.get_rng_state()
    assert list(first) == list(same)
    assert torch.equal(state, torch.get_rng_state())
    same.epoch = 0
    again = list(same)
    assert again != list(first)
    first.epoch = 0
    assert again == list(first) != list(other)


def test_processes_share_the_batches():
    one = list(StratifiedBatchSampler(GROUPS, batch_size=40))
    parts = [list(StratifiedBatchSampler(GROUPS, batch_size=20, rank=rank, num_replicas=2)) for rank in (0, 1)]
    assert [sorted(a + b) for a, b in zip(*parts, strict=True)] == [sorted(batch) for batch in one]
    assert all(abs(len(a) - len(b)) <= 1 for a, b in zip(*parts, strict=True))


def test_it_feeds_a_loader():
    rows = TensorDataset(torch.arange(400), torch.from_numpy(GROUPS))
    loader = DataLoader(rows, batch_sampler=StratifiedBatchSampler(GROUPS, batch_size=40))
    seen = [numbers for numbers, _ in loader]
    assert torch.equal(torch.cat(seen).sort().values, torch.arange(400))


def test_labels_of_any_type():
    expected = list(StratifiedBatchSampler(GROUPS, LABELS, batch_size=40))
    for labels in (LABELS.astype(float), torch.from_numpy(LABELS).float(), LABELS.astype(bool)):
        assert list(StratifiedBatchSampler(GROUPS, labels, batch_size=40)) == expected
    named = np.array(["a", "b", "", "", "", "c"], dtype=object)[GROUPS]
    for groups in (named, named.astype(str), named.tolist()):
        assert list(StratifiedBatchSampler(groups, np.array(["no", "yes"])[LABELS], batch_size=40)) == expected


def test_errors():
    for arguments, options, message in [
        ((GROUPS, LABELS[:9]), {"batch_size": 4}, "one entry for every row"),
        ((GROUPS[:0],), {"batch_size": 4}, "one entry for every row"),
        ((GROUPS, LABELS + 0.5), {"batch_size": 4}, "they have fractions"),
        ((GROUPS,), {"batch_size": 0}, "batch_size must be an integer of at least 1"),
        ((GROUPS,), {"batch_size": 4, "min_rows": 0}, "min_rows must be an integer of at least 1"),
        ((GROUPS,), {"batch_size": 4, "rank": 2, "num_replicas": 2}, "rank must be at least 0 and less than"),
    ]:
        with pytest.raises(ValueError, match=message):
            StratifiedBatchSampler(*arguments, **options)
