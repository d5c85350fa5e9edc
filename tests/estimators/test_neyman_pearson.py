"""NeymanPearsonClassifier: bounds on classes are kept, at no higher price than they must."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import torch
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import ConvergenceWarning, NeymanPearsonClassifier


@pytest.fixture(scope="module")
def flowers():
    """Iris by the two columns that do not separate the classes."""
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X[:, :2]), np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def two_classes():
    options = {"n_informative": 5, "class_sep": 0.7, "flip_y": 0.05, "weights": [0.7], "random_state": 0}
    return make_classification(1500, 8, **options)


def losses_by_hand(model, X, y, phi):
    outputs = X @ model.coef_.T + model.intercept_
    found = []
    for k, label in enumerate(model.classes_):
        rows = outputs[y == label]
        found.append(np.mean(sum(phi(rows[:, k] - rows[:, j]) for j in range(rows.shape[1]) if j != k)))
    return np.array(found)


def truncated(margins, a=2.0):
    return a * np.log1p(np.logaddexp(0, -margins) / a)


@pytest.mark.parametrize("radius", [None, 1.0])
def test_the_problem_of_the_paper(flowers, radius):
    X, y = flowers
    bounds = {"setosa": 0.3, "virginica": 0.9}
    model = NeymanPearsonClassifier(bounds, radius=radius, tol=1e-5).fit(X, y)
    losses = losses_by_hand(model, X, y, truncated)
    table = model.class_table_
    np.testing.assert_allclose(table.loss, losses)
    np.testing.assert_allclose(1 - table.error, recall_score(y, model.predict(X), average=None))
    assert losses[0] <= 0.3 + 1e-6
    assert losses[2] <= 0.9 + 1e-6
    assert losses[2] > 0.89  # and no more is given away than it must
    norms = np.linalg.norm(model.coef_, axis=1)
    assert model.objective_ == pytest.approx(losses[1] + 0.5e-4 * norms @ norms)
    assert model.status_ == "optimal"
    assert model.violation_ <= 1e-6
    assert model.constraint_values_ == pytest.approx({"loss[setosa]": losses[0], "loss[virginica]": losses[2]})
    assert table.n_samples.tolist() == [50, 50, 50]
    assert table.bound.fillna(-1).tolist() == [0.3, -1, 0.9]
    assert table.multiplier["virginica"] == model.multipliers_["loss[virginica]"] > 0.1
    if radius is not None:
        assert 0.99 * radius < norms.max() <= radius + 1e-9


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_multipliers_that_a_solver_does_not_have_are_not_zero_in_the_table():
    X, y = load_iris(return_X_y=True)
    model = NeymanPearsonClassifier({0: 0.3}, solver="ssg", max_iter=5).fit(X, y)
    assert model.multipliers_ is None
    assert model.class_table_.multiplier.isna().all()


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0:UserWarning")  # SciPy, on a piece where the hinge is linear
def test_two_classes_and_the_known_optimum(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    rounded = 0.01 if loss == "hinge" else 0.0
    alpha, bound = 0.05, 0.3

    def class_loss(w, k):  # half of w and its negative are the coefficients of the classes
        margins = (2 * k - 1) * (X @ w[:2] + w[2])[y == k]
        if loss == "logistic":
            return np.logaddexp(0, -margins).mean()
        slack = 1 - margins
        parabola = np.clip(slack + rounded, 0, 2 * rounded) ** 2 / (4 * rounded)
        return (parabola + np.clip(slack - rounded, 0, None)).mean()

    known = minimize(
        lambda w: class_loss(w, 1) + alpha / 4 * w[:2] @ w[:2],
        np.zeros(3),
        constraints={"type": "ineq", "fun": lambda w: bound - class_loss(w, 0)},
        method="SLSQP" if loss == "logistic" else "trust-constr",
        options={"maxiter": 2000},
    )
    model = NeymanPearsonClassifier({0: bound}, loss=loss, alpha=alpha, tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(known.fun, rel=1e-3)
    assert model.class_table_.loss[0] == pytest.approx(bound, abs=1e-4)
    w = model.coef_[1] - model.coef_[0], model.intercept_[1] - model.intercept_[0]
    np.testing.assert_allclose(np.append(*w), known.x, atol=0.02)
    if loss == "logistic":
        # the multiplier: what the optimum moves by with the bound
        ends = [NeymanPearsonClassifier({0: bound + h}, loss=loss, alpha=alpha, tol=1e-7) for h in (-0.01, 0.01)]
        below, above = (end.fit(X, y).objective_ for end in ends)
        assert model.multipliers_["loss[0]"] == pytest.approx((below - above) / 0.02, rel=0.02)


def best_threshold(scores, y, n_errors):
    """Share of class 1 that is missed where so many of class 0 may be taken for it."""
    threshold = np.sort(scores[y == 0])[-1 - n_errors]
    return np.mean(scores[y == 1] <= threshold)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["truncated_logistic", "logistic", "hinge"])
@pytest.mark.parametrize("bound", [0.01, 0.05, 0.2])
def test_type_one_errors_cost_no_more_than_by_a_threshold(two_classes, bound, loss):
    X, y = two_classes
    model = NeymanPearsonClassifier(bound, priority_class=1, constraint="error", loss=loss).fit(X, y)
    wrong = model.predict(X) != y
    assert model.status_ == "optimal"
    assert wrong[y == 0].mean() <= bound + 1 / np.sum(y == 0)
    assert model.constraint_values_ == {"error[0]": pytest.approx(wrong[y == 0].mean())}
    scores = LogisticRegression(C=1e4).fit(X, y).decision_function(X)
    assert wrong[y == 1].mean() <= best_threshold(scores, y, int(bound * np.sum(y == 0)) + 1) + 0.01


def test_out_of_reach_priority_does_not_collapse():
    """Where most of the class is lost, vanishing scores would have less loss, and predict nothing of it."""
    X, y = make_classification(2000, 10, n_informative=5, class_sep=0.7, flip_y=0.05, weights=[0.7], random_state=1)
    model = NeymanPearsonClassifier({0: 0.05}, constraint="error", loss="logistic").fit(X, y)
    assert model.class_table_.error[0] <= 0.05 + 1 / np.sum(y == 0)
    assert model.class_table_.error[1] < 0.95


@pytest.mark.slow
def test_ten_classes():
    X, y = load_digits(return_X_y=True)
    model = NeymanPearsonClassifier(0.02, priority_class=8, constraint="error", alpha=1e-2, max_iter=100)
    model.fit(X / 16, y)
    table = model.class_table_
    assert model.status_ == "optimal"
    np.testing.assert_allclose(1 - table.error, recall_score(y, model.predict(X / 16), average=None))
    assert (table.error - 1 / table.n_samples)[table.bound.notna()].max() <= 0.02
    assert table.error[8] < 0.05


@pytest.mark.slow
def test_a_radius_does_not_change_which_errors_are_possible():
    """Scores of any length predict the same; but short ones have other best coefficients."""
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[::2] / 16, y[::2]
    model = NeymanPearsonClassifier(0.01, priority_class=2, constraint="error", radius=1.0).fit(X, y)
    table = model.class_table_
    assert model.status_ != "infeasible"
    assert (table.error - 1 / table.n_samples)[table.bound.notna()].max() <= 0.01
    assert np.linalg.norm(model.coef_, axis=1).max() <= 1 + 1e-9


def test_without_bounds_all_classes_count_alike(flowers):
    X, y = flowers
    few = np.r_[0:100, 100:110]
    X, y = X[few], y[few]
    free = NeymanPearsonClassifier(loss="logistic", priority_class="virginica").fit(X, y)
    losses = losses_by_hand(free, X, y, lambda m: np.logaddexp(0, -m))
    assert free.objective_ == pytest.approx(losses.sum() + 0.5e-4 * np.sum(free.coef_**2))
    assert free.constraint_values_ == {}
    assert free.status_ == "optimal"
    assert free.class_table_.error["virginica"] < 0.5
    loose = NeymanPearsonClassifier(dict.fromkeys(set(y), 5.0), loss="logistic").fit(X, y)
    np.testing.assert_allclose(loose.coef_, free.coef_, atol=1e-3)  # no priority left: all classes again


def test_two_classes_without_bounds_are_a_logistic_regression(two_classes):
    X, y = two_classes
    model = NeymanPearsonClassifier(loss="logistic", alpha=1e-3).fit(X, y)
    # the classes' means and half the penalty, as each coefficient is split in two
    weights = np.where(y == 0, 1 / np.sum(y == 0), 1 / np.sum(y == 1))
    other = LogisticRegression(C=2 / 1e-3, tol=1e-8, max_iter=1000).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-9)
    assert model.score(X, y) == pytest.approx(other.score(X, y), abs=2e-3)


def test_predictions(flowers):
    X, y = flowers
    model = NeymanPearsonClassifier({"setosa": 0.1}, constraint="error").fit(X, y)
    scores, shares = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == shares.shape == (150, 3)
    np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(scores.argmax(axis=1), shares.argmax(axis=1))


@pytest.mark.parametrize("constraint", ["loss", "error"])
def test_weights_stand_for_repeated_rows(flowers, constraint):
    X, y = flowers
    counts = np.random.default_rng(0).integers(0, 3, y.size)
    options = {"bounds": {"versicolor": 0.5}, "constraint": constraint, "alpha": 0.01, "loss": "logistic"}
    weighted = NeymanPearsonClassifier(**options).fit(X, y, sample_weight=counts)
    repeated = NeymanPearsonClassifier(**options).fit(X.repeat(counts, axis=0), y.repeat(counts))
    assert weighted.status_ == repeated.status_ == "optimal"
    if constraint == "loss":  # the rate allows for what a row more stands for, and rows are heavier here
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-3)
    rate = weighted.class_table_.error["versicolor"]
    assert rate == pytest.approx(
        np.average((weighted.predict(X) != y)[y == "versicolor"], weights=counts[y == "versicolor"])
    )
    absent = np.where(y == "setosa", 0, 1)
    assert NeymanPearsonClassifier().fit(X, y, sample_weight=absent).classes_.tolist() == ["versicolor", "virginica"]


@pytest.mark.slow
def test_forms_of_the_input(flowers):
    X, y = flowers
    bounds = {"setosa": 0.05, "versicolor": 0.6}
    model = NeymanPearsonClassifier(bounds).fit(X, y)
    order = np.random.default_rng(0).permutation(y.size)
    sparse = NeymanPearsonClassifier(bounds).fit(sp.csr_array(X[order]), y[order])
    np.testing.assert_allclose(sparse.decision_function(X), model.decision_function(X), atol=0.02)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), sparse.decision_function(X))
    frame = pd.DataFrame(X, columns=["length", "width"])
    named = clone(model).fit(frame, list(y))
    np.testing.assert_allclose(named.coef_, model.coef_, rtol=1e-3)
    assert named.feature_names_in_.tolist() == ["length", "width"]
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    warm = NeymanPearsonClassifier(bounds, warm_start=True).fit(X, y)
    assert warm.fit(X, y).objective_ == pytest.approx(model.objective_, rel=5e-3)


@pytest.mark.slow
def test_searches_and_pipelines(flowers):
    X, y = flowers
    grid = {"neymanpearsonclassifier__bounds": [None, {"virginica": 0.1}, {"virginica": 0.3}]}
    pipeline = make_pipeline(StandardScaler(), NeymanPearsonClassifier(constraint="error"))
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert 0.6 < search.best_score_ < 0.9
    with sklearn.config_context(enable_metadata_routing=True):
        model = NeymanPearsonClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        request = model.get_metadata_routing()
        assert request.fit.requests == {"sample_weight": True}
        assert request.predict.requests == {}
        weights = np.ones(y.size)
        GridSearchCV(model, {"bounds": [None]}, cv=2).fit(X, y, sample_weight=weights)


def test_no_groups_are_missed(flowers):
    X, y = flowers
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NeymanPearsonClassifier({"setosa": 0.5}).fit(X, y)


@pytest.mark.parametrize("constraint", ["loss", "error"])
def test_networks(flowers, constraint):
    X, y = flowers
    bounds = {"setosa": 0.15, "virginica": 0.6} if constraint == "loss" else {"setosa": 0.02, "virginica": 0.2}
    options = {"hidden_layer_sizes": (8,), "solver_options": {"max_epochs": 60}, "random_state": 0}
    model = NeymanPearsonClassifier(bounds, constraint=constraint, **options).fit(X, y)
    values = model.class_table_[constraint]
    allowed = 1e-6 if constraint == "loss" else 1 / 50
    assert all(values[name] <= bound + allowed + 1e-12 for name, bound in bounds.items())
    assert model.status_ in ("completed", "optimal")
    assert model.class_table_.error["versicolor"] < 0.7
    with torch.no_grad():
        outputs = model.module_(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(outputs, model.decision_function(X), atol=1e-9)


def test_any_module(flowers):
    X, y = flowers
    options = {"solver_options": {"max_epochs": 5, "polish": False}, "random_state": 0}
    model = NeymanPearsonClassifier({"setosa": 1.0}, constraint="error", module=torch.nn.Linear, **options).fit(X, y)
    assert model.score(X, y) > 0.3
    assert model.module_.out_features == 3


def test_one_class_for_all_rows_keeps_bounds_that_nothing_else_keeps():
    """Noise of four classes: the rare one is right only where every row is given to it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 2)), rng.choice(4, 800, p=[0.4, 0.3, 0.2, 0.1])
    model = NeymanPearsonClassifier({3: 0.0}, constraint="error", max_iter=3)
    with pytest.warns(ConvergenceWarning, match="no iterate kept the bound, and the best constant"):
        model.fit(X, y)
    assert (model.predict(X) == 3).all()
    assert model.status_ == "max_iter"
    assert model.constraint_values_ == {"error[3]": 0.0}


def test_bounds_that_cannot_be_kept():
    X = np.zeros((100, 2))
    y = np.repeat([0, 1], 50)
    with pytest.warns(ConvergenceWarning, match=re.escape("the error rate of class 1 is 1 on the training rows")):
        model = NeymanPearsonClassifier({0: 0.0, 1: 0.0}, constraint="error").fit(X, y)
    assert model.status_ == "infeasible"
    assert model.violation_ == pytest.approx(1.0)
    with pytest.warns(ConvergenceWarning, match="the loss of class .* Raise the bounds"):
        model = NeymanPearsonClassifier({0: 0.1, 1: 0.1}).fit(X, y)
    assert model.status_ == "infeasible"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"bounds": {"rose": 0.1}}, "bounds are for ['rose'], but the classes in y are ['setosa', 'versicolor'"),
        ({"priority_class": "rose"}, "priority_class is ['rose'], but the classes in y are"),
        ({"bounds": 0.1}, "bounds=0.1 is for all classes but one: say which by priority_class"),
        ({"bounds": {"setosa": -0.1}}, "bounds['setosa'] must be a finite number of at least 0; got -0.1"),
        ({"bounds": {"setosa": None}}, "bounds['setosa'] must be a finite number"),
        ({"bounds": {"setosa": 1.1}, "constraint": "error"}, "must be in [0, 1], an error rate; got 1.1"),
        ({"bounds": -0.1, "priority_class": "setosa"}, "The 'bounds' parameter"),
        ({"bounds": {"setosa": 1}, "priority_class": "setosa"}, "priority_class 'setosa' is also in bounds"),
        ({"radius": 0}, "The 'radius' parameter"),
        ({"radius": 1.0, "hidden_layer_sizes": (3,)}, "radius is for linear scores"),
        ({"loss": "squared"}, "The 'loss' parameter"),
        ({"constraint": "recall"}, "The 'constraint' parameter"),
        ({"alpha": -1.0}, "The 'alpha' parameter"),
        ({"solver": "nothing"}, "solver must be one of"),
        ({"constraint": "error", "compute_stationarity": True}, "compute_stationarity=True needs constraint='loss'"),
    ],
)
def test_bad_parameters(flowers, params, message):
    X, y = flowers
    model = NeymanPearsonClassifier(**params)
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


def test_bad_input(flowers):
    X, y = flowers
    with pytest.raises(ValueError, match=re.escape("y has 1 class (['setosa'], counting rows of positive weight)")):
        NeymanPearsonClassifier().fit(X, y, sample_weight=y == "setosa")
    with pytest.raises(TypeError, match="sensitive_features"):
        NeymanPearsonClassifier().fit(X, y, sensitive_features=y)


@pytest.mark.slow
def test_stationarity_on_request(flowers):
    X, y = flowers
    model = NeymanPearsonClassifier({"setosa": 0.5}, radius=2.0, compute_stationarity=True).fit(X, y)
    assert 0 <= model.stationarity_ < 0.05
    rough = NeymanPearsonClassifier(**model.get_params() | {"solver_options": {"inner_iter": 1}, "tol": 0.5}).fit(X, y)
    assert rough.stationarity_ > model.stationarity_


@pytest.mark.parametrize("seed", [7, 12])
def test_where_the_start_keeps_the_bounds_a_better_model_next_to_them_is_found(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(500, 4)), rng.integers(0, 3, 500)
    X[np.arange(500), y] += 1.3
    own, scaled = (NeymanPearsonClassifier({0: 0.8, 1: 0.9}).fit(unit * X, y) for unit in (1, 3))
    assert own.objective_ == pytest.approx(scaled.objective_, rel=5e-3)
    assert own.class_table_["loss"][:2].tolist() == pytest.approx([0.8, 0.9], abs=1e-3)
