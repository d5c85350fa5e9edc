"""Limits on the size of the coefficients of linear scores."""

from __future__ import annotations

import numpy as np

from fairconstrained.data import FairData
from fairconstrained.domains import Domain, L1Ball, L2Ball, Product
from fairconstrained.models.scales import Scales

__all__ = ["AUTO", "enlarged", "within"]

#: Value of a radius for a ball of the coefficients of standardised features.
AUTO = "auto"


def enlarged(name: str, radius: float | str | None) -> str:
    """Advice to enlarge a ball by the parameter of that name, to follow other advice; empty where there is no ball."""
    if radius is None:
        return ""
    return f", set {name}=None" if isinstance(radius, str) else f", raise {name}"


def within(
    ball: type[L1Ball] | type[L2Ball], radius: float | str | None, usual: float, data: FairData, centred: bool
) -> Domain | None:
    """Return the set of the parameters whose coefficients are in a ball.

    Parameters
    ----------
    radius : float, "auto" or None
        "auto" is the usual radius for the coefficients of standardised features, so that the units of the features do
        not matter. None: no limit.
    data : FairData
        Rows by which the features are standardised.
    centred : bool
        Whether scores have an intercept, so that features may be centred.
    """
    if radius is None:
        return None
    coefficients: Domain = ball(usual if isinstance(radius, str) else radius)
    if isinstance(radius, str):
        scaled = coefficients.scaled(1 / np.sqrt(Scales.of(data, centred=centred).variance[0]))
        assert scaled is not None  # balls can be scaled
        coefficients = scaled
    return Product(((slice(0, data.n_features), coefficients),))
