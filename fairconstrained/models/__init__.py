"""Models, which give rows scores."""

from fairconstrained.models.base import (
    Coordinates,
    LastLayer,
    LinearMoments,
    Model,
    ParametricModel,
    Pullback,
    Rescaling,
    ScoreShifts,
)
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
    "ParametricModel",
    "Perceptron",
    "Pullback",
    "Rescaling",
    "ScoreShifts",
    "make_module",
    "mlp",
]
