"""What the partial parity estimators share: their notions and objectives by name, and several named constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.constraints import (
    BoundConstraint,
    Constraint,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    StatisticalParity,
)
from fairconstrained.data import FairData
from fairconstrained.estimators._base import Target
from fairconstrained.estimators._stationarity import TellsKKT
from fairconstrained.estimators.linear import ModuleScores
from fairconstrained.objectives import (
    PAIR_LOSSES,
    Hinge,
    Logistic,
    Objective,
    PairwiseAUC,
    Squared,
    TruncatedLogistic,
    ZeroOne,
)
from fairconstrained.objectives.pairwise import one_interval
from fairconstrained.surrogates import SURROGATES

__all__ = [
    "LABEL_FREE_PARITIES",
    "OBJECTIVES",
    "OBJECTIVE_CHECKS",
    "OBJECTIVE_PARAMETERS",
    "PARITIES",
    "PARITY_PARAMETERS",
    "PartialParity",
]

#: What ``parity`` may be.
PARITIES: dict[str, type[Constraint]] = {
    "statistical": StatisticalParity,
    "demographic": DemographicParity,
    "group_auc": GroupAUC,
    "equal_opportunity": EqualOpportunity,
    "equalized_odds": EqualizedOdds,
}
#: Those that do not ask for labels.
LABEL_FREE_PARITIES = ("statistical", "demographic", "group_auc")
#: What ``objective`` may be: from the estimator to the objective.
OBJECTIVES: dict[str, Callable[[Any], Objective]] = {
    "logistic": lambda estimator: Logistic(),
    "truncated_logistic": lambda estimator: TruncatedLogistic(estimator.truncation),
    "hinge": lambda estimator: Hinge(),
    "squared": lambda estimator: Squared(),
    "zero_one": lambda estimator: ZeroOne(),
    "auc": lambda estimator: PairwiseAUC(estimator.auc_loss, estimator.auc_interval),
}


def _is_named_constraint(pair: Any) -> bool:
    """Whether it is a pair of a name and a constraint."""
    return (
        isinstance(pair, Sequence) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], Constraint)
    )


#: What the parameters that describe the objective and the parity may be.
OBJECTIVE_PARAMETERS: dict[str, list[Any]] = {
    "objective": [StrOptions(set(OBJECTIVES))],
    "truncation": [Interval(Real, 0, None, closed="neither")],
    "auc_loss": [StrOptions(set(PAIR_LOSSES))],
}
#: What is more than a type about them.
OBJECTIVE_CHECKS: dict[str, Callable[[Any, str], object]] = {"auc_interval": one_interval}
PARITY_PARAMETERS: dict[str, list[Any]] = {
    "normalize": ["boolean"],
    "threshold": [Interval(Real, None, None, closed="neither")],
    "surrogate": [StrOptions(set(SURROGATES))],
    "surrogate_width": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "n_levels": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
}


class PartialParity(TellsKKT, ModuleScores):
    """The constraints that both estimators share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ModuleScores._parameter_constraints,
        **TellsKKT._parameter_constraints,
        **PARITY_PARAMETERS,
        "small_groups": [StrOptions({"error", "merge", "ignore"})],
    }
    #: Of an estimator without such a parameter.
    constraints: Sequence[tuple[str, Constraint]] | None = None

    def _constraints(self, target: Target) -> list[Constraint]:
        return [constraint.in_units(target.offset, target.scale) for constraint in self._named_constraints().values()]

    def _bound_constraints(self, data: FairData, target: Target, checked: bool = True) -> tuple[BoundConstraint, ...]:
        bound = super()._bound_constraints(data, target, checked)
        if self.constraints is None:
            return bound
        names = self._named_constraints()
        return tuple(constraint.renamed(name) for constraint, name in zip(bound, names, strict=True))

    def _bound_params(self, kappa: float | None) -> dict[str, Any]:
        """See `BaseFairEstimator._bound_params`; of several constraints, each is bounded alike."""
        if self.constraints is None:
            return super()._bound_params(kappa)
        return {f"constraints__{name}__kappa": kappa for name in self._named_constraints()}

    def _asks_for_fairness(self) -> bool:
        return self._bounds_nothing() or any(c.kappa is not None for c in self._named_constraints().values())

    def _bounds_nothing(self) -> bool:
        return self.constraints is not None and not len(self.constraints)

    def _named_constraints(self) -> dict[str, Constraint]:
        """The user's constraints by name, or the single one that the other parameters describe."""
        if self.constraints is None:
            notion = PARITIES[self.parity]
            return {self.parity: notion(**{name: getattr(self, name) for name in notion().get_params()})}
        pairs = list(self.constraints)
        if not all(_is_named_constraint(pair) for pair in pairs):
            raise ValueError(
                "constraints must be a list of (name, constraint) pairs, such as "
                f"[('top', StatisticalParity(0.05, interval=(0, 0.2)))]; got {self.constraints!r}."
            )
        named = dict(pairs)
        if len(named) < len(pairs) or any("__" in name for name in named):
            raise ValueError(
                f"names of constraints must be unique and without '__'; got {[name for name, _ in pairs]}."
            )
        return named

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the named constraints, as ``constraints__<name>__<parameter>``.

        Returns
        -------
        params : dict
        """
        params = super().get_params(deep=deep)
        if deep and isinstance(self.constraints, Sequence):
            # whatever else is in there is for fit to complain about
            for name, constraint in filter(_is_named_constraint, self.constraints):
                params[f"constraints__{name}"] = constraint
                for key, value in constraint.get_params().items():
                    params[f"constraints__{name}__{key}"] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of named constraints (``constraints__<name>__<parameter>``).

        Parameters
        ----------
        **params : dict
            Parameters by name, as `get_params` has them.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            For an unknown parameter or constraint.
        """
        prefix = "constraints__"
        super().set_params(**{key: value for key, value in params.items() if not key.startswith(prefix)})
        # whole constraints before parameters of them
        for key in sorted((key for key in params if key.startswith(prefix)), key=lambda key: key.count("__")):
            name, _, parameter = key.removeprefix(prefix).partition("__")
            named = dict(self.constraints or ())
            if name not in named:
                raise ValueError(f"there is no constraint {name!r}; the names are {sorted(named)}.")
            if parameter:
                named[name].set_params(**{parameter: params[key]})
            else:
                self.constraints = [(n, params[key] if n == name else c) for n, c in (self.constraints or ())]
        return self
