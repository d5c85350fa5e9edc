"""Which of the groups is the protected one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from fairconstrained._messages import shortened

__all__ = ["one_of_two", "protected_code"]


def protected_code(labels: Sequence[Hashable], protected: Hashable) -> int:
    """Code of the group with the label ``protected``; raises ValueError, with all labels, if there is none."""
    for code, label in enumerate(labels):
        if label == protected:
            return code
    raise ValueError(f"protected must be one of the groups {shortened(labels)} or None, got {protected!r}.")


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
