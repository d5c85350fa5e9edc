"""Seeds of what a fit draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["seed_of"]


def seed_of(random_state: Any) -> int:
    """A seed for what a fit draws.

    None is a new one from the operating system, so that fits that draw nothing leave numpy's global generator alone; an
    int always gives the same, and a RandomState goes one number further.
    """
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    return int(check_random_state(random_state).randint(2**31))
