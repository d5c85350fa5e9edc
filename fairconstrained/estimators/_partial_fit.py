"""`partial_fit` of the AUC fairness classifier."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.metaestimators import available_if

from fairconstrained._protected import protected_code
from fairconstrained.constraints._auc_sets import side_names
from fairconstrained.estimators._announced import announced_classes, announced_groups, codes_of
from fairconstrained.estimators._base import BaseFairEstimator, Fitted
from fairconstrained.estimators._grouping import as_labels
from fairconstrained.estimators._moment_stream import MomentStream, StreamFit
from fairconstrained.estimators._rows import checked_rows
from fairconstrained.models import LinearModel
from fairconstrained.problem import Start
from fairconstrained.solvers import Status

__all__ = ["MomentStreaming"]

#: What `partial_fit` leaves to be found when it is asked for.
_SOLVED = (
    "coef_",
    "intercept_",
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
    "_model_attributes",
    "_fitted",
)


def _can_stream(estimator: MomentStreaming) -> bool:
    """Whether `partial_fit` is there; raises AttributeError, with the reason, if not."""
    linear = estimator.module is None and estimator.hidden_layer_sizes is None
    if (
        linear
        and (estimator.surrogate, estimator.objective) == ("quadratic", "auc")
        and isinstance(estimator.metric, str)
    ):
        return True
    raise AttributeError(
        "partial_fit keeps moments in place of rows, which suffice for surrogate='quadratic', objective='auc', a "
        "metric by name and linear scores only."
    )


class MomentStreaming(BaseFairEstimator):
    """Estimators of which the moments of a stream are enough; the parameters are those of `AUCFairClassifier`."""

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    kappa: float | None
    metric: Any
    protected: Any
    objective: str
    surrogate: str
    module: Any
    hidden_layer_sizes: Any
    fit_intercept: bool
    alpha: float
    classes_: np.ndarray
    _stream: MomentStream | None

    @available_if(_can_stream)
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
        """Take in more rows of a stream: single points in any order, or groups one after the other.

        Only with ``surrogate="quadratic"``, ``objective="auc"``, linear scores and a metric by name. What is kept is
        the mean and the covariance of the features for every group and class, not the rows. From these the coefficients
        are the optimum for all rows so far, as ``solver="moments"`` finds it, not the state of a stochastic method;
        they are found when they are asked for. `fit` begins anew, and so does the first call after it.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            One row is enough.
        y : array-like of shape (n_samples,)
        classes : array-like of shape (2,)
            Both classes; needed in the first call only, unless `fit` has seen them.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
        groups : array-like of shape (n_groups,) or (n_groups, n_columns), optional
            All groups that may come. None: those of the first call.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : estimator
            Unchanged if an error occurs.

        Raises
        ------
        ValueError
            For invalid data, without ``classes`` in the first call, or for a class or group that was not announced.
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
        stream = self._begin_stream(classes, sensitive_features, groups) if stream is None else stream.copy()
        self._protected(stream)  # an error, if it is one, now and not when the coefficients are asked for
        codes = codes_of(y, sensitive_features, self.classes_, stream.labels)
        stream.add(X, codes, y == self.classes_[1], weights)
        self._stream = stream
        for name in (*self.__dict__.get("_model_attributes", ()), *_SOLVED):
            self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        """What the rows of a stream lead to, found when it is asked for."""
        stream = self.__dict__.get("_stream")
        if name in _SOLVED and stream is not None and self.__sklearn_is_fitted__():
            found = stream.solve(self.metric, self._protected(stream), self.kappa, self.alpha)
            self.__dict__ |= self._solved(stream.labels, found)
        return self.__getattribute__(name)  # raises the error anew that led here, with its reason

    def __sklearn_is_fitted__(self) -> bool:
        stream = getattr(self, "_stream", None)
        if stream is None:
            return super().__sklearn_is_fitted__()
        return stream.is_complete(self.metric, self._protected(stream))

    def _protected(self, stream: MomentStream) -> int | None:
        """Code of the protected group; there is none among a single one."""
        given = self.protected is not None and len(stream.labels) > 1
        return protected_code(stream.labels, self.protected) if given else None

    def _begin_stream(self, classes: Any, sensitive_features: Any, groups: Any) -> MomentStream:
        self.classes_ = announced_classes(classes, getattr(self, "classes_", None))
        labels = announced_groups(sensitive_features, groups, bounded=self.kappa is not None, depth=6)
        self.groups_ = as_labels(() if labels == (None,) else labels)
        return MomentStream(labels)

    def _solved(self, labels: tuple, found: StreamFit) -> dict[str, Any]:
        """The fitted attributes; there are no rows to measure the exact gap on."""
        names = {None: "others"} | {g: str(label) for g, label in enumerate(labels)}
        components = side_names(self.metric, [(names[a], names[b]) for a, b in found.components])
        optimum, intercept = found.optimum, found.intercept if self.fit_intercept else 0.0
        params = np.append(found.coefficients, intercept) if self.fit_intercept else found.coefficients
        name = f"{self.metric}_surrogate"
        model = LinearModel(found.coefficients.size, 1, self.fit_intercept, self.alpha)
        return {
            "coef_": found.coefficients[None],
            "intercept_": np.array([intercept]),
            "status_": (Status.OPTIMAL if optimum.converged else Status.MAX_ITER).value,
            "constraint_values_": {name: found.surrogate},
            "granularity_": {name: 0.0},
            "violation_": optimum.violation,
            "objective_": optimum.objective,
            "multipliers_": {n: m for n, m in zip(components, optimum.multipliers.tolist(), strict=True) if m > 0},
            "prices_": {name: float(optimum.multipliers.sum())},
            "n_iter_": optimum.n_iter,
            "n_evaluations_": 0,
            "history_": [],
            "_model_attributes": ("coef_", "intercept_"),
            "_fitted": Fitted(model, labels, Start(params), 0.0, 1.0),
        }
