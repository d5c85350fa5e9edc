"""Fits by few numbers on cross-fitted features, which keep bounds on training rows, and better on new ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fairconstrained import PartialParityClassifier, RateParityClassifier, fairness_path
from fairconstrained.constraints import DemographicParity, EqualizedOdds, LossParity
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.solvers import CrossFitted, SequentialQuadratic
from fairconstrained.solvers.cross_fitted_span import CrossFittedSpan
from tests.solvers.conftest import have_steps_diverge

OLD = "augmented_lagrangian"


def draw(n_samples, seed):
    """Rows of 40 features, ten of which say something of the label and three of the group."""
    rng = np.random.default_rng(seed)
    groups = (rng.random(n_samples) < 0.4).astype(int)
    X = rng.normal(size=(n_samples, 40))
    X[:, :3] += 0.8 * groups[:, None]
    y = (X[:, :10].sum(axis=1) + 2 * rng.normal(size=n_samples) > 1).astype(int)
    return X, y, groups


def fitted(rows, solver="auto", kappa=0.05, constraint="demographic_parity", **params):
    model = PartialParityClassifier(
        kappa, constraint=constraint, solver=solver, random_state=0, new_row_folds=None, **params
    )
    return model.fit(rows[0], rows[1], sensitive_features=rows[2])


@pytest.fixture(scope="module")
def rows():
    return draw(2000, 0)


@pytest.fixture(scope="module")
def new_rows():
    return draw(40_000, 1)


def gap(model, rows):
    return model.constraint_values(rows[0], rows[1], sensitive_features=rows[2])[model.constraint]


@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("objective", ["logistic", "zero_one"])
def test_bounds_hold_on_the_training_rows(rows, constraint, objective):
    model = fitted(rows, "cross_fitted", 0.03, constraint, objective=objective)
    assert model.status_ in ("optimal", "completed")
    assert model.constraint_values_[constraint] <= 0.03 + model.granularity_[constraint]


@pytest.mark.slow
def test_it_is_the_default_where_rates_of_many_rows_are_bounded(rows):
    assert fitted(rows).solver_ == "cross_fitted"
    np.testing.assert_array_equal(fitted(rows).coef_, fitted(rows, "cross_fitted").coef_)
    assert RateParityClassifier(0.05).fit(rows[0], rows[1], sensitive_features=rows[2]).solver_ == "cross_fitted"
    few_features = (rows[0][:, :8], *rows[1:])
    assert fitted(few_features).solver_ == OLD
    few_rows = tuple(column[:200] for column in rows)
    assert fitted(few_rows).solver_ == "span"
    assert fitted(rows, constraint="statistical_parity").solver_ == "span"
    assert fitted(rows, constraint=LossParity(0.05)).solver_ == "span"
    assert fitted(rows, constraint="group_auc").solver_ == OLD


def test_bounds_that_the_unconstrained_model_keeps_leave_it_alone(rows):
    free = PartialParityClassifier(None).fit(rows[0], rows[1], sensitive_features=rows[2])
    loose = fitted(rows, "cross_fitted", 0.9)
    np.testing.assert_allclose(loose.coef_, free.coef_, rtol=1e-3, atol=1e-3)
    assert loose.objective_ == pytest.approx(free.objective_, rel=1e-6)


def test_a_loose_bound_leaves_the_models_of_the_folds_to_the_next_one(rows):
    model = PartialParityClassifier(constraint="demographic_parity", random_state=0, new_row_folds=None)
    path = fairness_path(model, rows[0], rows[1], sensitive_features=rows[2], kappas=[0.9, 0.05])
    cold = fitted(rows)
    np.testing.assert_allclose(path.models[1].coef_, cold.coef_, rtol=1e-6)
    assert path.models[1].n_evaluations_ < cold.n_evaluations_


@pytest.mark.slow
@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
def test_bounds_hold_better_on_new_rows(new_rows, constraint):
    gaps, accuracies = np.array(
        [
            [(gap(model, new_rows), model.score(*new_rows[:2])) for model in models]
            for models in (
                [fitted(draw(2000, seed), solver, constraint=constraint) for solver in ("cross_fitted", OLD)]
                for seed in range(2, 5)
            )
        ]
    ).transpose(2, 1, 0)
    own, old = gaps.mean(axis=1)
    assert own < 0.09
    assert own < old - 0.03
    own, old = accuracies.mean(axis=1)
    assert own > old - 0.035  # the price of the smaller gap


def below(scores):
    """Share of the scores just below the threshold among those near it, and its standard error."""
    near = scores[np.abs(scores) < 0.1]
    return np.mean(near <= 0), np.sqrt(0.25 / near.size)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3, 4])
def test_directions_are_those_of_many_rows_where_classes_are_nearly_separated(seed):
    def near(n_samples, seed):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, n_samples)
        groups = (rng.random(n_samples) < 0.3 + 0.35 * y).astype(int)
        X = rng.normal(size=(n_samples, 25))
        X[:, :4] += 2 * y[:, None]
        X[:, 4:8] += 0.8 * groups[:, None]
        return X, y, groups

    # of 500 rows the unconstrained model is sure of all but about 40; their directions took a tenth of the accuracy
    model, new = fitted(near(500, seed)), near(20_000, 99)
    assert model.solver_ == "cross_fitted"
    assert model.constraint_values_["demographic_parity"] <= 0.05 + model.granularity_["demographic_parity"]
    assert model.score(new[0], new[1]) > 0.8
    assert gap(model, new) < 0.1


def test_no_rows_are_lined_up_under_the_threshold(new_rows):
    """The mean of four absolute standard normal numbers is 0.8, and above 1.4 for one in forty."""
    apart = []
    for seed in (3, 4, 5, 6):
        rows = draw(8000, seed)
        model = fitted(rows, "auto", kappa=0.1)
        (share, error), (usual, _) = (below(model.decision_function(part[0])) for part in (rows, new_rows))
        apart.append(abs(share - usual) / error)
    assert np.mean(apart) < 1.4


def test_a_path_is_hardly_worse_than_fits_from_the_start(rows):
    model = PartialParityClassifier(constraint="demographic_parity", random_state=0, new_row_folds=None)
    path = fairness_path(model, rows[0], rows[1], sensitive_features=rows[2], kappas=[0.1, 0.05, 0.02])
    for kappa, found in zip((0.1, 0.05, 0.02), path.models, strict=True):
        assert found.constraint_values_["demographic_parity"] <= kappa + found.granularity_["demographic_parity"]
        assert found.objective_ <= 1.02 * fitted(rows, kappa=kappa).objective_


def test_a_strong_penalty_leaves_a_model_nearly_as_good_as_that_of_all_coefficients(rows):
    """A direction that the others make superfluous tells the folds, and the few numbers were chosen by it."""
    objectives = []
    for alpha in (0.3, 0.6, 1.0, 2.0, 3.0):
        found = fitted(rows, "cross_fitted", alpha=alpha)
        assert found.status_ == "optimal"
        objectives.append(found.objective_)
        share = rows[1].mean()
        assert found.objective_ < -share * np.log(share) - (1 - share) * np.log(1 - share)
        if alpha > 0.5:  # few directions cost more under a weaker penalty
            assert found.objective_ <= 1.02 * fitted(rows, OLD, alpha=alpha).objective_
    assert np.all(np.diff(objectives) > 0)


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 3.0])
def test_features_of_rows_not_seen_vary_as_those_of_all_rows(rows, make_problem, alpha):
    X, y, groups = rows
    data = FairData.from_arrays(X, 2.0 * y - 1, groups, (0, 1))
    problem = make_problem(data, DemographicParity(0.05).bind(data), alpha=alpha)
    span = CrossFittedSpan.of(problem, data.folds(5), np.random.default_rng(0))
    seen = problem.model.column_scores(span.columns, data)
    assert np.all(span.features.std(axis=0) < 1.5 * seen.std(axis=0))


def test_where_the_span_keeps_no_bound_the_training_rows_alone_count():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 60)
    rows = rng.normal(size=(120, 40)), rng.integers(0, 2, 120), groups
    model = fitted(rows, "cross_fitted", 0.01)
    assert model.constraint_values_["demographic_parity"] <= 0.01 + model.granularity_["demographic_parity"]


def test_other_methods_follow_one_that_diverges(rows, monkeypatch):
    """A model of a diverged run, shifted into the bounds, ends the search only if it is as good as a settled one."""
    objective, diverged = fitted(rows, "cross_fitted", 0.1).objective_, have_steps_diverge(monkeypatch)
    model = fitted(rows, "cross_fitted", 0.1)  # warnings are errors, so there is no message
    assert diverged
    assert model.status_ == "completed"
    assert model.objective_ <= 1.01 * objective


def test_weights_and_sparse_features(rows):
    from scipy.sparse import csr_array

    dense = fitted(rows, "cross_fitted")
    sparse = fitted((csr_array(rows[0]), *rows[1:]), "cross_fitted")
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-3, atol=1e-3)
    weighted = PartialParityClassifier(0.05, constraint="demographic_parity", random_state=0, new_row_folds=None)
    weights = np.random.default_rng(0).uniform(0.5, 2, rows[1].size)
    weighted.fit(rows[0], rows[1], sensitive_features=rows[2], sample_weight=weights)
    assert weighted.violation_ <= weighted.granularity_["demographic_parity"]


def without_folds(problem):
    """The result of a fit, its span, and for every fold the other rows and the parameters without it."""
    solver, rng = CrossFitted(), np.random.default_rng(0)
    result, folds = solver.solve(problem, None, rng), problem.data.folds(solver.n_folds)
    span = CrossFittedSpan.of(problem, folds, rng, result.start.solver_state.models)
    states = solver.without_folds(problem, result)
    return result, span, [(np.flatnonzero(folds != fold), state) for fold, state in enumerate(states)]


def test_a_step_leads_to_the_optimum_without_a_fold(parity_problem):
    problem = parity_problem(DemographicParity, 1.0, (600, 500))
    result, span, found = without_folds(problem)
    assert len(found) == 5

    def optimum(of):
        return SequentialQuadratic().solve(of.problem.without_constraints(), None, np.random.default_rng(0)).model_state

    whole, numbers = optimum(span), result.start.solver_state.chosen.params
    for fold, (seen, state) in enumerate(found):
        part = span.without(fold, seen)
        exact, before = (problem.scores(part.lift(b)) for b in (numbers + optimum(part) - whole, numbers))
        assert np.std(problem.scores(state) - exact) < 0.2 * np.std(before - exact)


@pytest.mark.parametrize("notion", [DemographicParity, EqualizedOdds])
def test_models_without_a_fold_keep_the_bound_nearly(parity_problem, notion):
    problem = parity_problem(notion, 0.03, (600, 500))
    result, span, found = without_folds(problem)
    of_seen = [problem.on(problem.data.part(seen)) for seen, _ in found]
    gaps = [rest.constraints[0].metric(rest.scores(state)) for rest, (_, state) in zip(of_seen, found, strict=True)]
    free = [rest.constraints[0].metric(rest.scores(span.lift(span.free))) for rest in of_seen]
    assert np.mean(gaps) < np.mean(free) / 3
    assert all(np.std(problem.scores(state) - problem.scores(result.model_state)) > 0 for _, state in found)


def test_modules_are_refused():
    X, y, groups = make_biased_classification(n_samples=400, random_state=0)
    model = RateParityClassifier(0.1, solver="cross_fitted", hidden_layer_sizes=(3,))
    with pytest.raises(ValueError, match="needs linear scores"):
        model.fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("notion", [DemographicParity, EqualizedOdds])
@pytest.mark.parametrize("n_copies", [1, 2])
def test_the_second_problem_bounds_the_lifted_model_too(parity_problem, notion, n_copies):
    problem = parity_problem(notion, 0.1)
    problem = replace(problem, model=replace(problem.model, n_copies=n_copies))
    span = CrossFittedSpan.of(problem, problem.data.folds(3), np.random.default_rng(0))
    first, second = span.problems(problem)
    params = np.random.default_rng(1).normal(size=first.n_params)
    unseen, seen = (c.metric(second.scores(params)) for c in second.constraints)
    assert unseen == pytest.approx(first.constraints[0].metric(first.scores(params)))
    assert seen == pytest.approx(problem.constraints[0].metric(problem.scores(span.lift(params))))
    at_first, at_second = (each.objective_at(params, each.scores(params)) for each in (first, second))
    assert at_second == pytest.approx(at_first)


@pytest.mark.parametrize("notion", [DemographicParity, LossParity])
def test_rows_of_a_fold_are_copied_once_for_all_sums_and_once_for_their_features(parity_problem, notion, monkeypatch):
    problem, copied, at = parity_problem(notion, 0.1, (600, 500)), [], FairData.at
    monkeypatch.setattr(FairData, "at", lambda data, *given: copied.append(data) or at(data, *given))
    CrossFittedSpan.of(problem, problem.data.folds(3), np.random.default_rng(0))
    assert sum(data is problem.data for data in copied) == 2 * 3


def test_the_second_problem_gathers_no_features_that_it_replaces(parity_problem, monkeypatch):
    problem = parity_problem(DemographicParity, 0.1)
    span = CrossFittedSpan.of(problem, problem.data.folds(3), np.random.default_rng(0))
    widths, at = [], FairData.at
    monkeypatch.setattr(FairData, "at", lambda data, *given: widths.append(data.X.shape[1]) or at(data, *given))
    _, second = span.problems(problem)
    assert widths == [0]
    assert second.data.X.shape == (2 * problem.data.n_samples, span.features.shape[1])


def test_the_price_of_a_bound_is_that_of_both_its_copies(parity_problem):
    problem = parity_problem(DemographicParity, 0.1)
    span = CrossFittedSpan.of(problem, problem.data.folds(5), np.random.default_rng(0))
    first, *_ = span.problem.component_names
    _, twice = span.problems(problem)
    copy = twice.component_names[len(span.problem.component_names)]
    assert span.of_both({first: 0.25, copy: 0.5}) == {first: 0.75}
    assert span.of_both({copy: 0.5}) == {first: 0.5}
    assert span.of_both({}) == {}
    assert span.of_both(None) is None


def test_bounds_that_the_training_rows_exceed_are_added():
    """The bound on cross-fitted scores alone leaves the training rows above kappa here."""
    model = fitted(draw(2000, 8), "cross_fitted", 0.02, "equalized_odds")
    assert model.n_iter_ == 2
    assert 0.015 < model.constraint_values_["equalized_odds"] <= 0.02 + model.granularity_["equalized_odds"]


def test_an_optimum_that_loses_most_is_not_the_last_one_looked_for():
    """The first method settles at scores of hardly any use here, as features tell the group as well as the label."""
    rng = np.random.default_rng(7)
    groups = rng.choice(4, 4000, p=[0.3, 0.15, 0.15, 0.4])
    y = (rng.random(4000) < np.array([0.12, 0.25, 0.3, 0.5])[groups]).astype(int)
    X = rng.normal(size=(4000, 10))
    X[:, :3] += (y + 1.5 * (groups == 3))[:, None]
    X[:, 1:4] += 0.7 * y[:, None] - 1.5 * (groups == 0)[:, None]
    X[:, 4] += 0.5 * y + 1.5 * (groups == 1)
    model = fitted((X, y, groups), kappa=0.02, constraint="equal_opportunity")
    assert model.solver_ == "cross_fitted"
    assert model.objective_ < 0.52  # it was .626, and constant scores have .627


def test_an_optimum_that_loses_most_is_told_from_a_model_of_many_features_too():
    """With a quarter as many features as rows, the unconstrained model is worse on rows not seen than a constant."""
    model = fitted(make_biased_classification(1000, 250, random_state=4), kappa=0.05)
    assert model.solver_ == "cross_fitted"
    assert model.objective_ < 0.6  # it was .657, and constant scores have .69


def test_a_ratio_needs_no_further_method_after_smooth_decisions():
    """Features tell the group, so that the bound takes more than half of what the model is worth."""
    rng = np.random.default_rng(2)
    groups = rng.choice(2, 1500)
    X = rng.normal(size=(1500, 10))
    X[:, :2] += 1.5 * groups[:, None]
    y = (X[:, :3].sum(axis=1) + rng.logistic(size=1500) > 1.5).astype(int)
    model = RateParityClassifier(
        0.05, constraint="demographic_parity_ratio", solver="cross_fitted", random_state=0, new_row_folds=None
    ).fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"
    assert model.objective_ < 0.635  # as the augmented Lagrangian finds as well
    assert model.n_evaluations_ < 300  # 1049 with it


def draw_wide(n_samples, seed):
    """Rows of 300 features, all of which say something of the label and 15 of the group."""
    rng = np.random.default_rng(0)
    coefficients = rng.normal(size=300)
    coefficients[:15] += 1
    rng = np.random.default_rng(seed)
    groups = (rng.random(n_samples) < 0.35).astype(int)
    X = rng.normal(size=(n_samples, 300))
    X[:, :15] += 0.3 * groups[:, None]
    y = (X @ coefficients / 9 + rng.logistic(size=n_samples) > 0.5).astype(int)
    return X, y, groups


@pytest.mark.parametrize("notion", [DemographicParity, EqualizedOdds])
@pytest.mark.parametrize("seed", [0, 1])
def test_directions_of_few_rows_tell_no_labels_of_rows_not_seen(parity_problem, notion, seed):
    """Features that say nothing of the labels lead to cross-fitted ones that say nothing of them either."""
    problem = parity_problem(notion, 0.1, (600, 500))
    noise = np.random.default_rng(seed).normal(size=(1100, 500))
    wide = replace(problem.data, X=noise)
    problem = replace(problem, data=wide, model=problem.model.with_features(500)).on(wide)
    span = CrossFittedSpan.of(problem, wide.folds(5), np.random.default_rng(0))
    centred = span.features - span.features.mean(axis=0)
    labels = wide.y.numpy() - wide.y.numpy().mean()
    fitted, *_ = np.linalg.lstsq(centred, labels, rcond=None)
    share = 1 - np.mean((labels - centred @ fitted) ** 2) / np.mean(labels**2)
    assert share < 0.05  # where labels were told, the share was a fifth


@pytest.mark.slow
def test_the_accuracy_of_few_rows_for_each_feature():
    new, found = draw_wide(10_000, 99), []
    for seed in (1, 2, 3):
        rows = draw_wide(1500, seed)
        found.append([(gap(model, new), model.score(*new[:2])) for model in (fitted(rows), fitted(rows, OLD))])
    (own, accuracy), (old, other) = np.mean(found, axis=0)
    assert own < old - 0.02
    assert accuracy > other - 0.003


@pytest.mark.slow
def test_it_is_the_default_of_more_than_a_thousand_features():
    X, y, groups = draw(600, 0)
    wide = sp.csr_array(np.hstack([X, np.eye(600), np.eye(600)[::-1]]))
    model = fitted((wide, y, groups))
    assert model.solver_ == "cross_fitted"
    assert model.constraint_values_["demographic_parity"] <= 0.05 + model.granularity_["demographic_parity"]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_very_wide_data_are_refused(n_classes):
    rows = sp.csr_array(np.eye(30, 5001)), np.arange(30) % n_classes, np.arange(30) // 15
    with pytest.raises(IncompatibleProblem, match="at most 5,000 features, and there are 5,001"):
        fitted(rows, "cross_fitted", 0.5)


def test_groups_with_coefficients_of_their_own(rows):
    model = fitted(rows, "cross_fitted", 0.03, group_interactions=True)
    assert model.coef_.shape == (2, 40)
    assert model.constraint_values_["demographic_parity"] <= 0.03 + model.granularity_["demographic_parity"]
    shared = fitted(rows, "cross_fitted", 0.03)
    assert model.objective_ < shared.objective_


@pytest.mark.slow
def test_bounds_of_models_by_group_hold_better_on_new_rows(new_rows):
    def gaps_and_accuracies(solver):
        models = [fitted(draw(2000, seed), solver, group_interactions=True) for seed in range(2, 5)]
        X, y, groups = new_rows
        gaps = [m.constraint_values(X, y, sensitive_features=groups)["demographic_parity"] for m in models]
        return np.mean(gaps), np.mean([m.score(X, y, sensitive_features=groups) for m in models])

    (own, accuracy), (old, other) = gaps_and_accuracies("auto"), gaps_and_accuracies(OLD)
    assert own < 0.07
    assert own < old - 0.05
    assert accuracy > other - 0.015  # the price of the smaller gap
