"""Rules by which losses and constraints are combined, and by which multipliers move, one for each mode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.checks.messages import check_not_negative, check_positive

__all__ = ["AugmentedLagrangian", "Combination", "Mode", "NuPI", "SmoothedLagrangian", "State", "Switching"]

#: Vectors of shape (n_components,) that a mode keeps, by name.
State = dict[str, np.ndarray]


class Combination(NamedTuple):
    """A function of the loss and the constraints, by its slopes."""

    #: Slopes in the values of the components.
    weights: np.ndarray  # of shape (n_components,)
    #: Amount to add to the weighted sum for the value.
    constant: float = 0.0
    #: Whether the loss is part of it.
    loss: bool = True


@dataclass(frozen=True)
class Mode(ABC):
    """A rule without state: it takes the state and returns the next one."""

    #: Names of the vectors of the state, each with an entry for every component and zero at first.
    vectors: ClassVar[tuple[str, ...]] = ("multipliers",)

    @property
    def envelope(self) -> tuple[float, float]:
        """Weight of the Moreau envelope, and the share of the way by which its centre follows."""
        return 0.0, 0.0

    @abstractmethod
    def combined(self, values: np.ndarray, state: State, n_steps: int) -> Combination:
        """Return the function that the optimiser follows, at the present values of the components."""

    @abstractmethod
    def moved(self, values: np.ndarray, state: State) -> State:
        """Return the state after a step."""


@dataclass(frozen=True)
class AugmentedLagrangian(Mode):
    """Multipliers that follow the violations, and a penalty."""

    dual_rate: float = 0.05
    penalty: float = 1.0
    max_multiplier: float = 100.0

    def __post_init__(self) -> None:
        check_not_negative(dual_rate=self.dual_rate, penalty=self.penalty)
        check_positive(max_multiplier=self.max_multiplier)

    @override
    def combined(self, values: np.ndarray, state: State, n_steps: int) -> Combination:
        multipliers = state["multipliers"]
        if not self.penalty:
            return Combination(multipliers)
        weights = np.maximum(multipliers + self.penalty * values, 0.0)
        added = weights - multipliers
        return Combination(weights, float(added @ added) / (-2 * self.penalty))

    @override
    def moved(self, values: np.ndarray, state: State) -> State:
        moved = np.maximum(state["multipliers"] + self.dual_rate * values, 0.0)
        return {"multipliers": np.minimum(moved, self.max_multiplier)}


@dataclass(frozen=True)
class SmoothedLagrangian(AugmentedLagrangian):
    """The augmented Lagrangian in a Moreau envelope."""

    smoothing: float = 2.0
    averaging: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(smoothing=self.smoothing, averaging=self.averaging)

    @property
    @override
    def envelope(self) -> tuple[float, float]:
        return self.smoothing, self.averaging


@dataclass(frozen=True)
class NuPI(Mode):
    """Multipliers by a proportional and integral controller."""

    vectors: ClassVar[tuple[str, ...]] = ("multipliers", "average")

    integral_gain: float = 0.01
    proportional_gain: float = 1.0
    memory: float = 0.01
    max_multiplier: float = 100.0

    def __post_init__(self) -> None:
        check_not_negative(
            integral_gain=self.integral_gain, proportional_gain=self.proportional_gain, memory=self.memory
        )
        check_positive(max_multiplier=self.max_multiplier)
        if self.memory > 1:
            raise ValueError(f"memory must be at most 1; got {self.memory!r}.")

    @override
    def combined(self, values: np.ndarray, state: State, n_steps: int) -> Combination:
        return Combination(state["multipliers"])

    @override
    def moved(self, values: np.ndarray, state: State) -> State:
        change = (1 - self.memory) * (values - state["average"])
        moved = state["multipliers"] + self.integral_gain * values + self.proportional_gain * change
        return {"multipliers": np.clip(moved, 0.0, self.max_multiplier), "average": state["average"] + change}


@dataclass(frozen=True)
class Switching(Mode):
    """The loss where the constraints hold, and the worst of them elsewhere."""

    vectors: ClassVar[tuple[str, ...]] = ()

    tolerance: float = 1e-4
    decay: float = 1.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_not_negative(tolerance=self.tolerance)
        check_positive(weight=self.weight, decay=self.decay)
        if self.decay > 1:
            raise ValueError(f"decay must be at most 1; got {self.decay!r}.")

    @override
    def combined(self, values: np.ndarray, state: State, n_steps: int) -> Combination:
        weights = np.zeros(values.size)
        if values.max(initial=-np.inf) <= self.tolerance * self.decay**n_steps:
            return Combination(weights)
        weights[values.argmax()] = self.weight
        return Combination(weights, loss=False)

    @override
    def moved(self, values: np.ndarray, state: State) -> State:
        return {}
