"""Pair means against the sum over all pairs, and the weights of the rows of an interval of ranks."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fairconstrained.kernels import LogisticKernel, PiecewisePolynomial, QuadraticKernel
from fairconstrained.pairwise import SoftplusKernel, _means, interval_weights, pair_mean, pair_table
from fairconstrained.surrogates import SURROGATES

EXACT = {
    "ramp": SURROGATES["ramp"].value,
    "ramp plus": SURROGATES["ramp"].plus,
    "smoothstep": SURROGATES["smoothstep"].value,
    "smoothstep plus": SURROGATES["smoothstep"].plus,
    "quadratic": QuadraticKernel(0.7),
    "squared hinge": PiecewisePolynomial(np.array([1.0]), np.array([[0.5, -1.0, 0.5], [0.0, 0.0, 0.0]])),
    "asymmetric": PiecewisePolynomial(np.array([-1.0, 0.5, 2.0]), np.array([[1.0, 0], [0, -1], [-1, 1], [3, -1]])),
    "one piece": PiecewisePolynomial(np.array([0.0]), np.array([[2.0, 1.0], [2.0, 1.0]])),
}
SMOOTH = {
    "logistic": LogisticKernel(),
    "logistic plus": SURROGATES["logistic"].plus,
    "softplus": SoftplusKernel(),
}
each_kernel = pytest.mark.parametrize("kernel", [*EXACT.values(), *SMOOTH.values()], ids=[*EXACT, *SMOOTH])
exact_kernels = pytest.mark.parametrize("kernel", EXACT.values(), ids=EXACT)
smooth_kernels = pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH)
#: Widths at which no two scores of one decimal meet at a knot, where rounding decides about the side.
WIDTHS = (9.73, 0.97, 0.47, 0.03)
#: What the spline may differ from a smooth kernel: value, and derivative in units of the width.
SPLINE, SPLINE_SLOPE = 2e-8, 1e-6


def column(*values):
    return torch.tensor(values, dtype=torch.float64)


def draw(n_first=37, n_second=52, seed=0, ties=True, scale=1.0):
    """Scores with ties within and between the samples, and weights."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal(0.4, 1, n_first), rng.standard_t(2, n_second)
    if ties:
        first, second = np.round(first, 1), np.round(second, 1)
    weights = [rng.uniform(0.1, 2, n) for n in (n_first, n_second)]
    arrays = (scale * first, scale * second, *(w / w.sum() for w in weights))
    return tuple(torch.from_numpy(array) for array in arrays)


def by_pairs(kernel, first, second, first_weights, second_weights, width):
    return first_weights @ kernel((first[:, None] - second) / width) @ second_weights


def with_gradient(mean, kernel, sample, width):
    first, second = (scores.clone().requires_grad_() for scores in sample[:2])
    value = mean(kernel, first, second, *sample[2:], width)
    return value.detach(), torch.autograd.grad(value, (first, second))


def assert_equals_pairs(kernel, sample, width, tolerance):
    value, slopes = with_gradient(pair_mean, kernel, sample, width)
    expected, expected_slopes = with_gradient(by_pairs, kernel, sample, width)
    torch.testing.assert_close(value, expected, rtol=1e-11, atol=tolerance)
    for slope, expected_slope, weights in zip(slopes, expected_slopes, sample[2:], strict=True):
        per_row, expected_per_row = slope / weights * width, expected_slope / weights * width
        slope_tolerance = 1e-11 if tolerance < SPLINE else SPLINE_SLOPE
        torch.testing.assert_close(per_row, expected_per_row, rtol=1e-10, atol=slope_tolerance)


def rounding(sample, width):
    """Largest rounding error of the differences of sums of scores, in widths."""
    scores = torch.cat(sample[:2])
    return max(1e-11, 1e-15 * float(scores.max() - scores.min()) / width)


# --- pair means


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("ties", [False, True])
@exact_kernels
def test_exact_kernels_equal_the_sum_over_pairs(kernel, ties, width):
    assert_equals_pairs(kernel, draw(ties=ties), width, 1e-13)


@pytest.mark.parametrize("width", WIDTHS)
@smooth_kernels
def test_smooth_kernels_equal_the_sum_over_pairs_but_for_the_spline(kernel, width):
    assert_equals_pairs(kernel, draw(), width, SPLINE)


@each_kernel
def test_knots_on_ties_have_the_slope_of_one_side(kernel):
    """Scores of the grid 1/4 meet the knots exactly; both gradients take the same side, as the definition does."""
    first, second, u, v = draw(ties=False)
    sample = (first * 4).round() / 4, (second * 4).round() / 4, u, v
    assert_equals_pairs(kernel, sample, 1.0, SPLINE if kernel in SMOOTH.values() else 1e-13)


@each_kernel
def test_gradient_is_that_of_the_value(kernel):
    """Also where the spline stands in for the kernel: finite differences of the value as computed."""
    first, second, u, v = draw(9, 7, ties=False)
    inputs = first.requires_grad_(), second.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: pair_mean(kernel, a, b, u, v, 0.7), inputs, atol=1e-8)


def test_softplus_of_rows_far_apart_takes_no_spline():
    """A grid over scores a thousand widths apart is mostly empty; pairs that are near are summed one by one."""
    first, second, u, v = draw(60, 45, ties=False)
    sample = torch.cat([500 * first, 500 * first[:5]]), torch.cat([500 * second, 500 * first[:5]]), u, v
    sample = (*sample[:2], *(torch.cat([w, w[:5]]) for w in (u, v)))
    value, slopes = with_gradient(pair_mean, SoftplusKernel(), sample, 1.0)
    # torch's softplus is a straight line from 20 on
    expected, expected_slopes = with_gradient(by_pairs, lambda x: torch.logaddexp(-x, 0 * x), sample, 1.0)
    torch.testing.assert_close(value, expected, rtol=1e-13, atol=0)
    torch.testing.assert_close(slopes, expected_slopes, rtol=0, atol=1e-15)


@smooth_kernels
def test_the_spline_stays_where_it_is_when_the_range_changes(kernel):
    """A row far away changes the extent of the grid, and nothing else."""
    first, second, u, v = draw()
    alone = with_gradient(pair_mean, kernel, (first, second, u, v), 1.0)
    zero = column(0.0)
    for outlier in (-300.3, 517.1, 1e7 + 0.123):
        extended = first, torch.cat([second, column(outlier)]), u, torch.cat([v, zero])
        value, slopes = with_gradient(pair_mean, kernel, extended, 1.0)
        torch.testing.assert_close(value, alone[0], rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(slopes[0], alone[1][0], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(slopes[1][:-1], alone[1][1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", [1e-3, 1e-6])
@each_kernel
def test_tiny_widths(kernel, width):
    assert_equals_pairs(kernel, draw(), width, SPLINE if kernel in SMOOTH.values() else rounding(draw(), width))


@pytest.mark.parametrize("scale", [1e-6, 1e4, 1e7])
@each_kernel
def test_small_and_huge_ranges(kernel, scale):
    tolerance = SPLINE if kernel in SMOOTH.values() else rounding(draw(scale=scale), 1.0)
    assert_equals_pairs(kernel, draw(scale=scale), 1.0, tolerance)


def test_clusters_far_apart():
    """The gaps between them are closed for the grid; distances within and the linear tail remain."""
    first, second, u, v = draw()
    shift = torch.from_numpy(np.random.default_rng(1).choice([0.0, 2e4, -7e5], first.shape[0]))
    for kernel in SMOOTH.values():
        assert_equals_pairs(kernel, (first + shift, second, u, v), 1.0, SPLINE)


def test_narrow_kernels_keep_their_accuracy_among_many_widths():
    """Cubes of distances of 1e5 widths would leave nothing of the digits; local moments do."""
    kernel, (first, second, u, v) = SURROGATES["smoothstep"].value, draw(400, 300, ties=False)
    value, expected = (mean(kernel, first, second, u, v, 1e-5) for mean in (pair_mean, by_pairs))
    torch.testing.assert_close(value, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (6, 1)])
@each_kernel
def test_samples_of_one_row(kernel, sizes):
    assert_equals_pairs(kernel, draw(*sizes), 0.8, SPLINE if kernel in SMOOTH.values() else 1e-13)


@each_kernel
def test_equal_scores(kernel):
    same = torch.full((4,), 1.3, dtype=torch.float64)
    weights = torch.full((4,), 0.25, dtype=torch.float64)
    value, slopes = with_gradient(pair_mean, kernel, (same, same, weights, weights), 2.0)
    torch.testing.assert_close(value, kernel(column(0.0))[0], rtol=0, atol=SPLINE)
    torch.testing.assert_close(slopes[0], -slopes[1], rtol=0, atol=SPLINE_SLOPE)


def test_weights_equal_repeated_rows():
    first, second, _, _ = draw(6, 5)
    counts = torch.tensor([1, 3, 2, 1, 1, 4]), torch.tensor([2, 1, 1, 5, 1])
    repeated = [x.repeat_interleave(n) for x, n in zip((first, second), counts, strict=True)]
    for kernel in (*EXACT.values(), *SMOOTH.values()):
        weighted = pair_mean(kernel, first, second, counts[0].double(), counts[1].double(), 0.5)
        ones = [torch.ones_like(x) for x in repeated]
        torch.testing.assert_close(weighted, pair_mean(kernel, *repeated, *ones, 0.5), rtol=1e-12, atol=1e-12)


def test_surrogates_count_every_pair_once():
    """sigma(x) + sigma(-x) = 1: the two orders of the samples add up to the product of the weights."""
    first, second, u, v = draw()
    for surrogate in SURROGATES.values():
        both = pair_mean(surrogate.value, first, second, u, v) + pair_mean(surrogate.value, second, first, v, u)
        assert both.item() == pytest.approx(1, abs=1e-12)


def test_narrow_surrogates_count_the_pairs_in_order():
    first, second, u, v = draw()
    labels = np.repeat([1, 0], [37, 52])
    scores, weights = torch.cat([first, second]), torch.cat([u, v])
    auc = roc_auc_score(labels, scores, sample_weight=weights)
    for surrogate in SURROGATES.values():
        value = pair_mean(surrogate.value, first, second, u, v, 1e-4)
        assert value.item() == pytest.approx(auc, abs=1e-7)


def test_coarser_grid_when_nodes_run_out(monkeypatch):
    monkeypatch.setattr("fairconstrained.pairwise._grid._MAX_NODES", 64)
    sample = draw(scale=2.0)
    error = abs(pair_mean(LogisticKernel(), *sample, 1.0) - by_pairs(LogisticKernel(), *sample, 1.0))
    assert 1e-8 < error < 1e-2


def test_unknown_kernel():
    with pytest.raises(TypeError, match="does not know how to sum function over pairs"):
        pair_mean(lambda x: x**3, *draw(2, 2))


# --- tables of pair means


TABLE_KERNELS = {name: SURROGATES[name].value for name in ("ramp", "smoothstep", "logistic")}


@pytest.mark.parametrize("sizes", [(1, 1), (37, 52), (5, 1, 30, 17)], ids=str)
@pytest.mark.parametrize("width", [2.3, 0.17, 1e-6])
@pytest.mark.parametrize("kernel", TABLE_KERNELS.values(), ids=TABLE_KERNELS)
def test_a_table_has_the_pair_means_of_all_groups(kernel, width, sizes):
    rng = np.random.default_rng(1)
    scores = torch.from_numpy(np.round(rng.normal(size=sum(sizes)), 1))
    weights = torch.from_numpy(rng.dirichlet(np.ones(sum(sizes))))
    factors = rng.normal(size=(len(sizes), len(sizes))) * (1 - np.eye(len(sizes)))

    def one_by_one(scores):
        rows, parts = scores.split(sizes), weights.split(sizes)
        pairs = [(g, h) for g in range(len(sizes)) for h in range(len(sizes)) if g != h]
        return sum(factors[g, h] * pair_mean(kernel, rows[g], rows[h], parts[g], parts[h], width) for g, h in pairs)

    codes = np.repeat(np.arange(len(sizes)), sizes)
    table, pull = pair_table(kernel, scores.numpy(), weights.numpy(), codes, len(sizes), width)
    assert not table.diagonal().any()
    given = scores.clone().requires_grad_()
    expected = one_by_one(given)
    atol = rounding((scores,), width)
    np.testing.assert_allclose((factors * table).sum(), expected.detach(), rtol=1e-11, atol=atol)
    slopes = torch.autograd.grad(expected, given)[0].numpy()
    np.testing.assert_allclose(pull(factors) * width, slopes * width, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kernel", TABLE_KERNELS.values(), ids=TABLE_KERNELS)
def test_a_table_does_not_depend_on_the_order_of_the_rows(kernel):
    rng = np.random.default_rng(2)
    scores, weights = rng.normal(size=50), rng.uniform(size=50)
    codes, order = rng.integers(0, 4, 50), rng.permutation(50)
    codes[codes == 2] = 3  # a group without rows
    tables = []
    for rows in (np.arange(50), order):
        table, pull = pair_table(kernel, scores[rows], weights[rows], codes[rows], 4, 0.5)
        slopes = np.zeros(50)
        slopes[rows] = pull(np.tile(np.arange(4.0), (4, 1)))
        tables.append((table, slopes))
    for one, other in zip(*tables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert not tables[0][0][2].any()
    assert not tables[0][0][:, 2].any()


@pytest.mark.parametrize(("n", "width"), [(5000, 0.1), (500, 0.5)])
@pytest.mark.parametrize("name", ["ramp", "smoothstep"])
def test_many_rows_of_a_table_go_through_a_spline(name, n, width, monkeypatch):
    """Close to the sums over pairs, with the slopes of the values as computed; rows far apart are summed exactly."""
    rng = np.random.default_rng(3)
    codes, kernel = rng.integers(0, 3, n), TABLE_KERNELS[name]
    scores, weights = rng.normal(size=n) + 0.2 * codes, 1 / np.bincount(codes)[codes]
    factors = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, -1.0], [0.5, 0.0, 0.0]])

    def table(x):
        return pair_table(kernel, x, weights, codes, 3, width)

    on_grid, pull = table(scores)
    direction = rng.normal(size=n)
    for own in (factors, factors * [[1], [0], [0]]):  # the second one leaves the rows of a group out
        ends = [(own * table(scores + step * direction)[0]).sum() for step in (1e-5, -1e-5)]
        assert pull(own) @ direction == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)
    far = np.append(scores, 1e3)  # more nodes than rows
    sparse = pair_table(kernel, far, np.append(weights, 0.0), np.append(codes, 0), 3, width)[0]
    monkeypatch.setattr(_means, "_MANY_ROWS", n + 1)
    exact = table(scores)[0]
    np.testing.assert_allclose(sparse, exact, rtol=1e-11, atol=1e-13)
    assert 0 < np.abs(on_grid - exact).max() < 1e-2 / n


def test_tables_of_other_kernels_are_refused():
    with pytest.raises(TypeError, match="pair_table does not know how to sum QuadraticKernel over pairs"):
        pair_table(QuadraticKernel(1.0), np.arange(2.0), np.ones(2), np.arange(2), 2)


# --- interval weights


def test_interval_weights_by_hand():
    scores, weights = column(0.1, 0.9, 0.5, 0.3), column(0.25, 0.25, 0.25, 0.25)
    np.testing.assert_allclose(interval_weights(scores, weights, 0.0, 0.5), [0, 0.25, 0.25, 0])
    np.testing.assert_allclose(interval_weights(scores, weights, 0.1, 0.6), [0, 0.15, 0.25, 0.1])
    np.testing.assert_allclose(interval_weights(scores, weights, 0.3, 0.4), [0, 0, 0.1, 0], atol=1e-15)
    np.testing.assert_allclose(interval_weights(scores, weights, 0.0, 1.0), weights)
    np.testing.assert_allclose(interval_weights(scores, weights, 0.5, 0.5), np.zeros(4))


def test_tied_rows_share_by_weight():
    scores, weights = column(1.0, 2.0, 1.0, 0.0), column(0.1, 0.2, 0.3, 0.4)
    np.testing.assert_allclose(interval_weights(scores, weights, 0.0, 0.4), [0.05, 0.2, 0.15, 0], atol=1e-15)


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.3), (0.21, 0.77), (0.6, 1.0)])
def test_interval_weights_whatever_the_order_of_the_rows(alpha, beta):
    _, scores, _, weights = draw(seed=2)
    inside = interval_weights(scores, weights, alpha, beta)
    assert inside.sum().item() == pytest.approx(beta - alpha, abs=1e-14)
    assert (inside >= 0).all()
    assert (inside <= weights + 1e-15).all()
    order = torch.from_numpy(np.random.default_rng(0).permutation(scores.shape[0]))
    torch.testing.assert_close(interval_weights(scores[order], weights[order], alpha, beta), inside[order])
    rest = interval_weights(scores, weights, 0.0, alpha) + interval_weights(scores, weights, beta, 1.0)
    torch.testing.assert_close(inside + rest, weights)


@pytest.mark.parametrize("shared", [True, False])
def test_interval_weights_of_several_sets_are_those_of_each(shared):
    """Pieces that all sets share, or a column of pieces for every set; ties within sets and between them."""
    generator = np.random.default_rng(3)
    scores = torch.from_numpy(generator.integers(0, 9, 60) / 4)
    codes = np.sort(generator.integers(0, 3, 60))
    weights = torch.from_numpy(generator.uniform(0.5, 2, 60))
    weights /= torch.from_numpy(np.bincount(codes, weights))[codes]
    alpha, beta = np.array([[0.0, 0.1, 0.2], [0.5, 0.6, 0.7]]), np.array([[0.25, 0.35, 0.3], [0.5, 0.9, 1.0]])
    columns = (alpha[:, :1], beta[:, :1]) if shared else (alpha, beta)
    inside = interval_weights(scores, weights, *columns, codes)
    for code in range(3):
        own = codes == code
        column = 0 if shared else code
        ends = zip(alpha[:, column], beta[:, column], strict=True)
        expected = sum(interval_weights(scores[own], weights[own], *piece) for piece in ends)
        torch.testing.assert_close(inside[own], expected, rtol=0, atol=1e-15)


def test_interval_weights_are_constants():
    scores = column(0.3, 0.1).requires_grad_()
    assert not interval_weights(scores, column(0.5, 0.5), 0.0, 0.7).requires_grad
    weightless = interval_weights(scores, column(1.0, 0.0), 0.0, 0.7)
    np.testing.assert_allclose(weightless, [0.7, 0.0])
