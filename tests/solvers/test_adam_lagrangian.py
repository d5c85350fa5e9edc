"""The default for networks: the exact metric is within kappa, whatever the network, the notion and the bound."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from fairconstrained.constraints import AUCGap, DemographicParity, GroupRates, LossParity
from fairconstrained.data import FairData
from fairconstrained.domains import L2Ball
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.metrics import loss_parity_gap
from fairconstrained.models import LinearModel, ModuleModel, Perceptron, mlp
from fairconstrained.models.pairs import PairModel
from fairconstrained.objectives import ROW_LOSS_OBJECTIVES, Loss
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers import AdamLagrangian, AugmentedLagrangian, Status, best_rescaled, make_solver
from fairconstrained.solvers import adam_lagrangian as module
from fairconstrained.solvers._augmented.outer_iterations import OuterIterations
from fairconstrained.solvers.adam_lagrangian import _head, _is_fair, _restored
from tests.covering import each_value
from tests.solvers.conftest import raise_floating_point_error


class Product(nn.Module):
    """A network whose last layer is not linear: the product of two hidden layers."""

    def __init__(self, n_features, n_outputs):
        super().__init__()
        self.one, self.two = nn.Linear(n_features, 3), nn.Linear(n_features, 3)

    def forward(self, X):
        return (torch.tanh(self.one(X)) * self.two(X)).sum(dim=1, keepdim=True)


class OwnHead(nn.Module):
    """A network of the user's own, whose last layer is linear and has no bias."""

    def __init__(self, n_features, n_outputs):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(n_features, 4), nn.Tanh()), nn.Linear(4, n_outputs, bias=False)

    def forward(self, X):
        return self.head(self.body(X))


def perceptron(*widths):
    return Perceptron(partial(mlp, hidden_layer_sizes=widths, activation="tanh"), 3, activation="tanh")


MODELS = {
    "perceptron": perceptron(6, 4),
    "no hidden layer": perceptron(),
    "linear": LinearModel(3, alpha=1e-3),
    "no last layer": ModuleModel(Product, 3, device="cpu"),
    "no bias": ModuleModel(OwnHead, 3, device="cpu"),
}
#: The first part is short, so that the others have something to do.
SHORT = {"max_epochs": 6, "batch_size": 50, "learning_rate": 0.02}


def make(counts, flipped, seed=0):
    """Rows whose labels are noisier in some groups than in others: their losses differ."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(counts)), counts)
    X = rng.normal(size=(codes.size, 3))
    y = np.where(X[:, 0] - 0.5 * X[:, 1] ** 2 + rng.normal(size=codes.size) / 2 > 0, 1.0, -1.0)
    y = np.where(rng.random(codes.size) < np.take(flipped, codes), -y, y)
    return FairData.from_arrays(X, y, codes, tuple("abcdefghijklmnop"[: len(counts)]))


@pytest.fixture(scope="module")
def two_groups():
    return make((150, 250), (0.3, 0.05))


@pytest.fixture(scope="module")
def twelve_groups():
    return make(np.linspace(20, 70, 12).astype(int), np.linspace(0.0, 0.35, 12))


def problem_of(data, constraint, model=None, loss="log_loss"):
    model = MODELS["perceptron"] if model is None else model
    return Problem(ROW_LOSS_OBJECTIVES[loss].bind(data), (constraint.unchecked(data),), data, model=model)


def solve(problem, start=None, callback=None, seed=0, **options):
    return AdamLagrangian(**{**SHORT, **options}).solve(problem, start, np.random.default_rng(seed), callback)


def gap_of(problem, params, **options):
    """The metric of the package, from scores and labels alone."""
    data = problem.objective.data  # that of a last layer alone does not know the groups
    return loss_parity_gap(data.y.numpy(), problem.scores(params), sensitive_features=data.codes, **options)


def objective_of(problem, params):
    return FullBatchView(problem.without_constraints()).at(params).objective


# --- the promise


@each_value(model=MODELS, kappa=[0.1, 0.005, 0.0])
def test_the_exact_gap_is_within_kappa(two_groups, model, kappa):
    problem = problem_of(two_groups, LossParity(kappa), MODELS[model])
    result = solve(problem)
    assert gap_of(problem, result.model_state) <= kappa + 1e-9
    assert result.status == Status.COMPLETED
    assert result.constraint_values["loss_parity"] == pytest.approx(gap_of(problem, result.model_state), abs=1e-12)
    # the bound is felt, and what is left is better than nothing
    free = solve(problem.without_constraints(), max_epochs=60)
    assert gap_of(problem, free.model_state) > 0.15
    assert result.objective == pytest.approx(objective_of(problem, result.model_state))
    assert free.objective - 0.02 < result.objective < np.log(2) - 0.01


@pytest.mark.parametrize("reference", ["pairwise", "overall"])
@pytest.mark.parametrize("notion", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("groups", ["two_groups", "twelve_groups"])
def test_every_notion_and_reference(request, groups, notion, reference):
    """Twelve groups are compared with a centre, which is an auxiliary variable of its own."""
    data, kappa = request.getfixturevalue(groups), 0.02
    problem = problem_of(data, LossParity(kappa, constraint=notion, reference=reference))
    assert (problem.constraints[0].n_aux > 0) == (groups == "twelve_groups" and reference == "pairwise")
    result = solve(problem)
    assert gap_of(problem, result.model_state, constraint=notion, reference=reference) <= kappa + 1e-9
    assert result.status == Status.COMPLETED
    assert result.model_state.shape == (problem.n_params,)
    assert result.objective < np.log(2) + 1e-3  # in twelve groups, next to nothing can be told


@pytest.mark.parametrize("loss", ["hinge", "absolute", "squared"])
def test_every_loss(two_groups, loss):
    problem = problem_of(two_groups, LossParity(0.01, loss=loss), loss=loss)
    result = solve(problem, learning_rate=0.01)
    assert gap_of(problem, result.model_state, loss=loss) <= 0.01 + 1e-9
    assert result.status == Status.COMPLETED
    assert result.objective < objective_of(problem, np.zeros(problem.n_params))  # all scores zero


@pytest.mark.parametrize("constraint", [DemographicParity(0.1), AUCGap(0.05)], ids=["demographic parity", "AUC gap"])
def test_other_constraints_on_a_network(two_groups, constraint):
    problem = problem_of(two_groups, constraint)
    result = solve(problem, max_epochs=3)
    (bound,) = problem.constraints
    assert bound.exact(problem.scores(result.model_state)) <= bound.granularity
    assert result.status == Status.COMPLETED
    assert result.objective < np.log(2) - 0.01


@pytest.mark.slow
def test_one_training_epoch_is_enough_for_the_promise(two_groups):
    problem = problem_of(two_groups, LossParity(0.005))
    for seed in range(5):
        result = solve(problem, seed=seed, max_epochs=1, learning_rate=0.2)
        assert gap_of(problem, result.model_state) <= 0.005 + 1e-9


def test_a_bound_that_the_free_optimum_keeps_costs_nothing(two_groups):
    """With the same seed the steps are the same as without the constraint; then the last layer is trained on."""
    problem = problem_of(two_groups, LossParity(5.0))
    first, free = solve(problem, polish=False), solve(problem.without_constraints())
    np.testing.assert_array_equal(first.model_state, free.model_state)
    assert first.multipliers == {}
    assert solve(problem).objective <= free.objective + 1e-9


# --- the parts


def test_without_polish_it_ends_after_the_first_part(two_groups):
    problem = problem_of(two_groups, LossParity(0.0))
    result, whole = solve(problem, polish=False), solve(problem)
    assert result.status == Status.INFEASIBLE  # a gap of zero to the last digit is none of Adam's
    assert result.constraint_values["loss_parity"] > 1e-6
    assert len(result.history) == 6
    assert [record["objective"] for record in whole.history[:6]] == [record["objective"] for record in result.history]
    assert len(whole.history) > 6


@pytest.mark.parametrize("polish", [True, False])
def test_without_constraints_there_is_one_part(two_groups, polish):
    problem = problem_of(two_groups, LossParity(0.1)).without_constraints()
    result = solve(problem, polish=polish)
    assert len(result.history) == 6
    assert result.status == Status.COMPLETED
    assert result.multipliers == {}
    assert result.objective < 0.6


def test_only_the_last_layer_changes_in_the_second_part(two_groups):
    problem = problem_of(two_groups, LossParity(0.005))
    first, whole = solve(problem, polish=False), solve(problem)
    layer = problem.model.last_layer(first.model_state, problem.data)
    changed = np.flatnonzero(first.model_state != whole.model_state)
    assert changed.size
    assert set(changed) <= set(layer.entries.tolist())


@pytest.mark.slow
def test_a_network_without_a_last_layer_is_trained_on_as_a_whole(two_groups):
    problem = problem_of(two_groups, LossParity(0.005), MODELS["no last layer"])
    first, whole = solve(problem, polish=False), solve(problem)
    assert problem.model.last_layer(first.model_state, problem.data) is None
    assert (first.model_state != whole.model_state).all()


def test_the_callback_gets_the_records_of_the_first_part(two_groups):
    seen = []
    result = solve(problem_of(two_groups, LossParity(0.01)), callback=lambda record: seen.append(record["objective"]))
    assert len(seen) == 6 < len(result.history)
    assert seen == [record["objective"] for record in result.history[:6]]


def test_multipliers_are_never_negative_and_follow_their_formula(two_groups):
    """One pass over all rows in an epoch: lambda + eta c, at the parameters where the epoch began, or zero."""
    problem, seen = problem_of(two_groups, LossParity(0.15)), []
    solve(
        problem, callback=lambda r: seen.append(dict(r)), update_steps=10**9, max_epochs=20, polish=False, dual_rate=3.0
    )
    view, known = FullBatchView(problem), np.zeros(2)
    for before, record in zip([None, *seen], seen, strict=False):
        if before is not None:
            known = np.maximum(known + 3.0 * view.at(before["params"]).constraints, 0)
            np.testing.assert_allclose(record["multipliers"], known, atol=1e-12)
    multipliers = np.array([record["multipliers"] for record in seen])
    assert multipliers.min() == 0.0
    assert multipliers.max() > 0.1
    assert (np.diff(multipliers, axis=0) < 0).any()  # a bound that holds lets go


def test_the_step_length_decreases_to_zero_unless_it_is_told_not_to(two_groups):
    problem = problem_of(two_groups, LossParity(5.0))
    moved = {}
    for decay in (True, False):
        seen = []
        solve(problem, callback=lambda r, to=seen: to.append(r["params"].copy()), decay=decay, polish=False)
        moved[decay] = np.abs(np.diff(seen, axis=0)).mean(axis=1)
    assert moved[True][-1] < 0.5 * moved[False][-1]
    assert moved[True][0] > 0.5 * moved[False][0]


def test_the_default_number_of_epochs(two_groups, twelve_groups):
    problem = problem_of(two_groups, LossParity(0.1))  # 400 rows
    assert AdamLagrangian(batch_size=8).n_epochs(problem) == 30
    assert AdamLagrangian(batch_size=100).n_epochs(problem) == 125  # 500 steps
    assert AdamLagrangian(batch_size=100, max_epochs=3).n_epochs(problem) == 3


def test_an_interruption_keeps_the_promise(two_groups):
    def interrupt(record):
        if record["n_iter"] == 2:
            raise KeyboardInterrupt

    problem = problem_of(two_groups, LossParity(0.005))
    result = solve(problem, callback=interrupt, keep_on_interrupt=True)
    assert "of epoch 2: it was interrupted" in result.message
    assert gap_of(problem, result.model_state) <= 0.005 + 1e-9
    assert result.n_iter == 2


def test_an_interruption_of_the_second_part_keeps_what_was_trained(two_groups, monkeypatch):
    def interrupt(self, source, problem):
        raise KeyboardInterrupt

    problem = problem_of(two_groups, LossParity(0.005))
    whole = solve(problem)
    monkeypatch.setattr(OuterIterations, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve(problem)
    result = solve(problem, keep_on_interrupt=True)
    assert "in iteration 1: it was interrupted" in result.message
    assert result.stopped_by == "an interruption"
    assert gap_of(problem, result.model_state) <= 0.005 + 1e-9
    assert result.n_iter == whole.n_iter


def test_a_second_part_that_diverges_is_told(two_groups, monkeypatch):
    monkeypatch.setattr(OuterIterations, "step", raise_floating_point_error)
    problem = problem_of(two_groups, LossParity(0.005))
    result = solve(problem)
    assert result.has_diverged
    assert result.multipliers is None
    assert "training stopped" in result.message
    assert gap_of(problem, result.model_state) <= 0.005 + 1e-9
    assert result.status == Status.MAX_ITER


def test_a_warm_start_from_the_result_goes_on_with_training(two_groups):
    problem = problem_of(two_groups, LossParity(0.005))
    first = solve(problem)
    then = solve(problem, start=first.start, max_epochs=9)
    assert [record["n_iter"] for record in then.history[:9]] == list(range(1, 10))
    assert gap_of(problem, then.model_state) <= 0.005 + 1e-9


def test_a_warm_start_from_a_network_of_zeros_is_none(two_groups):
    """A network of zeros gives all rows the same score, and it has no slope that would lead away from there."""
    problem = problem_of(two_groups, LossParity(0.005))
    warm, cold = solve(problem, start=Start(np.zeros(problem.n_params))), solve(problem)
    np.testing.assert_array_equal(warm.model_state, cold.model_state)
    assert np.ptp(problem.scores(warm.model_state)) > 0.1


def test_a_domain_is_refused(two_groups):
    problem = replace(problem_of(two_groups, LossParity(0.1)), domain=L2Ball(1.0))
    with pytest.raises(IncompatibleProblem, match="'adam_lagrangian' does not take the domain"):
        make_solver("adam_lagrangian", {}, problem)


# --- what happens if the second part fails


class NeverFair(AugmentedLagrangian):
    """A second part that ends far outside kappa."""

    def solve(self, problem, start, random_state, callback=None):
        found = AugmentedLagrangian(max_iter=1).solve(problem.without_constraints(), start, random_state, callback)
        return replace(found, status=Status.INFEASIBLE, model_state=found.model_state * 1.3)


@pytest.fixture
def failing(monkeypatch):
    monkeypatch.setattr(module, "AugmentedLagrangian", NeverFair)


@pytest.mark.parametrize("groups", ["two_groups", "twelve_groups"])
@pytest.mark.parametrize("kappa", [0.1, 0.01, 0.0])
@pytest.mark.parametrize("newton", [True, False], ids=["Newton steps", "rescaled"])
def test_the_promise_is_kept_when_the_second_part_fails(request, failing, monkeypatch, groups, kappa, newton):
    if not newton:
        monkeypatch.setattr(module, "_NEWTON", 0)
    problem = problem_of(request.getfixturevalue(groups), LossParity(kappa))
    result = solve(problem)
    assert gap_of(problem, result.model_state) <= kappa + 1e-9
    assert result.status == Status.COMPLETED
    assert result.constraint_values["loss_parity"] <= kappa + 1e-9
    assert result.objective == pytest.approx(objective_of(problem, result.model_state))
    assert result.objective <= np.log(2) + 1e-9
    at = FullBatchView(problem).at(problem.start(result.model_state))
    assert result.surrogate_violation == pytest.approx(max(at.constraints.max(), 0), abs=1e-12)
    if kappa == 0.0 and not newton:  # equal scores are all that is left, and that is said
        assert np.ptp(problem.scores(result.model_state)) < 1e-6
        scores = problem.scores(result.model_state)
        assert "kept by scores that are all but the same for all rows" in result.message_at(scores)
        assert result.message_at(np.arange(scores.size)) == ""  # of other scores that a fit may end with
    elif groups == "two_groups" and kappa > 0:
        assert np.ptp(problem.scores(result.model_state)) > 0.1
        assert result.message_at(problem.scores(result.model_state)) == ""
        assert result.objective < np.log(2) - 0.003


@pytest.mark.parametrize("groups", ["two_groups", "twelve_groups"])
@pytest.mark.parametrize("kappa", [0.1, 0.01])
def test_newton_steps_end_within_the_bound_and_make_nothing_worse(request, failing, monkeypatch, groups, kappa):
    problem = problem_of(request.getfixturevalue(groups), LossParity(kappa))
    offered = []

    def recorded(head, ends):
        offered.append([head.holds(head.scores(end)) for end in ends])
        return best_rescaled(head, ends)

    monkeypatch.setattr(module, "best_rescaled", recorded)
    found = solve(problem)
    assert offered == [[False, True]]
    monkeypatch.setattr(module, "_NEWTON", 0)
    assert found.objective <= solve(problem).objective + 1e-9


def test_where_scores_of_zero_do_not_keep_a_bound_either_the_best_found_stays(two_groups):
    """A loss below that of a score of zero, and below what the network reaches."""
    problem = problem_of(two_groups, GroupRates("log_loss", rule="ceiling", kappa=0.05))
    result = solve(problem)
    assert result.status == Status.INFEASIBLE
    (worst,) = result.constraint_values.values()
    assert 0.05 < worst < np.log(2) - 0.02
    assert np.ptp(problem.scores(result.model_state)) > 0.1
    assert result.message == ""


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["rows", "pairs"])
def test_the_last_layer_is_trained_on_the_objective_of_the_whole(two_groups, alpha, kind):
    """Value and gradient, of the penalty too, also where the model wraps the one that has ``alpha``."""
    model = replace(perceptron(4), alpha=alpha)
    if kind == "pairs":
        first = np.random.default_rng(0).permutation(two_groups.n_samples)
        pairs = np.column_stack([first, np.roll(first, 1)])
        model, two_groups = PairModel(model, two_groups), replace(two_groups, X=pairs)
    problem = problem_of(two_groups, LossParity(0.05), model=model)
    rng = np.random.default_rng(1)
    params = rng.normal(size=problem.n_params)
    layer = problem.model.last_layer(params, problem.data)
    head = _head(problem, params, layer)
    for _ in range(2):
        moved = params.copy()
        moved[layer.entries] = rng.normal(size=layer.entries.size)
        whole, part = FullBatchView(problem).at(moved), FullBatchView(head).at(moved[layer.entries])
        assert part.objective == pytest.approx(whole.objective)
        multipliers = rng.uniform(size=part.constraints.size)
        gradients = part.gradient(1.0, multipliers), whole.gradient(1.0, multipliers)[layer.entries]
        np.testing.assert_allclose(*gradients, atol=1e-10)
        penalties = (model.penalty(moved)[0], head.model.penalty(moved[layer.entries])[0])
        assert penalties[0] == penalties[1]
        assert (penalties[0] > 0) == (alpha > 0)


@pytest.fixture(scope="module")
def unfair_head(two_groups):
    """The last layer's problem at parameters with a gap far above its kappa of 0.05."""
    problem = problem_of(two_groups, LossParity(0.05))
    params = solve(problem.without_constraints()).model_state
    layer = problem.model.last_layer(params, problem.data)
    head = _head(problem, params, layer)
    np.testing.assert_allclose(head.scores(params[layer.entries]), problem.scores(params), atol=1e-12)
    assert not _is_fair(head, params[layer.entries])
    return head, params[layer.entries]


def test_newton_steps_end_at_the_bound_nearby(unfair_head):
    head, params = unfair_head
    restored = _restored(head, params)
    assert gap_of(head, restored) == pytest.approx(0.05, abs=1e-9)
    assert gap_of(head, restored) <= 0.05 + 1e-9
    # nearer than what another multiple leads to
    rescaled = best_rescaled(head, [params])
    assert 0 < np.linalg.norm(restored - params) < np.linalg.norm(rescaled - params)


def test_steps_that_lead_nowhere_leave_the_parameters(unfair_head, monkeypatch):
    head, params = unfair_head
    monkeypatch.setattr(module, "_NEWTON", 0)
    np.testing.assert_array_equal(_restored(head, params), params)


def test_start_carries_the_parameters_over(two_groups):
    problem = problem_of(two_groups, LossParity(0.005))
    result = solve(problem)
    np.testing.assert_array_equal(result.start.model_state, result.model_state)
    plain = solve(problem, start=Start(result.model_state), max_epochs=1, learning_rate=1e-9)
    assert plain.objective <= result.objective + 1e-3


@pytest.mark.slow
def test_weights_do_not_run_away_on_many_steps_an_epoch():
    """With weights fixed for half an epoch, the loss of the group that is to get worse grew without bound."""
    rng = np.random.default_rng(0)
    codes = (rng.random(6000) < 0.3).astype(int)
    X = rng.normal(size=(6000, 3))
    y = np.where(X[:, 0] + (1.5 - 1.3 * codes) * rng.normal(size=6000) + 0.5 > codes, 1.0, -1.0)
    data = FairData.from_arrays(X, y, codes, ("a", "b"))
    problem = problem_of(data, LossParity(0.01), MODELS["perceptron"])
    result = solve(problem, max_epochs=3, batch_size=16, polish=False)
    assert result.objective < np.log(2)
    sample = solve(problem, max_epochs=3, batch_size=16, polish=False, update_rows=500)
    assert sample.objective < np.log(2)


# --- errors in training


def test_the_slope_with_errors_is_the_derivative():
    loss = module._LossAndErrors(ROW_LOSS_OBJECTIVES["log_loss"], 0.7)
    scores = torch.linspace(-5, 5, 11, dtype=torch.float64)
    for target in (-1.0, 1.0):
        targets = torch.full_like(scores, target)
        np.testing.assert_allclose(loss.slope(scores, targets), Loss.slope(loss, scores, targets), atol=1e-12)
        errors = loss.of(scores, targets) - loss.loss.of(scores, targets)
        np.testing.assert_allclose(errors, 0.7 / (1 + np.exp(target * scores.numpy())))


def test_errors_count_only_while_a_constraint_has_a_weight(two_groups):
    for kappa, counts in ((5.0, False), (0.05, True)):
        problem = problem_of(two_groups, LossParity(kappa))
        plain, counted = (solve(problem, polish=False, error_weight=weight) for weight in (0.0, 1.0))
        assert np.array_equal(plain.model_state, counted.model_state) != counts


def test_errors_are_not_part_of_the_objective(two_groups):
    problem = problem_of(two_groups, LossParity(0.05))
    result = solve(problem, error_weight=1.0)
    assert gap_of(problem, result.model_state) <= 0.05 + 1e-9
    assert result.objective == pytest.approx(objective_of(problem, result.model_state))
