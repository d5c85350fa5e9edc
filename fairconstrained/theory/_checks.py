"""Checks of the constants that theorems take, and numbers of iterations."""

from __future__ import annotations

from math import ceil
from numbers import Integral
from typing import Any

from fairconstrained.checks.messages import is_number

__all__ = ["check_fraction", "check_integer", "check_not_negative", "check_positive", "whole"]


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


def whole(iterations: float) -> int:
    """Return the least integer that is not below a number of iterations, up to rounding errors."""
    return ceil(iterations * (1 - 1e-12))
