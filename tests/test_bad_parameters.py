"""Every public estimator refuses a bad parameter by its name and with the value, and stays as it was."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc
from fairconstrained.constraints import StatisticalParity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.postprocessing import GroupThresholdClassifier, ScoreShiftPostprocessor

NAN, INF = np.nan, np.inf
X, Y, GROUPS = make_biased_classification(300, 3, random_state=0)
QUERIES = np.repeat(np.arange(30), 10)


class Nothing:
    """An object that no parameter may be."""

    def __repr__(self) -> str:
        return "<nothing>"


NOTHING = Nothing()

# --- estimators

FLAG = ["yes", None]
POSITIVE = [0, NAN, INF, "wide"]
NON_NEGATIVE = [-1.0, NAN, INF, "small"]
NUMBER = [NAN, INF, "a", None]
COUNT = [0, 2.5, NAN, INF, "many"]
NAME = ["other", 3, ["a"]]
FRACTION = [0, 1, NAN, "x"]
INTERVAL = [
    "top",
    None,
    3,
    NOTHING,
    (NAN, 0.5),
    (0, INF),
    (False, True),
    ("a", "b"),
    ("0", "1"),
    [],
    (0.5,),
    (0.5, 0.2),
    [(0, 0.5), (0.4, 1)],
    [[[0, 1]]],
    {"a": (0, 1)},
    {0: (0, 1)},
]
#: Bad values of what many estimators have.
SHARED: dict[str, list[Any]] = {
    "kappa": [-1.0, NAN, INF, "small", True, NOTHING],
    "alpha": NON_NEGATIVE,
    "truncation": POSITIVE,
    "threshold": NUMBER,
    "objective": NAME,
    "auc_loss": NAME,
    "auc_interval": ["top", 3, (NAN, 0.5), (0, INF), (0.5, 0.2), ("a", "b"), (False, True), (0, 0.5, 1)],
    "interval": INTERVAL,
    "constraint": NAME,
    "normalize": FLAG,
    "ranks": NAME,
    "group_interactions": FLAG,
    "fit_intercept": FLAG,
    "surrogate": NAME,
    "surrogate_width": POSITIVE,
    "n_levels": COUNT,
    "solver": ["other", 3, None, ["auto"]],
    "solver_options": ["fast", 3, [("inner_iter", 3)]],
    "max_iter": COUNT,
    "tol": [*NON_NEGATIVE, None],
    "random_state": ["seed", -1, 1.5],
    "verbose": ["yes", -1],
    "warm_start": FLAG,
    "module": [3, "mlp", torch.nn.Linear(2, 1), torch.nn.Linear(3, 4), torch.nn.LSTM(3, 1)],
    "hidden_layer_sizes": [("a",), (2.5,), (0,), (-3,), (NAN,), (True,), (None,), "wide", "8", 5, [[3, 4]], {"a": 1}],
    "activation": NAME,
    "min_group_size": [-1, *COUNT[1:]],
    "small_groups": NAME,
    "compute_stationarity": FLAG,
    "weight": NON_NEGATIVE,
    "protected": ["other", [0], NAN, NOTHING],
    "rate": NAME,
}


def same_module(n_features: int) -> torch.nn.Module:
    """Too few arguments for a factory."""
    return torch.nn.Linear(n_features, 1)


class TwoInputs(torch.nn.Linear):
    """A module whose forward takes an argument too many."""

    def __init__(self) -> None:
        super().__init__(3, 1)

    def forward(self, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        return super().forward(rows) + others


class AsNumpy(torch.nn.Linear):
    """A module that returns no tensor."""

    def __init__(self) -> None:
        super().__init__(3, 1)

    def forward(self, rows: torch.Tensor) -> Any:
        return super().forward(rows).detach().numpy()


def three_arguments(n_features, n_outputs, width):
    return torch.nn.Linear(n_features, n_outputs)


SHARED["module"] += [same_module, three_arguments, TwoInputs(), AsNumpy(), lambda n_features, n_outputs: 3]
CONSTRAINTS = [
    "top",
    3,
    [("top", StatisticalParity)],
    [("top", 3)],
    [StatisticalParity()],
    {"top": StatisticalParity()},
    [("top", StatisticalParity()), ("top", StatisticalParity())],
    [("a__b", StatisticalParity())],
    [(3, StatisticalParity())],
]
KAPPAS = ["x", ["a"], [], [NAN], [-1.0], [0.1, 0.1], [[0.1]], 3, [True], NOTHING]
CHOICE: dict[str, list[Any]] = {
    "bound": [*NON_NEGATIVE, None],
    "kappas": KAPPAS,
    "n_kappas": COUNT,
    "cv": ["x", 1, 2.5, 1000, [], iter([])],
    "scoring": ["other", 3, [], {}, ["other"], {"a": 3}],
    "one_standard_error": FLAG,
    "param": ["other", 3],
    "n_jobs": ["x", 0],
}
NO_ESTIMATORS = [3, fc.RateParityClassifier, None]
RATE_KAPPAS = [["a"], [True], [NAN], [INF], [-1.0], [0.1, 0.2], [], [[0.1]], [1.5], 1.5]
MASKS = [np.ones(300, bool)] * 4
BAD_MASKS = [
    MASKS[:3],
    [mask[:9] for mask in MASKS],
    lambda positive, groups: 3,
    lambda positive, groups: None,
    lambda positive, groups: [positive, positive, positive, groups],
    lambda positive: MASKS,
]
#: Bad values of parameters of trees.
TREES: dict[str, list[Any]] = {
    "n_estimators": COUNT,
    "learning_rate": POSITIVE,
    "num_leaves": [1, *COUNT],
    "lgbm_params": ["fast", 3, {"objective": "binary"}, {"boosting": "dart"}, {"linear_tree": True}],
    "categorical_features": ["other", 3, [9], ["a"], [True], [2.5]],
    "monotonic_cst": ["up", 3, [1], [2, 0, 0], {"a": 1}],
    "cv": [1, *COUNT],
    "early_stopping_rounds": COUNT,
    "callbacks": ["x", 3, [3], [None], print],
    "n_jobs": ["x", 0],
}
#: Estimators that are tried with all that is bad for any of their parameters.
ESTIMATORS: list[tuple[Any, dict[str, list[Any]]]] = [
    (fc.PartialParityClassifier, {"constraint": CONSTRAINTS}),
    (fc.PartialParityRegressor, {"constraint": CONSTRAINTS[:4]}),
    (
        fc.RateParityClassifier,
        {
            "constraint": CONSTRAINTS,
            "kappa": RATE_KAPPAS,
            "agg": NAME,
        },
    ),
    (
        fc.LossParityClassifier,
        {
            "constraint": CONSTRAINTS,
            "loss": NAME,
            "reference": NAME,
            "batch_size": COUNT,
            "max_epochs": COUNT,
            "max_time": POSITIVE,
            "learning_rate": POSITIVE,
            "early_stopping": FLAG,
            "validation_fraction": FRACTION,
            "device": ["other", 3, None],
            "callbacks": ["x", 3, [3], [None], {"a": print}, print],
        },
    ),
    (fc.GroupLossClassifier, {"constraint": CONSTRAINTS, "kappa": [*NON_NEGATIVE, True], "loss": NAME}),
    (fc.GroupLossRegressor, {"constraint": CONSTRAINTS[:4], "kappa": [*NON_NEGATIVE, True], "loss": NAME}),
    (fc.FairRanker, {"constraint": CONSTRAINTS, "batches": NAME}),
    (fc.FairBoostingClassifier, {"constraint": CONSTRAINTS} | TREES),
    (fc.FairBoostingRegressor, {"constraint": CONSTRAINTS} | TREES),
    (
        fc.AUCFairClassifier,
        {
            "constraint": ["other", 3, None, [1, 2], [[True], [False]], NOTHING, *BAD_MASKS],
            "validation_fraction": [*FRACTION, 1e-9, 0.9999999],
        },
    ),
    (fc.CorrelationPenaltyClassifier, {}),
    (fc.PairwiseParityClassifier, {"constraint": NAME}),
    (fc.RegularizedParityClassifier, {}),
    (
        fc.NeymanPearsonClassifier,
        {
            "bounds": [*NON_NEGATIVE, 0.1, [0.1], {0: "a"}, {0: NAN}, {0: True}, {0: -1}, {9: 0.1}, True],
            "priority_class": [9, [0], NAN, NOTHING],
            "loss": NAME,
            "constraint": NAME,
            "radius": POSITIVE,
        },
    ),
    (fc.ParityPairClassifier, {"beta": POSITIVE, "radius": POSITIVE, "truncation": POSITIVE}),
    (
        fc.MinorityRateClassifier,
        {"min_share": [*FRACTION, True], "minority": [[0], 9, NAN, {}, NOTHING], "l1_radius": POSITIVE},
    ),
    (partial(fc.FairnessPathCV, estimator=fc.RateParityClassifier()), {**CHOICE, "estimator": NO_ESTIMATORS}),
    (fc.PartialParityClassifierCV, CHOICE),
    (fc.AUCFairClassifierCV, {name: CHOICE[name] for name in ("bound", "kappas", "cv")}),
    (
        partial(fc.CertifiedFairClassifier, estimator=fc.RateParityClassifier(), kappa=0.3, metric="independence_gap"),
        {
            "kappa": [*NON_NEGATIVE, None, True],
            "metric": ["other", 3, None],
            "metric_params": ["x", [1], {"other": 1}, {"sample_weight": 1}],
            "delta": FRACTION,
            "calibration_fraction": [*FRACTION, 0.9999999],
            "max_tests": COUNT,
            "kappas": [kappas for kappas in KAPPAS if kappas != [0.1, 0.1]],
            "power": [0.3, 1, NAN, "x"],
            "cv": ["x", 1, 2.5, [], iter([])],
            "method": NAME,
            "loss_bound": ["x", NAN, INF, -1.0, (1, 0), (0, 1, 2), ("a", "b")],
            "n_resamples": COUNT,
            "estimator": NO_ESTIMATORS,
        },
    ),
    (
        partial(GroupThresholdClassifier, estimator=LogisticRegression()),
        {
            "constraint": [*NAME, None, "statistical_parity", [1], [("a", 1)]],
            "objective": [*NAME, None, "logistic"],
            "cv": ["x", 1, 2.5, [], iter([])],
            "estimator": NO_ESTIMATORS,
        },
    ),
    (
        partial(ScoreShiftPostprocessor, estimator=LogisticRegression()),
        {
            "constraint": [*NAME, None, "intra_group"],
            "slopes": ["x", ["a"], [], [NAN], [-1.0], 3, [True], NOTHING],
            "shifts": ["x", ["a"], [], [NAN], 3, NOTHING],
            "estimator": NO_ESTIMATORS,
        },
    ),
]


#: What is bad only together with other parameters.
TOGETHER: list[tuple[Any, dict[str, list[Any]]]] = [
    (partial(fc.PartialParityClassifier, kappa=None), {"interval": INTERVAL}),
    (partial(fc.PartialParityClassifier, objective="auc"), {"auc_interval": SHARED["auc_interval"]}),
    (partial(fc.LossParityClassifier, early_stopping=True), {"validation_fraction": [1e-9, 0.9999999]}),
    (partial(fc.NeymanPearsonClassifier, priority_class=1), {"bounds": [*NON_NEGATIVE, True, {1: 0.1}]}),
]


def cases() -> list[Any]:
    """Every estimator with every bad value of every parameter."""
    found = []
    for make, own in [*ESTIMATORS, *TOGETHER]:
        kind = make.func if isinstance(make, partial) else make
        table = own
        if (make, own) in ESTIMATORS:
            shared = {name: SHARED[name] for name in kind._get_param_names() if name in SHARED}
            table = {name: shared.get(name, []) + own.get(name, []) for name in shared | own}
        for name, values in table.items():
            for i, value in enumerate(values):
                found.append(pytest.param(make, name, value, id=f"{kind.__name__}-{name}-{i}"))
    return found


@pytest.mark.parametrize(("make", "parameter", "value"), cases())
def test_parameters(make, parameter, value):
    model = make(**{parameter: value})
    before = dict(vars(model))
    rows = {} if isinstance(model, fc.NeymanPearsonClassifier) else {"sensitive_features": GROUPS}
    if isinstance(model, fc.FairRanker):
        rows["qid"] = QUERIES
    with pytest.raises((ValueError, TypeError)) as raised:
        model.fit(X, Y, **rows)
    message = str(raised.value)
    assert re.search(rf"\b{parameter}\b", message), message
    if isinstance(value, (str, int, float, tuple)):
        assert repr(value) in message
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is known for name, known in before.items())
