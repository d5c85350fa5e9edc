"""Pairwise parity: the surrogate is a mean over pairs that are never formed, and kappa bounds that surrogate."""

from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime

from fairconstrained.constraints import PairwiseParity
from fairconstrained.constraints.pairwise_auc import PAIRWISE_TERMS
from fairconstrained.metrics import inter_group_auc_gap, intra_group_auc_gap, partial_group_auc_gap
from fairconstrained.views import Stochastic

METRICS = {
    "group_auc": partial_group_auc_gap,
    "inter_group": inter_group_auc_gap,
    "intra_group": intra_group_auc_gap,
}
each_notion = pytest.mark.parametrize("notion", sorted(PAIRWISE_TERMS))
each_count = pytest.mark.parametrize("counts", [(23, 31), (12, 20, 17)], ids=["two groups", "three groups"])


def by_pairs(notion, data, scores):
    """Eqs. 102, 105 and 107 at kappa = 0, by all pairs of rows; one value for every ordered pair of groups."""
    y, weights = data.y.numpy(), data.weights.numpy()
    groups = [data.codes == code for code in range(data.n_groups)]

    def sigma(first, second):
        pairs = np.outer(weights[first], weights[second])
        return (pairs * (1 + scores[first][:, None] - scores[second]) ** 2 / 2).sum() / pairs.sum()

    formulas = {
        "group_auc": lambda k, h: sigma(k, h) - 0.5,
        "inter_group": lambda k, h: sigma(k & (y > 0), h & (y < 0)) + sigma(k & (y < 0), h & (y > 0)) - 1,
        "intra_group": lambda k, h: sigma(k & (y > 0), k & (y < 0)) + sigma(h & (y < 0), h & (y > 0)) - 1,
    }
    return [formulas[notion](k, h) for k, h in permutations(groups, 2)]


@each_notion
@each_count
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_the_means_over_pairs(make_data, draw_scores, evaluate, notion, counts, weighted):
    data = make_data(counts=counts, weighted=weighted)
    scores = draw_scores(data) + 3.0
    constraint = PairwiseParity(0.7, constraint=notion).unchecked(data)
    values = evaluate(constraint, "values", scores)
    np.testing.assert_allclose(values, np.array(by_pairs(notion, data, scores)) - 0.7, atol=1e-12)
    np.testing.assert_array_equal(evaluate(constraint, "plus", scores), values)
    np.testing.assert_array_equal(evaluate(constraint, "minus", scores), np.zeros(values.size))
    assert constraint.exact(scores) == pytest.approx(values.max())
    names = [f"{notion}[{a} - {b}]" for a, b in permutations("abc"[: len(counts)], 2)]
    assert list(constraint.component_names) == names


def test_by_hand(make_data, evaluate):
    """Scores 1 in group a and 0 in group b: (1 + 1)^2 / 2 - 1/2 and (1 - 1)^2 / 2 - 1/2."""
    data = make_data(counts=(4, 6))
    scores = 1.0 - data.codes
    values = evaluate(PairwiseParity(0.25).unchecked(data), "values", scores)
    np.testing.assert_allclose(values, [1.5 - 0.25, -0.5 - 0.25])


@each_notion
def test_gradient(make_data, draw_scores, notion):
    data = make_data(counts=(9, 8), weighted=True)
    constraint, scores = PairwiseParity(constraint=notion).unchecked(data), draw_scores(data)
    tensor = torch.from_numpy(scores).requires_grad_()
    (gradient,) = torch.autograd.grad(constraint.values(tensor, torch.empty(0))[0], tensor)
    numeric = approx_fprime(scores, lambda s: float(constraint.values(torch.from_numpy(s), torch.empty(0))[0]), 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


@each_notion
@each_count
def test_metric_is_the_exact_gap(make_data, draw_scores, notion, counts):
    data = make_data(counts=counts, weighted=True)
    scores = np.round(draw_scores(data), 1)  # ties
    arguments = {"sensitive_features": data.codes, "sample_weight": data.weights.numpy()}
    expected = METRICS[notion](data.y.numpy(), scores, **arguments)
    assert expected > 0.01
    assert PairwiseParity(constraint=notion).unchecked(data).metric(scores) == pytest.approx(expected)


def test_the_bound_is_on_the_surrogate_and_the_margin_tightens_it(make_data, draw_scores, evaluate):
    data = make_data()
    scores = draw_scores(data)
    constraint = PairwiseParity(0.5).unchecked(data)
    tight = constraint.refined(scores, blur=0.1, margin=0.2)
    np.testing.assert_allclose(evaluate(tight, "values", scores), evaluate(constraint, "values", scores) + 0.2)
    assert tight.exact(scores) == constraint.exact(scores)
    assert constraint.exact(scores) > 0.1 > constraint.metric(scores) - 0.5
    assert not constraint.bounds_metric


@each_notion
def test_constant_scores_are_fair(make_data, evaluate, notion):
    data = make_data()
    constraint = PairwiseParity(0, constraint=notion).unchecked(data)
    np.testing.assert_allclose(evaluate(constraint, "values", np.full(data.n_samples, 7.0)), 0, atol=1e-12)


def test_no_bound_no_components(make_data, draw_scores, evaluate):
    data = make_data()
    scores = draw_scores(data)
    constraint = PairwiseParity(None).unchecked(data)
    assert constraint.component_names == ()
    assert evaluate(constraint, "values", scores).shape == (0,)
    assert constraint.exact(scores) == -np.inf
    assert constraint.metric(scores) == PairwiseParity(1).unchecked(data).metric(scores)


def test_products_of_means_have_no_unbiased_batches(make_data):
    assert not isinstance(PairwiseParity().unchecked(make_data()), Stochastic)


@pytest.mark.parametrize("kappa", [-0.1, np.inf, np.nan, True, "1"])
def test_kappa_out_of_range(make_data, kappa):
    with pytest.raises(ValueError, match="kappa must be a finite number of at least 0 or None"):
        PairwiseParity(kappa).unchecked(make_data())


def test_unknown_notion(make_data):
    with pytest.raises(ValueError, match=r"'constraint' parameter of .*'group_auc'.* Got 'xauc'"):
        PairwiseParity(constraint="xauc").unchecked(make_data())


def test_labels_are_needed_where_they_are_compared(make_data):
    data = make_data(classes=False)
    PairwiseParity(constraint="group_auc").unchecked(data)
    with pytest.raises(ValueError, match=r"y must have two classes.*group_auc"):
        PairwiseParity(constraint="inter_group").unchecked(data)


def test_an_empty_cell_prints_the_counts(make_data):
    data = make_data(counts=(1, 30))
    with pytest.raises(ValueError, match=r"intra_group compares .* no rows: \{'a, y=[+-]1': 0\}. Pass more rows"):
        PairwiseParity(constraint="intra_group").bind(data)
