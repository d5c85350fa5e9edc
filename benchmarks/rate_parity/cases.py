"""The problems: data sets and constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks._common import Table, load_a9a, load_bank_table, load_compas_table
from fairconstrained.constraints import RateGap
from fairconstrained.data import FairData
from fairconstrained.groups import GroupEncoder
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem

__all__ = ["CASES", "KAPPA", "Case"]

KAPPA = 0.02
_TABLES = {"adult": load_a9a, "bank": load_bank_table, "compas": load_compas_table}
_CONSTRAINTS = ("demographic_parity", "equalized_odds")


@dataclass(frozen=True)
class Case:
    """A data set and a constraint: mean logistic loss of linear scores, sigmoid rates at most `KAPPA` apart."""

    data: str
    constraint: str

    def problem(self) -> Problem:
        """On the training part of Adult, and on all rows of the others, standardised; without a penalty."""
        table = _TABLES[self.data]()
        X, y, groups = _training_part(table)
        encoder = GroupEncoder(groups)
        data = FairData.from_arrays(X, y.astype(float), encoder.codes, encoder.labels)
        return Problem(
            model=LinearModel(data.n_features),
            objective=Logistic().bind(data),
            constraints=(RateGap(KAPPA, constraint=self.constraint, rate="sigmoid").bind(data),),
            data=data,
        )


def _training_part(table: Table) -> tuple[object, np.ndarray, np.ndarray]:
    if table.is_train is not None:  # binary features
        return table.X[table.is_train], table.y[table.is_train], table.groups[table.is_train]
    return StandardScaler().fit_transform(table.X), table.y, table.groups


CASES = [Case(data, constraint) for data in _TABLES for constraint in _CONSTRAINTS]
