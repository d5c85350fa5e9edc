"""scikit-learn's own checks of the meta-estimator."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairconstrained.postprocessing import ScoreShiftPostprocessor


# The checks pass no sensitive features, so there is one group, and each fit says so by a FairnessWarning.
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.usefixtures("classes_by_value")
@parametrize_with_checks(
    [
        ScoreShiftPostprocessor(LogisticRegression()),
    ]
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@parametrize_with_checks([ScoreShiftPostprocessor(BernoulliNB(), kappa=None)])
def test_estimator_check_with_probabilities_and_no_bound(estimator, check):
    check(estimator)
