"""Tables of rows in memory whose products are computed on a device of torch, such as a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.devices import found_device
from fairconstrained.features import (
    NUMBERS,
    group_sums,
    kept,
    product,
    products_by_group,
    rows_of,
    squares,
    sums_of_products,
    weighted_gram,
)
from fairconstrained.tables.files import array_table
from fairconstrained.tables.table import Table

__all__ = ["torch_table"]

#: Numbers of a block; in float64 they take 128 MB of the device.
_BLOCK = 2**24


def torch_table(X: Any, device: str | torch.device = "auto", names: Sequence[str] | None = None) -> Table:
    """Return a table of rows in memory, for which a device of torch computes the products with the rows.

    Parameters
    ----------
    X : ndarray, CSR array or Tensor of shape (n_samples, n_features)
        A Tensor is dense or has the layout ``torch.sparse_csr``. The numbers may be of any type, and keep it on the
        device; products and sums are taken in float64.
    device : str or torch.device, default="auto"
        ``"cpu"``, or a CUDA device such as ``"cuda"`` or ``"cuda:1"``. "auto": the device of a Tensor; for an array the
        CUDA device if there is one, and otherwise the CPU.
    names : sequence of str, optional
        Names of the features.

    Returns
    -------
    table : Table
        X for the estimators of the package that have linear scores, and for heads on a fitted model. Networks take it,
        too, but their own parameter ``device`` says where they compute.

    Raises
    ------
    ValueError
        If X has not two dimensions, or other numbers or another layout than these, or torch finds no such device.

    Notes
    -----
    The rows stay in the memory of the CPU as well, where they are checked and put in order. Those of a fit are moved to
    the device once, ordered by group: as they are, and of a CSR matrix the transpose as well. Where every group has a
    model of its own, the rows of the groups are moved one by one. For a product, numbers of other types become float64
    block by block, and those that a CSR matrix stores all at once. Products with a choice of few rows are computed on
    the CPU.
    """
    if isinstance(X, Tensor):
        device = X.device if device == "auto" else device
        X = _in_numpy(X.detach().cpu())
    return _TorchTable(sp.csr_array(X) if sp.issparse(X) else X, found_device(device), names)


class _TorchTable(Table):
    """Rows of an array in memory, which are moved to a device for the first product with them.

    Parameters
    ----------
    rows : ndarray or CSR array of shape (n_samples, n_features)
    """

    def __init__(self, rows: Any, device: torch.device, names: Sequence[str] | None) -> None:
        super().__init__(array_table(rows, names)._parts)
        self._in_memory, self._device = rows, device
        self._parts_known: dict[tuple[int, int], _TorchTable] = {}

    @override
    def taken(self, rows: np.ndarray) -> _TorchTable:
        return _TorchTable(self._in_memory[rows], self._device, self.names)

    def part(self, rows: slice) -> _TorchTable:
        """Return rows that follow each other; the same table every time, so that they are moved once."""
        place = (rows.start, rows.stop)
        if place == (0, len(self)):
            return self
        if place not in self._parts_known:
            self._parts_known[place] = _TorchTable(rows_of(self._in_memory, rows), self._device, self.names)
        return self._parts_known[place]

    def moved(self, columns: Any) -> Tensor:
        """Return numbers on the device in float64."""
        return _moved(columns, self._device).double()

    def times(self, columns: Tensor) -> Tensor:
        """Return the products of the rows with columns on the device, there."""
        return torch.cat([block @ columns for _, block in self.blocks()])

    def sums(self, columns: Tensor) -> Tensor:
        """Return the products of the transpose with columns on the device, there."""
        return reduce(add, (block @ columns[rows] for rows, block in self.blocks(transposed=True)))

    def blocks(self, transposed: bool = False) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of the rows in float64, or their transposes, and where they are; CSR rows are one block."""
        if self.is_sparse:
            yield slice(None), (self._transpose if transposed else self._tensor).double()
            return
        size = max(_BLOCK // max(self.shape[1], 1), 1)
        for start in range(0, max(len(self), 1), size):
            block = self._tensor[start : start + size].double()
            yield slice(start, start + size), block.t() if transposed else block

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are a CSR array."""
        return sp.issparse(self._in_memory)

    @cached_property
    def _tensor(self) -> Tensor:
        return _moved(self._in_memory, self._device)

    @cached_property
    def _transpose(self) -> Tensor:
        """Transpose of CSR rows as a CSR tensor; torch would make it anew for every product on a GPU."""
        turned = self._in_memory.T.tocsr()
        turned.sum_duplicates()
        return _moved(turned, self._device)


def _moved(values: Any, device: torch.device) -> Tensor:
    """An ndarray or a CSR array as a tensor on a device."""
    if not sp.issparse(values):
        return torch.tensor(np.ascontiguousarray(values), device=device)
    ends, places, numbers = (_moved(part, device) for part in (values.indptr, values.indices, values.data))
    return _csr(ends, places, numbers, values.shape)


def _csr(ends: Tensor, places: Tensor, values: Tensor, shape: Sequence[int]) -> Tensor:
    """CSR tensor of these arrays; torch warns once that not every function takes one, and that it does not check it."""
    with warnings.catch_warnings():
        for message in ("Sparse CSR tensor support is in beta", "Sparse invariant checks are implicitly disabled"):
            warnings.filterwarnings("ignore", message, UserWarning)
        return torch.sparse_csr_tensor(ends, places, values, tuple(shape), check_invariants=False)


def _in_numpy(tensor: Tensor) -> Any:
    """A tensor on the CPU as an ndarray or a CSR array, without a copy."""
    if tensor.layout not in (torch.strided, torch.sparse_csr):
        raise ValueError(f"X has the layout {tensor.layout}; pass X.to_sparse_csr(), or X.to_dense().")
    if str(tensor.dtype).removeprefix("torch.") not in map(str, NUMBERS):
        raise ValueError(f"X has numbers of the type {tensor.dtype}; pass X.float(), or X.double().")
    if tensor.layout == torch.strided:
        return tensor.numpy()
    parts = (part.numpy() for part in (tensor.values(), tensor.col_indices(), tensor.crow_indices()))
    return sp.csr_array(tuple(parts), shape=tuple(tensor.shape))


# the rows of a group follow each other here, as they do in an array
for _function in (products_by_group, group_sums, kept):
    _function.register(_TorchTable, _function.dispatch(object))


@rows_of.register
def _rows_of(X: _TorchTable, rows: slice) -> _TorchTable:
    return X.part(rows)


@product.register
def _product(X: _TorchTable, columns: np.ndarray) -> np.ndarray:
    return X.times(X.moved(columns)).cpu().numpy()


@sums_of_products.register
def _sums_of_products(X: _TorchTable, columns: Any) -> np.ndarray:
    if not sp.issparse(columns):
        return X.sums(X.moved(columns)).cpu().numpy()
    turned = sp.csr_array(columns.T)
    found = [X.sums(X.moved(turned[some]).to_dense().t()) for some in _columns(turned.shape[0], len(X))]
    return torch.cat(found, dim=1).cpu().numpy()


@squares.register
def _squares(X: _TorchTable, weights: np.ndarray, centre: np.ndarray | None = None) -> np.ndarray:
    if centre is not None and X.is_sparse:  # asked for once in a fit
        return squares(X._in_memory, weights, centre)
    moved, origin = X.moved(weights), None if centre is None else X.moved(centre)[:, None]
    blocks = ((rows, block if origin is None else block - origin) for rows, block in X.blocks(transposed=True))
    return reduce(add, (_squared(block) @ moved[rows] for rows, block in blocks)).cpu().numpy()


@weighted_gram.register
def _weighted_gram(X: _TorchTable, weights: np.ndarray, centre: np.ndarray | None = None) -> np.ndarray:
    if centre is not None and X.is_sparse:  # as for squares
        return weighted_gram(X._in_memory, weights, centre)
    moved, origin = X.moved(weights)[:, None], None if centre is None else X.moved(centre)
    if X.is_sparse:  # the product of two CSR tensors would be a third one, with almost no zeros
        every = X.moved(np.eye(X.shape[1]))
        found = [X.sums(moved * X.times(every[:, some])) for some in _columns(X.shape[1], len(X))]
        return torch.cat(found, dim=1).cpu().numpy()
    blocks = ((rows, block if origin is None else block - origin) for rows, block in X.blocks())
    scaled = (block * moved[rows].sqrt() for rows, block in blocks)
    return reduce(add, (block.t() @ block for block in scaled)).cpu().numpy()


def _columns(n_columns: int, n_rows: int) -> list[slice]:
    """Columns of dense numbers for every row, so many at a time that they are a block; at least one slice."""
    size = max(_BLOCK // max(n_rows, 1), 1)
    return [slice(start, start + size) for start in range(0, max(n_columns, 1), size)]


def _squared(block: Tensor) -> Tensor:
    if block.layout == torch.strided:
        return block.square()
    return _csr(block.crow_indices(), block.col_indices(), block.values().square(), block.shape)
