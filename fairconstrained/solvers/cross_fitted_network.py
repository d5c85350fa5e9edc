"""Networks under bounds on means of few rows: small networks side by side, joined by numbers of rows not seen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.models import LinearModel, Perceptron
from fairconstrained.models.parts import LastLayer
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import Callback, Recorder, SolverResult, Status, solver_state
from fairconstrained.solvers._few_rows import FewDirections
from fairconstrained.solvers._newton_coordinates import has_convex_losses
from fairconstrained.solvers._options import Count
from fairconstrained.solvers._span_searches import InSpan, SpanSearches
from fairconstrained.solvers.adam_lagrangian import AdamLagrangian
from fairconstrained.solvers.cross_fitted_models import CrossFittedModels, fewest_in_cells, has_few_in_cells
from fairconstrained.solvers.cross_fitted_span import CrossFittedSpan
from fairconstrained.solvers.span import Span
from fairconstrained.views import RowLosses, Stochastic

__all__ = ["CrossFittedNetwork"]

#: Rows of every compared cell from which on it suits; numbers chosen by fewer are chosen by chance.
_ROWS = 50
#: Rows of the smallest compared cell for each feature, below which it suits. With more, the optimism of one network is
#: small enough to be made up for.
_FEW_ROWS = 20
#: Units of the layers of a small network at least.
_UNITS = 4
#: Ridge of the regressions on the last layer, relative to the mean square of its units.
_RIDGE = 1e-3


@dataclass(frozen=True)
class CrossFittedNetwork(AdamLagrangian):
    r"""Small networks side by side, joined by a few numbers that are chosen on rows which the networks have not seen.

    With few rows for each feature, a network keeps a bound on the difference of two groups' losses because it has
    memorised rows, and does not keep it on new rows. At a good model small steps hardly have another way: the slope of
    a row's loss in its score is the probability less the label, which the features do not tell, so that it is noise.
    Only a long step in the scores of all rows that look like members of a group changes the loss of the group on new
    rows. So the target and the groups are learned without bounds, by small networks whose hidden layers fill those of
    the network. With the scores :math:`h_0` of that
    of the target and :math:`h_1, \ldots` of those that tell the groups, the scores of the network are

    .. math:: s = b + \sum_j a_j h_j + \sum_j c_j r_j,

    where :math:`r_j` is what the last layer can make that is nearest to :math:`\max(h_j - \bar h_j, 0)` on the rows
    that the networks have seen, by a ridge regression, with the mean :math:`\bar h_j` of these rows. The few numbers a,
    b and c solve the problem as in `CrossFitted` for few rows: with scores by networks without one fold after the
    other, so that kappa bounds the metrics of rows which they have not seen, and those of the training rows as well,
    and with a margin for what the numbers themselves overfit. If none keep both bounds, `AdamLagrangian` takes the
    problem on the training rows alone.

    Small networks are trained by the first part of `AdamLagrangian`, whose options they have; ``error_weight`` has no
    effect on them, and ``max_time`` is shared among them. Two groups take one network beside that of the target, more
    groups one for each, and there are ``n_folds + 1`` of every kind.

    Takes the networks of ``hidden_layer_sizes``, with one score for all groups and hidden layers of at least four units
    for each small network, and bounds on means over the rows of a few groups that do not overlap.

    Parameters
    ----------
    n_folds : int, default=5
        Folds of the rows, which are left out one after the other.

    References
    ----------
    Wolpert, Stacked generalization, Neural Networks 5(2), 1992. Menon, Williamson, The cost of fairness in binary
    classification, FAT* 2018: proposition 4, for thresholds that depend on the probability of the group.
    """

    name: ClassVar[str] = "cross_fitted_network"
    is_final: ClassVar[bool] = True
    bounds_unseen_rows: ClassVar[bool] = True
    continues: ClassVar[bool] = False

    n_folds: Count = 5

    @classmethod
    @override
    def obstacle(cls, problem: Problem) -> str:
        if not all(isinstance(c, RowLosses) and c.bounds_metric and not c.n_aux for c in problem.constraints):
            return "bounds on means over the rows of a few groups"
        if not problem.works_on_other_rows:
            return "terms that can be measured on a part of the rows"
        if problem.data.unions is not None:
            return "groups that do not overlap"
        if type(problem.model) is not Perceptron or problem.model.n_outputs > 1:
            return "a network of hidden_layer_sizes with one score for all groups"
        if _part_of_network(problem) is None:
            return f"hidden layers of {_UNITS * _n_networks(problem.data)} units and more"
        return ""

    @classmethod
    def suits(cls, problem: Problem) -> bool:
        """Whether there are so few rows for each feature that a network memorises how to keep the bounds."""
        if problem.domain is not None or not problem.constraints or cls.obstacle(problem):
            return False
        return (
            has_convex_losses(problem)  # steps to the numbers are Newton steps
            and fewest_in_cells(problem, 0) >= _ROWS
            and Span.suits_features(problem)
            and has_few_in_cells(problem, _FEW_ROWS)
        )

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`; from a result for another ``kappa`` it goes on with the small networks.

        The callback gets the records of the search for the numbers.
        """
        deadline = time.perf_counter() + (self.max_time or 0.0)
        if not problem.component_names:
            return self._of_one(deadline).solve(problem, None, random_state, callback)
        recorder = Recorder(callback, self.verbose)
        known = solver_state(start, _Known, problem.data)
        if known is None or known.solver != self:
            known = _Known(self, *self._networks(problem, random_state, deadline))
        heads = _Heads.of(problem, known.networks, self.n_folds)
        run = SpanSearches(heads.problem, recorder, known.n_evaluations)
        kept = FewDirections(run, self.tol).solve(heads.span, random_state)
        if kept is None:
            return self._of_one(deadline).solve(problem, None, random_state, callback)
        params = heads.with_head(0, kept.result.model_state)
        scores = problem.scores(params)
        measured = problem.measured(scores)
        return replace(
            run.ended(kept.result),
            model_state=params,
            status=Status.COMPLETED if measured.excess <= 0 else Status.INFEASIBLE,
            objective=problem.objective_at(params, scores),
            constraint_values=measured.values,
            start=Start(params, fingerprint=problem.data.fingerprint, solver_state=known._replace(chosen=kept.chosen)),
        )

    def _of_one(self, deadline: float, n_left: int = 1) -> AdamLagrangian:
        """The solver that trains one of the networks that are left, which share the time until the deadline, if any."""
        share = None if self.max_time is None else max(deadline - time.perf_counter(), 0.0) / n_left
        options = {option.name: getattr(self, option.name) for option in fields(AdamLagrangian)}
        return AdamLagrangian(**(options | {"max_time": share}))

    def _networks(
        self, problem: Problem, rng: np.random.Generator, deadline: float
    ) -> tuple[list[list[np.ndarray]], int]:
        """Small networks of all rows, and of those without one fold after the other: of the target, and of the groups.

        Also returns the evaluations that they took, in units of the whole network and all rows.
        """
        model, folds = _part_of_network(problem), problem.data.folds(self.n_folds)
        seeds = rng.integers(2**62, size=_n_networks(problem.data))
        rest = (np.flatnonzero(folds != number) for number in range(self.n_folds))
        networks: list[list[np.ndarray]] = []
        n_evaluations, n_left = 0.0, (self.n_folds + 1) * seeds.size
        for data in (problem.data, *map(problem.data.part, rest)):
            networks.append([])
            for seed, y in zip(seeds, _targets(data), strict=True):
                own = replace(data, y=y)
                objective = cast(Stochastic, problem.objective).on(own)
                small = replace(problem, objective=objective, constraints=(), data=own, model=model)
                found = self._of_one(deadline, n_left).solve(small, None, np.random.default_rng(seed))
                n_left -= 1
                networks[-1].append(found.model_state)
                n_evaluations += found.n_evaluations * data.n_samples / problem.data.n_samples
        return networks, int(np.ceil(n_evaluations * model.n_params / problem.n_params))

    @override
    def tells_folds(self, problem: Problem) -> bool:
        return not self.obstacle(problem)

    @override
    def without_folds(self, problem: Problem, result: SolverResult) -> list[np.ndarray] | None:
        """Implement `Solver.without_folds`, with the networks of the folds and numbers that are solved for again."""
        known = solver_state(result.start, _Known)
        if known is None or known.chosen is None:
            return None
        heads, chosen, states = _Heads.of(problem, known.networks, self.n_folds), known.chosen, []
        for fold in range(self.n_folds):
            part = heads.span.without(fold, np.flatnonzero(heads.span.folds != fold))
            numbers = chosen.solved_again(chosen.problem_in(part, heads.without(fold)), self.tol)
            states.append(heads.with_head(1 + fold, part.lift(numbers)))
        return states


class _Known(NamedTuple):
    """Small networks, as `CrossFittedNetwork._networks` returns them, and the last numbers that joined them."""

    solver: CrossFittedNetwork
    networks: list[list[np.ndarray]]
    n_evaluations: int
    chosen: InSpan | None = None


@dataclass(frozen=True, eq=False)
class _Heads:
    """Networks whose last layers are combinations of the scores of small networks."""

    #: Problem of the last layer of the network of all rows.
    problem: Problem
    #: That of the combinations.
    span: CrossFittedSpan
    #: Networks of all rows and without one fold after the other, whose last layers are zero.
    networks: list[np.ndarray]  # of shape (n_params,)
    #: Places of the last layer in their parameters.
    entries: np.ndarray  # of int
    #: Outputs of the layer before the last one of the networks without a fold.
    by_fold: list[np.ndarray]  # of shape (n_samples, n_last)

    @classmethod
    def of(cls, problem: Problem, small: Sequence[Sequence[np.ndarray]], n_folds: int) -> _Heads:
        """Put the small networks of all rows, and of those without a fold, side by side."""
        model, data, folds = cast(Perceptron, problem.model), problem.data, problem.data.folds(n_folds)
        part = _part_of_network(problem)
        networks = [model.side_by_side(part, own) for own in small]
        layers = [cast(LastLayer, model.last_layer(own, data)) for own in networks]
        entries = layers[0].entries
        ends = [np.column_stack([layer.features, np.ones(data.n_samples)]) for layer in layers]
        columns = []
        for number, (own, table) in enumerate(zip(small, ends, strict=True)):
            seen = folds != number - 1
            columns.append(_directions(model.last_layers(part, own), table[seen]))
        features = np.empty((data.n_samples, columns[0].shape[1]))
        for number in range(len(networks) - 1):
            own = folds == number
            features[own] = ends[1 + number][own] @ columns[1 + number]
        n_last = entries.size - 1
        head = replace(problem, model=LinearModel(n_last), data=replace(data, X=ends[0][:, :-1]))
        reduced = replace(problem, model=LinearModel(features.shape[1]), data=replace(data, X=features))
        models = CrossFittedModels([columns[0][:, :1]], [], 0)
        span = CrossFittedSpan(reduced, features, columns[:1], models, [[own] for own in columns[1:]], folds)
        return cls(head, span, networks, entries, [own[:, :-1] for own in ends[1:]])

    def without(self, fold: int) -> Problem:
        """The problem of the last layer of the network without a fold."""
        return replace(self.problem, data=replace(self.problem.data, X=self.by_fold[fold]))

    def with_head(self, number: int, head: np.ndarray) -> np.ndarray:
        """Parameters of one of the networks with a last layer."""
        params = self.networks[number].copy()
        params[self.entries] = head
        return params


def _directions(scores: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Last layers as columns: those of the small networks, and what is next to how far their scores are above the mean.

    A bend at the mean has rows on both sides. At zero some networks would have hardly a row above, and others some, so
    that the same number would mean another thing for the networks without a fold.

    Parameters
    ----------
    scores : ndarray of shape (n_last + 1, n_networks)
        Last layers of the small networks.
    table : ndarray of shape (n_rows, n_last + 1)
        Features of the last layer, and ones.
    """
    gram = table.T @ table / len(table)
    ridge = _RIDGE * np.trace(gram[:-1, :-1]) / (len(gram) - 1) * np.eye(len(gram))
    ridge[-1, -1] = 0.0
    own = table @ scores
    above = np.maximum(own - own.mean(axis=0), 0.0)
    return np.column_stack([scores, np.linalg.lstsq(gram + ridge, table.T @ above / len(table), rcond=None)[0]])


def _n_networks(data: FairData) -> int:
    """Number of the small networks of some rows."""
    return 1 + _n_memberships(data)


def _n_memberships(data: FairData) -> int:
    """Number of the networks that tell groups."""
    n_groups = data.n_groups - data.n_ignored
    return n_groups if n_groups > 2 else 1


def _targets(data: FairData) -> list[torch.Tensor]:
    """The target, and membership in every group as -1 or +1; of two groups that in the first one."""
    codes = torch.from_numpy(data.codes)
    return [data.y, *(torch.where(codes == group, 1.0, -1.0).double() for group in range(_n_memberships(data)))]


def _part_of_network(problem: Problem) -> Any:
    """The model of the small networks; None where layers have too few units."""
    return cast(Perceptron, problem.model).divided(_n_networks(problem.data), _UNITS)
