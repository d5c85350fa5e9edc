"""Estimators that choose their own kappa in `fit`, under their own parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sklearn import config_context

from fairconstrained.checks.parameters import with_parameters
from fairconstrained.estimators import AUCFairClassifier, BaseFairEstimator, PartialParityClassifier
from fairconstrained.estimators.auc_fair import BaseAUCFairClassifier
from fairconstrained.estimators.grouping import Stratified
from fairconstrained.estimators.partial_parity import BasePartialParityClassifier
from fairconstrained.paths._path_cv import ChoiceParameters, choose, kappa_of
from fairconstrained.solvers import Status

__all__ = ["AUCFairClassifierCV", "PartialParityClassifierCV"]


@dataclass(eq=False, repr=False)  # the documentation is for the classes that derive from it
class ChoosesKappa(ChoiceParameters, BaseFairEstimator):
    """Mixin over an estimator, which then has the parameters of the choice in place of ``kappa``.

    Derive from it and from the base of the estimator, in this order, and name the estimator in ``_fitted_class``.
    """

    #: No parameter here: every fit of the path has its own.
    kappa: ClassVar[Any] = None
    #: The estimator that is fitted under every kappa.
    _fitted_class: ClassVar[type[BaseFairEstimator]]

    def _fit(self, X: Any, y: Any, *columns: Any) -> None:
        """Implement `BaseFairEstimator._fit`: fit the path on all rows and on those of every fold, and choose."""
        grouping, sample_weight = columns
        sensitive_features, strata = Stratified.of(grouping)
        own = self.get_params(deep=False)
        names = self._fitted_class._get_param_names()
        estimator = self._fitted_class(**{name: own[name] for name in names if name in own})
        estimator.set_params(verbose=max(int(self.verbose) - 1, 0))
        with config_context(skip_parameter_validation=False):  # the parameters of the path are not yet checked
            path, index = choose(
                self,
                estimator,
                X,
                y,
                sensitive_features=sensitive_features,
                sample_weight=sample_weight,
                fit_params={"strata": strata},
            )
        best = path.models[index]
        learnt = {name: value for name, value in vars(best).items() if name not in best.get_params(deep=False)}
        learnt |= {"path_": path, "best_index_": index, "kappa_": kappa_of(path, index)}
        if not path.gaps:  # whatever was chosen, there was nothing to choose by
            learnt["status_"] = Status.UNCONSTRAINED.value
        self.__dict__ |= learnt

    def forget_rows(self) -> Self:
        """Forget which rows the model and those of its path were fitted on, as the estimator does."""
        super().forget_rows()
        self.path_.forget_rows()
        return self

    def named_kappas(self) -> dict[str, float | None]:
        """Return ``kappa`` by name, see `BaseFairEstimator.named_kappas`; those of the chosen model."""
        return self.path_.models[self.best_index_].named_kappas()

    def _bound_params(self, kappa: float | None) -> dict[str, Any]:
        """Return the parameters without a bound; ``kappa`` is none of the parameters here."""
        if kappa is not None:
            raise ValueError(f"{type(self).__name__} chooses its own kappa; take {self._fitted_class.__name__}.")
        return {name: value for name, value in super()._bound_params(kappa).items() if name != "kappa"}


@with_parameters
class PartialParityClassifierCV(ChoosesKappa, BasePartialParityClassifier):
    """`PartialParityClassifier` that chooses its kappa on held-out rows, as `LogisticRegressionCV` chooses its C.

    For every kappa of a path (see `fairness_path`) it measures accuracy and gap on held-out folds, and keeps the most
    accurate model, fitted on all rows, whose mean held-out gap is at most ``bound``.

    See Also
    --------
    FairnessPathCV : The same for any estimator, and for pipelines.

    Examples
    --------
    >>> from fairconstrained import PartialParityClassifierCV
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> kappas = [0.2, 0.1, 0.05, 0.02]
    >>> model = PartialParityClassifierCV(bound=0.1, constraint="demographic_parity", kappas=kappas, cv=3)
    >>> model = model.fit(X, y, sensitive_features=group)
    >>> bool(model.path_.table["mean_test_gap"][model.best_index_] <= 0.1)
    True
    """

    _fitted_class = PartialParityClassifier


@with_parameters
class AUCFairClassifierCV(ChoosesKappa, BaseAUCFairClassifier):
    """`AUCFairClassifier` that chooses its kappa on held-out rows, as `LogisticRegressionCV` chooses its C.

    For every kappa of a path (see `fairness_path`) it measures AUC and gap on held-out folds, and keeps the model of
    largest AUC, fitted on all rows, whose mean held-out gap is at most ``bound``. With ``surrogate="quadratic"`` the
    ``kappas`` bound the surrogate, and have to be given.

    See Also
    --------
    FairnessPathCV : The same for any estimator, and for pipelines.

    Examples
    --------
    >>> from fairconstrained import AUCFairClassifierCV
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=1000, group_shift=(0.0, -1.0), random_state=0)
    >>> model = AUCFairClassifierCV(bound=0.1, kappas=[None, 0.1, 0.05, 0.02], cv=3)
    >>> model = model.fit(X, y, sensitive_features=group)
    >>> bool(model.path_.table["mean_test_gap"][model.best_index_] <= 0.1)
    True
    """

    _fitted_class = AUCFairClassifier
