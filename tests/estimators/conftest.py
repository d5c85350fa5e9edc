"""Small biased data for the estimators; fits take a fraction of a second."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from fairconstrained.datasets import make_biased_classification, make_biased_regression


class Sample(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray


@pytest.fixture(scope="session")
def classes() -> Sample:
    """Binary labels, two groups 0 and 1."""
    return Sample(*make_biased_classification(600, 4, random_state=0))


@pytest.fixture(scope="session")
def numbers() -> Sample:
    """A real target, two groups 0 and 1."""
    return Sample(*make_biased_regression(600, 4, random_state=0))
