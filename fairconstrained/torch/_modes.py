"""Rules by which losses and constraints are combined, and by which multipliers move, one for each mode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from fairconstrained.checks.messages import check_not_negative, check_positive

__all__ = ["AugmentedLagrangian", "Mode", "NuPI", "SmoothedLagrangian", "Switching"]

#: Vectors of shape (n_components,) that a mode keeps, by name, and numbers.
State = dict[str, Tensor]


@dataclass(frozen=True)
class Mode(ABC):
    """A rule without state: it takes the state and returns the next one."""

    #: Names of the vectors of the state, each with an entry for every component and zero at first.
    vectors: ClassVar[tuple[str, ...]] = ("multipliers",)
    #: Weight of the Moreau envelope, and the share of the way by which its centre follows.
    smoothing: ClassVar[float] = 0.0
    averaging: ClassVar[float] = 0.0

    @abstractmethod
    def combined(self, loss: Tensor, values: Tensor, state: State, n_steps: int) -> Tensor:
        """Return the function whose gradient the optimiser follows."""

    @abstractmethod
    def moved(self, values: Tensor, state: State) -> State:
        """Return the state after a step, from values without a graph."""


@dataclass(frozen=True)
class AugmentedLagrangian(Mode):
    """Multipliers that follow the violations, and a penalty."""

    dual_rate: float = 0.05
    penalty: float = 1.0
    max_multiplier: float = 100.0

    def __post_init__(self) -> None:
        check_not_negative(dual_rate=self.dual_rate, penalty=self.penalty)
        check_positive(max_multiplier=self.max_multiplier)

    def combined(self, loss: Tensor, values: Tensor, state: State, n_steps: int) -> Tensor:
        multipliers = state["multipliers"]
        if not self.penalty:
            return loss + multipliers @ values
        # the weights of the gradients, and what the value is less than their sum; so the graph is short
        weights = torch.add(multipliers, values.detach(), alpha=self.penalty).clamp_(min=0)
        added = weights - multipliers
        return torch.add(loss, weights @ values).sub_(added @ added, alpha=0.5 / self.penalty)

    def moved(self, values: Tensor, state: State) -> State:
        moved = torch.add(state["multipliers"], values, alpha=self.dual_rate)
        return {"multipliers": moved.clamp(0, self.max_multiplier)}


@dataclass(frozen=True)
class SmoothedLagrangian(AugmentedLagrangian):
    """The augmented Lagrangian in a Moreau envelope."""

    smoothing: float = 2.0  # type: ignore[misc]  # an option here
    averaging: float = 0.5  # type: ignore[misc]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(smoothing=self.smoothing, averaging=self.averaging)


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

    def combined(self, loss: Tensor, values: Tensor, state: State, n_steps: int) -> Tensor:
        return loss + state["multipliers"] @ values

    def moved(self, values: Tensor, state: State) -> State:
        change = (1 - self.memory) * (values - state["average"])
        moved = state["multipliers"] + self.integral_gain * values + self.proportional_gain * change
        return {"multipliers": moved.clamp(0, self.max_multiplier), "average": state["average"] + change}


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

    def combined(self, loss: Tensor, values: Tensor, state: State, n_steps: int) -> Tensor:
        if not values.numel():
            return loss
        worst = values.max()
        return loss if worst.item() <= self.tolerance * self.decay**n_steps else self.weight * worst

    def moved(self, values: Tensor, state: State) -> State:
        return {}


class Proximity(torch.autograd.Function):
    """``weight / 2 |parameters - centre|^2``, of the differences that are known already."""

    @staticmethod
    def forward(ctx: Any, weight: float, away: list[Tensor], *parameters: Tensor) -> Tensor:
        ctx.weight, ctx.away = weight, away
        lengths = [length.to(away[0].device) for length in torch._foreach_norm(away)]
        return torch.stack(lengths).square().sum() * (weight / 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, *(part * (ctx.weight * gradients[0]).to(part) for part in ctx.away)
