"""GroupEncoder: any column-like input becomes codes and labels that a user recognises."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import fairconstrained as fc
from fairconstrained import groups
from fairconstrained.cells import cell_maxima, cell_sums, sums_above
from fairconstrained.groups import (
    GroupEncoder,
    Groups,
    Membership,
    is_membership,
    threshold_groups,
)
from fairconstrained.metrics.registry import find_metric, metric_names


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
    with pytest.raises(ValueError, match=rf"got .*{dimensions} dimensions"):
        GroupEncoder(values)


@pytest.mark.parametrize("values", [np.empty((4, 0)), pd.DataFrame(index=range(4))])
def test_a_table_without_columns_is_a_readable_error(values):
    with pytest.raises(ValueError, match="column"):
        GroupEncoder(values)


# --- groups that overlap

MEMBERS = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)


@pytest.mark.parametrize("kind", ["array", "list", "objects", "frame", "csr", "csc of numbers"])
def test_rows_of_the_same_groups_are_a_part(kind):
    made = {
        "array": MEMBERS,
        "list": MEMBERS.tolist(),
        "objects": MEMBERS.astype(object),
        "frame": pd.DataFrame(MEMBERS, columns=["a", "b", "c"], index=[7, 7, 1, 2, 3]),
        "csr": sp.csr_array(MEMBERS),
        "csc of numbers": sp.csc_matrix(MEMBERS.astype(float)),
    }[kind]
    assert is_membership(made)
    membership = Membership(made)
    assert membership.unions.labels == (("a", "b", "c") if kind == "frame" else (0, 1, 2))
    assert len(membership.labels) == 4
    assert membership.codes[0] == membership.codes[3]
    assert membership.labels[membership.codes[0]] == (0, 1)
    assert membership.labels[membership.codes[2]] == ()
    np.testing.assert_array_equal(membership.unions.of_rows(membership.codes).toarray(), MEMBERS)


def test_a_sparse_matrix_where_groups_must_not_overlap_names_all_that_take_it():
    with pytest.raises(ValueError, match="sparse matrix") as error:
        GroupEncoder(sp.csr_array(MEMBERS))
    classes = {name for name in fc.__all__ if isinstance(getattr(fc, name), type)}
    estimators = {name for name in classes if getattr(getattr(fc, name), "_takes_overlapping_groups", False)}
    metrics = {info.name: info.overlapping for info in (find_metric(name)[0] for name in metric_names())}
    takers = estimators | {name for name, overlapping in metrics.items() if overlapping}
    assert len(takers) > 4
    words = set(re.findall(r"\w+", str(error.value).split("Groups that overlap", 1)[1]))
    assert takers == words & {*classes, *metrics}


def test_many_groups_and_rows():
    members = np.random.default_rng(0).random((3000, 70)) < 0.5
    membership = Membership(members)
    assert len(membership.labels) == 3000  # all different
    np.testing.assert_array_equal(membership.unions.of_rows(membership.codes).toarray(), members)


@pytest.mark.parametrize(
    "features",
    [
        MEMBERS[:, 0],
        MEMBERS[:, :1],
        MEMBERS.astype(int),
        pd.DataFrame(MEMBERS[:, :1]),
        pd.DataFrame({"a": [True, False], "b": ["x", "y"]}),
        ["a", "b"],
    ],
    ids=["vector", "column", "integers", "frame of one", "mixed frame", "strings"],
)
def test_what_is_no_membership_matrix(features):
    assert not is_membership(features)
    assert Groups.of(features, overlapping=True).unions is None


def test_columns_are_combined_unless_groups_may_overlap():
    combined, overlapping = Groups.of(MEMBERS), Groups.of(MEMBERS, overlapping=True)
    assert combined.unions is None
    assert combined.names == combined.labels
    assert len(combined.names) == 4
    assert overlapping.names == (0, 1, 2)
    np.testing.assert_array_equal(overlapping.sums(np.arange(1.0, 6.0)), [1 + 2 + 4, 1 + 4, 5])
    np.testing.assert_array_equal(np.sort(combined.sums(np.ones(5))), [1, 1, 1, 2])


def test_a_group_without_rows_is_an_error_with_its_name():
    frame = pd.DataFrame(MEMBERS, columns=["a", "b", "c"])
    frame["empty"] = False
    with pytest.raises(ValueError, match=r"groups \['empty'\] of sensitive_features have no rows"):
        Membership(frame)


def test_a_sparse_matrix_of_other_numbers_is_an_error():
    with pytest.raises(ValueError, match="may only hold True and False"):
        Membership(sp.csr_array(np.array([[0.0, 2.0], [1.0, 0.0]])))


def test_threshold_groups_by_hand():
    frame = pd.DataFrame({"u": [0.0, 1.0, 2.0, 3.0], "v": [3.0, 2.0, 1.0, 0.0], "w": "x"}, index=[5, 6, 7, 8])
    groups = threshold_groups(frame, ["u", "v"], quantiles=[0.0, 0.5], min_share=0.1)
    assert groups.columns.tolist() == ["all", "v>=1.5", "u>=1.5"]  # both at once no row has
    assert groups["u>=1.5"].tolist() == [False, False, True, True]
    assert groups.index.tolist() == [5, 6, 7, 8]
    assert is_membership(groups)
    assert threshold_groups(frame, ["u"], quantiles=2, min_share=0.5).columns.tolist() == ["all"]
    # the same rows by other columns appear once
    twice = threshold_groups(frame.assign(t=2 * frame.u), ["u", "t"], quantiles=2)
    assert len(twice.columns) == 2
    by_number = threshold_groups(frame[["u", "v"]].to_numpy(), [0, 1], quantiles=2)
    assert by_number.columns.tolist() == ["all", "1>=1.5", "0>=1.5"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["z"]}, r"X has no columns \['z'\]"),
        ({"columns": []}, "columns is empty"),
        ({"columns": ["u"], "quantiles": [0.5, 2.0]}, "quantiles must be"),
        ({"columns": ["u"], "quantiles": 0}, "quantiles must be"),
        ({"columns": ["u"], "min_share": 1.0}, "no group has more than min_share=1"),
        ({"columns": ["v"]}, "contain NaN"),
    ],
)
def test_threshold_groups_that_cannot_be(options, message):
    frame = pd.DataFrame({"u": [0.0, 1.0], "v": [0.0, np.nan]})
    with pytest.raises(ValueError, match=message):
        threshold_groups(frame, **options)


def test_cells_leave_out_the_rows_of_the_number_after_the_last():
    cells, values = np.array([0, 2, 3, 0, 3]), np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    np.testing.assert_array_equal(cell_sums(cells, 3), [2, 0, 1])
    np.testing.assert_array_equal(cell_sums(cells, 3, values), [9.0, 0.0, 2.0])
    np.testing.assert_array_equal(cell_maxima(cells, 3, values), [8.0, 0.0, 2.0])


def test_sums_above_cuts_in_any_order():
    scores, cells = np.array([0.5, 1.0, 1.0, 2.0, 3.0]), np.array([0, 0, 1, 2, 1])
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    sums = sums_above(scores, np.array([1.0, 0.0, 3.0, 0.7, 1.0]), cells, 2, values)
    np.testing.assert_array_equal(sums, [[0, 16], [3, 20], [0, 0], [2, 20], [0, 16]])
    assert sums_above(scores, np.empty(0), cells, 2, values).shape == (0, 2)
