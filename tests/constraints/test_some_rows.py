"""Constraints on data of which some groups are ignored: what they are on the rows of the other groups alone."""

import numpy as np
import pytest
import torch

from fairconstrained.constraints import (
    AUCGap,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    LossParity,
    MinorityShare,
    PairwiseParity,
    ParityPair,
    QuadraticAUCGap,
    RateGap,
    StatisticalParity,
)
from fairconstrained.data import FairData
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.sampling import Sampler
from fairconstrained.views import (
    DifferenceOfConvex,
    DirectSlopes,
    FullBatch,
    RowLosses,
    SaddleMoments,
    Stochastic,
)
from tests.batches import assert_unbiased, of_view, on_batches

VIEWS = (FullBatch, RowLosses, DirectSlopes, DifferenceOfConvex, Stochastic, SaddleMoments)
CONSTRAINTS = {
    "statistical_parity": StatisticalParity(0.1),
    "interval": StatisticalParity(0.1, interval=(0.0, 0.4), n_levels=3),
    "demographic_parity": DemographicParity(0.1),
    "opportunity": EqualOpportunity(0.1),
    "odds": EqualizedOdds(0.1),
    "group_auc": GroupAUC(0.1),
    "top": GroupAUC(0.1, interval=(0.0, 0.5)),
    "auc": AUCGap(0.1, constraint="bpsn_bnsp"),
    "quadratic": QuadraticAUCGap(0.5),
    "pairwise": PairwiseParity(0.5),
    "loss": LossParity(0.1, constraint="equalized_odds", reference="overall"),
    "rate": RateGap(0.1),
    "sigmoid": RateGap(0.1, rate="sigmoid", constraint="intersectional"),
    "share": MinorityShare(0.4, minority="b"),
    "pair": ParityPair(1.1, rate="indicator"),
}
each_constraint = pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)


@pytest.fixture(scope="module")
def data(make_data):
    """Three groups that are compared, and two behind them that are not."""
    plain = make_data((23, 31, 19, 12, 9), weighted=True)
    rows = np.argsort(plain.order)
    columns = plain.X[rows], plain.y.numpy()[rows], plain.codes[rows], plain.labels, plain.weights.numpy()[rows]
    return FairData.from_arrays(*columns, n_ignored=2)


@pytest.fixture(scope="module")
def scores(data):
    return np.random.default_rng(1).normal(size=data.n_samples) + 0.3 * data.codes


@pytest.fixture
def both(constraint, data):
    """The constraint on all rows, and on those that it compares."""
    return constraint.unchecked(data), constraint.unchecked(data.compared)


def test_the_compared_rows_come_first(data):
    compared = data.compared
    assert compared.labels == ("a", "b", "c")
    assert compared.n_samples == 23 + 31 + 19
    assert float(compared.weights.sum()) == pytest.approx(1)
    rows = slice(0, compared.n_samples)
    np.testing.assert_array_equal(compared.X, data.X[rows])
    np.testing.assert_array_equal(compared.order, data.order[rows])
    np.testing.assert_array_equal(compared.codes, data.codes[rows])
    ratio = compared.weights / data.weights[rows]
    torch.testing.assert_close(ratio, ratio[0].expand(compared.n_samples))
    assert compared.compared is compared
    assert compared.n_ignored == 0


@each_constraint
def test_what_is_said_of_the_constraint_is_that_of_the_compared_rows(both, data, scores):
    whole, inner = both
    own = scores[: inner.data.n_samples]
    assert whole.data is data
    assert [view for view in VIEWS if isinstance(whole, view)] == [view for view in VIEWS if isinstance(inner, view)]
    for name in ("name", "kappa", "scale", "penalty_factor", "component_names", "n_aux", "granularity", "resolution"):
        assert getattr(whole, name) == getattr(inner, name), name
    np.testing.assert_equal(whole.value_by_chance, inner.value_by_chance)  # NaN where it is not known
    for name in ("bounds_metric", "counts_rows", "ignores_shifts", "compares"):
        assert getattr(whole, name) == getattr(inner, name), name
    np.testing.assert_array_equal(whole.components, inner.components)
    assert whole.metric(scores) == inner.metric(own)
    assert whole.exact(scores) == inner.exact(own)
    assert whole.of_decisions(scores) == inner.of_decisions(own)
    assert whole.complaint(0.7) == inner.complaint(0.7)
    cuts = np.linspace(-2, 3, 7)
    np.testing.assert_equal(whole.values_at_cuts(scores, cuts), inner.values_at_cuts(own, cuts))
    np.testing.assert_array_equal(whole.initial_aux(scores), inner.initial_aux(own))
    np.testing.assert_array_equal(whole.fair_aux(), inner.fair_aux())
    sizes, of_inner = whole.compared_cells(), inner.compared_cells()
    assert list(sizes.labels) == list(of_inner.labels)
    np.testing.assert_array_equal(sizes.counts, of_inner.counts)
    multipliers = {name: 0.5 + k for k, name in enumerate(whole.component_names)}
    assert whole.price(multipliers) == inner.price(multipliers) > 0


@each_constraint
def test_decisions_of_ignored_rows_cost_nothing(both, scores):
    whole, inner = both
    multipliers = np.arange(1.0, 1 + len(inner.component_names))
    own = inner.decision_costs(scores[: inner.data.n_samples], multipliers)
    costs = whole.decision_costs(scores, multipliers)
    if own is None:
        assert costs is None
    else:
        np.testing.assert_array_equal(costs, np.concatenate([own, np.zeros(21)]))


@each_constraint
def test_ignored_rows_change_nothing(both, scores):
    whole, inner = both
    changed = scores.copy()
    changed[inner.data.n_samples :] = 1e3 * np.arange(21)
    assert whole.metric(changed) == whole.metric(scores)
    moved = scores.copy()
    moved[: inner.data.codes.searchsorted(1)] += 5.0
    assert whole.metric(moved) != whole.metric(scores)


@each_constraint
def test_values_and_gradients(both, scores):
    whole, inner = both
    n, aux = inner.data.n_samples, torch.from_numpy(inner.initial_aux(scores[: inner.data.n_samples]))
    at, own = (torch.tensor(rows, requires_grad=True) for rows in (scores, scores[:n]))
    views = [("values", FullBatch), ("plus", DifferenceOfConvex), ("minus", DifferenceOfConvex)]
    for name in (name for name, view in views if isinstance(inner, view)):
        values, expected = getattr(whole, name)(at, aux), getattr(inner, name)(own, aux)
        torch.testing.assert_close(values, expected, rtol=0, atol=0)
        if not expected.requires_grad:
            continue
        weights = torch.arange(1.0, 1 + values.numel(), dtype=torch.float64)
        (gradient,) = torch.autograd.grad(values @ weights, at)
        (of_inner,) = torch.autograd.grad(expected @ weights, own)
        torch.testing.assert_close(gradient[:n], of_inner, rtol=0, atol=0)
        assert not gradient[n:].any()


@each_constraint
def test_refined(both, scores):
    whole, inner = both
    n = inner.data.n_samples
    refined = whole.refined(scores, blur=0.1, margin=0.01)
    of_inner = inner.refined(scores[:n], blur=0.1, margin=0.01)
    assert type(refined) is type(whole)
    assert refined.component_names == of_inner.component_names
    if isinstance(of_inner, FullBatch):
        aux = torch.from_numpy(of_inner.initial_aux(scores[:n]))
        near = scores + 0.1 * np.sin(np.arange(scores.size))
        values = refined.values(torch.from_numpy(near), aux)
        torch.testing.assert_close(values, of_inner.values(torch.from_numpy(near[:n]), aux), rtol=0, atol=0)
    assert whole.renamed("other").name == "other"
    assert whole.with_components(whole.components).component_names == whole.component_names


@each_constraint
def test_row_losses(both, data, scores):
    whole, inner = both
    if not isinstance(inner, RowLosses):
        assert not isinstance(whole, RowLosses)
        return
    n, aux = inner.data.n_samples, inner.initial_aux(scores[: inner.data.n_samples])
    losses = np.random.default_rng(2).random(scores.size)
    np.testing.assert_array_equal(whole.of_losses(losses, aux), inner.of_losses(losses[:n], aux))
    multipliers = np.random.default_rng(3).random(len(whole.component_names))
    (rows, of_aux), (own, own_aux) = whole.row_weights(multipliers), inner.row_weights(multipliers)
    np.testing.assert_array_equal(rows[:n], own)
    np.testing.assert_array_equal(rows[n:], np.zeros(data.n_samples - n))
    np.testing.assert_array_equal(of_aux, own_aux)
    assert whole.row_loss == inner.row_loss


@each_constraint
def test_direct_slopes(both, scores):
    whole, inner = both
    if not isinstance(inner, DirectSlopes):
        return
    n, aux = inner.data.n_samples, inner.initial_aux(scores[: inner.data.n_samples])
    (values, pull), (own_values, own_pull) = whole.with_slopes(scores, aux), inner.with_slopes(scores[:n], aux)
    np.testing.assert_array_equal(values, own_values)
    weights = np.arange(1.0, 1 + values.size)
    (slopes, of_aux), (own, own_aux) = pull(weights), own_pull(weights)
    np.testing.assert_array_equal(slopes[:n], own)
    np.testing.assert_array_equal(of_aux, own_aux)
    assert not slopes[n:].any()


@each_constraint
def test_saddle_moments(both, scores):
    whole, inner = both
    if not isinstance(inner, SaddleMoments):
        assert not isinstance(whole, SaddleMoments)
        return
    aux = torch.empty(0, dtype=torch.float64)
    expected = inner.values(torch.from_numpy(scores[: inner.data.n_samples]), aux)
    torch.testing.assert_close(whole.quadratics().values(torch.from_numpy(scores)), expected)


@each_constraint
def test_mini_batches(both, data, scores):
    """A batch of all rows has the values of them; of others it has those of the rows in it that are compared."""
    whole, inner = both
    if not isinstance(inner, Stochastic):
        assert not isinstance(whole, Stochastic)
        return
    n = inner.data.n_samples
    everything = data.at(np.arange(data.n_samples), data.weights)
    aux = torch.from_numpy(inner.initial_aux(scores[:n]))
    values = whole.on(everything).values(torch.from_numpy(scores), aux)
    torch.testing.assert_close(values, inner.values(torch.from_numpy(scores[:n]), aux))
    rows = np.arange(0, data.n_samples, 2)
    some = data.at(rows, data.weights[rows])
    found = whole.on(some).values(torch.from_numpy(scores[rows]), aux)
    expected = inner.on(some.compared).values(torch.from_numpy(scores[rows[rows < n]]), aux)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["sigmoid", "share", "pair", pytest.param("group_auc", marks=pytest.mark.slow)])
def test_the_mean_over_mini_batches_is_the_whole(name, data, scores):
    whole = CONSTRAINTS[name].unchecked(data)
    strata = data.codes if whole.strata is None else whole.strata
    values = of_view(whole.initial_aux(scores))
    batches = Sampler.of(data, 40, 0.0, strata).batches(np.random.default_rng(0), 2000)
    draws = on_batches(whole, data, scores, batches, values)
    assert_unbiased(draws, values(whole, scores), tolerance=0.01)
    assert np.std(draws, axis=0).min() > 0.01


@each_constraint
def test_strata_keep_the_ignored_rows_apart(both, data):
    whole, inner = both
    strata = whole.strata
    if inner.strata is None:
        assert strata is None
        strata = data.codes
    else:
        np.testing.assert_array_equal(strata[: inner.data.n_samples], inner.strata)
        assert set(strata[inner.data.n_samples :]).isdisjoint(inner.strata)
    for batch in Sampler.of(data, 24, 0.0, strata).batches(np.random.default_rng(0), 3):
        assert batch.n_ignored == 2
        assert batch.compared.labels == ("a", "b", "c")


@pytest.mark.parametrize("name", ["demographic_parity", "rate", "group_auc", "auc", "quadratic"])
def test_offsets_of_ignored_groups_are_zero(name, data, scores):
    whole = CONSTRAINTS[name].unchecked(data)
    gains = np.sign(scores) * data.y.numpy()
    n = data.compared.n_samples
    for shared in (False, True):
        own = CONSTRAINTS[name].unchecked(data.compared).offsets(scores[:n], gains[:n], 0.0, shared)
        offsets = whole.offsets(scores, gains, 0.0, shared)
        np.testing.assert_array_equal(offsets[:3], own)
        np.testing.assert_array_equal(offsets[3:], np.full(2, own[0] if shared else 0.0))


def test_the_objective_sees_all_rows(data, make_problem):
    bound = DemographicParity(0.1).unchecked(data)
    problem = make_problem(data, bound)
    assert isinstance(problem, Problem)
    params = np.array([0.5, -0.2, 0.1, 0.3])
    scores = data.X @ params[:3] + 0.3
    losses = np.logaddexp(0, -data.y.numpy() * scores)
    objective = problem.view(FullBatch).at(params).objective
    assert objective == pytest.approx(data.weights.numpy() @ losses + 0.05 / 2 * params[:3] @ params[:3])
    assert Logistic().bind(data).values(torch.from_numpy(scores), torch.empty(0)).sum() == pytest.approx(
        data.weights.numpy() @ losses
    )


def test_ignored_groups_may_be_as_small_as_they_are(make_data):
    plain = make_data((60, 50, 3))
    rows = np.argsort(plain.order)
    arrays = plain.X[rows], plain.y.numpy()[rows], plain.codes[rows], plain.labels
    with pytest.raises(ValueError, match=r"\{'c': 3\}"):
        DemographicParity(0.02).bind(FairData.from_arrays(*arrays))
    bound = DemographicParity(0.02).bind(FairData.from_arrays(*arrays, n_ignored=1))
    assert bound.granularity == pytest.approx(1 / 50)
