"""Choice of the inner bound to fit with, so that a certificate for the outer one may be expected to pass."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from fairconstrained.certification._certify import answers_of
from fairconstrained.certification.bootstrap import resampled, statistic_of
from fairconstrained.certification.evidence import Evidence, evidence_of
from fairconstrained.certification.sample import Sample, strata_of
from fairconstrained.certification.seen_rows import bound_params
from fairconstrained.checks.inputs import without_none
from fairconstrained.constraints import Constraint
from fairconstrained.estimators import BaseFairEstimator
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning
from fairconstrained.metrics import equal_opportunity_gap
from fairconstrained.metrics.registry import info_of
from fairconstrained.model_selection.cell_folds import cell_folds, given_folds
from fairconstrained.model_selection.pipelines import last_step, steps_of, with_steps
from fairconstrained.paths import fairness_path

_T = TypeVar("_T")

__all__ = ["Judge", "Ladder", "Part", "Planner", "calibration_rows"]

#: Resamples for a standard deviation, which they give up to a seventh.
_RESAMPLES = 25
#: Inner bounds up to which all are looked at.
_FEW = 4


@dataclass(frozen=True, eq=False)
class Part:
    """Rows with their groups, weights and strata."""

    X: Any  # {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
    y: np.ndarray  # of shape (n_samples,)
    #: Groups of the rows; None where there are none, as for ``weights`` and ``strata``.
    groups: Any = None
    weights: Any = None
    strata: Any = None

    def take(self, rows: np.ndarray) -> Part:
        """Return some of the rows."""
        columns: tuple[Any, ...] = (self.X, self.y, self.groups, self.weights, self.strata)
        taken: Any = (None if column is None else _safe_indexing(column, rows) for column in columns)
        return Part(*taken)

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the arguments of `fit` besides ``X`` and ``y``."""
        return without_none(sensitive_features=self.groups, sample_weight=self.weights, strata=self.strata)


@dataclass(frozen=True, eq=False)
class Ladder:
    """Models of one estimator for bounds from loose to tight."""

    #: Estimator that the user gave.
    estimator: Any
    #: Whether the metric is to be at least ``kappa``.
    is_floor: bool = False

    @property
    def has_bound(self) -> bool:
        """Whether there is a bound to tighten; otherwise the estimator is fitted as it is."""
        last = last_step(self.estimator)
        if not isinstance(last, BaseFairEstimator):
            return self._kappa in self.estimator.get_params()
        return self.rises or bool(bound_params(last, 1.0))  # none of one that chooses kappa itself

    @property
    def rises(self) -> bool:
        """Whether larger bounds are tighter; not where the estimator bounds something else than a floor."""
        if not isinstance(last_step(self.estimator), BaseFairEstimator):
            return self.is_floor
        return self._floor is not None

    @property
    def _floor(self) -> str | None:
        """The parameter of the package's estimator that holds its one floor; None where there is not exactly one."""
        params = last_step(self.estimator).get_params() if self.is_floor else {}
        found = [name for name, value in params.items() if isinstance(value, Constraint) and value.bounds_from_below]
        return f"{found[0]}__kappa" if len(found) == 1 else None

    @property
    def _kappa(self) -> str:
        """Name of the parameter ``kappa``, which may belong to a nested estimator."""
        is_pipeline = isinstance(self.estimator, Pipeline)
        return f"{self.estimator.steps[-1][0]}__kappa" if is_pipeline else "kappa"

    @property
    def for_plan(self) -> Ladder:
        """Return the same models without their own estimates on new rows, which take as long again as the fit.

        The plan measures the models on rows of its own. Where the estimates are what is bounded, they are needed.
        """
        if not self._of_package:
            return self
        last = last_step(self.estimator)
        settings = last.get_params(deep=False)
        if "new_row_folds" not in settings or settings.get("promise") == "new_rows":
            return self
        without = clone(last).set_params(new_row_folds=None)
        steps = steps_of(self.estimator)
        return replace(self, estimator=with_steps(self.estimator, [*steps[:-1], (steps[-1][0], without)]))

    @property
    def _of_package(self) -> bool:
        return isinstance(last_step(self.estimator), BaseFairEstimator) and self.has_bound

    def fit(self, part: Part, kappas: Sequence[float]) -> list[Any]:
        """Fit one model for every bound; a single one if there is nothing to tighten."""
        name = type(last_step(self.estimator)).__name__
        inner = f"kappa of {name} is an inner bound here, one of the kappas of CertifiedFairClassifier"
        with _explained(inner if self.has_bound else ""):
            return self._fitted(part, kappas)

    def _fitted(self, part: Part, kappas: Sequence[float]) -> list[Any]:
        if self._of_package:
            last = last_step(self.estimator)
            taken = {name: column for name, column in part.metadata.items() if has_fit_parameter(last, name)}
            columns = {name: taken.pop(name, None) for name in ("sensitive_features", "sample_weight")}
            options = {"kappas": kappas, "param": self._floor, "fit_params": taken, **columns}
            return fairness_path(self.estimator, part.X, part.y, **options).models
        settings: list[dict[str, Any]] = [{self._kappa: kappa} for kappa in kappas] if self.has_bound else [{}]
        return [fitted(clone(self.estimator).set_params(**setting), part) for setting in settings]

    def granularity(self, part: Part, kappa: float) -> float:
        """The largest change by a single row of what the model for a bound compares; 0 of a model that does not say."""
        (model,) = self.fit(part, [kappa])
        return max(getattr(last_step(model), "granularity_", {}).values(), default=0.0)


class FitRefused(ValueError):
    """A fit to a part of the rows refuses its bound, or the rows; the message is that of its error."""


@contextmanager
def _explained(circumstances: str) -> Iterator[None]:
    """Within it, a ValueError also says under which circumstances it came up, in parentheses; nothing if empty."""
    try:
        yield
    except ValueError as error:
        if circumstances:
            error.args = (f"{error} ({circumstances})",)
        raise


def fitted(model: Any, part: Part) -> Any:
    """Fit with the metadata that the model requests, or that its `fit` names."""
    with config_context(enable_metadata_routing=True):
        try:
            requested = get_routing_for_object(model).consumes("fit", part.metadata)
        except NotImplementedError:  # a meta-estimator that cannot route
            requested = set()
        taken = {n: v for n, v in part.metadata.items() if n in requested or has_fit_parameter(model, n)}
        return model.fit(part.X, part.y, **taken)


@dataclass(frozen=True, eq=False)
class Judge:
    """Settings with which the planned models are tested."""

    metric: Callable[..., Any]
    #: Arguments of the metric.
    params: Mapping[str, Any]
    pos_label: Any
    method: str
    loss_bound: tuple[float, float] | None
    n_resamples: int
    random_state: int
    #: All classes; None where there is one positive label.
    classes: Sequence[Any] | None = None

    def answers(self, model: Any, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """Return labels, and the response of a model to the rows."""
        return answers_of(model, part.X, part.y, part.groups, self.metric, self.pos_label, self.random_state)

    def evidence(self, answers: tuple[np.ndarray, np.ndarray], part: Part) -> Evidence:
        """Return the evidence of the answers, which are those to the rows of ``part``."""
        return evidence_of(self._sample(answers, part), self.method)

    def deviation(self, answers: tuple[np.ndarray, np.ndarray], part: Part) -> float:
        """Standard deviation of the gap, by the bootstrap."""
        sample, rng = self._sample(answers, part), np.random.default_rng(self.random_state)
        strata, _ = strata_of(self.metric, sample.params, part.groups, *answers)
        statistic = statistic_of(sample.gap_of, *answers, part.groups, params=sample.params)
        return float(resampled(statistic, strata, _RESAMPLES, rng).std())

    def strata(self, part: Part) -> np.ndarray:
        """The stratum of every row: the numbers of rows that the bound takes as given."""
        return strata_of(self.metric, dict(self.params), part.groups, part.y)[0]

    def check_strata(self, part: Part) -> None:
        """Raise ValueError for strata that could not be divided with the rows, and where the metric lacks its own."""
        own = self._option_of_strata
        if "strata" in self.params:
            raise ValueError(
                "metric_params must not hold strata, which are divided with the rows: pass fit(strata=...)."
            )
        if own is not None and own.default is own.empty and part.strata is None:
            raise ValueError(
                f"{info_of(self.metric).name} compares groups within strata; pass the stratum of every row to "
                "fit(strata=...)."
            )

    @cached_property
    def _option_of_strata(self) -> inspect.Parameter | None:
        """The parameter of the metric that takes strata; None where it has none."""
        return inspect.signature(self.metric).parameters.get("strata")

    def _sample(self, answers: tuple[np.ndarray, np.ndarray], part: Part) -> Sample:
        labels, said = answers
        params, bootstrap = dict(self.params), (self.n_resamples, self.random_state)
        if part.strata is not None and self._option_of_strata is not None:
            params["strata"] = part.strata
        return Sample(self.metric, labels, said, part.groups, params, self.loss_bound, *bootstrap, self.classes)


def calibration_rows(strata: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """Numbers of rows, the same share of every stratum and otherwise at random.

    Strata are the cells whose sizes a certificate takes as given, and no finer ones: where rows are chosen by more than
    that, the counts in the cells are no longer binomial.
    """
    chosen = []
    for code in range(int(strata.max()) + 1):
        rows = rng.permutation(np.flatnonzero(strata == code))
        chosen.append(rows[: max(1, round(fraction * rows.size))])
    return np.sort(np.concatenate(chosen))


@dataclass(frozen=True, eq=False)
class Planner:
    """Predictions of the certificate for inner bounds, from held-out rows of the fit part.

    The formula and its three variances are in the notes of `CertifiedFairClassifier`.
    """

    ladder: Ladder
    #: Rows of the fit.
    part: Part
    judge: Judge
    delta: float
    n_calibration: int
    power: float
    cv: Any  # int or cross-validation splitter

    def searched(self, kappas: Sequence[float], largest: float) -> pd.DataFrame:
        """Look for the loosest inner bound with a prediction of at most ``largest``.

        Predictions fall with the inner bound, up to chance. So of more than a few bounds every second one is looked at,
        each model from the one before, and then the one before the first that is good. If a fit of a fold refuses a
        bound, the tightest bound is left out and the search begins again.

        Parameters
        ----------
        kappas : sequence of float
            Inner bounds, the loosest one first.
        largest : float
            The largest bound with which a certificate passes.

        Returns
        -------
        table : DataFrame
            One row for each bound looked at, the loosest one first: ``kappa``, the ``gap`` on held-out rows, its
            ``std``, the ``bound`` without the allowance, ``planned`` with it. The tightest bound that is not left out
            is among them.

        Raises
        ------
        FitRefused
            If a fit of a fold refuses the loosest bound as well.
        """
        for n_left in range(len(kappas), 1, -1):
            with suppress(FitRefused):
                return self._searched(kappas[:n_left], largest)
        return self._searched(kappas[:1], largest)

    def _searched(self, kappas: Sequence[float], largest: float) -> pd.DataFrame:
        """Implement `searched`, with all of the bounds."""
        last = len(kappas) - 1
        places = list(range(last % 2, last + 1, 2)) if len(kappas) > _FEW else list(range(len(kappas)))
        rows = dict(zip(places, self._planned([kappas[place] for place in places]), strict=True))
        first = next((place for place in places if rows[place]["planned"] <= largest), 0)
        if first - 1 not in rows and first > 0:
            (rows[first - 1],) = self._planned([kappas[first - 1]])
        return pd.DataFrame([rows[place] for place in sorted(rows)])

    def resolvable(self, kappas: Sequence[float]) -> list[float]:
        """Return the bounds that the decisions of a fold can tell from zero, and the loosest one in any case.

        One fold is asked, as this takes a fit; in the others, a group may have a row less. For smooth rates the
        granularity does not tell; `searched` leaves out the bounds that a fit refuses.
        """
        (step,) = self._in_folds(lambda train, test: self.ladder.granularity(train, kappas[0]), most=1)
        least = step / (1 - step) if step < 1 else np.inf
        return [*kappas[:1], *(kappa for kappa in kappas[1:] if kappa >= least)]

    def _planned(self, kappas: Sequence[float]) -> list[dict[str, float]]:
        """Return the rows of some inner bounds, the loosest one first."""

        def held_out(train: Part, test: Part) -> list[tuple[np.ndarray, np.ndarray]]:
            try:
                models = self.ladder.fit(train, kappas)
            except ValueError as error:
                raise FitRefused(str(error)) from error
            return [self.judge.answers(model, test) for model in models]

        by_kappa = zip(*self._in_folds(held_out), strict=True)
        return [self._predicted(kappa, by_fold) for kappa, by_fold in zip(kappas, by_kappa, strict=True)]

    def _predicted(self, kappa: float, by_fold: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
        """Return the row of an inner bound from the answers of the models of the folds."""
        labels, said = (np.concatenate(column) for column in zip(*by_fold, strict=True))
        evidence, scale = self.judge.evidence((labels, said), self._held_out), self.n_calibration / len(self.part.y)
        deviation = self.judge.deviation((labels, said), self._held_out)
        bound = evidence.upper(self.delta, scale * len(self.part.y) / labels.size)
        planned = bound + norm.ppf(self.power) * deviation * np.sqrt(1 / scale + 2)
        return {"kappa": kappa, "gap": evidence.gap, "std": deviation, "bound": bound, "planned": planned}

    def _in_folds(self, of_fold: Callable[[Part, Part], _T], most: int | None = None) -> list[_T]:
        """Return what a function says of the rows to fit on and the held-out rows of the folds; errors name the fold.

        Warnings are left out: what the fits are worth is measured here, and the model that is tested has its own.
        """
        found = []
        for number, split in enumerate(self._splits[:most], start=1):
            fold = f"fold {number} of {len(self._splits)} of the rows to fit on, by which the inner bound is chosen"
            with warnings.catch_warnings(), _explained(f"this is {fold}; a single one of kappas is used without folds"):
                for category in (ConvergenceWarning, FairnessWarning):
                    warnings.simplefilter("ignore", category)
                found.append(of_fold(*split))
        return found

    @cached_property
    def _splits(self) -> list[tuple[Part, Part]]:
        """Rows to fit on and held-out rows of every fold."""
        return [(self.part.take(train), self.part.take(test)) for train, test in self._rows]

    @cached_property
    def _rows(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return _folds(self.cv, self.part)

    @cached_property
    def _held_out(self) -> Part:
        """All held-out rows, fold by fold."""
        return self.part.take(np.concatenate([test for _, test in self._rows]))


def _folds(cv: Any, part: Part) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a splitter; an integer stands for folds with the same share of every cell of group and label."""
    if not isinstance(cv, Integral):
        return given_folds(cv, part.X, part.y, classifier=True)
    cells, _ = strata_of(equal_opportunity_gap, {}, part.groups, part.y)
    return cell_folds(int(cv), cells)
