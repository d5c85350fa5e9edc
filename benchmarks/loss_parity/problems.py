"""Problems that `LossParityClassifier` solves on the rows of a part, for runs of its solvers step by step."""

from __future__ import annotations

from typing import Any

from benchmarks.loss_parity.datasets import Part
from benchmarks.loss_parity.network import layers
from fairconstrained.constraints import LossParity
from fairconstrained.data import FairData
from fairconstrained.groups import GroupEncoder
from fairconstrained.models import Perceptron
from fairconstrained.objectives import ROW_LOSS_OBJECTIVES
from fairconstrained.problem import Problem

__all__ = ["problem_of"]


def problem_of(part: Part, kappa: float, **params: Any) -> Problem:
    """The network's log loss under a bound on the groups' gap; ``params`` are those of `LossParity`."""
    encoder = GroupEncoder(part.groups)
    data = FairData.from_arrays(part.X, part.y.astype(float), encoder.codes, encoder.labels)
    return Problem(
        model=Perceptron(layers, data.n_features, device="cpu"),
        objective=ROW_LOSS_OBJECTIVES["log_loss"].bind(data),
        constraints=(LossParity(kappa, **params).bind(data),),
        data=data,
    )
