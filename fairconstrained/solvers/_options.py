"""Values that options of solvers may have: said in the annotations of their fields, checked when a solver is made."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Protocol, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.utils._param_validation import Interval

__all__ = [
    "AtLeastOne",
    "Count",
    "Fraction",
    "NonNegative",
    "NonNegativeInt",
    "Positive",
    "Share",
    "check_options",
]


class _Allowed(Protocol):
    """Values that an option may have; scikit-learn's `Interval` has the same interface."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether this value is allowed."""


class _OneOf:
    """Some values themselves."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def is_satisfied_by(self, val: Any) -> bool:
        """Implement `_Allowed.is_satisfied_by`; 1 is not True."""
        return any(val is value or (isinstance(val, str) and val == value) for value in self._values)

    def __str__(self) -> str:
        return " or ".join(repr(value) for value in self._values)


class _Boolean:
    """True and False, of Python or of numpy."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether the value is allowed."""
        return isinstance(val, bool | np.bool_)

    def __str__(self) -> str:
        return "True or False"


class _Several:
    """A sequence of allowed values.

    Parameters
    ----------
    of : _Allowed
        Rule for every element.
    least : int
        Least number of elements.
    """

    def __init__(self, of: _Allowed, least: int) -> None:
        self._of, self._least = of, least

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether the value is allowed."""
        is_sequence = isinstance(val, Sequence | np.ndarray) and not isinstance(val, str) and np.ndim(val) == 1
        return is_sequence and len(val) >= self._least and all(self._of.is_satisfied_by(element) for element in val)

    def __str__(self) -> str:
        return f"a sequence of values that are each {self._of}"


#: Integers, from 1 and from 0.
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
NonNegativeInt = Annotated[int, Interval(Integral, 0, None, closed="left")]
#: Finite numbers above 0, from 0, and from 1.
Positive = Annotated[float, Interval(Real, 0, np.inf, closed="neither")]
NonNegative = Annotated[float, Interval(Real, 0, np.inf, closed="left")]
AtLeastOne = Annotated[float, Interval(Real, 1, np.inf, closed="left")]
#: Numbers between 0 and 1, with both and without either of them.
Share = Annotated[float, Interval(Real, 0, 1, closed="both")]
Fraction = Annotated[float, Interval(Real, 0, 1, closed="neither")]


def check_options(solver: Any) -> None:
    """Raise ValueError for an option that is not what the annotation of its field allows.

    Parameters
    ----------
    solver : Solver
        Annotations that say no more than a class of which nothing is known here, such as ``np.ndarray``, allow
        everything.
    """
    for name, allowed in _allowed_by_option(cast(Hashable, type(solver))).items():
        value = getattr(solver, name)
        if allowed and not any(one.is_satisfied_by(value) for one in allowed):
            expected = " or ".join(str(one) for one in allowed)
            raise ValueError(f"{name} of solver {solver.name!r} must be {expected}; got {value!r}.")


@cache
def _allowed_by_option(solver: Any) -> dict[str, tuple[_Allowed, ...]]:
    hints = get_type_hints(solver, include_extras=True)
    return {option.name: _allowed(hints[option.name]) for option in fields(solver)}


#: Values that annotations without a range allow.
_PLAIN: dict[Any, _Allowed] = {
    bool: _Boolean(),
    float: Interval(Real, None, None, closed="neither"),
    int: Interval(Integral, None, None, closed="neither"),
    NoneType: _OneOf(None),
}


def _allowed(hint: Any) -> tuple[_Allowed, ...]:
    """Return the kinds of values that an annotation allows; empty where it does not say."""
    kind, arguments = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return hint.__metadata__
    if kind is Literal:
        return (_OneOf(*arguments),)
    if kind in (tuple, Sequence):
        of = _allowed(arguments[0])
        return (_Several(of[0], 0 if kind is tuple else 1),) if of else ()
    if kind in (Union, UnionType):
        parts = [_allowed(argument) for argument in arguments]
        return tuple(one for part in parts for one in part) if all(parts) else ()
    return (_PLAIN[hint],) if hint in _PLAIN else ()
