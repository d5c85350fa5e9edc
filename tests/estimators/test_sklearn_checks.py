"""scikit-learn's own checks of every public estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairconstrained import (
    AUCFairClassifier,
    FairBoostingClassifier,
    FairBoostingRegressor,
    GroupLossClassifier,
    GroupLossRegressor,
    LossParityClassifier,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    PairwiseParityClassifier,
    ParityPairClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    RegularizedParityClassifier,
)
from fairconstrained.estimators._boosting import BaseFairBoosting

#: Trees that split single rows, as the checks have few of them.
FEW_ROWS = {"min_child_samples": 1, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0}


# Fits with row weights and with repeated rows must agree to 1e-7. Under a penalty of 1e-4, rounding of the loss alone
# moves the ten coefficients of fifteen rows by as much; hence the larger alphas, and a smooth network.
# The checks pass no sensitive features, so there is one group, every constraint holds vacuously, and each fit
# says so by a FairnessWarning, as it should. That the warning appears is tested in test_fit.py.
# All rows of the checks make one mini-batch: every epoch is a step. Some have features of a mean of 100, which are not
# for networks.
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.filterwarnings("ignore:The values of the features:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("classes_by_value")
@parametrize_with_checks(
    [
        PartialParityClassifier(alpha=0.01),
        PartialParityRegressor(alpha=0.01),
        PairwiseParityClassifier(),
        RegularizedParityClassifier(max_iter=50),
        MinorityRateClassifier(alpha=0.1),
        NeymanPearsonClassifier(),
        ParityPairClassifier(alpha=0.1),
        RateParityClassifier(alpha=0.01),
        FairBoostingClassifier(n_estimators=10, lgbm_params=FEW_ROWS),
        FairBoostingRegressor(n_estimators=40, lgbm_params=FEW_ROWS),
        AUCFairClassifier(),
        GroupLossClassifier(),
        GroupLossRegressor(alpha=0.01),
        LossParityClassifier(hidden_layer_sizes=(4,), activation="tanh", learning_rate=0.1, max_epochs=40),
    ]
)
def test_estimator_check(estimator, check):
    if isinstance(estimator, BaseFairBoosting) and check.func.__name__ == "check_class_weight_classifiers":
        # LightGBM counts the rows of a leaf by their curvature, and fails where it has no least curvature.
        estimator.set_params(n_estimators=40, lgbm_params={**FEW_ROWS, "min_sum_hessian_in_leaf": 1e-6})
    if isinstance(estimator, BaseFairBoosting) and check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("LightGBM cuts features into bins of rows, whatever their weights are")
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.filterwarnings("ignore:The values of the features:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("classes_by_value")
@parametrize_with_checks(
    [
        PartialParityClassifier(kappa=None, objective="zero_one"),
        PartialParityClassifier(constraint="group_auc", objective="auc", alpha=0.1),
        PartialParityClassifier(kappa=None, hidden_layer_sizes=(4,), activation="tanh", alpha=0.1),
        AUCFairClassifier(surrogate="quadratic", objective="auc"),  # has a partial_fit
    ]
)
def test_estimator_check_of_another_model_or_objective(estimator, check):
    if estimator.get_params().get("hidden_layer_sizes") and check.func.__name__.startswith("check_sample_weight_equiv"):
        pytest.skip("minima of a network of three classes agree to 1e-6, and the check compares to 1e-7")
    check(estimator)
