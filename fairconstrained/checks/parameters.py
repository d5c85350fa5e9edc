"""Parameters of estimators and constraints: declared, documented and checked once, by every class that has them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform

from fairconstrained.checks.docstrings import entries, inherited_documentation

__all__ = ["CheckedParameters", "parameter", "with_parameters"]

_T = TypeVar("_T")


def parameter(
    default: Any = MISSING,
    allowed: Any = None,
    *,
    check: Callable[[Any, str], object] | None = None,
    kw_only: bool = True,
) -> Any:
    """Declare a parameter.

    Parameters
    ----------
    default : object, optional
        Without one, the parameter has to be given.
    allowed : list, optional
        Values that are allowed, as in ``_parameter_constraints`` of scikit-learn; None leaves it to ``check`` or to
        `fit`.
    check : callable, optional
        Takes a value and the parameter's name, and raises ValueError for what types do not tell.
    kw_only : bool, default=True
        False is for the first parameter, which may be given without its name.
    """
    return field(default=default, kw_only=kw_only, metadata={"allowed": allowed, "check": check})


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter,))
def with_parameters(cls: type[_T]) -> type[_T]:
    """Give a class a constructor with the parameters that it and its bases declare, their checks and documentation.

    The docstring of a class documents what the class declares, or documents it anew; the rest comes from its bases.
    """
    made: Any = dataclass(eq=False, repr=False)(cls)
    declared = {known.name: known for known in fields(made)}
    order = [
        *(name for name in declared if not declared[name].kw_only),
        *(name for kind in made.__mro__ for name in _named(kind)),  # the nearest base's first
    ]
    order = [name for name in dict.fromkeys(order) if name in declared]
    signature = inspect.signature(made.__init__)
    made.__init__.__signature__ = signature.replace(parameters=[signature.parameters[n] for n in ("self", *order)])
    checks = {name: declared[name].metadata for name in order}
    made._parameter_constraints = {name: c["allowed"] for name, c in checks.items() if c.get("allowed") is not None}
    made._parameter_checks = {name: c["check"] for name, c in checks.items() if c.get("check") is not None}
    made.__doc__ = inherited_documentation(made, {name: declared[name].default for name in order})
    return made


def _named(cls: type) -> list[str]:
    """Return the names of parameters that the docstring of a class documents, and of all fields that it declares."""
    documented = entries(cls.__doc__ or "", "Parameters")
    return [*(name for names, _ in documented for name in names), *inspect.get_annotations(cls)]


class CheckedParameters:
    """Estimators and constraints whose parameters are also checked by what types do not tell."""

    _parameter_constraints: ClassVar[Mapping[str, Any]] = {}
    _parameter_checks: ClassVar[Mapping[str, Callable[[Any, str], object]]] = {}

    def _validate_params(self) -> None:
        super()._validate_params()  # type: ignore[misc]
        for name, check in self._parameter_checks.items():
            check(getattr(self, name), name)
