"""Data sets, intervals, splits and parameters of the paper's section 7 and appendix G, and its published tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks._common import Table, load_a9a, load_acs_income, load_bank_table, load_celeba, load_law_school_table

Interval = tuple[float, float]
#: (fairness, accuracy), the unconstrained model first.
Points = tuple[tuple[float, float], ...]

#: The whole distribution: full statistical parity.
FULL: Interval = (0.0, 1.0)
NOTIONS = ("pSP", "pDP")


@dataclass(frozen=True)
class Case:
    """A data set and what the paper does with it.

    Attributes
    ----------
    load : callable
        Returns the table.
    interval : Interval
        The percentile interval of figure 1.
    shares : pair of floats
        Shares of training and of validation among the rows that are not official test rows; the rest tests.
    kappas : dict from notion to tuple of floats
        Section G.2.1.
    more_kappas : tuple of floats
        Kappas between those for pSP, to read our front at the published fairness.
    baselines : dict from (method, notion) to tuple of floats
        Parameters of the baselines, sections G.3.2 and G.4.2.
    intervals : tuple of Interval
        Intervals of section G.6.
    robust_kappa, robust_weight : float
        Our kappa and the weight of the regularisation in section G.6.
    curves : dict from notion to tuple of floats
        The kappas of figures 3 to 8; figure 2 has those of figures 3 and 4, and for law school 0.2 in place of 0.15.
    published : dict from table to Points
        "partial" and "full" of table 3, "20 levels" of table 4; for ACS income table 2, by method.
    """

    load: Callable[[], Table]
    interval: Interval
    shares: tuple[float, float]
    kappas: dict[str, tuple[float, ...]]
    more_kappas: tuple[float, ...] = ()
    baselines: dict[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    intervals: tuple[Interval, ...] = ()
    robust_kappa: float = 0.05
    robust_weight: float = 0.4
    curves: dict[str, tuple[float, ...]] = field(default_factory=dict)
    published: dict[str, Points] = field(default_factory=dict)

    @property
    def fixed_test(self) -> bool:
        """Whether the test part is the official one, the same for every seed."""
        return sum(self.shares) == 1


A9A = Case(
    load_a9a,
    (0.05, 0.3),
    (0.9, 0.1),
    {"pSP": (0.28, 0.2, 0.1, 0.05, 0.01), "pDP": (0.15, 0.1, 0.05, 0.03, 0.005)},
    (0.36, 0.3, 0.24, 0.21, 0.15, 0.125, 0.08, 0.0675, 0.03, 0.02),
    {
        ("group_auc", "pSP"): (0.7, 1.0, 2.0, 3.5),
        ("group_auc", "pDP"): (0.3, 0.4, 0.5, 0.7, 1.0),
        ("inter_group", "pSP"): (1.5, 3.0, 3.5, 6.0),
        ("inter_group", "pDP"): (0.9, 1.2, 1.5, 2.0, 2.7),
        ("intra_group", "pSP"): (3.0, 5.0, 8.0),
        ("intra_group", "pDP"): (0.7, 1.0, 1.3, 1.7, 2.2),
        ("regularised", "pSP"): (0.2, 0.3, 0.37, 1.0),
        ("regularised", "pDP"): (0.13, 0.17, 0.2, 0.23, 1.0),
    },
    ((0.05, 0.1), (0.05, 0.3), (0.05, 0.5), (0.05, 0.7), (0.05, 0.9)),
    0.05,
    0.37,
    {"pSP": (0.1, 0.05, 0.01), "pDP": (0.15, 0.05, 0.005)},
    {
        "partial": (
            (0.5970, 0.8499),
            (0.7017, 0.8492),
            (0.7841, 0.8479),
            (0.8732, 0.8445),
            (0.9310, 0.8393),
            (0.9752, 0.8311),
        ),
        "full": (
            (0.5970, 0.8499),
            (0.6937, 0.8501),
            (0.7799, 0.8485),
            (0.8873, 0.8440),
            (0.9326, 0.8384),
            (0.9742, 0.8322),
        ),
        "20 levels": (
            (0.5970, 0.8499),
            (0.6964, 0.8491),
            (0.7819, 0.8481),
            (0.8751, 0.8446),
            (0.9328, 0.8387),
            (0.9703, 0.8325),
        ),
    },
)
LAW_SCHOOL = Case(
    load_law_school_table,
    (0.7, 1.0),
    (0.5625, 0.1875),
    {"pSP": (0.2, 0.15, 0.1, 0.08, 0.005), "pDP": (0.15, 0.1, 0.06, 0.04, 0.005)},
    (0.4, 0.38, 0.36, 0.28, 0.24, 0.13, 0.05, 0.03, 0.02),
    {
        ("group_auc", "pSP"): (0.5, 0.75, 1.15, 1.8, 2.7),
        ("group_auc", "pDP"): (1.0, 3.0, 4.0, 5.0, 6.0, 10.0),
        ("inter_group", "pSP"): (0.4, 1.6, 2.4, 4.0),
        ("inter_group", "pDP"): (2.0, 6.5, 8.0, 9.0, 10.0, 15.0),
        ("intra_group", "pSP"): (3.0, 5.0, 10.0),
        ("intra_group", "pDP"): (0.1, 0.8, 2.0, 3.5, 10.0),
        ("regularised", "pSP"): (0.39, 0.4, 0.5, 0.8, 1.5),
        ("regularised", "pDP"): (0.001, 0.01, 1.0),
    },
    ((0.1, 1.0), (0.3, 1.0), (0.5, 1.0), (0.7, 1.0), (0.9, 1.0)),
    0.005,
    0.8,
    {"pSP": (0.15, 0.1, 0.005), "pDP": (0.1, 0.04, 0.005)},
    {
        "partial": (
            (0.5397, 0.9004),
            (0.6038, 0.8996),
            (0.6956, 0.8937),
            (0.7825, 0.8913),
            (0.8479, 0.8927),
            (0.9563, 0.8909),
        ),
        "full": (
            (0.5397, 0.9004),
            (0.5833, 0.8975),
            (0.6976, 0.8903),
            (0.7855, 0.8892),
            (0.8736, 0.8896),
            (0.9615, 0.8881),
        ),
        "20 levels": (
            (0.5397, 0.9004),
            (0.6360, 0.8980),
            (0.7165, 0.8929),
            (0.7841, 0.8922),
            (0.8683, 0.8932),
            (0.9625, 0.8910),
        ),
    },
)
BANK = Case(
    load_bank_table,
    (0.0, 0.25),
    (0.6, 0.2),
    {"pSP": (0.3, 0.22, 0.08, 0.01), "pDP": (0.1, 0.07, 0.05, 0.03, 0.01)},
    (0.5, 0.4, 0.35, 0.26, 0.18, 0.14, 0.1, 0.06, 0.04, 0.02),
    {
        ("group_auc", "pSP"): (0.1, 0.3, 0.56, 0.7, 1.0),
        ("group_auc", "pDP"): (0.06, 0.5, 2.35, 2.62, 3.28, 4.0),
        ("inter_group", "pSP"): (1.5, 1.8, 2.0, 3.0),
        ("inter_group", "pDP"): (0.3, 1.0, 5.0, 5.4, 6.0),
        ("intra_group", "pSP"): (2.0, 3.0, 4.0),
        ("intra_group", "pDP"): (0.1, 0.3, 0.42, 0.5, 1.0, 2.5),
        ("regularised", "pSP"): (0.4, 0.405, 0.41, 1.0, 1.5),
        ("regularised", "pDP"): (0.005, 0.015, 0.018, 0.1, 2.0),
    },
    ((0.0, 0.05), (0.0, 0.25), (0.0, 0.45), (0.0, 0.65), (0.0, 0.85)),
    0.01,
    0.3,
    {"pSP": (0.3, 0.08, 0.01), "pDP": (0.1, 0.05, 0.01)},
    {
        "partial": ((0.4366, 0.9015), (0.6582, 0.9027), (0.7376, 0.9028), (0.8954, 0.9025), (0.9634, 0.8983)),
        "full": ((0.4366, 0.9015), (0.6451, 0.8957), (0.7999, 0.8954), (0.8456, 0.8959), (0.9356, 0.8941)),
        "20 levels": ((0.4366, 0.9015), (0.6620, 0.9026), (0.7211, 0.9030), (0.8683, 0.9025), (0.9483, 0.8985)),
    },
)
#: The three data sets of every experiment of sections 7, G.5 to G.7, G.10 and G.11.
CASES = {"a9a": A9A, "bank": BANK, "law_school": LAW_SCHOOL}
#: Section G.9 on the attribute table, and section G.8 on a sample of 765,670 of the 1,664,500 rows. The paper gives no
#: kappas for these two.
LARGE_CASES = {
    "celeba": Case(load_celeba, (0.2, 0.4), (0.6, 0.2), {"pSP": (0.3, 0.2, 0.1, 0.05, 0.02)}),
    "acs_income": Case(
        load_acs_income,
        (0.2, 0.4),
        (0.6, 0.2),
        {"pSP": (0.15, 0.1, 0.07, 0.03)},
        published={
            "partial": ((0.7748, 0.7986), (0.8660, 0.8100), (0.9090, 0.8068), (0.9357, 0.8043), (0.9669, 0.8001)),
            "group_auc": ((0.7748, 0.7986), (0.8078, 0.7931), (0.8414, 0.7927), (0.9188, 0.7866), (0.9362, 0.6667)),
            "inter_group": ((0.7748, 0.7986), (0.8163, 0.7931), (0.8410, 0.7922), (0.8821, 0.7466), (0.8685, 0.6322)),
            "intra_group": ((0.7748, 0.7986), (0.7398, 0.7920), (0.7026, 0.7902), (0.6624, 0.7848), (0.5772, 0.7648)),
        },
    ),
}
ALL_CASES = {**CASES, **LARGE_CASES}


def split(case: Case, table: Table, seed: int, rows: int | None = None) -> dict[str, np.ndarray]:
    """Row numbers of the parts "train", "val" and "test", at most ``rows`` of each (section G.1)."""
    rng = np.random.default_rng(seed)
    pool = np.arange(table.y.size) if table.is_train is None else np.flatnonzero(table.is_train)
    train, validation, rest = np.split(rng.permutation(pool), np.rint(np.cumsum(case.shares) * pool.size).astype(int))
    test = rest if table.is_train is None else np.flatnonzero(~table.is_train)
    return {"train": train[:rows], "val": validation[:rows], "test": test[:rows]}


def standardised(X: Any, train: np.ndarray) -> Any:
    """Dense features in deviations of the training part; sparse ones, which are binary, as they are."""
    if sp.issparse(X):
        return X
    deviations = X[train].std(axis=0)
    return (X - X[train].mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
