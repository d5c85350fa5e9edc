"""Models: parameters to scores."""

from fairconstrained.models._base import Coordinates, LinearMoments, Model, Pullback
from fairconstrained.models.linear import LinearModel
from fairconstrained.models.module import ModuleModel, make_module, mlp
from fairconstrained.models.moments import Moments

__all__ = [
    "Coordinates",
    "LinearModel",
    "LinearMoments",
    "Model",
    "ModuleModel",
    "Moments",
    "Pullback",
    "make_module",
    "mlp",
]
