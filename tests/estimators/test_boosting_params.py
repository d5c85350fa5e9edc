"""Parameters of LightGBM that a fit cannot honour are refused under all their names, and others reach it."""

from __future__ import annotations

import numpy as np
import pytest

from fairconstrained import FairBoostingClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import ConvergenceWarning

basic = pytest.importorskip("lightgbm.basic")

ROWS = make_biased_classification(n_samples=200, random_state=0)
REFUSED = {
    "objective": "use objective",
    "num_iterations": "use n_estimators",
    "learning_rate": "use learning_rate",
    "num_leaves": "use num_leaves",
    "num_threads": "use n_jobs",
    "seed": "use random_state",
    "monotone_constraints": "use monotonic_cst",
    "categorical_feature": "use categorical_features",
    "early_stopping_round": "use early_stopping_rounds",
    "linear_tree": "leaves are constants",
    "num_class": "there is one score",
    "is_unbalance": "use sample_weight",
    "scale_pos_weight": "use sample_weight",
}


def fit(**params):
    X, y, groups = ROWS
    return FairBoostingClassifier(None, n_estimators=3, **params).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("name", REFUSED)
def test_every_alias_of_a_parameter_is_refused(name):
    aliases = basic._ConfigAliases._get_all_param_aliases()[name]
    for alias in {name, *aliases}:
        with pytest.raises(ValueError, match=f"lgbm_params has '{alias}', which it cannot set: {REFUSED[name]}"):
            fit(lgbm_params={alias: 1})


def test_names_that_lightgbm_does_not_know_are_refused():
    with pytest.raises(ValueError, match=r"'min_child_sample', which is no .* Did you mean 'min_child_samples'\?"):
        fit(lgbm_params={"min_child_sample": 50})
    with pytest.raises(ValueError, match=r"looks like 'num_leaves', which lgbm_params cannot set: use num_leaves\."):
        fit(lgbm_params={"num_leave": 50})
    with pytest.raises(ValueError, match="'importance_type', which is no parameter of LightGBM"):
        fit(lgbm_params={"importance_type": "gain"})
    with pytest.raises(ValueError, match="'lambda_l2' by two of its names; leave one of them out"):
        fit(lgbm_params={"lambda_l2": 1.0, "reg_lambda": 2.0})


@pytest.mark.parametrize("alias", ["boosting", "boosting_type", "boost"])
def test_other_kinds_of_boosting_are_refused(alias):
    with pytest.raises(ValueError, match="another boosting than 'gbdt'"):
        fit(lgbm_params={alias: "dart"})
    assert fit(lgbm_params={alias: "gbdt"}).n_trees_ == 3


def test_all_threads_grow_the_same_trees():
    X, _, _ = ROWS
    np.testing.assert_array_equal(fit(n_jobs=-1).predict(X), fit().predict(X))


def test_histograms_may_go_by_column():
    assert fit(lgbm_params={"force_col_wise": True}).n_trees_ == 3


def test_the_warning_names_parameters_that_there_are():
    X, y, groups = ROWS
    model = FairBoostingClassifier(0.0, constraint="statistical_parity", n_estimators=3)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y, sensitive_features=groups)
    text = " ".join(str(warning.message) for warning in caught)
    assert "n_estimators" in text
    assert "max_iter" not in text
