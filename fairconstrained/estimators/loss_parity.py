"""Group-loss parity: neural networks whose groups have mean losses no more than ``kappa`` apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from typing_extensions import override

from fairconstrained.constraints import Constraint, LossParity
from fairconstrained.constraints.compared_groups import AUTO
from fairconstrained.data import FairData
from fairconstrained.devices import found_device
from fairconstrained.estimators._bounded import ANY_CONSTRAINT
from fairconstrained.estimators._epoch_stream import EpochStreaming
from fairconstrained.estimators._held_out import HoldsOut, StopEarly
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._published import FollowsPaper
from fairconstrained.estimators._several_classes import TakesClasses
from fairconstrained.estimators._weight_penalty import error_weight, weight_penalty
from fairconstrained.estimators.linear import ModuleScores
from fairconstrained.estimators.parameters import HandlesSmallGroups, StartsWarm, parameter, with_parameters
from fairconstrained.metrics.cell_means import LOSS_NOTIONS, ROW_LOSSES
from fairconstrained.metrics.classes import class_log_loss
from fairconstrained.metrics.rates import OVER_LABELS
from fairconstrained.models import ModuleModel, ParametricModel
from fairconstrained.objectives import ROW_LOSS_OBJECTIVES, Objective
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import AdamLagrangian, Callback, CrossFittedNetwork, Solver, SolverResult, solver_class

__all__ = ["LossParityClassifier"]


@with_parameters
class LossParityClassifier(
    EpochStreaming,
    HoldsOut,
    TakesClasses,
    ModuleScores,
    HandlesSmallGroups,
    StartsWarm,
    FollowsPaper,
):
    r"""Neural network with a bound on the gaps between the groups' mean losses.

    .. math:: \min_\theta \; \frac{1}{n} \sum_i \ell(h_\theta(x_i), y_i) + \frac{\alpha}{2} \|W\|^2 \quad \text{s.t.}
              \quad |L_g - L_{g'}| \le \kappa \text{ for all groups } g, g', \qquad
              L_g = \frac{1}{|g|} \sum_{i \in g} \ell(h_\theta(x_i), y_i),

    or with the mean losses within the labels, see ``constraint``. ``kappa`` bounds the gap *measured on the training
    data*: with ``solver="auto"``, training ends on the last layer and all rows, until the gap is at most ``kappa``.

    A network overfits the rows that the bound compares. The fits to folds of the rows that estimate the gap on new rows
    (``new_row_folds``) tell by how much, and solvers that keep the bound keep :math:`L_g - L_{g'}` plus this optimism
    within ``kappa`` as well, as far as the bound on the training data leaves room for it (see Notes). With few rows for
    each feature there is not enough room; there small networks are joined by a few numbers, which are chosen on rows
    that they have not seen (``solver="cross_fitted_network"``).

    Parameters
    ----------
    kappa : float or None, default=0.005
        Bound on the gap, at least 0, in units of the loss (the log loss of a coin toss is 0.69). None: unconstrained,
        for comparison.
    constraint : str, Constraint or list of (str, Constraint), default="demographic_parity"
        Rows whose mean losses are compared, and whose gap ``kappa`` bounds: "demographic_parity", all rows of a group;
        "equal_opportunity", its positive rows; "equalized_odds", its positive and its negative rows, where the larger
        gap counts. The names are the paper's, see `fairconstrained.metrics.loss_parity_gap`. Or a constraint of
        `fairconstrained.constraints`, or several of them with names, see `PartialParityClassifier`; then their own
        parameters count, and ``kappa``, ``reference``, ``agg_labels`` and ``min_group_size`` are ignored.
    loss : {"log_loss", "hinge", "absolute", "squared"}, default="log_loss"
        Loss of a row, in the objective and in the constraint.
    reference : {"pairwise", "overall"}, default="pairwise"
        Mean loss with which the mean loss of a group is compared: "pairwise" takes every other group, "overall" takes
        all rows.
    agg_labels : {"max", "sum"}, default="max"
        How the gaps of the two labels are put together with ``constraint="equalized_odds"``: ``kappa`` bounds the
        larger one, or their sum, as in the paper. Without effect on the other constraints.
    hidden_layer_sizes : sequence of int, default=(64, 32)
        Widths of the hidden layers. Standardise the features: `fit` warns of those that are too large to learn from.
        If no feature has a standard deviation of 1 or more, the network takes all of them divided by the largest one,
        so that the penalty does not hold it back; not with a solver of the paper. The rows of the first `partial_fit`
        decide for all.
    activation : {"relu", "logistic", "tanh", "silu", "softplus"}, default="relu"
        Activation function of the hidden layers.
    solver : str, default="auto"
        "auto" is "adam_lagrangian", with ``error_weight=1`` where the smallest group has a tenth of the rows and more.
        Where the smallest compared cell has 50 rows and more, but fewer than 20 for each of 9 to 1,000 features, it
        is "cross_fitted_network", for the losses "log_loss" and "squared", unless there is a ``module``, narrow hidden
        layers or a limit of time, training stops early, groups overlap or there are more than two classes. Both keep
        the bound on the exact gap, and so does "augmented_lagrangian", which takes all rows in every step. The paper's
        "stochastic_ghost", "ssl_alm", "alm" and "stochastic_switching" bound the gaps of mini-batches, and "sgd",
        "adam" and "penalty" have no bound; all report the exact gap.
    solver_options : dict or "paper", optional
        Options of the solver, see its class in `fairconstrained.solvers`. "paper" is the paper's experiment with
        "stochastic_ghost", "ssl_alm", "alm" or "stochastic_switching", whose published parameters are the solvers'
        defaults: in place of this estimator's own, ``batch_size=8``. The network of the default is the paper's.
    batch_size : int, default=256
        Approximate number of rows of a mini-batch; all rows if there are no more. "ssl_alm", "alm" and
        "stochastic_switching" draw this number for the objective, and, unless ``solver_options`` has a
        ``constraint_batch_size``, this number of every group for the constraints; the paper ran them with 8.
    max_epochs : int or None, default=None
        Largest number of epochs. None is the solver's own default.
    max_time : float or None, default=None
        Seconds after which training on mini-batches ends: in every fit, also one that goes on from another, and in each
        of the fits to folds of the rows. None: no limit.
    learning_rate : float or None, default=None
        Step size of solvers on mini-batches that have such an option. None is the solver's own default.
    alpha : float or "auto", default="auto"
        Weight of the l2 penalty on the weights. Without one, a network memorises the rows that the bound
        compares, and the gap of new rows is many times ``kappa``. "auto": :math:`4000 / n^{1.5}`, at most 0.05, with n
        the number of rows of the smallest group of 50 rows and more, whatever ``kappa`` is; 0 with a solver that does
        not keep the bound, with a ``module``, and in `partial_fit`. With few features, a network memorises less, and a
        tenth of this weight may be enough; ``hints_`` says so where the bound takes most of the accuracy.
    min_group_size : int or "auto", default="auto"
        Rows that a group (or its rows of a label that is compared) needs to be compared. "auto": as many as it takes
        for no row to have more than ``max(kappa, 0.02)`` of the group's weight.
    early_stopping : bool, default=False
        Whether to set rows of every group and class aside, and end training on mini-batches when the loss on them has
        not improved for ten epochs, with the parameters for which it was least.
    validation_fraction : float, default=0.1
        Share of the rows that ``early_stopping`` sets aside; the bound holds on the others.
    device : str, default="auto"
        "auto" is a CUDA device if there is one, else the CPU. The fitted model is on the CPU.
    callbacks : sequence of callable, optional
        Functions that are called with the record of every epoch, see `fairconstrained.callbacks`; with
        "cross_fitted_network" with that of every search of its numbers.
    random_state : int, RandomState instance or None, default=None
        Seed of the network, the mini-batches and the held-out rows. None is another seed every time; numpy's global
        generator is left alone.
    warm_start : bool, default=False
        Continue from the last fit: with the same solver also from its multipliers, moments and epoch, so that a larger
        ``max_epochs`` adds epochs.

    Attributes
    ----------
    module_ : torch.nn.Module
        Maps rows to scores, on the CPU and in evaluation mode.
    constraint_values_ : dict
        The exact gap on the training data, as "loss_parity".
    group_losses_ : DataFrame
        One row for each group: ``n_samples``, its ``share`` of the weight, ``loss`` (or ``loss_positive`` and
        ``loss_negative``), ``gap`` to the group it differs from most or to all rows, and ``compared_as``, the name
        under which the constraint knows it, None for a group that it leaves out; ``gap`` is to all of them, also to
        those. For a list of constraints a dict of these.
    multipliers_ : dict or None
        Multipliers of the active comparisons, in units of the objective per unit of ``kappa``; None where the solver
        has none.
    n_iter_, n_evaluations_ : int
        Numbers of epochs, and of evaluations in units of passes over all rows.
    history_ : list of dict
        One record per epoch, and per iteration of the part that follows the epochs, whose ``n_iter`` begins again at 0;
        with "cross_fitted_network" one for each search of its numbers.

    Raises
    ------
    ValueError
        From `fit`: for groups that are too small (with their sizes), a module of the wrong shape, an unknown device or
        solver, or parameters out of range.

    Notes
    -----
    With the differences :math:`d_{gg'} = L_g - L_{g'}` on training rows, on those that the models of k folds have seen
    and on those that they have not, the bounds are

    .. math:: d_{gg'} \le \kappa, \qquad d_{gg'} + t \max(o_{gg'}, 0) \le \kappa, \qquad
              o_{gg'} = \sqrt{1 - 1 / k} \, (d_{gg'}^{\mathrm{unseen}} - d_{gg'}^{\mathrm{seen}}),

    with the largest :math:`t \le 1` for which no :math:`t o_{gg'}` is above :math:`1.75 \kappa`. If no model is found
    that keeps both, the first ones count alone. So they do with ``new_row_folds=None`` or ``promise="new_rows"``, for
    more than eight groups that are compared in pairs, and for constraints on other things than differences of smooth
    functions of the rows.

    ``sensitive_features`` may be a table of booleans, dense or sparse, with a column for every group: groups may then
    overlap, and rows belong to none. See `fairconstrained.groups.Membership`.

    See Also
    --------
    fairconstrained.metrics.loss_parity_gap : The metric that ``kappa`` bounds.

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, Benchmarking Stochastic Approximation Algorithms for Fairness-Constrained
    Training of Deep Neural Networks, arXiv:2507.04033: Table 1 and eq. 4.

    Examples
    --------
    >>> from fairconstrained import LossParityClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> model = LossParityClassifier(kappa=0.01, hidden_layer_sizes=(8,), random_state=0)
    >>> model = model.fit(X, y, sensitive_features=group)
    >>> model.constraint_values_["loss_parity"] <= 0.01 + 1e-6
    True
    """

    kappa: float | None = parameter(0.005, [Interval(Real, 0, None, closed="left"), None], kw_only=False)
    constraint: str | Constraint | Sequence[tuple[str, Constraint]] = parameter("demographic_parity", ANY_CONSTRAINT)
    loss: str = parameter("log_loss", [StrOptions(set(ROW_LOSSES))])
    reference: str = parameter("pairwise", [StrOptions({"pairwise", "overall"})])
    agg_labels: str = parameter("max", [StrOptions(set(OVER_LABELS))])
    hidden_layer_sizes: Sequence[int] = parameter((64, 32), ["array-like"])
    batch_size: int = parameter(256, [Interval(Integral, 1, None, closed="left")])
    max_epochs: int | None = parameter(None, [Interval(Integral, 1, None, closed="left"), None])
    max_time: float | None = parameter(None, [Interval(Real, 0, None, closed="neither"), None])
    learning_rate: float | None = parameter(None, [Interval(Real, 0, None, closed="neither"), None])
    alpha: float | str = parameter(  # type: ignore[assignment]  # the bases know numbers alone
        "auto", [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]
    )
    min_group_size: int | str = parameter(AUTO, [Interval(Integral, 0, None, closed="left"), StrOptions({AUTO})])
    early_stopping: bool = parameter(False, ["boolean"])
    validation_fraction: float = parameter(0.1, [Interval(Real, 0, 1, closed="neither")])
    device: str = parameter("auto", [str])
    callbacks: Sequence[Callback] | None = parameter(None, ["array-like", None])

    _default_solver: ClassVar[str] = AdamLagrangian.name
    _limit: ClassVar[str] = "max_epochs"
    _takes_overlapping_groups: ClassVar[bool] = True
    _constraint_names = tuple(LOSS_NOTIONS)
    _published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        name: {"batch_size": 8} for name in ("stochastic_ghost", "ssl_alm", "alm", "stochastic_switching")
    }

    def _model(self, data: FairData) -> ParametricModel:
        found_device(self.device)
        size: dict[str, Any] = {"n_features": data.row_shape, "alpha": self._alpha(data), "device": self.device}
        size["n_outputs"] = self._n_heads(data)
        if self.module is not None:
            return self._of_classes(ModuleModel(self.module, **size))
        return self._of_classes(self._network(data, **size))

    def _alpha(self, data: FairData) -> float:
        """Weight of the penalty."""
        if self.alpha != "auto":
            return float(self.alpha)
        solver = solver_class(self._default_solver if self.solver == "auto" else self.solver)
        is_streamed = self._compares_all_groups
        return weight_penalty(data) if solver.keeps_metric and self.module is None and not is_streamed else 0.0

    @override
    def _cheaper_bound(self, data: FairData) -> str:
        if not self._penalises_by_itself(data):
            return super()._cheaper_bound(data)
        return (
            "Where features are few, a smaller alpha often costs less (without the bound it was a tenth), and "
            "new_row_gaps_ tells whether new rows keep the bound then; otherwise raise kappa."
        )

    @override
    def _freed(self, problem: Problem) -> Problem:
        """Implement `BaseFairEstimator._freed`; where the penalty is by default, it may take more than the bound."""
        free = super()._freed(problem)
        if not self._penalises_by_itself(problem.data):
            return free
        model: Any = problem.model
        return replace(free, model=replace(model, alpha=0.1 * model.alpha))

    def _penalises_by_itself(self, data: FairData) -> bool:
        """Whether the weight of the penalty is not the user's."""
        return not self._on_scores and self.alpha == "auto" and self._alpha(data) > 0

    def _objective(self) -> Objective:
        return self._for_classes(ROW_LOSS_OBJECTIVES[self.loss])

    def _constraint_named(self, name: str) -> Constraint:
        own = ("kappa", "loss", "reference", "agg_labels", "min_group_size", "small_groups")
        return LossParity(constraint=name, **{option: getattr(self, option) for option in own})

    def _constraints_choose_groups(self) -> bool:
        return isinstance(self.constraint, str)

    def _held_out_share(self) -> float | None:
        return self.validation_fraction if self.early_stopping else None

    @override
    def _auto_solver(self, problem: Problem) -> str:
        # which of the several networks would a stream, a limit of time or a stop be about?
        is_one_network = self._compares_all_groups or self.early_stopping or self.max_time is not None
        if self._asks_for_fairness() and not is_one_network and CrossFittedNetwork.suits(problem):
            return CrossFittedNetwork.name
        return super()._auto_solver(problem)

    @override
    def _makes_up_for_optimism(self, solver: Solver) -> bool:
        return solver.keeps_metric and not solver.bounds_unseen_rows

    def _solver(self, problem: Problem, **special: Any) -> Solver:
        """Implement `BaseFairEstimator._solver`; errors of two classes are counted unless a group is small."""
        weight = 0.0 if self._has_several_classes else error_weight(problem.data)
        solver = super()._solver(problem, **({"error_weight": weight} | special))
        if self.early_stopping and isinstance(solver, CrossFittedNetwork):
            raise ValueError(
                f"early_stopping=True ends the training of one network, and solver={solver.name!r} trains several. Set "
                f"early_stopping=False, or solver={self._default_solver!r}."
            )
        return solver

    def _common_options(self, solver: type[Solver]) -> dict[str, Any]:
        return {
            solver.iterations_option: self.max_epochs,
            "batch_size": self.batch_size,
            "max_time": self.max_time,
            "learning_rate": self.learning_rate,
            "verbose": self._solver_verbosity,
        }

    @override
    def _watchers(self, solver: Solver, problem: Problem) -> list[Callback]:
        return [*super()._watchers(solver, problem), *self._early_stop(problem)]

    def _early_stop(self, problem: Problem) -> list[StopEarly]:
        """The callback that stops early; none if there are no rows to stop by."""
        return [] if self._held_out is None else [StopEarly(partial(self._held_out_loss, problem.parametric))]

    @override
    def _watchers_of_part(self, problem: Problem) -> list[Callback]:
        return [*super()._watchers_of_part(problem), *self._early_stop(problem)]

    def _held_out_loss(self, model: ParametricModel, params: np.ndarray) -> float:
        assert self._held_out is not None  # there is no stopping without
        held = self._held_out
        loss = class_log_loss if self._has_several_classes else ROW_LOSSES[self.loss]
        losses = loss(model.scores(params, held.X), self._known_target(held.y).values)
        return float(np.average(losses, weights=held.weights))

    @override
    def _checked_start(self, problem: Problem, start: Start) -> Start:
        """Implement `WatchesSolver._checked_start`; it has to be one of this model and these data."""
        start = super()._checked_start(problem, start)
        if start.model_state.size != problem.n_params:
            raise ValueError(
                f"a callback would go on from {start.model_state.size} parameters, but the model has "
                f"{problem.n_params}. "
                "Remove the checkpoint of another model, or pass resume=False."
            )
        return start

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """Implement `BaseFairEstimator._report`; also the table of the groups' losses."""
        excess = super()._report(problem, params, result, target)
        self.group_losses_ = self._group_tables(problem.data, problem.scores(params))
        return excess
