"""Bounds of fitted models, by name."""

from __future__ import annotations

import numpy as np

__all__ = ["NamesBounds"]


class NamesBounds:
    """Mixin of models that keep the exact values of what they bound in ``constraint_values_``, by name."""

    constraint_values_: dict[str, float]

    def named_kappas(self) -> dict[str, float | None]:
        """Return ``kappa`` of everything that is bounded, by the names in ``constraint_values_``.

        Returns
        -------
        kappas : dict
            Kappas by name; None where there is no bound, NaN where the bound is no ``kappa``, but a weight, a share or
            the bound of a class. Empty for a single group, unless a bound is a floor or a ceiling.
        """
        return dict.fromkeys(self.constraint_values_, getattr(self, "kappa", np.nan))

    def _bounded_from_below(self) -> set[str]:
        """Names in ``constraint_values_`` of what is no gap, but has to be at least ``kappa``."""
        return set()

    def _minimised(self) -> set[str]:
        """Names in ``constraint_values_`` of what has no bound, but is made as small as it can be."""
        return set()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "status_")
