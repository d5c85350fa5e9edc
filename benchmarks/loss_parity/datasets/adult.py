"""Adult as LIBSVM's binary features (a9a) without the two that say the sex; official split; groups: sex."""

from __future__ import annotations

import numpy as np

from benchmarks._common import Table, load_a9a

PLACE = 2
TITLE = "Adult"
SECONDS = 10.0
SPLITS = ("fixed",)  # the official one
STANDARDISE = False  # a rare category would become a huge number


def load() -> Table:
    """Load the Adult data with their official split."""
    table = load_a9a()
    X = table.X.toarray()
    agreement = np.mean((table.groups == "female")[:, None] == X, axis=0)
    return table._replace(name="adult", X=X[:, (agreement > 0) & (agreement < 1)])
