"""Surrogates: group means of every kernel against the definition, their split, and the limit of width zero."""

import numpy as np
import pytest
import torch

from fairconstrained import kernels
from fairconstrained.kernels import _WORTH_A_TABLE, _Bins
from fairconstrained.surrogates import SURROGATES

NAMES = sorted(SURROGATES)
PARTS = ("value", "plus", "minus")
KERNELS = [(name, part) for name in NAMES for part in PARTS]
WIDTHS = (3.0, 1.0, 0.2, 0.01)


@pytest.fixture(scope="module", params=[False, True], ids=["unweighted", "weighted"])
def data(request, make_data):
    return make_data(counts=(17, 1, 30), weighted=request.param)


@pytest.fixture(scope="module")
def scores(data):
    return torch.from_numpy(np.random.default_rng(3).normal(size=data.n_samples))


@pytest.fixture(params=[0, kernels._FEW_PAIRS], ids=["bins", "pairs"])
def both_ways(request, monkeypatch):
    """Polynomials by bins, and by pairs of a row and a threshold."""
    monkeypatch.setattr(kernels, "_FEW_PAIRS", request.param)


def levels(*values):
    return torch.tensor(values, dtype=torch.float64)


def naive_means(kernel, scores, thresholds, width, cells):
    """The definition, one group and threshold at a time."""
    return torch.stack(
        [
            torch.stack([cells.weights[rows] @ kernel((scores[rows] - theta) / width) for theta in thresholds])
            for rows in cells.slices
        ]
    )


# --- group means


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("name", "part"), KERNELS)
def test_group_means_are_the_definition(data, scores, name, part, width):
    kernel = getattr(SURROGATES[name], part)
    thresholds = levels(0.3, -1.2, 0.3, 0.31, 2.0)  # not sorted, one of them twice
    expected = naive_means(kernel, scores, thresholds, width, data.groups)
    means = kernel.group_means(scores, thresholds, width, data.groups)
    assert means.shape == (3, 5)
    torch.testing.assert_close(means, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("width", [1e-3, 1e-5])
@pytest.mark.parametrize("name", NAMES)
def test_group_means_at_tiny_widths_and_distant_thresholds(data, scores, name, width):
    kernel = SURROGATES[name].value
    thresholds = levels(-2.0, -0.4, 0.3, 1.7)  # thousands of widths apart
    expected = naive_means(kernel, scores, thresholds, width, data.groups)
    torch.testing.assert_close(
        kernel.group_means(scores, thresholds, width, data.groups), expected, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("name", NAMES)
def test_group_means_of_more_rows_than_a_block(make_data, name):
    data = make_data(counts=(20_000, 18_000))
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=data.n_samples))
    kernel, thresholds = SURROGATES[name].value, levels(-0.5, 0.5)
    expected = naive_means(kernel, scores, thresholds, 0.3, data.groups)
    torch.testing.assert_close(kernel.group_means(scores, thresholds, 0.3, data.groups), expected)


@pytest.mark.parametrize("width", [1.0, 0.05, 1e-6])
@pytest.mark.parametrize("thresholds", [[0.1], [0.3, 0.3], [-2.0, -0.4, 0.3, 1.7], np.linspace(0.2, 0.21, 30)], ids=len)
def test_with_a_table_bins_are_those_of_a_binary_search(thresholds, width):
    bins = _Bins(np.asarray(thresholds), width, SURROGATES["smoothstep"].value, _WORTH_A_TABLE)
    edges = bins.edges
    around = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    scores = np.concatenate([around, np.random.default_rng(0).normal(size=500), [-1e6, 1e6]])
    np.testing.assert_array_equal(bins.search(scores), np.searchsorted(edges, scores))


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(("name", "part"), KERNELS)
def test_tied_scores_and_a_threshold_on_them(make_data, name, part):
    data = make_data(counts=(4, 4))
    scores, thresholds = levels(0, 0, 1, 1, 0, 1, 1, 1), levels(0, 1)
    kernel = getattr(SURROGATES[name], part)
    expected = naive_means(kernel, scores, thresholds, 0.5, data.groups)
    torch.testing.assert_close(kernel.group_means(scores, thresholds, 0.5, data.groups), expected)


@pytest.mark.parametrize("width", [1.0, 0.2])
@pytest.mark.parametrize(("name", "part"), KERNELS)
def test_gradients_in_scores_and_thresholds(data, scores, name, part, width):
    kernel = getattr(SURROGATES[name], part)
    thresholds = levels(0.3, -1.2, 0.9).requires_grad_()
    inputs = scores.clone().requires_grad_(), thresholds
    assert torch.autograd.gradcheck(lambda s, t: kernel.group_means(s, t, width, data.groups), inputs)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(("name", "part"), KERNELS)
def test_gradient_equals_that_of_the_definition(data, scores, name, part):
    kernel, cotangent = getattr(SURROGATES[name], part), torch.linspace(-1, 2, 9, dtype=torch.float64).reshape(3, 3)
    gradients = []
    for means in (kernel.group_means, lambda *args: naive_means(kernel, *args)):
        s, t = scores.clone().requires_grad_(), levels(0.3, -1.2, 0.9).requires_grad_()
        gradients.append(torch.autograd.grad((cotangent * means(s, t, 0.1, data.groups)).sum(), (s, t)))
    for ours, definition in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, definition, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "part"), KERNELS)
def test_no_thresholds_give_an_empty_table(data, scores, name, part):
    empty = levels()
    assert getattr(SURROGATES[name], part).group_means(scores, empty, 1.0, data.groups).shape == (3, 0)


@pytest.mark.parametrize("name", NAMES)
def test_no_thresholds_through_the_surrogate(data, scores, name):
    surrogate = SURROGATES[name]
    tables = (surrogate.rates(scores, levels(), data.groups), *surrogate.split_rates(scores, levels(), data.groups))
    assert [tuple(table.shape) for table in tables] == [(3, 0)] * 3


# --- shape and split


@pytest.mark.parametrize("name", NAMES)
def test_value_rises_from_zero_to_one_and_is_symmetric(name):
    x = torch.linspace(-40, 40, 4001, dtype=torch.float64)
    value = SURROGATES[name].value(x)
    assert value[0] < 1e-15
    assert value[-1] > 1 - 1e-15
    assert (value.diff() >= 0).all()
    torch.testing.assert_close(value + value.flip(0), torch.ones_like(x))


@pytest.mark.parametrize(("name", "steep"), [("logistic", 60.0), ("ramp", 0.5), ("smoothstep", 1.0)])
def test_spread_is_the_standard_deviation_of_the_steep_part_of_the_slope(name, steep):
    x = torch.linspace(-steep, steep, 120_001, dtype=torch.float64)
    slope = SURROGATES[name].value(x).diff()
    middle = (x[1:] + x[:-1]) / 2
    assert slope.sum() > 0.8  # nearly all of the rise
    # 2 %: the foot of the smoothstep stands below its steep part, too
    assert (slope @ middle**2 / slope.sum()).sqrt().item() == pytest.approx(SURROGATES[name].spread, rel=0.02)


def test_surrogates_of_equal_blur_have_equal_spread_in_units_of_the_scores():
    blurs = [s.with_blur(0.3).width * s.spread for s in SURROGATES.values()]
    np.testing.assert_allclose(blurs, 0.3)
    assert SURROGATES["ramp"].with_width(0.7).width == 0.7


@pytest.mark.parametrize("name", NAMES)
def test_plus_minus_minus_is_the_value(data, scores, name):
    surrogate = SURROGATES[name].with_width(0.4)
    x = torch.linspace(-5, 5, 401, dtype=torch.float64)
    torch.testing.assert_close(surrogate.plus(x) - surrogate.minus(x), surrogate.value(x))
    plus, minus = surrogate.split_rates(scores, levels(-0.5, 0.8), data.groups)
    torch.testing.assert_close(plus - minus, surrogate.rates(scores, levels(-0.5, 0.8), data.groups))


@pytest.mark.parametrize("part", ["plus", "minus"])
@pytest.mark.parametrize("name", NAMES)
def test_parts_are_convex(name, part):
    x = torch.linspace(-6, 6, 2401, dtype=torch.float64)
    second = getattr(SURROGATES[name], part)(x).diff().diff()
    assert second.min() > -1e-13
    assert second.max() > 1e-6  # and not all of them linear


@pytest.mark.parametrize("part", ["plus", "minus"])
@pytest.mark.parametrize("name", NAMES)
def test_parts_are_jointly_convex_in_scores_and_thresholds(data, name, part):
    rng = np.random.default_rng(5)
    kernel = getattr(SURROGATES[name], part)

    def means(point):
        return kernel.group_means(point[:-2].contiguous(), point[-2:].contiguous(), 0.5, data.groups)

    for _ in range(50):
        a, b = (torch.from_numpy(rng.normal(size=data.n_samples + 2)) for _ in range(2))
        assert (means((a + b) / 2) <= (means(a) + means(b)) / 2 + 1e-12).all()


@pytest.mark.parametrize("name", NAMES)
def test_limit_of_width_zero_is_the_exact_rate(data, scores, name):
    thresholds = levels(-1.0, -0.2, 0.4, 1.3)
    exact = torch.stack(
        [
            (data.group_weights[rows, None] * (scores[rows, None] > thresholds)).sum(dim=0, dtype=torch.float64)
            for rows in data.slices
        ]
    )
    errors = [
        (SURROGATES[name].with_width(width).rates(scores, thresholds, data.groups) - exact).abs().max().item()
        for width in (1.0, 1e-7)
    ]
    assert errors[0] > 0.05
    assert errors[-1] < 1e-12
