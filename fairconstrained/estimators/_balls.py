"""Limits on the size of the coefficients of linear scores."""

from __future__ import annotations

import numpy as np

from fairconstrained.data import FairData
from fairconstrained.domains import Domain, L1Ball, L2Ball, Product
from fairconstrained.models.scales import Scales

__all__ = ["AUTO", "enlarged", "half_axes", "within"]

#: Value of a radius for a ball of the coefficients of standardised features.
AUTO = "auto"


def enlarged(name: str, radius: float | str | None) -> str:
    """Advice to enlarge a ball by the parameter of that name, to follow other advice; empty where there is no ball."""
    if radius is None:
        return ""
    return f", set {name}=None" if isinstance(radius, str) else f", raise {name}"


def half_axes(radius: float | str, usual: float, data: FairData, centred: bool) -> np.ndarray:
    """Return the largest size that every coefficient may have by itself, see `within`; ndarray of shape (n_features,).

    Parameters
    ----------
    radius : float or "auto"
        A number is the size itself.
    usual : float
        Radius that "auto" stands for.
    data : FairData
        Rows by which the features are standardised.
    centred : bool
        Whether features may be centred.
    """
    if not isinstance(radius, str):
        return np.full(data.n_features, float(radius))
    return usual / np.sqrt(Scales.of(data, centred=centred).variance[0])


def within(
    ball: type[L1Ball] | type[L2Ball],
    radius: float | str | None,
    usual: float,
    data: FairData,
    centred: bool,
    n_scores: int = 1,
) -> Domain | None:
    """Return the set of the parameters whose coefficients, those of every score by themselves, are in a ball.

    Parameters
    ----------
    radius : float, "auto" or None
        "auto" is the usual radius for the coefficients of standardised features, so that the units of the features do
        not matter. None: no limit.
    data : FairData
        Rows by which the features are standardised.
    centred : bool
        Whether scores have an intercept, so that features may be centred.
    n_scores : int, default=1
        The number of scores; the parameters of one come after those of the other.
    """
    if radius is None:
        return None
    coefficients: Domain | None = ball(usual if isinstance(radius, str) else radius)
    if isinstance(radius, str):
        coefficients = ball(1.0).scaled(half_axes(radius, usual, data, centred))
    assert coefficients is not None  # balls can be scaled
    firsts = (data.n_features + centred) * np.arange(n_scores)
    return Product(tuple((slice(first, first + data.n_features), coefficients) for first in firsts.tolist()))
