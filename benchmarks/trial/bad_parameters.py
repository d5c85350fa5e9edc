"""Wrong values of constructor arguments, by estimator: `fit` has to name the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fairconstrained.constraints import DemographicParity, MinorityShare, StatisticalParity

__all__ = ["BAD_PARAMETERS"]

_NAN = float("nan")


class TwoInputs(torch.nn.Module):
    """A module of the wrong arity."""

    def forward(self, X: Any, other: Any) -> Any:
        return X + other


def narrow(n_features: int, n_outputs: int) -> torch.nn.Module:
    """A module for another number of features."""
    return torch.nn.Linear(n_features + 1, n_outputs)


def wide(n_features: int, n_outputs: int) -> torch.nn.Module:
    """A module with too many outputs."""
    return torch.nn.Linear(n_features, n_outputs + 1)


_SOLVERS: dict[str, list[Any]] = {
    "solver": ["x", 3, None],
    "solver_options": [3, "tol", {"nope": 1}, {"tol": "a"}, {"max_iter": "a"}, {"max_iter": 2.5}, {"max_iter": -1}],
    "random_state": ["a", -1, 1.5],
}
_ITERATIONS: dict[str, list[Any]] = {"max_iter": [0, -3, 1.5, "a"], "tol": [-1.0, "a", _NAN]}
_MODULES: dict[str, list[Any]] = {
    "module": [3, "linear", TwoInputs(), narrow, wide],
    "hidden_layer_sizes": [("a",), (2.5,), (0,), (-1,), 5, "abc"],
}
_INTERVALS: list[Any] = [
    (0.5, 0.2), (0.0, 2.0), (0.1, 0.1), "abc", (0.0, 0.5, 1.0), [(0.0, 0.5), (0.4, 0.8)], {"a": (0.0, 1.0)}, 0.5, [],
    (-0.1, 0.5), (_NAN, 0.5),
]  # fmt: skip

#: From an estimator's name to its arguments' wrong values. What an error has to name is the argument, or, where it is a
#: dict or a list, whatever of it is wrong.
BAD_PARAMETERS: dict[str, dict[str, list[Any]]] = {
    "PartialParityClassifier": {
        "kappa": [-0.1, 1.5, "a", _NAN, [0.1], np.inf],
        "interval": _INTERVALS,
        "normalize": ["yes", None],
        "ranks": ["x", None],
        "compute_stationarity": ["yes"],
        "threshold": [_NAN, "a", np.inf, None],
        "constraint": [
            "abc",
            None,
            3,
            [("a__b", DemographicParity())],
            [("a", 3)],
            [DemographicParity()],
            [(1, DemographicParity())],
            [("a", DemographicParity()), ("a", StatisticalParity())],
        ],
        "objective": ["mse", None],
        "group_interactions": ["yes"],
        "fit_intercept": [None, "no"],
        "alpha": [-1.0, _NAN, "a"],
        "surrogate": ["x"],
        "surrogate_width": [0, -1.0, "wide"],
        "n_levels": [0, 2.5, "many"],
        "activation": ["x"],
        "warm_start": ["a"],
        "verbose": ["a"],
        **_MODULES,
        **_SOLVERS,
        **_ITERATIONS,
    },
    "PartialParityRegressor": {
        "kappa": [-0.1, "a"],
        "interval": [(0.5, 0.2)],
        "constraint": ["equal_opportunity", [("a", MinorityShare(0.2))], [("a", 3)]],
        "alpha": [-1.0],
        "hidden_layer_sizes": [("a",), (2.5,)],
        "solver": ["x"],
    },
    "RateParityClassifier": {
        "kappa": [-0.1, "a", _NAN, [0.1, 0.2], []],
        "constraint": ["x", ["x"], 3, [("a", 3)], ["demographic_parity", "equalized_odds"]],
        "rate": ["x", None],
        "agg": ["median", "mean"],
        "objective": ["auc"],
        "min_group_size": [-1, 2.5, 10_000],
        "small_groups": ["drop"],
        "module": [TwoInputs(), wide],
        "hidden_layer_sizes": [("a",), (2.5,)],
        "solver_options": [{"nope": 1}, {"tol": "a"}],
        "truncation": [0, -1.0],
    },
    "AUCFairClassifier": {
        "kappa": [-0.1, 0.9, "a"],
        "constraint": ["x", 3, [np.ones(3, dtype=bool)] * 4, lambda positive, groups: None],
        "protected": ["nobody"],
        "objective": ["hinge"],
        "surrogate": ["logistic"],
        "validation_fraction": [0.0, 1.0, -0.5, "a", 1e-9],
        "alpha": [-1.0],
        "hidden_layer_sizes": [("a",)],
        "solver": ["x", "moments"],
    },
    "GroupLossClassifier": {
        "kappa": [-0.1, "a", np.inf, _NAN],
        "constraint": ["x", 3, [("a", 3)]],
        "loss": ["x"],
        "min_group_size": [-1, 10_000],
        "small_groups": ["drop"],
    },
    "LossParityClassifier": {
        "kappa": [-0.1, "a", np.inf, _NAN],
        "constraint": ["x", 3, [("a", 3)]],
        "loss": ["x"],
        "reference": ["x"],
        "hidden_layer_sizes": [("a",), (2.5,), (0,), None],
        "batch_size": [0, 2.5],
        "max_epochs": [0, "a"],
        "max_time": [0, -1.0],
        "learning_rate": [0, -1.0, "a"],
        "callbacks": [[3], 3],
        "device": ["tpu", "cuda:99", 3],
        "min_group_size": [-1, 10_000],
        "small_groups": ["drop"],
        "validation_fraction": [0.0, 1.5],
        "module": [3, TwoInputs(), narrow],
        "solver": ["x", None],
        "activation": ["x"],
    },
    "MinorityRateClassifier": {
        "min_share": [0.0, 1.0, -0.2, 2.0, "a"],
        "minority": ["nobody", [0], 77],
        "rate": ["hinge"],
        "l1_radius": [0, -1.0, "a"],
        "truncation": [0],
        "compute_stationarity": ["yes"],
        "solver": ["idca"],
    },
    "ParityPairClassifier": {
        "kappa": [-0.1, "a", np.nan],
        "beta": [0, -1.0, "a"],
        "radius": [0, -1.0, "a"],
        "truncation": [0],
        "rate": ["hinge"],
        "compute_stationarity": ["yes"],
        "solver": ["idca"],
    },
    "NeymanPearsonClassifier": {
        "bounds": [{"nobody": 0.1}, {0: "a"}, {0: -1.0}, {0: np.inf}, -0.5, 0.1, "a", [0.1]],
        "priority_class": ["nobody"],
        "loss": ["x"],
        "constraint": ["x"],
        "radius": [0, -1.0],
        "truncation": [0],
        "hidden_layer_sizes": [("a",), (2.5,)],
    },
    "FairRanker": {
        "kappa": [-0.1, 1.5, "a"],
        "constraint": ["x", 3, [("a", 3)]],
        "rate": ["x"],
        "batches": ["x"],
        "alpha": [-1.0],
        "module": [3, TwoInputs(), wide],
    },
    "CorrelationPenaltyClassifier": {"weight": [-1.0, "a"], "protected": ["nobody"], "objective": ["x"]},
    "RegularizedParityClassifier": {"weight": [-1.0, "a"], "interval": [(0.5, 0.2)], "constraint": ["x"]},
    "PairwiseParityClassifier": {"kappa": [-1.0, "a"], "constraint": ["x"]},
}
