"""Base of the stochastic solvers: epochs of mini-batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from fairconstrained.points import Anchor
from fairconstrained.problem import Problem, StochasticView
from fairconstrained.solvers._options import Count, NonNegative, Share
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.source import Source
from fairconstrained.views import Exact, FullBatch, Stochastic

__all__ = ["Method", "SeparateBatches", "Source", "StochasticSolver"]


@dataclass(frozen=True)
class StochasticSolver(IterativeSolver):
    r"""Methods on mini-batches; a subclass has `_method`, which makes the variables and the update rule.

    Parameters
    ----------
    max_epochs : int, default=20
        Number of epochs. An epoch has as many steps as mini-batches make up the data.
    batch_size : int, default=8
        Approximate number of rows of a mini-batch, which gives both the objective and the constraints (methods that
        draw these apart say so, see `SeparateBatches`). If there are no more rows than that, every step takes all rows.
    balance : float, default=1.0
        Part of a mini-batch, in [0, 1], that the groups have in equal numbers; in the rest they have their own shares.
        Weights correct for this in the objective.
    select : {"last", "best"}, default="last"
        "best" returns the recorded iterate of least objective among those whose exact metrics are at most ``kappa``
        plus their granularity, and the method's own output where there is none.
    smoothing : float, default=0.0
        Weight :math:`\mu` of a Moreau envelope: the term :math:`\frac{\mu}{2} \|x - z\|^2` is added to the objective,
        which keeps the iterate x near a centre z. The recorded objective is without this term.
    averaging : float, default=0.5
        Share :math:`\beta` of the way to x by which the centre follows in every step, in [0, 1].

    Notes
    -----
    With ``smoothing``, a method minimises the Moreau envelope :math:`\min_x f(x) + \tfrac{\mu}{2} \|x - z\|^2` of what
    it minimises otherwise, by steps in z along the gradient :math:`\mu (z - x)`, and has the same solutions.

    References
    ----------
    Huang, Zhang, Alacaoglu, arXiv:2504.07607, and Bosák, Kliachkin, Lepšová, Bareilles, Mareček, arXiv:2605.18618, for
    the Moreau envelope around an augmented Lagrangian and around other methods.
    """

    requires: ClassVar[tuple[type, ...]] = (FullBatch, Stochastic, Exact)
    iterations_option: ClassVar[str] = "max_epochs"
    unit: ClassVar[str] = "epoch"
    takes_all_rows: ClassVar[bool] = False
    continues: ClassVar[bool] = True
    step_option: ClassVar[str] = "learning_rate"

    max_epochs: Count = 20
    batch_size: Count = 8
    balance: Share = 1.0
    select: Literal["last", "best"] = "last"
    smoothing: NonNegative = 0.0
    averaging: Share = 0.5

    @override
    def take_step(self, method: Method, source: Source, problem: Problem) -> None:
        """Implement `IterativeSolver.take_step`, in a Moreau envelope if ``smoothing`` asks for one."""
        x = method.z
        if not self.smoothing:
            method.center = None
        else:
            method.center = x if method.center is None else method.center
            source.anchor = Anchor(method.center, self.smoothing)
        method.step(source, problem)
        if method.center is not None:
            method.center = method.center + self.averaging * (x - method.center)

    @override
    def new_source(self, view: StochasticView, rng: np.random.Generator) -> Source:
        return Source(view, rng, self.batch_size, self.balance)

    @override
    def n_steps(self, problem: Problem) -> int:
        return max(1, problem.data.n_samples // self.batch_size)

    @property
    @override
    def returns_incumbent(self) -> bool:
        return self.select == "best"


@dataclass(frozen=True)
class SeparateBatches(StochasticSolver):
    r"""Methods that draw the rows of the objective and those of the constraints independently of each other.

    A mini-batch :math:`\xi` of the objective is drawn from all rows, whatever their groups are; a mini-batch
    :math:`\zeta` of the constraints has as many rows of every group. With the published ``batch_size=8`` and two groups
    these are 8 and 16 rows.

    Parameters
    ----------
    batch_size : int, default=8
        Rows of a mini-batch :math:`\xi` of the objective.
    constraint_batch_size : int or None, default=None
        Approximate number of rows of a mini-batch :math:`\zeta` of the constraints, which the groups share as
        ``balance`` says. None takes ``batch_size`` rows of *every* group. If there are no more rows than that, every
        step takes all rows.
    balance : float, default=1.0
        Part of a mini-batch of the constraints, in [0, 1], that the groups have in equal numbers; in the rest they have
        their own shares.
    """

    constraint_batch_size: Count | None = None

    @override
    def new_source(self, view: StochasticView, rng: np.random.Generator) -> Source:
        return Source(view, rng, self.batch_size, self.balance, self.constraint_batch_size)
