"""The quadratic surrogate of the AUC fairness paper: eq. 6 by all pairs of rows; the AUC gap is only reported."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime

from fairconstrained.constraints import AUCGap, PairwiseParity, QuadraticAUCGap
from fairconstrained.metrics.auc_sets import AUC_METRICS
from fairconstrained.views import DifferenceOfConvex, FullBatch, SaddleMoments, Stochastic

each_metric = pytest.mark.parametrize("metric", AUC_METRICS)


def sets_of(metric, data, protected):
    """Numbers of the rows of the four sets, for every difference, as the paper writes them."""
    y, groups = data.y.numpy(), [data.codes == code for code in range(data.n_groups)]
    P, N, every = y > 0, y < 0, np.ones(y.size, dtype=bool)
    paper = {
        "group_auc": lambda a, b: (a, b, every, every),
        "inter_group": lambda a, b: (a & P, b & N, b & P, a & N),
        "intra_group": lambda a, b: (a & P, a & N, b & P, b & N),
        "positive_equality": lambda a, b: (a & P, P, every, every),
        "negative_equality": lambda a, b: (a & N, N, every, every),
        "bpsn_bnsp": lambda a, b: (P, a & N, a & P, N),
    }
    if protected is not None:
        a = groups[data.labels.index(protected)]
        sides = [(a, ~a)]
    elif metric in ("group_auc", "inter_group", "intra_group"):
        sides = list(combinations(groups, 2))
    else:
        sides = [(a, ~a) for a in groups]
    return [[np.flatnonzero(mask) for mask in paper[metric](a, b)] for a, b in sides]


def by_pairs(data, scores, differences, c1):
    """The left-hand side of eq. 6 minus 1 for every difference, then with the AUCs exchanged."""
    weights = data.weights.numpy()

    def mean(loss, above, below):
        """Over h of a row of the first and h' of a row of the second set."""
        pairs = np.outer(weights[above], weights[below])
        return (pairs * loss(scores[above][:, None], scores[below])).sum() / pairs.sum()

    def ell(t):
        return c1 * (t - 1) ** 2

    def side(one, other):
        return mean(lambda h, h_: ell(h_ - h), *one) + mean(lambda h, h_: ell(h - h_), *other) - 1

    first = [side(sets[:2], sets[2:]) for sets in differences]
    return np.array(first + [side(sets[2:], sets[:2]) for sets in differences])


@each_metric
@pytest.mark.parametrize("counts", [(23, 31), (12, 20, 17)], ids=["two groups", "three groups"])
@pytest.mark.parametrize("protected", [None, "b"])
def test_values_are_equation_6(make_data, draw_scores, evaluate, metric, counts, protected):
    data = make_data(counts=counts, weighted=True)
    scores = draw_scores(data) + 3.0
    differences = sets_of(metric, data, protected)
    for c1 in (0.5, 1, 2):
        constraint = QuadraticAUCGap(0.7, constraint=metric, protected=protected, c1=c1).unchecked(data)
        values = evaluate(constraint, "values", scores)
        np.testing.assert_allclose(values, by_pairs(data, scores, differences, c1) - 0.7, atol=1e-12)
        np.testing.assert_array_equal(evaluate(constraint, "plus", scores), values)
        np.testing.assert_array_equal(evaluate(constraint, "minus", scores), np.zeros(values.size))
        assert constraint.exact(scores) == pytest.approx(values.max())


def test_masks(make_data, draw_scores, evaluate):
    data, rng = make_data(weighted=True), np.random.default_rng(0)
    scores = draw_scores(data)
    masks = [rng.random(data.n_samples) < 0.4 for _ in range(4)]
    constraint = QuadraticAUCGap(0.3, constraint=masks).unchecked(data)
    rows = [np.flatnonzero(mask[data.order]) for mask in masks]
    np.testing.assert_allclose(
        evaluate(constraint, "values", scores), by_pairs(data, scores, [rows], 0.5) - 0.3, atol=1e-12
    )
    assert constraint.component_names == ("subset_auc[first - second]", "subset_auc[second - first]")


@each_metric
def test_metric_is_the_exact_gap_and_the_bound_is_on_the_surrogate(make_data, draw_scores, evaluate, metric):
    data = make_data(weighted=True)
    scores = draw_scores(data).round(1)
    constraint, exact = (
        QuadraticAUCGap(0.5, constraint=metric).unchecked(data),
        AUCGap(0.5, constraint=metric).unchecked(data),
    )
    assert constraint.metric(scores) == exact.metric(scores) > 0.01
    assert constraint.name == exact.name == metric
    assert constraint.component_names == exact.component_names
    assert not constraint.bounds_metric
    assert constraint.exact(scores) > exact.exact(scores) + 0.1
    tight = constraint.refined(scores, blur=0.1, margin=0.2)
    np.testing.assert_allclose(evaluate(tight, "values", scores), evaluate(constraint, "values", scores) + 0.2)
    assert tight.exact(scores) == constraint.exact(scores)


@pytest.mark.parametrize("notion", ["inter_group", "intra_group"])
@pytest.mark.parametrize("counts", [(23, 31), (12, 20, 17)], ids=["two groups", "three groups"])
def test_agrees_with_the_partial_fairness_paper(make_data, draw_scores, evaluate, notion, counts):
    """Both papers have the same surrogate of these notions; only the order of the components differs."""
    data = make_data(counts=counts, weighted=True)
    scores = draw_scores(data)
    one = QuadraticAUCGap(0.4, constraint=notion).unchecked(data)
    other = PairwiseParity(0.4, constraint=notion).unchecked(data)
    values, others = (
        dict(zip(constraint.component_names, evaluate(constraint, "values", scores).tolist(), strict=True))
        for constraint in (one, other)
    )
    assert values == {name: pytest.approx(value, abs=1e-12) for name, value in others.items()}


@each_metric
@pytest.mark.parametrize("c1", [0.5, 1.0])
def test_constant_scores(make_data, evaluate, metric, c1):
    data = make_data()
    values = evaluate(
        QuadraticAUCGap(0, constraint=metric, c1=c1).unchecked(data), "values", np.full(data.n_samples, 7.0)
    )
    np.testing.assert_allclose(values, 2 * c1 - 1, atol=1e-12)


@each_metric
def test_gradient(make_data, draw_scores, metric):
    data = make_data(counts=(9, 8), weighted=True)
    constraint, scores, none = QuadraticAUCGap(constraint=metric).unchecked(data), draw_scores(data), torch.empty(0)
    tensor = torch.from_numpy(scores).requires_grad_()
    for j in range(len(constraint.component_names)):
        (gradient,) = torch.autograd.grad(constraint.values(tensor, none)[j], tensor)
        numeric = approx_fprime(scores, lambda s, j=j: float(constraint.values(torch.from_numpy(s), none)[j]), 1e-7)
        np.testing.assert_allclose(gradient, numeric, atol=1e-6)


@each_metric
def test_convex_and_said_so_by_the_quadratics(make_data, draw_scores, evaluate, metric):
    data = make_data(counts=(12, 20, 17), weighted=True)
    constraint = QuadraticAUCGap(constraint=metric).unchecked(data)
    first, second = draw_scores(data), draw_scores(data, 1)
    ends = [evaluate(constraint, "values", scores) for scores in (first, second)]
    assert (sum(ends) / 2 - evaluate(constraint, "values", (first + second) / 2) > 1e-3).all()
    quadratics = constraint.quadratics()
    np.testing.assert_allclose(quadratics.values(torch.from_numpy(first)), ends[0], atol=1e-12)
    assert quadratics.variance.min() >= 0
    assert np.linalg.eigvalsh(quadratics.product).min() > -1e-14


def test_views(make_data):
    constraint = QuadraticAUCGap().unchecked(make_data())
    assert all(isinstance(constraint, view) for view in (FullBatch, DifferenceOfConvex, SaddleMoments))
    assert not isinstance(constraint, Stochastic)  # products of means have no unbiased mini-batches


def test_no_bound_no_components(make_data, draw_scores, evaluate):
    data = make_data()
    scores = draw_scores(data)
    constraint = QuadraticAUCGap(None).unchecked(data)
    assert constraint.component_names == ()
    assert evaluate(constraint, "values", scores).shape == (0,)
    assert constraint.exact(scores) == -np.inf
    assert constraint.metric(scores) == QuadraticAUCGap(1).unchecked(data).metric(scores)


@pytest.mark.parametrize("kappa", [-0.1, np.inf, np.nan, True, "1"])
def test_kappa_out_of_range(make_data, kappa):
    with pytest.raises(ValueError, match="kappa must be a finite number of at least 0 or None"):
        QuadraticAUCGap(kappa).unchecked(make_data())


def test_kappa_may_exceed_one(make_data):
    assert QuadraticAUCGap(10).unchecked(make_data()).kappa == 10.0


@pytest.mark.parametrize("c1", [0.0, -1.0, np.nan])
def test_c1_out_of_range(make_data, c1):
    with pytest.raises(ValueError, match=r"'c1' parameter of .* float in the range \(0.0, inf\)"):
        QuadraticAUCGap(c1=c1).unchecked(make_data())


def test_sets_that_are_wrong_or_empty(make_data):
    data = make_data()
    with pytest.raises(ValueError, match=r"constraint must be one of \[.*\] or four masks, got 'xauc'"):
        QuadraticAUCGap(constraint="xauc").unchecked(data)
    with pytest.raises(ValueError, match=r"protected must be one of the groups \['a', 'b'\].* got 'c'"):
        QuadraticAUCGap(protected="c").unchecked(data)
    with pytest.raises(ValueError, match=r"y must have two classes.*group_auc"):
        QuadraticAUCGap().unchecked(make_data(classes=False))
    with pytest.raises(ValueError, match=r"these have no rows: \{'a, y=[+-]1': 0\}"):
        QuadraticAUCGap(constraint="intra_group").bind(make_data(counts=(1, 30)))
    empty = np.zeros(data.n_samples, dtype=bool)
    with pytest.raises(ValueError, match=r"these have no rows: \{'mask G1': 0\}"):
        QuadraticAUCGap(constraint=[empty, ~empty, ~empty, ~empty]).bind(data)
