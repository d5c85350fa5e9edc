"""Constraints in both notions, bound to small data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from fairconstrained.constraints import BoundConstraint, DemographicParity, StatisticalParity
from fairconstrained.data import FairData


@pytest.fixture(scope="session")
def draw_scores() -> Callable[..., np.ndarray]:
    """Scores in the order of the data, of groups that differ by ``shift`` standard deviations."""

    def draw(data: FairData, seed: int = 0, shift: float = 0.5) -> np.ndarray:
        return np.random.default_rng(seed).normal(size=data.n_samples) + shift * data.codes

    return draw


@pytest.fixture(scope="session")
def evaluate() -> Callable[..., np.ndarray]:
    """A view of a constraint as arrays: ``evaluate(constraint, "values", scores, aux)``."""

    def evaluated(constraint: BoundConstraint, view: str, scores: np.ndarray, aux: Any = None) -> np.ndarray:
        aux = np.asarray(constraint.initial_aux(scores) if aux is None else aux, dtype=float)
        return getattr(constraint, view)(torch.from_numpy(scores), torch.from_numpy(aux)).detach().numpy()

    return evaluated


@pytest.fixture(params=[StatisticalParity, DemographicParity])
def notion(request: pytest.FixtureRequest) -> type:
    return request.param
