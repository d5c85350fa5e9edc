"""scikit-learn's own checks of every public estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairconstrained import (
    PairwiseParityClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RegularizedParityClassifier,
)


# The checks pass no sensitive features, so there is one group, every constraint holds vacuously, and each fit
# says so by a FairnessWarning, as it should. That the warning appears is tested in test_fit.py.
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@parametrize_with_checks(
    [
        PartialParityClassifier(),
        PartialParityRegressor(),
        PartialParityClassifier(kappa=None, objective="zero_one"),
        PartialParityRegressor(kappa=None, parity="demographic"),
        PairwiseParityClassifier(),
        RegularizedParityClassifier(max_iter=50),
    ]
)
def test_estimator_check(estimator, check):
    check(estimator)
