"""The problems: data sets and constraints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._common import Table, load_a9a, load_bank_table, load_compas_table, load_law_school_table
from fairconstrained.constraints import RateGap
from fairconstrained.data import FairData
from fairconstrained.datasets import make_acs_like
from fairconstrained.groups import GroupEncoder
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem

__all__ = ["CASES", "KAPPA", "TUNING_CASES", "Case"]

KAPPA = 0.02
#: Rows of a problem on which parameters are chosen.
_TUNING_ROWS = 3000


@cache
def _law_school() -> Table:
    """Law school admissions, rows drawn at random, standardised; groups: white or other."""
    table = load_law_school_table()
    rows = np.random.default_rng(0).permutation(len(table.y))[:_TUNING_ROWS]
    groups = np.where(table.groups == "White", "white", "other")
    return Table("law_school", table.X[rows], table.y[rows], groups[rows])


@cache
def _acs_like() -> Table:
    """Generated rows like those of ACSIncome: sparse and binary as Adult is, numbers standardised; groups: sex."""
    bunch = make_acs_like(_TUNING_ROWS, "SEX", random_state=0)
    numbers = ["AGEP", "WKHP"]
    parts = [
        sp.csr_array(StandardScaler().fit_transform(bunch.data[numbers])),
        OneHotEncoder(min_frequency=20).fit_transform(bunch.data.drop(columns=numbers)),
    ]
    X = sp.csr_array(sp.hstack(parts, format="csr"))
    everything = np.ones(_TUNING_ROWS, dtype=bool)
    groups = np.where(bunch.sensitive_features == 1, "male", "female")
    return Table("acs_like", X, np.where(bunch.target == 1, 1, -1), groups, everything)


_TABLES = {
    "compas": load_compas_table,
    "adult": load_a9a,
    "bank": load_bank_table,
    "law_school": _law_school,
    "acs_like": _acs_like,
}
_CONSTRAINTS = ("demographic_parity", "equalized_odds")


@dataclass(frozen=True)
class Case:
    """A data set and a constraint: mean logistic loss of linear scores, sigmoid rates at most `KAPPA` apart."""

    data: str
    constraint: str

    def problem(self) -> Problem:
        """On the training part of Adult and on all rows of the others; without a penalty.

        Features that are not binary are standardised.
        """
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
    if table.is_train is not None:  # binary features, sparse
        return table.X[table.is_train], table.y[table.is_train], table.groups[table.is_train]
    return StandardScaler().fit_transform(table.X), table.y, table.groups


#: What is shown.
CASES = [Case(data, constraint) for data in ("compas", "adult", "bank") for constraint in _CONSTRAINTS]
#: Where the parameters of all methods are chosen.
TUNING_CASES = [Case(data, constraint) for data in ("law_school", "acs_like") for constraint in _CONSTRAINTS]
