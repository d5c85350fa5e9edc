"""Scores of linear models and modules, and predictions of classifiers and regressors from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from typing_extensions import override

from fairconstrained.checks.inputs import as_numbers
from fairconstrained.checks.messages import shortened
from fairconstrained.data import FairData
from fairconstrained.estimators._announced import class_codes
from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._plain_models import plain_classifier, plain_regressor
from fairconstrained.estimators._rows import check_squares, checked_features
from fairconstrained.estimators._usefulness import Usefulness
from fairconstrained.estimators.parameters import parameter, with_parameters
from fairconstrained.models import LinearModel, ParametricModel
from fairconstrained.models.layers import ACTIVATIONS, mlp
from fairconstrained.models.module import ModuleModel, ModuleSpec
from fairconstrained.models.perceptron import Perceptron
from fairconstrained.problem import Problem

__all__ = ["FairClassifierMixin", "FairRegressorMixin", "LinearScores", "ModuleScores"]


@with_parameters
class LinearScores(BaseFairEstimator):
    """Estimators with linear scores, shared by all groups or with coefficients of their own for each group.

    Parameters
    ----------
    alpha : float, default=1e-4
        Weight of the l2 penalty on the coefficients, or on the weights of a module (not its biases). Its effect depends
        on the units of the features, as in scikit-learn's `LogisticRegression`: with features of the order of 1e-8 the
        scores are nearly constant, and `fit` warns. Standardise the features; with ``alpha=0``, linear scores do not
        depend on the units.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_groups, n_features)
        Coefficients; only if the scores are linear.
    intercept_ : ndarray of shape (1,) or (n_groups,)
        Intercepts; only if the scores are linear.
    """

    alpha: float = parameter(1e-4, [Interval(Real, 0, None, closed="left")])

    # One model serves all groups, unless the estimator has the parameter of `HasGroupModels`.
    group_interactions = False

    def _model(self, data: FairData) -> ParametricModel:
        return LinearModel(data.n_features, self._n_heads(data), self.fit_intercept, self.alpha)

    def _n_heads(self, data: FairData) -> int:
        return data.n_groups if self.group_interactions else 1


@with_parameters
class ModuleScores(LinearScores):
    """Estimators whose scores are linear, or those of a torch module.

    Parameters
    ----------
    module : torch.nn.Module or callable, default=None
        Module that computes the scores in place of a linear function. A callable, such as a class, takes
        ``(n_features, n_outputs)`` and returns a module; an instance is copied and starts from its parameters. It maps
        rows of shape (n_rows, n_features) to (n_rows, n_outputs). With it, X may have any shape (n_samples, ...), such
        as (n_samples, channels, height, width) for pictures; a callable then takes the shape of a row, a tuple, in
        place of ``n_features``. Parameters that require no gradient stay as they are. Standardise the features.
    hidden_layer_sizes : sequence of int, default=None
        Widths of the hidden layers of a multilayer perceptron that is built as the module. If no feature has a standard
        deviation of 1 or more, it takes all of them divided by the largest one, so that the penalty does not hold it
        back. It does not with a solver that has published settings, nor in ``partial_fit`` of `AUCFairClassifier`.
    activation : {"relu", "tanh", "logistic", "silu", "softplus"}, default="relu"
        Activation function of its hidden layers.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained module, on the CPU; only if the model has a module.
    """

    module: ModuleSpec | None = parameter(None, [callable, None])
    hidden_layer_sizes: Sequence[int] | None = parameter(None, ["array-like", None])
    activation: str = parameter("relu", [StrOptions(set(ACTIVATIONS))])

    @override
    def _checked_rows(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> tuple[Any, np.ndarray, Any]:
        shape_of_any = {"allow_nd": self.module is not None}
        X, y, sample_weight = super()._checked_rows(X, y, sample_weight, **shape_of_any, **options)
        if options.get("reset", True):
            self._row_shape = X.shape[1:]
        return self._of_known_shape(X), y, sample_weight

    @override
    def _checked_features(self, X: Any) -> Any:
        return self._of_known_shape(checked_features(self, X, allow_nd=self.module is not None))

    def _of_known_shape(self, X: Any) -> Any:
        """Return X; raise ValueError if its rows have another shape than those of `fit`."""
        known = getattr(self, "_row_shape", X.shape[1:])  # a model that was saved by an earlier version has none
        if X.shape[1:] != known:
            raise ValueError(f"X has rows of shape {X.shape[1:]}, but those of fit have shape {known}.")
        return X

    @property
    @override
    def _more_freedom(self) -> str:
        if self._on_scores:
            return super()._more_freedom
        return "hidden_layer_sizes" if self.module is None else "a larger module"

    def _model(self, data: FairData) -> ParametricModel:
        size: dict[str, Any] = {"n_features": data.row_shape, "n_outputs": self._n_heads(data), "alpha": self.alpha}
        if self.module is not None:
            if self.hidden_layer_sizes is not None:
                raise ValueError("give module or hidden_layer_sizes, not both: the second one builds a module itself.")
            return ModuleModel(self.module, **size)
        if self.hidden_layer_sizes is None:
            return super()._model(data)
        return self._network(data, **size)

    def _network(self, data: FairData, **size: Any) -> Perceptron:
        """The network of ``hidden_layer_sizes``, in units of the features if all of them are small.

        Where this fit goes on from the last one, the units stay, as parameters mean the same then. Otherwise, for a
        solver with published settings, the network takes the features as they are: its problem is the published one.
        """
        assert self.hidden_layer_sizes is not None  # a network is asked for
        layers = partial(mlp, hidden_layer_sizes=self.hidden_layer_sizes, activation=self.activation)
        network = Perceptron(layers, **size, activation=self.activation)
        layout, (known, unit) = str(network.layout), getattr(self, "_unit", ("", 1.0))
        if known == layout and (self.warm_start or self._compares_all_groups):
            network = replace(network, unit=unit)
        elif self.solver not in self._published:
            network = network.enlarging(data)
        self._unit = layout, network.unit  # plain types are saved without further trust
        return network


class FairClassifierMixin(ClassifierMixin):
    """Binary classification by a threshold on the score.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The second one is the positive class.
    groups_ : ndarray of shape (n_groups,)
        The groups, in the order of the rows of ``coef_`` or the outputs of ``module_`` where groups have models of
        their own; empty if none were given.
    """

    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    threshold = 0.0  # unless the estimator has the parameter of `HasThreshold`

    def _encode_target(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Target:
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            check_classification_targets(y)
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}. Compare one class with "
                "all others, as with y == one_class, or take RateParityClassifier, PartialParityClassifier or "
                "LossParityClassifier, alone or as heads."
            )
        self.classes_, codes = np.unique(y, return_inverse=True)
        present = codes if sample_weight is None else codes[sample_weight > 0]
        if np.count_nonzero(np.bincount(present)) < 2:
            raise ValueError(
                f"y has one class only ({shortened(self.classes_[present[:1]])}, counting rows of positive weight); a "
                "classifier needs two classes."
            )
        return Target.of_two(codes, self.classes_)

    def _known_target(self, y: np.ndarray) -> Target:
        return Target.of_two(class_codes(y, self.classes_), self.classes_)

    def _decision_threshold(self) -> float:
        return self.threshold

    def _usefulness(self, problem: Problem, scores: np.ndarray) -> Usefulness | None:
        return Usefulness.of_decisions(problem, scores) if scores.ndim == 1 else None

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Scores of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            CSR, unless it is the scores of another classifier that are changed.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Needed, and used, only by models that have coefficients of their own for every group, or whose `fit` has
            chosen how the scores of every group are changed.

        Returns
        -------
        scores : ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
            Above ``threshold``, or above 0 where there is no such parameter, the positive class ``classes_[1]`` is
            predicted. With more than two classes, the class with the largest score is.

        Raises
        ------
        ValueError
            For invalid X, without groups that are needed, or for one that was not seen in `fit`.
        """
        return self._scores(X, sensitive_features)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Predicted class of every row; deterministic.

        Parameters
        ----------
        X, sensitive_features
            Rows and their groups, as for `decision_function`.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
        """
        positive = self._scores(X, sensitive_features) > self.threshold
        return self.classes_[positive.astype(int)]

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Probability of each class, as the objective's link function gives it.

        Parameters
        ----------
        X, sensitive_features
            Rows and their groups, as for `decision_function`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; rows sum to one. The logistic objective estimates probabilities; those
            of the other objectives rank rows as the scores do, but they are not calibrated.
        """
        scores = self._scores(X, sensitive_features)  # which are the first to say that the model is not fitted
        positive = self._objective().probability(scores)
        return np.column_stack([1 - positive, positive])

    def to_sklearn(self, *, absorb_threshold: bool = False) -> LogisticRegression:
        """The fitted scores as a plain model of scikit-learn, e.g. for an export to ONNX or for SHAP values.

        Parameters
        ----------
        absorb_threshold : bool, default=False
            Whether to subtract ``threshold`` from the intercept; scikit-learn decides at 0. Predictions then stay the
            same, scores are smaller by the threshold, and probabilities change with them.

        Returns
        -------
        model : sklearn.linear_model.LogisticRegression
            Model with ``coef_``, ``intercept_``, ``classes_``, ``n_features_in_`` and ``feature_names_in_`` of this
            fit, and the same predictions and scores. Probabilities are ``1 / (1 + exp(-score))``, which is what
            `predict_proba` gives for every objective but "squared", whose own are ``(1 + score) / 2``, clipped to
            [0, 1]; with more than two classes, they are the softmax of the scores. If you fit this model again, it is
            fitted without constraints.

        Raises
        ------
        ValueError
            If the scores are those of a network, of trees or of another estimator, if groups have coefficients of their
            own, or for a ``threshold`` other than 0 that is not to be absorbed.
        """
        if self.threshold != 0 and not absorb_threshold:
            raise ValueError(
                f"threshold={self.threshold}, and a LogisticRegression decides at 0. to_sklearn(absorb_threshold=True) "
                "subtracts it from the intercept, which keeps the predictions and changes scores and probabilities. To "
                "keep those, fit with threshold=0 and compare scores with the threshold yourself."
            )
        return plain_classifier(self, self.threshold)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Accuracy of `predict`.

        Parameters
        ----------
        X, sensitive_features
            Rows and their groups, as for `decision_function`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        accuracy : float
            Share of the rows that is predicted right, in [0, 1].
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return accuracy_score(y, predicted, sample_weight=sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class PredictsNumbers:
    """Mixin of estimators whose scores are their predictions."""

    def to_sklearn(self) -> LinearRegression:
        """The fitted predictions, of a ranker the scores, as a plain model of scikit-learn.

        For an export to ONNX, for example, or for SHAP values.

        Returns
        -------
        model : sklearn.linear_model.LinearRegression
            Model with ``coef_``, ``intercept_``, ``n_features_in_`` and ``feature_names_in_`` of this fit, and the same
            predictions. If you fit this model again, it is fitted without constraints.

        Raises
        ------
        ValueError
            If predictions are those of a network or of trees, or if groups have coefficients of their own.
        """
        return plain_regressor(self)


class FairRegressorMixin(PredictsNumbers, RegressorMixin):
    """Regression: the score is the prediction.

    The target is standardised for the solver, so that the surrogates' widths do not depend on its units.

    Attributes
    ----------
    groups_ : ndarray of shape (n_groups,)
        The groups, in the order of the rows of ``coef_`` or the outputs of ``module_`` where groups have models of
        their own; empty if none were given.
    """

    def _encode_target(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Target:
        y = self._numbers(y)
        check_squares(y, "y")
        mean = float(np.average(y, weights=sample_weight))
        scale = float(np.sqrt(np.average((y - mean) ** 2, weights=sample_weight))) or 1.0
        # Without an intercept the model could not undo a shift.
        offset = mean if self.fit_intercept else 0.0
        return Target((y - offset) / scale, offset, scale)

    def _known_target(self, y: np.ndarray) -> Target:
        offset, scale = self._fitted.offset, self._fitted.scale
        return Target((self._numbers(y) - offset) / scale, offset, scale)

    def _usefulness(self, problem: Problem, scores: np.ndarray) -> Usefulness:
        return Usefulness.of_predictions(problem, scores, "squared")

    def _advice_on_name(self, name: str) -> str:
        """Implement `TakesConstraint._advice_on_name`; a regressor does not take the constraints of classifiers."""
        return (
            " Gaps between the groups' mean predictions or mean losses, in the units of the target, are bounded by "
            "GroupRates(rate=..., kappa=...) with the rate 'score', 'squared' or 'absolute'."
        )

    @staticmethod
    def _numbers(y: np.ndarray) -> np.ndarray:
        """Targets as numbers; raises ValueError for text and dates."""
        return as_numbers(y, "Pass numbers, or take a classifier if these are labels")

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        coefficients = attributes.get("coef_")
        if coefficients is not None and coefficients.shape[0] == 1:
            # the shapes of scikit-learn's regressors
            attributes |= {"coef_": coefficients[0], "intercept_": float(attributes["intercept_"][0])}
        super()._set_attributes(attributes)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Predicted target of every row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Needed, and used, only by models with coefficients of their own for every group.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predictions in the units of ``y``.

        Raises
        ------
        ValueError
            For invalid X, or a group that was not seen in `fit`.
        """
        return self._scores(X, sensitive_features)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Coefficient of determination of `predict`.

        Parameters
        ----------
        X, sensitive_features
            Rows and their groups, as for `predict`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        r2 : float
            Coefficient of determination, at most 1.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return r2_score(y, predicted, sample_weight=sample_weight)
