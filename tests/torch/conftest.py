"""Rows as a training loop has them: in any order, labels 0 and 1, groups as integers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import default_rng


class Natural:
    """Features, labels, groups and scores of rows in random order."""

    def __init__(self, n_samples: int = 400, seed: int = 0) -> None:
        rng = default_rng(seed)
        groups = (rng.random(n_samples) < 0.4).astype(int)
        features = rng.normal(size=(n_samples, 3)) + 0.7 * groups[:, None]
        self.X = torch.from_numpy(features)
        self.y = torch.from_numpy((features[:, 0] + rng.normal(size=n_samples) > 0.2).astype(int))
        self.groups = torch.from_numpy(groups)
        self.scores = torch.from_numpy(features @ np.array([1.0, -0.5, 0.3]) - 0.1)


@pytest.fixture(scope="session")
def natural() -> Natural:
    return Natural()
