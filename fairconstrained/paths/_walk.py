"""Fits for one value after the other, each from the one before, and what each of them is worth."""

from __future__ import annotations

import inspect
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from tqdm import tqdm

from fairconstrained.constraints import Constraint
from fairconstrained.estimators import BaseFairEstimator
from fairconstrained.model_selection.pipelines import last_step, steps_of, with_steps
from fairconstrained.paths._rows import Rows
from fairconstrained.paths._scoring import PathScorer

__all__ = ["Plan", "Walk", "begin_fold", "checked_last_step", "walk", "walk_fold"]

#: A bound with which an estimator knows what it would bound; the value does not enter the metric.
_ANY_BOUND = 0.5


@dataclass(frozen=True, eq=False)
class Plan:
    """The estimator that is fitted for every value, and how its models are measured."""

    #: As the user gave it: one of the package, or a pipeline that ends in one.
    estimator: Any
    #: The parameter of the last step that takes the values; None for its bound.
    param: str | None
    scorers: tuple[PathScorer, ...]
    #: Whether a fit begins where the one before has ended.
    warm: bool = True
    verbose: int = 0

    @property
    def last(self) -> BaseFairEstimator:
        """The estimator of the package."""
        return checked_last_step(self.estimator)

    @property
    def last_name(self) -> str:
        """Name of the class of the last step, of whose parameters messages speak."""
        return type(self.last).__name__

    @property
    def value_name(self) -> str:
        """Name of the values."""
        return self.param or "kappa"

    def transformers(self) -> Pipeline | None:
        """New transformers of the pipeline, not fitted; None if there are none."""
        steps = steps_of(clone(self.estimator))[:-1]
        options = self.estimator.get_params(deep=False) if isinstance(self.estimator, Pipeline) else {}
        return Pipeline(**options | {"steps": steps}) if steps else None

    def fit_transformed(self, rows: Rows, transformers: Pipeline | None) -> Rows:
        """Rows as the last step sees them in training."""
        return rows.fit_transformed(transformers, getattr(self.estimator, "transform_input", None) or ())

    def settings(self, value: float) -> dict[str, Any]:
        """The parameters of the last step for a value; infinity is no bound."""
        given = None if np.isinf(value) else float(value)
        return self.last._bound_params(given) if self.param is None else {self.param: given}

    def fitted(self, value: float, previous: BaseFairEstimator | None, rows: Rows, is_fold: bool) -> BaseFairEstimator:
        """The model for a value, from the ``previous`` one if there is one; ``is_fold`` if other rows are held out."""
        model = clone(self.last).set_params(**self.settings(value))
        if is_fold and model.promise == "training":
            model.set_params(new_row_folds=None)  # the held-out rows tell
        if self.sets_bound:  # another parameter may change how rows are taken
            model._shared = rows.shared
        if not self.warm or previous is None:
            return model.fit(rows.seen, rows.y, **rows.metadata)
        own = model.warm_start
        _adopt(model, previous).set_params(warm_start=True).fit(rows.seen, rows.y, **rows.metadata)
        return model.set_params(warm_start=own)

    @property
    def sets_bound(self) -> bool:
        """Whether the values are bounds, so that a larger one allows more."""
        of, _, name = (self.param or "kappa").rpartition("__")
        bounded = self.last.get_params().get(of)
        return name == "kappa" and not (isinstance(bounded, Constraint) and bounded.bounds_from_below)

    def bounded(self, names: Iterable[str]) -> list[str]:
        """Those of the constraints whose bound takes the values."""
        own = [name for name in names if self.param == f"constraint__{name}__kappa"]
        return own or list(names)

    def price(self, model: BaseFairEstimator) -> float:
        """By how much the objective would fall per unit of the value; NaN where that is not known."""
        if model.multipliers_ is None or not self.sets_bound:
            return float("nan")
        return float(sum(model.prices_[name] for name in self.bounded(model.prices_)))

    def measured(self, model: BaseFairEstimator, rows: Rows) -> dict[str, float]:
        """The exact metrics of a model on any rows, also of one that bounds nothing."""
        judge = model
        if not model.constraint_values_ and self.param is None:
            judge = _adopt(clone(self.last).set_params(**self.last._bound_params(_ANY_BOUND)), model)
        return judge.constraint_values(rows.seen, rows.y, **_measured_columns(judge, rows))

    def answering(self, model: BaseFairEstimator, rows: Rows) -> BaseFairEstimator:
        """Return what answers for the rows that a model was fitted on as it does for new rows."""
        return model._answering_rows_of_fit(rows.seen, rows.y, **_measured_columns(model, rows))

    def assembled(self, transformers: Pipeline | None, model: BaseFairEstimator) -> Any:
        """Return the model that the user gets for a fitted last step."""
        before = [] if transformers is None else transformers.steps
        return with_steps(self.estimator, [*before, (steps_of(self.estimator)[-1][0], model)])


def _measured_columns(model: BaseFairEstimator, rows: Rows) -> dict[str, Any]:
    """The metadata that a model takes beside rows to measure on."""
    taken = inspect.signature(model.constraint_values).parameters
    return {name: value for name, value in rows.metadata.items() if name in taken}


@dataclass(frozen=True, eq=False)
class Fold:
    """Training and held-out rows as the last step sees them, and the transformers that were fitted on the former."""

    train: Rows
    test: Rows
    transformers: Pipeline | None


@dataclass
class Walk:
    """Models and records of some fits."""

    #: One for each value.
    records: list[dict[str, Any]] = field(default_factory=list)
    #: The last steps, one for each value; or, of a fold, only the last one.
    models: list[BaseFairEstimator] = field(default_factory=list)
    #: Warnings of the measurements; those of the fits are in the records.
    warnings: list[tuple[type[Warning], str]] = field(default_factory=list)
    #: Fold on which the fits are to go on.
    fold: Fold | None = None

    @property
    def last(self) -> BaseFairEstimator | None:
        """The model to go on from."""
        return self.models[-1] if self.models else None

    def then(self, other: Walk) -> Walk:
        """Both, one after the other."""
        return Walk(self.records + other.records, self.models + other.models, self.warnings + other.warnings)


def checked_last_step(estimator: Any) -> BaseFairEstimator:
    """The estimator of the package in what the user gave. Raises TypeError if there is none."""
    last = last_step(estimator)
    if not isinstance(last, BaseFairEstimator):
        raise TypeError(
            "estimator must be one of fairconstrained, or a Pipeline that ends in one; got "
            f"{'a Pipeline that ends in ' if last is not estimator else ''}{last!r}."
        )
    return last


def walk(
    plan: Plan,
    rows: Rows,
    values: Sequence[float],
    previous: BaseFairEstimator | None = None,
    transformers: Pipeline | None = None,
) -> Walk:
    """Fit on ``rows``, which are transformed, for one value after the other, and measure on the same rows."""
    done = Walk()
    with _recorded(done.warnings):
        for value in (bar := _progress(plan, values, "all rows", 0)):
            record, model = _step(plan, rows, value, previous, "")
            with _named(plan, value, ""):
                answering = plan.answering(model, rows)
                whole = plan.assembled(transformers, answering)
                record["exact"] = model.constraint_values_ or plan.measured(answering, rows)
                record |= _gaps(model, record["exact"]) | _on_new_rows(model)
                record |= {f"train_{scorer.name}": scorer(answering, whole, rows) for scorer in plan.scorers}
            if previous is not None:
                model._share_rows(previous)
            done.records.append(record)
            done.models.append(model)
            bar.set_postfix_str(_words(plan, value, record["gap"], record["objective"]))
            previous = model
    return done


def begin_fold(
    plan: Plan,
    rows: Rows,
    numbers: tuple[np.ndarray, np.ndarray],
    values: Sequence[float],
    name: str,
    place: int,
    goes_on: bool = False,
) -> Walk:
    """Fit the transformers on the training rows of a fold, and then for one value after the other."""
    begun = Walk()
    with _recorded(begun.warnings):
        transformers = plan.transformers()
        train = plan.fit_transformed(rows.take(numbers[0]), transformers)
        fold = Fold(train, rows.take(numbers[1]).transformed(transformers), transformers)
    done = begun.then(walk_fold(plan, fold, values, None, name, place))
    return replace(done, fold=fold if goes_on else None)


def walk_fold(
    plan: Plan, fold: Fold, values: Sequence[float], previous: BaseFairEstimator | None, name: str, place: int
) -> Walk:
    """Fit on the training rows of a fold for one value after the other, and measure on its held-out rows."""
    done = Walk()
    with _recorded(done.warnings):
        for value in (bar := _progress(plan, values, name, place)):
            record, model = _step(plan, fold.train, value, previous, name)
            whole = plan.assembled(fold.transformers, model)
            with _named(plan, value, name):
                record["test"] = _gaps(model, _held_out(plan, model, fold.test))
                record["test"] |= {scorer.name: scorer(model, whole, fold.test) for scorer in plan.scorers}
            done.records.append(record)
            done.models[:] = [model]
            bar.set_postfix_str(_words(plan, value, record["test"]["gap"], record["objective"]))
            previous = model
    return done


def _step(
    plan: Plan, rows: Rows, value: float, previous: BaseFairEstimator | None, name: str
) -> tuple[dict[str, Any], BaseFairEstimator]:
    """The model for a value, and what it says of itself."""
    began = time.perf_counter()
    warned: list[tuple[type[Warning], str]] = []
    with _recorded(warned), _named(plan, value, name):
        model = plan.fitted(value, previous, rows, is_fold=bool(name))
    record = {
        "kappa": value,
        "objective": model.objective_,
        "status": model.status_,
        "price": plan.price(model),
        "multipliers": None if model.multipliers_ is None else dict(model.multipliers_),
        "n_evaluations": model.n_evaluations_,
        "seconds": time.perf_counter() - began,
        "granularity": model.granularity_,
        "excess": model._excess,
        "warned": warned,
    }
    return record, model


def _held_out(plan: Plan, model: BaseFairEstimator, rows: Rows) -> dict[str, float]:
    """The metrics on held-out rows; raises ValueError where they do not say what the training rows do."""
    values = plan.measured(model, rows)
    if model.constraint_values_ and not values:
        raise ValueError(
            f"there is nothing on the held-out rows to measure {list(model.constraint_values_)} by. Give all rows "
            "their sensitive_features, or leave out cv."
        )
    return values


def _on_new_rows(model: BaseFairEstimator) -> dict[str, float]:
    """Columns of the largest estimate for new rows and its standard error; NaN where there is none."""
    others = model._bounded_from_below()
    gaps = [gap for name, gap in model.new_row_gaps_.items() if not np.isnan(gap.estimate) and name not in others]
    estimate, error, _ = max(gaps, default=(np.nan, np.nan, ""))
    return {"new_row_gap": estimate, "new_row_standard_error": error}


def _gaps(model: BaseFairEstimator, values: Mapping[str, float]) -> dict[str, float]:
    """Columns of the gaps, NaN where rates are bounded from below alone; nothing to compare is a gap of zero."""
    each = {f"gap_{name}": value for name, value in values.items()} if len(values) > 1 else {}
    gaps = [values[name] for name in values.keys() - model._bounded_from_below()]
    return {"gap": float(max(gaps, default=np.nan if values else 0.0)), **each}


def _adopt(model: BaseFairEstimator, previous: BaseFairEstimator) -> BaseFairEstimator:
    """Give ``model`` what ``previous`` has learnt, and leave it its own parameters."""
    learnt = {name: value for name, value in vars(previous).items() if name not in vars(model)}
    start = learnt["_fitted"].start
    if hasattr(start.solver_state, "epoch"):  # of a solver whose epochs are over; for another value they begin anew
        learnt["_fitted"] = replace(learnt["_fitted"], start=replace(start, solver_state=None))
    model.__dict__ |= learnt
    return model


def _progress(plan: Plan, values: Sequence[float], name: str, place: int) -> Any:
    return tqdm(values, desc=name, unit=" fits", position=place, leave=False, disable=plan.verbose < 1)


def _words(plan: Plan, value: float, gap: float, objective: float) -> str:
    """How far a bar has come: the last value, and what it has led to."""
    bound = "no bound" if np.isinf(value) else f"{plan.value_name} {value:.4g}"
    return f"{bound}: gap {gap:.4g}, objective {objective:.4g}"


@contextmanager
def _named(plan: Plan, value: float, name: str) -> Iterator[None]:
    """Say of an error of which estimator, for which value and on which rows it is, whose parameters it may name.

    Without a bound, on all rows, it speaks for itself.

    It is a plain ValueError in any case: an invalid parameter of the estimator would be called one of `fairness_path`.
    """
    try:
        yield
    except ValueError as error:
        where = ", ".join(([] if np.isinf(value) else [f"{plan.value_name}={value:.6g}"]) + ([name] if name else []))
        raise ValueError(f"{plan.last_name} with {where}: {error}" if where else str(error)) from error


@contextmanager
def _recorded(caught: list[tuple[type[Warning], str]]) -> Iterator[None]:
    """Keep warnings for later: those of other processes would be lost, and those of ten fits are too many.

    Which warnings are recorded belongs to the process, so those of threads beside the main one go their usual way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        yield
    caught += [(record.category, str(record.message)) for record in records]
