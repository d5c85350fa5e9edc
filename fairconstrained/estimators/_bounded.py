"""The argument ``constraint``: a name, a constraint of the user's own, or several constraints with names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from typing_extensions import override

from fairconstrained.checks.messages import meant
from fairconstrained.constraints import (
    AUCGap,
    BoundConstraint,
    Constraint,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupRates,
    LossParity,
    StatisticalParity,
)
from fairconstrained.constraints.group_rates import NAMED_RATES
from fairconstrained.data import FairData
from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators._outcome import Target
from fairconstrained.metrics import find_metric, metric_names
from fairconstrained.metrics.auc_sets import AUC_METRICS

__all__ = ["ANY_CONSTRAINT", "TakesConstraint", "constraint_name"]

#: Allowed values of ``constraint``.
ANY_CONSTRAINT = [str, Constraint, list, tuple]
_PREFIX = "constraint__"


def _written(kind: type[Constraint], **params: Any) -> str:
    """A constraint as a user writes it, whatever ``kappa`` is."""
    given = "".join(f"{name}={value!r}, " for name, value in params.items())
    return f"{kind.__name__}({given}kappa=...)"


#: Constraints, as a user writes them, by the names that estimators have for them.
_WRITTEN: dict[str, str] = {
    **{name: _written(AUCGap, constraint=name) for name in AUC_METRICS},
    **{name: _written(GroupRates, **params) for name, params in NAMED_RATES.items()},
    "demographic_parity": _written(DemographicParity),
    "equal_opportunity": _written(EqualOpportunity),
    "equalized_odds": _written(EqualizedOdds),
    "statistical_parity": _written(StatisticalParity),
    "loss_parity": _written(LossParity),
}


def _in_its_place(name: str) -> str:
    """The end of a message about a name that an estimator does not have: the constraint that it stands for, if any."""
    found = [_WRITTEN[own] for own in (name, *_names_of_metric(name)) if own in _WRITTEN]
    return f" Give {found[0]} in its place." if found else ""


def constraint_name(name: str, allowed: Iterable[str], advice: Callable[[str], str] = _in_its_place) -> str:
    """Return the allowed name that stands for the same metric as ``name``.

    Parameters
    ----------
    name : str
        Name of a constraint, or any name of their metric, such as Fairlearn's "demographic_parity_difference".
    allowed : iterable of str
    advice : callable, optional
        Function from a name that is not allowed to the end of the message about it; empty for no advice.

    Raises
    ------
    ValueError
        If there is none.
    """
    allowed = list(allowed)
    if name in allowed:
        return name
    found = [
        other for other in (alias.removeprefix("partial_") for alias in _names_of_metric(name)) if other in allowed
    ]
    if not found:
        is_notion = name in _WRITTEN or name in metric_names()  # else it is probably misspelt
        raise _refusal(name, allowed, (is_notion and advice(name)) or meant(name, allowed) or advice(name))
    return found[0]


def _names_of_metric(name: str) -> Sequence[str]:
    """All names of the metric that has this one; none where it is the name of no metric."""
    return find_metric(name)[0].names if name in metric_names() else ()


def _refusal(constraint: Any, names: Iterable[str], advice: str = "") -> ValueError:
    """The error for what ``constraint`` cannot be."""
    return ValueError(
        f"constraint must be one of {list(names)}, a constraint of fairconstrained.constraints, or a list of (name, "
        f"constraint) pairs, such as [('top', StatisticalParity(0.05, interval=(0, 0.2)))]; got {constraint!r}.{advice}"
    )


def _is_pair(pair: Any) -> bool:
    """Whether it is a pair of a name and a constraint."""
    return (
        isinstance(pair, Sequence) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], Constraint)
    )


class TakesConstraint(BaseFairEstimator):
    """Estimators whose ``constraint`` names the bounded notion, with ``kappa`` where it is a name."""

    #: Names that ``constraint`` may be.
    _constraint_names: ClassVar[Sequence[str]]
    constraint: Any

    def _constraint_named(self, name: str) -> Constraint:
        """The constraint of one of the names, with the parameters of the estimator."""
        raise NotImplementedError

    def _advice_on_name(self, name: str) -> str:
        """The end of a message about a name that ``constraint`` cannot be; empty where there is nothing to say."""
        return _in_its_place(name)

    def _pairs(self) -> dict[str, Constraint] | None:
        """The user's constraints by name, where there is a list of them."""
        if not isinstance(self.constraint, Sequence) or isinstance(self.constraint, str):
            return None
        pairs = list(self.constraint)
        if not all(map(_is_pair, pairs)):
            return self._other_sequence()
        named = dict(pairs)
        if len(named) < len(pairs) or any("__" in name for name in named):
            raise ValueError(f"names in constraint must be unique and without '__'; got {[name for name, _ in pairs]}.")
        return named

    def _other_sequence(self) -> dict[str, Constraint] | None:
        """Called for a sequence of something else than pairs."""
        raise _refusal(self.constraint, self._constraint_names)

    def _chosen(self) -> list[Constraint]:
        """The constraints that the user asked for."""
        return [constraint.of_labels(getattr(self, "classes_", ())) for constraint in self._asked_for()]

    def _asked_for(self) -> list[Constraint]:
        pairs = self._pairs()
        if pairs is not None:
            return list(pairs.values())
        if isinstance(self.constraint, Constraint):
            return [self.constraint]
        if isinstance(self.constraint, str):
            name = constraint_name(self.constraint, self._constraint_names, self._advice_on_name)
            return [self._constraint_named(name)]
        return [self._constraint_named(self.constraint)]

    def _constraints(self, target: Target) -> list[Constraint]:
        return [constraint.in_units(target.offset, target.scale) for constraint in self._chosen()]

    def _names_of(self, bound: Sequence[BoundConstraint]) -> list[str]:
        pairs = self._pairs()
        return super()._names_of(bound) if pairs is None else list(pairs)

    def _by_name(self) -> dict[str, Constraint]:
        """The user's constraints by the names in ``constraint_values_``; only those that compare anything."""
        pairs, chosen = self._pairs(), self._chosen()
        if pairs is None:
            return dict.fromkeys(self.constraint_values_, chosen[0])
        named = dict(zip(pairs, chosen, strict=True))
        return {name: named[name] for name in self.constraint_values_}

    @override
    def _bounded_from_below(self) -> set[str]:
        return {name for name, constraint in self._by_name().items() if constraint.bounds_from_below}

    @override
    def _bounds_levels(self) -> bool:
        return any(constraint.bounds_levels for constraint in self._asked_for())

    def _values_of_decisions(self, data: FairData, scores: np.ndarray) -> dict[str, float]:
        """The metrics of the decisions themselves, by name."""
        return {name: constraint.value_of_decisions(data, scores) for name, constraint in self._by_name().items()}

    def _group_tables(self, data: FairData, scores: np.ndarray) -> Any:
        """The table of the groups' means; for a list of constraints a dict of those that they have."""
        tables = [constraint.group_table(data, scores) for constraint in self._chosen()]
        for table, names in zip(tables, self._compared_as, strict=False):  # of a single group, nothing is compared
            if table is not None:
                labels = map(str, table.index.get_level_values("group"))  # the last level, where there are several
                known = [names.get(label, label) for label in labels]
                # of type object, as a column of strings would have NaN in place of None
                table["compared_as"] = pd.Series(known, index=table.index, dtype=object)
        pairs = self._pairs()
        if pairs is None:
            return tables[0]
        return {name: table for name, table in zip(pairs, tables, strict=True) if table is not None}

    def _bound_params(self, kappa: float | None) -> dict[str, Any]:
        """Implement `BaseFairEstimator._bound_params`; of several constraints, each is bounded alike."""
        if kappa is not None and any(constraint.bounds_from_below for constraint in self._asked_for()):
            raise ValueError("kappa of a floor is the least rate that is allowed, not the largest gap.")
        pairs = self._pairs()
        if pairs is not None:
            return {f"{_PREFIX}{name}__kappa": kappa for name in pairs}
        return {f"{_PREFIX}kappa" if isinstance(self.constraint, Constraint) else "kappa": kappa}

    @override
    def named_kappas(self) -> dict[str, float | None]:
        """Return ``kappa`` by name, see `BaseFairEstimator.named_kappas`; of several constraints, each has its own."""
        return {name: constraint.kappa for name, constraint in self._by_name().items()}

    @override
    def _limits_single_groups(self) -> bool:
        return any(constraint.limits_every_group for constraint in self._asked_for())

    def _asks_for_fairness(self) -> bool:
        return self._bounds_nothing() or any(constraint.kappa is not None for constraint in self._chosen())

    def _bounds_nothing(self) -> bool:
        return self._pairs() == {}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of constraints, as ``constraint__<parameter>``, and of several as
            ``constraint__<name>__<parameter>``.

        Returns
        -------
        params : dict
        """
        params = super().get_params(deep=deep)
        if deep and isinstance(self.constraint, list | tuple):
            # whatever else is in there is for fit to complain about
            for name, constraint in filter(_is_pair, self.constraint):
                params[f"{_PREFIX}{name}"] = constraint
                for key, value in constraint.get_params().items():
                    params[f"{_PREFIX}{name}__{key}"] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of constraints (``constraint__<parameter>``, ``constraint__<name>__<parameter>``).

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
        if "constraint" in params:
            super().set_params(constraint=params.pop("constraint"))
        if isinstance(self.constraint, str) and any(key.startswith(_PREFIX) for key in params):
            raise ValueError(
                f"constraint={self.constraint!r} is a name, which has no parameters: set kappa and the other "
                "parameters of the estimator, or give a constraint or a list of (name, constraint) pairs."
            )
        if not isinstance(self.constraint, list | tuple):
            super().set_params(**params)
            return self
        super().set_params(**{key: value for key, value in params.items() if not key.startswith(_PREFIX)})
        # whole constraints before parameters of them
        for key in sorted((key for key in params if key.startswith(_PREFIX)), key=lambda key: key.count("__")):
            name, _, parameter = key.removeprefix(_PREFIX).partition("__")
            named = dict(self.constraint)
            if name not in named:
                raise ValueError(f"there is no constraint {name!r}; the names are {sorted(named)}.")
            if parameter:
                named[name].set_params(**{parameter: params[key]})
            else:
                self.constraint = [(n, params[key] if n == name else c) for n, c in self.constraint]
        return self
