"""The best multiple and shift of scores within the bounds: known answers, and all points of a fine grid."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import logit

from fairconstrained.constraints import (
    AUCGap,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    GroupRates,
    LossParity,
    MinorityShare,
    PairwiseParity,
    ParityPair,
    QuadraticAUCGap,
    RateGap,
    StatisticalParity,
)
from fairconstrained.constraints.every_class import EveryClass
from fairconstrained.data import FairData
from fairconstrained.domains import L1Ball, Product
from fairconstrained.models import ClassModel, LinearModel
from fairconstrained.objectives import BoundLoss, ClassWeights, Logistic, ZeroOne
from fairconstrained.problem import Problem
from fairconstrained.solvers import AugmentedLagrangian, _rescaling, best_rescaled, no_worse_than_constants
from fairconstrained.solvers._plane_objective import PlaneObjective
from fairconstrained.solvers._score_plane import Proposal, ScorePlane
from tests.covering import every_pair


@pytest.fixture(scope="module")
def data(make_data):
    """Three groups, of which the later ones have the larger features."""
    return make_data((60, 50, 70), shift=0.8, weighted=True)


def problem_of(data, *constraints, alpha=0.0, **model):
    bound = tuple(constraint.bind(data) for constraint in constraints)
    linear = LinearModel(data.n_features, alpha=alpha, **model)
    return Problem(model=linear, objective=Logistic().bind(data), constraints=bound, data=data)


def loss_of(problem, params):
    scores, data = problem.scores(params), problem.data
    return data.weights.numpy() @ np.logaddexp(0, -data.y.numpy() * scores) + problem.model.penalty(params)[0]


def rescaled(params, factor, shift):
    return np.append(factor * params[:-1], factor * params[-1] + shift)


FACTORS, SHIFTS = np.linspace(0, 3, 61), np.linspace(-4, 4, 161)


def on_a_grid(problem, params, n_factors=61, n_shifts=161, slack=1e-12):
    """The least loss of all multiples and shifts on a grid that keep the bounds; infinity if none does."""
    grid = [(a, b) for a in np.linspace(0, 3, n_factors) for b in np.linspace(-4, 4, n_shifts)]
    points = np.array([rescaled(params, *at) for at in grid])
    scores = points @ np.column_stack([problem.data.X, np.ones(problem.data.n_samples)]).T
    losses = np.logaddexp(0, -problem.data.y.numpy() * scores) @ problem.data.weights.numpy()
    losses += problem.model.alpha / 2 * (points[:, :-1] ** 2).sum(axis=1)
    lowest_first = np.argsort(losses)
    allowed = (k for k in lowest_first if all(c.exact(scores[k]) <= slack for c in problem.constraints))
    first = next(allowed, None)
    return np.inf if first is None else losses[first]


def is_within(problem, params):
    return all(constraint.exact(problem.scores(params)) <= 1e-9 for constraint in problem.constraints)


# --- known answers


def entropy(data):
    """Loss of the best constant scores, and these."""
    share = float(data.weights[data.y > 0].sum())
    return -share * np.log(share) - (1 - share) * np.log(1 - share), logit(share)


@pytest.mark.parametrize("notion", [StatisticalParity, GroupAUC, lambda kappa: AUCGap(kappa, constraint="group_auc")])
def test_half_the_scores_are_better_where_only_their_order_counts(data, notion):
    problem = problem_of(data, notion(0.9 if notion is StatisticalParity else 0.5))  # more than the gap there is
    direction = np.array([1.0, 0.3, -0.2, 0.0])

    def along(factor):
        return minimize_scalar(lambda shift: loss_of(problem, rescaled(direction, factor, shift))).fun

    best = minimize_scalar(along, bounds=(0, 5), method="bounded", options={"xatol": 1e-9})
    for factor in (0.1, 1.0, 2.0, 20.0):
        found = best_rescaled(problem, [rescaled(direction, factor * best.x, -0.3)])
        assert loss_of(problem, found) == pytest.approx(best.fun, abs=1e-9)
        np.testing.assert_allclose(found[:-1], best.x * direction[:-1], atol=1e-4)
        assert is_within(problem, found)


@pytest.mark.parametrize("notion", [StatisticalParity, GroupAUC, lambda kappa: AUCGap(kappa, constraint="group_auc")])
def test_an_inverted_feature_ends_as_a_constant(make_data, notion):
    """One feature, whose order no multiple but zero makes fair; with the right sign it would be a good model."""
    data = make_data((60, 50), n_features=1, shift=1.5)
    problem = problem_of(data, notion(0.05))
    assert problem.constraints[0].metric(problem.scores(np.array([-1.0, 0.0]))) > 0.2
    found = best_rescaled(problem, [np.array([-1.0, 0.2])])
    least, at = entropy(data)
    assert loss_of(problem, found) == pytest.approx(least, abs=1e-9)
    np.testing.assert_allclose(problem.scores(found), at, atol=1e-4)
    assert is_within(problem, found)


def test_the_best_of_several_candidates(data):
    problem = problem_of(data, StatisticalParity(0.9))
    good, bad = np.array([1.0, 0.2, 0.1, 0.0]), np.array([0.0, 0.0, 1.0, 0.0])
    alone = [loss_of(problem, best_rescaled(problem, [params])) for params in (bad, good)]
    assert alone[1] < alone[0] - 0.05
    for candidates in ([bad, good], [good, bad]):
        assert loss_of(problem, best_rescaled(problem, candidates)) == pytest.approx(alone[1], abs=1e-9)


def test_nothing_changes_without_a_gain(data):
    problem = problem_of(data, StatisticalParity(0.9))
    once = best_rescaled(problem, [np.array([1.0, 0.2, 0.1, 0.0])])
    assert best_rescaled(problem, [once]) is once
    free = problem.without_constraints()
    far = np.array([9.0, 0.0, 0.0, 3.0])
    assert best_rescaled(free, [far]) is far  # the optimum without bounds is the business of the solver


def test_no_state_is_scored_twice(data, monkeypatch):
    problem = problem_of(data, DemographicParity(0.05))
    scored, scores = [], Problem.scores
    monkeypatch.setattr(Problem, "scores", lambda self, state: scored.append(state.tobytes()) or scores(self, state))
    found = best_rescaled(problem, [np.array([1.0, 0.2, 0.1, 0.0])])
    assert 2 < len(scored) == len(set(scored))
    assert found.tobytes() in scored


def test_what_no_multiple_can_keep_is_left_alone(data):
    """A minority of 28 % of the rows has no more than that of constant scores."""
    problem = problem_of(data, MinorityShare(0.9, minority="b"))
    params = np.array([1.0, 0.0, 0.0, 0.0])
    assert best_rescaled(problem, [params, 2 * params]) is params


def test_not_finite(data):
    problem = problem_of(data, StatisticalParity(0.9))
    broken, fine = np.full(4, np.nan), np.array([1.0, 0.2, 0.1, 0.0])
    assert np.isfinite(best_rescaled(problem, [fine, broken])).all()


# --- the whole plane


@every_pair(
    notion=[
        DemographicParity,
        EqualOpportunity,
        EqualizedOdds,
        lambda kappa: RateGap(kappa, constraint="intersectional"),
    ],
    seed=range(3),
    alpha=[0.0, 0.1],
)
def test_no_point_of_a_fine_grid_is_better(make_data, notion, seed, alpha):
    data = make_data((90, 110), n_features=2, shift=0.7, seed=seed)
    problem = problem_of(data, notion(0.06), alpha=alpha)
    params = np.random.default_rng(seed).normal(size=3) * 2
    found = best_rescaled(problem, [params])
    assert problem.holds(problem.scores(found))
    assert loss_of(problem, found) <= on_a_grid(problem, params) + 1e-9
    assert loss_of(problem, found) > on_a_grid(problem, params, slack=problem.constraints[0].granularity) - 0.02
    # it is a multiple, and a shift, of what it began with
    np.testing.assert_allclose(found[0] * params[1], found[1] * params[0], atol=1e-9)
    assert found[0] * params[0] >= 0


def test_several_bounds_at_once(data):
    problem = problem_of(data, DemographicParity(0.1), EqualOpportunity(0.1), StatisticalParity(0.9))
    params = np.array([1.5, -0.4, 0.2, 0.7])
    found = best_rescaled(problem, [params])
    assert problem.holds(problem.scores(found))
    assert loss_of(problem, found) <= on_a_grid(problem, params) + 1e-9


@pytest.mark.parametrize(
    "constraint",
    [
        RateGap(0.05, rate="sigmoid"),
        RateGap(0.05, rate="hinge"),
        LossParity(0.05),
        pytest.param(QuadraticAUCGap(0.4), marks=pytest.mark.slow),
        pytest.param(PairwiseParity(0.4), marks=pytest.mark.slow),
        MinorityShare(0.2, minority="b"),
        ParityPair(1.05),
    ],
    ids=lambda constraint: type(constraint).__name__,
)
def test_smooth_bounds_are_kept_and_come_close_to_the_grid(data, constraint):
    """There is no proof that the best point is found, but it is here."""
    problem = problem_of(data, constraint)
    params = np.array([2.0, -0.6, 0.4, 1.0])
    found = best_rescaled(problem, [params])
    assert problem.holds(problem.scores(found))
    assert loss_of(problem, found) <= on_a_grid(problem, params) + 1e-3
    assert loss_of(problem, found) < loss_of(problem, params) or not problem.holds(problem.scores(params))


def test_the_slack_is_that_of_the_solver(data):
    """A row's share over kappa is taken only where the solver's result is no closer to it."""
    problem = problem_of(data, DemographicParity(0.1))
    inside, outside = np.array([0.05, 0.0, 0.0, 3.0]), np.array([2.0, 0.0, 0.0, 0.0])
    assert problem.constraints[0].exact(problem.scores(inside)) <= 0
    found = best_rescaled(problem, [inside, outside])
    assert problem.constraints[0].exact(problem.scores(found)) <= 1e-12
    rescued = best_rescaled(problem, [outside])
    assert problem.holds(problem.scores(rescued))
    assert loss_of(problem, rescued) <= loss_of(problem, best_rescaled(problem, [inside, outside])) + 1e-12


# --- models and domains


def test_without_an_intercept_there_are_multiples_only(data):
    problem = problem_of(data, StatisticalParity(0.9), fit_intercept=False)
    direction = np.array([1.0, 0.3, -0.2])
    best = minimize_scalar(lambda a: loss_of(problem, a * direction), bounds=(0, 9), method="bounded")
    found = best_rescaled(problem, [5 * direction])
    assert loss_of(problem, found) == pytest.approx(best.fun, abs=1e-8)
    np.testing.assert_allclose(found / direction, found[0], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [-0.5, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_multiples_move_a_threshold_that_is_not_zero(make_data, seed, threshold):
    """Where scores cannot be shifted, all multiples of a fine grid are worse, or break the bound."""
    data = make_data((90, 110), n_features=2, shift=0.7, seed=seed)
    problem = problem_of(data, DemographicParity(0.06, threshold=threshold), fit_intercept=False)
    params = np.array([1.2, -0.7]) * (1 + seed)
    found = best_rescaled(problem, [params])
    assert problem.holds(problem.scores(found))
    allowed = [a for a in np.linspace(0, 3, 3001) if is_within(problem, a * params)]
    assert allowed
    assert loss_of(problem, found) <= min(loss_of(problem, a * params) for a in allowed) + 1e-9
    np.testing.assert_allclose(found * params[0], found[0] * params, atol=1e-9)


@pytest.mark.slow
def test_the_gap_that_the_solver_kept_is_kept_whatever_the_rounding(data):
    """At the cut of the result itself, half or twice the scores may be better."""
    problem = problem_of(data, DemographicParity(0.1))
    bound = problem.constraints[0]
    rng = np.random.default_rng(0)
    draws = (rng.normal(size=4) for _ in range(2000))
    kept = [p for p in draws if 0 < bound.exact(problem.scores(p)) <= bound.granularity][:5]
    assert len(kept) == 5
    for params in kept:
        found = best_rescaled(problem, [params])
        along = minimize_scalar(lambda a, p=params: loss_of(problem, a * p), bounds=(0, 9), method="bounded")
        assert loss_of(problem, found) <= along.fun + 1e-8
        assert bound.exact(problem.scores(found)) <= bound.exact(problem.scores(params)) + 1e-11


def test_heads_of_groups_move_alike(data):
    problem = problem_of(data, StatisticalParity(0.9), n_copies=3)
    params = np.random.default_rng(0).normal(size=12)
    found = best_rescaled(problem, [params]).reshape(3, 4)
    table = params.reshape(3, 4)
    factor = found[0, 0] / table[0, 0]
    np.testing.assert_allclose(found[:, :3], factor * table[:, :3])
    shifts = found[:, 3] - factor * table[:, 3]
    np.testing.assert_allclose(shifts, shifts[0], atol=1e-12)
    assert loss_of(problem, found.ravel()) < loss_of(problem, params) - 0.01
    for near in (0.99, 1.01):
        assert loss_of(problem, found.ravel()) < loss_of(problem, near * found.ravel())


def test_proposals_outside_of_the_domain_are_not_taken(data):
    """The best multiple is larger than the domain allows."""
    free = problem_of(data, StatisticalParity(0.9))
    small = np.array([0.1, 0.02, 0.01, 0.0])
    assert np.abs(best_rescaled(free, [small])[:-1]).sum() > 0.5
    problem = replace(free, domain=Product(((slice(0, 3), L1Ball(0.2)),)))
    found = best_rescaled(problem, [small])
    assert np.abs(found[:-1]).sum() <= 0.2 + 1e-9
    assert loss_of(problem, found) <= loss_of(problem, small)


# --- errors as the objective


@pytest.mark.parametrize("seed", range(4))
def test_fewest_errors_of_all_cuts(make_data, seed):
    data = make_data((70, 90), n_features=2, shift=0.9, seed=seed)
    bound = DemographicParity(0.05).bind(data)
    objective = ZeroOne().bind(data)
    problem = Problem(model=LinearModel(2), objective=objective, constraints=(bound,), data=data)
    params = np.random.default_rng(seed).normal(size=3)
    scores = problem.scores(params)

    def errors(cut):
        return np.mean((scores > cut) != (data.y.numpy() > 0))

    cuts = np.concatenate([scores, [scores.min() - 1]])
    allowed = [errors(cut) for cut in cuts if bound.metric(scores - cut) <= 0.05 + 1e-12]
    found = problem.scores(best_rescaled(problem, [params]))
    assert bound.metric(found) <= 0.05 + bound.granularity
    at_most = min(allowed)
    assert np.mean((found > 0) != (data.y.numpy() > 0)) <= at_most + 1e-12


def test_fewer_errors_than_the_majority_class_makes(data):
    bound = RateGap(0.05, rate="sigmoid").bind(data)
    problem = Problem(model=LinearModel(3), objective=ZeroOne().bind(data), constraints=(bound,), data=data)
    wrong = np.array([-1.0, 0.0, 0.0, 0.0])
    positive = float(data.weights[data.y > 0].sum())
    found = problem.scores(best_rescaled(problem, [wrong]))
    correct = data.weights.numpy() @ ((found > 0) == (data.y.numpy() > 0))
    assert correct >= max(positive, 1 - positive) - 1e-12


def test_constants_at_the_threshold_where_errors_are_counted(data):
    """A hinge is one for all rows at zero, and differs between the groups everywhere else."""
    bound = RateGap(0.0, rate="hinge").unchecked(data)
    problem = Problem(model=LinearModel(3), objective=ZeroOne().bind(data), constraints=(bound,), data=data)
    params = np.array([1.0, 0.5, 0.0, 0.3])
    assert not problem.holds(problem.scores(params))
    found = problem.scores(best_rescaled(problem, [params]))
    np.testing.assert_allclose(found, 0.0, atol=1e-12)
    assert problem.holds(found)


# --- metrics at cuts


AT_CUTS = {
    "statistical_parity": StatisticalParity(0.1),
    "interval": StatisticalParity(0.1, interval=[(0.0, 0.2), (0.5, 0.8)]),
    "demographic_parity": DemographicParity(0.1),
    "threshold": DemographicParity(0.1, threshold=0.4),
    "top": DemographicParity(0.1, interval=(0.0, 0.3)),
    "rank gap": DemographicParity(0.1, interval=(0.2, 0.6), normalize=False),
    "opportunity": EqualOpportunity(0.1),
    "odds": EqualizedOdds(0.1),
    "group_auc": GroupAUC(0.1),
    "top auc": GroupAUC(0.1, interval=(0.0, 0.5)),
    "auc": AUCGap(0.1, constraint="intra_group"),
    "rate": RateGap(0.1),
    "rates": RateGap(0.1, constraint="equalized_odds"),
    "intersectional": RateGap(0.1, constraint="intersectional"),
    "merged": RateGap(0.1, min_group_size=55, small_groups="ignore"),
    "share": MinorityShare(0.3, minority="b", rate="indicator"),
    "pair": ParityPair(1.1, beta=0.7, rate="indicator"),
}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", AT_CUTS)
def test_values_at_cuts_are_the_metric_of_shifted_scores(data, name, ties):
    constraint = AT_CUTS[name]
    bound = constraint.unchecked(data)
    scores = np.random.default_rng(0).normal(size=data.n_samples) + 0.5 * data.codes
    if ties:
        scores = np.round(scores, 1)
    threshold = getattr(constraint, "threshold", 0.0)
    levels = np.unique(scores)
    between = (levels[:-1] + levels[1:]) / 2
    cuts = np.concatenate([[levels[0] - 1], levels, between, [levels[-1] + 1]])
    values = bound.values_at_cuts(scores, cuts)
    assert values.shape == cuts.shape
    expected = [bound.metric(2.0**-3 * (scores - cut) + threshold) for cut in cuts]  # exactly the threshold at a level
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert np.ptp(values) > 0 or name in ("statistical_parity", "interval", "group_auc", "top auc", "auc")


@pytest.mark.parametrize(
    "constraint",
    [
        RateGap(rate="sigmoid"),
        RateGap(rate="hinge"),
        LossParity(),
        MinorityShare(0.3),
        ParityPair(1.1),
        QuadraticAUCGap(),
        PairwiseParity(),
    ],
    ids=lambda constraint: type(constraint).__name__,
)
def test_what_depends_on_more_than_the_cut_says_so(data, constraint):
    scores = np.random.default_rng(0).normal(size=data.n_samples)
    assert constraint.unchecked(data).values_at_cuts(scores, np.zeros(1)) is None


@pytest.mark.slow
def test_many_scores_are_cut_at_some_of_them():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 12_000)
    X = rng.normal(size=(codes.size, 1)) + codes[:, None]
    y = np.where(X[:, 0] + rng.normal(size=codes.size) > 0.5, 1.0, -1.0)
    data = FairData.from_arrays(X, y, codes, ("a", "b"))
    problem = problem_of(data, DemographicParity(0.1))
    params = np.array([1.5, -0.5])
    found = best_rescaled(problem, [params])
    assert is_within(problem, found)
    assert loss_of(problem, found) <= on_a_grid(problem, params, 16, 41) + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 8, 27])
def test_the_corner_of_two_curved_bounds_is_reached_in_spite_of_rounding(make_data, seed):
    """Features far from zero: the scores of some parameters are rounded otherwise than those of the search."""
    rng, plain, offset = np.random.default_rng(seed), make_data((120, 100, 140), seed=seed), 30.0
    codes, y = plain.groups.codes.numpy(), plain.y.numpy()
    data = FairData.from_arrays(plain.X + offset, y, codes, ("a", "b", "c"), None)
    kappas = zip(("demographic_parity", "equalized_odds"), rng.uniform(0.05, 0.2, 2), strict=True)
    problem = problem_of(data, *(RateGap(kappa, constraint=name, rate="hinge") for name, kappa in kappas))
    direction = rng.normal(size=3)
    starts = [factor * np.append(direction, -offset * direction.sum()) for factor in (0.01, 0.02, 0.03, 0.05)]
    losses = [loss_of(problem, best_rescaled(problem, [start])) for start in starts]
    np.testing.assert_allclose(losses, min(losses), atol=1e-6)


# --- the objective in the plane


@pytest.fixture
def plane(data):
    """The plane of a state, with a penalty and rows without weight."""
    weights = data.weights.clone()
    weights[::3] = 0.0
    problem = problem_of(data.at(np.arange(data.n_samples), weights / weights.sum()), alpha=0.02)
    params = np.random.default_rng(1).normal(size=problem.n_params)
    return ScorePlane.of(Proposal(problem, params), np.empty(0))


def test_the_plane_has_the_objective_of_its_states(plane):
    objective, point = plane.objective, np.array([0.7, -0.4])
    assert objective.value(point) == pytest.approx(loss_of(plane.problem, plane.at(*point)), rel=1e-12)
    value, slopes = objective.with_slopes(point)
    assert value == objective.value(point)
    for step, slope in zip(1e-6 * np.eye(2), slopes, strict=True):
        assert (objective.value(point + step) - objective.value(point - step)) / 2e-6 == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("loss", [Logistic(), Logistic().weighing_classes(ClassWeights((1.0, 3.0)))], ids=repr)
def test_a_constant_score_is_judged_by_one_row_of_each_group_and_target(data, loss, monkeypatch):
    problem = problem_of(data, DemographicParity(0.1), alpha=0.1)
    problem = replace(problem, objective=loss.bind(data))
    state = np.random.default_rng(0).normal(size=problem.n_params)
    whole = ScorePlane.of(Proposal(problem, state), np.zeros(1)).objective
    sizes, of = [], Logistic.of
    monkeypatch.setattr(Logistic, "of", lambda own, scores, y: sizes.append(len(y)) or of(own, scores, y))
    constants, shift = whole.of_constants, np.array([[0.0, 1.0]])
    best = constants.least(np.array([0.0, 0.4]), shift)
    value = constants.value(best)
    assert max(sizes) == 6
    assert value == pytest.approx(whole.value(best), rel=1e-12)
    assert best == pytest.approx(whole.least(np.array([0.0, 0.4]), shift), abs=1e-9)


class _OwnShares(BoundLoss):
    """A loss with a factor for every row, by its number in the data as they were given."""

    @property
    def shares(self):
        return self.data.weights * torch.from_numpy(1.0 + self.data.order % 3)


def test_a_constant_score_is_judged_by_all_rows_where_an_objective_has_factors_of_its_own(data):
    problem = problem_of(data, DemographicParity(0.1))
    problem = replace(problem, objective=_OwnShares(Logistic(), data))
    state = np.random.default_rng(0).normal(size=problem.n_params)
    whole = ScorePlane.of(Proposal(problem, state), np.zeros(1)).objective
    point = np.array([0.0, 0.4])
    assert whole.of_constants.value(point) == pytest.approx(whole.value(point), rel=1e-12)


@pytest.mark.parametrize("lowest", [0.0, 5.0])
@pytest.mark.parametrize("directions", [[[1.0, 0.0], [0.0, 1.0]], [[1.0, -0.6]], [[0.0, 1.0]], np.empty((0, 2))])
def test_newton_steps_end_where_another_method_does(plane, directions, lowest, monkeypatch):
    start, directions = np.array([6.0, 0.5]), np.array(directions)
    found = plane.objective.least(start, directions, lowest)
    monkeypatch.setattr(PlaneObjective, "is_smooth", False)
    other = plane.objective.least(start, directions, lowest)
    assert plane.objective.value(found) <= plane.objective.value(other) + 1e-9
    assert found[0] >= lowest
    assert found == pytest.approx(other, abs=1e-3)


def test_lines_near_the_optimum_lose_what_is_estimated(plane):
    objective = plane.objective
    free = objective.least(np.array([1.0, 0.0]), np.eye(2))
    line = np.array([0.8, 1.0])
    level = line @ free + 0.05
    on_line = objective.least(np.array([0.0, level]) + free[0] * np.array([1.0, -0.8]), np.array([[1.0, -0.8]]))
    (estimate,) = objective.on_lines(free, line[None], np.array([level]))
    assert objective.value(on_line) - objective.value(free) == pytest.approx(estimate, rel=0.1)


def test_lines_across_a_plane_without_curvature_lose_infinitely_much(plane, monkeypatch):
    monkeypatch.setattr(PlaneObjective, "_curvature", lambda *_: np.diag([1.0, 0.0]))
    losses = plane.objective.on_lines(np.zeros(2), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([5.0, 2.0]))
    assert losses.tolist() == [np.inf, 2.0]


@pytest.mark.parametrize("bound", [StatisticalParity(0.1), GroupAUC(0.1)], ids=["shares", "AUC"])
def test_bounds_on_the_order_of_the_scores_hold_for_all_multiples_or_for_none(data, bound):
    problem = problem_of(data, bound)
    rng = np.random.default_rng(0)
    outside = next(params for params in rng.normal(size=(100, problem.n_params)) if not is_within(problem, params))
    plane = ScorePlane.of(Proposal(problem, outside), problem.granularities)
    assert not list(plane.proposals(np.inf, with_constants=False))
    assert any(is_within(problem, proposal.state) for proposal in plane.proposals(np.inf, with_constants=True))


def test_around_a_stationary_point_smooth_bounds_are_not_searched(data, monkeypatch):
    problem = problem_of(data, RateGap(0.1, rate="sigmoid"))
    params = np.random.default_rng(0).normal(size=problem.n_params) / 10
    params[:-1] *= 0.1  # far from the unconstrained optimum, but within the bounds
    assert best_rescaled(problem, [params]) is not params
    monkeypatch.setattr(ScorePlane, "_by_search", lambda *_: pytest.fail("searched"))
    best_rescaled(problem, [params], is_stationary=True)


@pytest.fixture(scope="module")
def four_classes():
    """A problem of four classes without bounds, and its solution."""
    rng = np.random.default_rng(0)
    y, codes = rng.integers(0, 4, 400).astype(float), rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 3)) + 0.7 * y[:, None] * [1, -1, 0] + 0.3 * codes[:, None]
    data = FairData.from_arrays(X, y, codes, ("a", "b"))
    model, objective = ClassModel(LinearModel(3, 4)), Logistic().of_several_classes().bind(data)
    free = Problem(model=model, objective=objective, constraints=(), data=data)
    return free, AugmentedLagrangian().solve(free, None, rng).model_state


@pytest.mark.parametrize(("rule", "kappa"), [("difference", 0.0), ("ratio", 0.001)])
def test_ways_to_a_class_are_followed_where_they_lead_within_the_bounds(four_classes, monkeypatch, rule, kappa):
    """Where one class is given to all rows there is no ratio of the rates of the others."""
    free, state = four_classes
    constraint = EveryClass(GroupRates("selection", rule=rule, kappa=kappa), list("wxyz")).unchecked(free.data)
    problem, looks = replace(free, constraints=(constraint,)), []
    original = _rescaling.is_within
    monkeypatch.setattr(_rescaling, "_shifts_of_classes", lambda own, constants: None)
    monkeypatch.setattr(_rescaling, "is_within", lambda *arguments: looks.append(1) or original(*arguments))
    nearby = best_rescaled(problem, [state])
    if rule == "ratio":
        assert np.array_equal(nearby, state)
        assert len(looks) < 10 * 4  # and not 30 for each of the classes
    else:
        assert problem.holds(problem.scores(nearby))


def test_shifts_of_classes_bring_the_last_rows_within_the_bounds(four_classes):
    free, state = four_classes
    data = free.data
    rule = EveryClass(GroupRates("selection", rule="ratio", kappa=1.0), list("wxyz")).unchecked(data)
    problem = replace(free, constraints=(rule.with_kappa(rule.metric(free.scores(state)) - 0.01),))
    assert not problem.holds(problem.scores(state))
    nearby = best_rescaled(problem, [state])
    assert problem.holds(problem.scores(nearby))
    loss, least = (problem.objective_at(one, problem.scores(one)) for one in (nearby, state))
    assert loss < 1.03 * least  # on the way to one class it would rise by 7 %
    np.testing.assert_array_equal(best_rescaled(problem, [state]), nearby)


def test_scores_give_way_to_a_constant_that_is_better(data):
    problem = problem_of(data, DemographicParity(0.9))
    share = float(data.weights[data.y > 0].sum())
    constant = np.append(np.zeros(data.n_features), logit(share))
    residuals = data.weights.numpy() * ((data.y.numpy() > 0) - share)
    good = constant + 0.1 * np.append(data.X.T @ residuals, 0.0) / np.linalg.norm(data.X.T @ residuals)
    assert loss_of(problem, good) < loss_of(problem, constant) - 1e-3
    assert no_worse_than_constants(problem, good) is good
    bad = np.append(-good[:-1], good[-1])
    assert no_worse_than_constants(problem, bad) == pytest.approx(constant, abs=1e-5)


@pytest.mark.parametrize("level", [0.0, 0.3])
def test_around_constant_scores_the_best_constant_is_all_that_is_sought(data, monkeypatch, level):
    problem, sought, least = problem_of(data, DemographicParity(0.9), alpha=0.1), [], PlaneObjective.least
    monkeypatch.setattr(PlaneObjective, "least", lambda *args: sought.append(1) or least(*args))
    found = best_rescaled(problem, [np.append(np.zeros(data.n_features), level)])
    share = data.weights.numpy() @ (data.y.numpy() > 0)
    np.testing.assert_allclose(found, np.append(np.zeros(data.n_features), logit(share)), rtol=1e-5)
    assert len(sought) == 1


def test_where_the_best_constant_accepts_everybody_the_next_one_is_at_the_threshold(data):
    labels = data.labels
    problem = problem_of(data, MinorityShare(0.9, minority=labels[0], rate="indicator"))
    params = np.append(np.zeros(data.n_features), -1.0)
    assert best_rescaled(problem, [params]) == pytest.approx(np.zeros(data.n_features + 1), abs=1e-9)
