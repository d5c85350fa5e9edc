"""scikit-learn's own checks of the meta-estimators."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairconstrained.postprocessing import GroupThresholdClassifier, ScoreShiftPostprocessor


# The checks pass no sensitive features, so there is one group, and each fit says so by a FairnessWarning.
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.usefixtures("classes_by_value")
@parametrize_with_checks(
    [
        ScoreShiftPostprocessor(LogisticRegression()),
        GroupThresholdClassifier(LogisticRegression(), cv=None),
    ]
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@parametrize_with_checks([ScoreShiftPostprocessor(BernoulliNB(), kappa=None)])
def test_estimator_check_with_probabilities_and_no_bound(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.usefixtures("classes_by_value")
@parametrize_with_checks([GroupThresholdClassifier(LogisticRegression(), objective="f1", cv=2, random_state=0)])
def test_estimator_check_with_folds(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip(
            "rows that are repeated are in other folds than one row with a weight, as in CalibratedClassifierCV"
        )
    check(estimator)
