"""What the tests of all layers share: small data in the package's own form, and the real data where it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import settings

from fairconstrained.data import FairData

# The suite runs one worker on every core. One thread also fixes the order in which torch adds up.
torch.set_num_threads(1)

# The same examples in every run, and no deadline: a slow machine is not an error.
settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile("reproducible")


@pytest.fixture(scope="session")
def make_data() -> Callable[..., FairData]:
    """Small `FairData` with groups of unequal size, in an order that the rows of the caller do not have."""

    def make(
        counts: tuple[int, ...] = (23, 31),
        n_features: int = 3,
        weighted: bool = False,
        sparse: bool = False,
        classes: bool = True,
        seed: int = 0,
    ) -> FairData:
        rng = np.random.default_rng(seed)
        codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        X = rng.normal(size=(codes.size, n_features)) + 0.4 * codes[:, None]
        y = X[:, 0] + rng.normal(size=codes.size)
        weights = rng.uniform(0.2, 3.0, codes.size) if weighted else None
        labels = tuple("abcdefgh"[: len(counts)])
        if sparse:
            X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
        return FairData.from_arrays(X, np.where(y > 0, 1.0, -1.0) if classes else y, codes, labels, weights)

    return make


@pytest.fixture(scope="session")
def real_folder() -> Path:
    """The folder with the real data sets, which are not part of the package; skips where there is none."""
    folder = Path(os.environ.get("FAIRCONSTRAINED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data: neither $FAIRCONSTRAINED_DATA nor ../shared/data is a folder")
    return folder
