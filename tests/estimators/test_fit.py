"""fit: what it reports, when it warns, and that it changes an estimator completely or not at all."""

import pickle
import re
import warnings
from dataclasses import dataclass
from typing import ClassVar

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairconstrained import (
    ConvergenceWarning,
    FairnessWarning,
    GroupLossClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
)
from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.problem import SOLVER_REQUIREMENTS, Problem
from fairconstrained.solvers import SOLVERS, Solver, SolverResult, Status, StochasticSolver
from fairconstrained.views import ConvexQuadratic, Exact, FullBatch, SingleRows
from tests.quick import OF_MEAN_LOSSES

FITTED = [
    "coef_",
    "intercept_",
    "groups_",
    "status_",
    "constraint_values_",
    "violation_",
    "objective_",
    "multipliers_",
    "n_iter_",
    "n_evaluations_",
    "history_",
    "n_features_in_",
]


#: Every solver for parity of rates, and options that make short runs of those whose iterations are many steps.
SHORT = {"idca": {"max_inner": 40}, "stochastic_idca": {"max_inner": 20}, "proxy_lagrangian": {"n_records": 5}}
SHORT |= {name: {"inner_iter": 20} for name in ("ipp_conex", "ipp_ssg", "ipc")} | {"exact_penalty": {"max_iter": 100}}
SHORT |= {name: {"batch_size": 200} for name, solver in SOLVERS.items() if issubclass(solver, StochasticSolver)}
SOLVER_OPTIONS = {
    name: SHORT.get(name)
    for name, solver in sorted(SOLVERS.items())
    if not any(issubclass(view, (ConvexQuadratic, SingleRows)) for view in solver.requires)
}


def classifier(**options):
    return PartialParityClassifier(**{"kappa": 0.2, "constraint": "demographic_parity", **options})


def fit(model, sample, **extra):
    return model.fit(sample.X, sample.y, sensitive_features=sample.groups, **extra)


# --- attributes


def test_fitted_attributes(classes):
    model = fit(classifier(kappa=0.1, constraint="statistical_parity"), classes)
    assert all(hasattr(model, name) for name in [*FITTED, "classes_"])
    assert not hasattr(model, "feature_names_in_")
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.shape == (1,)
    assert list(model.groups_) == [0, 1]
    assert model.multipliers_  # the constraint is active
    assert all(name.startswith("statistical_parity[") and v > 0 for name, v in model.multipliers_.items())
    assert model.history_
    assert {"objective", "statistical_parity", "n_evaluations"} <= model.history_[-1].keys()
    assert model.n_evaluations_ >= model.n_iter_ >= 1


@pytest.mark.slow
def test_shapes_by_group(classes, numbers):
    model = fit(classifier(group_interactions=True, kappa=0.3), classes)
    assert model.coef_.shape == (2, 4)
    assert model.intercept_.shape == (2,)
    model = fit(PartialParityRegressor(0.3, group_interactions=True), numbers)
    assert model.coef_.shape == (2, 4)
    model = fit(PartialParityRegressor(0.3), numbers)
    assert model.coef_.shape == (4,)
    assert isinstance(model.intercept_, float)


def test_without_intercept(classes, numbers):
    assert fit(classifier(fit_intercept=False), classes).intercept_ == 0.0
    assert fit(PartialParityRegressor(0.3, fit_intercept=False), numbers).intercept_ == 0.0


@pytest.mark.slow
def test_objective_is_the_one_of_the_docstring(classes, numbers):
    X, y, _ = classes
    model = fit(classifier(alpha=0.01), classes)
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    penalty = 0.01 / 2 * (model.coef_**2).sum()
    assert model.objective_ == pytest.approx(np.logaddexp(0, -margins).mean() + penalty)
    X, y, _ = numbers
    model = fit(PartialParityRegressor(0.2, alpha=0.01), numbers)
    penalty = 0.01 / 2 * (model.coef_**2).sum()
    assert model.objective_ == pytest.approx(((model.predict(X) - y) ** 2).mean() / 2 + penalty)


# --- prediction


def test_predictions_follow_the_scores(classes):
    X = classes.X
    model = fit(classifier(threshold=0.5, kappa=0.3), classes)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_[0] + model.intercept_[0])
    np.testing.assert_array_equal(model.predict(X), model.classes_[(scores > 0.5).astype(int)])
    np.testing.assert_array_equal(model.predict(X), model.predict(X))


@pytest.mark.parametrize("objective", ["logistic", "truncated_logistic", "hinge", "squared", "zero_one"])
def test_probabilities(classes, objective):
    X, y, _ = classes
    model = fit(classifier(objective=objective, kappa=0.3), classes)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (600, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    order = np.argsort(model.decision_function(X))
    assert (np.diff(probabilities[order, 1]) >= 0).all()  # the second column is the positive class
    assert probabilities[y == 1, 1].mean() > probabilities[y == 0, 1].mean()


def test_score(classes, numbers):
    X, y, _ = classes
    model = fit(classifier(), classes)
    weights = np.linspace(0.1, 1, 600)
    hits = model.predict(X) == y
    assert model.score(X, y) == pytest.approx(hits.mean())
    assert model.score(X, y, sample_weight=weights) == pytest.approx(np.average(hits, weights=weights))
    X, y, _ = numbers
    model = fit(PartialParityRegressor(0.2), numbers)
    residual = ((y - model.predict(X)) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert model.score(X, y) == pytest.approx(1 - residual)


# --- reproducibility, copies


@pytest.mark.parametrize("solver", ["augmented_lagrangian", "sgd", "stochastic_switching"])
def test_the_same_fit_twice_is_the_same_bit_for_bit(classes, solver):
    """The seed arrives at the solver; that all of them obey it is among the tests of solvers."""
    options = {"solver": solver, "solver_options": SHORT.get(solver), "max_iter": 5, "random_state": 0, "kappa": 0.3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of solvers that bound a surrogate
        one, other = (fit(classifier(**options), classes) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    timeless = [[record | {"seconds": None} for record in model.history_] for model in (one, other)]
    assert timeless[0] == timeless[1]


@pytest.mark.slow
def test_refitting_starts_afresh(classes):
    model = fit(classifier(), classes)
    coefficients = model.coef_.copy()
    np.testing.assert_array_equal(fit(model, classes).coef_, coefficients)


def test_clone_and_pickle(classes):
    model = fit(classifier(interval=(0.0, 0.5), solver_options={"inner_iter": 30}), classes)
    again = fit(clone(model), classes)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict_proba(classes.X), model.predict_proba(classes.X))
    assert restored.history_ == model.history_
    assert restored.get_params() == model.get_params()


@pytest.mark.slow
def test_joblib(classes):
    """One task: every process that gets one loads the package first, which takes seconds."""
    X, y, groups = classes
    model = classifier(kappa=0.1)
    (fitted,) = joblib.Parallel(n_jobs=2)([joblib.delayed(model.fit)(X, y, sensitive_features=groups)])
    assert not hasattr(model, "coef_")  # another process fitted a copy
    np.testing.assert_allclose(fit(clone(model), classes).coef_, fitted.coef_, atol=1e-6)


# --- solvers


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["idca", "switching_subgradient"])
def test_solvers_of_the_paper_bound_a_surrogate_and_say_so(classes, solver):
    with pytest.warns(ConvergenceWarning, match=f"Solver '{solver}' bounds a surrogate of the metric; solver='auto'"):
        model = fit(classifier(kappa=0.02, solver=solver, max_iter=5, constraint="statistical_parity"), classes)
    assert model.status_ == "infeasible"
    assert model.constraint_values_["statistical_parity"] > 0.02


def test_max_iter_and_options_reach_the_solver(classes):
    options = {"solver": "idca", "kappa": None, "constraint": "statistical_parity", "solver_options": {"max_inner": 7}}
    model = fit(classifier(max_iter=3, **options), classes)
    assert model.n_iter_ == len(model.history_) == 3
    model = fit(classifier(max_iter=3, **{**options, "solver_options": {"max_outer": 2, "max_inner": 7}}), classes)
    assert model.n_iter_ == 2  # what is written explicitly wins


OF_RATES = {name: options for name, options in SOLVER_OPTIONS.items() if name not in OF_MEAN_LOSSES}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "solver_options", "parity"),
    [(*item, ("statistical_parity", "demographic_parity")[i % 2]) for i, item in enumerate(OF_RATES.items())],
    ids=OF_RATES.keys(),
)
def test_every_solver_fits_without_a_constraint(classes, solver, solver_options, parity):
    options = {"solver": solver, "solver_options": solver_options, "max_iter": 10, "random_state": 0}
    options |= {"objective": "zero_one"} if solver == "span_search" else {}  # it takes no other
    model = fit(classifier(kappa=None, constraint=parity, **options), classes)
    assert model.status_ in ("optimal", "completed")
    assert model.score(classes.X, classes.y) > classes.y.mean() + 0.05


@pytest.fixture
def _registries():
    """Whatever a test registers is forgotten after it."""
    before = [(registry, dict(registry)) for registry in (SOLVERS, SOLVER_REQUIREMENTS)]
    yield
    for registry, entries in before:
        registry.clear()
        registry.update(entries)


@pytest.mark.usefixtures("_registries")
def test_a_solver_of_a_third_party(classes):
    """Declaring a subclass is all it takes; fit reports and warns for it as for any other."""

    @dataclass(frozen=True)
    class MeanDifference(Solver):
        name: ClassVar[str] = "mean_difference"
        requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)

        scale: float = 1.0

        def solve(self, problem, start, random_state, callback=None):
            gradient = problem.without_constraints().view(FullBatch).at(np.zeros(problem.n_params))
            params = -self.scale * gradient.gradient(1.0, np.empty(0))
            return SolverResult(params, Status.COMPLETED, 1, 1, 0.5, {}, 0.0, {}, ())

    model = classifier(kappa=None, solver="mean_difference", solver_options={"scale": 2.0})
    assert fit(model, classes).status_ == "completed"
    assert model.score(*classes[:2]) > classes.y.mean() + 0.05
    with pytest.warns(ConvergenceWarning, match="demographic_parity is .* exceeds kappa=0.01"):
        fit(model.set_params(kappa=0.01), classes)
    assert model.status_ == "infeasible"


@pytest.mark.slow
def test_verbose(classes, capsys):
    fit(classifier(), classes)
    assert capsys.readouterr().out == ""
    fit(classifier(verbose=1), classes)
    assert "demographic_parity" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "end"),
    [
        (GroupLossClassifier("minimax", verbose=1), "it was to be as small as it can be"),
        (GroupLossClassifier(verbose=1), "it has no bound"),
        (RateParityClassifier(None, verbose=1), "it has no bound"),
        (RateParityClassifier(0.25, verbose=1), "kappa is 0.25"),
    ],
)
def test_the_summary_and_the_bar_tell_what_the_user_asked_for(classes, capfd, monkeypatch, model, end):
    monkeypatch.setenv("COLUMNS", "120")  # old versions of tqdm cut the text to the width that a parent process has set
    fit(model, classes)
    out, err = capfd.readouterr()
    assert out.splitlines()[1].endswith(f"; {end}")
    assert set(re.findall(r"\(kappa .*?\)", err)) == ({"(kappa 0.25)"} if model.kappa == 0.25 else set())


# --- warnings


def test_a_violation_is_never_silent(classes):
    with pytest.warns(ConvergenceWarning) as caught:
        model = fit(classifier(kappa=0.01, max_iter=1, constraint="statistical_parity", solver="idca"), classes)
    (warning,) = caught
    value = model.constraint_values_["statistical_parity"]
    message = str(warning.message)
    assert model.status_ == "infeasible"
    assert "statistical_parity" in message
    assert f"{value:.4g}" in message
    assert "kappa=0.01" in message
    assert model.violation_ == pytest.approx(value - 0.01)
    assert warning.filename == __file__  # the line of the user, not ours


def test_what_a_rescaling_has_rescued_is_said(classes):
    nearest = r"Of the nearest other model, statistical_parity is 0\.\d+ on the training rows, where kappa is 0\.01\."
    message = rf"no iterate kept the bound, and the best constant.*{nearest}"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = fit(classifier(kappa=0.01, max_iter=1, constraint="statistical_parity"), classes)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.status_ == "max_iter"
    assert model.violation_ == 0


def test_a_constant_score_under_a_bound_below_the_gaps_of_chance_says_so():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 1)) + groups[:, None]
    y = X[:, 0] + rng.normal(size=200) > 0.5
    with pytest.warns(ConvergenceWarning, match="all rows have the same score") as caught:
        PartialParityClassifier(kappa=0.05).fit(X, y, sensitive_features=groups)
    stated = re.search(r"By chance alone, .* not depend on the group is (0\.\d+) on average", str(caught[0].message))
    # the mean of the limit distribution of Kolmogorov and Smirnov
    assert float(stated[1]) == pytest.approx(np.sqrt(np.pi / 2) * np.log(2) * np.sqrt(2 / 100), rel=0.15)
    with pytest.warns(ConvergenceWarning, match="all rows have the same score") as caught:
        PartialParityClassifier(kappa=0.2).fit(X, y, sensitive_features=groups)
    assert "By chance" not in str(caught[0].message)


def test_a_constant_score_of_a_solver_without_other_fits_is_said():
    rng = np.random.default_rng(0)
    groups, X = rng.integers(0, 3, 120), rng.normal(size=(120, 2)).round()
    y = (X[:, 0] + 0.5 * rng.logistic(size=120) + (groups == 0) > 0.3).astype(int)
    model = PartialParityClassifier(0.1, solver="cross_fitted", new_row_folds=None)
    with pytest.warns(ConvergenceWarning, match="within the bound than the same score for all rows. Loosen kappa"):
        model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "completed"
    assert np.ptp(model.decision_function(X)) == 0
    free = clone(model).set_params(kappa=None).fit(X, y, sensitive_features=groups)
    assert free.objective_ < model.objective_ - 0.05


@pytest.mark.filterwarnings("ignore:.*no iterate kept the bound:sklearn.exceptions.ConvergenceWarning")
def test_bounds_on_the_order_of_scores_are_not_tried_under_smaller_ones(classes, monkeypatch):
    tried, with_margins = [], Problem.with_margins

    def recorded(problem, margins):
        tried.append(margins.tolist())
        return with_margins(problem, margins)

    monkeypatch.setattr(Problem, "with_margins", recorded)
    fit(classifier(kappa=0.01, max_iter=1, constraint="statistical_parity"), classes)
    assert not tried
    both = [("order", StatisticalParity(0.01)), ("rate", DemographicParity(0.01))]
    fit(classifier(max_iter=1, constraint=both), classes)
    assert tried == [[0.0, 0.005]]


def test_not_settled_is_said(classes):
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter.* before its objective settled") as caught:
        model = fit(classifier(kappa=0.3, max_iter=6, tol=0.0, constraint="statistical_parity"), classes)
    assert len(caught) == 1
    assert model.status_ == "max_iter"
    assert caught[0].filename == __file__


def test_rates_at_a_threshold_that_no_prediction_crosses_warn(classes):
    X, groups, prices = classes.X, classes.groups, 50.0 + classes.X[:, 0]
    with pytest.warns(FairnessWarning, match="all scores are above the threshold, where demographic_parity is 0"):
        PartialParityRegressor(constraint="demographic_parity").fit(X, prices, sensitive_features=groups)
    PartialParityRegressor(constraint="demographic_parity", threshold=50.0).fit(X, prices, sensitive_features=groups)


@pytest.mark.parametrize("estimator", [PartialParityClassifier(), PartialParityRegressor()], ids=["classes", "numbers"])
@pytest.mark.parametrize(
    ("groups", "found"),
    [(None, "sensitive_features was not given"), (np.full(600, "a"), "there is only one group, 'a'")],
    ids=["no groups", "one group"],
)
def test_one_group_is_said_in_plain_words(classes, estimator, groups, found):
    model = clone(estimator)
    with pytest.warns(FairnessWarning, match=f"^There is nothing to compare: {found}. Nothing is bounded") as caught:
        model.fit(classes.X, classes.y, sensitive_features=groups)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.constraint_values_ == {}
    assert model.groups_.shape == (0 if groups is None else 1,)
    free = clone(estimator).set_params(kappa=None).fit(classes.X, classes.y)
    np.testing.assert_array_equal(model.coef_, free.coef_)


def test_kappa_none_without_groups_is_what_was_asked_for(classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(kappa=None).fit(classes.X, classes.y)


# --- all or nothing


def interrupt(monkeypatch, error):
    def solve(self, *args, **kwargs):
        raise error

    monkeypatch.setattr(SOLVERS["augmented_lagrangian"], "solve", solve)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()], ids=lambda e: type(e).__name__)
def test_an_interrupted_fit_leaves_an_unfitted_estimator_unfitted(classes, monkeypatch, error):
    model = classifier()
    before = dict(vars(model))
    interrupt(monkeypatch, error)
    with pytest.raises(type(error)):
        fit(model, classes)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.predict(classes.X)


def test_an_interrupted_fit_leaves_a_fitted_estimator_as_it_was(classes, monkeypatch):
    model = fit(classifier(), classes)
    before, content = dict(vars(model)), joblib.hash(vars(model))
    interrupt(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        fit(model, classes._replace(X=classes.X[:, :3], groups=classes.groups + 5))
    check_unchanged(model, before, content)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s._replace(X=s.X[:, :3], groups=np.where(np.arange(600) < 2, "few", "many")),
        lambda s: s._replace(X=s.X[:, :3], y=np.ones(600)),
        lambda s: s._replace(X=s.X[:, :3], groups=np.full(600, np.nan)),
    ],
    ids=["group too small", "one class", "missing groups"],
)
def test_a_failing_fit_leaves_a_fitted_estimator_as_it_was(classes, spoil):
    model = fit(classifier(), classes)
    before, content = dict(vars(model)), joblib.hash(vars(model))
    with pytest.raises(ValueError, match=r"rows|class|missing"):
        fit(model, spoil(classes))
    check_unchanged(model, before, content)


def check_unchanged(model, before, content):
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert joblib.hash(vars(model)) == content  # neither was anything changed in place
