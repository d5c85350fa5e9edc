"""Modules with dropout and batch normalisation, which all estimators train in training mode by default."""

import numpy as np
import pytest
from torch import nn

from fairconstrained import (
    AUCFairClassifier,
    FairRanker,
    LossParityClassifier,
    NeymanPearsonClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
)
from fairconstrained.datasets import make_biased_classification

SHORT = {"max_iter": 30, "new_row_folds": None, "random_state": 0}
ESTIMATORS = {
    "partial parity": PartialParityClassifier(0.3, constraint="demographic_parity", **SHORT),
    "regression": PartialParityRegressor(0.4, interval=(0.0, 0.5), **SHORT),
    "rates": RateParityClassifier(0.3, **SHORT),
    "AUC": AUCFairClassifier(0.3, **SHORT),
    "losses": LossParityClassifier(0.5, max_epochs=2, new_row_folds=None, random_state=0),
    "Neyman-Pearson": NeymanPearsonClassifier({1: 0.6}, max_iter=30, random_state=0),
    "ranker": FairRanker(0.4, **SHORT),
}


class Counted(nn.Module):
    """Counts the calls in training mode."""

    calls = 0

    def __init__(self, n_features, n_outputs=1):
        super().__init__()
        self.inner = nn.Sequential(
            nn.Linear(n_features, 6), nn.BatchNorm1d(6), nn.Dropout(0.1), nn.Linear(6, n_outputs)
        )

    def forward(self, x):
        Counted.calls += self.training
        return self.inner(x)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_default_solver_trains_in_training_mode(name):
    X, y, groups = make_biased_classification(300, 4, random_state=0)
    columns = {} if name == "Neyman-Pearson" else {"sensitive_features": groups}
    if name == "ranker":
        columns["qid"] = np.arange(300) // 10
    model = ESTIMATORS[name].set_params(module=Counted)
    Counted.calls = 0
    model.fit(X, y, **columns)
    assert Counted.calls > 0
    means = model.module_.inner[1].running_mean
    assert (means != 0).all()
