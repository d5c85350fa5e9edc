"""Parameters that are documented once, for all functions and classes that have them."""

from __future__ import annotations

import inspect
import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

__all__ = ["completed_documentation", "documented_by", "entries", "inherited_documentation"]

_F = TypeVar("_F", bound=Callable[..., Any])
#: The head of a section of a docstring, such as "Parameters" and its underline.
_HEAD = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
#: An entry of a section: a line that is not indented, and the indented ones below it.
_ENTRY = re.compile(r"^\S.*\n?(?:[ \t]+.*\n?|\n(?=[ \t]))*", re.MULTILINE)
#: The sections in the order of numpydoc.
_SECTIONS = ["Parameters", "Attributes", "Returns", "Raises", "Warns", "See Also", "Notes", "References", "Examples"]


def inherited_documentation(cls: type, parameters: Mapping[str, Any]) -> str | None:
    """Complete the docstring of a class by what its bases say of its parameters and attributes.

    Parameters
    ----------
    cls : type
    parameters : mapping
        Defaults of the parameters that it has, in the order in which they are to be documented.

    Returns
    -------
    doc : str or None
        None where there is no docstring.
    """
    bases = [inspect.cleandoc(base.__dict__.get("__doc__") or "") for base in cls.__mro__[1:]]
    return completed_documentation(cls.__doc__, bases, parameters)


def completed_documentation(doc: str | None, others: Sequence[str], parameters: Mapping[str, Any]) -> str | None:
    """Complete a docstring by the entries that others have of the same parameters, and of further attributes.

    What others say of returned values and of errors is added to what it says itself.

    Parameters
    ----------
    doc : str or None
    others : sequence of str
        Docstrings, of which the first with an entry counts.
    parameters : mapping
        Defaults of the parameters, in the order in which they are to be documented.

    Returns
    -------
    doc : str or None
        None where there is no docstring.
    """
    doc = inspect.cleandoc(doc or "")
    for section in ("Parameters", "Attributes"):
        own = [*entries(doc, section)]
        documented = {name for names, _ in own for name in names}
        for other in others:
            for names, text in entries(other, section):
                new = [name for name in names if name not in documented]
                if new and (section == "Attributes" or new[0] in parameters):
                    own.append((names, _with_default(text, parameters.get(new[0])) if len(names) == 1 else text))
                documented.update(names)
        if section == "Parameters":
            places = {name: place for place, name in enumerate(parameters)}
            own.sort(key=lambda entry: places.get(entry[0][0], 0))
        doc = _with_section(doc, section, "\n".join(text.rstrip("\n") for _, text in own))
    for section in ("Returns", "Raises", "Warns"):
        bodies: dict[str, str] = {}
        for source in (doc, *others):
            for _, text in entries(source, section):
                head, _, body = text.rstrip("\n").partition("\n")
                bodies[head] = bodies[head] + "\n" + body if head in bodies else body
        doc = _with_section(doc, section, "\n".join(f"{head}\n{body}".rstrip("\n") for head, body in bodies.items()))
    return doc or None


def documented_by(*others: str) -> Callable[[_F], _F]:
    """Complete the documentation of the decorated function, see `completed_documentation`."""

    def complete(function: _F) -> _F:
        defaults = {name: known.default for name, known in inspect.signature(function).parameters.items()}
        function.__doc__ = completed_documentation(function.__doc__, others, defaults)
        return function

    return complete


def _with_default(entry: str, default: Any) -> str:
    """The entry of a parameter with the default that the class has, where a base names another one."""
    named = re.search(r"(?<=default=).*", entry.split("\n", 1)[0])
    if named is None or literal_eval(named.group()) == default:
        return entry
    return entry[: named.start()] + repr(default).replace("'", '"') + entry[named.end() :]


def _span(doc: str, section: str) -> tuple[int, int] | None:
    """Where the entries of a section begin and end."""
    heads = [*_HEAD.finditer(doc)]
    for head, following in pairwise([*heads, None]):
        if head is not None and head.group(1) == section:
            return head.end(), len(doc) if following is None else following.start()
    return None


@cache  # a class reads the docstrings of all its bases
def entries(doc: str, section: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """The names and the text of every entry."""
    span = _span(doc, section)
    texts = [found.group() for found in _ENTRY.finditer(doc[slice(*span)] if span else "")]
    return tuple((_names_in(text.split("\n", 1)[0]), text) for text in texts)


def _names_in(head: str) -> tuple[str, ...]:
    """The names that the first line of an entry documents together."""
    return tuple(name.strip().lstrip("*") for name in head.split(" : ")[0].split(",") if name.strip())


def _with_section(doc: str, section: str, text: str) -> str:
    """Return the docstring with this text as a section, in its place among the sections that there are."""
    span = _span(doc, section)
    if span is not None:
        rest = doc[span[1] :]
        return doc[: span[0]] + text + ("\n\n" + rest if rest else "")
    if not doc or not text:
        return doc
    later = _SECTIONS[_SECTIONS.index(section) + 1 :]
    place = next((head.start() for head in _HEAD.finditer(doc) if head.group(1) in later), len(doc))
    before, rest = doc[:place].rstrip("\n"), doc[place:]
    return f"{before}\n\n{section}\n{'-' * len(section)}\n{text}" + ("\n\n" + rest if rest else "")
