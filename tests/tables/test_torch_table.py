"""Tables whose products a device of torch computes: on the CPU, and on CUDA where there is a device."""

from __future__ import annotations

import pickle
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    AUCFairClassifier,
    FairHeadClassifier,
    LossParityClassifier,
    PartialParityClassifier,
    RateParityClassifier,
)
from fairconstrained.datasets import make_biased_classification
from fairconstrained.features import (
    as_dense,
    extremes_by_group,
    product,
    products_by_code,
    products_by_group,
    squares,
    sums_by_group,
    sums_of_products,
    weighted_gram,
)
from fairconstrained.models import LinearModel
from fairconstrained.tables import Table, torch_table

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_cuda)])
module = import_module("fairconstrained.tables.torch_table")
LAYOUTS = {"dense": np.asarray, "sparse": sp.csr_array}
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())


@pytest.fixture(params=[2**24, 7], ids=["one block", "small blocks"])
def block_size(request, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", request.param)


@each_device
@each_layout
@pytest.mark.parametrize("numbers", ["float64", "float32", "int8", "bool"])
@pytest.mark.usefixtures("block_size")
def test_the_numbers_are_those_of_an_array(numbers, layout, device):
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((23, 3)) < 0.5, rng.normal(size=(23, 3)) * 20, 0).astype(numbers)
    order, groups = rng.permutation(23), [slice(0, 9), slice(9, 9), slice(9, 23)]
    table, X = torch_table(layout(rows), device)[order], rows[order].astype(float)
    weights, slopes, columns = rng.random(23), rng.normal(size=(23, 3)), rng.normal(size=(3, 3, 2))
    codes = np.repeat([0, 2], [9, 14])
    assert table.dtype == numbers
    for found, expected in (
        (as_dense(table.gathered()), X),
        (product(table, columns[0]), X @ columns[0]),
        (product(table, columns[0, :, 0]), X @ columns[0, :, 0]),
        (sums_of_products(table, slopes), X.T @ slopes),
        (sums_of_products(table, weights), X.T @ weights),
        (sums_of_products(table, sp.csc_array(slopes)), X.T @ slopes),
        (sums_of_products(table, sp.csc_array((23, 0))), np.empty((3, 0))),
        (squares(table, weights), (X**2).T @ weights),
        (weighted_gram(table, weights), X.T @ (X * weights[:, None])),
        (weighted_gram(table, weights, X[0]), (X - X[0]).T @ ((X - X[0]) * weights[:, None])),
        (products_by_group(table, columns, groups), products_by_group(X, columns, groups)),
        (products_by_code(table, columns, codes), products_by_code(X, columns, codes)),
        (extremes_by_group(table, groups[::2]), extremes_by_group(X, groups[::2])),
        (sums_by_group(table, squares, weights, groups), sums_by_group(X, squares, weights, groups)),
        (sums_by_group(table, weighted_gram, weights, groups), sums_by_group(X, weighted_gram, weights, groups)),
        (sums_by_group(table, sums_of_products, slopes, groups), sums_by_group(X, sums_of_products, slopes, groups)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


ESTIMATORS = {
    "rates": RateParityClassifier(0.3, constraint="demographic_parity_ratio", random_state=0),
    "AUC": AUCFairClassifier(0.05, random_state=0),
    "AUC from moments": AUCFairClassifier(0.05, surrogate="quadratic", objective="auc", random_state=0),
    "models of groups": PartialParityClassifier(
        0.1, constraint="demographic_parity", group_interactions=True, random_state=0
    ),
}


@pytest.fixture(scope="module")
def people():
    X, y, group = make_biased_classification(400, n_features=9, random_state=0)
    return np.where(np.abs(X) < 0.3, 0, X), y, group


@each_device
@each_layout
@pytest.mark.parametrize("numbers", ["float64", "float32"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_to_a_table_is_that_to_an_array(people, name, numbers, layout, device, monkeypatch):
    # so that the device computes products with a choice of rows, too
    monkeypatch.setattr("fairconstrained.tables.Parts.most_gathered", 0)
    rows, y, group = people
    X = layout(rows.astype(numbers))
    whole = clone(ESTIMATORS[name]).fit(X, y, sensitive_features=group)
    model = clone(ESTIMATORS[name]).fit(torch_table(X, device), y, sensitive_features=group)
    expected = whole.decision_function(X, sensitive_features=group)
    found = model.decision_function(torch_table(X, device), sensitive_features=group)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-9)
    assert model.constraint_values_ == pytest.approx(whole.constraint_values_, abs=1e-9)
    assert len(pickle.dumps(model)) < rows.nbytes


@each_device
@each_layout
def test_a_head_on_a_fitted_model_and_a_network_take_tables(people, layout, device):
    rows, y, group = people
    X, groups = layout(rows), PartialParityClassifier(None, random_state=0)
    base = LogisticRegression().fit(X, y)
    head = ESTIMATORS["rates"]
    for estimator in (
        FairHeadClassifier(base, head, cv="prefit", group_estimator=groups, random_state=0),
        LossParityClassifier(0.05, hidden_layer_sizes=(3,), max_epochs=1, random_state=0, device="cpu"),
    ):
        expected = estimator.fit(X, y, sensitive_features=group).decision_function(X)
        table = torch_table(X, device)
        found = estimator.fit(table, y, sensitive_features=group).decision_function(table)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@each_device
def test_rows_of_a_fit_are_moved_once(people, device, monkeypatch):
    moved, original = [], module._moved
    monkeypatch.setattr(module, "_moved", lambda values, to: moved.append(np.shape(values)) or original(values, to))
    X, y, group = people
    RateParityClassifier(0.3, random_state=0).fit(torch_table(X, device), y, sensitive_features=group)
    assert moved.count(X.shape) == 1
    assert len(moved) > 20
    for layout, n_copies in ((np.asarray, 2), (sp.csr_array, 2)):
        moved.clear()
        table, columns = torch_table(layout(X), device), LinearModel(9, n_copies=n_copies).init(None).reshape(2, -1)
        for _ in range(3):
            products_by_group(table, columns[:, :9], [slice(0, 100), slice(100, 400)])
        assert [shape for shape in moved if shape[-1] == 9 and len(shape) == 2] == [(100, 9), (300, 9)]


@each_device
def test_tensors_are_taken_in_both_layouts(people, device):
    X = people[0][:50]
    dense = torch.tensor(X, device=device, requires_grad=True)
    sparse = module._moved(sp.csr_array(X), torch.device(device))
    for tensor in (dense, sparse, dense.float(), dense.t().contiguous().t()):
        table = torch_table(tensor, names=list("abcdefghi"))
        assert isinstance(table, Table)
        assert table.names == tuple("abcdefghi")
        assert table._device.type == device
        np.testing.assert_allclose(product(table, np.eye(9)), X, rtol=1e-6)
    assert torch_table(dense, "cpu")._device.type == "cpu"
    assert torch_table(X)._device.type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_rows_that_are_no_table_are_refused(people):
    X, y, group = people
    with pytest.raises(ValueError, match=r"numbers of the type torch.bfloat16; pass X.float\(\)"):
        torch_table(torch.ones(3, 2, dtype=torch.bfloat16))
    with pytest.raises(ValueError, match=r"layout torch.sparse_coo; pass X.to_sparse_csr\(\)"):
        torch_table(torch.eye(3).to_sparse())
    with pytest.raises(ValueError, match="needs numbers, and X has object"):
        torch_table(np.array([["a"]], dtype=object))
    with pytest.raises(ValueError, match="array of rows and features"):
        torch_table(torch.ones(3))
    missing = torch_table(np.where(X > 2, np.nan, X))
    with pytest.raises(ValueError, match=r"X has NaN or infinity in \d+ of its 400 rows"):
        RateParityClassifier(0.3).fit(missing, y, sensitive_features=group)


def test_a_device_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu' or a CUDA device such as 'cuda', got 'gpu'"):
        torch_table(np.eye(2), "gpu")
    with pytest.raises(ValueError, match=r"device='cuda:99', but torch finds .*Set device='auto' or 'cpu'"):
        torch_table(np.eye(2), "cuda:99")
