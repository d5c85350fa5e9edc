"""Classifiers of two classes, or of several by a score for each."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from sklearn.utils.multiclass import type_of_target
from typing_extensions import override

from fairconstrained.constraints import Constraint
from fairconstrained.constraints.every_class import EveryClass
from fairconstrained.data import FairData
from fairconstrained.estimators._announced import class_codes
from fairconstrained.estimators._bounded import TakesConstraint
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators.linear import FairClassifierMixin, LinearScores
from fairconstrained.models import ClassModel, ParametricModel
from fairconstrained.models.base import OutputModel
from fairconstrained.objectives import Objective
from fairconstrained.problem import Problem
from fairconstrained.solvers import SolverResult

__all__ = ["TakesClasses"]


class TakesClasses(FairClassifierMixin, TakesConstraint, LinearScores):
    r"""Classifiers that take two classes or more.

    With more than two classes there is a score of every class, the prediction is the class of the largest one, and the
    objective is the multinomial log loss. A bound on two classes is one on every class against the others: on the
    margins :math:`s_k - \max_{j \ne k} s_j`, with the rows of class k as positives; see `EveryClass`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes; the second one of two is the positive class.
    coef_ : ndarray of shape (1, n_features), (n_groups, n_features) or (n_classes, n_features)
        Coefficients; only if the scores are linear. There is a row for every class if there are more than two.
    intercept_ : ndarray of shape (1,), (n_groups,) or (n_classes,)
        Intercepts; only if the scores are linear.
    class_gaps_ : dict
        ``constraint_values_`` by constraint and class, each class against the others; empty for two classes. Bounds on
        multinomial log losses are not in it, as these are losses of all classes.
    """

    @property
    def _has_several_classes(self) -> bool:
        return len(getattr(self, "classes_", ())) > 2

    @override
    def _encode_target(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Target:
        if type_of_target(y, input_name="y") != "multiclass":
            return super()._encode_target(y, sample_weight)
        counted = y if sample_weight is None else y[sample_weight > 0]
        self.classes_ = np.unique(counted)
        if self.classes_.size <= 2:  # the rows of all others have no weight
            raise ValueError(
                f"y has more than two classes, but only {self.classes_.tolist()} have rows of positive weight; leave "
                "out the rows of the others."
            )
        self._check_classes()
        return self._known_target(y if sample_weight is None else np.where(sample_weight > 0, y, self.classes_[0]))

    def _check_classes(self) -> None:
        """Raise ValueError for parameters that are for two classes."""
        of_two = {"threshold": 0.0, "group_interactions": False}
        for name, value in of_two.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is for two classes, and y has {self.classes_.size}; set "
                    f"{name}={value!r}."
                )

    @override
    def _group_argument(self, data: FairData) -> str:
        return super()._group_argument(data) if self._on_scores or not self._has_several_classes else ""

    @override
    def _known_target(self, y: np.ndarray) -> Target:
        if not self._has_several_classes:
            return super()._known_target(y)
        return Target(class_codes(y, self.classes_).astype(np.float64))

    def _for_classes(self, objective: Objective) -> Objective:
        """The objective for as many classes as there are; raises ValueError where it is for two only."""
        if not self._has_several_classes:
            return objective
        several = objective.of_several_classes()
        if several is None:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. "
                f"{type(objective).__name__} is an objective for two classes, and y has {self.classes_.size}; with "
                "more than two, objective must be 'logistic' (or loss 'log_loss')."
            )
        return several

    @override
    def _n_heads(self, data: FairData) -> int:
        return len(self.classes_) if self._has_several_classes else super()._n_heads(data)

    @override
    def _model(self, data: FairData) -> ParametricModel:
        return self._of_classes(super()._model(data))

    def _of_classes(self, model: ParametricModel) -> ParametricModel:
        """The model with its outputs as scores of the classes, if there are more than two."""
        return ClassModel(cast(OutputModel, model)) if self._has_several_classes else model

    @override
    def _chosen(self) -> list[Constraint]:
        chosen = super()._chosen()
        if not self._has_several_classes:
            return chosen
        classes = self.classes_.tolist()
        return [constraint.for_classes(classes) or EveryClass(constraint, classes) for constraint in chosen]

    @override
    def _report(self, problem: Problem, state: Any, result: SolverResult, target: Target) -> dict[str, float]:
        excess = super()._report(problem, state, result, target)
        scores = problem.scores(state)
        by_class = {constraint.name: constraint.class_values(scores) for constraint in problem.constraints}
        self.class_gaps_ = {name: values for name, values in by_class.items() if values}
        return excess

    @override
    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        if not self._has_several_classes:
            return super().predict(X, sensitive_features=sensitive_features)
        return self.classes_[self._scores(X, sensitive_features).argmax(axis=1)]

    @override
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        if not self._has_several_classes:
            return super().predict_proba(X, sensitive_features=sensitive_features)
        return self._objective().probability(self._scores(X, sensitive_features))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = getattr(self, "objective", "logistic") == "logistic"
        return tags
