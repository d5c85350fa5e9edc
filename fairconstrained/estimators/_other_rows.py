"""Fitted estimators on other rows: scores, and the exact values of what they bound."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from fairconstrained.checks.inputs import check_group_of_every_row
from fairconstrained.checks.messages import BY_ROUTING
from fairconstrained.data import FairData
from fairconstrained.estimators._outcome import Target, TellsOutcome
from fairconstrained.estimators._rows import checked_features, checked_rows
from fairconstrained.estimators.grouping import Stratified
from fairconstrained.groups import in_order_of

__all__ = ["MeasuresOtherRows"]


class MeasuresOtherRows(TellsOutcome):
    """Estimators that predict from scores, and measure what they bound on any rows."""

    @abstractmethod
    def _bound_params(self, kappa: float | None) -> dict[str, Any]:
        """The parameters with which ``kappa`` bounds what ``constraint_values_`` reports; None is no bound.

        Raises ValueError if nothing is bounded here.
        """

    def _checked_rows(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> tuple[Any, np.ndarray, Any]:
        """Rows as the model takes them, see `checked_rows`; a model may take others, such as missing values."""
        return checked_rows(self, X, y, sample_weight, **options)

    def _checked_features(self, X: Any) -> Any:
        """Features of other rows as the model takes them, as `_checked_rows` returns them."""
        return checked_features(self, X)

    def _without_bound(self) -> Self:
        """Return this fitted model with the parameters of no bound."""
        free = clone(self)
        free.__dict__ = {**self.__dict__, **free.__dict__}
        return free.set_params(**free._bound_params(None))

    def _measuring(self) -> Self:
        """Return this model without bound, and with the groups of every constraint as `fit` compared them."""
        free = self._without_bound()
        free._known_groups = getattr(self, "_compared_as", ())
        return free

    @abstractmethod
    def _known_target(self, y: np.ndarray) -> Target:
        """Targets of other rows in the units of the solver; raises ValueError for a class that `fit` has not seen."""

    def constraint_values(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, strata: Any = None
    ) -> dict[str, float]:
        """The metrics that the estimator bounds, exactly, on any rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Target.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The group of every row, as in `fit`.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.
        strata : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The stratum of every row, as in `fit`.

        Returns
        -------
        values : dict
            Values by the constraint's name, as in ``constraint_values_``; empty for a single group, unless a
            bound is a floor or a ceiling.

        Raises
        ------
        ValueError
            For invalid data, without the groups that were compared in `fit`, and for a group of a table of booleans
            that has no rows; other groups are left out then.
        """
        data, scores = self._measured_rows(X, y, Stratified.joined(sensitive_features, strata), sample_weight)
        return self._with_groups(self._values_on(data, scores), sensitive_features)

    def _with_groups(self, values: dict[str, float], sensitive_features: Any) -> dict[str, float]:
        """Return the values on other rows; raises ValueError if there are none because groups were left out."""
        if self.constraint_values_ and not values and sensitive_features is None:
            raise ValueError(
                f"there is nothing on these rows to measure {list(self.constraint_values_)} by: pass "
                "sensitive_features, the group of every row."
            )
        return values

    def _answering_rows_of_fit(self, X: Any, y: Any, **columns: Any) -> Self:
        """Return what answers for the rows of the fit, given again with its columns, as it answers for new rows.

        That is this model itself, unless it has memorised these rows and knows models that have not seen them.
        """
        return self

    def _values_on(self, data: FairData, scores: np.ndarray) -> dict[str, float]:
        """The metrics on rows whose scores are known."""
        if self._holds_vacuously(data):
            return {}
        target = Target(data.y.numpy(), self._fitted.offset, self._fitted.scale)
        bound = self._measuring()._bound_constraints(data, target)
        return {c.name: c.metric(scores) for c in bound if c.compares}

    def _measured_rows(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> tuple[FairData, np.ndarray]:
        """Rows as terms see them, and their scores in the units of the solver and in the order of the data."""
        check_is_fitted(self)
        X, y, sample_weight = self._checked_rows(X, y, sample_weight, reset=False)
        target = self._known_target(y)
        given = Stratified.of(sensitive_features)
        given = given._replace(features=in_order_of(given.features, self._group_columns))
        data = copy.copy(self)._data(X, target, given, sample_weight, self._fitted.small)
        scores = (self._scores_of(X, given.features) - target.offset) / target.scale
        return data, scores[data.order]

    def _scores(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Scores of new rows in the units of ``y``; ndarray of shape (n_samples,)."""
        check_is_fitted(self)
        X = self._checked_features(X)
        return self._scores_of(X, sensitive_features)

    def _scores_of(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Return the scores of validated rows."""
        fitted = self._fitted
        codes = None
        if fitted.model.n_heads > 1:
            if sensitive_features is None:
                raise ValueError(
                    "This model has coefficients of its own for every group (group_interactions=True), and no "
                    f"sensitive_features arrived at predict. Pass them to predict; {BY_ROUTING}. What hands no "
                    "metadata to predict, such as cross_val_predict, TunedThresholdClassifierCV and VotingClassifier, "
                    "needs group_interactions=False."
                )
            codes = fitted.small.encode(sensitive_features, fitted.labels, self._group_columns)
            check_group_of_every_row(codes.size, X.shape[0])
        return fitted.offset + fitted.scale * fitted.model.scores(fitted.start.model_state, X, codes)
