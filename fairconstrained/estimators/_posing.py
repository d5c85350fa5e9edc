"""The problem that an estimator poses: its data, model, objective and constraints."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.constraints import BoundConstraint, Constraint
from fairconstrained.data import FairData
from fairconstrained.domains import Domain
from fairconstrained.estimators.grouping import NO_SMALL_GROUPS, SmallGroups, Stratified, as_labels, encode_groups
from fairconstrained.groups import MERGED, Groups
from fairconstrained.models import Model
from fairconstrained.objectives import Objective
from fairconstrained.problem import Problem

if TYPE_CHECKING:
    from fairconstrained.estimators._outcome import Target

__all__ = ["PosesProblem"]


class PosesProblem(BaseEstimator, ABC):
    """Estimators that pose a problem: a subclass says which model, objective and constraints it has."""

    #: Whether a table of booleans says which groups rows belong to; otherwise its columns are combined.
    _takes_overlapping_groups: ClassVar[bool] = False
    #: Names of several columns of sensitive features in a fit.
    _group_columns: tuple[Hashable, ...] = ()
    #: Names under which every constraint is to compare small groups, see `_measuring`; empty where rows tell.
    _known_groups: Sequence[Mapping[str, str | None]] = ()
    #: Whether every group is to be compared, however small.
    _compares_all_groups: bool = False
    #: Whether no constraint of a fit had anything to compare.
    _compares_nothing: bool = False
    #: The constraints of a fit that had nothing to compare, with the groups that each has merged or left out.
    _idle: Sequence[tuple[str, tuple[str, ...]]] = ()

    @abstractmethod
    def _model(self, data: FairData) -> Model:
        """The model of the scores."""

    @abstractmethod
    def _objective(self) -> Objective:
        """The objective that is minimised."""

    @abstractmethod
    def _constraints(self, target: Target) -> list[Constraint]:
        """The constraints, in the units of the solver."""

    @abstractmethod
    def _encode_target(self, y: np.ndarray, sample_weight: np.ndarray | None) -> Target:
        """The targets in the units of the solver; sets what prediction needs to translate back."""

    def _decision_threshold(self) -> float:
        """Score above which a classifier predicts the positive class."""
        return 0.0

    def _data(
        self,
        X: Any,
        target: Target,
        sensitive_features: Any,
        sample_weight: np.ndarray | None,
        small: SmallGroups = NO_SMALL_GROUPS,
    ) -> FairData:
        """The data that the terms are bound to; sets ``groups_`` and the names of their columns."""
        given = Stratified.of(sensitive_features)
        groups = encode_groups(given.features, target.values, sample_weight, self._takes_overlapping_groups)
        groups = small.applied(groups)
        self.groups_ = as_labels(() if given.features is None else groups.names)
        self._group_columns = groups.column_names
        return FairData.from_arrays(
            X,
            target.values,
            groups.codes,
            groups.labels,
            sample_weight,
            groups.unions,
            n_ignored=small.n_ignored(groups),
            strata=given.encoded(target.values.size),
            label_names=target.names,
        )

    def _problem(self, data: FairData, target: Target) -> Problem:
        """The problem on ``data``, in the units of the solver."""
        model = self._model(data)
        data = model.placed(data)
        bound = () if self._holds_vacuously(data) else self._bound_constraints(data, target)
        return Problem(
            model=model,
            objective=self._objective().bind(data),
            constraints=self._comparing(bound, data),
            data=data,
            domain=self._domain(data),
            threshold=self._decision_threshold(),
        )

    def _comparing(self, bound: tuple[BoundConstraint, ...], data: FairData) -> tuple[BoundConstraint, ...]:
        """The constraints that have anything to compare; sets ``ignored_groups_``."""
        if hasattr(self, "small_groups"):
            self._compared_as = [constraint.compared_as for constraint in bound]
            known = [names for of in self._compared_as for names in of.items()]
            named = {str(label): label for label in (data.unions or data).labels}
            ignored = dict.fromkeys(named[label] for label, name in known if name is None)
            self.ignored_groups_ = [*data.labels[data.n_groups - data.n_ignored :], *ignored]
        kept = tuple(constraint for constraint in bound if constraint.compares)
        self._compares_nothing = bool(bound) and not kept
        self._idle = tuple((c.name, tuple(c.compared_as)) for c in bound if not c.compares)
        return kept

    def _lacks_bound(self, problem: Problem) -> bool:
        """Whether a bound was asked for, and there is nothing to bound."""
        nothing = self._holds_vacuously(problem.data) or self._bounds_nothing() or self._compares_nothing
        return self._asks_for_fairness() and not problem.constraints and nothing

    def _caveats(self, problem: Problem, scores: np.ndarray) -> list[str]:
        """Warnings about decisions for which a bounded metric has a value but no meaning."""
        return [caveat for each in problem.constraints if (caveat := each.caveat(scores))]

    def _domain(self, data: FairData) -> Domain | None:
        """The set of the parameters; None for all."""
        return None

    def _bound_constraints(self, data: FairData, target: Target, checked: bool = True) -> tuple[BoundConstraint, ...]:
        """The constraints on ``data``; unless ``checked``, whose cells may be too small for ``kappa``."""
        constraints = self._constraints(target)
        if data.strata is not None and not any(constraint.compares_within_strata for constraint in constraints):
            raise ValueError(
                "strata were given, but no constraint compares groups within them; leave them out, or set "
                "constraint='conditional_parity', or a GroupRates with within='strata'."
            )
        if self._compares_all_groups:
            constraints = [constraint.of_all_groups() for constraint in constraints]
        if len(self._known_groups) == len(constraints):
            constraints = [c.comparing(names) for c, names in zip(constraints, self._known_groups, strict=True)]
        bound = [constraint.unchecked(data) for constraint in constraints]
        reported = tuple(c.renamed(name) for c, name in zip(bound, self._names_of(bound), strict=True))
        for constraint in reported if checked else ():
            constraint.check_resolution()
        return reported

    def _names_of(self, bound: Sequence[BoundConstraint]) -> list[str]:
        """The names under which ``constraint_values_`` reports the constraints."""
        return [constraint.name for constraint in bound]

    def _constraints_choose_groups(self) -> bool:
        """Whether the constraints themselves merge or ignore small groups, which may overlap."""
        return False

    def _holds_vacuously(self, data: FairData) -> bool:
        """Whether there is nothing to compare, nor a limit of the single group."""
        n_groups = data.n_groups - data.n_ignored
        # without sensitive features, the label of all rows is None
        is_limited = n_groups == 1 and data.labels[0] is not None and self._limits_single_groups()
        return n_groups <= 1 and not is_limited

    def _limits_single_groups(self) -> bool:
        """Whether a bound is a limit of every group by itself, so that a single group has one as well."""
        return False

    def _asks_for_fairness(self) -> bool:
        """Whether anything is to be bounded."""
        return self.kappa is not None

    def _bounds_anything(self, problem: Problem) -> bool:
        """Whether any metric of the problem is to be bounded."""
        return bool(problem.constraints) and self._asks_for_fairness()

    def _bounds_nothing(self) -> bool:
        """Whether the user's list of constraints is empty."""
        return False

    def _small_groups(self, target: Target, sensitive_features: Any, sample_weight: np.ndarray | None) -> SmallGroups:
        """The groups that are too small for the bounds, where ``small_groups`` says what is to become of them."""
        what = getattr(self, "small_groups", "error")
        if what == "error" or sensitive_features is None or self._constraints_choose_groups():
            return NO_SMALL_GROUPS
        rows = np.empty((target.values.size, 0))
        apart = copy.copy(self)
        data = apart._data(rows, target, sensitive_features, sample_weight)
        if data.unions is not None:
            raise ValueError(
                f"small_groups={what!r} needs groups that do not overlap where constraint is not a name. Set it to "
                "'error', and small_groups of the constraints that have it, such as RateGap(small_groups='merge')."
            )
        small = SmallGroups.found(self._bound_constraints(data, target, checked=False), data.labels, what)
        while 0 < len(small.merged) < data.n_groups - 1:  # one group has to be left to compare with
            merged = apart._data(rows, target, sensitive_features, sample_weight, small)
            found = SmallGroups.found(self._bound_constraints(merged, target, checked=False), merged.labels, what)
            if MERGED not in found.merged:
                break
            small = small.joined_by_smallest(Groups(data.codes, data.labels))
        return small
