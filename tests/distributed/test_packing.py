"""Arrays that are sent in fewer bytes than they have in memory: the very same numbers come back."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from fairconstrained.distributed.packing import Pickled, pickled

N = 3000
RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(N, 6))
#: Slopes of which every row has one, column after column in memory.
OF_GROUPS = np.asfortranarray(np.where(np.arange(6) == RNG.integers(6, size=N)[:, None], NORMAL, 0.0))
NEARLY_ONE_NUMBER = np.r_[np.ones(N), 1.5]

#: Arrays, and the most bytes for each number.
ARRAYS = {
    "weights that are alike": (np.full(N, 1 / N), 0.1),
    "labels": (np.sign(NORMAL[:, 0]), 1.1),
    "numbers of groups": (RNG.integers(5, size=N), 1.1),
    "numbers of rows": (RNG.permutation(N), 4.1),
    "slopes of groups": (OF_GROUPS, 1.7),
    "slopes of groups in some rows": (OF_GROUPS[10:2000], 1.7),
    "scores": (NORMAL[:, 0].copy(), 8.1),
    "some rows of columns": (np.asfortranarray(NORMAL)[7:1000], 8.1),
    "rows backwards": (NORMAL[::-1, ::2], 8.1),
    "zeros of both signs": (np.where(np.arange(N) % 7 == 3, -0.0, 0.0), 1.4),
    "no numbers": (np.full(N, np.nan), 0.1),
    "some that are no numbers": (np.where(NORMAL[:, 0] > 0, np.nan, np.inf), 8.1),
    "all alike but one, which no sample has": (NEARLY_ONE_NUMBER, 8.1),
    "whole numbers but one": (np.r_[np.arange(N) % 9, 0.25, np.arange(N) % 9], 8.1),
    "large whole numbers": (np.arange(N) * 2**40, 8.1),
    "a few numbers": (np.zeros(3), 100),
    "no rows": (np.empty((0, 4)), 300),
    "one number without a shape": (np.array(2.5), 300),
    "other types": (NORMAL.astype(np.float32), 4.1),
}


def sent(message):
    """The message as its receiver gets it, and the number of bytes."""
    head, *buffers = [bytearray(part) for part in pickled(message)]
    return pickle.loads(head, buffers=buffers), len(head) + sum(map(len, buffers))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_arrays_and_tensors_are_the_same_after_they_were_sent(name, kind):
    values, most_bytes = ARRAYS[name]
    if any(stride < 0 for stride in values.strides) and kind is torch.from_numpy:
        values = values.copy()
    found, n_bytes = sent(kind(values))
    assert type(found) is type(kind(values))
    found = np.asarray(found)
    assert found.dtype == values.dtype
    assert found.shape == values.shape
    assert found.tobytes() == values.tobytes()  # -0 is not 0
    found[...] = 1  # it may be written to, as what was sent
    assert n_bytes <= most_bytes * max(values.size, 1) + 200


def test_many_small_tensors_are_one_part():
    tensors = [torch.full((4,), float(k), dtype=torch.float64) for k in range(3000)]
    assert len(pickled(tensors)) == 1
    assert all(torch.equal(one, other) for one, other in zip(sent(tensors)[0], tensors, strict=True))


def test_what_appears_twice_is_sent_once():
    one, other = sent([ARRAYS["scores"][0]] * 2)[0]
    assert one is other


def test_tensors_that_record_a_gradient_remain_what_they_are():
    weight = torch.nn.Parameter(torch.ones(400, dtype=torch.float64))
    found, _ = sent({"layer": weight, "other": torch.ones(400, dtype=torch.float64, requires_grad=True)})
    assert isinstance(found["layer"], torch.nn.Parameter)
    assert found["other"].requires_grad


class CountsPickles:
    """Something that knows how often it was pickled."""

    n_pickles = 0

    def __reduce__(self):
        CountsPickles.n_pickles += 1
        return CountsPickles, ()


def test_what_is_pickled_beforehand_arrives_as_the_object_itself():
    CountsPickles.n_pickles = 0
    ready = Pickled([CountsPickles(), NORMAL])
    (first, table), n_bytes = sent(ready)
    assert isinstance(first, CountsPickles)
    assert CountsPickles.n_pickles == 1
    np.testing.assert_array_equal(table, NORMAL)
    assert n_bytes <= NORMAL.nbytes + 1000
    with pytest.raises((pickle.PicklingError, AttributeError)):
        Pickled([lambda: None])
