"""Terms on mini-batches equal those of the package on the same rows, whatever the order, type and coding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fairconstrained import metrics
from fairconstrained.constraints import (
    AUCGap,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    GroupRates,
    LossParity,
    MinorityShare,
    QuadraticAUCGap,
    RateGap,
    StatisticalParity,
)
from fairconstrained.data import FairData
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.objectives import CorrelationPenalty, GroupLoss, Logistic, PairwiseAUC, Squared
from fairconstrained.torch import bind

CONSTRAINTS = {
    "rate": RateGap(0.05),
    "odds": RateGap(0.05, constraint="equalized_odds", rate="sigmoid"),
    "loss": LossParity(0.05),
    "partial": DemographicParity(0.2, interval=(0.1, 0.6)),
    "opportunity": EqualOpportunity(0.1),
    "partial odds": EqualizedOdds(0.1),
    "statistical": StatisticalParity(0.1, n_levels=3),
    "auc": AUCGap(0.1),
    "share": MinorityShare(0.3),
}
#: Metrics of the package, which read natural rows, by constraint.
METRICS = {
    "rate": lambda y, s, g: metrics.rate_gap(y, s, sensitive_features=g),
    "odds": lambda y, s, g: metrics.rate_gap(y, s, sensitive_features=g, constraint="equalized_odds", rate="sigmoid"),
    "loss": lambda y, s, g: metrics.loss_parity_gap(y, s, sensitive_features=g),
    "auc": lambda y, s, g: metrics.inter_group_auc_gap(y, s, sensitive_features=g),
}


def reference(term, rows, part):
    """The term on the part, bound and ordered by the package itself."""
    X, y, codes = np.empty((len(rows.y), 0)), 2.0 * rows.y.numpy() - 1, rows.groups.numpy()
    whole = FairData.from_arrays(X, y, codes, (0, 1))
    data = FairData.from_arrays(X[part], y[part], codes[part], (0, 1))
    moved = term.bind(whole).on(data)
    scores = rows.scores[part][data.order].clone().requires_grad_()
    aux = torch.from_numpy(moved.initial_aux(scores.detach().numpy())) if getattr(moved, "n_aux", 0) else scores[:0]
    values = moved.values(scores, aux.detach())
    slopes = torch.autograd.grad(values @ torch.arange(1.0, len(values) + 1).double(), scores)[0]
    in_order = torch.empty_like(slopes)
    in_order[data.order] = slopes
    return moved, values.detach(), in_order, scores.detach().numpy()


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_values_slopes_and_metric_are_those_of_the_package(natural, name):
    part = np.random.default_rng(1).permutation(400)[:180]
    moved, values, slopes, ordered = reference(CONSTRAINTS[name], natural, part)
    constraint = bind(CONSTRAINTS[name], natural.y, natural.groups)
    scores = natural.scores[part].clone().requires_grad_()
    c = constraint(scores, natural.y[part], natural.groups[part])
    torch.testing.assert_close(c.values.detach(), values, rtol=0, atol=1e-14)
    (c.values @ torch.arange(1.0, len(values) + 1).double()).backward()
    torch.testing.assert_close(scores.grad, slopes, rtol=0, atol=1e-14)
    assert c.gap == moved.metric(ordered)
    assert c.excess == moved.exact(ordered)
    assert c.names == constraint.component_names
    assert len(c.names) == len(values)


@pytest.mark.parametrize("name", METRICS)
def test_gap_is_the_metric_of_natural_rows(natural, name):
    c = bind(CONSTRAINTS[name], natural.y, natural.groups)(natural.scores, natural.y, natural.groups)
    expected = METRICS[name](natural.y.numpy(), natural.scores.numpy(), natural.groups.numpy())
    assert c.gap == pytest.approx(expected, abs=1e-14)
    assert c.excess == pytest.approx(expected - CONSTRAINTS[name].kappa, abs=1e-14)


@pytest.mark.parametrize("name", [name for name in CONSTRAINTS if name != "statistical"])  # thresholds move too
def test_slopes_are_finite_differences(natural, name):
    constraint = bind(CONSTRAINTS[name], natural.y, natural.groups)
    scores = natural.scores[:60].clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: constraint(s, natural.y[:60], natural.groups[:60]).values, (scores,), eps=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("name", ["rate", "partial"])
def test_types_shapes_and_codings(natural, name):
    y, groups = natural.y.numpy(), natural.groups.numpy()
    expected = bind(CONSTRAINTS[name], y, groups)(natural.scores, y, groups).values
    for dtype, tolerance in [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)]:
        scores = natural.scores.to(dtype).reshape(-1, 1).requires_grad_()
        values = bind(CONSTRAINTS[name], y, groups)(scores, y, groups).values
        assert values.dtype == torch.float32
        torch.testing.assert_close(values.double(), expected, rtol=0, atol=tolerance)
        values.sum().backward()
        assert scores.grad.shape == (400, 1)
        assert scores.grad.dtype == dtype
    for coded in (2 * y - 1, y.astype(bool), y.astype(float)):
        torch.testing.assert_close(
            bind(CONSTRAINTS[name], coded, groups)(natural.scores, coded, groups).values, expected
        )
    other = np.array([7, -3])[groups]  # in another order, which exchanges the components
    values = bind(CONSTRAINTS[name], y, other)(natural.scores, y, other).values
    torch.testing.assert_close(values.flip(0), expected)


def test_weights_are_repeated_rows(natural):
    weights = np.random.default_rng(0).integers(0, 3, 400)
    rows = np.repeat(np.arange(400), weights)
    for term in (RateGap(0.05), AUCGap(0.1), Logistic()):
        function = bind(term, natural.y, natural.groups)
        once, repeated = natural.scores.clone().requires_grad_(), natural.scores.clone().requires_grad_()
        first = function(once, natural.y, natural.groups, weights)
        second = function(repeated[rows], natural.y[rows], natural.groups[rows])
        first, second = (v if isinstance(v, torch.Tensor) else v.values for v in (first, second))
        torch.testing.assert_close(first, second)
        for values, scores in ((first, once), (second, repeated)):
            values.reshape(-1)[0].backward()
            assert scores.grad is not None
        torch.testing.assert_close(once.grad, repeated.grad)


def test_objectives(natural):
    scores = natural.scores.clone().requires_grad_()
    loss = bind(Logistic(), natural.y, natural.groups)(scores, natural.y, natural.groups)
    expected = F.binary_cross_entropy_with_logits(scores, natural.y.double())
    torch.testing.assert_close(loss, expected)
    slopes = [torch.autograd.grad(value, scores)[0] for value in (loss, expected)]
    torch.testing.assert_close(*slopes)
    targets = natural.X[:, 1]
    squared = bind(Squared(), targets, natural.groups)(natural.scores, targets, natural.groups)
    torch.testing.assert_close(squared, F.mse_loss(natural.scores, targets) / 2)
    first = bind(GroupLoss(Squared(), (1.0, 0.0)), targets, natural.groups)(natural.scores, targets, natural.groups)
    errors = (natural.scores - targets) ** 2 / 2
    torch.testing.assert_close(first, errors[natural.groups == 0].sum() / 400)


def test_groups_are_for_the_objectives_that_depend_on_them(natural):
    y, groups, scores = natural.y, natural.groups, natural.scores
    objective = bind(Logistic(), y, groups)
    torch.testing.assert_close(objective(scores, y), objective(scores, y, groups))
    with pytest.raises(ValueError, match="depends on the groups; pass those of the rows"):
        bind(GroupLoss(Logistic(), (1.0, 0.0)), y, groups)(scores, y)


def test_real_targets_are_those_of_a_regression(natural):
    targets, groups = natural.X[:, 1], natural.groups
    part = np.random.default_rng(1).permutation(400)[:180]
    constraint = bind(StatisticalParity(0.1, n_levels=3), targets, groups)
    c = constraint(natural.scores[part], targets[part], groups[part])
    expected = metrics.statistical_parity_gap(None, natural.scores[part].numpy(), sensitive_features=groups[part])
    assert c.gap == pytest.approx(expected, abs=1e-14)
    same = bind(StatisticalParity(0.1, n_levels=3), natural.y, groups)  # the labels do not matter
    torch.testing.assert_close(c.values, same(natural.scores[part], natural.y[part], groups[part]).values)
    with pytest.raises(ValueError, match="y holds values that are not finite"):
        constraint(natural.scores, targets / 0, groups)


@pytest.mark.parametrize("name", ["rate", "partial", "auc", "opportunity"])
def test_a_refined_surrogate_has_the_exact_values(natural, name):
    constraint = bind(CONSTRAINTS[name], natural.y, natural.groups)
    rows = (natural.y, natural.groups)
    before = constraint(natural.scores, *rows).values.max()
    constraint.refine(natural.scores)
    c = constraint(natural.scores, *rows)
    unit = CONSTRAINTS[name].interval[1] - CONSTRAINTS[name].interval[0] if name == "partial" else 1.0
    assert c.values.max().item() == pytest.approx(c.excess * unit, abs=1e-12)
    assert abs(before - c.values.max()) > 1e-4
    constraint.refine(natural.scores.float(), margin=0.01)
    assert constraint(natural.scores, *rows).values.max().item() == pytest.approx((c.excess + 0.01) * unit, abs=1e-6)


def test_refinement_adds_components_at_the_end(natural):
    constraint = bind(StatisticalParity(0.01, n_levels=2), natural.y, natural.groups)
    before = constraint.component_names
    constraint.refine(natural.scores)
    assert len(constraint.component_names) > len(before)
    assert constraint.component_names[: len(before)] == before


def test_price_is_that_of_the_multipliers(natural):
    constraint = bind(RateGap(0.05), natural.y, natural.groups)
    first, second = constraint.component_names
    assert constraint.price({first: 0.5, second: 0.25, "another": 9.0}) == 0.75
    assert np.isnan(constraint.price(None))
    assert (constraint.name, constraint.kappa) == ("demographic_parity", 0.05)
    assert constraint.granularity == pytest.approx(1 / min(np.bincount(natural.groups)))


def test_missing_cells_are_named(natural):
    first = natural.groups == 0
    for term, message in [
        (RateGap(0.05), r"demographic_parity compares cells that have no rows in this mini-batch: \['1'\]"),
        (DemographicParity(0.2), r"no rows in this mini-batch: \['1'\].*StratifiedBatchSampler"),
        (EqualOpportunity(0.2), r"\['1, y=\+1'\]"),
    ]:
        constraint = bind(term, natural.y, natural.groups)
        constraint(natural.scores, natural.y, natural.groups)
        with pytest.raises(ValueError, match=message):
            constraint(natural.scores[first], natural.y[first], natural.groups[first])
    negatives = natural.y == 0  # enough for demographic parity
    bind(RateGap(0.05), natural.y, natural.groups)(
        natural.scores[negatives], natural.y[negatives], natural.groups[negatives]
    )


def test_wrong_rows_are_refused(natural):
    y, groups, scores = natural.y, natural.groups, natural.scores
    constraint = bind(RateGap(0.05), y, groups)
    for arguments, message in [
        ((scores[:9], y, groups), "one score for a row"),
        ((torch.zeros(400, 2), y, groups), "one score for a row"),
        ((scores[:0], y[:0], groups[:0]), "has no rows"),
        ((scores, 2 * y - 1, groups), r"y must be 0 or 1, as in the rows that were bound; got \[-1, 1\]"),
        ((scores, y, groups + 1), r"groups \[2\] are not among"),
        ((scores, y, groups - 1), r"groups \[-1\] are not among"),
        ((scores, y, groups, -np.ones(400)), "sample_weight must hold a finite number of at least 0"),
        ((scores, y, groups, np.zeros(400)), "not zeros alone"),
        ((scores, torch.zeros(400, 2), groups), r"y must have one entry for every row, got shape \(400, 2\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            constraint(*arguments)
    with pytest.raises(ValueError, match="refine takes the scores of all 400 training rows"):
        constraint.refine(scores[:9])
    with pytest.raises(ValueError, match=r"groups \[4\] are not among"):
        bind(RateGap(0.05), y, 5 * groups)(scores, y, 4 * groups)


def test_wrong_training_rows_are_refused(natural):
    y, groups = natural.y, natural.groups
    for arguments, message in [
        ((y, groups.double()), "groups must be integers, got float64"),
        ((y[:9], groups), "same number of rows, at least one; got 9 and 400"),
        ((y[:0], groups[:0]), "at least one"),
        ((torch.full((400,), torch.nan), groups), "not finite"),
        ((y, torch.arange(400) // 398), "kappa=0.05 needs cells"),
    ]:
        with pytest.raises(ValueError, match=message):
            bind(RateGap(0.05), *arguments)
    for term in (PairwiseAUC(), CorrelationPenalty(), GroupAUC(0.1, interval=(0.0, 0.5)), QuadraticAUCGap(0.1)):
        with pytest.raises(IncompatibleProblem, match=r"on mini-batches, as .* Take another constraint or objective"):
            bind(term, y, groups)


def test_masks_of_the_training_rows_take_all_of_them(natural):
    y, groups, scores = natural.y, natural.groups, natural.scores.detach()
    first = (groups == groups.min()).numpy()
    positive = (y == y.max()).numpy()
    masks = (first & positive, ~first & ~positive, ~first & positive, first & ~positive)
    constraint = bind(AUCGap(0.1, constraint=masks), y, groups)
    named = bind(AUCGap(0.1, constraint="inter_group"), y, groups)
    assert constraint(scores, y, groups).gap == pytest.approx(named(scores, y, groups).gap)
    with pytest.raises(ValueError, match="takes the scores of all 400 rows in their order, got 50"):
        constraint(scores[:50], y[:50], groups[:50])


def test_a_mask_of_the_training_rows_goes_with_their_order(natural):
    y, groups, scores = natural.y, natural.groups, natural.scores.detach()
    mask = np.random.default_rng(5).random(400) < 0.6
    constraint = bind(GroupRates(kappa=0.3, among=mask), y, groups)
    expected = metrics.group_rates(None, scores[mask].numpy(), sensitive_features=groups[mask].numpy())
    assert constraint(scores, y, groups).gap == pytest.approx(expected)
    with pytest.raises(ValueError, match="takes the scores of all 400 rows in their order, got 50"):
        constraint(scores[:50], y[:50], groups[:50])


def test_there_are_no_second_derivatives(natural):
    scores = natural.scores.clone().requires_grad_()
    values = bind(RateGap(0.05), natural.y, natural.groups)(scores, natural.y, natural.groups).values
    (slopes,) = torch.autograd.grad(values.square().sum(), scores, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slopes.square().sum().backward()
