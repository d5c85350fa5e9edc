"""Names that users gave, ready for sentences, tables and figures: they change nothing of the text around them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable
from typing import Any

from fairconstrained.plotting.group_names import group_name

__all__ = ["group_words", "isolated", "printable"]

#: Characters that neither HTML nor UTF-8 has, control characters and halves of surrogate pairs, and those that turn the
#: direction of the text that follows them (embeddings, overrides, isolates without an end).
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066\u2067]")
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


def group_words(label: Hashable) -> str:
    """The name of a group for a sentence."""
    return isolated(group_name(label))
