"""Which of the groups a parameter names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from fairconstrained.checks.messages import shortened

__all__ = ["named_code", "one_of_two", "protected_code"]


def named_code(labels: Sequence[Hashable], label: Any, name: str, *, has_default: bool = True) -> int:
    """Code of the group that the parameter ``name`` names by its label; raises ValueError if there is none.

    ``has_default`` says that the parameter may also be None, which the message then names.
    """
    if isinstance(label, Hashable):
        for code, known in enumerate(labels):
            if known == label:
                return code
    default = " or None" if has_default else ""
    raise ValueError(f"{name} must be one of the groups {shortened(labels)}{default}, got {label!r}.")


def protected_code(labels: Sequence[Hashable], protected: Any) -> int:
    """`named_code` of the protected group."""
    return named_code(labels, protected, "protected")


def one_of_two(labels: Sequence[Hashable], protected: Hashable | None, default: int = 0) -> int:
    """`protected_code`, or ``default`` for None where there are at most two groups; else ValueError."""
    if protected is not None:
        return protected_code(labels, protected)
    if len(labels) > 2:
        raise ValueError(
            "with more than two groups, protected must name the one that is compared with all the others: "
            f"one of {shortened(labels)}."
        )
    return default
