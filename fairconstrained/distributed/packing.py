"""Pickling of objects that are sent, with large arrays in as few bytes as give back the same numbers."""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

__all__ = ["Pickled", "Pickler", "pickled"]

#: Size of the sample by which a form is chosen. Arrays that are smaller are not worth the search for one.
_SAMPLE = 1024

#: Bytes from which on the memory of an array is a part of its own. A message has room for the sizes of some parts only.
_APART = 2048

#: A function and its arguments, which give a value back.
Recipe = tuple[Callable[..., Any], tuple[Any, ...]]


def _of_one_number(flat: np.ndarray) -> Recipe | None:
    """Numbers that are all the same, such as the weights of rows that count alike."""
    bits = flat.view(np.int64)
    return (np.full, (flat.size, flat[0])) if (bits == bits[0]).all() else None


def _of_whole_numbers(flat: np.ndarray, dtype: type) -> Recipe | None:
    """Small whole numbers, such as labels or the numbers of groups and rows."""
    with np.errstate(invalid="ignore"):
        small: np.ndarray = flat.astype(dtype)
    # comparing the bits tells 0 from -0
    same = (small.astype(flat.dtype).view(np.int64) == flat.view(np.int64)).all()
    return (np.asarray, (small, flat.dtype)) if same else None


def _of_many_zeros(flat: np.ndarray) -> Recipe | None:
    """Numbers of which at least half are zero, such as the slopes in the rows of one group."""
    present = flat.view(np.int64) != 0
    if 2 * np.count_nonzero(present) > flat.size:
        return None
    return _with_zeros, (np.packbits(present), flat[present], flat.size)


def _with_zeros(present: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    flat = np.zeros(size, dtype=values.dtype)
    flat[np.unpackbits(present, count=size).view(bool)] = values
    return flat


#: Forms in which arrays may be sent, the shortest first: recipes for numbers in a row, None where a form does not suit.
_FORMS: tuple[Callable[[np.ndarray], Recipe | None], ...] = (
    _of_one_number,
    partial(_of_whole_numbers, dtype=np.int8),
    partial(_of_whole_numbers, dtype=np.int32),
    _of_many_zeros,
)


def _of_array(values: np.ndarray) -> Any:
    """Recipe for an array. An array whose numbers do not take eight bytes each is pickled as it is."""
    if values.dtype not in (np.float64, np.int64) or values.size < _SAMPLE:
        return values.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    # in the order in which they lie in memory
    order: Literal["C", "F"] = "F" if values.strides[0] < values.strides[-1] else "C"
    flat = values.ravel(order)
    sample = flat[:: -(-flat.size // _SAMPLE)].copy()
    found = (form(flat) for form in _FORMS if form(sample) is not None)  # most arrays are told by the sample
    recipe = next((each for each in found if each is not None), None)
    if recipe is None:  # a copy of rows that do not lie together would be sent within the pickled object
        return flat.reshape(values.shape, order=order).__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    return _shaped, (*recipe, values.shape, order)


def _shaped(
    function: Callable[..., np.ndarray], args: tuple[Any, ...], shape: tuple[int, ...], order: Literal["C", "F"]
) -> np.ndarray:
    return function(*args).reshape(shape, order=order)


def _of_tensor(values: torch.Tensor) -> Any:
    """Recipe for a tensor, by its array: torch would copy all numbers of its memory into the pickled object."""
    is_array = values.device.type == "cpu" and values.layout == torch.strided and not values.requires_grad
    if not is_array or values.dtype not in (torch.float64, torch.int64):
        return values.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    return torch.from_numpy, (values.numpy(),)


class Pickler(pickle.Pickler):
    """Pickler of what is sent; `pickle.loads` reads it."""

    def __init__(self, file: Any, **options: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL, **options)
        self.dispatch_table = {**copyreg.dispatch_table, np.ndarray: _of_array, torch.Tensor: _of_tensor}


def pickled(message: Any) -> list[Any]:
    """Return a pickled object as bytes, and after them the memory of its large arrays, which is not copied."""
    file, buffers = io.BytesIO(), list[pickle.PickleBuffer]()

    def is_kept(buffer: pickle.PickleBuffer) -> bool:
        is_large = buffer.raw().nbytes >= _APART
        if is_large:
            buffers.append(buffer)
        return not is_large

    Pickler(file, buffer_callback=is_kept).dump(message)
    return [file.getbuffer(), *(buffer.raw() for buffer in buffers)]


class Pickled:
    """An object that is pickled once, so that its errors come before it is sent; its receiver gets the object itself.

    Raises an error of `NOT_PICKLED` if it cannot be pickled.
    """

    def __init__(self, content: Any) -> None:
        self._parts = pickled(content)

    def __reduce__(self) -> Any:
        return _loaded, tuple(map(pickle.PickleBuffer, self._parts))


def _loaded(head: Any, *buffers: Any) -> Any:
    return pickle.loads(head, buffers=buffers)
