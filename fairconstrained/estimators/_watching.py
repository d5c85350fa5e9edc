"""Callbacks and the progress bar that watch a solver, and the summary of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from fairconstrained.callbacks import ProgressBar, watching
from fairconstrained.estimators._outcome import TellsOutcome
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Callback, Solver, SolverResult
from fairconstrained.solvers.resuming import begin_resumable

__all__ = ["WatchesSolver"]


class WatchesSolver(TellsOutcome):
    """Estimators whose solver is watched: by callbacks, and with ``verbose=1`` by a progress bar."""

    @property
    def _solver_verbosity(self) -> int:
        """Verbosity of the solver, which prints its numbers where the user asks for more than a progress bar."""
        return max(int(self.verbose) - 1, 0)

    def _solve(self, solver: Solver, problem: Problem, start: Start | None, rng: np.random.Generator) -> SolverResult:
        """Solve, and let the callbacks watch; one of them may know a state to go on from."""
        with watching(self._watchers(solver, problem), start, partial(self._checked_start, problem)) as (start, watch):
            return self._run(solver, problem, start, rng, watch)

    def _run(
        self,
        solver: Solver,
        problem: Problem,
        start: Start | None,
        rng: np.random.Generator,
        watch: Callback | None,
    ) -> SolverResult:
        """Run the solver."""
        begin_resumable(solver, problem)
        return solver.solve(problem, start, rng, watch)

    def _run_part(
        self, solver: Solver, problem: Problem, start: Start | None, rng: np.random.Generator
    ) -> SolverResult:
        """Run the solver on a part of the rows, where only limits watch."""
        with watching(self._watchers_of_part(problem), start, partial(self._checked_start, problem)) as (start, watch):
            return self._run(solver, problem, start, rng, watch)

    def _watchers_of_part(self, problem: Problem) -> list[Callback]:
        """Functions of a record of a fit to a part of the rows."""
        own = (getattr(callback, "for_part", None) for callback in getattr(self, "callbacks", None) or ())
        return [found for find in own if find is not None and (found := find()) is not None]

    def _watchers(self, solver: Solver, problem: Problem) -> list[Callback]:
        """Functions of a record."""
        callbacks = [*(getattr(self, "callbacks", None) or ())]
        for callback in callbacks:
            if isinstance(callback, type):
                raise ValueError(
                    f"callbacks must be functions of one record, got the class {callback.__name__}. Pass an object "
                    f"of it, {callback.__name__}(...)."
                )
            if not callable(callback):
                raise ValueError(f"callbacks must be functions of one record, got {callback!r}.")
        if self.verbose == 1:
            bounds = self._bounds_anything(problem)  # without, the kappas of the problem are ones that nothing exceeds
            kappas = {c.name: c.kappa if bounds and np.isfinite(c.kappa) else None for c in problem.constraints}
            callbacks.append(ProgressBar(solver.n_epochs(problem), kappas=kappas, unit=solver.unit))
        return callbacks

    def _checked_start(self, problem: Problem, start: Start) -> Start:
        """A state that a callback would go on from; an error if it belongs to another kind of model or other data."""
        if not isinstance(start.model_state, problem.model.state_type):
            raise ValueError(
                f"a callback would go on from an object of type {type(start.model_state).__name__}, which is no state "
                "of this kind of model. Remove the checkpoint of another model, or pass resume=False."
            )
        own = problem.data.fingerprint
        if {start.fingerprint, getattr(start.solver_state, "fingerprint", None)} - {None, own}:
            raise ValueError(
                "a callback would go on from a state that was reached with other data. Remove the checkpoint, or pass "
                "resume=False; in a search every fit needs a file of its own."
            )
        return start

    def _summary(self, problem: Problem, scores: np.ndarray, seconds: float) -> Iterator[str]:
        """Lines that tell how a fit went, in words."""
        yield f"{type(self).__name__}: {self.status_} after {seconds:.2g} s, solver {self.solver_}"
        kappas, minimised = self.named_kappas(), self._minimised()
        for constraint in problem.constraints:
            name = constraint.name
            line = f"  {name}: {self.constraint_values_[name]:.4g} on the {self._bounded_rows}"
            gap = self.new_row_gaps_.get(name)
            if gap is not None and not np.isnan(gap.estimate):
                line += f", about {gap.estimate:.3g} on new rows (standard error {gap.standard_error:.2g})"
            if name in minimised:
                yield f"{line}; it was to be as small as it can be"
            else:
                yield f"{line}; " + ("it has no bound" if kappas[name] is None else f"kappa is {constraint.kappa:g}")
        if found := self._usefulness(problem, scores):
            yield (
                f"  {found.score}: {found.reached:.4f} on the {self._bounded_rows}; {found.constant} has "
                f"{found.of_constant:.4f}"
            )
