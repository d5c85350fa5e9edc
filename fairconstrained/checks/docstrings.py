"""Parameters that are documented once, for all functions and classes that have them."""

from __future__ import annotations

import inspect
import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

__all__ = ["completed_documentation", "documented_by", "entries", "inherited_documentation"]

_F = TypeVar("_F", bound=Callable[..., Any])
#: The head of a section of a docstring, such as "Parameters" and its underline.
_HEAD = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
#: An entry of a section: a line that is not indented, and the indented ones below it.
_ENTRY = re.compile(r"^\S.*\n?(?:[ \t]+.*\n?|\n(?=[ \t]))*", re.MULTILINE)
#: The sections in the order of numpydoc.
_SECTIONS = (
    *("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Warnings"),
    *("See Also", "Notes", "References", "Examples"),
)


def inherited_documentation(cls: type, parameters: Mapping[str, Any]) -> str | None:
    """Complete the docstring of a class by what its bases say of its parameters and attributes.

    Parameters
    ----------
    parameters : mapping
        Defaults of the parameters that it has, in the order in which they are to be documented.

    Returns
    -------
    doc : str or None
        None where there is no docstring.
    """
    bases = [base.__dict__.get("__doc__") or "" for base in cls.__mro__[1:]]
    return completed_documentation(cls.__doc__, bases, parameters)


def completed_documentation(doc: str | None, others: Sequence[str], parameters: Mapping[str, Any]) -> str | None:
    """Complete a docstring by the entries that others have of the same parameters, and of further attributes.

    What others say of returned values and of errors is added to what it says itself.

    Parameters
    ----------
    others : sequence of str
        Docstrings, of which the first with an entry counts.
    parameters : mapping
        Defaults of the parameters, in the order in which they are to be documented.

    Returns
    -------
    doc : str or None
        None where there is no docstring.
    """
    if not doc:
        return None
    before, sections = _parts(doc)
    sections = dict(sections)
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
        sections[section] = "\n".join(text.rstrip("\n") for _, text in own)
    for section in ("Returns", "Raises", "Warns"):
        bodies: dict[str, str] = {}
        for source in (doc, *others):
            for _, text in entries(source, section):
                head, _, body = text.rstrip("\n").partition("\n")
                bodies[head] = bodies[head] + "\n" + body if head in bodies else body
        sections[section] = "\n".join(f"{head}\n{body}".rstrip("\n") for head, body in bodies.items())
    ordered = sorted(sections.items(), key=lambda section: _place(section[0]))
    written = (f"{head}\n{'-' * len(head)}\n{text}" for head, text in ordered if text)
    return "\n\n".join(part.rstrip("\n") for part in (before, *written) if part)


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


@cache  # a class reads the docstrings of all its bases
def _parts(doc: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the text of every section by its head."""
    before, *rest = _HEAD.split(inspect.cleandoc(doc))
    return before, dict(zip(rest[::2], rest[1::2], strict=True))


def _place(section: str) -> int:
    """The place of a section in the order of numpydoc; what that does not know comes last."""
    return _SECTIONS.index(section) if section in _SECTIONS else len(_SECTIONS)


@cache
def entries(doc: str, section: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """The names and the text of every entry."""
    texts = _ENTRY.findall(_parts(doc)[1].get(section, ""))
    return tuple((_names_in(text.split("\n", 1)[0]), text) for text in texts)


def _names_in(head: str) -> tuple[str, ...]:
    """The names that the first line of an entry documents together."""
    return tuple(name.strip().lstrip("*") for name in head.split(" : ")[0].split(",") if name.strip())
