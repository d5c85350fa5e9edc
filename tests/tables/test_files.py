"""Tables of files and memory maps: blocks of rows that are read when they are needed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.tables import array_table, parquet_table

NAMES = ["a", "b", "c"]


@pytest.fixture
def people(tmp_path):
    """Two files with rows of two features, a category, labels and groups; and all rows in memory."""
    X, y, group = make_biased_classification(300, n_features=3, random_state=0)
    frame = pd.DataFrame(X, columns=NAMES).astype({"a": "float32"})
    frame = frame.assign(y=y, group=np.where(group == 1, "x", "z"), flag=X[:, 0] > 0)
    paths = [tmp_path / "first.parquet", tmp_path / "second.parquet"]
    frame[:200].to_parquet(paths[0], row_group_size=64)
    frame[200:].to_parquet(paths[1], row_group_size=64)
    return paths, frame


def test_the_rows_of_several_files_follow_each_other(people):
    paths, frame = people
    table = parquet_table(paths, columns=["b", "a", "flag"])
    assert (table.shape, table.names, table.dtype) == ((300, 3), ("b", "a", "flag"), np.float64)
    np.testing.assert_array_equal(table.gathered(), frame[["b", "a", "flag"]].to_numpy(dtype=float))
    assert len(parquet_table(paths[0], columns=["a"])) == 200
    assert parquet_table(paths[0], columns=["a"]).dtype == np.float32


def test_a_fit_from_files_is_that_from_memory(people):
    paths, frame = people
    options = {"kappa": 0.2, "constraint": "demographic_parity", "random_state": 0}
    whole = PartialParityClassifier(**options).fit(frame[NAMES], frame["y"], sensitive_features=frame["group"])
    rest = pd.concat([pd.read_parquet(path, columns=["y", "group"]) for path in paths])
    table = parquet_table(paths, columns=NAMES)
    model = PartialParityClassifier(**options).fit(table, rest["y"], sensitive_features=rest["group"])
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-7)
    assert model.constraint_values_ == pytest.approx(whole.constraint_values_, abs=1e-12)
    assert model.feature_names_in_.tolist() == NAMES


def test_files_that_do_not_fit_are_refused(people, tmp_path):
    paths, frame = people
    with pytest.raises(ValueError, match=r"has no columns \['d'\]; it has \['a', 'b', 'c'"):
        parquet_table(paths, columns=["a", "d"])
    with pytest.raises(ValueError, match=r"'group' of the file .* and no numbers"):
        parquet_table(paths)
    with pytest.raises(ValueError, match="at least one path"):
        parquet_table([])
    frame.rename(columns={"b": "beta"}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"other.parquet has no columns \['b'\]"):
        parquet_table([*paths, tmp_path / "other.parquet"], columns=NAMES)


@pytest.mark.parametrize("numbers", ["float32", "int8", "float64"])
def test_a_memory_map_is_read_block_by_block(tmp_path, numbers):
    X = (np.random.default_rng(0).normal(size=(100, 4)) * 20).astype(numbers)
    stored = np.memmap(tmp_path / "X", dtype=numbers, mode="w+", shape=X.shape)
    stored[:] = X
    table = array_table(stored, block_size=30)
    assert table.dtype == numbers
    sizes = []
    table.map_rows(lambda rows: sizes.append(len(rows)) or rows[:, 0])
    assert sizes == [30, 30, 30, 10]
    order = np.random.default_rng(1).permutation(100)
    np.testing.assert_array_equal(table[order].gathered(), X[order])


def test_what_was_written_to_a_map_that_is_copied_stays(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((50, 3)))
    X = np.load(tmp_path / "X.npy", mmap_mode="c")
    X -= 5.0
    assert array_table(X, block_size=20).map_rows(lambda rows: rows[:, 0]).max() == -4.0
    assert X.max() == -4.0


@pytest.mark.parametrize("numbers", ["float16", "uint64", ">f8"])
def test_numbers_without_products_are_converted(numbers):
    X = np.arange(12).reshape(4, 3).astype(numbers)
    table = array_table(X, block_size=3)
    assert table.dtype == np.float64
    np.testing.assert_array_equal(table.gathered(), np.arange(12.0).reshape(4, 3))


def test_the_index_of_a_frame_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0]})
    frame.iloc[[2, 0, 1]].to_parquet(tmp_path / "shuffled.parquet")
    frame.set_index("b").to_parquet(tmp_path / "named.parquet")
    assert parquet_table(tmp_path / "shuffled.parquet").names == ("a", "b")
    assert parquet_table(tmp_path / "named.parquet").names == ("a",)
    assert parquet_table(tmp_path / "named.parquet", columns=["a", "b"]).names == ("a", "b")


def test_arrays_that_hold_no_table_are_refused():
    for names in (["a"], ["a", "a"]):
        with pytest.raises(ValueError, match="names must be one for each of the 2 features, and differ"):
            array_table(np.ones((3, 2)), names=names)
    for size in (0, -1, 2.5):
        with pytest.raises(ValueError, match="block_size must be a number of rows of at least 1"):
            array_table(np.ones((3, 2)), block_size=size)
    with pytest.raises(ValueError, match="an array without a mask"):
        array_table(np.ma.masked_less(np.ones((3, 2)), 0))
    with pytest.raises(ValueError, match="an array of rows and features; got list"):
        array_table([[1.0, 2.0]])
    with pytest.raises(ValueError, match="got DataFrame"):
        array_table(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(ValueError, match="an array of rows and features"):
        array_table(np.ones(3))
    with pytest.raises(ValueError, match="needs numbers, and X has object"):
        array_table(np.array([["a", "b"]], dtype=object))
    assert array_table(sp.csr_matrix(np.eye(3))).shape == (3, 3)
