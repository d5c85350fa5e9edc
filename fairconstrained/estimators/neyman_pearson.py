"""Classification of two or more classes with bounds on the losses or errors of single classes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from fairconstrained.checks.messages import is_number, shortened
from fairconstrained.constraints import Constraint
from fairconstrained.constraints.neyman_pearson import ClassError, ClassLoss, class_factors
from fairconstrained.data import FairData
from fairconstrained.domains import Domain, L2Ball
from fairconstrained.estimators._balls import AUTO, enlarged, half_axes, within
from fairconstrained.estimators._classes import ClassOutputs
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._parity import OBJECTIVES
from fairconstrained.estimators._stationarity import TellsStationarity
from fairconstrained.estimators.linear import ModuleScores
from fairconstrained.estimators.parameters import (
    ChoosesSolver,
    HasIntercept,
    Iterates,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.models.base import OutputModel
from fairconstrained.models.margins import MarginData, MarginModel
from fairconstrained.objectives import Loss, Objective
from fairconstrained.objectives.group_loss import GroupLoss
from fairconstrained.points import objective_gradient
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers import AdamLagrangian, AugmentedLagrangian, Callback, Solver, SolverResult, StoppedBy
from fairconstrained.solvers.smooth import Stop, minimise

__all__ = ["NeymanPearsonClassifier"]

#: Radius for standardised features.
_RADIUS = 10.0
#: When the minimisation ends with whose model the augmented Lagrangian begins.
_START = Stop(max_iter=200, gtol=1e-3)


@with_parameters
class NeymanPearsonClassifier(
    ClassOutputs, TellsStationarity, ModuleScores, HasIntercept, Iterates, StartsWarm, ChoosesSolver
):
    r"""Classifier that is best for some classes while the losses, or errors, of the others stay within bounds.

    .. math:: \min_h \; \sum_{k \in P} L_k(h) + \frac{\alpha}{2} \sum_k \|w_k\|^2 \quad \text{s.t.} \quad
              L_k(h) \le r_k \quad \text{for every class } k \text{ with a bound},
              \qquad L_k(h) = \sum_{l \ne k} \mathbb{E} \bigl[ \phi(h_k(x) - h_l(x)) \mid y = k \bigr]

    with a score :math:`h_k(x)` of every class, linear with coefficients :math:`w_k` or an output of a torch module, and
    the means :math:`\mathbb{E}` over the rows of a class: all classes have the same weight, however many rows they
    have. The class with the largest score is predicted. Instead of the loss, the error rate
    :math:`P(\arg\max_l h_l(x) \ne k \mid y = k)` may be bounded; for two classes this controls the type I error.

    Parameters
    ----------
    bounds : dict, float or None, default=None
        :math:`r_k` by class, or one number for all classes but ``priority_class``, which must then be given. Bounds are
        at least 0, and those on error rates at most 1. They hold on the training data, or `fit` warns and ``status_``
        is ``"infeasible"``. None: no bounds, and the objective is the sum over all classes.
    priority_class : object, default=None
        The only class of P. None: all classes that have no bound, or all classes if every one has a bound.
    loss : {"truncated_logistic", "logistic", "hinge"}, default="truncated_logistic"
        :math:`\phi` of a margin m: ``log(1 + exp(-m))``, its truncation, or ``max(1 - m, 0)`` with a smoothed corner.
    constraint : {"loss", "error"}, default="loss"
        Quantity that is bounded: :math:`L_k`, kept up to 1e-6, or the error rate of the predictions, one minus the
        recall, kept up to the share of one row in its class.
    truncation : float, default=2.0
        The a of the truncated logistic loss :math:`a \log(1 + \log(1 + e^{-m}) / a)`.
    radius : float, "auto" or None, default=None
        Limit of :math:`\|w_k\|` for every class, for linear scores only; intercepts are free. A number is a limit on
        the coefficients themselves, so features should have similar scales. "auto": 10, for the coefficients of the
        standardised features, so that the units of the features do not matter. None: no limit.
    compute_stationarity : bool, default=False
        Whether `fit` is to compute ``stationarity_`` and its report, which takes about as long as another fit; for
        bounds on losses.
    solver : str, default="auto"
        "auto" is "augmented_lagrangian" for linear scores and "adam_lagrangian" for modules. Other solvers keep bounds
        up to their own accuracy; for error rates they use the exact value with gradients of the loss, which suits small
        steps.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes with a row of positive weight.
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients; only if the scores are linear.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; only if the scores are linear.
    class_table_ : DataFrame
        One row for each class, on the training data: ``n_samples``, the ``error`` rate, the ``loss``, the ``bound``
        (NaN for none), and its ``multiplier``: the amount by which the objective would fall for one unit more of the
        bound (roughly, if an error rate is bounded). It is 0 without a bound, and NaN where the solver has no
        multipliers.

    References
    ----------
    Ma, Lin, Yang, Proximally Constrained Methods for Weakly Convex Optimization with Weakly Convex Constraints,
    arXiv:1908.01871, section 1.1, Multi-class Neyman-Pearson Classification.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from fairconstrained import NeymanPearsonClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = NeymanPearsonClassifier({0: 0.1, 2: 0.1}, constraint="error").fit(X[:, :4], y)
    >>> model.status_
    'optimal'
    >>> bool(model.class_table_.error[0] <= 0.1 + 1 / model.class_table_.n_samples[0])
    True
    """

    bounds: Mapping[Any, float] | float | None = parameter(
        None, [Mapping, Interval(Real, 0, None, closed="left"), None], kw_only=False
    )
    priority_class: Any = parameter(None)
    loss: str = parameter("truncated_logistic", [StrOptions({"truncated_logistic", "logistic", "hinge"})])
    constraint: str = parameter("loss", [StrOptions({"loss", "error"})])
    truncation: float = parameter(2.0, [Interval(Real, 0, None, closed="neither")])
    radius: float | str | None = parameter(None, [Interval(Real, 0, None, closed="neither"), StrOptions({AUTO}), None])

    _unconstrained: ClassVar[str] = "bounds=None"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sensitive_features": UNUSED, "strata": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"sensitive_features": UNUSED}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"sensitive_features": UNUSED}

    def _remedy(self, data: FairData, stopped_by: StoppedBy) -> str:
        more = ", give the model more freedom (hidden_layer_sizes)"  # which takes no radius
        more = more if self.radius is None else enlarged("radius", self.radius)
        return f"Raise the bounds{more}, or {self._longer(stopped_by)}."

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Fit the scores.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Classes, two or more.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; rows with weight zero are ignored.

        Returns
        -------
        self : NeymanPearsonClassifier
            Unchanged if an error or an interruption occurs.

        Raises
        ------
        ValueError
            For invalid data or parameters, for bounds of classes that have no rows or of the ``priority_class``, for
            one number as ``bounds`` without a ``priority_class``, and for a ``radius`` with a network.

        Warns
        -----
        ConvergenceWarning
            If a bound is not kept, or the solver stopped early or found nothing better within the bounds than the same
            score for all rows.
        """
        return self._fit_or_leave(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, *columns: Any) -> None:
        target, items = self._items(X, y, *columns)
        self._fit_problem(self._problem(items, target), target, items.n_samples)

    @override
    def _bind_only(self, X: Any, y: Any, *columns: Any) -> None:
        target, items = self._items(X, y, *columns)
        self._bound_constraints(MarginData.of(items, tuple(self.classes_.tolist())), target)

    def _items(self, X: Any, y: Any, sample_weight: Any) -> tuple[Target, FairData]:
        """The targets and the rows of positive weight; sets what is learnt of them."""
        X, y, sample_weight = self._checked_rows(X, y, sample_weight)
        self._remember_rows(X)
        if sample_weight is not None:
            kept = sample_weight > 0
            X, y, sample_weight = X[kept], y[kept], sample_weight[kept]
        target = self._encode_target(y, sample_weight)
        items = FairData.from_arrays(X, target.values, np.zeros(y.size, dtype=int), (None,), sample_weight)
        return target, items

    def _problem(self, data: FairData, target: Target) -> Problem:
        """Return the problem in which the margins of the rows of ``data`` are rows, all of them positive."""
        bounds = self._bounds()
        if self.compute_stationarity and self.constraint == "error":
            raise ValueError("compute_stationarity=True needs constraint='loss': an error rate has no gradient.")
        base = cast(OutputModel, self._model(data))
        items = base.placed(data)
        margins = MarginData.of(items, tuple(self.classes_.tolist()))
        return Problem(
            model=MarginModel(base, items),
            objective=self._loss_of(margins, self._priorities(bounds)).bind(margins),
            constraints=self._bound_constraints(margins, target),
            data=margins,
            domain=self._domain(data),
        )

    def _loss_of(self, margins: FairData, classes: Sequence[Hashable]) -> GroupLoss:
        """Sum of the losses of some classes."""
        chosen = np.isin(np.arange(margins.n_groups), [margins.labels.index(label) for label in classes])
        return GroupLoss(self._objective(), tuple((class_factors(margins) * chosen).tolist()))

    def _objective(self) -> Loss:
        return cast(Loss, OBJECTIVES[self.loss](self))

    def _constraints(self, target: Target) -> list[Constraint]:
        bounded = ClassError if self.constraint == "error" else ClassLoss
        return [bounded(label, bound, self._objective()) for label, bound in self._bounds().items()]

    def _bounds(self) -> dict[Hashable, float]:
        """The bound of every class that has one, in the order of the classes."""
        self._check_known([] if self.priority_class is None else [self.priority_class], "priority_class is")
        if self.bounds is None:
            return {}
        given = self.bounds
        if not isinstance(given, Mapping):
            if self.priority_class is None:
                raise ValueError(f"bounds={given} is for all classes but one: say which by priority_class.")
            given = {label: given for label in self.classes_.tolist() if label != self.priority_class}
        self._check_known(given, "bounds are for")
        if self.priority_class is not None and self.priority_class in given:
            raise ValueError(f"priority_class {self.priority_class!r} is also in bounds; it takes no bound.")
        highest = 1.0 if self.constraint == "error" else np.inf
        for label, bound in given.items():
            if not is_number(bound) or not 0 <= bound <= highest:
                allowed = "in [0, 1], an error rate" if self.constraint == "error" else "a finite number of at least 0"
                raise ValueError(f"bounds[{label!r}] must be {allowed}; got {bound!r}.")
        return {label: float(given[label]) for label in self.classes_.tolist() if label in given}

    def _check_known(self, labels: Any, what: str) -> None:
        known = self.classes_.tolist()
        if unknown := [label for label in labels if label not in known]:
            raise ValueError(f"{what} {shortened(unknown)}, but the classes in y are {shortened(known)}.")

    def _priorities(self, bounds: Mapping[Hashable, float]) -> list[Hashable]:
        """The classes whose losses are minimised."""
        if bounds and self.priority_class is not None:
            return [self.priority_class]
        classes = self.classes_.tolist()
        return [label for label in classes if label not in bounds] or classes

    def _domain(self, data: FairData) -> Domain | None:
        if self.radius is None:
            return None
        if self.module is not None or self.hidden_layer_sizes is not None:
            raise ValueError("radius is for linear scores, without module and hidden_layer_sizes; set it to None.")
        return within(L2Ball, self.radius, _RADIUS, data, self.fit_intercept, len(self.classes_))

    def _auto_solver(self, problem: Problem) -> str:
        return self._default_solver if problem.model.is_linear else AdamLagrangian.name

    def _run(
        self,
        solver: Solver,
        problem: Problem,
        start: Start | None,
        rng: np.random.Generator,
        watch: Callback | None,
    ) -> SolverResult:
        """Implement `WatchesSolver._run`.

        Without bounds, a few classes of priority are best served by predicting nothing else, where the losses of the
        others have flattened out. So the augmented Lagrangian begins with a model for all classes alike.
        """
        everything = self._loss_of(problem.data, problem.data.labels)
        if start is None and isinstance(solver, AugmentedLagrangian) and problem.objective.loss != everything:
            free = replace(problem, constraints=(), domain=None)
            items = cast(MarginModel, problem.model).items
            start = Start(self._shrunk(_minimised(free, everything, problem.parametric.init(rng)), items))
        return super()._run(solver, problem, start, rng, watch)

    def _rescaled(self, problem: Problem, result: SolverResult) -> SolverResult:
        """Implement `BaseFairEstimator._rescaled`; bounds on errors take it only where nothing else keeps them.

        All but constant scores on the safe side of the threshold keep such a bound at a moderate loss, and predict none
        of the classes of priority.
        """
        if self.constraint == "error" and problem.holds(problem.scores(result.model_state)):
            return result
        return super()._rescaled(problem, result)

    def _shrunk(self, params: np.ndarray, items: FairData) -> np.ndarray:
        """``params`` within the radius, by a factor for all, which leaves every prediction as it is."""
        if self.radius is None:
            return params
        coefficients = params.reshape(len(self.classes_), -1)[:, : items.n_features]
        axes = half_axes(self.radius, _RADIUS, items, self.fit_intercept)
        return params / max(np.linalg.norm(coefficients / axes, axis=1).max(), 1.0)

    def _asks_for_fairness(self) -> bool:
        return False  # there are no groups to miss

    def _bounds_anything(self, problem: Problem) -> bool:
        return bool(problem.constraints)

    def _bound_params(self, kappa: float | None) -> dict[str, Any]:
        """Implement `BaseFairEstimator._bound_params`; the same bound for all classes that have one."""
        if kappa is not None and isinstance(self.bounds, Mapping):
            return {"bounds": dict.fromkeys(self.bounds, kappa)}
        return {"bounds": kappa}

    def constraint_values(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, strata: Any = None
    ) -> dict[str, float]:
        """The losses or errors of the classes that have a bound, on any rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Classes; every class has a row.
        sensitive_features, strata : object, optional
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.

        Returns
        -------
        values : dict
            Values by the constraint's name, as in ``constraint_values_``.

        Raises
        ------
        ValueError
            For invalid data, or a class without rows.
        """
        check_is_fitted(self)
        X, y, sample_weight = self._checked_rows(X, y, sample_weight, reset=False)
        target = self._known_target(y)
        weights = np.bincount(target.values.astype(int), sample_weight, minlength=self.classes_.size)
        if missing := self.classes_[weights == 0].tolist():
            raise ValueError(
                f"the classes {shortened(missing)} have no rows (of positive weight), so their errors are unknown."
            )
        items = FairData.from_arrays(X, target.values, np.zeros(y.size, dtype=int), (None,), sample_weight)
        problem = self._problem(items, target)
        scores = problem.scores(self._fitted.start.model_state)
        return {c.name: c.metric(scores) for c in problem.constraints}

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """Implement `BaseFairEstimator._report`; also the table of the classes."""
        excess = super()._report(problem, params, result, target)
        scores, data, bounds = problem.scores(params), problem.data, self._bounds()
        labels, loss = self.classes_.tolist(), self._objective()
        columns = {
            "n_samples": np.bincount(target.values.astype(int)),
            "error": [ClassError(label, None, loss).bind(data).metric(scores) for label in labels],
            "loss": [ClassLoss(label, None, loss).bind(data).metric(scores) for label in labels],
            "bound": [bounds.get(label, np.nan) for label in labels],
            "multiplier": [self._multiplier(label) for label in labels],
        }
        self.class_table_ = pd.DataFrame(columns, index=pd.Index(labels, name="class"))
        return excess

    def under_bounds_of(self, other: Self, excess: dict[str, float]) -> Self:
        """Implement `BaseFairEstimator.under_bounds_of`; the table of the classes has the bounds of ``other`` too."""
        model = super().under_bounds_of(other, excess)
        multipliers = [model._multiplier(label) for label in self.classes_.tolist()]
        model.class_table_ = self.class_table_.assign(bound=other.class_table_["bound"], multiplier=multipliers)
        return model

    def _multiplier(self, label: Any) -> float:
        """The multiplier of the bound on a class, 0 without a bound; NaN where the method has no multipliers."""
        if self.multipliers_ is None:
            return np.nan
        return self.multipliers_.get(f"{self.constraint}[{label}]", 0.0)


def _minimised(problem: Problem, objective: Objective, params: np.ndarray) -> np.ndarray:
    """Where another objective is about least, by way of the easier ones that it names."""
    for easier in objective.path():
        view = FullBatchView(replace(problem, objective=easier.bind(problem.data)))
        params, _ = minimise(view, lambda p: (p.objective, objective_gradient(p)), params, _START)
    return params
