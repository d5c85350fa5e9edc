"""No window is opened, and no figure outlives its test."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture
def scores():
    """Scores and groups of 600 rows; b scores lower than a."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], [400, 200])
    return rng.normal(size=600) - (groups == "b"), groups
