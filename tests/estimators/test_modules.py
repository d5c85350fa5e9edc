"""Scores by torch modules: the promise holds for them as for linear scores."""

import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from torch import nn

from fairconstrained import PartialParityClassifier, PartialParityRegressor
from fairconstrained.metrics import granularity, partial_demographic_parity_gap
from tests.estimators.nets import Net, make_net

KAPPA = 0.1


def instance():
    torch.manual_seed(0)
    return Net(4, 1).double()


def classifier(**options):
    return PartialParityClassifier(
        **{"kappa": KAPPA, "constraint": "demographic_parity", "random_state": 0, "tol": 0.01, **options}
    )


SPECS = {
    "hidden layer": {"hidden_layer_sizes": (3,), "activation": "tanh"},
    "two layers": {"hidden_layer_sizes": [2, 2], "activation": "tanh"},
    "class": {"module": Net},
    "function": {"module": make_net},
    "instance": {"module": instance()},
}


def tanh(**options):
    return classifier(**SPECS["hidden layer"], **options)


def fit(model, sample):
    return model.fit(sample.X, sample.y, sensitive_features=sample.groups)


@pytest.fixture(scope="module")
def fitted(classes):
    return fit(tanh(), classes)


def check_promise(model, sample):
    scores = model.decision_function(sample.X, sensitive_features=sample.groups)
    gap = partial_demographic_parity_gap(None, scores, sensitive_features=sample.groups)
    assert gap <= KAPPA + granularity(sample.groups) + 1e-9
    assert model.status_ == "optimal"
    assert model.constraint_values_ == {"demographic_parity": pytest.approx(gap)}
    accuracy = model.score(sample.X, sample.y, sensitive_features=sample.groups)
    assert accuracy > max(sample.y.mean(), 1 - sample.y.mean()) + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_kappa_is_kept(classes, fitted, name):
    model = fitted if name == "hidden layer" else fit(classifier(**SPECS[name]), classes)
    check_promise(model, classes)
    assert isinstance(model.module_, nn.Module)
    with torch.no_grad():
        outputs = model.module_(torch.from_numpy(classes.X)).numpy().ravel()
    np.testing.assert_allclose(outputs, model.decision_function(classes.X), atol=1e-12)
    assert not hasattr(model, "coef_")
    free = fit(clone(model).set_params(kappa=None), classes)
    assert free.constraint_values_["demographic_parity"] > 2 * KAPPA


@pytest.mark.slow
def test_relu_is_the_default(classes):
    model = fit(classifier(hidden_layer_sizes=(3,), kappa=0.15), classes)
    assert isinstance(model.module_[1], nn.ReLU)
    assert model.constraint_values_["demographic_parity"] <= 0.15 + granularity(classes.groups) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("parity", ["statistical_parity", "group_auc", "equalized_odds"])
def test_other_notions(classes, parity):
    model = fit(tanh(constraint=parity, kappa=0.12, interval=(0.0, 0.6)), classes)
    (gap,) = model.constraint_values_.values()
    assert model.status_ == "optimal"
    assert gap <= 0.12 + 1 / (0.6 * min(np.bincount(2 * classes.groups + classes.y)))


@pytest.mark.slow
@pytest.mark.parametrize("spec", [SPECS["hidden layer"], SPECS["class"]], ids=["hidden layer", "class"])
def test_a_head_for_every_group(classes, spec):
    X, _, groups = classes
    model = fit(classifier(group_interactions=True, **spec), classes)
    check_promise(model, classes)
    with torch.no_grad():
        outputs = model.module_(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(model.decision_function(X, sensitive_features=groups), outputs[np.arange(600), groups])
    with pytest.raises(ValueError, match="no sensitive_features arrived at predict"):
        model.predict(X)


def test_probabilities_and_predictions(classes, fitted):
    probabilities = fitted.predict_proba(classes.X)
    scores = fitted.decision_function(classes.X)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.predict(classes.X), (scores > 0).astype(int))


def test_sparse_features(classes):
    sparse = classes._replace(X=np.where(np.abs(classes.X) > 0.5, classes.X, 0.0))
    dense = fit(tanh(kappa=0.3), sparse)
    model = fit(tanh(kappa=0.3), sparse._replace(X=sp.csr_array(sparse.X)))
    np.testing.assert_allclose(
        model.decision_function(sp.csr_array(sparse.X)), dense.decision_function(sparse.X), atol=1e-6
    )


@pytest.mark.slow
def test_the_seed_decides(classes, fitted):
    again, other = fit(tanh(), classes), fit(tanh(random_state=1, kappa=None), classes)
    scores = fitted.decision_function(classes.X)
    np.testing.assert_array_equal(again.decision_function(classes.X), scores)
    assert not np.allclose(other.decision_function(classes.X), scores)


def test_copies(classes, fitted, tmp_path):
    joblib.dump(fitted, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.predict_proba(classes.X), fitted.predict_proba(classes.X))
        assert copy.constraint_values_ == fitted.constraint_values_


@pytest.mark.slow
def test_an_instance_of_the_user_stays_as_it_is(classes):
    module = instance()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = fit(classifier(module=module, kappa=0.3), classes)
    assert model.module is module
    assert model.module_ is not module
    assert all(torch.equal(module.state_dict()[name], value) for name, value in before.items())


@pytest.mark.slow
def test_from_a_module_to_linear_scores_and_back(classes):
    model = fit(tanh(kappa=0.3), classes)
    fit(model.set_params(hidden_layer_sizes=None), classes)
    assert not hasattr(model, "module_")
    np.testing.assert_array_equal(model.coef_, fit(classifier(kappa=0.3), classes).coef_)
    fit(model.set_params(module=Net), classes)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "intercept_")


@pytest.mark.slow
def test_warm_start(classes):
    model = fit(tanh(kappa=0.2, warm_start=True), classes)
    fit(model.set_params(kappa=KAPPA), classes)
    check_promise(model, classes)
    other = fit(model.set_params(hidden_layer_sizes=(2,)), classes)  # of another shape: starts afresh
    cold = fit(clone(model).set_params(warm_start=False), classes)
    np.testing.assert_array_equal(other.predict(classes.X), cold.predict(classes.X))


@pytest.mark.slow
@pytest.mark.parametrize("group_interactions", [False, True], ids=["shared", "by group"])
def test_regressor(numbers, group_interactions):
    X, y, groups = numbers
    target = 300 + 20 * y
    model = PartialParityRegressor(
        KAPPA,
        constraint="demographic_parity",
        threshold=float(np.quantile(target, 0.6)),
        hidden_layer_sizes=(3,),
        activation="tanh",
        group_interactions=group_interactions,
        random_state=0,
        tol=0.01,
    )
    model.fit(X, target, sensitive_features=groups)
    predicted = model.predict(X, sensitive_features=groups)
    gap = partial_demographic_parity_gap(None, predicted, sensitive_features=groups, threshold=model.threshold)
    assert gap <= KAPPA + granularity(groups) + 1e-9
    assert model.constraint_values_ == {"demographic_parity": pytest.approx(gap)}
    assert model.score(X, target, sensitive_features=groups) > 0.5
    with torch.no_grad():
        outputs = model.module_(torch.from_numpy(X)).numpy()[np.arange(600), groups * group_interactions]
    scale = np.polyfit(outputs, predicted, 1)  # the module's outputs are standardised
    np.testing.assert_allclose(scale, [target.std(), target.mean()])


# --- mistakes


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"module": Net, "hidden_layer_sizes": (3,)}, ValueError, "module or hidden_layer_sizes, not both"),
        ({"hidden_layer_sizes": (3,), "activation": "gelu"}, ValueError, "'activation' parameter"),
        ({"hidden_layer_sizes": (3, 0)}, ValueError, r"must be positive integers.*got \(3, 0\)"),
        ({"hidden_layer_sizes": 3}, ValueError, "'hidden_layer_sizes' parameter"),
        ({"module": "mlp"}, ValueError, "'module' parameter"),
        ({"module": lambda n, k: nn.Linear(n, k + 1)}, ValueError, r"shape \(n_rows, 1\)"),
        (
            {"module": lambda n, k: nn.Linear(n + 1, k)},
            ValueError,
            "for 2 rows of 4 features its forward raised RuntimeError",
        ),
        ({"module": nn.Linear(4, 1), "group_interactions": True}, ValueError, r"shape \(n_rows, 2\)"),
        ({"module": lambda n, k: 3}, TypeError, "must be an nn.Module, or a callable"),
        ({"module": lambda n, k: nn.Flatten()}, ValueError, r"shape \(n_rows, 1\)"),
    ],
)
def test_modules_that_do_not_fit(classes, options, error, message):
    with pytest.raises(error, match=message):
        fit(classifier(**options), classes)
