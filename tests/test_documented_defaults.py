"""The defaults that docstrings state are those of the signatures."""

import ast
import importlib
import inspect
import pkgutil
import re

import fairconstrained

MODULES = [module.name for module in pkgutil.walk_packages(fairconstrained.__path__, "fairconstrained.")]


def documented_defaults(documentation):
    """Pairs of a parameter and the default in the line that describes it, which may describe several."""
    for names, text in re.findall(r"^([\w, ]+) : .*?default=(.+?)$", documentation, flags=re.MULTILINE):
        parameters, defaults = names.split(", "), re.split(r", | and ", text)
        if len(defaults) != len(parameters) or len(parameters) == 1:
            defaults = [text] * len(parameters)
        yield from zip(parameters, defaults, strict=True)


def public_callables():
    """Classes and functions that a module exports, by name."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        exported = (getattr(module, public) for public in getattr(module, "__all__", ()))
        found |= {
            f"{one.__module__}.{one.__qualname__}": one
            for one in exported
            if inspect.isroutine(one) or inspect.isclass(one)
        }
    return found


def test_documented_defaults_are_those_of_the_signatures():
    wrong, n_checked = [], 0
    for name, thing in public_callables().items():
        stated = dict(documented_defaults(inspect.getdoc(thing) or ""))
        actual = inspect.signature(thing).parameters if stated else {}
        for parameter, text in stated.items():
            default = actual[parameter].default if parameter in actual else "no parameter"
            if repr(default) == "<factory>":  # of a dataclass
                continue
            n_checked += 1
            if default != ast.literal_eval(text):
                wrong.append(f"{name}: {parameter} is {default!r}, its documentation says {text}")
    assert not wrong
    assert n_checked > 500
