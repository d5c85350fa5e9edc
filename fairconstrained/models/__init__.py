"""Models: parameters to scores."""

from fairconstrained.models._base import Coordinates, Model, Pullback
from fairconstrained.models.linear import LinearModel

__all__ = ["Coordinates", "LinearModel", "Model", "Pullback"]
