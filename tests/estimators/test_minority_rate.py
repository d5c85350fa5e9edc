"""MinorityRateClassifier: the share that is measured is kept, on the rows of the objective or on others."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    ConvergenceWarning,
    FairnessWarning,
    IncompatibleProblem,
    MinorityRateClassifier,
    PartialParityClassifier,
)
from fairconstrained.constraints import MinorityShare, ParityPair
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import independence_gap, minority_share, parity_pair

ALLOWED = {"sigmoid": 1.001e-6, "indicator": 1 / 1200}
each_rate = pytest.mark.parametrize("rate", ["sigmoid", "indicator"])


@pytest.fixture(scope="module")
def biased():
    return make_biased_classification(n_samples=1200, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def other():
    X, _, group = make_biased_classification(n_samples=700, n_features=4, random_state=1)
    return X, np.where(group == 1, "few", "many")


def share_of(model, X, group, minority=1, rate="sigmoid"):
    return minority_share(None, model.decision_function(X), sensitive_features=group, minority=minority, rate=rate)


@each_rate
@pytest.mark.parametrize("radius", [None, 20.0, 1.5])
def test_the_share_is_kept(biased, rate, radius):
    X, y, group = biased
    free = MinorityRateClassifier(None, rate=rate, l1_radius=radius).fit(X, y, sensitive_features=group)
    before = share_of(free, X, group, rate=rate)
    c = before + 0.15
    model = MinorityRateClassifier(c, rate=rate, l1_radius=radius).fit(X, y, sensitive_features=group)
    share = share_of(model, X, group, rate=rate)
    assert c - ALLOWED[rate] <= share < c + 0.01  # and no more is given than is asked for
    assert model.status_ == "optimal"
    assert model.minority_ == 1
    assert model.minority_share_ == pytest.approx(share)
    assert model.exact_share_ == pytest.approx(share_of(model, X, group, rate="indicator"))
    assert model.constraint_values_ == {"majority_share": pytest.approx(1 - share)}
    assert free.minority_share_ == pytest.approx(before)
    assert free.objective_ < model.objective_ < np.log(2)
    assert model.multipliers_["majority_share"] > 0
    if radius is not None:
        assert np.abs(model.coef_).sum() <= radius * (1 + 1e-12)


def test_a_share_that_holds_by_itself_costs_nothing(biased):
    X, y, group = biased
    free = MinorityRateClassifier(None).fit(X, y, sensitive_features=group)
    model = MinorityRateClassifier(free.minority_share_ - 0.05).fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(model.coef_, free.coef_)


@pytest.mark.slow
@each_rate
@pytest.mark.parametrize("sparse", [False, True])
def test_on_other_rows_without_labels(biased, other, rate, sparse):
    X, y, group = biased
    X_other, group_other = other
    kind = sp.csr_array if sparse else np.asarray
    rows = {"X_constraint": kind(X_other), "sensitive_features_constraint": group_other}
    model = MinorityRateClassifier(0.4, minority="few", rate=rate).fit(kind(X), y, **rows)
    assert model.groups_.tolist() == ["few", "many"]
    assert model.minority_share_ >= 0.4 - (1.001e-6 if rate == "sigmoid" else 1 / 700)
    assert model.minority_share_ == pytest.approx(share_of(model, X_other, group_other, "few", rate))
    # as good as on the same rows: the objective is the mean loss of the rows with labels alone
    free = MinorityRateClassifier(None).fit(kind(X), y, **rows)
    same = MinorityRateClassifier(None).fit(X, y, sensitive_features=group)
    assert free.objective_ == pytest.approx(same.objective_, rel=1e-5)
    np.testing.assert_allclose(free.coef_, same.coef_, atol=1e-2)


@pytest.mark.slow
def test_the_same_rows_twice_are_the_same_problem(biased):
    X, y, group = biased
    one = MinorityRateClassifier(0.4).fit(X, y, sensitive_features=group)
    other = MinorityRateClassifier(0.4).fit(X, y, X_constraint=X, sensitive_features_constraint=group)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-3)
    assert other.minority_share_ == pytest.approx(one.minority_share_, abs=1e-4)


@pytest.mark.slow
def test_unlabelled_rows_go_through_weights(biased, other):
    X, y, _ = biased
    weights = np.random.default_rng(0).integers(0, 3, y.size)
    rows = {"X_constraint": other[0], "sensitive_features_constraint": other[1]}
    weighted = MinorityRateClassifier(0.35, minority="few").fit(X, y, sample_weight=weights, **rows)
    repeated = MinorityRateClassifier(0.35, minority="few").fit(np.repeat(X, weights, 0), np.repeat(y, weights), **rows)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")  # they bound the share up to a tolerance
@pytest.mark.parametrize("solver", ["ipc", "exact_penalty", "online_subgradient"])
def test_the_published_solvers(biased, solver):
    X, y, group = biased
    options = {
        "ipc": {"inner_iter": 300, "max_iter": 8, "proximity": 0.01},
        "exact_penalty": {"sigma": 10.0, "max_iter": 200},
        "online_subgradient": {"max_iter": 1500},
    }[solver]
    auto = MinorityRateClassifier(0.35).fit(X, y, sensitive_features=group)
    model = MinorityRateClassifier(0.35, solver=solver, solver_options=options, random_state=0)
    model.fit(X, y, sensitive_features=group)
    assert model.minority_share_ >= 0.35 - 5e-4  # 1e-4, in units of a rate of about 0.4
    allowed = {"ipc": 0.02, "exact_penalty": 1e-3, "online_subgradient": 0.01}[solver]
    # what the tolerance of the constraint is worth
    assert auto.objective_ - 1e-3 <= model.objective_ <= auto.objective_ + allowed


def test_frames_pickles_and_clones(biased):
    X, y, group = biased
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = MinorityRateClassifier(0.35, minority="f").fit(frame, y, sensitive_features=np.array(["m", "f"])[group])
    assert model.feature_names_in_.tolist() == list("abcd")
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    again = clone(model).fit(frame, y, sensitive_features=np.array(["m", "f"])[group])
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_pickled_with_rows_of_its_own_it_starts_warm(biased, other):
    X, y, _ = biased
    rows = {"X_constraint": other[0], "sensitive_features_constraint": other[1]}
    model = MinorityRateClassifier(0.35, warm_start=True).fit(X, y, **rows)
    loaded = pickle.loads(pickle.dumps(model))
    cold, warm = model.n_evaluations_, loaded.set_params(min_share=0.36).fit(X, y, **rows).n_evaluations_
    assert warm < cold
    assert loaded.minority_share_ >= 0.36 - 1.001e-6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* probabilities:fairconstrained.FairnessWarning")
def test_grid_search_and_pipeline_pass_the_rows_on(biased, other, routing):
    X, y, group = biased
    search = GridSearchCV(MinorityRateClassifier(), {"min_share": [0.3, 0.4]}, cv=2)
    search.fit(X, y, sensitive_features=group)
    assert search.best_estimator_.minority_share_ >= search.best_params_["min_share"] - 1.001e-6
    pipeline = make_pipeline(StandardScaler(), MinorityRateClassifier(0.4), transform_input=["X_constraint"])
    pipeline.fit(10 * X, y, X_constraint=10 * other[0], sensitive_features_constraint=other[1])
    scaled = pipeline[0].transform(10 * other[0])
    assert pipeline[-1].minority_share_ == pytest.approx(share_of(pipeline[-1], scaled, other[1], "few"))


def test_one_group_is_said(biased):
    X, y, _ = biased
    with pytest.warns(FairnessWarning, match="min_share=None"):
        model = MinorityRateClassifier().fit(X, y)
    assert not hasattr(model, "minority_share_")
    assert model.score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.01


def test_what_cannot_be_is_said(biased):
    _, y, group = biased
    alike = np.ones((y.size, 2))  # every row has the same score, so that shares are those of the rows
    with pytest.warns(ConvergenceWarning, match="the minority 1 has a share of .*Lower min_share"):
        model = MinorityRateClassifier(0.9, minority=1).fit(alike, y, sensitive_features=group)
    assert model.status_ in ("infeasible", "infeasible_stationary")
    assert model.minority_share_ == pytest.approx(np.mean(group == 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_share": 0.0}, "min_share"),
        ({"min_share": 1.0}, "min_share"),
        ({"l1_radius": 0.0}, "l1_radius"),
        ({"l1_radius": -1.0}, "l1_radius"),
        ({"truncation": 0.0}, "truncation"),
        ({"rate": "hinge"}, "rate"),
        ({"minority": "nobody"}, r"minority must be one of the groups \[0, 1\] or None, got 'nobody'"),
        ({"solver": "exact"}, "solver must be one of"),
    ],
)
def test_bad_parameters(biased, options, message):
    X, y, group = biased
    with pytest.raises(ValueError, match=message):
        MinorityRateClassifier(**options).fit(X, y, sensitive_features=group)


def test_bad_rows(biased, other):
    X, y, _ = biased
    X_other, group_other = other
    rows = {"X_constraint": X_other, "sensitive_features_constraint": group_other}
    model = MinorityRateClassifier(0.3, minority="few")
    with pytest.raises(ValueError, match="X_constraint has 3 columns, X has 4"):
        model.fit(X, y, **rows | {"X_constraint": X_other[:, :3]})
    with pytest.raises(ValueError, match="X_constraint and sensitive_features_constraint together"):
        model.fit(X, y, X_constraint=X_other)
    with pytest.raises(ValueError, match="sensitive_features_constraint has 699 rows in place of 700"):
        model.fit(X, y, **rows | {"sensitive_features_constraint": group_other[:-1]})
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, y, **rows | {"X_constraint": np.where(X_other > 2, np.nan, X_other)})
    with pytest.raises(ValueError, match=r"minority must be one of the groups \['a', 'b'\] or None, got 'few'"):
        model.fit(X, y, **rows | {"sensitive_features_constraint": np.where(np.arange(700) % 2, "a", "b")})
    assert not hasattr(model, "coef_")


def test_a_solver_that_takes_no_domain_says_so(biased):
    X, y, group = biased
    with pytest.raises(IncompatibleProblem, match="does not take the domain"):
        MinorityRateClassifier(solver="adam_lagrangian").fit(X, y, sensitive_features=group)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* probabilities:fairconstrained.FairnessWarning")
@each_rate
def test_both_constraints_serve_other_estimators(biased, rate):
    X, y, group = biased
    free = PartialParityClassifier(None).fit(X, y, sensitive_features=group)
    constraints = [("pair", ParityPair(1.1, rate=rate)), ("share", MinorityShare(0.35, minority=1, rate=rate))]
    model = PartialParityClassifier(constraint=constraints, hidden_layer_sizes=(4,), random_state=0)
    for fitted in (model, clone(model).set_params(hidden_layer_sizes=None)):
        fitted.fit(X, y, sensitive_features=group)
        scores = fitted.decision_function(X)
        assert parity_pair(None, scores, sensitive_features=group, rate=rate) <= 1.1 + 0.005
        assert share_of(fitted, X, group, rate=rate) >= 0.35 - 0.001
    assert independence_gap(y, free.predict(X), sensitive_features=group) > 0.2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* probabilities:fairconstrained.FairnessWarning")
def test_on_real_data(adult):
    """Official split of Adult: D is the training part, S the test part; twice the share that comes by itself."""
    (X, y, _), (X_new, y_new, sex) = adult
    rows = {"X_constraint": X_new, "sensitive_features_constraint": sex}
    # the ball of the paper; that of the default is for standardised features
    free = MinorityRateClassifier(None, minority="female", l1_radius=20.0).fit(X, y, **rows)
    model = MinorityRateClassifier(0.3, minority="female", l1_radius=20.0).fit(X, y, **rows)
    assert free.minority_share_ < 0.15
    assert model.minority_share_ >= 0.3 - 1.001e-6
    assert np.abs(model.coef_).sum() <= 20 + 1e-9
    assert model.score(X_new, y_new) > free.score(X_new, y_new) - 0.03


@pytest.mark.slow
def test_stationarity_on_request(biased):
    X, y, group = biased
    model = MinorityRateClassifier(0.4, compute_stationarity=True).fit(X, y, sensitive_features=group)
    rough = MinorityRateClassifier(0.4, compute_stationarity=True, tol=0.1, solver_options={"inner_iter": 1})
    rough.fit(X, y, sensitive_features=group)
    assert 0 <= model.stationarity_ < 0.01 < rough.stationarity_
    assert model.stationarity_report_["distance"] == model.stationarity_
    assert model.stationarity_report_["kkt_residual"] < rough.stationarity_report_["kkt_residual"]
    assert model.stationarity_report_["multipliers"]["majority_share"] > 0
    assert not hasattr(MinorityRateClassifier(0.4).fit(X, y, sensitive_features=group), "stationarity_")


def test_a_stationary_point_of_the_violation_is_said(biased):
    """One column, alike for all: every score in the ball gives the minority its share of the rows."""
    _, y, group = biased
    model = MinorityRateClassifier(
        0.9, minority=1, l1_radius=1.0, fit_intercept=False, solver="ipc", solver_options={"inner_iter": 50}
    )
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(np.ones((y.size, 1)), y, sensitive_features=group)
    assert "a stationary point of the violation" in str(caught[0].message)
    assert "the minority 1 has a share of" in str(caught[1].message)
    assert model.status_ == "infeasible_stationary"
    assert model.coef_ == pytest.approx(-1.0, abs=1e-3)  # where the violation is least


@each_rate
@pytest.mark.parametrize("min_share", [0.3, None])
def test_nobody_is_predicted_positive(rate, min_share):
    rng = np.random.default_rng(0)
    X, y, group = rng.normal(size=(400, 3)), (rng.random(400) < 0.1).astype(int), np.arange(400) % 4 // 3
    model = MinorityRateClassifier(min_share, rate=rate)
    with pytest.warns(FairnessWarning, match="nobody is predicted positive, so the minority 1 has a share of 1"):
        model.fit(X, y, sensitive_features=group)
    assert not model.predict(X).any()
    assert model.exact_share_ == share_of(model, X, group, rate="indicator") == 1.0


def test_the_minority_of_the_predictions_is_complained_about_by_its_share(make_data):
    constraint = MinorityShare(0.3, minority="b").unchecked(make_data())
    message = constraint.complaint_about_decisions(0.75)
    assert "min_share=0.3 bounds the share of the minority 'b' in the probabilities" in message
    assert "in the positive predictions it is 0.25 on the training rows" in message


@pytest.mark.parametrize("constraint", [MinorityShare(0.3, minority="b"), ParityPair(0.2)])
def test_rates_of_positive_predictions_have_no_other_units(constraint):
    assert constraint.in_units(0.0, 1.0).get_params() == constraint.get_params()
    for units in ((-1.0, 1.0), (0.0, 2.0)):
        with pytest.raises(ValueError, match="is about the scores of a classifier"):
            constraint.in_units(*units)
