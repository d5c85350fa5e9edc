"""Small data, and estimators whose fits take some hundredths of a second."""

from __future__ import annotations

import pytest

from fairconstrained import RateParityClassifier, fairness_path
from fairconstrained.datasets import make_biased_classification, make_biased_regression
from tests.estimators.conftest import Sample


@pytest.fixture(scope="session")
def classes() -> Sample:
    """Binary labels, two groups 0 and 1."""
    return Sample(*make_biased_classification(400, 3, random_state=0))


@pytest.fixture(scope="session")
def numbers() -> Sample:
    """A real target, two groups 0 and 1."""
    return Sample(*make_biased_regression(400, 3, random_state=0))


@pytest.fixture(scope="session")
def path(classes):
    """Three models and three folds."""
    return fairness_path(
        RateParityClassifier(), classes.X, classes.y, sensitive_features=classes.groups, kappas=[None, 0.1, 0.02], cv=3
    )
