"""Coverage for metrics that are made of rates and means."""

from __future__ import annotations

import pandas as pd

from benchmarks.certification.coverage import Case, coverage

__all__ = ["CASES", "measure"]

CASES: list[Case] = [
    ("independence_gap", {}),
    ("equal_opportunity_gap", {}),
    ("separation_gap", {"agg_labels": "sum"}),
    ("separation_gap", {}),
    ("sufficiency_gap", {}),
    ("inaccuracy", {}),
    ("rate_gap", {"constraint": "equalized_odds"}),
    ("rate_gap", {"constraint": "intersectional"}),
    ("rate_gap", {"rate": "sigmoid"}),
    ("parity_pair", {}),
    ("minority_share", {}),
    ("partial_demographic_parity_gap", {"interval": (0.1, 0.6)}),
    ("partial_demographic_parity_gap", {"interval": (0.3, 0.5), "normalize": False}),
    ("partial_equal_opportunity_gap", {"interval": (0.5, 1.0)}),
    ("partial_equalized_odds_gap", {"interval": (0.0, 0.8)}),
    ("loss_parity_gap", {}),
    ("loss_parity_gap", {"constraint": "equalized_odds"}),
    ("loss_parity_gap", {"constraint": "equalized_odds", "agg_labels": "sum"}),
]


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """One row for every metric, method and population."""
    return {"rates": coverage(CASES, quick)}
