"""Coverage for metrics that are made of score distributions and AUCs."""

from __future__ import annotations

import pandas as pd

from benchmarks.certification.coverage import Case, coverage

__all__ = ["CASES", "measure"]

CASES: list[Case] = [
    ("statistical_parity_gap", {}),
    ("partial_statistical_parity_gap", {"interval": (0.0, 0.3)}),
    ("partial_statistical_parity_gap", {"interval": (0.1, 0.4), "normalize": False}),
    ("wasserstein_gap", {}),
    ("partial_group_auc_gap", {"interval": (0.0, 0.5)}),
    ("group_auc_gap", {}),
    ("inter_group_auc_gap", {}),
    ("intra_group_auc_gap", {}),
    ("positive_equality_gap", {}),
    ("negative_equality_gap", {}),
    ("bpsn_bnsp_gap", {}),
]


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """One row for every metric, method and population."""
    return {"scores": coverage(CASES, quick)}
