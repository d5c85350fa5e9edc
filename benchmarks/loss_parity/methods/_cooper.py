"""Lagrangian methods of the package ``cooper``, in the loop that its README shows.

A mini-batch has as many rows of every group; they give the constraints and, weighted, the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from benchmarks.loss_parity.methods._setting import BATCH, Outcome, Setting
from benchmarks.loss_parity.methods._torch import Rows, even_batches, follow, n_differences, row_losses
from benchmarks.loss_parity.network import new_network


def run(
    setting: Setting, primal: Callable[[Any], torch.optim.Optimizer], dual_rate: float, penalty: float | None = None
) -> Outcome:
    """Train for the time that there is, with gradient ascent for the multipliers, before each step of ``primal``.

    With a penalty the Lagrangian is the augmented one.
    """
    rows = Rows.of(setting.train)
    network = new_network(rows.X.shape[1], setting.seed)
    batches = even_batches(rows, BATCH * rows.member.shape[1], setting.seed)
    return follow(setting, network, _steps(setting, network, batches, rows.group_weights, primal, dual_rate, penalty))


def _steps(
    setting: Setting,
    network: nn.Module,
    batches: Iterator[Rows],
    weights: torch.Tensor,
    primal: Callable[[Any], torch.optim.Optimizer],
    dual_rate: float,
    penalty: float | None,
) -> Iterator[None]:
    import cooper

    n_constraints = n_differences(setting.constraint, weights.numel())
    augmented = (
        {}
        if penalty is None
        else {
            "formulation_type": cooper.formulations.AugmentedLagrangian,
            "penalty_coefficient": cooper.penalty_coefficients.DensePenaltyCoefficient(torch.tensor(penalty)),
        }
    )

    class Problem(cooper.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            self.gaps = cooper.Constraint(
                constraint_type=cooper.ConstraintType.INEQUALITY,
                multiplier=cooper.multipliers.DenseMultiplier(num_constraints=n_constraints),
                **augmented,
            )

        def compute_cmp_state(self, batch: Rows) -> Any:
            losses = row_losses(network(batch.X).squeeze(1), batch.y)
            excess = setting.constraint.differences(losses, batch.y, batch.member) - setting.kappa
            observed = {self.gaps: cooper.ConstraintState(violation=excess)}
            return cooper.CMPState(loss=(losses * (batch.member @ weights)).mean(), observed_constraints=observed)

    problem = Problem()
    optimizer = cooper.optim.AlternatingDualPrimalOptimizer(
        cmp=problem,
        primal_optimizers=primal(network.parameters()),
        dual_optimizers=torch.optim.SGD(problem.dual_parameters(), lr=dual_rate, maximize=True),
    )
    for batch in batches:
        optimizer.roll(compute_cmp_state_kwargs={"batch": batch})
        yield
