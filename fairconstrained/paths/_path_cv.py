"""`FairnessPathCV`: an estimator that fits a path and keeps the model that a rule chooses on held-out rows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.checks.inputs import without_none
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.estimators import BaseFairEstimator
from fairconstrained.estimators.remembers import RemembersRows
from fairconstrained.model_selection.delegation import DelegatesToFitted, with_requests_of
from fairconstrained.model_selection.pipelines import before_last_step, last_step
from fairconstrained.paths._fairness_path import fairness_path
from fairconstrained.paths._result import FairnessPath

__all__ = ["ChoiceParameters", "FairnessPathCV", "choose"]

_FOLDS = 5


@with_parameters
class ChoiceParameters:
    """Parameters of estimators that choose the bound on held-out rows.

    Parameters
    ----------
    bound : float, default=0.05
        Largest mean held-out gap that is allowed, at least 0. A ``kappa`` bounds the gap on the training rows, where it
        may be smaller.
    kappas : array-like, default=None
        Bounds to choose from, as in `fairness_path`; None is a grid from the unconstrained gap down to what the groups
        resolve.
    n_kappas : int, default=10
        Size of that grid.
    cv : int, cross-validation splitter or iterable, default=None
        Folds, as in `fairness_path`; None is 5 folds.
    scoring : str, callable, list of str or dict, default=None
        Scores of performance, as in `fairness_path`; the first one decides.
    one_standard_error : bool, default=False
        Whether to take, of the models within the bound, the one with the tightest kappa that is as good as the best one
        up to one standard error.
    param : str, default=None
        The parameter that takes the ``kappas`` in place of kappa, such as ``"constraint__top__kappa"``.
    n_jobs : int, default=None
        Number of processes for the folds and for all rows; see joblib.
    verbose : int, default=0
        1: progress bars of the path. 2 and more: also what ``verbose=1`` of the estimator shows.

    Attributes
    ----------
    kappa_ : float or None
        The chosen bound (or value of ``param``); None for no bound.
    path_ : FairnessPath
        All models, and the table of their scores and gaps.
    best_index_ : int
        Row of the chosen model in that table.
    """

    bound: float = parameter(0.05, [Interval(Real, 0, None, closed="left")])
    kappas: Sequence[float | None] | None = parameter(None, ["array-like", None])
    n_kappas: int = parameter(10, [Interval(Integral, 1, None, closed="left")])
    cv: Any = parameter(None, ["cv_object"])
    scoring: Any = parameter(None, [str, callable, Mapping, list, tuple, None])
    one_standard_error: bool = parameter(False, ["boolean"])
    param: str | None = parameter(None, [str, None])
    n_jobs: int | None = parameter(None, [Integral, None])
    verbose: int = parameter(0, ["verbose"])


def choose(settings: ChoiceParameters, estimator: Any, X: Any, y: Any, **others: Any) -> tuple[FairnessPath, int]:
    """The path of ``estimator`` with the parameters of ``settings``, and the row of its table that is chosen."""
    names = ("kappas", "n_kappas", "scoring", "param", "n_jobs", "verbose")
    common = {name: getattr(settings, name) for name in names}
    path = fairness_path(estimator, X, y, cv=_FOLDS if settings.cv is None else settings.cv, **common, **others)
    return path, path.best_index(settings.bound, one_standard_error=settings.one_standard_error)


def kappa_of(path: FairnessPath, index: int) -> float | None:
    """The chosen value, as an estimator takes it."""
    kappa = float(path.kappas[index])
    return None if np.isinf(kappa) else kappa


@with_parameters
class FairnessPathCV(ChoiceParameters, DelegatesToFitted):
    """Choose the bound of an estimator on held-out rows.

    `fit` follows `fairness_path` with folds, and keeps the most accurate model whose mean held-out gap is at most
    ``bound``. The training gap, which kappa bounds, may be smaller than the gap on new rows.

    Parameters
    ----------
    estimator : estimator
        Any estimator of the package, or a Pipeline that ends in one.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen model, fitted on all rows.
    classes_ : ndarray of shape (n_classes,)
        Classes; only if the estimator is a classifier.

    See Also
    --------
    PartialParityClassifierCV, AUCFairClassifierCV : The same with the parameters and attributes of their estimators.

    References
    ----------
    Breiman, Friedman, Olshen, Stone, Classification and Regression Trees (1984), section 3.4.3: the rule of one
    standard error.

    Examples
    --------
    >>> from fairconstrained import FairnessPathCV, RateParityClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> model = FairnessPathCV(RateParityClassifier(), bound=0.1, n_kappas=5, cv=3).fit(X, y, sensitive_features=group)
    >>> bool(model.path_.table["mean_test_gap"][model.best_index_] <= 0.1)
    True
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    _kept: ClassVar[str] = "best_estimator_"
    estimator: Any = parameter(allowed=[HasMethods(["fit"])], kw_only=False)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the path and choose.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Target.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The group of every row; without it there is nothing to bound, and the model is the unconstrained one.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.
        **fit_params : dict
            Further arguments of the estimator's `fit`, such as ``qid``.

        Returns
        -------
        self : estimator
            Unchanged if an error or an interruption occurs.

        Raises
        ------
        TypeError
            If the estimator is not one of the package.
        ValueError
            For the same reasons as `fairness_path`, and if there is no gap or no score to choose by, see
            `FairnessPath.best`.

        Warns
        -----
        ConvergenceWarning, NewRowsWarning
            For the same reasons as `fairness_path`.
        FairnessWarning
            If there is nothing to compare, or no model is within ``bound``.
        """
        path, index = choose(
            self,
            self.estimator,
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            fit_params=fit_params,
        )
        self.path_, self.best_index_, self.best_estimator_ = path, index, path.models[index]
        self.kappa_ = kappa_of(path, index)
        return self

    @documented_by(str(RemembersRows.forget_rows.__doc__))
    def forget_rows(self) -> Self:
        """Forget which rows the models of the path were fitted on; see ``forget_rows`` of an estimator."""
        check_is_fitted(self)
        self.path_.forget_rows()
        return self

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None, **params: Any
    ) -> float:
        """`score` of the chosen model.

        Parameters
        ----------
        X, sensitive_features
            Rows and their groups, as for `predict`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **params : dict
            Further arguments, such as ``qid``.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        # a pipeline's own score takes the groups only while metadata routing is on
        groups = without_none(sensitive_features=sensitive_features)
        X, model = before_last_step(self.best_estimator_, X, **groups), last_step(self.best_estimator_)
        given = without_none(sample_weight=sample_weight, **params)
        if "sensitive_features" in inspect.signature(model.score).parameters:
            given |= groups
        return model.score(X, y, **given)

    def _get_metadata_request(self) -> MetadataRequest:
        """Request whatever the estimator requests besides the groups, such as ``qid``."""
        request, last = super()._get_metadata_request(), last_step(self.estimator)
        return with_requests_of(request, last) if isinstance(last, BaseFairEstimator) else request
