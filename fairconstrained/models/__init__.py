"""Models: parameters to scores."""

from fairconstrained.models._base import Model, Pullback
from fairconstrained.models.linear import LinearModel

__all__ = ["LinearModel", "Model", "Pullback"]
