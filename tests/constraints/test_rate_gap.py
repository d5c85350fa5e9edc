"""Gaps of smooth and exact rates, of groups that overlap or not: components, the metric, gradients, granularity."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

from fairconstrained.cells import cell_sums
from fairconstrained.constraints import GroupRates, LossParity, RateGap, compared_groups, mean_gaps
from fairconstrained.data import FairData
from fairconstrained.groups import Groups
from fairconstrained.metrics import cell_means, loss_parity_gap, rate_gap
from fairconstrained.sampling import Sampler
from fairconstrained.views import Exact, RowLosses, Stochastic
from tests.batches import assert_unbiased, on_batches

KAPPA = 0.07
CONSTRAINTS = ("demographic_parity", "equal_opportunity", "equalized_odds", "intersectional")
each_constraint = pytest.mark.parametrize("constraint", CONSTRAINTS)
each_rate = pytest.mark.parametrize("rate", ["sigmoid", "hinge", "indicator"])
each_kind = pytest.mark.parametrize("kind", ["partition", "overlapping", "many overlapping"])


def draw(kind, n=120, seed=0):
    """Data, and what the metrics take for ``sensitive_features`` in the order of the data."""
    rng = np.random.default_rng(seed)
    n_groups = {"partition": 3, "overlapping": 4, "many overlapping": 11}[kind]
    features = rng.integers(0, n_groups, n) if kind == "partition" else rng.random((n, n_groups)) < 0.4
    groups = Groups.of(features, overlapping=True)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X = rng.normal(size=(n, 2)) + 0.5 * np.atleast_2d(features.T)[0][:, None]
    data = FairData.from_arrays(X, y, groups.codes, groups.labels, rng.uniform(0.3, 3.0, n), groups.unions)
    return data, features[data.order]


def scores_of(data):
    return np.random.default_rng(3).normal(size=data.n_samples) + 0.3 * data.X[:, 0] + 0.2


def measured(data, features, scores, metric=rate_gap, **options):
    columns = {"sensitive_features": features, "sample_weight": data.weights.numpy()}
    return metric(data.y.numpy(), scores, **columns, **options)


def components(constraint, scores, aux=None):
    aux = constraint.initial_aux(scores) if aux is None else aux
    return constraint.values(torch.from_numpy(scores), torch.from_numpy(aux)).numpy()


@each_kind
@pytest.mark.parametrize(
    "constraint",
    [
        RateGap(0.3, constraint="equalized_odds"),
        GroupRates(rule="to_overall", kappa=0.3),
        GroupRates("positive_predictive_value", kappa=0.3),
    ],
    ids=["equalized odds", "overall", "predictive values"],
)
def test_metrics_of_several_models_at_once(constraint, kind, monkeypatch):
    """They are those of one model after the other, and the rows are summed up as often as for one."""
    data, _ = draw(kind)
    bound = constraint.unchecked(data)
    scores = np.random.default_rng(1).normal(size=(5, data.n_samples)) + np.linspace(-3, 3, 5)[:, None]
    expected, counts = [bound.metric(of_one) for of_one in scores], []
    for module in (mean_gaps, cell_means):
        monkeypatch.setattr(module, "cell_sums", lambda *args: counts.append(1) or cell_sums(*args))
    bound.metric(scores[0])
    n_single = len(counts)
    np.testing.assert_allclose(bound.metrics(scores), expected, atol=1e-14)
    assert len(counts) == 2 * n_single


def test_the_value_of_decisions_needs_no_table_of_the_groups(monkeypatch):
    data, features = draw("partition")
    y, scores, weights = data.y.numpy(), scores_of(data), data.weights.numpy()
    expected = rate_gap(y, scores, sensitive_features=features, sample_weight=weights, constraint="equalized_odds")
    monkeypatch.setattr(compared_groups, "by_label", None)
    constraint = RateGap(KAPPA, constraint="equalized_odds")
    assert constraint.value_of_decisions(data, scores) == pytest.approx(expected, abs=1e-14)


@each_kind
@pytest.mark.parametrize(
    "options",
    [
        {"constraint": "equalized_odds"},
        {"constraint": "intersectional"},
        {"constraint": "intersectional", "rate": "hinge", "agg": "mean"},
    ],
)
def test_weights_of_rows_for_several_combinations_at_once(options, kind):
    bound = RateGap(KAPPA, **options).unchecked(draw(kind)[0])
    combinations = np.random.default_rng(1).normal(size=(3, len(bound.component_names)))
    for together, each in zip(
        bound.row_weights(combinations), zip(*map(bound.row_weights, combinations), strict=True), strict=True
    ):
        np.testing.assert_allclose(together, each, atol=1e-15)


@each_kind
@each_rate
@each_constraint
def test_the_metric_is_that_of_the_package(constraint, rate, kind):
    data, features = draw(kind)
    scores = scores_of(data)
    bound = RateGap(KAPPA, constraint=constraint, rate=rate).unchecked(data)
    gap = measured(data, features, scores, constraint=constraint, rate=rate)
    assert gap > 0.01
    assert bound.metric(scores) == pytest.approx(gap)
    assert bound.exact(scores) == pytest.approx(gap - KAPPA)
    assert all(isinstance(bound, view) for view in (RowLosses, Stochastic, Exact))


@each_kind
@pytest.mark.parametrize("rate", ["sigmoid", "hinge"])
@each_constraint
def test_the_largest_component_is_the_metric(constraint, rate, kind):
    data, features = draw(kind)
    scores = scores_of(data)
    bound = RateGap(KAPPA, constraint=constraint, rate=rate).unchecked(data)
    gap = measured(data, features, scores, constraint=constraint, rate=rate)
    share = 0.5 if bound.n_aux else 1.0
    assert components(bound, scores).max() == pytest.approx(share * (gap - KAPPA), abs=1e-8)
    assert len(bound.component_names) == len(set(bound.component_names))
    assert bool(bound.n_aux) == (kind == "many overlapping" and constraint != "intersectional")


@each_kind
@each_constraint
def test_a_refined_indicator_has_the_values_of_the_metric(constraint, kind):
    data, features = draw(kind)
    scores = scores_of(data)
    bound = RateGap(KAPPA, constraint=constraint, rate="indicator").unchecked(data)
    refined = bound.refined(scores, blur=0.05, margin=0.01)
    gap = measured(data, features, scores, constraint=constraint)
    share = 0.5 if bound.n_aux else 1.0
    assert components(refined, scores).max() == pytest.approx(share * (gap - KAPPA + 0.01))
    assert components(bound, scores).max() != pytest.approx(share * (gap - KAPPA), abs=1e-3)
    # the slopes are those of a narrow sigmoid, which the correction leaves alone
    assert refined.function.smooth.width == pytest.approx(
        0.05 * np.sqrt(np.cov(scores, aweights=data.weights.numpy(), ddof=0)) * np.sqrt(3) / np.pi
    )
    constant = bound.refined(np.ones_like(scores), blur=0.05, margin=0.0)
    assert constant.function.smooth == bound.function.smooth
    assert constant.metric(np.ones_like(scores)) == pytest.approx(0.0, abs=1e-12)


@each_kind
@each_rate
def test_gradients(rate, kind):
    data, _ = draw(kind)
    scores = scores_of(data)
    for constraint in CONSTRAINTS:
        bound = RateGap(KAPPA, constraint=constraint, rate=rate).unchecked(data)
        aux = torch.from_numpy(bound.initial_aux(scores)).requires_grad_()
        given = torch.from_numpy(scores).requires_grad_()
        rng = np.random.default_rng(1)
        multipliers = torch.from_numpy(rng.random(len(bound.component_names)))
        with torch.enable_grad():
            slopes = torch.autograd.grad(multipliers @ bound.values(given, aux), (given, aux))
        step = rng.normal(size=scores.size)
        for eps in (1e-6, -1e-6):
            moved = components(bound, scores + eps * step, aux.detach().numpy())
            change = multipliers.numpy() @ (moved - components(bound, scores, aux.detach().numpy()))
            assert change / eps == pytest.approx(float(slopes[0].numpy() @ step), rel=1e-3, abs=1e-6)
        if aux.numel():
            more = components(bound, scores, aux.detach().numpy() + 0.1)
            change = multipliers.numpy() @ (more - components(bound, scores, aux.detach().numpy()))
            assert change == pytest.approx(0.1 * float(slopes[1].sum()))


def test_overlapping_groups_by_hand():
    """Rows 0 and 1 are in both groups, 2 in the first, 3 in the second, 4 in none; 0, 2 and 4 are positive."""
    members = np.array([[1, 1], [1, 1], [1, 0], [0, 1], [0, 0]], dtype=bool)
    groups, y = Groups.of(members, overlapping=True), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    data = FairData.from_arrays(np.zeros((5, 1)), y, groups.codes, groups.labels, unions=groups.unions)
    scores = np.array([1.0, -1.0, 1.0, -1.0, 1.0])[data.order]
    pairs = RateGap(0.1, rate="indicator").unchecked(data)
    assert pairs.metric(scores) == pytest.approx(2 / 3 - 1 / 3)
    assert pairs.component_names == ("demographic_parity[0 - 1]", "demographic_parity[1 - 0]")
    assert pairs.granularity == pytest.approx(1 / 3)
    against_all = RateGap(0.1, rate="indicator", constraint="intersectional").unchecked(data)
    assert against_all.metric(scores) == pytest.approx(max(abs(2 / 3 - 3 / 5), abs(1 / 3 - 3 / 5)))
    # the hinge is zero but for row 3, whose score 1 - (-1)(-1) is zero too: all are on the right side by one
    assert RateGap(0.1, rate="hinge", constraint="intersectional").unchecked(data).metric(scores) == 0.0
    wrong = np.where(data.order == 2, -1.0, 1.0) * scores  # the third row, of the first group
    assert RateGap(0.1, rate="hinge").unchecked(data).metric(wrong) == pytest.approx(2 / 3)


@pytest.mark.parametrize("agg", ["max", "mean"])
def test_no_group_may_have_more_loss_than_all_rows(agg):
    data, features = draw("overlapping")
    scores = scores_of(data)
    options = {"constraint": "intersectional", "rate": "hinge"}
    bound = RateGap(KAPPA, **options, agg=agg).unchecked(data)
    _, table = measured(data, features, scores, **options, return_groups=True)
    losses = np.maximum(1 - data.y.numpy() * scores, 0)
    above = table["rate"].to_numpy() - data.weights.numpy() @ losses
    assert (above < 0).any()
    assert (above > 0).any()
    expected = above if agg == "max" else [above.mean()]
    np.testing.assert_allclose(components(bound, scores), np.array(expected) - KAPPA, atol=1e-8)
    assert bound.metric(scores) == pytest.approx(getattr(above, agg)())
    assert measured(data, features, scores, **options, agg=agg) == pytest.approx(getattr(above, agg)())


@each_constraint
def test_groups_that_do_not_overlap_are_the_same_as_a_matrix(constraint):
    codes = np.random.default_rng(0).integers(0, 3, 90)
    matrix = codes[:, None] == np.arange(3)
    y = np.where(np.random.default_rng(1).random(90) < 0.5, 1.0, -1.0)
    values = []
    for features in (codes, matrix, sp.csc_matrix(matrix)):
        groups = Groups.of(features, overlapping=True)
        data = FairData.from_arrays(y[:, None], y, groups.codes, groups.labels, unions=groups.unions)
        scores = np.random.default_rng(2).normal(size=90)[data.order]
        bound = RateGap(KAPPA, constraint=constraint, rate="sigmoid").unchecked(data)
        values.append((bound.component_names, components(bound, scores)))
    assert values[0][0] == values[1][0] == values[2][0]
    np.testing.assert_allclose(values[0][1], values[1][1])
    np.testing.assert_allclose(values[1][1], values[2][1])


@pytest.mark.parametrize("small_groups", ["error", "merge", "ignore"])
def test_small_groups_that_overlap(small_groups):
    members = np.random.default_rng(0).random((200, 5)) < [0.5, 0.4, 0.3, 0.06, 0.05]
    groups = Groups.of(members, overlapping=True)
    sizes, least = members.sum(axis=0), 16
    assert sizes[3:].max() < least < min(sizes[:3].min(), members[:, 3:].any(axis=1).sum())
    y = np.where(np.random.default_rng(1).random(200) < 0.5, 1.0, -1.0)
    data = FairData.from_arrays(y[:, None], y, groups.codes, groups.labels, unions=groups.unions)
    options = {"rate": "sigmoid", "min_group_size": least, "small_groups": small_groups}
    constraint = RateGap(KAPPA, constraint="intersectional", **options)
    if small_groups == "error":
        with pytest.raises(ValueError, match=re.escape(str({"3": int(sizes[3]), "4": int(sizes[4])}))):
            constraint.unchecked(data)
        return
    bound, scores = constraint.unchecked(data), scores_of(data)
    kept = [members[:, g] for g in range(3)] + [members[:, 3:].any(axis=1)] * (small_groups == "merge")
    rates = 1 / (1 + np.exp(-scores))
    expected = max(abs(rates[rows[data.order]].mean() - rates.mean()) for rows in kept)
    assert bound.metric(scores) == pytest.approx(expected)
    assert bound.groups.names[3:] == (("(small groups)",) * 2 if small_groups == "merge" else (None, None))


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
@pytest.mark.parametrize("reference", ["pairwise", "overall"])
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_losses_of_groups_that_overlap(constraint, reference, loss):
    data, features = draw("overlapping")
    scores = scores_of(data)
    bound = LossParity(KAPPA, constraint=constraint, reference=reference, loss=loss).unchecked(data)
    options = {"constraint": constraint, "reference": reference, "loss": loss}
    gap, table = measured(data, features, scores, loss_parity_gap, **options, return_groups=True)
    assert bound.metric(scores) == pytest.approx(gap)
    assert components(bound, scores).max() == pytest.approx(gap - KAPPA, abs=1e-8)
    assert table.n_samples.tolist() == features.sum(axis=0).tolist()


@pytest.mark.slow
def test_batches_of_overlapping_groups_are_unbiased():
    data, _ = draw("overlapping", n=60)
    bound = RateGap(KAPPA, constraint="intersectional", rate="sigmoid").unchecked(data)
    scores = scores_of(data)
    batches = Sampler.of(data, 30, 0.0, bound.strata).batches(np.random.default_rng(0), 4000)
    # the means of groups in a batch are ratios, which are unbiased up to the square of their noise
    draws = on_batches(bound, data, scores, batches, components)
    assert_unbiased(draws, components(bound, scores), tolerance=0.01)
    assert np.std(draws, axis=0).min() > 0.01


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kappa": 1.5}, "kappa must be in [0, 1], got 1.5"),
        ({"kappa": -0.1, "rate": "hinge"}, "kappa must be a finite number of at least 0"),
        ({"constraint": "parity"}, "'constraint' parameter of RateGap must be a str among"),
        ({"rate": "step"}, "'rate' parameter of RateGap must be a str among"),
        ({"agg": "sum"}, "'agg' parameter of RateGap must be a str among"),
        ({"agg": "mean"}, "agg='mean' is for constraint='intersectional' with rate='hinge'"),
        ({"small_groups": "drop"}, "'small_groups' parameter of RateGap must be a str among"),
        ({"min_group_size": -1}, "'min_group_size' parameter of RateGap must be an int in the range [0, inf"),
        ({"min_group_size": "all"}, "or a str among {'auto'}. Got 'all' instead"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    constraint = RateGap(**parameters)
    assert clone(constraint).get_params() == constraint.get_params()
    with pytest.raises(ValueError, match=re.escape(message)):
        constraint.unchecked(draw("partition")[0])


def test_no_bound_no_components():
    data, _ = draw("overlapping")
    bound = RateGap(None, rate="indicator").unchecked(data)
    assert bound.component_names == ()
    assert bound.exact(scores_of(data)) <= 0
