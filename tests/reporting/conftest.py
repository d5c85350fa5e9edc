"""Rows of two groups that are not treated alike, and no window, network or figure that outlives its test."""

import matplotlib
import numpy as np
import pytest

from fairconstrained.reporting import fairness_report

matplotlib.use("Agg")


@pytest.fixture(scope="session")
def rows():
    """Labels, scores (log-odds) and groups of 600 rows; b scores lower than a."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], [400, 200])
    scores = rng.normal(size=600) * 1.5 - 0.8 * (groups == "b")
    return (scores + rng.logistic(size=600) > 0).astype(int), scores, groups


@pytest.fixture(scope="session")
def report(rows):
    """With the interval of ranks 0%-30%, without intervals of confidence."""
    y_true, scores, groups = rows
    return fairness_report(y_true, scores, sensitive_features=groups, interval=(0, 0.3), n_resamples=0)
