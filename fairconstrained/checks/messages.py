"""Values in messages, and the checks of single numbers that many arguments share."""

from __future__ import annotations

import inspect
import math
import re
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

__all__ = [
    "BY_ROUTING",
    "NOTHING_TO_COMPARE",
    "PASS_GROUPS",
    "TWO_LARGE_GROUPS",
    "alike",
    "check_arguments",
    "check_fraction",
    "check_integer",
    "check_not_negative",
    "check_positive",
    "compares_nothing",
    "in_columns",
    "is_number",
    "meant",
    "nearest",
    "nothing_to_compare",
    "shortened",
    "shortened_table",
    "warn_user",
]

#: Spellings that a warning shows.
_MOST_SPELLINGS = 10
#: Entries that a message shows of a long list.
_MOST = 10
#: Packages whose lines are not those of the user.
_INNER = (__name__.split(".")[0], "sklearn", "joblib")
#: How the groups reach predictions of a model that is within another one.
BY_ROUTING = (
    "within a Pipeline, a BaggingClassifier or a search, turn metadata routing on "
    "(sklearn.set_config(enable_metadata_routing=True))"
)
#: Beginning of the warning of a fit without groups, or with a single one.
NOTHING_TO_COMPARE = "There is nothing to compare"
#: Advice of this warning.
PASS_GROUPS = "Pass sensitive_features with at least two groups to fit"
#: Advice where there are fewer than two groups without the small ones.
TWO_LARGE_GROUPS = "Merge groups yourself, into at least two that are large enough, or raise kappa."


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user that led here.

    Python shows a text once for every line, so that at a line of the package, or of scikit-learn or joblib, which call
    it, it would hide those of other calls.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inner(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inner(module: str) -> bool:
    return module.split(".")[0] in _INNER


def nothing_to_compare(groups: Sequence[Hashable] | np.ndarray, outcome: str, advice: str) -> str:
    """Warning of a fit under a bound without groups, or with a single one.

    Parameters
    ----------
    groups : sequence or ndarray of shape (n_groups,)
        The group; empty where no sensitive features were given.
    outcome, advice : str
        Sentences that follow.

    Examples
    --------
    >>> nothing_to_compare(["a"], "Nothing is bounded.", "Pass at least two groups.")
    "There is nothing to compare: there is only one group, 'a'. Nothing is bounded. Pass at least two groups."
    """
    found = f"there is only one group, {_plain(groups[0])!r}" if len(groups) else "sensitive_features was not given"
    return f"{NOTHING_TO_COMPARE}: {found}. {outcome} {advice}"


def compares_nothing(name: str, small: Iterable[str]) -> str:
    """Warning of one of several constraints that leaves fewer than two groups to compare.

    Parameters
    ----------
    name : str
        Name of the constraint.
    small : iterable of str
        Groups that it has merged or left out; empty where there is a single group.
    """
    small = list(small)
    if not small:
        return f"{name} bounds nothing: it compares groups, and there is only one. {PASS_GROUPS}, or drop it."
    return (
        f"{name} bounds nothing: its small_groups leaves no groups to compare, as these are too small and were merged "
        f"or left out: {shortened(small)}. {TWO_LARGE_GROUPS}"
    )


def alike(where: str, kind: str, values: Iterable[Hashable]) -> str:
    """Warning of values that look alike, such as "Black" and "black ", and count as different ones; empty if none do.

    It is for those who read rows once, such as `fit` and reports. Metrics are called for the same rows again and again,
    and do not warn.

    Parameters
    ----------
    where : str
        Name of what holds the values.
    kind : str
        Groups or labels, which the values are.
    values : iterable
        Different values.

    Examples
    --------
    >>> alike("y", "labels", ["no", "yes", "Yes"])
    "y: some values differ in blanks, capitals or type alone, and are labels of their own: ['yes', 'Yes']. Write them \
alike if they mean the same."
    """
    spellings: dict[str, list[Any]] = {}
    for value in values:
        spellings.setdefault(" ".join(str(value).casefold().split()), []).append(value)
    found = [same for same in spellings.values() if len(same) > 1]
    if not found:
        return ""
    return (
        f"{where}: some values differ in blanks, capitals or type alone, and are {kind} of their own: "
        f"{', '.join(map(shortened, found[:_MOST_SPELLINGS]))}. Write them alike if they mean the same."
    )


def shortened(values: Iterable[Any], most: int = _MOST) -> str:
    """A list, or a dict with its values, as text: the first ``most`` entries and how many there are besides.

    Examples
    --------
    >>> shortened(range(100), most=3)
    '[0, 1, 2, ... and 97 more]'
    """
    if isinstance(values, Mapping):
        left, right = "{}"
        entries = [f"{_plain(key)!r}: {_plain(value)!r}" for key, value in values.items()]
    else:
        left, right = "[]"
        entries = [repr(_plain(value)) for value in values]
    rest = [f"... and {len(entries) - most} more"] if len(entries) > most else []
    return left + ", ".join(entries[:most] + rest) + right


def in_columns(found: np.ndarray, columns: Any, ndim: int) -> str:
    """The part of a message that says which columns it is, by their names or numbers; empty if there is only one."""
    if ndim < 2:
        return ""
    names = found.tolist() if columns is None else np.asarray(columns)[found].tolist()
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f" in the column{'s' * (len(names) > 1)} {', '.join(map(repr, names[:_MOST]))}{more}"


def shortened_table(table: pd.DataFrame) -> str:
    """A table of numbers as text: of more than ten rows those that hold the smallest numbers."""
    if len(table) <= _MOST:
        return table.to_string()
    smallest = np.argsort(table.min(axis=1).to_numpy(), kind="stable")[:_MOST]
    return f"{table.iloc[np.sort(smallest)].to_string()}\n... and {len(table) - _MOST} more"


def meant(value: Any, names: Iterable[str]) -> str:
    """The end of a message about a name that there is not: a question with the name that is most like it, if any.

    Examples
    --------
    >>> meant("DemographicParity", ["demographic_parity", "equalized_odds"])
    " Did you mean 'demographic_parity'?"
    >>> meant("agee", ["AGE", "SEX"])
    " Did you mean 'AGE'?"
    """
    alike = nearest(value, names)
    return f" Did you mean {alike!r}?" if alike else ""


def nearest(value: Any, names: Iterable[str]) -> str:
    """The name that is most like a value; empty where none is like it."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(value)).lower()
    known = {name.lower(): name for name in names}
    alike = get_close_matches(re.sub(r"\W+", "_", words), known, n=1)
    return known[alike[0]] if alike else ""


def is_number(value: Any) -> bool:
    """Whether it is a finite real number; booleans and text are none."""
    if isinstance(value, Integral):  # whose floats may overflow
        return not isinstance(value, bool)
    return isinstance(value, Real) and math.isfinite(value)


def check_positive(**constants: Any) -> None:
    """Raise a ValueError for a constant that is not a finite number above 0."""
    for name, value in constants.items():
        if not is_number(value) or not 0 < value < float("inf"):
            raise ValueError(f"{name} must be a finite number above 0; got {value!r}.")


def check_not_negative(**constants: Any) -> None:
    """Raise a ValueError for a constant that is not a finite number of at least 0."""
    for name, value in constants.items():
        if not is_number(value) or not 0 <= value < float("inf"):
            raise ValueError(f"{name} must be a finite number of at least 0; got {value!r}.")


def check_fraction(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1, or raise a ValueError."""
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)


def check_integer(name: str, value: Any) -> int:
    """Return an integer of at least 1, or raise a ValueError."""
    if not isinstance(value, Integral) or not is_number(value) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
    return int(value)


def check_arguments(function: Callable[..., Any], allowed: str, *arguments: Any) -> None:
    """Raise TypeError, which says what is ``allowed``, if a function of the user's does not take the arguments."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # written in C, without a signature: the call itself will tell
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise TypeError(
            f"{allowed}; {function!r} cannot be called with {len(arguments)} arguments: {error}."
        ) from error


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's, which print without their types."""
    return value.item() if isinstance(value, np.generic) else value
