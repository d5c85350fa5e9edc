"""Pairwise AUC objectives: the sum over pairs, gradients, the convex split, and solvers that minimise them."""

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from fairconstrained.constraints import StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.objectives import PAIR_LOSSES, Logistic, PairwiseAUC
from fairconstrained.solvers import IDCA, AugmentedLagrangian
from fairconstrained.views import DifferenceOfConvex, FullBatch, Stochastic

LOSSES = sorted(PAIR_LOSSES)
INTERVALS = [(0.0, 1.0), (0.0, 0.3), (0.15, 0.6), (0.5, 1.0)]
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_interval = pytest.mark.parametrize("interval", INTERVALS, ids=str)
SMOOTHING = 0.3
#: What the spline of the logistic loss may cost.
SPLINE = 5e-8


def column(*values):
    return torch.tensor(values, dtype=torch.float64)


def pair_loss(name, x):
    """The definition of every loss of a pair, for numpy."""
    slack = 1 - x
    corner = np.where(np.abs(slack) <= SMOOTHING, (slack + SMOOTHING) ** 2 / (4 * SMOOTHING), np.maximum(slack, 0))
    return {"logistic": np.logaddexp(0, -x), "hinge": corner, "quadratic": slack**2 / 2}[name]


def by_pairs(name, scores, y, weights, interval):
    """Mean over all positives and the negatives at the ranks of the interval; no ties."""
    negatives = np.flatnonzero(y < 0)
    negatives = negatives[np.argsort(-scores[negatives])]
    mass = np.append(0.0, np.cumsum(weights[negatives]))
    inside = np.diff(np.clip(mass / mass[-1], *interval)) / (interval[1] - interval[0])
    u = weights[y > 0] / weights[y > 0].sum()
    return u @ pair_loss(name, scores[y > 0][:, None] - scores[negatives]) @ inside


@pytest.fixture(scope="module")
def data(make_data):
    return make_data(weighted=True)


@pytest.fixture(scope="module")
def scores(data):
    return torch.from_numpy(np.random.default_rng(1).normal(size=data.n_samples))


def bound(data, loss, interval=(0.0, 1.0)):
    return PairwiseAUC(loss, interval, smoothing=SMOOTHING).bind(data)


# --- values


@each_interval
@each_loss
def test_values_are_the_mean_over_pairs(data, scores, loss, interval):
    value = bound(data, loss, interval).values(scores, column())
    expected = by_pairs(loss, scores.numpy(), data.y.numpy(), data.weights.numpy(), interval)
    assert value.shape == (1,)
    assert value.item() == pytest.approx(expected, abs=SPLINE)


def test_hand_computed_partial_value(make_data):
    """Negatives 0.5, 0.2, 0.1, -1 from the top; the interval takes half of the first and the whole second."""
    y = np.array([1.0, -1, -1, 1, -1, -1])
    scores = column(0.4, 0.1, 0.5, 1.0, -1.0, 0.2)
    data = FairData.from_arrays(np.zeros((6, 1)), y, np.zeros(6, dtype=int), ("a",))
    value = PairwiseAUC("quadratic", (0.125, 0.5)).bind(data).values(scores[data.order], column()).item()
    against = {n: (pair_loss("quadratic", 0.4 - n) + pair_loss("quadratic", 1.0 - n)) / 2 for n in (0.5, 0.2)}
    assert value == pytest.approx((0.5 * against[0.5] + 1.0 * against[0.2]) / 1.5)


def test_two_scores_give_twice_the_missing_area(data):
    """Scores 0 and 1: the hinge is 2, 1, 0 for a pair in the wrong order, tied and in the right order."""
    scores = (data.y * torch.from_numpy(np.random.default_rng(4).choice([1.0, -1.0], data.n_samples, p=[0.8, 0.2]))) / 2
    auc = roc_auc_score(data.y, scores, sample_weight=data.weights)
    value = PairwiseAUC("hinge", smoothing=1e-9).bind(data).values(scores, column()).item()
    assert value == pytest.approx(2 * (1 - auc), abs=1e-8)


@each_interval
def test_hinge_is_at_least_the_missing_partial_area(data, scores, interval):
    """Count the pairs in the wrong order, by a loss that is 1 for them and 0 for the others."""
    y, weights, s = data.y.numpy(), data.weights.numpy(), scores.numpy()
    negatives = np.flatnonzero(y < 0)
    negatives = negatives[np.argsort(-s[negatives])]
    inside = np.diff(np.clip(np.append(0, np.cumsum(weights[negatives])) / weights[negatives].sum(), *interval))
    wrong = (weights[y > 0] / weights[y > 0].sum()) @ (s[y > 0][:, None] < s[negatives]) @ inside
    missing = wrong / (interval[1] - interval[0])
    assert 0 < missing < bound(data, "hinge", interval).values(scores, column()).item()


@each_interval
@each_loss
def test_weights_equal_repeated_rows(loss, interval):
    rng = np.random.default_rng(5)
    counts, scores, y = rng.integers(1, 4, 14), rng.normal(size=14), np.repeat([1.0, -1.0], 7)
    codes, X = np.zeros(14, dtype=int), np.zeros((14, 1))
    weighted = FairData.from_arrays(X, y, codes, ("a",), counts.astype(float))
    repeated = FairData.from_arrays(*(np.repeat(v, counts, axis=0) for v in (X, y, codes)), ("a",))
    once, often = torch.from_numpy(scores[weighted.order]), torch.from_numpy(np.repeat(scores, counts)[repeated.order])
    value = bound(weighted, loss, interval).values(once, column())
    torch.testing.assert_close(value, bound(repeated, loss, interval).values(often, column()))


@each_interval
@each_loss
def test_shifted_scores_have_the_same_value(data, scores, loss, interval):
    objective = bound(data, loss, interval)
    values = [objective.values(scores + shift, column()).item() for shift in (0.0, 0.7, -12.3)]
    assert values == pytest.approx([values[0]] * 3, abs=SPLINE)


# --- gradients and split


@pytest.mark.parametrize("part", ["values", "plus", "minus"])
@each_interval
@each_loss
def test_gradients(make_data, scores, loss, interval, part):
    data = make_data(counts=(9, 11), weighted=True)  # finite differences take an evaluation for every row
    scores = scores[: data.n_samples]
    function = getattr(bound(data, loss, interval), part)
    # weights of a logistic pair's spline are those of the value as computed
    assert torch.autograd.gradcheck(
        lambda s: function(s, column()) + 0 * s.sum(), scores.clone().requires_grad_(), atol=1e-7
    )


@each_interval
@each_loss
def test_split_adds_up(data, scores, loss, interval):
    objective = bound(data, loss, interval)
    difference = objective.plus(scores, column()) - objective.minus(scores, column())
    torch.testing.assert_close(difference, objective.values(scores, column()), rtol=0, atol=1e-10)


@pytest.mark.parametrize("part", ["plus", "minus"])
@each_interval
@each_loss
def test_both_parts_are_convex(data, loss, interval, part):
    function, rng = getattr(bound(data, loss, interval), part), np.random.default_rng(7)
    for scale in (0.05, 0.3, 1.0, 4.0):
        for _ in range(15):
            a, b = (torch.from_numpy(scale * rng.normal(size=data.n_samples)) for _ in range(2))
            middle = function((a + b) / 2, column()).item()
            ends = (function(a, column()) + function(b, column())).item() / 2
            assert middle <= ends + SPLINE


def top_share_of_the_whole_quadratic_loss(data, scores, beta):
    """The paper's plus part, without its parabola."""
    return bound(data, "quadratic", (0.0, beta)).values(scores, column()).item()


def test_top_share_of_the_quadratic_loss_has_concave_kinks_where_it_rises(data):
    """Positives far above all negatives: two negatives that change places lower their minimum to a kink."""
    negatives = torch.nonzero(data.y < 0).flatten()
    scores = torch.where(data.y > 0, 10.0, -5.0)
    scores[negatives] -= torch.arange(negatives.shape[0], dtype=torch.float64) / 10
    beta = (data.weights[negatives[0]] / data.weights[negatives].sum()).item()  # the top one alone
    for step in (1e-2, 1e-4, 1e-6):
        at = []
        for move in (-step, 0.0, step):
            moved = scores.clone()
            moved[negatives[0]] = moved[negatives[1]] = -4.0
            moved[negatives[0]] += move
            at.append(top_share_of_the_whole_quadratic_loss(data, moved, beta))
        curvature = (at[0] - 2 * at[1] + at[2]) / step**2
        assert curvature < -0.1 / step  # not bounded below: no parabola repairs it


@each_loss
def test_the_whole_area_needs_no_split(data, scores, loss):
    objective = bound(data, loss)
    torch.testing.assert_close(objective.plus(scores, column()), objective.values(scores, column()))
    assert objective.minus(scores, column()).item() == 0


# --- contract


@each_loss
def test_views(data, loss):
    objective = bound(data, loss, (0.1, 0.4))
    assert isinstance(objective, FullBatch)
    assert isinstance(objective, DifferenceOfConvex)
    assert not isinstance(objective, Stochastic)


def test_path_goes_from_the_whole_area_and_rounder_corners_to_the_objective():
    assert PairwiseAUC().path() == (PairwiseAUC(),)
    partial = PairwiseAUC("quadratic", (0.1, 0.4))
    assert partial.path() == (PairwiseAUC("quadratic"), partial)
    hinge = PairwiseAUC("hinge", (0.1, 0.4), smoothing=0.2)
    assert hinge.path() == (PairwiseAUC("hinge", smoothing=0.5), PairwiseAUC("hinge", smoothing=0.2), hinge)


def test_intercepts_are_left_to_a_shared_shift_of_fewest_errors(data):
    objective = bound(data, "logistic")
    assert objective.shift == "shared"
    assert not objective.counts_errors  # the AUC is what counts, so the solver's work is not done by the search
    torch.testing.assert_close(objective.gains, data.weights * data.y)
    assert Logistic().bind(data).gains is None


def test_probability_ranks_like_the_score():
    np.testing.assert_allclose(PairwiseAUC().probability(np.array([-2.0, 0.0, 3.0])), expit([-2, 0, 3]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "zero_one"}, "loss must be one of"),
        ({"interval": (0.5, 0.2)}, "alpha < beta"),
        ({"interval": (0.0, 1.2)}, r"\[0, 1\]"),
        ({"interval": [(0.0, 0.2), (0.4, 0.5)]}, "one interval"),
        ({"interval": {"a": (0.0, 0.2)}}, "one entry for each"),
        ({"smoothing": 0.0}, "smoothing must be a finite number above 0"),
    ],
)
def test_invalid_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        PairwiseAUC(**parameters)


@pytest.mark.parametrize("y", [[1.0, 1.0, 1.0], [0.3, 1.0, -1.0]])
def test_targets_that_are_not_two_classes(y):
    data = FairData.from_arrays(np.zeros((3, 1)), np.array(y), np.zeros(3, dtype=int), ("a",))
    with pytest.raises(ValueError, match="y must have two classes, and rows of both"):
        PairwiseAUC().bind(data)


# --- solvers


@pytest.mark.slow
@each_loss
def test_augmented_lagrangian_minimises_the_area_under_a_constraint(make_data, make_problem, loss):
    data = make_data(counts=(60, 80), shift=0.8)
    fair = StatisticalParity(0.1, interval=(0.1, 0.5)).bind(data)
    problem = make_problem(data, fair, loss=PairwiseAUC(loss), alpha=0.01, n_copies=2)
    result = AugmentedLagrangian(max_iter=8).solve(problem, None, np.random.default_rng(0))
    scores = problem.scores(result.model_state)
    assert fair.exact(scores) <= fair.granularity
    constant = problem.objective.values(torch.zeros(data.n_samples, dtype=torch.float64), column()).item()
    assert result.objective < 0.95 * constant
    assert roc_auc_score(data.y, scores) > 0.7


@pytest.mark.slow
def test_idca_reaches_the_optimum_of_the_whole_area(make_data, make_problem, mean_gap):
    """A convex problem: what the augmented Lagrangian finds to be the optimum bounds IDCA from below."""
    data = make_data(counts=(20, 30), shift=0.8)
    problem = make_problem(data, mean_gap(data, 0.05), loss=PairwiseAUC("quadratic"))
    optimum = AugmentedLagrangian(max_iter=8).solve(problem, None, np.random.default_rng(0)).objective
    found = IDCA(max_outer=6, max_inner=120, eps=3e-3).solve(problem, None, np.random.default_rng(0))
    assert 0.98 * optimum < found.objective < 1.02 * optimum


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["quadratic", "logistic"])
def test_idca_decreases_a_partial_area(make_data, make_problem, mean_gap, loss):
    data = make_data(counts=(20, 30), shift=0.8)
    problem = make_problem(data, mean_gap(data, 0.1), loss=PairwiseAUC(loss, (0.05, 0.4)))
    result = IDCA(max_outer=5, max_inner=40).solve(problem, None, np.random.default_rng(0))
    objectives = [record["objective"] for record in result.history]
    assert (np.diff(objectives) <= 1e-6).all()
    start = problem.objective.values(torch.zeros(data.n_samples, dtype=torch.float64), column()).item()
    assert result.objective <= objectives[-1] + 1e-6
    assert result.objective < 0.95 * start


@pytest.mark.slow
def test_a_partial_area_is_larger_where_it_was_asked_for(make_data, make_problem):
    """Trained for low false positive rates, the model ranks better there than trained for the whole area."""
    data = make_data(counts=(400,), n_features=2, seed=3)
    X = data.blocks[0]
    rng = np.random.default_rng(0)
    y = np.where((X[:, 0] + 0.3 * rng.normal(size=400) > 1) | ((X[:, 1] > 0) & (rng.random(400) < 0.6)), 1.0, -1.0)
    data = FairData.from_arrays(X, y, np.zeros(400, dtype=int), ("a",))
    interval, found = (0.0, 0.1), {}
    for name, objective in (("whole", PairwiseAUC()), ("partial", PairwiseAUC("logistic", interval))):
        problem = make_problem(data, loss=objective, alpha=1e-4)
        params = AugmentedLagrangian().solve(problem, None, np.random.default_rng(0)).model_state
        scores = torch.from_numpy(problem.scores(params))
        found[name] = PairwiseAUC("logistic", interval).bind(data).values(scores, column()).item()
    assert found["partial"] < found["whole"] - 1e-2
