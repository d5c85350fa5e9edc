"""Models: parameters to scores."""

from fairconstrained.models.base import Coordinates, LastLayer, LinearMoments, Model, Pullback
from fairconstrained.models.linear import LinearModel
from fairconstrained.models.module import ModuleModel, make_module, mlp
from fairconstrained.models.moments import Moments
from fairconstrained.models.perceptron import Perceptron

__all__ = [
    "Coordinates",
    "LastLayer",
    "LinearModel",
    "LinearMoments",
    "Model",
    "ModuleModel",
    "Moments",
    "Perceptron",
    "Pullback",
    "make_module",
    "mlp",
]
