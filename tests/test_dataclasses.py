"""Bounds and certificates that hold arrays are equal only if they are one object: arrays answer ``==`` by entry."""

import dataclasses
import importlib
import inspect
import pkgutil
import re

import fairconstrained

#: Types of fields whose ``==`` answers entry by entry, and classes that hold such fields.
ARRAYS = re.compile(r"\b(ndarray|Tensor|DataFrame|Series|Index|FairData|Evidence)\b")


def dataclasses_of_bounds():
    """All dataclasses of constraints and certificates, by their full names."""
    found = {}
    for module in pkgutil.walk_packages(fairconstrained.__path__, "fairconstrained."):
        if not module.name.startswith(("fairconstrained.constraints", "fairconstrained.certification")):
            continue
        for one in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(one) and dataclasses.is_dataclass(one) and one.__module__ == module.name:
                found[f"{one.__module__}.{one.__qualname__}"] = one
    return found


def test_what_holds_arrays_is_compared_as_an_object():
    hold_arrays = {
        name: one
        for name, one in dataclasses_of_bounds().items()
        if any(ARRAYS.search(str(field.type)) for field in dataclasses.fields(one))
    }
    assert [name for name, one in hold_arrays.items() if one.__eq__ is not object.__eq__] == []
    assert len(hold_arrays) > 30
