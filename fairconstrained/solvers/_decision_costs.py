"""Decisions with costs: a smooth loss whose scores of least mean have the sign of the cheaper decision."""

from __future__ import annotations

import numpy as np

from fairconstrained.objectives import DecisionLoss

__all__ = ["costs_of", "follow_costs"]


def costs_of(loss: DecisionLoss, positive: np.ndarray) -> np.ndarray:
    """Growth of a loss of decisions, to first order, when a row is decided positive; ndarray of shape (n_samples,).

    ``positive`` are the decisions now. Where all are the same, as at a constant score, those of half of each class are
    taken: a ratio of counts can be 0 / 0 without a positive one.
    """
    if positive.all() or not positive.any():
        return -loss.slopes(loss.centre) @ loss.columns
    return -loss.gains(positive)


def follow_costs(costs: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Slopes and curvature of :math:`|c| \log(1 + e^{\mathrm{sign}(c) s})` in the scores.

    The scores of least mean have the sign of the decision of least expected cost, and unlike the costs themselves this
    function has slopes for every row.

    ``costs`` are those of deciding a row positive, less those of deciding it negative, and ``above`` is the logistic
    function of the scores less the threshold of decisions, which serves several costs.
    """
    return costs * np.where(costs > 0, above, 1 - above), np.abs(costs) * above * (1 - above)
