"""Generated rows with the columns, codes, shares and label gaps of ACSIncome, without a download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.utils import check_random_state

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.datasets._acs_income import COLUMNS, FEATURES, acs_bunch
from fairconstrained.datasets._bunch import RETURNS_BUNCH, chosen_columns

__all__ = ["make_acs_like"]

RandomState = int | np.random.RandomState | None

DESCR = f"""\
ACS-like (generated; columns and codes of ACSIncome, shares of Oklahoma 2018)
-----------------------------------------------------------------------------

Does a working adult earn more than 50,000 dollars a year? Every row is drawn at random; none is a person.

:Label: PINCP, 1 = total income above 50,000 USD a year (29 %), 0 = not
:Sensitive features: RAC1P (White: 75 % of the rows, 32 % positive; others: 21 % positive) and SEX (men: 53 % of the
    rows, 38 % positive; women: 19 %), as the codes of the census

{COLUMNS}
The docstring of make_acs_like says how rows and labels are drawn.
"""

# Percentages by code, one column for each value of what the code depends on; rounded from 8,241 working adults of
# the ACS person file of Oklahoma, 2018, rare codes as their neighbours. A column need not sum to 100: _draw divides
# by its sum.
# fmt: off
_RAC1P = {1: (74.5,), 2: (5.3,), 3: (8.6,), 4: (0.1,), 5: (0.4,), 6: (1.7,), 7: (0.1,), 8: (2.4,), 9: (6.9,)}
_SEX = {1: (53,), 2: (47,)}
# Keys are the first years of age bands; columns: White, others
_AGE = {17: (6.8, 10.1), 21: (6.6, 9.2), 25: (9.1, 12.0), 30: (9.4, 11.1), 35: (19.6, 20.9), 45: (20.1, 17.7),
        55: (19.6, 13.8), 65: (6.7, 4.3), 75: (2.0, 0.9)}
_AGE_FROM = np.array(list(_AGE))
_AGE_YEARS = np.diff([*_AGE_FROM, 95])
# Columns: the age bands, for White rows and then for the others
_MAR = {
    1: (5, 18, 45, 58, 68, 71, 71, 69, 60, 4, 20, 35, 57, 56, 63, 57, 51, 58),
    2: (0, 0, 0, 1, 1, 2, 4, 12, 30, 0, 1, 1, 0, 0, 1, 10, 19, 16),
    3: (0, 1, 6, 12, 15, 18, 18, 16, 9, 1, 1, 5, 9, 14, 20, 21, 21, 26),
    4: (0, 1, 1, 3, 3, 2, 1, 0, 1, 0, 1, 2, 3, 6, 3, 2, 0, 0),
    5: (95, 80, 48, 26, 13, 7, 5, 2, 0, 95, 78, 57, 32, 23, 12, 10, 10, 0),
}
# Columns: 17-20 years, 21-24 years, then White men, White women, other men, other women
_SCHL = {
    1: (0.3, 0.5, 0.7, 0.2, 1.7, 0.5), 9: (0.5, 0.5, 0.8, 0.4, 1.2, 0.7), 11: (1.0, 0.5, 1.0, 0.3, 1.2, 1.5),
    12: (1.3, 0.7, 1.3, 0.7, 1.7, 1.3), 13: (8.1, 2.2, 1.1, 0.8, 2.2, 1.2), 14: (13.4, 3.4, 2.2, 1.4, 2.1, 1.6),
    15: (1.6, 1.3, 1.5, 1.2, 1.8, 2.0), 16: (30.2, 31.2, 27.1, 23.0, 30.9, 23.1), 17: (1.7, 2.7, 5.3, 3.9, 7.0, 5.0),
    18: (17.7, 9.7, 7.5, 8.4, 6.7, 9.9), 19: (22.8, 28.5, 15.8, 14.8, 16.9, 18.6), 20: (1.1, 6.7, 8.1, 11.4, 7.6, 9.2),
    21: (0, 10.7, 17.0, 22.3, 10.9, 17.4), 22: (0, 1.2, 7.3, 8.4, 5.0, 6.6), 23: (0, 0.3, 2.0, 1.5, 1.5, 0.6),
    24: (0, 0, 1.2, 1.1, 1.5, 0.7),
}
# Columns: men of 17-20, 21-24, 25-64 and 65 or more years, then women
_WKHP = {
    5: (4.2, 0.3, 0.4, 5.0, 6.3, 1.4, 0.9, 9.1), 10: (8.8, 2.9, 0.9, 4.1, 9.3, 5.3, 2.2, 6.5),
    15: (7.6, 3.2, 0.4, 3.8, 10.6, 3.9, 2.0, 6.2), 20: (15.2, 3.8, 2.1, 7.7, 15.6, 8.8, 4.4, 7.5),
    25: (9.4, 8.0, 0.9, 5.6, 12.9, 9.9, 3.5, 10.1), 30: (8.2, 10.8, 3.0, 10.7, 12.9, 12.0, 6.2, 11.4),
    35: (5.8, 6.1, 2.6, 5.3, 6.6, 9.5, 8.1, 5.9), 40: (26.1, 40.8, 49.7, 37.6, 20.2, 40.6, 54.0, 31.9),
    45: (3.9, 6.7, 8.9, 5.6, 1.3, 2.1, 6.1, 3.6), 50: (5.2, 8.3, 14.4, 6.8, 1.3, 2.5, 7.0, 4.2),
    55: (0.6, 1.3, 3.5, 1.5, 0.3, 0.4, 1.7, 1.0), 60: (2.1, 4.5, 7.3, 3.0, 1.0, 2.1, 2.6, 2.3),
    70: (0.9, 1.0, 3.1, 2.1, 0.7, 0.4, 0.5, 0.3), 80: (2.1, 2.5, 2.8, 1.2, 1.0, 1.1, 0.7, 0.2),
}
# Columns: below 30 years without and with a bachelor's degree, then from 30 years
_COW = {
    1: (78.4, 58.7, 67.2, 46.4), 2: (5.2, 9.7, 4.7, 11.2), 3: (3.2, 7.0, 6.1, 7.8), 4: (3.7, 14.8, 5.3, 16.0),
    5: (5.5, 5.0, 4.1, 6.5), 6: (3.0, 3.0, 8.5, 7.4), 7: (0.8, 1.3, 3.6, 4.4), 8: (0.2, 0.3, 0.5, 0.4),
}
# Columns: unmarried of 17-24, 25-44 and 45 or more years, then married
_RELP = {
    0: (17.4, 55.0, 76.8, 39.2, 49.9, 52.0), 1: (0, 0, 0, 37.1, 45.0, 46.5), 2: (36.3, 14.5, 5.8, 7.0, 1.2, 0.3),
    4: (4.4, 1.3, 0.6, 1.4, 0, 0), 5: (1.4, 1.7, 2.1, 0.7, 0.1, 0), 6: (0, 0.1, 1.7, 0, 0.2, 0.3),
    7: (4.2, 1.6, 0.4, 2.8, 0.2, 0), 9: (0, 0.4, 0.1, 7.7, 1.2, 0.2), 10: (1.4, 0.9, 0.8, 2.8, 0.4, 0.2),
    11: (1.2, 0.7, 0.8, 0, 0, 0), 12: (4.7, 3.0, 1.2, 0, 0.2, 0.1), 13: (4.6, 11.2, 5.8, 0, 0, 0),
    15: (2.2, 2.2, 2.0, 0.7, 0.3, 0.1), 16: (1.5, 4.9, 1.8, 0, 1.1, 0.2), 17: (20.6, 2.3, 0.4, 0.7, 0.4, 0),
}
# One frequent code for each major occupation group. Columns: men up to high school, with some college, with a
# bachelor's degree, then women
_OCCP = {
    440: (7.6, 11.1, 17.9, 5.3, 6.2, 10.5), 800: (1.1, 2.4, 10.0, 3.1, 4.1, 10.7), 1108: (0.4, 2.9, 5.7, 0.1, 1.0, 1.8),
    1530: (0.8, 2.2, 6.7, 0.1, 0.3, 0.7), 1970: (0.2, 0.3, 1.9, 0.4, 0.1, 1.2), 2040: (0.3, 1.1, 4.9, 0.7, 1.7, 6.3),
    2145: (0, 0.3, 2.5, 0.5, 0.8, 2.0), 2310: (0.6, 1.5, 10.5, 3.3, 5.0, 23.3), 2722: (0.7, 1.6, 2.0, 0.9, 1.9, 1.9),
    3255: (0.5, 1.3, 7.6, 2.7, 11.7, 15.7), 3603: (0.5, 0.8, 0.5, 8.1, 6.3, 1.4), 3870: (2.6, 5.7, 2.8, 1.0, 0.8, 1.1),
    4020: (6.2, 4.5, 0.6, 14.4, 7.3, 0.7), 4220: (6.4, 3.6, 1.1, 7.5, 1.8, 0.5), 4600: (1.0, 1.1, 0.4, 4.9, 5.1, 1.7),
    4720: (6.5, 11.5, 8.2, 14.0, 13.1, 5.9), 5740: (3.1, 6.4, 5.4, 20.8, 25.9, 12.7),
    6050: (2.6, 1.2, 0.8, 0.7, 0.4, 0.5), 6260: (17.0, 9.1, 1.7, 0.7, 0.4, 0.4), 6800: (2.2, 1.3, 0.2, 0, 0, 0),
    7200: (8.0, 8.9, 1.0, 0.4, 0.7, 0.1), 7750: (13.1, 8.8, 3.1, 5.2, 2.4, 0.6), 9130: (9.1, 5.3, 2.4, 1.6, 0.7, 0.3),
    9620: (8.9, 6.4, 1.3, 3.6, 1.9, 0.2), 9825: (0.7, 0.8, 0.6, 0.1, 0.2, 0.1),
}
# Columns: White, Black, American Indian (RAC1P 3 to 5), Asian (6, 7), others (8, 9)
_POBP_COLUMN = np.array([-1, 0, 1, 2, 2, 2, 3, 3, 4, 4])
_POBP = {
    4: (0.9, 0.2, 0.8, 0, 0.4), 5: (2.8, 3.2, 2.3, 0.7, 2.6), 6: (5.5, 2.8, 2.9, 4.2, 5.0), 8: (1.0, 0.5, 0.7, 0, 1.3),
    17: (4.3, 5.2, 1.4, 2.1, 2.3), 20: (6.4, 5.3, 2.7, 0.7, 4.4), 22: (1.8, 4.5, 0.3, 0, 0.8),
    29: (4.3, 3.6, 1.8, 0.7, 2.3), 36: (1.9, 3.4, 0.5, 0, 0.7), 39: (1.9, 2.7, 0.8, 0, 0.9),
    40: (54.1, 57.8, 81.8, 10.5, 55.2), 48: (9.8, 7.0, 3.9, 1.4, 8.0), 110: (1.0, 0.2, 0.1, 0, 0.9),
    207: (0, 0, 0, 13.0, 0.5), 210: (0.2, 0, 0, 20.0, 0.5), 217: (0.2, 0, 0, 12.1, 0.5), 233: (0.2, 0, 0, 15.8, 0.5),
    247: (0.2, 0, 0, 18.3, 1.0), 303: (3.0, 0.4, 0.1, 0, 12.0), 416: (0, 2.5, 0, 0, 0.2),
}
# fmt: on


@documented_by(RETURNS_BUNCH)
def make_acs_like(
    n_samples: int = 17917,
    sensitive: str | Sequence[str] = "RAC1P",
    *,
    include_sensitive: bool = False,
    return_X_y: bool = False,
    as_frame: bool = True,
    random_state: RandomState = None,
) -> Any:
    r"""Generate rows like those of ACSIncome for Oklahoma in 2018, with the layout of `fetch_acs_income`.

    For tests, examples and timings without a network. The shares are rounded from a sample of 8,241 working adults
    of the census; the rows are drawn at random, and results on them say nothing about Oklahoma.

    Parameters
    ----------
    n_samples : int, default=17917
        Number of rows; the default is what `fetch_acs_income` returns for Oklahoma and 2018.
    sensitive : str or sequence of str, default="RAC1P"
        The sensitive feature, or several: then ``sensitive_features`` has one column for each. Any of the ten columns.
    random_state : int, RandomState or None, default=None
        Seed; an int gives the same data at every call.

    Returns
    -------
    bunch : Bunch
        Data and their description, with the attributes

        data : DataFrame or ndarray of shape (n_samples, n_features)
            Columns of `fetch_acs_income`; ``DESCR`` gives units and codes.
        target : Series or ndarray of shape (n_samples,)
            1 if the total income exceeds 50,000 USD a year, else 0.

    Raises
    ------
    ValueError
        If ``n_samples`` is below 1 or ``sensitive`` is not offered.

    See Also
    --------
    fetch_acs_income : the data of the census, downloaded.

    Notes
    -----
    Rows are independent. RAC1P and SEX are drawn first, then AGEP and POBP given RAC1P, MAR given AGEP and RAC1P,
    SCHL given AGEP, RAC1P and SEX, WKHP given AGEP and SEX, COW given SCHL and AGEP, RELP given MAR and AGEP, OCCP
    given SCHL and SEX. OCCP has 25 codes, one for each large group of occupations, POBP 20 and WKHP 14. "White" is
    RAC1P 1. The shares, in percent of the rows:

    ======  ==============================================================================================
    RAC1P   1: 74.5, 2: 5.3, 3: 8.6, 4: 0.1, 5: 0.4, 6: 1.7, 7: 0.1, 8: 2.4, 9: 6.9
    SEX     1: 53, 2: 47
    AGEP    17-24: 14.9, 25-34: 19.7, 35-44: 20.0, 45-54: 19.5, 55-64: 18.1, 65-94: 7.8
    MAR     1: 55.5, 2: 2.9, 3: 12.9, 4: 1.9, 5: 26.8
    SCHL    1-15: 9.3, 16-17: 31.0, 18-20: 34.8, 21: 16.2, 22-24: 8.7
    WKHP    5-30: 20.6, 35: 5.5, 40: 47.5, 45-50: 16.3, 55-80: 10.1
    COW     1: 64.8, 2: 6.4, 3: 5.9, 4: 7.6, 5: 4.9, 6: 6.9, 7: 3.1, 8: 0.4
    RELP    0: 50.8, 1: 25.3, 2: 8.6, 13: 3.3, 17: 3.3, ten others: 8.7
    ======  ==============================================================================================

    With :math:`[\cdot]` one if the statement holds and zero otherwise, the label is 1 with probability
    :math:`1 / (1 + e^{-z})`,

    .. math::
        z = -1.2 &- 0.18 \left(\tfrac{\min(\mathrm{AGEP}, 55) - 55}{10}\right)^2
            + 0.18 \,(\max(\mathrm{SCHL}, 12) - 16) + 0.35 \max(\mathrm{SCHL} - 19, 0) \\
          &+ 0.09 \,(\min(\mathrm{WKHP}, 50) - 40) + 0.9\,[\text{married}] - 0.6\,[\text{woman}]
            - 0.8\,[\text{married woman}] \\
          &- 0.4\,[\text{not White}] + 0.2\,[\text{woman, not White}].

    It is 1 in 28.9 % of the rows: 41.4 % of White men, 20.5 % of White women, 27.4 % of the other men and 14.3 % of
    the other women; 31.6 % of White rows and 21.2 % of the others; 37.8 % of men and 18.9 % of women. The best
    classifier has an accuracy of 79 %.

    Examples
    --------
    >>> from fairconstrained.datasets import make_acs_like
    >>> acs = make_acs_like(random_state=0)
    >>> acs.data.shape
    (17917, 9)
    >>> white = acs.sensitive_features == 1
    >>> round(float(acs.target[white].mean()), 1), round(float(acs.target[~white].mean()), 1)
    (0.3, 0.2)
    """
    names = chosen_columns(sensitive, FEATURES)
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1; got {n_samples!r}.")
    rng = check_random_state(random_state)
    columns = _draw_columns(rng, n_samples)
    target = (rng.uniform(size=n_samples) < expit(_log_odds(columns))).astype(np.int64)
    return acs_bunch(
        pd.DataFrame(columns)[FEATURES].astype(np.float64),
        pd.Series(target, name="PINCP"),
        names,
        DESCR,
        include_sensitive=include_sensitive,
        as_frame=as_frame,
        return_X_y=return_X_y,
    )


def _draw_columns(rng: np.random.RandomState, n_samples: int) -> dict[str, np.ndarray]:
    nothing = np.zeros(n_samples, dtype=np.int64)
    race, sex = _draw(rng, _RAC1P, nothing), _draw(rng, _SEX, nothing)
    other, woman = (race != 1).astype(np.int64), sex - 1
    first_year = _draw(rng, _AGE, other)
    band = np.searchsorted(_AGE_FROM, first_year)
    age = first_year + rng.randint(0, _AGE_YEARS[band])
    marital = _draw(rng, _MAR, band + len(_AGE) * other)
    schooling = _draw(rng, _SCHL, np.where(band < 2, band, 2 + woman + 2 * other))
    education = np.searchsorted([18, 21], schooling, side="right")
    return {
        "AGEP": age,
        "COW": _draw(rng, _COW, (schooling >= 21) + 2 * (age >= 30)),
        "SCHL": schooling,
        "MAR": marital,
        "OCCP": _draw(rng, _OCCP, education + 3 * woman),
        "POBP": _draw(rng, _POBP, _POBP_COLUMN[race]),
        "RELP": _draw(rng, _RELP, np.searchsorted([25, 45], age, side="right") + 3 * (marital == 1)),
        "WKHP": _draw(rng, _WKHP, np.searchsorted([21, 25, 65], age, side="right") + 4 * woman),
        "SEX": sex,
        "RAC1P": race,
    }


def _draw(rng: np.random.RandomState, table: Mapping[int, Sequence[float]], column: np.ndarray) -> np.ndarray:
    """One code for each row, with the shares of that row's ``column`` of a table."""
    shares = np.array(list(table.values()), dtype=np.float64)
    steps = shares.cumsum(axis=0) / shares.sum(axis=0)
    draws = rng.uniform(size=len(column))
    position = np.empty(len(column), dtype=np.int64)
    for j, ends in enumerate(steps.T):
        rows = column == j
        position[rows] = np.searchsorted(ends, draws[rows], side="right")
    return np.array(list(table))[position]


def _log_odds(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """The ``z`` of the docstring of `make_acs_like`."""
    schooling = columns["SCHL"]
    married, woman, other = columns["MAR"] == 1, columns["SEX"] == 2, columns["RAC1P"] != 1
    age = -0.18 * ((np.minimum(columns["AGEP"], 55) - 55) / 10) ** 2
    learned = 0.18 * (np.maximum(schooling, 12) - 16) + 0.35 * np.maximum(schooling - 19, 0)
    hours = 0.09 * (np.minimum(columns["WKHP"], 50) - 40)
    family = 0.9 * married - 0.6 * woman - 0.8 * (married & woman)
    return -1.2 + age + learned + hours + family - 0.4 * other + 0.2 * (other & woman)
