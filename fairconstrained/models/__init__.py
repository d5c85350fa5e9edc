"""Models: parameters to scores."""

from fairconstrained.models._base import Coordinates, Model, Pullback
from fairconstrained.models.linear import LinearModel
from fairconstrained.models.module import ModuleModel, make_module, mlp

__all__ = ["Coordinates", "LinearModel", "Model", "ModuleModel", "Pullback", "make_module", "mlp"]
