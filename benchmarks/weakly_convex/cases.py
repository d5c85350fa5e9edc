"""The problems: a loss on labelled rows D, a minority's share on rows S, and the paper's share for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from benchmarks._common import data_folder, load_a9a, load_law_school_table
from benchmarks.weakly_convex.simple_example import SimpleExample
from fairconstrained.constraints import MinorityShare
from fairconstrained.domains import L1Ball
from fairconstrained.estimators.minority_rate import LABELLED, joined_rows, labelled_loss
from fairconstrained.groups import Groups
from fairconstrained.models import LinearModel
from fairconstrained.objectives import TruncatedLogistic
from fairconstrained.problem import Problem, Start

__all__ = ["CASES", "TUNING", "Case", "Rows"]

#: Rows of the problem for tuning, which need not be large.
_FEW_ROWS = 1000


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


def _law_school() -> Rows:
    table = load_law_school_table()
    rows = np.random.default_rng(1).permutation(table.y.size)[:_FEW_ROWS]
    X = np.hstack([StandardScaler().fit_transform(table.X[rows]), np.ones((rows.size, 1))])
    return _halves(X, table.y[rows], table.groups[rows])


_ROWS = {"bank": _bank, "a9a": _a9a, "credit": _credit, "law school": _law_school}


@dataclass(frozen=True)
class Case:
    """A data set, its minority and the least share c of the positive rates on S that goes to it."""

    data: str
    minority: str
    min_share: float
    #: Proximal parameter of the near-stationarity of the ends, the same for all methods.
    proximity: float = 1.0

    @property
    def name(self) -> str:
        """The data and the share."""
        return f"{self.data}, c = {self.min_share:g}"

    def options(self, published: dict[str, Any]) -> dict[str, Any]:
        """Options of a method for this problem: those for all problems."""
        return published

    def rows(self) -> Rows:
        """D and S."""
        return _ROWS[self.data]()

    def problem(self) -> Problem:
        """The paper's: truncation 2, sigmoid rates, l1 norm of at most 20, no intercept."""
        rows = self.rows()
        data = joined_rows(rows.X, rows.y, np.ones(rows.y.size), rows.X_constraint, Groups.of(rows.groups))
        share = MinorityShare(self.min_share, minority=self.minority, ignored_groups=(LABELLED,))
        return Problem(
            model=LinearModel(data.n_features, fit_intercept=False),
            objective=labelled_loss(TruncatedLogistic(2.0), data).bind(data),
            constraints=(share.bind(data),),
            data=data,
            domain=L1Ball(20.0),
        )

    @staticmethod
    def start(problem: Problem) -> Start:
        """All ones, projected."""
        return Start(problem.project(np.ones(problem.n_params)))


#: Nobody is shown it: the options of all methods are chosen on it.
TUNING = Case("law school", "Non-White", 0.16)
#: The paper's example and shares, then larger shares for the two data sets where the paper's hold without being asked
#: for.
CASES: list[Case | SimpleExample] = [
    SimpleExample(),
    Case("bank", "single", 0.2),
    Case("a9a", "female", 0.08),
    Case("credit", "MORTGAGE", 0.4),
    Case("bank", "single", 0.5),
    Case("a9a", "female", 0.3),
]
