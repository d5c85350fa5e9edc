"""Law school: the LSAC National Longitudinal Bar Passage Study, bundled with the package."""

from __future__ import annotations

import gzip
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.datasets._bunch import (
    RETURNS_BUNCH,
    binary_target,
    build_bunch,
    categorical,
    require_columns,
)

__all__ = ["load_law_school"]

_FEATURES = [
    "decile1b",
    "decile3",
    "lsat",
    "ugpa",
    "zfygpa",
    "zgpa",
    "fulltime",
    "fam_inc",
    "male",
    "tier",
]

DESCR = """\
Law school data (LSAC National Longitudinal Bar Passage Study)
--------------------------------------------------------------

Students who entered US law schools in autumn 1991: does a student pass the bar examination at the first
attempt?

:Number of rows: 20798, without missing values
:Number of features: 10, all numeric
:Label: pass_bar, 1 = passed (18505 rows, 88.97 %), 0 = failed
:Sensitive feature: race, "White" (17491 rows, 92.13 % passed) or "Non-White" (3307 rows, 72.30 % passed)

========  ==========================================================================  ===============
Column    Meaning                                                                     Values
========  ==========================================================================  ===============
decile1b  decile of the first-year law school grades within the school                1 (lowest) .. 10
decile3   decile of the third-year law school grades within the school                1 (lowest) .. 10
lsat      LSAT score, on the scale in use in 1991 (points)                            11 .. 48
ugpa      undergraduate grade point average (grade points)                            1.5 .. 4.0
zfygpa    first-year law school grade point average (standard deviations)             -3.35 .. 3.48
zgpa      cumulative law school grade point average (standard deviations)             -6.44 .. 4.01
fulltime  attendance: 1 = full-time, 2 = part-time                                    1, 2
fam_inc   family income bracket, rising                                               1 .. 5
male      sex: 1 = male, 0 = female                                                   0, 1
tier      tier of the law school, rising with the mean LSAT of its students           1 .. 6
========  ==========================================================================  ===============

The ranges are those of this table. Grades, deciles and tier are themselves known only after admission, so
the data suit the prediction of bar passage, not of admission.

References: L. F. Wightman, "LSAC National Longitudinal Bar Passage Study", LSAC Research Report Series, Law
School Admission Council, 1998. T. Le Quy, A. Roy, V. Iosifidis, W. Zhang, E. Ntoutsi, "A survey on datasets
for fairness-aware machine learning", WIREs Data Mining and Knowledge Discovery 12(3), e1452, 2022.
The bundled file comes from the Python package virny 0.6.0 (BSD-3-Clause); its notice lies beside it.
"""


@documented_by(RETURNS_BUNCH)
def load_law_school(*, return_X_y: bool = False, as_frame: bool = False, include_sensitive: bool = False) -> Any:
    """Load the law school data: first-attempt bar passage, with race as the sensitive feature.

    Bundled with the package; needs no network. 20,798 rows and ten numeric features, described with their
    units and ranges in ``DESCR``. 92.13 % of the White and 72.30 % of the Non-White students passed.

    Parameters
    ----------
    include_sensitive : bool, default=False
        Append ``race`` to ``data``: a categorical column, or its code (0 Non-White, 1 White) in an array.

    Returns
    -------
    bunch : Bunch
        Data and their description, with the attributes

        data : ndarray or DataFrame of shape (20798, 10)
            See ``DESCR`` for units and ranges.
        target : ndarray or Series of shape (20798,)
            1 if the student passed the bar examination at the first attempt, else 0.

    References
    ----------
    .. [1] L. F. Wightman, "LSAC National Longitudinal Bar Passage Study", LSAC Research Report Series, Law
       School Admission Council, 1998.
    .. [2] T. Le Quy, A. Roy, V. Iosifidis, W. Zhang, E. Ntoutsi, "A survey on datasets for fairness-aware
       machine learning", WIREs Data Mining and Knowledge Discovery 12(3), e1452, 2022, section on the law
       school dataset.

    Examples
    --------
    >>> from fairconstrained.datasets import load_law_school
    >>> law = load_law_school()
    >>> law.data.shape
    (20798, 10)
    >>> for race in ("White", "Non-White"):
    ...     print(race, round(float(law.target[law.sensitive_features == race].mean()), 4))
    White 0.9213
    Non-White 0.723
    """
    path = resources.files("fairconstrained.datasets").joinpath("data", "law_school.csv.gz")
    with path.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8") as text:
        table = pd.read_csv(text)
    return law_school_from_table(table, include_sensitive=include_sensitive, as_frame=as_frame, return_X_y=return_X_y)


def law_school_from_table(table: pd.DataFrame, **layout: bool) -> Any:
    """Return what :func:`load_law_school` does, from the raw table.

    Raises ValueError if a column is missing or a label is neither 0 nor 1.
    """
    require_columns(table, [*_FEATURES, "race", "pass_bar"], "the law school table")
    features = table[_FEATURES].astype(np.float64)
    race = table["race"].astype(str)
    return build_bunch(
        features.assign(race=categorical(race)),
        binary_target(table["pass_bar"].astype(float), {"0.0": 0, "1.0": 1}, "pass_bar"),
        race.to_frame(),
        target_names=("failed", "passed"),
        descr=DESCR,
        **layout,
    )
