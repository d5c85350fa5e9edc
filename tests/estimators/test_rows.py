"""Values that a fit refuses to compute with, and the rows that it draws."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.utils import check_random_state

import fairconstrained
from fairconstrained import MinorityRateClassifier

LARGEST = np.finfo(float).max
ESTIMATORS = {
    name: getattr(fairconstrained, name)
    for name in (
        "AUCFairClassifier",
        "CorrelationPenaltyClassifier",
        "FairRanker",
        "GroupLossClassifier",
        "GroupLossRegressor",
        "LossParityClassifier",
        "MinorityRateClassifier",
        "NeymanPearsonClassifier",
        "PairwiseParityClassifier",
        "PartialParityClassifier",
        "PartialParityRegressor",
        "RateParityClassifier",
        "RegularizedParityClassifier",
    )
}
each_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def fit(name, X, y, method="fit", sample_weight=None, **options):
    """Fit with what the estimator takes of rows, groups, queries and weights."""
    extra = {"sensitive_features": np.arange(len(y)) % 2, "qid": np.arange(len(y)) // 10}
    extra.pop({"FairRanker": "", "NeymanPearsonClassifier": "sensitive_features"}.get(name, "qid"), None)
    if name == "NeymanPearsonClassifier":
        del extra["qid"]
    if sample_weight is not None:
        extra["sample_weight"] = sample_weight
    return getattr(ESTIMATORS[name](**options), method)(X, y, **extra)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, (X[:, 0] + rng.normal(size=120) > 0).astype(int)


@each_estimator
@pytest.mark.parametrize("value", [-1e155, LARGEST])
def test_one_value_whose_square_overflows(name, value, rows):
    X, y = rows
    X[7, 1] = value
    with pytest.raises(ValueError, match=r"^X has .* in the column 1; the sum of .*Standardise it"):
        fit(name, X, y)


@each_estimator
def test_rows_whose_squares_overflow(name, rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"^X has .* in the columns 0, 1, 2; the sum of their squares overflows"):
        fit(name, 1e155 * X, y)


@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - {"FairRanker"}))
def test_weights_whose_squares_overflow(name, rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"^sample_weight has .* up to 1e\+307; .*Give weights of the order of 1"):
        fit(name, X, y, sample_weight=np.full(y.size, 1e307))


def test_targets_whose_squares_overflow(rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"^y has absolute values up to 1e\+200; the sum of their squares overflows"):
        fit("PartialParityRegressor", X, 1e200 * y)


def test_rows_of_the_constraint_whose_squares_overflow(rows):
    X, y = rows
    groups = np.arange(y.size) % 2
    with pytest.raises(ValueError, match=r"^X_constraint has absolute values up to 1e\+160 in the column 2"):
        MinorityRateClassifier().fit(
            X, y, X_constraint=X * [1, 1, 0] + [0, 0, 1e160], sensitive_features_constraint=groups
        )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("AUCFairClassifier", {"surrogate": "quadratic", "objective": "auc"}),
        ("LossParityClassifier", {"hidden_layer_sizes": (2,)}),
    ],
)
def test_streams_whose_squares_overflow(name, options, rows):
    X, y = rows
    model, groups = ESTIMATORS[name](**options), np.arange(y.size) % 2
    model.partial_fit(X, y, classes=[0, 1], sensitive_features=groups)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"^X has .* the sum of their squares overflows"):
        model.partial_fit(1e160 * X, y, sensitive_features=groups)
    assert vars(model) == before


def test_the_message_names_columns_and_few_of_many(rows):
    _, y = rows
    X = pd.DataFrame(np.full((y.size, 14), 1e160), columns=[f"income {k}" for k in range(14)])
    with pytest.raises(ValueError, match=r"in the columns 'income 0', .*'income 9' and 4 more; the sum"):
        fit("PartialParityClassifier", X, y)


def test_sparse_rows_whose_squares_overflow(rows):
    X, y = rows
    X[3, 2] = -1e200
    with pytest.raises(ValueError, match=r"up to 1e\+200 in the column 2; the sum"):
        fit("PartialParityClassifier", sp.csr_matrix(X), y)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PartialParityClassifier", "PartialParityRegressor", "AUCFairClassifier"])
def test_the_largest_values_that_are_allowed_fit(name, rows):
    X, y = rows
    model = fit(name, 1e152 * X, y, kappa=0.2, alpha=0.0)
    reference = fit(name, X, y, kappa=0.2, alpha=0.0)
    assert model.status_ == "optimal"
    # machines round the two searches differently, which may end at other local optima
    np.testing.assert_allclose(model.objective_, reference.objective_, rtol=1e-2)


# --- seeds


@each_estimator
def test_fits_without_a_seed_leave_the_global_generators_alone(name, rows):
    X, y = rows
    everyones = check_random_state(None)
    before, torch_before = everyones.get_state()[1:], torch.get_rng_state()
    short = {"LossParityClassifier": {"max_epochs": 2}, "CorrelationPenaltyClassifier": {}}.get(name, {"max_iter": 3})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(name, X, y, **short)
    for one, other in zip(everyones.get_state()[1:], before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_seeds_are_drawn_from_what_the_user_gives(rows):
    X, y = rows
    options = {"hidden_layer_sizes": (3,), "max_epochs": 2, "kappa": None}

    def weights(random_state):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fit("LossParityClassifier", X, y, random_state=random_state, **options).predict_proba(X)

    np.testing.assert_array_equal(weights(0), weights(0))
    generator = np.random.RandomState(0)
    np.testing.assert_array_equal(weights(generator), weights(0))  # an int is the seed of a generator of its own
    assert generator.randint(2**31) == np.random.RandomState(0).randint(2**31, size=2)[1]
    assert not np.array_equal(weights(generator), weights(0))
    assert not np.array_equal(weights(None), weights(None))
