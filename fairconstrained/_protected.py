"""Which of the groups is the protected one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

__all__ = ["protected_code"]


def protected_code(labels: Sequence[Hashable], protected: Hashable | None, default: int = 0) -> int:
    """Code of the protected group, which is compared with all the others.

    Parameters
    ----------
    labels : sequence
        Labels of the groups, in the order of their codes.
    protected : object or None
        One of the labels; None where there are at most two groups.
    default : int, default=0
        What None stands for.

    Raises
    ------
    ValueError
        If ``protected`` is none of the labels, or None with more than two groups; the message lists them.
    """
    if protected is None:
        if len(labels) > 2:
            raise ValueError(
                "with more than two groups, protected must name the one that is compared with all the others: "
                f"one of {list(labels)}."
            )
        return default
    for code, label in enumerate(labels):
        if label == protected:
            return code
    raise ValueError(f"protected must be one of the groups {list(labels)} or None, got {protected!r}.")
