"""Names that users gave, ready for sentences, tables and figures: they change nothing of the text around them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from fairconstrained.plotting.group_names import group_name

__all__ = ["UNNAMED", "GroupNames", "isolated", "printable"]

#: Name of the only sensitive feature where the user gave none.
UNNAMED = "group"

#: Characters that neither HTML nor UTF-8 has, control characters and halves of surrogate pairs, and those that turn the
#: direction of the text that follows them (embeddings, overrides, isolates without an end).
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066\u2067]")
#: Values that are words, those that are numbers, and words that say nothing without their column.
_WORD = re.compile(r"[^\W\d_][^\d_]*")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")
_VAGUE = {"other", "others", "rest", "yes", "no", "true", "false", "none", "nan", "unknown", "missing", "high", "low"}
_ISOLATE, _END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
#: Directions of Unicode that are not from left to right.
_RIGHT_TO_LEFT = {"R", "AL", "AN"}


def printable(text: Any) -> str:
    """Words, with a replacement character for what a page cannot hold and for what would turn the words around it."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text))


def isolated(name: Any) -> str:
    """A name for a sentence: where it is written from right to left, the words and numbers around it stay in place."""
    words = re.sub(f"[{_ISOLATE}{_END}]", "\N{REPLACEMENT CHARACTER}", printable(name))
    turns = any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in words)
    return f"{_ISOLATE}{words}{_END}" if turns else words


def _seen(name: str) -> str:
    """A name that leaves no hole in a sentence."""
    return name if name.strip() else "(empty)"


class GroupNames:
    """Names of groups that stand without the table's headings, such as "age 25-60 & married".

    A value has the name of its column before it if it does not tell what it means: a number, or a word such as "yes".
    With several columns, so has everything but words that no other column has, such as the range "25-60". A single
    column without a name adds nothing.

    Parameters
    ----------
    columns : sequence of str
        Names of the sensitive features.
    labels : sequence
        Groups; of several columns, tuples of their values.
    """

    def __init__(self, columns: Sequence[Any], labels: Sequence[Hashable]) -> None:
        self._columns = list(columns)
        values = [set(map(str, column)) for column in zip(*labels, strict=True)] if len(self._columns) > 1 else []
        counts = Counter(value for column in values for value in column)
        self._ambiguous = {value for value, count in counts.items() if count > 1}

    def plain(self, label: Hashable) -> str:
        """Return the name as it is, for a figure; "(empty)" for one without letters."""
        values = label if isinstance(label, tuple) else (label,)
        if len(self._columns) != len(values) or self._columns == [UNNAMED]:
            return _seen(group_name(label))
        return group_name(tuple(map(self._value, self._columns, values)))

    def words(self, label: Hashable) -> str:
        """Return the name for a sentence."""
        return isolated(self.plain(label))

    def _value(self, column: Any, value: Any) -> str:
        words = _seen(str(value))
        is_clear = _WORD.fullmatch(words) or (len(self._columns) == 1 and not _NUMBER.fullmatch(words))
        tells = is_clear and words.casefold() not in _VAGUE and words not in self._ambiguous
        return words if tells else f"{column} {words}"
