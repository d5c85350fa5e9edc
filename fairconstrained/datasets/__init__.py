"""Data for fairness problems: bundled (``load_*``), downloaded (``fetch_*``) or generated (``make_*``).

Every loader of a named data set returns a Bunch with ``data``, ``target``, ``sensitive_features``, ``feature_names``,
``sensitive_names``, ``target_names``, ``categories``, ``frame`` and ``DESCR``. The sensitive features stay
out of ``data`` unless ``include_sensitive=True``. So does `make_acs_like`; the generators ``make_biased_*`` return
``(X, y, sensitive_features)``, and `make_biased_ranking` also queries. `load_letor` reads any file of its format.
"""

from fairconstrained.datasets._acs_income import fetch_acs_income
from fairconstrained.datasets._acs_like import make_acs_like
from fairconstrained.datasets._adult import fetch_adult
from fairconstrained.datasets._bank_marketing import fetch_bank_marketing
from fairconstrained.datasets._compas import fetch_compas
from fairconstrained.datasets._generators import (
    make_biased_classification,
    make_biased_ranking,
    make_biased_regression,
)
from fairconstrained.datasets._law_school import load_law_school
from fairconstrained.datasets._letor import load_letor

__all__ = [
    "fetch_acs_income",
    "fetch_adult",
    "fetch_bank_marketing",
    "fetch_compas",
    "load_law_school",
    "load_letor",
    "make_acs_like",
    "make_biased_classification",
    "make_biased_ranking",
    "make_biased_regression",
]
