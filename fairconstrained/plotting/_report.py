"""Arguments of the Displays from a report, which they know by its attributes only."""

from __future__ import annotations

from typing import Any

__all__ = ["scores_of"]


def scores_of(report: Any) -> dict[str, Any]:
    """Scores, groups and weights of a report, as arguments of ``from_predictions``.

    Raises
    ------
    ValueError
        If it is a report of decisions without scores.
    """
    if report.y_score is None:
        raise ValueError("this report has decisions and no scores; make one with y_score to draw them.")
    return {
        "y_score": report.y_score,
        "sensitive_features": report.sensitive_features,
        "sample_weight": report.sample_weight,
    }
