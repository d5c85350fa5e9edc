"""scikit-learn's own checks of heads."""

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairconstrained import FairHeadClassifier, FairHeadRegressor, PartialParityClassifier


# Without sensitive features there is nothing to bound, and each fit says so, as it should: tested in test_fair_head.py.
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.usefixtures("classes_by_value")
@parametrize_with_checks(
    [
        FairHeadClassifier(LogisticRegression(), PartialParityClassifier(alpha=0.1), cv=2, random_state=0),
        FairHeadRegressor(LinearRegression(), cv=2, random_state=0),
    ]
)
def test_estimator_check(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip(
            "rows that are repeated are in other folds than one row with a weight, as in CalibratedClassifierCV"
        )
    check(estimator)
