"""Fitted estimators are saved by pickle and by skops, and predict the same afterwards."""

import copy
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from torch import nn

import fairconstrained as fc
from fairconstrained.datasets import make_biased_classification, make_biased_ranking, make_biased_regression
from fairconstrained.estimators.saving import SavedTable
from fairconstrained.postprocessing import GroupThresholdClassifier, ScoreShiftPostprocessor

X, Y, GROUPS = make_biased_classification(400, 3, random_state=0)
X_NUMBERS, Y_NUMBERS, GROUPS_NUMBERS = make_biased_regression(400, 3, random_state=0)
DOCUMENTS, RELEVANCE, KINDS, QUERIES = make_biased_ranking(60, 10, random_state=0)
FEW = {"kappas": [0.9], "cv": 2}
MEMBERS = pd.DataFrame({"a": GROUPS == 1, "b": X[:, 0] > 0})


def linear_module(n_features, n_outputs):
    return nn.Linear(n_features, n_outputs)


def classifier(estimator):
    return estimator.fit(X, Y, sensitive_features=GROUPS)


def streamed(kind):
    model = kind(0.2, solver="moments", surrogate="quadratic", objective="auc")
    return model.partial_fit(X, Y, classes=[0, 1], sensitive_features=GROUPS)


#: The class of every model, and what makes it.
MODELS = {
    "partial parity": (fc.PartialParityClassifier, lambda kind: classifier(kind(0.3))),
    "interactions": (fc.PartialParityClassifier, lambda kind: classifier(kind(0.3, group_interactions=True))),
    "network": (
        fc.PartialParityClassifier,
        lambda kind: classifier(kind(None, solver="adam_lagrangian", hidden_layer_sizes=(3,), max_iter=3)),
    ),
    "module": (fc.PartialParityClassifier, lambda kind: classifier(kind(None, module=linear_module))),
    "constraint": (
        fc.PartialParityClassifier,
        lambda kind: classifier(kind(constraint=[("a", fc.constraints.StatisticalParity(0.3))])),
    ),
    "regressor": (
        fc.PartialParityRegressor,
        lambda kind: kind(0.3).fit(X_NUMBERS, Y_NUMBERS, sensitive_features=GROUPS_NUMBERS),
    ),
    "trees": (fc.FairBoostingClassifier, lambda kind: classifier(kind(0.3, n_estimators=5))),
    "trees of numbers": (
        fc.FairBoostingRegressor,
        lambda kind: kind(0.5, n_estimators=5).fit(X_NUMBERS, Y_NUMBERS, sensitive_features=GROUPS_NUMBERS),
    ),
    "rates": (fc.RateParityClassifier, lambda kind: classifier(kind(0.2))),
    "memberships": (fc.RateParityClassifier, lambda kind: kind(0.5).fit(X, Y, sensitive_features=MEMBERS)),
    "losses": (fc.LossParityClassifier, lambda kind: classifier(kind(0.5, hidden_layer_sizes=(3,), max_epochs=3))),
    "group losses": (fc.GroupLossClassifier, lambda kind: classifier(kind("minimax"))),
    "group losses of numbers": (
        fc.GroupLossRegressor,
        lambda kind: kind("minimax").fit(X_NUMBERS, Y_NUMBERS, sensitive_features=GROUPS_NUMBERS),
    ),
    "auc": (fc.AUCFairClassifier, lambda kind: classifier(kind(0.2))),
    "stream": (fc.AUCFairClassifier, streamed),
    "correlation": (fc.CorrelationPenaltyClassifier, lambda kind: classifier(kind(0.1))),
    "pairwise": (fc.PairwiseParityClassifier, lambda kind: classifier(kind(0.5, solver="augmented_lagrangian"))),
    "regularized": (fc.RegularizedParityClassifier, lambda kind: classifier(kind(0.1, max_iter=10))),
    "parity pair": (fc.ParityPairClassifier, lambda kind: classifier(kind(1.1, compute_stationarity=True))),
    "minority": (fc.MinorityRateClassifier, lambda kind: classifier(kind(0.1, minority=0))),
    "classes": (fc.NeymanPearsonClassifier, lambda kind: kind().fit(X, Y)),
    "ranker": (fc.FairRanker, lambda kind: kind(None).fit(DOCUMENTS, RELEVANCE, qid=QUERIES)),
    "chosen": (fc.PartialParityClassifierCV, lambda kind: classifier(kind(kappas=[None, 0.3], cv=2))),
    "chosen auc": (fc.AUCFairClassifierCV, lambda kind: classifier(kind(kappas=[None, 0.3], cv=2))),
    "path": (
        fc.FairnessPathCV,
        lambda kind: classifier(kind(fc.PartialParityClassifier(), kappas=[None, 0.3], cv=2)),
    ),
    "head": (fc.FairHeadClassifier, lambda kind: classifier(kind(LogisticRegression(), cv=2, random_state=0))),
    "head of numbers": (
        fc.FairHeadRegressor,
        lambda kind: kind(LinearRegression(), fc.PartialParityRegressor(0.3), cv=2, use_groups=True).fit(
            X_NUMBERS, Y_NUMBERS, sensitive_features=GROUPS_NUMBERS
        ),
    ),
    "certified": (
        fc.CertifiedFairClassifier,
        lambda kind: classifier(kind(fc.PartialParityClassifier(), kappa=0.9, metric="independence_gap", **FEW)),
    ),
    "thresholds": (
        GroupThresholdClassifier,
        lambda kind: classifier(kind(LogisticRegression(), kappa=0.2, objective="f1", random_state=0)),
    ),
    "shift": (ScoreShiftPostprocessor, lambda kind: classifier(kind(LogisticRegression(), kappa=0.2))),
}


def made(name):
    kind, make = MODELS[name]
    return make(kind)


def by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def by_skops(model):
    io = pytest.importorskip("skops.io")
    # Functions of the user's are trusted by their own name.
    return io.loads(io.dumps(model), trusted=[*fc.skops_trusted_types(), f"{__name__}.linear_module"])


#: Features of models that are not of the classes' rows.
FEATURES = {
    fc.PartialParityRegressor: X_NUMBERS,
    fc.GroupLossRegressor: X_NUMBERS,
    fc.FairBoostingRegressor: X_NUMBERS,
    fc.FairRanker: DOCUMENTS,
}
WITHOUT_GROUPS = (fc.NeymanPearsonClassifier, fc.FairRanker, fc.RateParityClassifier)


def answers(model):
    groups = {} if isinstance(model, WITHOUT_GROUPS) else {"sensitive_features": GROUPS}
    return model.predict(FEATURES.get(type(model), X), **groups)


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning", "ignore::fairconstrained.FairnessWarning")
@pytest.mark.parametrize(("kind", "make"), MODELS.values(), ids=MODELS.keys())
def test_what_is_saved_predicts_the_same(kind, make):
    model = make(kind)
    assert type(model) is kind
    expected = answers(model)
    for save in (by_pickle, copy.deepcopy, by_skops):  # the last one skips the test where there is no skops
        saved = save(model)
        np.testing.assert_array_equal(answers(saved), expected)
        assert set(vars(saved)) == set(vars(model))
        for name, value in vars(model).items():
            if isinstance(value, pd.DataFrame):
                pd.testing.assert_frame_equal(getattr(saved, name), value)


def test_every_public_estimator_is_among_them():
    named = [getattr(fc, name) for name in fc.__all__]
    public = {kind for kind in named if isinstance(kind, type) and hasattr(kind, "fit")}
    assert len(public) >= 15
    assert public <= {kind for kind, _ in MODELS.values()}


def test_the_module_of_a_network_is_made_anew():
    model = made("network")
    saved = by_pickle(model)
    assert saved.module_ is not model.module_
    for name, parameter in model.module_.state_dict().items():
        np.testing.assert_array_equal(saved.module_.state_dict()[name].numpy(), parameter.numpy())


def test_a_shallow_copy_shares_what_it_copies():
    model = made("network")
    assert copy.copy(model).module_ is model.module_


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(
            {"n": [1, 2], "gap": [0.5, np.nan], "name": ["a", None]}, index=pd.Index(["x", "y"], name="group")
        ),
        pd.DataFrame({"n": [1, 2]}, index=pd.Index([("x", 1), ("y", 2)], name="group", tupleize_cols=False)),
        pd.DataFrame({"n": [1, 2]}, index=pd.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["a", None])),
        pd.DataFrame([[1, 2.0]], columns=[("a", 1), 3]),
        pd.DataFrame({"text": pd.Series(["a", "b"], dtype=object), "mixed": [1, "a"]}),
    ],
    ids=["named", "tuples", "levels", "columns", "objects"],
)
def test_tables_come_back_as_they_were(table):
    restored = pickle.loads(pickle.dumps(SavedTable.of(table))).restored()
    pd.testing.assert_frame_equal(restored, table)


def test_functions_of_the_user_are_not_trusted_by_themselves():
    io = pytest.importorskip("skops.io")
    saved = io.dumps(made("module"))
    with pytest.raises(Exception, match="linear_module"):
        io.loads(saved, trusted=fc.skops_trusted_types())


def test_names_that_are_trusted_are_those_of_this_package_and_of_three_libraries():
    names = fc.skops_trusted_types()
    assert names == sorted(set(names))
    others = [name for name in names if not name.startswith("fairconstrained.")]
    assert {name.partition(".")[0] for name in others} <= {partial.__module__, "lightgbm", "scipy"}
    assert len(others) <= 4
