"""Estimates of the bounded metrics for new rows, and bounds on them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from fairconstrained import (
    AUCFairClassifier,
    FairBoostingClassifier,
    FairRanker,
    GroupLossClassifier,
    LossParityClassifier,
    NeymanPearsonClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    fairness_path,
)
from fairconstrained.constraints import AUCGap, BoundConstraint, DemographicParity, GroupRates, LossParity, auc_sets
from fairconstrained.constraints.neyman_pearson import ClassError, ClassLoss
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.estimators import _new_row_estimates, new_rows
from fairconstrained.estimators._cross_fitted_gaps import for_all_rows, held_out_scores
from fairconstrained.estimators._new_row_estimates import NewRowEstimates, NewRowGap
from fairconstrained.estimators._standard_errors import standard_errors
from fairconstrained.exceptions import ConvergenceWarning, NewRowsWarning
from fairconstrained.heads import FairHeadClassifier
from fairconstrained.metrics import loss_parity_gap
from fairconstrained.models import LinearModel
from fairconstrained.models.margins import MarginData
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import CrossFittedSpan, Status

pytestmark = pytest.mark.usefixtures("new_row_estimates")


@pytest.fixture(scope="module")
def rows():
    return make_biased_classification(n_samples=1200, random_state=0)


@pytest.fixture(scope="module")
def wide():
    """A thousand rows of sixty features, with which a bound on decisions is memorised."""
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 500)
    X = rng.normal(size=(1000, 60))
    X[:, 0] += 2 * groups
    return X, (X[:, 0] + rng.normal(size=1000) > 1).astype(int), groups


def rates(kappa=0.05, **params):
    return PartialParityClassifier(kappa, constraint="demographic_parity", random_state=0, **params)


def fitted(model, rows):
    X, y, groups = rows
    return model.fit(X, y, sensitive_features=groups)


ESTIMATORS = [
    (PartialParityClassifier(0.05), 2),
    (PartialParityClassifier(0.05, constraint="equalized_odds", objective="zero_one"), 5),
    (AUCFairClassifier(0.05), 2),
    (LossParityClassifier(0.05, hidden_layer_sizes=(4,), max_epochs=2, random_state=0), 2),
    (FairBoostingClassifier(0.3, n_estimators=40, cv=None, random_state=0), 2),
    (FairBoostingClassifier(0.3, n_estimators=40, new_row_folds=3, random_state=0), 3),
]


@pytest.mark.parametrize(("model", "n_folds"), ESTIMATORS, ids=lambda value: type(value).__name__)
def test_every_bounded_metric_has_an_estimate(model, n_folds, rows):
    model = fitted(clone(model), rows)
    assert model.new_row_gaps_.keys() == model.constraint_values_.keys()
    for gap in model.new_row_gaps_.values():
        assert 0 <= gap.estimate <= 1
        assert 0 < gap.standard_error < 0.2
        assert gap.how == f"{n_folds}-fold cross-fitting"


#: Models, and what becomes of rows: features, labels and groups.
KINDS = {
    "sparse": (rates(0.2), lambda X, y, groups: (sp.csr_array(X), y, {"sensitive_features": groups})),
    "weights": (rates(0.2), lambda X, y, groups: (X, y, {"sensitive_features": groups, "sample_weight": y + 1.0})),
    "by group": (
        rates(0.2, group_interactions=True),
        lambda X, y, groups: (X, y, {"sensitive_features": groups}),
    ),
    "small groups": (
        rates(0.2, small_groups="merge"),
        lambda X, y, groups: (X, y, {"sensitive_features": np.where(np.arange(y.size) < 8, ["c", "d"] * 150, groups)}),
    ),
    "groups that overlap": (
        RateParityClassifier(0.2, random_state=0),
        lambda X, y, groups: (X, y, {"sensitive_features": np.stack([groups == groups[0], X[:, 1] > 0], axis=1)}),
    ),
    "strata": (
        RateParityClassifier(0.2, constraint="conditional", random_state=0),
        lambda X, y, groups: (X, y, {"sensitive_features": groups, "strata": X[:, 1] > 0}),
    ),
    "classes": (
        RateParityClassifier(0.2, random_state=0),
        lambda X, y, groups: (X, y + (X[:, 0] > 1), {"sensitive_features": groups}),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_have_an_estimate(rows, kind):
    model, change = KINDS[kind]
    X, y, columns = change(*(part[:300] for part in rows))
    model = clone(model).set_params(tol=0.05).fit(X, y, **columns)
    (gap,) = model.new_row_gaps_.values()
    assert 0 < gap.estimate < 0.6
    assert 0 < gap.standard_error < 0.2
    assert gap.how == ("5-fold cross-fitting" if kind == "groups that overlap" else "2-fold cross-fitting")


@pytest.mark.slow
def test_the_estimate_is_that_of_models_which_have_not_seen_the_rows(rows):
    X, y, groups = rows
    model = fitted(rates(new_row_folds=2), rows)
    order = np.lexsort((y, groups))
    halves = np.empty(y.size, dtype=int)
    halves[order] = _ordered_data(y, groups).folds(2)
    decisions = np.empty(y.size)
    for half in (0, 1):
        part = rates(new_row_folds=None).fit(
            X[halves != half], y[halves != half], sensitive_features=groups[halves != half]
        )
        decisions[halves == half] = part.predict(X[halves == half])
    names = np.unique(groups)
    shares = [decisions[groups == name].mean() for name in names]
    assert model.new_row_gaps_["demographic_parity"].estimate == pytest.approx(abs(shares[0] - shares[1]), abs=0.02)


def _problem_of(rows):
    X, y, groups = rows
    data = _ordered_data(y, groups)
    data = replace(data, X=X[data.order])
    constraint = DemographicParity(0.05).bind(data)
    model = LinearModel(X.shape[1], 1)
    return Problem(Logistic().bind(data), (constraint,), data, model=model), data.folds(3)


def _ordered_data(y, groups):
    codes = np.unique(groups, return_inverse=True)[1]
    return FairData.from_arrays(np.empty((y.size, 0)), 2.0 * y - 1, codes, tuple(np.unique(groups)))


def test_standard_error_of_a_difference_of_rates(rows):
    X, _, groups = rows
    model = fitted(PartialParityClassifier(0.2, constraint="demographic_parity", random_state=0), rows)
    decisions, first = model.predict(X), groups == np.unique(groups)[0]
    variance = sum(decisions[part].var() / part.sum() for part in (first, ~first))
    # 25 draws tell a standard error to about a seventh
    assert model.new_row_gaps_["demographic_parity"].standard_error == pytest.approx(np.sqrt(variance), rel=0.4)


def _decided(accepted, sizes, labels=1):
    """Data, and scores of which so many are positive in groups of these sizes."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    data = _ordered_data(np.resize(np.arange(labels), codes.size), codes)
    scores = np.concatenate([np.where(np.arange(n) < k, 1.0, -1.0) for k, n in zip(accepted, sizes, strict=True)])
    return data, scores


def test_standard_error_of_a_ratio_with_few_accepted():
    data, scores = _decided([8, 120], [100, 400])
    ratio = GroupRates("selection", rule="ratio", kappa=0.2).bind(data)
    (error,) = standard_errors([ratio], data, scores).values()
    relative = np.sqrt(0.92 / 8 + 0.7 / 120)  # of the logarithm of the ratio
    assert error == pytest.approx((0.08 / 0.3) * relative, rel=0.4)


@pytest.mark.parametrize("accepted", [0, 100])
def test_rates_of_no_row_and_of_all_rows_have_an_error(accepted):
    data, scores = _decided([accepted, 200], [100, 400])
    gap = DemographicParity(0.2).bind(data)
    (error,) = standard_errors([gap], data, scores).values()
    sampled = np.sqrt(0.25 / 400)
    assert sampled < error < 2 * sampled
    ceiling = GroupRates("selection", rule="ceiling" if accepted else "floor", kappa=0.5).bind(data)
    (error,) = standard_errors([ceiling], data, scores).values()
    assert 0.2 / 100 < error < 2 / 100


def test_draws_for_few_rows_are_made_once(monkeypatch):
    data, scores = _decided([30, 120], [100, 411])
    draws, default_rng = [], np.random.default_rng
    gap = DemographicParity(0.2).bind(data)
    first = standard_errors([gap], data, scores)
    monkeypatch.setattr(np.random, "default_rng", lambda seed: draws.append(seed) or default_rng(seed))
    assert standard_errors([gap], data, scores) == first
    assert 0 not in draws  # the seed of the draws for the rows


def _margins(n_of_class, n_classes):
    """Margins of samples of these classes."""
    targets = np.repeat(np.arange(n_classes, dtype=float), n_of_class)
    items = FairData.from_arrays(np.empty((targets.size, 0)), targets, np.zeros(targets.size, dtype=int), ("all",))
    return MarginData.of(items, tuple(range(n_classes)))


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_error_rates_of_none_and_of_all_of_a_class_have_a_standard_error(n_classes, side):
    data = _margins(100, n_classes)
    rate = ClassError(0, 0.1, Logistic()).bind(data)
    (error,) = standard_errors([rate], data, np.full(data.n_samples, side)).values()
    assert 0.2 / 100 < error < 2 / 100


def test_the_loss_of_a_class_varies_as_a_mean_does():
    data = _margins(400, 3)
    scores = np.random.default_rng(0).normal(size=data.n_samples)
    loss = ClassLoss(0, 0.1, Logistic()).bind(data)
    (error,) = standard_errors([loss], data, scores, data.clusters).values()
    losses = np.logaddexp(0, -scores[:800]).reshape(400, 2).sum(axis=1)
    assert error == pytest.approx(losses.std() / 20, rel=0.4)
    (none,) = standard_errors([loss], data, np.ones(data.n_samples), data.clusters).values()
    assert none == pytest.approx(0, abs=1e-9)


def test_standard_error_of_equal_gaps():
    data, scores = _decided([50, 50, 50], [100, 100, 100])
    gap = DemographicParity(0.2).bind(data)
    (error,) = standard_errors([gap], data, scores).values()
    drawn = np.random.default_rng(0).binomial(100, 0.5, (4000, 3)) / 100
    assert error == pytest.approx(np.sqrt((np.ptp(drawn, axis=1) ** 2).mean()), rel=0.35)


@pytest.mark.parametrize("scale", [1, 1e300], ids=["distinct", "ties"])
def test_rows_are_sorted_once_for_all_draws_of_an_auc(make_data, monkeypatch, scale):
    data, rng = make_data(counts=(90, 120)), np.random.default_rng(0)
    gap, scores = AUCGap(0.05, constraint="inter_group").bind(data), np.round(rng.normal(size=210) * 10 / scale, 3)
    weights = rng.dirichlet(np.ones(210), size=3)
    expected = BoundConstraint.metrics_with_weights(gap, scores, weights)
    seen, of_one = [], auc_sets.centred_aucs

    def recorded(scores, *others):
        seen.append(scores)
        return of_one(scores, *others)

    monkeypatch.setattr(auc_sets, "centred_aucs", recorded)
    np.testing.assert_allclose(gap.metrics_with_weights(scores, weights), expected, rtol=1e-12, atol=1e-15)
    assert len(seen) == 3
    assert all((np.diff(own) <= 0).all() for own in seen)


@pytest.mark.parametrize(
    "gap",
    [
        GroupRates("selection", rule="ratio", kappa=0.2),
        GroupRates("false_positive", rule="to_overall", kappa=0.2),
        GroupRates("positive_predictive_value", kappa=0.2),
        LossParity(0.2),
    ],
    ids=lambda gap: str(getattr(gap, "rate", "loss")),
)
def test_means_are_taken_once_for_all_draws(make_data, monkeypatch, gap):
    data, rng = make_data(counts=(90, 120, 60)), np.random.default_rng(0)
    bound, scores, weights = gap.bind(data), rng.normal(size=270), rng.dirichlet(np.ones(270), size=4)
    expected = BoundConstraint.metrics_with_weights(bound, scores, weights)
    monkeypatch.setattr(type(bound), "metric", None)
    np.testing.assert_allclose(bound.metrics_with_weights(scores, weights), expected, rtol=1e-12, atol=1e-15)


def test_rows_of_one_unit_are_drawn_together():
    data, scores = _decided([30, 60], [100, 100])
    gap = DemographicParity(0.2).bind(data)
    single = standard_errors([gap], data, scores)["demographic_parity"]
    fours = standard_errors([gap], data, scores, np.arange(200) // 4)["demographic_parity"]
    assert fours == pytest.approx(2 * single, rel=0.5)


def test_the_models_of_the_folds_have_fewer_rows():
    estimate, correction = for_all_rows(0.05, 0.15, 2)
    assert estimate == pytest.approx(0.05 + np.sqrt(0.5) * 0.1)
    assert correction == pytest.approx(0.15 - estimate)
    assert for_all_rows(0.05, 0.15, 10_000) == pytest.approx((0.15, 0), abs=1e-4)
    assert for_all_rows(np.nan, 0.15, 2) == (0.15, 0)
    assert for_all_rows(0.05, 0.15, 2, power=1) == pytest.approx((0.1, 0.05))


@pytest.mark.slow
def test_estimates_are_as_far_from_the_population_as_they_say():
    beyond = []
    for draw in range(4):
        X, y, groups = make_biased_classification(n_samples=21_000, n_features=30, random_state=draw)
        model = rates(0.05, solver="augmented_lagrangian", max_iter=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[:1000], y[:1000], sensitive_features=groups[:1000])
        gap, decisions = model.new_row_gaps_["demographic_parity"], model.predict(X[1000:])
        shares = [decisions[groups[1000:] == name].mean() for name in np.unique(groups)]
        beyond.append((abs(shares[0] - shares[1]) - gap.estimate) / gap.standard_error)
    assert np.max(np.abs(beyond)) < 2
    assert 0.2 < np.sqrt(np.mean(np.square(beyond))) < 1.4


def test_a_bound_that_was_learnt_by_heart_is_said(wide):
    with pytest.warns(NewRowsWarning, match=r"estimate for new rows, 2-fold.*Set promise='new_rows'") as caught:
        model = fitted(rates(0.02, solver="augmented_lagrangian"), wide)
    assert len(caught) == 1
    assert model.violation_ <= model.granularity_["demographic_parity"]
    assert model.new_row_gaps_["demographic_parity"].estimate > 0.1


def test_turned_off(wide):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(rates(0.02, new_row_folds=None), wide)
    assert model.new_row_gaps_ == {}


def test_the_fit_is_the_same_with_and_without_an_estimate(rows):
    with_estimate, without = (fitted(rates(new_row_folds=folds), rows) for folds in ("auto", None))
    np.testing.assert_array_equal(with_estimate.coef_, without.coef_)
    assert with_estimate.objective_ == without.objective_


def test_folds_have_the_same_share_of_every_group_and_class(rows):
    _, y, groups = rows
    data = _ordered_data(y, groups)
    folds = data.folds(3)
    cells = 2 * data.codes + (data.y.numpy() > 0)
    table = np.array([np.bincount(folds[cells == cell], minlength=3) for cell in np.unique(cells)])
    assert np.ptp(table, axis=1).max() <= 1
    np.testing.assert_array_equal(folds, data.folds(3))
    units = np.arange(y.size) // 5
    of_units = data.folds(2, units)
    assert all(np.unique(of_units[units == unit]).size == 1 for unit in np.unique(units))


def test_the_rows_are_put_into_the_order_of_folds_once(rows, monkeypatch):
    _, y, groups = rows
    data, orders, lexsort = _ordered_data(y, groups), [], np.lexsort
    monkeypatch.setattr(np, "lexsort", lambda keys: orders.append(1) or lexsort(keys))
    folds = [data.folds(n_folds) for n_folds in (5, 2, 5)]
    assert len(orders) == 1
    np.testing.assert_array_equal(folds[0], folds[2])
    assert np.unique(folds[1]).size == 2


def test_too_few_rows_for_an_estimate(rows):
    X, y, groups = rows
    few = np.flatnonzero(groups == np.unique(groups)[0])[:20]
    chosen = np.concatenate([few, np.flatnonzero(groups == np.unique(groups)[1])])
    model = rates(0.1, new_row_folds=15).fit(X[chosen], y[chosen], sensitive_features=groups[chosen])
    (gap,) = model.new_row_gaps_.values()
    assert np.isnan(gap.estimate)
    assert "15 folds need 30 rows" in gap.how
    with pytest.raises(ValueError, match=r"promise='new_rows' needs an estimate on new rows, but 15 folds need 30"):
        model.set_params(promise="new_rows").fit(X[chosen], y[chosen], sensitive_features=groups[chosen])


def test_nothing_bounded_is_nothing_estimated(rows):
    assert fitted(rates(None), rows).new_row_gaps_ == {}
    assert fitted(rates(None, promise="new_rows"), rows).new_row_gaps_ == {}
    assert fitted(GroupLossClassifier(None, constraint="loss_parity"), rows).new_row_gaps_ == {}


def test_a_floor_without_a_bound_is_estimated_beside_another_constraint(rows):
    both = [("floor", GroupRates("log_loss", kappa=None, rule="floor")), ("gap", GroupRates("log_loss", kappa=0.02))]
    model = fitted(GroupLossClassifier(constraint=both), rows)
    assert model.constraint_values_["gap"] <= 0.02
    least = model.new_row_gaps_["floor"].estimate
    assert least == pytest.approx(model.group_losses_["loss"].min(), abs=0.02)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.CostlyBoundWarning")
def test_a_promise_that_only_a_constant_score_keeps_is_kept_by_it(wide):
    with pytest.warns(ConvergenceWarning, match=r"the best constant score within it was taken"):
        model = fitted(rates(0.0, promise="new_rows"), wide)
    assert model.status_ == "max_iter"
    assert model.violation_ == 0


@pytest.mark.filterwarnings("ignore:solver 'interior_point'. no coefficients keep the bound")
def test_a_promise_that_is_not_kept_is_said(rows):
    with pytest.warns(ConvergenceWarning, match=r"No smaller bound in the fit kept it"):
        model = fitted(GroupLossClassifier(0.375, promise="new_rows", random_state=0), rows)
    assert model.status_ == "infeasible"  # constant scores have a loss of about log 2
    (gap,) = model.new_row_gaps_.values()
    assert gap.estimate > 0.38
    assert model.violation_ == pytest.approx(gap.estimate - 0.375)


def test_promise_without_folds(rows):
    with pytest.raises(ValueError, match="set new_row_folds"):
        fitted(rates(promise="new_rows", new_row_folds=None), rows)


def test_bounds_of_classes(rows):
    X, y, _ = rows
    model = NeymanPearsonClassifier({1: 0.4}, constraint="error").fit(X, y)
    (gap,) = model.new_row_gaps_.values()
    assert gap.estimate == pytest.approx(0.4, abs=0.1)


@pytest.mark.slow
def test_a_regressor(rows):
    X, _, groups = rows
    target = X[:, 0] + (groups == np.unique(groups)[0])
    model = PartialParityRegressor(0.05).fit(X, target, sensitive_features=groups)
    (gap,) = model.new_row_gaps_.values()
    assert 0 <= gap.estimate < 0.15


def test_queries_are_in_one_fold(rows):
    X, y, groups = (part[:300] for part in rows)
    model = FairRanker(0.1, random_state=0).fit(X, y, qid=np.arange(300) // 30, sensitive_features=groups)
    (gap,) = model.new_row_gaps_.values()
    assert 0 <= gap.estimate <= 1
    alone = FairRanker(0.1, random_state=0).fit(X, y, qid=np.zeros(300), sensitive_features=groups)
    assert np.isnan(alone.new_row_gaps_.popitem()[1].estimate)


@pytest.mark.slow
def test_heads_tell_what_their_heads_do(rows):
    X, y, groups = rows
    base = PartialParityClassifier(None, random_state=0)
    model = FairHeadClassifier(base, head=rates(), random_state=0).fit(X, y, sensitive_features=groups)
    assert model.new_row_gaps_ == model.head_.new_row_gaps_
    assert model.new_row_gaps_["demographic_parity"].standard_error > 0


@pytest.mark.slow
def test_paths_show_the_estimates(rows):
    X, y, groups = rows
    path = fairness_path(rates(), X, y, sensitive_features=groups, kappas=[None, 0.1, 0.05])
    assert np.isnan(path.table["new_row_gap"].iloc[0])
    for row, model in zip(path.table.iloc[1:].itertuples(), path.models[1:], strict=True):
        gap = model.new_row_gaps_["demographic_parity"]
        assert (row.new_row_gap, row.new_row_standard_error) == (gap.estimate, gap.standard_error)


def test_fits_of_folds_begin_at_the_result_for_the_same_bounds(rows, monkeypatch):
    starts, solve_part = [], PartialParityClassifier._solve_part

    def recorded(self, solver, problem, start, rng):
        starts.append(start)
        return solve_part(self, solver, problem, start, rng)

    monkeypatch.setattr(PartialParityClassifier, "_solve_part", recorded)
    model = fitted(PartialParityClassifier(0.1, warm_start=True, new_row_folds=2, random_state=0), rows)
    before = starts[0].model_state
    starts.clear()
    fitted(model.set_params(kappa=0.05), rows)
    first, second = starts[:2]
    np.testing.assert_array_equal(first.model_state, second.model_state)
    assert not np.allclose(first.model_state, before, rtol=1e-3)  # nor at the result for the bound before


def test_folds_that_miss_the_bound_near_the_result_are_measured_as_they_are(rows, monkeypatch):
    run_part = PartialParityClassifier._run_part
    free = fitted(PartialParityClassifier(None), rows)
    state = np.append(free.coef_, free.intercept_)

    def misses(self, solver, problem, start, rng):
        return replace(run_part(self, solver, problem, start, rng), model_state=state, status=Status.INFEASIBLE)

    monkeypatch.setattr(PartialParityClassifier, "_run_part", misses)
    model = fitted(PartialParityClassifier(0.05, new_row_folds=2, random_state=0), rows)
    (gap,), (expected,) = (
        model.new_row_gaps_.values(),
        free.constraint_values(*rows[:2], sensitive_features=rows[2]).values(),
    )
    assert gap.how == "2-fold cross-fitting"  # constant scores would keep the bound, and tell nothing
    assert gap.estimate == pytest.approx(expected, abs=0.1)


@pytest.mark.slow
def test_paths_warn_once_of_new_rows(wide):
    X, y, groups = wide
    model = rates(solver="augmented_lagrangian")
    with pytest.warns(NewRowsWarning, match=r"^2 of 2 fits exceed their bound by the estimate for new rows") as caught:
        fairness_path(model, X, y, sensitive_features=groups, kappas=[0.02, 0.01])
    assert sum(issubclass(each.category, NewRowsWarning) for each in caught) == 1


# --- bounds on the estimates


@pytest.mark.slow
def test_promise_on_new_rows():
    X, y, groups = make_biased_classification(n_samples=4000, random_state=0)
    model = rates(0.05, promise="new_rows").fit(X, y, sensitive_features=groups)
    (gap,) = model.new_row_gaps_.values()
    assert gap.how == "5-fold cross-fitting"
    assert gap.estimate <= 0.05 + model.granularity_["demographic_parity"]
    assert model.violation_ <= model.granularity_["demographic_parity"]
    assert model.status_ == "optimal"
    X, y, groups = make_biased_classification(n_samples=20_000, random_state=1)
    decisions = model.predict(X)
    shares = [decisions[groups == name].mean() for name in np.unique(groups)]
    assert abs(shares[0] - shares[1]) <= 0.05 + gap.standard_error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.CostlyBoundWarning")  # labels follow the groups
def test_a_bound_that_is_learnt_by_heart_is_kept_on_new_rows_by_few_numbers(wide):
    model = fitted(rates(0.1, promise="new_rows"), wide)
    assert model.status_ != "infeasible"
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1], 5000)
    X = rng.normal(size=(10_000, 60))
    X[:, 0] += 2 * groups
    decisions = model.predict(X)
    assert abs(decisions[groups == 0].mean() - decisions[groups == 1].mean()) < 0.15
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewRowsWarning)
        decisions = fitted(rates(0.1, solver="augmented_lagrangian"), wide).predict(X)
    assert abs(decisions[groups == 0].mean() - decisions[groups == 1].mean()) > 0.2


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.CostlyBoundWarning")
def test_the_bound_of_a_fit_that_aims_lower_for_new_rows_is_not_called_kappa():
    X, y, groups = make_biased_classification(n_samples=300, random_state=0)
    model = PartialParityClassifier(0.05, promise="new_rows", new_row_folds=2, max_iter=1)
    model._on_scores = True  # no cross-fitted scores are made of the features
    with pytest.warns(
        ConvergenceWarning,
        match=r"nearest other model, .* is allowed on these rows, so that the bound holds on new rows\. "
        r"By chance .* Loosen",
    ):
        model.set_params(constraint="statistical_parity").fit(X[:, :2], y, sensitive_features=groups)


@pytest.mark.parametrize("seed", [2, 4, 9])
def test_where_models_of_folds_are_other_ones_the_bound_on_training_rows_becomes_smaller(seed):
    rng = np.random.default_rng(seed)
    groups, X = np.arange(100) % 2, rng.normal(size=(100, 60))
    X[:, 0] += 1.5 * groups
    y = (X[:, :2].sum(axis=1) + rng.normal(size=100) > 0.75).astype(int)
    model = fitted(rates(0.2, promise="new_rows", new_row_folds=2), (X, y, groups))
    (gap,), (value,) = model.new_row_gaps_.values(), model.constraint_values_.values()
    most = 0.2 + model.granularity_["demographic_parity"]
    # cross-fitted scores keep the bound, and their combination by the models of all rows is 0.4 and more beyond it
    assert model.status_ == "optimal"
    assert max(gap.estimate, value) <= most


def _missed_by_all_fits(monkeypatch):
    """Estimates of all fits that are far beyond the bound."""

    def estimated(self, solver, problem, *others):
        gaps = {each.name: NewRowGap(0.3, 0.02, "5-fold cross-fitting") for each in problem.constraints}
        return NewRowEstimates(gaps)

    monkeypatch.setattr(PartialParityClassifier, "_estimated", estimated)


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.CostlyBoundWarning")
def test_where_no_fit_keeps_the_promise_a_constant_score_is_taken(rows, monkeypatch):
    _missed_by_all_fits(monkeypatch)
    with pytest.warns(
        ConvergenceWarning, match=r"the best constant score within it was taken.* Loosen kappa, pass more"
    ):
        model = fitted(rates(0.05, promise="new_rows"), rows)
    assert model.status_ == "max_iter"
    assert model.violation_ == 0
    assert model.new_row_gaps_["demographic_parity"].how == "the constant score itself"
    assert np.ptp(model.decision_function(rows[0])) < 1e-12
    assert model.predict(rows[0])[0] == np.bincount(rows[1]).argmax()  # the constant with fewer errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        rates(0.1, promise="new_rows"),
        rates(0.1, promise="new_rows", group_interactions=True),
        PartialParityClassifier(0.1, constraint="equalized_odds", objective="zero_one", promise="new_rows"),
        PartialParityClassifier(0.2, interval=(0.05, 0.5), promise="new_rows", alpha=0.01),
        AUCFairClassifier(0.1, promise="new_rows"),
        LossParityClassifier(0.2, hidden_layer_sizes=(4,), max_epochs=2, random_state=0, promise="new_rows"),
    ],
    ids=["rates", "by group", "errors", "ranks", "AUCs", "network"],
)
def test_promises_of_all_kinds(model, rows):
    model = fitted(clone(model), rows)
    assert model.status_ != "infeasible"
    for name, gap in model.new_row_gaps_.items():
        assert gap.estimate <= model.kappa + model.granularity_[name]
    assert model.predict(rows[0], sensitive_features=rows[2]).shape == rows[1].shape


def test_a_model_of_all_rows_that_differs_from_those_of_the_folds_is_told(rows):
    problem, _ = _problem_of(rows)
    found = NewRowEstimates({"demographic_parity": NewRowGap(0.01, 0.02, "5-fold cross-fitting")})
    apart, alike = problem.data.codes - 0.5, 1.0 + problem.data.codes
    assert found.about(problem, alike) == found
    told = found.about(problem, apart).gaps["demographic_parity"]
    assert told == (1.0, 0.02, "the training rows, as 5-fold cross-fitting gives 0.01")


def test_a_constant_score_has_the_same_metric_on_new_rows(rows):
    problem, _ = _problem_of(rows)
    found = NewRowEstimates({"demographic_parity": NewRowGap(0.13, 0.02, "2-fold cross-fitting")})
    (gap,) = found.about(problem, np.ones(problem.data.n_samples)).gaps.values()
    assert gap.estimate == 0
    assert gap.standard_error < 0.01  # as if half a row of each group had the other decision
    assert gap.how == "the constant score itself"


def test_a_constant_score_takes_no_fits_of_folds(monkeypatch):
    sizes, solve_part = [], PartialParityClassifier._solve_part

    def recorded(self, solver, problem, *others):
        sizes.append(problem.data.n_samples)
        return solve_part(self, solver, problem, *others)

    monkeypatch.setattr(PartialParityClassifier, "_solve_part", recorded)
    groups = np.repeat([0, 1], 100)
    y = np.random.default_rng(0).random(200) < 0.3 + 0.4 * groups
    # the only feature is the group, so that no score but a constant one keeps the bound
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it is constant
        model = fitted(PartialParityClassifier(0.02, random_state=0), (groups[:, None], y, groups))
    assert not np.ptp(model.decision_function(groups[:, None]))
    assert model.new_row_gaps_["statistical_parity"][::2] == (0.0, "the constant score itself")
    assert sizes == [200]  # the model without the bound, for the hint


def test_a_constant_model_of_a_fold_says_nothing_of_a_model_that_is_not(rows):
    problem, _ = _problem_of(rows)
    gap = NewRowGap(0.0, 0.3, "2-fold cross-fitting")
    found = NewRowEstimates({"demographic_parity": gap}, has_constant=True)
    told = found.about(problem, problem.data.codes - 0.5).gaps["demographic_parity"]
    assert told.estimate == 1
    assert told.standard_error < 0.01
    assert told.how == "the training rows, as a model of 2-fold cross-fitting has a constant score"


def test_a_constant_model_of_a_fold_tells_no_optimism_that_a_second_fit_makes_up_for(rows, monkeypatch):
    first = fitted(AUCFairClassifier(0.05, new_row_folds=None), rows)

    def beside_a_constant(problem, *args):
        held = held_out_scores(problem, *args)
        return held._replace(scores=-1.0 * problem.data.codes, has_constant=True)

    monkeypatch.setattr(new_rows, "held_out_scores", beside_a_constant)
    model = fitted(AUCFairClassifier(0.05), rows)
    assert "has a constant score" in model.new_row_gaps_["inter_group"].how
    np.testing.assert_array_equal(model.coef_, first.coef_)


def test_few_accepted_by_the_model_of_all_rows_make_the_estimate_uncertain():
    data, scores = _decided([4, 20], [100, 400])
    ratio = GroupRates("selection", rule="ratio", kappa=0.2).bind(data)
    problem = Problem(Logistic().bind(data), (ratio,), data, model=LinearModel(0, 1))
    found = NewRowEstimates({ratio.name: NewRowGap(0.09, 0.013, "2-fold cross-fitting")}, corrections={ratio.name: 0.3})
    (gap,) = found.about(problem, scores).gaps.values()
    (own,) = standard_errors([ratio], data, scores).values()
    assert gap.estimate == 0.09
    assert gap.standard_error == pytest.approx(np.hypot(own, 0.3))
    assert own > 0.2


def test_better_rates_of_the_training_rows_are_not_told_where_a_floor_is_bounded(rows):
    problem, _ = _problem_of(rows)
    floor = GroupRates("selection", rule="floor", kappa=0.3).bind(problem.data)
    problem = replace(problem, constraints=(floor,))
    found = NewRowEstimates({floor.name: NewRowGap(0.6, 0.02, "5-fold cross-fitting")})
    everybody, nobody = 1.0 + problem.data.codes, -1.0 - problem.data.codes
    assert found.about(problem, everybody) == found
    assert found.about(problem, nobody).gaps[floor.name].estimate == 0


# --- differences of losses, whose optimism is made up for


def uneven(n, seed):
    """Labels that the first feature tells well in one group and hardly in the other, and eleven other features."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, 12)), rng.random(n) < 0.5
    y = rng.random(n) < 1 / (1 + np.exp(-np.where(groups, 3.0, 0.7) * X[:, 0]))
    return np.column_stack([X, groups]), y.astype(int), groups


def network(kappa=0.05, **params):
    options = {"hidden_layer_sizes": (16,), "max_epochs": 12, "batch_size": 64, "alpha": 1e-3}
    return LossParityClassifier(kappa, random_state=0, **options, **params)


@pytest.fixture(scope="module")
def uneven_rows():
    return uneven(1000, seed=0)


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.NewRowsWarning")
def test_a_network_makes_up_for_its_optimism(uneven_rows):
    X, y, groups = uneven(20_000, seed=1)
    made_up, plain = (fitted(network(new_row_folds=folds), uneven_rows) for folds in ("auto", None))
    gaps = [loss_parity_gap(y, model.decision_function(X), sensitive_features=groups) for model in (made_up, plain)]
    assert gaps[1] > 0.08
    assert gaps[0] < 0.06
    for model in (made_up, plain):
        assert model.constraint_values_["loss_parity"] <= 0.05 + 1e-9
        assert model.score(X, y) > 0.6


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.NewRowsWarning")
def test_linear_scores_make_up_for_their_optimism():
    rows, (X, y, groups) = uneven(1000, seed=2), uneven(20_000, seed=1)
    made_up, plain = (
        fitted(PartialParityClassifier(constraint=LossParity(0.1), random_state=0, new_row_folds=folds), rows)
        for folds in ("auto", None)
    )
    gaps = [loss_parity_gap(y, model.decision_function(X), sensitive_features=groups) for model in (made_up, plain)]
    assert gaps[0] < gaps[1] - 0.01
    assert made_up.constraint_values_["loss_parity"] < 0.095
    assert plain.constraint_values_["loss_parity"] == pytest.approx(0.1, abs=1e-6)
    gap = made_up.new_row_gaps_["loss_parity"]
    assert gap.estimate == pytest.approx(0.1, abs=1e-3)
    assert gap.how == "steps to the fits without one of 20 folds"
    # the second fit goes on with the counts and records of the first one
    first = len(plain.history_)
    assert [record["objective"] for record in made_up.history_[:first]] == [r["objective"] for r in plain.history_]
    assert made_up.history_[first]["n_evaluations"] >= plain.n_evaluations_
    assert made_up.n_iter_ > plain.n_iter_


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.NewRowsWarning")
def test_folds_that_the_user_asks_for_are_fitted_without_steps():
    rows = uneven(1000, seed=2)
    own, default = (
        fitted(PartialParityClassifier(constraint=LossParity(0.1), random_state=0, new_row_folds=folds), rows)
        for folds in (3, "auto")
    )
    assert own.new_row_gaps_["loss_parity"].how == "3-fold cross-fitting"
    np.testing.assert_array_equal(own.coef_, default.coef_)  # the optimism is that of the steps all the same


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.NewRowsWarning")
@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.CostlyBoundWarning")
def test_linear_scores_make_up_for_the_optimism_of_aucs():
    X, y, groups = uneven(20_000, seed=1)
    gaps = {"auto": [], None: []}
    for seed in (2, 3, 4):
        rows = uneven(600, seed)
        for folds, own in gaps.items():
            model = AUCFairClassifier(0.04, constraint="intra_group", random_state=0, new_row_folds=folds)
            model = fitted(model, rows)
            aucs = [roc_auc_score(y[of], model.decision_function(X[of])) for of in (groups, ~groups)]
            own.append(abs(aucs[0] - aucs[1]))
            assert model.solver_ == "augmented_lagrangian"
            assert model.constraint_values_["intra_group"] <= 0.04 + model.granularity_["intra_group"]
    assert np.mean(gaps["auto"]) < np.mean(gaps[None]) - 0.01


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.NewRowsWarning")
@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.CostlyBoundWarning")
def test_models_of_folds_tell_the_gap_of_few_rows():
    gaps, true = [], []
    X, y, groups = uneven(20_000, seed=99)
    for seed in range(5):  # 150 rows of 13 features and less in each group
        rows = uneven(180, seed)
        model = fitted(PartialParityClassifier(constraint=LossParity(0.1), random_state=0), rows)
        assert model.solver_ == "cross_fitted"
        gap = model.new_row_gaps_["loss_parity"]
        true.append(loss_parity_gap(y, model.decision_function(X), sensitive_features=groups))
        gaps.append((gap.estimate, gap.standard_error))
        assert gap.how == "5-fold cross-fitting"
    estimates, errors = np.transpose(gaps)
    assert np.mean(np.abs(estimates - true) > 2 * errors) <= 0.2


def test_a_promised_estimate_is_to_be_a_part_of_its_error_below_the_bound(rows):
    problem, _ = _problem_of(rows)
    (constraint,) = problem.constraints
    kappa = constraint.kappa
    for error, margin in ((kappa, kappa / 4), (10 * kappa, kappa / 2), (np.nan, 0.0)):
        estimated = NewRowEstimates({constraint.name: NewRowGap(1.5 * kappa, error, "2-fold cross-fitting")})
        np.testing.assert_allclose(estimated.excess(problem), [kappa / 2 + margin])


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.NewRowsWarning")
def test_without_a_model_within_all_bounds_those_of_the_training_rows_are_kept(uneven_rows, monkeypatch):
    monkeypatch.setattr(_new_row_estimates, "_MOST", 3.0)  # more than the width of the bound on the training rows
    model = fitted(network(0.01), uneven_rows)
    assert model.constraint_values_["loss_parity"] <= 0.01 + 1e-9
    assert model.status_ == "completed"
    assert model.score(*uneven_rows[:2]) > 0.6


@pytest.mark.parametrize(("optimism", "part"), [(0.03, 1.0), (0.175, 0.5), (1.75, 0.05)])
def test_so_much_of_an_optimism_is_made_up_for_as_the_bounds_allow(rows, optimism, part):
    problem, _ = _problem_of(rows)
    constraint = LossParity(0.05).bind(problem.data)
    problem = replace(problem, constraints=(constraint,))
    found = NewRowEstimates({}, optimism={constraint.name: np.array([optimism, -optimism])})
    (stricter,) = found.made_up_for(problem).constraints
    np.testing.assert_allclose(stricter.optimism, [part * optimism, 0.0])
    assert NewRowEstimates({}).made_up_for(problem) is problem


def test_of_more_than_two_groups_equal_losses_remain_within_all_bounds(rows):
    # with bounds that leave no room for equal losses, networks ended at reversed scores
    problem, _ = _problem_of(rows)
    constraint = LossParity(0.05).bind(problem.data)
    problem = replace(problem, constraints=(constraint,))
    of_three = np.array([0.2, -0.2, 0.1, -0.1, -0.1, 0.1])
    (stricter,) = NewRowEstimates({}, optimism={constraint.name: of_three}).made_up_for(problem).constraints
    np.testing.assert_allclose(stricter.optimism, np.clip(of_three, 0.0, None) / 4)


def test_the_estimate_is_that_of_the_model_of_all_rows(rows):
    problem, _ = _problem_of(rows)
    constraint = LossParity(0.05).bind(problem.data)
    problem = replace(problem, constraints=(constraint,))
    optimism = {constraint.name: np.array([0.02, -0.02])}
    found = NewRowEstimates({constraint.name: NewRowGap(0.3, 0.2, "2-fold cross-fitting")}, optimism=optimism)
    scores = problem.data.y.numpy() * (problem.data.codes + 1)
    first, second = constraint.differences(scores)
    (gap,) = found.about(problem, scores).gaps.values()
    assert gap.estimate == pytest.approx(max(first + 0.02, second - 0.02))
    assert gap.estimate != pytest.approx(constraint.metric(scores))


def test_features_of_a_fold_do_not_depend_on_its_labels(rows):
    problem, folds = _problem_of(rows)
    span = CrossFittedSpan.of(problem, folds, np.random.default_rng(0))
    labels = problem.data.y.clone()
    labels[folds == 0] *= -1
    other = replace(problem.data, y=labels)
    changed = replace(problem, data=other, objective=Logistic().bind(other))
    changed = CrossFittedSpan.of(changed, folds, np.random.default_rng(0))
    # the first column is that of the unconstrained model, up to its length
    first = [each.problem.data.X[:, 0] / np.linalg.norm(each.problem.data.X[folds == 0, 0]) for each in (span, changed)]
    np.testing.assert_allclose(first[0][folds == 0], first[1][folds == 0], atol=1e-8)
    assert np.abs(first[0] - first[1])[folds != 0].max() > 0.1


def test_whole_models_from_few_numbers(rows):
    problem, folds = _problem_of(rows)
    span = CrossFittedSpan.of(problem, folds, np.random.default_rng(0))
    (columns,) = span.columns
    size = columns.shape[1]
    np.testing.assert_allclose(columns[:-1].T @ columns[:-1], np.eye(size), atol=1e-8)
    params = np.append(np.arange(1.0, size + 1), 0.5)
    lifted = span.lift(params)
    np.testing.assert_allclose(lifted[:-1], columns[:-1] @ params[:-1])
    assert lifted[-1] == pytest.approx(columns[-1] @ params[:-1] + 0.5)


@pytest.mark.filterwarnings("ignore")
def test_a_mean_loss_of_new_rows_is_estimated_at_no_less_than_that_of_the_training_rows():
    """With ten rows for each feature, cross-fitted directions know the residuals of the rows that they leave out."""
    rng = np.random.default_rng(3)
    groups, X = rng.choice(3, 400), rng.standard_t(3, size=(400, 40))
    y = (X @ rng.normal(size=40) / 4 + rng.logistic(size=400) + 0.5 * groups > 0.5).astype(int)
    model = GroupLossClassifier(0.35, promise="new_rows").fit(X, y, sensitive_features=groups)
    (gap,), (value,) = model.new_row_gaps_.values(), model.constraint_values_.values()
    assert gap.estimate >= value - 1e-9
    assert model.status_ == "infeasible" or gap.estimate <= 0.35 + 1e-9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_bounds_on_losses_of_new_rows_cost_no_loss_there():
    """Residuals of all rows sum to zero; directions of those of the other folds would undo the losses of a fold."""
    losses = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        groups, X = rng.choice(3, 3_000), rng.standard_t(3, size=(3_000, 40))
        y = (X @ rng.normal(size=40) / 4 + rng.logistic(size=3_000) + 0.5 * groups > 0.5).astype(int)
        model = GroupLossClassifier(0.45, promise="new_rows", random_state=0)
        model.fit(X[:400], y[:400], sensitive_features=groups[:400])
        (loss,) = model.constraint_values(X[400:], y[400:], sensitive_features=groups[400:]).values()
        losses.append(loss)
    assert np.mean(losses) < 0.55  # those of the unconstrained models are .52
