"""scikit-learn's own checks of the estimators that choose their kappa."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairconstrained import AUCFairClassifierCV, FairnessPathCV, PartialParityClassifierCV, PartialParityRegressor


# Without sensitive features there is nothing to bound, and each fit says so, as it should: tested in test_choice.py.
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.usefixtures("classes_by_value")
@parametrize_with_checks(
    [
        PartialParityClassifierCV(kappas=[0.2], cv=2, alpha=0.3),
        FairnessPathCV(PartialParityRegressor(alpha=0.1), kappas=[0.2], cv=2),
    ]
)
def test_estimator_check(estimator, check):
    check(estimator)


# What it chooses among differs, not how it chooses.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.usefixtures("classes_by_value")
@parametrize_with_checks([AUCFairClassifierCV(kappas=[0.2], cv=2, alpha=0.1)])
def test_estimator_check_of_another_estimator(estimator, check):
    check(estimator)
