"""Estimators with ``module=`` on pictures, with dropout and batch normalisation."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from fairconstrained import (
    AUCFairClassifier,
    FairRanker,
    LossParityClassifier,
    NeymanPearsonClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    certify,
)
from fairconstrained.metrics import loss_parity_gap


def pictures(n_samples=400, seed=0):
    """Pictures of 2 x 4 x 4 with a bright spot in those of the second class, darker in the second group."""
    rng = np.random.default_rng(seed)
    groups, y = (rng.random(n_samples) < 0.4).astype(int), rng.integers(0, 2, n_samples)
    X = rng.normal(size=(n_samples, 2, 4, 4))
    X[:, :, 1:3, 1:3] += (y * (1.2 - 0.5 * groups))[:, None, None, None]
    return X, y, groups


class Convolutional(nn.Sequential):
    """A class that is called with the shape of a picture."""

    def __init__(self, row_shape, n_outputs):
        channels = row_shape[0]
        super().__init__(
            nn.Conv2d(channels, 4, 2),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(36, 8),
            nn.Tanh(),
            nn.Linear(8, n_outputs),
        )


SHORT = {"max_iter": 30, "random_state": 0}
#: Estimators with their default solver, and the columns that their fit takes.
BY_DEFAULT = {
    "partial parity": (PartialParityClassifier(0.3, constraint="demographic_parity", **SHORT), ("sensitive_features",)),
    "regression": (PartialParityRegressor(0.4, interval=(0.0, 0.5), **SHORT), ("sensitive_features",)),
    "rates": (RateParityClassifier(0.3, **SHORT), ("sensitive_features",)),
    "AUC": (AUCFairClassifier(0.3, **SHORT), ("sensitive_features",)),
    "losses": (LossParityClassifier(0.5, max_epochs=2, random_state=0), ("sensitive_features",)),
    "Neyman-Pearson": (NeymanPearsonClassifier({1: 0.6}, **SHORT), ()),
    "ranker": (FairRanker(0.4, **SHORT), ("sensitive_features", "qid")),
}


def model(**options):
    return LossParityClassifier(0.05, module=Convolutional, max_epochs=6, batch_size=64, random_state=0, **options)


@pytest.fixture(scope="module")
def fitted():
    X, y, groups = pictures()
    return model().fit(X, y, sensitive_features=groups)


def test_the_bound_holds_in_evaluation_mode(fitted):
    X, y, groups = pictures()
    gap = loss_parity_gap(y, fitted.decision_function(X), sensitive_features=groups)
    assert fitted.status_ == "completed"
    assert gap <= 0.05 + 1e-6
    assert fitted.constraint_values_["loss_parity"] == pytest.approx(gap, abs=1e-12)
    assert fitted.score(X, y) > 0.75
    with torch.no_grad():
        outputs = fitted.module_(torch.from_numpy(X)).numpy()[:, 0]
    np.testing.assert_allclose(outputs, fitted.decision_function(X), atol=1e-12)
    assert not fitted.module_.training


def test_running_statistics_are_those_of_the_training_rows(fitted):
    X, _, _ = pictures()
    with torch.no_grad():
        inner = fitted.module_[0](torch.from_numpy(X))
    variances = inner.transpose(0, 1).reshape(4, -1).var(dim=1)
    torch.testing.assert_close(fitted.module_[1].running_mean, inner.mean(dim=(0, 2, 3)), atol=0.1, rtol=0)
    torch.testing.assert_close(fitted.module_[1].running_var, variances, atol=0, rtol=0.2)


def test_a_seed_decides_and_nothing_is_left_behind(fitted):
    X, y, groups = pictures()
    state = torch.get_rng_state()
    again = clone(fitted).fit(X, y, sensitive_features=groups)
    assert torch.equal(state, torch.get_rng_state())
    scores = fitted.decision_function(X)
    np.testing.assert_array_equal(again.decision_function(X), scores)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(X), scores)
    torch.manual_seed(1)  # what torch would drop next does not matter
    np.testing.assert_array_equal(clone(fitted).fit(X, y, sensitive_features=groups).decision_function(X), scores)


def test_dropout_takes_part():
    X, y, groups = pictures()
    found = []
    for share in (0.0, 0.6):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(32, 8), nn.Dropout(share), nn.Linear(8, 1))
        free = LossParityClassifier(None, module=net, max_epochs=1, random_state=0)
        found.append(free.fit(X, y, sensitive_features=groups).decision_function(X))
    assert abs(found[0] - found[1]).max() > 1e-4


# Whether the objective has settled after four iterations depends on rounding; the bound is kept in any case.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", BY_DEFAULT)
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_default_solvers_move_the_running_statistics(name):
    X, y, groups = pictures()
    estimator, names = BY_DEFAULT[name]
    columns = {"sensitive_features": groups, "qid": np.arange(400) // 10}
    model = clone(estimator).set_params(module=Convolutional)
    if "new_row_folds" in model.get_params():
        model.set_params(new_row_folds=None)
    model.fit(X, y, **{column: columns[column] for column in names})
    assert (model.module_[1].running_mean != 0).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_full_batch_solvers_run_in_evaluation_mode():
    X, y, groups = pictures()
    torch.manual_seed(0)
    net = Convolutional((2, 4, 4), 1)
    net[1].running_mean.fill_(0.3)
    options = {"constraint": "demographic_parity", "solver": "augmented_lagrangian", "max_iter": 4, "random_state": 0}
    bounded = PartialParityClassifier(0.1, module=net, **options).fit(X, y, sensitive_features=groups)
    assert bounded.constraint_values_["demographic_parity"] <= 0.1 + bounded.granularity_["demographic_parity"]
    assert (bounded.module_[1].running_mean == torch.tensor(0.3)).all()  # as it came


def test_warm_start_and_parts_of_a_stream_go_on_with_the_statistics():
    X, y, groups = pictures()
    one = model(warm_start=True).fit(X, y, sensitive_features=groups)
    before = one.module_[1].running_mean.clone()
    one.set_params(max_epochs=8).fit(X, y, sensitive_features=groups)
    whole = model().set_params(max_epochs=8).fit(X, y, sensitive_features=groups)
    assert not torch.equal(before, one.module_[1].running_mean)
    torch.testing.assert_close(one.module_[1].running_var, whole.module_[1].running_var, rtol=0.2, atol=0)
    stream = model()
    for part in np.split(np.arange(400), 4):
        stream.partial_fit(X[part], y[part], classes=[0, 1], sensitive_features=groups[part])
    assert (stream.module_[1].running_mean != 0).any()
    assert stream.decision_function(X).shape == (400,)


def test_pictures_are_certified(fitted):
    X, y, groups = pictures(3000, seed=1)
    certificate = certify(fitted, X, y, sensitive_features=groups, metric="independence_gap")
    assert 0 < certificate.upper_bound < 0.5
    with pytest.raises(ValueError, match="was fitted on"):
        certify(fitted, *pictures()[:2], sensitive_features=pictures()[2], metric="independence_gap")


def test_shapes_are_checked(fitted):
    X, y, groups = pictures()
    with pytest.raises(ValueError, match=r"X has rows of shape \(2, 4, 2\), but those of fit have shape \(2, 4, 4\)"):
        fitted.predict(X[:, :, :, :2])
    with pytest.raises(ValueError, match=r"those of fit have shape \(2, 4, 4\)"):
        fitted.constraint_values(X[:, :, :2], y, sensitive_features=groups)
    with pytest.raises(ValueError, match="dim 4"):
        RateParityClassifier(0.1).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="NaN"):
        model().fit(np.where(X > 2, np.nan, X), y, sensitive_features=groups)
    values = fitted.constraint_values(X, y, sensitive_features=groups)
    assert values == pytest.approx(fitted.constraint_values_)
