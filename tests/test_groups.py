"""GroupEncoder: any column-like input becomes codes and labels that a user recognises."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained import groups
from fairconstrained.groups import GroupEncoder


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["b", "a", "b", "c"], ("a", "b", "c")),
        (np.array([3, -1, 3, 7]), (-1, 3, 7)),
        (np.array([2.5, 0.5, 2.5, 3.0]), (0.5, 2.5, 3.0)),
        (pd.Series(["b", "a", "b", "c"], index=[9, 9, 3, 1]), ("a", "b", "c")),
        (pd.Series(["b", "a", "b", "c"], dtype="category").cat.add_categories(["unused"]), ("a", "b", "c")),
        (np.array([["b"], ["a"], ["b"], ["c"]]), ("a", "b", "c")),
        (pd.DataFrame({"race": ["b", "a", "b", "c"]}), ("a", "b", "c")),
    ],
    ids=["list", "ints", "floats", "series", "categories", "column", "frame"],
)
def test_codes_and_sorted_labels(values, labels):
    encoder = GroupEncoder(values)
    assert encoder.labels == labels
    np.testing.assert_array_equal(encoder.codes, [1, 0, 1, 2])


def test_booleans():
    encoder = GroupEncoder(np.array([True, False, True]))
    assert encoder.labels == (False, True)
    np.testing.assert_array_equal(encoder.codes, [1, 0, 1])


def test_several_columns_become_their_observed_combinations():
    frame = pd.DataFrame({"sex": ["f", "m", "f", "f"], "old": [True, False, False, True]})
    encoder = GroupEncoder(frame)
    assert encoder.labels == (("f", False), ("f", True), ("m", False))
    np.testing.assert_array_equal(encoder.codes, [1, 2, 0, 1])
    np.testing.assert_array_equal(encoder.codes, GroupEncoder(frame.to_numpy()).codes)


def brute_force(frame):
    """Combinations of Python scalars, sorted as tuples, and the position of every row among them."""
    rows = list(zip(*(frame[name].tolist() for name in frame), strict=True))
    labels = tuple(sorted(set(rows)))
    return labels, [labels.index(row) for row in rows]


def random_table(rng, n_samples):
    """Columns of every kind; the categories are neither sorted nor all observed."""
    return pd.DataFrame(
        {
            "int": rng.integers(-2, 2, n_samples),
            "string": rng.choice(["zeta", "eta", "alpha"], n_samples),
            "object": pd.Series(rng.choice(["no", "yes"], n_samples).tolist(), dtype=object),
            "float": rng.choice([0.5, -1.25, 3.0], n_samples),
            "bool": rng.random(n_samples) < 0.5,
            "category": pd.Categorical.from_codes(rng.integers(0, 3, n_samples), ["low", "mid", "high", "unused"]),
            "ordered": pd.Categorical.from_codes(rng.integers(0, 2, n_samples), [7, 3, 5], ordered=True),
            "nullable": pd.array(rng.integers(0, 2, n_samples), dtype="Int8"),
        }
    )


# With the first limit the 1728 cells of the table have one key each; the others compress at every column, at some.
@pytest.mark.parametrize("limit", [groups._MAX_KEYS, 1, 200])
@pytest.mark.parametrize("n_samples", [1, 5, 60, 400])
def test_combinations_agree_with_brute_force(limit, n_samples, monkeypatch):
    monkeypatch.setattr(groups, "_MAX_KEYS", limit)
    rng = np.random.default_rng(n_samples)
    for n_columns in (2, 5, 8):
        frame = random_table(rng, n_samples)
        frame = frame[rng.permutation(frame.columns)[:n_columns]]
        labels, codes = brute_force(frame)
        for table in (frame, frame.set_axis(rng.integers(0, 3, n_samples)), frame.astype(object).to_numpy()):
            encoder = GroupEncoder(table)
            assert encoder.labels == labels
            assert [list(map(type, label)) for label in encoder.labels] == [list(map(type, row)) for row in labels]
            np.testing.assert_array_equal(encoder.codes, codes)
            assert encoder.codes.dtype == np.int64


def test_more_cells_than_a_64_bit_integer_counts():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 20, (300, 16)))
    assert 20**16 > 2**64
    frame = pd.concat([frame, frame.iloc[::3]])
    labels, codes = brute_force(frame)
    encoder = GroupEncoder(frame)
    assert encoder.labels == labels
    np.testing.assert_array_equal(encoder.codes, codes)


def test_a_table_without_rows_has_no_groups():
    encoder = GroupEncoder(pd.DataFrame({"sex": [], "race": []}))
    assert encoder.labels == ()
    assert encoder.codes.shape == (0,)


def test_labels_are_plain_python_values():
    assert type(GroupEncoder(np.array([1, 2])).labels[0]) is int
    assert type(GroupEncoder(np.array(["x", "y"])).labels[0]) is str
    (label,) = GroupEncoder(
        pd.DataFrame({"int": [np.int8(1)], "object": pd.Series([np.int64(1)], dtype=object)})
    ).labels
    assert [type(value) for value in label] == [int, int]


def test_encode_uses_the_known_codes_whatever_is_present():
    labels = GroupEncoder(["b", "a", "c"]).labels
    np.testing.assert_array_equal(GroupEncoder.encode(["c", "c", "a"], labels), [2, 2, 0])
    frame = pd.DataFrame({"sex": ["f", "m"], "old": [1, 0]})
    labels = GroupEncoder(frame).labels
    np.testing.assert_array_equal(GroupEncoder.encode(frame.iloc[[1, 0, 1]], labels), [1, 0, 1])


def test_unseen_group_is_named():
    with pytest.raises(ValueError, match=r"not seen in fit: \['d'\]. Known groups: \['a', 'b'\]"):
        GroupEncoder.encode(["a", "d"], ("a", "b"))


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, np.nan, 2.0, np.nan]),
        ["a", None, "b", None],
        pd.Series(["a", pd.NA, "b", pd.NA], dtype="string"),
        pd.Series([True, None, False, None], dtype="boolean"),
        pd.DataFrame({"sex": ["f", None, "m", "f"], "age": [1.0, 2.0, 3.0, np.nan]}),
    ],
    ids=["nan", "none", "string", "boolean", "frame"],
)
def test_missing_values_are_counted(values):
    with pytest.raises(ValueError, match="missing values in 2 rows"):
        GroupEncoder(values)


@pytest.mark.parametrize("values", [[0.0, np.inf], np.array([[0.0, 1.0], [-np.inf, 1.0]])])
def test_infinity(values):
    with pytest.raises(ValueError, match="infinity"):
        GroupEncoder(values)


@pytest.mark.parametrize(("values", "dimensions"), [(np.zeros((2, 1, 1)), 3), ("sex", 0)])
def test_wrong_number_of_dimensions(values, dimensions):
    with pytest.raises(ValueError, match=f"got {dimensions} dimensions"):
        GroupEncoder(values)


@pytest.mark.parametrize("values", [np.empty((4, 0)), pd.DataFrame(index=range(4))])
def test_a_table_without_columns_is_a_readable_error(values):
    with pytest.raises(ValueError, match="column"):
        GroupEncoder(values)
