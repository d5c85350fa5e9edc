"""`AUCFairClassifier.partial_fit` by mirror descent: networks and the logistic objective, a row at a time."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from fairconstrained import AUCFairClassifier
from fairconstrained.constraints import QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification

QUADRATIC = {"surrogate": "quadratic", "objective": "auc", "solver": "mirror_descent", "random_state": 0}
NETWORK = {**QUADRATIC, "solver": "auto", "hidden_layer_sizes": (10,)}


@pytest.fixture(scope="module")
def biased():
    return make_biased_classification(4000, 4, group_shift=(0.8, 0.0), random_state=0)


def streamed(model, rows, size, weights=None):
    """Fed in the order of the rows, ``size`` of them at a time."""
    X, y, groups = rows
    for first in range(0, len(y), size):
        part = slice(first, first + size)
        extra = {} if weights is None else {"sample_weight": weights[part]}
        model.partial_fit(X[part], y[part], [0, 1], groups[part], groups=[0, 1], **extra)
    return model


def surrogate(rows, scores, kappa=0.0):
    X, y, groups = rows
    data = FairData.from_arrays(X, np.where(y == 1, 1.0, -1.0), groups, (0, 1))
    return kappa + QuadraticAUCGap(kappa).bind(data).exact(scores[data.order])


def pair_loss(y, scores):
    """The quadratic loss of all pairs, by its definition."""
    return ((scores[y == 1][:, None] - scores[y == 0] - 1) ** 2).mean() / 2


@pytest.mark.slow
@pytest.mark.parametrize("size", [4000, 30])
def test_linear_scores_come_near_the_optimum(biased, size):
    X, y, groups = biased
    optimum = AUCFairClassifier(0.2, **{**QUADRATIC, "solver": "moments"}).fit(X, y, sensitive_features=groups)
    model = streamed(AUCFairClassifier(0.2, **QUADRATIC), biased, size)
    scores = model.decision_function(X)
    assert pair_loss(y, scores) == pytest.approx(optimum.objective_, abs=0.015)
    assert surrogate(biased, scores) == pytest.approx(0.2, abs=0.05)
    free = streamed(AUCFairClassifier(None, **QUADRATIC), biased, size)
    assert surrogate(biased, free.decision_function(X)) > 0.35  # so that the bound matters
    assert pair_loss(y, free.decision_function(X)) < pair_loss(y, scores)
    # what is reported is measured on rows before they are learnt from
    assert model.constraint_values_["inter_group_surrogate"] == pytest.approx(0.2, abs=0.1)
    assert model.objective_ == pytest.approx(pair_loss(y, scores), abs=0.02)
    assert model.violation_ == pytest.approx(max(model.constraint_values_["inter_group_surrogate"] - 0.2, 0), abs=1e-9)
    assert model.prices_["inter_group_surrogate"] == pytest.approx(sum(optimum.multipliers_.values()), rel=0.3)
    assert model.status_ == "completed"
    # the intercept tells the classes apart
    thresholds = np.quantile(scores, np.linspace(0, 1, 201))
    assert model.score(X, y) > max(np.mean((scores > t) == y) for t in thresholds) - 0.02


@pytest.mark.slow
def test_the_size_of_the_calls_hardly_matters(biased):
    part = tuple(column[:800] for column in biased)
    many, few, single = (streamed(AUCFairClassifier(0.2, **QUADRATIC), part, size).coef_ for size in (800, 10, 1))
    np.testing.assert_allclose(few, many, rtol=1e-9)  # steps of ten rows
    np.testing.assert_allclose(single, many, atol=0.1 * np.abs(many).max())


@pytest.mark.slow
def test_a_network_learns_what_no_linear_score_can():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(6000, 3)), rng.integers(0, 2, 6000)
    X[:, 1] += groups
    y = (np.abs(X[:, 0]) + 0.3 * X[:, 1] + 0.3 * rng.normal(size=6000) > 1).astype(int)  # two thresholds
    rows = X, y, groups
    linear = streamed(AUCFairClassifier(0.4, **QUADRATIC), rows, 500)
    network = streamed(AUCFairClassifier(0.4, **NETWORK, activation="relu"), rows, 500)
    assert roc_auc_score(y, linear.decision_function(X)) < 0.75
    assert roc_auc_score(y, network.decision_function(X)) > 0.9
    assert surrogate(rows, network.decision_function(X)) == pytest.approx(0.4, abs=0.05)
    assert not hasattr(network, "coef_")
    assert network.n_iter_ == 600


@pytest.mark.slow
def test_the_logistic_objective_under_the_bound(biased):
    X, y, groups = biased
    options = {**QUADRATIC, "objective": "logistic"}
    optimum = AUCFairClassifier(0.2, **{**options, "solver": "auto"}).fit(X, y, sensitive_features=groups)
    model = streamed(AUCFairClassifier(0.2, **options), biased, 100)
    loss = np.logaddexp(0, np.where(y == 1, -1, 1) * model.decision_function(X)).mean()
    assert loss == pytest.approx(optimum.objective_, abs=0.02)
    assert model.objective_ == pytest.approx(loss, abs=0.02)
    assert surrogate(biased, model.decision_function(X)) == pytest.approx(0.2, abs=0.05)


@pytest.mark.slow
def test_rows_without_weight_are_not_there_and_weights_count(biased):
    X, y, groups = biased
    weights = (np.arange(4000) % 3 > 0).astype(float)
    counted = weights > 0
    kept = X[counted], y[counted], groups[counted]
    other = streamed(AUCFairClassifier(0.2, **QUADRATIC), biased, 3000, weights)
    same = streamed(AUCFairClassifier(0.2, **QUADRATIC), kept, 2000)
    np.testing.assert_allclose(other.coef_, same.coef_, atol=1e-12)
    of_one = np.where(groups == 1, 20.0, 1.0)
    heavy = streamed(AUCFairClassifier(None, **QUADRATIC), biased, 1000, of_one)
    alone = AUCFairClassifier(None, **{**QUADRATIC, "solver": "moments"}).fit(X, y, sample_weight=of_one)
    assert pair_loss_weighted(y, heavy.decision_function(X), of_one) == pytest.approx(alone.objective_, abs=0.02)


def pair_loss_weighted(y, scores, weights):
    pairs = np.outer(weights[y == 1], weights[y == 0])
    return (pairs * (scores[y == 1][:, None] - scores[y == 0] - 1) ** 2).sum() / pairs.sum() / 2


@pytest.mark.slow
def test_sparse_rows_are_like_dense_ones(biased):
    X, y, groups = biased
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = streamed(AUCFairClassifier(0.2, **QUADRATIC), (X, y, groups), 500)
    sparse = streamed(AUCFairClassifier(0.2, **QUADRATIC), (sp.csr_array(X), y, groups), 500)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-9)


def test_rows_wait_until_every_set_has_one(biased):
    X, y, groups = biased
    model = AUCFairClassifier(0.2, **QUADRATIC)
    for number, cell in enumerate([3, 0, 2, 1]):
        rows = np.flatnonzero(2 * groups + y == cell)[:5]
        model.partial_fit(X[rows], y[rows], [0, 1], groups[rows], groups=[0, 1])
        if number < 3:
            with pytest.raises(NotFittedError):
                model.predict(X)
    assert model.n_iter_ == 2  # of ten rows each
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.slow
@pytest.mark.parametrize("options", [QUADRATIC, NETWORK], ids=["linear", "network"])
def test_pickling_errors_and_going_on(biased, options):
    X, y, groups = biased
    half = tuple(part[:2000] for part in biased)
    model = streamed(AUCFairClassifier(0.2, **options), half, 500)
    before, scores = dict(vars(model)), model.decision_function(X)
    with pytest.raises(ValueError, match="not seen in fit"):
        model.partial_fit(X[:50], y[:50], sensitive_features=groups[:50] + 5)
    assert all(vars(model)[name] is value for name, value in before.items())
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.decision_function(X), scores)
    rest = tuple(part[2000:] for part in biased)
    one, two = streamed(model, rest, 500), streamed(other, rest, 500)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    whole = streamed(AUCFairClassifier(0.2, **options), biased, 500)
    np.testing.assert_allclose(whole.decision_function(X), one.decision_function(X), atol=1e-12)
    assert not np.allclose(one.decision_function(X), scores)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "moments"}, "solver='mirror_descent' takes a stream for networks"),
        ({"solver_options": {"inner_iter": 3}}, r"solver 'mirror_descent' has no option \['inner_iter'\]"),
        ({"solver_options": {"step": -1.0}}, "step of solver 'mirror_descent' must be"),
        ({"solver_options": "paper"}, "the paper has no stream of networks"),
    ],
    ids=["moments", "unknown", "negative", "paper"],
)
def test_what_a_stream_of_a_network_refuses(biased, options, message):
    X, y, groups = biased
    model = AUCFairClassifier(0.2, **{**NETWORK, **options})
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, [0, 1], groups)
    assert not hasattr(model, "classes_")


def test_what_is_not_bounded_is_not_reported(biased):
    model = streamed(AUCFairClassifier(None, **NETWORK), tuple(part[:500] for part in biased), 500)
    assert np.isnan(model.constraint_values_["inter_group_surrogate"])
    assert (model.violation_, model.multipliers_) == (0.0, {})
