"""Base of heads: cross-fitted scores of an estimator, and what fits, predicts and reports on them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, _fit_context, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter
from typing_extensions import override

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.checks.inputs import as_targets, in_memory, warn_of_another_order, without_none
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.estimators import BaseFairEstimator
from fairconstrained.estimators.remembers import RemembersRows
from fairconstrained.heads._fits import takes_in_fit
from fairconstrained.heads.cross_fitted import CrossFits, CrossFittedScores
from fairconstrained.model_selection.delegation import DelegatesToFitted, with_requests_of
from fairconstrained.model_selection.pipelines import HoldsPipeline, Steps, last_step
from fairconstrained.tables.dask_table import as_rows

__all__ = ["FairHead"]

#: Attributes of the head that the whole model has, too.
_OF_HEAD = (
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
    "new_row_gaps_",
    "hints_",
    "solver_",
    "groups_",
    "ignored_groups_",
    "constraint_values_all_groups_",
)


@with_parameters
class FairHead(CrossFits, HoldsPipeline, DelegatesToFitted):
    """Scores of an estimator, and a head that is fitted on them under constraints; a subclass says which head.

    Parameters
    ----------
    head : estimator, default=None
        Estimator of this package that is fitted on the features of `CrossFittedScores`, with its own constraint,
        ``kappa`` and objective, which searches reach as ``head__kappa``. None is the default of the class. With
        ``solver="auto"``, "span_search" fits a head whose objective and constraint count decisions.

    Attributes
    ----------
    head_ : estimator
        The fitted head.
    scores_ : CrossFittedScores
        The transformer from rows to the features of the head.
    estimator_ : estimator
        The model of the target that scores new rows; with ``ensemble=True`` that of the first fold.
    status_, constraint_values_, granularity_, violation_, objective_, multipliers_, prices_, n_iter_, \
            n_evaluations_, history_, new_row_gaps_, hints_, solver_, groups_, ignored_groups_, \
            constraint_values_all_groups_
        The outcome of the head's fit, see its class. ``constraint_values_`` are exact on the rows of `fit`, each
        scored by models that have not seen it.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True, "sample_weight": True}

    head: BaseFairEstimator | None = parameter(None, [BaseFairEstimator, None], kw_only=False)

    _kept: ClassVar[str] = "head_"
    #: Whether the head is a classifier.
    _classifies: ClassVar[bool]
    #: Makes the head where none is given.
    _default_head: ClassVar[Any]

    @property
    @override
    def _answering(self) -> BaseFairEstimator:
        """The fitted head, or before `fit` the one that is to be fitted."""
        if "head_" in vars(self):
            return self.head_
        head = clone(self._default_head() if self.head is None else self.head)
        head._on_scores, head._knows_groups = True, self.use_groups
        return head

    @override
    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of the head that is taken where none is given, such as ``head__kappa``, as well.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : estimator
        """
        if self.head is None and "head" not in params and any(name.startswith("head__") for name in params):
            self.head = self._default_head()
        return super().set_params(**params)

    def own_steps(self) -> Steps:
        """Implement `HoldsPipeline.own_steps`: the scores and the head."""
        params = {name: getattr(self, name) for name in CrossFittedScores._get_param_names()}
        return [("scores", vars(self).get("scores_") or CrossFittedScores(**params)), ("head", self._answering)]

    def with_own_steps(self, steps: Sequence[tuple[str, Any]]) -> Self:
        """Implement `HoldsPipeline.with_own_steps`."""
        model = copy.copy(self)
        (_, model.scores_), (_, model.head_) = steps
        return model

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the estimator by folds, and then the head on its scores.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            Whatever the estimator accepts. A `fairconstrained.tables.Table` or a Dask collection for a model that is
            fitted already, which gets one block of rows after the other.
        y : array-like of shape (n_samples,)
            Target.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The group of every row, as the head takes it.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, for the head, and for the estimator if it takes them.
        **fit_params : dict
            Further arguments of the head's `fit`, such as ``X_constraint`` of `MinorityRateClassifier`, whose rows are
            scored as X is; ``groups``, which tells a splitter ``cv`` such as `GroupKFold` what to keep in one fold; and
            arguments of the estimator's `fit`, which gets the values of its rows, and as it is what has no value for
            every row, such as a validation set of boosted trees.

        Returns
        -------
        self : estimator
            Unchanged if an error or an interruption occurs.

        Raises
        ------
        TypeError
            If the estimator has no scores, if the head is a regressor where a classifier is needed (or the other way
            round), and for an argument, such as ``sample_weight``, that the head or the estimator does not take.
        ValueError
            For invalid data or parameters, folds that lack a class or a group, and whatever estimator and head raise.

        Warns
        -----
        ConvergenceWarning, FairnessWarning
            For the same reasons as the head's own `fit`.
        UserWarning
            If the estimator does not take ``sample_weight``, so that only the head uses the weights.
        """
        fitted = copy.copy(self)
        for name in ("scores_", "head_"):
            fitted.__dict__.pop(name, None)
        (_, scores), (_, head) = fitted.own_steps()
        if is_classifier(head) != self._classifies:
            kind = "classifier" if self._classifies else "regressor or ranker"
            raise TypeError(f"head must be a {kind} of this package, got {head!r}.")
        X, y, sensitive_features, sample_weight = as_rows(X), *map(in_memory, (y, sensitive_features, sample_weight))
        warn_of_another_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        given = without_none(sensitive_features=sensitive_features, sample_weight=sample_weight, **fit_params)
        others = [name for name in given if name != "sensitive_features" and not has_fit_parameter(head, name)]
        for name in others:
            if name == "sample_weight":
                raise TypeError(
                    f"{type(head).__name__}, the head, does not take sample_weight in fit. Leave the weights out, "
                    "or take another head."
                )
            if name != "groups" and not takes_in_fit(self._base, name):
                raise TypeError(
                    f"neither {type(head).__name__}, the head, nor {type(self._base).__name__}, the estimator, takes "
                    f"{name} in fit."
                )
        taken = {name: value for name, value in given.items() if has_fit_parameter(head, name)}
        others_X = taken.get("X_constraint")
        unscored = {} if others_X is None else {"X_constraint": np.zeros((_num_samples(others_X), 1))}
        # before the models are fitted, which may take long
        head.check_columns(as_targets(y), **taken | unscored)
        columns = {name: given[name] for name in ("sensitive_features", "sample_weight", *others) if name in given}
        features = scores.fit_transform(X, y, **columns)
        if others_X is not None:
            own = taken.get("sensitive_features_constraint")
            taken["X_constraint"] = scores.transform(others_X, sensitive_features=own)
        own = head.verbose
        head.set_params(verbose=max(int(own), int(self.verbose))).fit(features, y, **taken).set_params(verbose=own)
        self.__dict__ = fitted.with_own_steps([("scores", scores), ("head", head)]).__dict__
        return self

    def _features(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Features of rows as the head takes them."""
        check_is_fitted(self)
        return self.scores_.transform(X, sensitive_features=sensitive_features)

    @override
    def _ask(self, method: str, X: Any, sensitive_features: Any, *others: Any, **params: Any) -> Any:
        """Call a method of the head on rows; it gets the groups if it takes them."""
        features = self._features(X, sensitive_features)
        function = getattr(self.head_, method)
        if sensitive_features is not None and _takes_groups(function):
            params["sensitive_features"] = sensitive_features
        return function(features, *others, **params)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None, **params: Any
    ) -> float:
        """Score of the head: accuracy of a classifier, coefficient of determination of a regressor.

        Parameters
        ----------
        X, sensitive_features
            Rows and their groups, as for `predict`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **params : dict
            Further arguments of the head's ``score``, such as ``qid``.

        Returns
        -------
        score : float
        """
        params |= without_none(sample_weight=sample_weight)
        return self._ask("score", X, sensitive_features, y, **params)

    def constraint_values(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, **params: Any
    ) -> dict[str, float]:
        """The metrics that the head bounds, exactly, on any rows.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            Rows, targets, groups and weights, as in `fit`.
        **params : dict
            Further arguments of the head's ``constraint_values``, such as ``strata``.

        Returns
        -------
        values : dict
            Values by the constraint's name, as in ``constraint_values_``; empty for rows of a single group, unless
            a bound is a floor or a ceiling.

        Raises
        ------
        ValueError
            For invalid data, and without the groups that were compared in `fit`.
        """
        params |= without_none(sample_weight=sample_weight)
        return self._ask("constraint_values", X, sensitive_features, y, **params)

    def named_kappas(self) -> dict[str, float | None]:
        """Return ``kappa`` of everything that is bounded, by the names in ``constraint_values_``, as the head does."""
        return self._answering.named_kappas()

    def _bounded_from_below(self) -> set[str]:
        return self._answering._bounded_from_below()

    def _minimised(self) -> set[str]:
        return self._answering._minimised()

    @documented_by(str(RemembersRows.forget_rows.__doc__))
    def forget_rows(self) -> Self:
        """Forget which rows the model was fitted on; see ``forget_rows`` of an estimator."""
        check_is_fitted(self)
        for part in (self.scores_, self.head_):
            part.forget_rows()
        # models of the folds may remember their rows, too; a finished model belongs to the user, and stays as it is
        for models in () if self.scores_._is_prefit else self.scores_.models_:
            base = last_step(models.base)
            if isinstance(base, BaseFairEstimator):
                base.forget_rows()
        return self

    @property
    def estimator_(self) -> Any:
        """The model of the target that scores new rows; with ``ensemble=True`` that of the first fold."""
        return self._of_step("scores_").models_[0].base

    @property
    def _rows_seen(self) -> Any:
        """Record of the rows of `fit`, by which they are known again."""
        return self._of_step("scores_")._rows_seen

    def _as_remembered(self, X: Any) -> Any:
        """Rows as they are remembered."""
        return CrossFittedScores._as_remembered(X)

    def _decision_threshold(self) -> float:
        """Score above which a classifier predicts the positive class."""
        return self._answering._decision_threshold()

    def _of_step(self, name: str) -> Any:
        """A fitted step; AttributeError without one, as `hasattr` expects it."""
        if name not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted yet, so it has no {name}.")
        return vars(self)[name]

    def __getattr__(self, name: str) -> Any:
        if name in _OF_HEAD:
            return getattr(self._of_step("head_"), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @override
    def _of_fitted(self, name: str) -> Any:
        return getattr(self._of_step("head_" if name == "classes_" else "scores_"), name)

    def _get_metadata_request(self) -> MetadataRequest:
        """Request what the head requests besides the groups, such as ``qid``."""
        return with_requests_of(super()._get_metadata_request(), self._answering)

    def __sklearn_tags__(self) -> Any:
        tags, head = BaseEstimator.__sklearn_tags__(self), get_tags(self._answering)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
            setattr(tags, name, getattr(head, name))
        if hasattr(self._base, "__sklearn_tags__"):  # others are finished models of any kind
            tags.input_tags = get_tags(self._base).input_tags
        return tags


def _takes_groups(function: Any) -> bool:
    """Whether a method takes the groups."""
    return "sensitive_features" in inspect.signature(function).parameters
