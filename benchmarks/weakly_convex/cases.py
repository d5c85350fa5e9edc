"""The problems: a loss on labelled rows D, a minority's share on rows S, and the paper's share for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from benchmarks._common import data_folder, load_a9a
from fairconstrained.constraints import MinorityShare
from fairconstrained.data import FairData
from fairconstrained.domains import L1Ball
from fairconstrained.groups import GroupEncoder
from fairconstrained.models import LinearModel
from fairconstrained.objectives import GroupLoss, TruncatedLogistic
from fairconstrained.problem import Problem, Start

__all__ = ["CASES", "Case", "Rows"]


@dataclass(frozen=True)
class Rows:
    """Features with labels (-1 or 1) of D, and features with groups of S."""

    X: Any
    y: np.ndarray
    X_constraint: Any
    groups: np.ndarray


def _halves(features: Any, y: np.ndarray, groups: np.ndarray) -> Rows:
    """D and S at random and of one size, as in the paper."""
    order = np.random.default_rng(0).permutation(y.size)
    first, second = np.array_split(order, 2)
    return Rows(features[first], y[first], features[second], groups[second])


def _columns(frame: pd.DataFrame) -> np.ndarray:
    """Categories one-hot, numbers standardised."""
    numbers = frame.select_dtypes("number")
    dummies = pd.get_dummies(frame.drop(columns=numbers.columns), dtype=float)
    return np.hstack([StandardScaler().fit_transform(numbers), dummies.to_numpy()])


def _bank() -> Rows:
    frame = pd.read_parquet(data_folder() / "bank_additional_full.parquet")
    y = np.where(frame["y"] == "yes", 1, -1)
    return _halves(_columns(frame.drop(columns="y")), y, frame["marital"].to_numpy(dtype=str))


def _credit() -> Rows:
    frame = pd.read_parquet(data_folder() / "credit_risk_home_ownership.parquet")
    y = np.where(frame["loan_status"] == 1, 1, -1)
    return _halves(_columns(frame.drop(columns="loan_status")), y, frame["person_home_ownership"].to_numpy(dtype=str))


def _a9a() -> Rows:
    table = load_a9a()
    train = table.is_train
    X = sp.csr_array(table.X)
    return Rows(X[train], table.y[train], X[~train], table.groups[~train])


_ROWS = {"bank": _bank, "a9a": _a9a, "credit": _credit}


@dataclass(frozen=True)
class Case:
    """A data set, its minority and the least share c of the positive rates on S that goes to it."""

    data: str
    minority: str
    min_share: float

    def rows(self) -> Rows:
        """D and S."""
        return _ROWS[self.data]()

    def problem(self) -> Problem:
        """The paper's: truncation 2, sigmoid rates, l1 norm of at most 20, no intercept."""
        rows = self.rows()
        groups = GroupEncoder(rows.groups)
        n_labelled, n_others = rows.y.size, rows.groups.size
        stack = sp.vstack if sp.issparse(rows.X) else np.vstack
        X = stack([rows.X, rows.X_constraint])
        data = FairData.from_arrays(
            X=sp.csr_array(X) if sp.issparse(X) else X,
            y=np.concatenate([rows.y, np.full(n_others, -1.0)]),
            codes=np.concatenate([np.zeros(n_labelled, dtype=int), 1 + groups.codes]),
            labels=(_LABELLED, *groups.labels),
            sample_weight=np.repeat([1 / n_labelled, 1 / n_others], [n_labelled, n_others]),
        )
        factors = (2.0, *np.zeros(len(groups.labels)).tolist())  # D has half the weight
        share = MinorityShare(self.min_share, minority=self.minority, ignored_groups=(_LABELLED,))
        return Problem(
            model=LinearModel(data.n_features, fit_intercept=False),
            objective=GroupLoss(TruncatedLogistic(2.0), factors).bind(data),
            constraints=(share.bind(data),),
            data=data,
            domain=L1Ball(20.0),
        )

    @staticmethod
    def start(problem: Problem) -> Start:
        """All ones, projected."""
        return Start(problem.project(np.ones(problem.n_params)))


#: Rows that only the objective sees.
_LABELLED = "labelled"
#: The paper's shares, then larger ones for the two data sets where these hold without being asked for.
CASES = [
    Case("bank", "single", 0.2),
    Case("a9a", "female", 0.08),
    Case("credit", "MORTGAGE", 0.4),
    Case("bank", "single", 0.5),
    Case("a9a", "female", 0.3),
]
