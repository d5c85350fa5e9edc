"""AUC optimisation on a stream by stochastic mirror descent: steps on rows of which nothing is kept."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
import torch

from fairconstrained.constraints.auc_sets import both_ways
from fairconstrained.constraints.quadratic_terms import pair_terms, quadratic_components
from fairconstrained.data import FairData
from fairconstrained.estimators._moment_stream import StreamFit, StreamSettings, normal_threshold
from fairconstrained.estimators.threads import limited_threads
from fairconstrained.models import ParametricModel
from fairconstrained.objectives import Objective
from fairconstrained.pairwise import PairTerms
from fairconstrained.solvers import Status, StochasticMirrorDescent
from fairconstrained.solvers.published.saddle_form import SaddleForm
from fairconstrained.solvers.published.saddle_steps import LateAverages, SaddleSteps
from fairconstrained.views import SingleRows

__all__ = ["SaddleStream"]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows with the codes of their groups, whether they are positive, and their weights, which are positive."""

    X: Any
    codes: np.ndarray
    positive: np.ndarray
    weights: np.ndarray

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Several parts, one after the other."""
        X = [part.X for part in parts]
        return cls(
            sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.vstack(X),
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("codes", "positive", "weights")),
        )

    def __getitem__(self, rows: slice | np.ndarray) -> _Rows:
        return _Rows(self.X[rows], self.codes[rows], self.positive[rows], self.weights[rows])

    def data(self, labels: tuple) -> FairData:
        """The rows in the order of solvers; a group may have none of them."""
        return FairData.from_arrays(self.X, np.where(self.positive, 1.0, -1.0), self.codes, labels, self.weights)


@dataclass(eq=False)
class SaddleStream:
    """Stochastic mirror descent on the rows of a stream, in the order in which they come.

    The probabilities of the sets are those among the rows so far. Rows wait until every set that is compared has one.
    The stream goes on with the settings of its first call.
    """

    #: Labels of all groups that may come.
    labels: tuple
    settings: StreamSettings
    #: Solver that has the step sizes.
    solver: StochasticMirrorDescent
    model: ParametricModel
    #: Parameters at first.
    params: np.ndarray  # of shape (n_params,)
    objective: Objective
    _mass: np.ndarray = field(init=False)
    _n_rows: int = field(default=0, init=False)
    _n_steps: int = field(default=0, init=False)
    _waiting: list[_Rows] = field(default_factory=list, init=False)
    _steps: SaddleSteps | None = field(default=None, init=False)
    _late: LateAverages = field(init=False)
    _shift: np.ndarray | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._mass = np.zeros(2 * len(self.labels))

    def copy(self) -> Self:
        """A stream of its own; what no step changes is shared."""
        new = copy.copy(self)
        new._mass, new._waiting = self._mass.copy(), list(self._waiting)
        if self._steps is not None:
            new._steps, new._late = copy.copy(self._steps), self._late.copy()
        return new

    def under(self, settings: StreamSettings) -> Self:
        """Return the stream itself: its steps depend on the settings that it began with."""
        return self

    @property
    def is_complete(self) -> bool:
        """Whether steps have been taken."""
        return self._steps is not None

    def add(self, X: Any, codes: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> None:
        """Take steps on mini-batches of the rows, in their order; none while a set has no rows."""
        rows = _Rows(X, codes, positive, weights)[np.flatnonzero(weights > 0)]
        if self._steps is None:
            self._waiting.append(rows)
            there = {cell for some in self._waiting for cell in np.unique(self._cells(some)).tolist()}
            if not self.settings.has_rows(there, len(self.labels)):
                return
            rows = _Rows.joined(self._waiting)
            self._begin(rows)
            self._waiting = []
        with limited_threads(1):
            for first in range(0, len(rows.codes), self.solver.batch_size):
                self._take(rows[first : first + self.solver.batch_size])

    def _cells(self, rows: _Rows) -> np.ndarray:
        """Numbers of the cells of group and label, positives first; ndarray of shape (n_rows,)."""
        return rows.codes + len(self.labels) * ~rows.positive

    @cached_property
    def _pair_terms(self) -> list[PairTerms]:
        """The losses over pairs of the objective and of the constraint, whose sets are unions of cells."""
        alike, no_rows = np.ones(self._mass.size), torch.empty(0, dtype=torch.float64)
        positives, negatives = np.split(np.arange(alike.size), 2)
        pairs = PairTerms.none(no_rows)
        if self.settings.objective_is_auc:
            pairs = pair_terms([[(tuple(positives.tolist()), tuple(negatives.tolist()))]], alike, 0.0)
        _, differences = self.settings.differences(len(self.labels))
        if self.settings.kappa is None or not differences:
            return [pairs]
        return [pairs, pair_terms(quadratic_components(differences), alike, -1.0).plus(-self.settings.kappa)]

    @cached_property
    def _form(self) -> SaddleForm:
        return SaddleForm.joined(self._pair_terms)

    @cached_property
    def _members(self) -> np.ndarray:
        """Which cells every set has; ndarray of shape (n_sets, n_cells)."""
        return np.concatenate([terms.sets.reshape(-1, self._mass.size) for terms in self._pair_terms]) > 0

    def _begin(self, rows: _Rows) -> None:
        """Prepare the steps. The scales of features are not known yet, so that they are taken as they are."""
        _, one_each = np.unique(self._cells(rows), return_index=True)
        few = rows[one_each].data(self.labels)  # which are kept
        row_mean = cast(SingleRows, self.objective.bind(few)).row_mean
        x = np.concatenate([self.params, np.zeros(2 * self._form.c1.size)])
        self._steps = self.solver.steps(self.model, row_mean, self._form, x)
        self._late = LateAverages(self._steps.averages)
        self._shift = next(iter(self.model.shift_directions(few, shared=True)), None)

    def _take(self, rows: _Rows) -> None:
        """One step."""
        assert self._steps is not None
        np.add.at(self._mass, self._cells(rows), rows.weights)
        self._n_rows += len(rows.codes)
        data = rows.data(self.labels)
        importance = rows.weights.mean() * self._n_rows / self._mass.sum()  # over the mean of all weights so far
        data = replace(data, weights=importance * data.weights)
        members = self._members[:, self._cells(rows)[data.order]]
        of_sets = self._members @ self._mass  # none of a set without rows so far counts below
        shares = self._mass.sum() / np.where(of_sets > 0, of_sets, 1.0)
        weights = (members * shares[:, None] * data.weights.numpy()).T
        share = len(rows.codes) / self.solver.batch_size
        self._steps.take(0.0, data, weights, self._late.newest, share)
        self._late.roll()
        self._n_steps += 1

    def solve(self) -> StreamFit:
        """The mean of the late iterates; objective and surrogates are those of rows before a step was taken on them."""
        assert self._steps is not None
        sums = self._late.sums
        x = sums.x / sums.n_steps
        params = self._steps.params(x)
        if self._shift is not None and self.settings.objective_is_auc:
            params = params + self._intercept(x) * self._shift
        values = self._steps.dual.largest(sums.u / sums.tau, sums.v / sums.tau)
        sides, _ = self.settings.differences(len(self.labels))
        bounded = values.size > 1
        return StreamFit(
            model=self.model,
            params=params,
            status=Status.COMPLETED,
            objective=float(values[0]),
            violation=float(values[1:].max(initial=0.0)),
            # what is not bounded is not measured either
            surrogate=float(values[1:].max()) + (self.settings.kappa or 0.0) if bounded else np.nan,
            multipliers=sums.multipliers,
            components=both_ways(sides) if bounded else (),
            n_iter=self._n_steps,
        )

    def _intercept(self, x: np.ndarray) -> float:
        """Where normal scores with the means and the mean variance of the classes are told apart best."""
        assert self._steps is not None
        sums, form = self._late.sums, self._form
        a, b = x[self.model.n_params :].reshape(2, -1)[:, 0]  # the mean scores of positives and negatives
        c1, c2 = form.c1[0], form.c2[0]
        difference = sums.v[0] / sums.tau / (2 * c1)
        variances = sums.u[0] / sums.tau / c1 - c2 * (c2 - 2 * difference)  # F without its first part
        weights = self._mass.reshape(2, -1).sum(axis=1)
        return normal_threshold(np.array([a, b]), max(variances / 2, 0.0), weights)
