"""Models, which compute the scores of rows."""

from fairconstrained.models.base import (
    LinearMoments,
    Model,
    ParametricModel,
    Pullback,
)
from fairconstrained.models.boosted_trees import BoostedTrees
from fairconstrained.models.classes import ClassModel
from fairconstrained.models.linear import LinearModel
from fairconstrained.models.module import ModuleModel, make_module, mlp
from fairconstrained.models.moments import Moments
from fairconstrained.models.parts import Coordinates, LastLayer, Rescaling, ScoreShifts
from fairconstrained.models.perceptron import Perceptron

__all__ = [
    "BoostedTrees",
    "ClassModel",
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
