"""`partial_fit` of the AUC fairness classifier."""

from __future__ import annotations

import copy
from typing import Any, Self, cast

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.metaestimators import available_if

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.checks.protected import protected_code
from fairconstrained.checks.seeds import seed_of
from fairconstrained.constraints.auc_sets import side_names
from fairconstrained.data import FairData
from fairconstrained.estimators._announced import STREAMED, TakesStream, announced_classes, codes_of
from fairconstrained.estimators._bounded import constraint_name
from fairconstrained.estimators._moment_stream import MomentStream, StreamFit, StreamSettings
from fairconstrained.estimators._outcome import Fitted
from fairconstrained.estimators._published import PAPER
from fairconstrained.estimators._rows import checked_rows
from fairconstrained.estimators._saddle_stream import SaddleStream
from fairconstrained.metrics.auc_sets import AUC_METRICS
from fairconstrained.models import ParametricModel
from fairconstrained.problem import Start
from fairconstrained.solvers import MomentSolver, Status, StochasticMirrorDescent, solver_with

__all__ = ["AUCStreaming"]

#: Fitted attributes of `partial_fit` that are found when they are asked for.
_SOLVED = (
    "coef_",
    "intercept_",
    "module_",
    "status_",
    "constraint_values_",
    "granularity_",
    "violation_",
    "objective_",
    "multipliers_",
    "prices_",
    "n_iter_",
    "n_evaluations_",
    "history_",
    "hints_",
    "_model_attributes",
    "_fitted",
)


#: Solvers that `partial_fit` knows, the exact one first.
_STREAMING = (MomentSolver.name, StochasticMirrorDescent.name)


def _can_stream(estimator: AUCStreaming) -> bool:
    """Whether `partial_fit` is there; raises AttributeError, with the reason, if not."""
    quadratic = estimator.surrogate == "quadratic" and isinstance(estimator.constraint, str)
    if quadratic and estimator.solver in ("auto", *_STREAMING):
        return True
    raise AttributeError(
        "partial_fit needs surrogate='quadratic', whose losses are means over single rows or follow from moments, a "
        f"constraint by name, and 'auto' or one of {list(_STREAMING)} as the solver."
    )


class AUCStreaming(TakesStream):
    """Estimators with quadratic losses over pairs, on a stream; the parameters are those of `AUCFairClassifier`."""

    kappa: float | None
    constraint: Any
    protected: Any
    objective: str
    surrogate: str
    module: Any
    hidden_layer_sizes: Any
    fit_intercept: bool
    alpha: float
    _stream: MomentStream | SaddleStream | None

    @available_if(_can_stream)
    @documented_by(STREAMED)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sensitive_features: Any = None,
        *,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Take in more rows of a stream, one or many.

        This needs ``surrogate="quadratic"`` and a constraint by name. `fit`, and the first call after it, start a new
        stream.

        *Linear scores and the AUC as the objective:* the estimator keeps the mean and the covariance of the features
        for every group and class, and no rows. From these it computes the optimum for all rows so far, as
        ``solver="moments"`` does, when the coefficients are read. Rows may come in any order, also one group after the
        other.

        *Networks, and the logistic objective,* or ``solver="mirror_descent"``: every ``batch_size`` rows (an option
        of the solver) are a step of stochastic mirror descent, and fewer rows a shorter step, see
        `fairconstrained.solvers.StochasticMirrorDescent`. No
        rows are kept once every compared set has had one. Features have to be standardised, as their scales are not
        known before the rows come, and the order should be random, or that of time: if groups come one after the other,
        later ones overwrite what was learnt from earlier ones. ``objective_`` and ``constraint_values_`` are means over
        late rows, each measured before the step that uses it; the bound ``kappa`` is not guaranteed, and ``violation_``
        is the excess. All calls use the settings of the first one.

        Parameters
        ----------
        classes : array-like of shape (2,)
            Both classes; needed in the first call only, unless `fit` has seen them.

        Raises
        ------
        AttributeError
            With ``surrogate="ramp"``, with a constraint that is no name, or with a solver other than "auto", "moments"
            and "mirror_descent".
        ValueError
            For invalid data, without ``classes`` in the first call, for a class or group that was not announced, and
            for a solver or options that do not fit a stream of this problem.
        """
        fitted = copy.copy(self)
        fitted._partial_fit(X, y, classes, sensitive_features, groups, sample_weight)
        self.__dict__ = fitted.__dict__
        return self

    def _partial_fit(
        self, X: Any, y: Any, classes: Any, sensitive_features: Any, groups: Any, sample_weight: Any
    ) -> None:
        stream = getattr(self, "_stream", None)
        X, y, weights = checked_rows(self, X, y, sample_weight, multi_output=False, reset=stream is None)
        weights = np.ones(len(y)) if weights is None else weights
        self._remember_rows(X, among_others=stream is not None)
        stream = self._begin_stream(X, classes, sensitive_features, groups) if stream is None else stream.copy()
        self._settings(stream.labels)  # an error, if it is one, now and not when the coefficients are asked for
        codes = codes_of(y, sensitive_features, self.classes_, stream.labels, self._group_columns)
        stream.add(X, codes, y == self.classes_[1], weights)
        self._stream = stream
        for name in (*self.__dict__.get("_model_attributes", ()), *_SOLVED):
            self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        """Fit to the rows of a stream when a fitted attribute is asked for."""
        stream = self.__dict__.get("_stream")
        if name in _SOLVED and stream is not None and self.__sklearn_is_fitted__():
            self.__dict__ |= self._solved(stream.labels, stream.under(self._settings(stream.labels)).solve())
        return self.__getattribute__(name)  # raises the error anew that led here, with its reason

    def __sklearn_is_fitted__(self) -> bool:
        stream = getattr(self, "_stream", None)
        if stream is None:
            return super().__sklearn_is_fitted__()
        return stream.under(self._settings(stream.labels)).is_complete

    def _settings(self, labels: tuple) -> StreamSettings:
        """Return the settings of a stream; a single group has no protected one."""
        given = self.protected is not None and len(labels) > 1
        return StreamSettings(
            metric=constraint_name(self.constraint, AUC_METRICS),
            protected=protected_code(labels, self.protected) if given else None,
            kappa=self.kappa,
            alpha=self.alpha,
            fit_intercept=self.fit_intercept,
            objective_is_auc=self.objective == "auc",
        )

    def _begin_stream(self, X: Any, classes: Any, sensitive_features: Any, groups: Any) -> MomentStream | SaddleStream:
        classes = announced_classes(classes, getattr(self, "classes_", None))
        labels = self._announce(classes, sensitive_features, groups)
        settings = self._settings(labels)
        linear = self.module is None and self.hidden_layer_sizes is None
        if self.solver != StochasticMirrorDescent.name and linear and settings.objective_is_auc:
            return MomentStream(labels, settings)
        if self.solver == MomentSolver.name:
            raise ValueError(
                "solver='moments' needs linear scores and objective='auc'; solver='mirror_descent' takes a stream for "
                "networks and for the logistic objective."
            )
        # a row of zeros says of what shape rows are, and nothing of the scales of features, which are not known yet
        row = FairData.from_arrays(np.zeros((1, *X.shape[1:])), np.ones(1), np.zeros(1, dtype=int), labels)
        model = cast(ParametricModel, self._model(row).portable())
        params = model.init(np.random.default_rng(seed_of(self.random_state)))
        if self.solver_options == PAPER:
            raise ValueError("solver_options='paper' is for fit: the paper has no stream of networks.")
        solver = solver_with(StochasticMirrorDescent.name, self.solver_options or {})
        return SaddleStream(labels, settings, cast(StochasticMirrorDescent, solver), model, params, self._objective())

    def _solved(self, labels: tuple, found: StreamFit) -> dict[str, Any]:
        """The fitted attributes; there are no rows to measure the exact gap on."""
        names = {None: "others"} | {g: str(label) for g, label in enumerate(labels)}
        metric = constraint_name(self.constraint, AUC_METRICS)
        components = side_names(metric, [(names[a], names[b]) for a, b in found.components])
        name = f"{metric}_surrogate"
        attributes = found.model.attributes(found.params, 0.0, 1.0)
        is_vacuous = self.kappa is not None and len(labels) == 1
        return attributes | {
            "status_": (Status.UNCONSTRAINED if is_vacuous else found.status).value,
            "constraint_values_": {name: found.surrogate},
            "granularity_": {name: 0.0},
            "violation_": found.violation,
            "objective_": found.objective,
            "multipliers_": {n: m for n, m in zip(components, found.multipliers.tolist(), strict=True) if m > 0},
            "prices_": {name: float(found.multipliers.sum())},
            "n_iter_": found.n_iter,
            "n_evaluations_": 0,
            "history_": [],
            "hints_": [],
            "_model_attributes": tuple(attributes),
            "_fitted": Fitted(found.model, labels, Start(found.params), 0.0, 1.0),
        }
