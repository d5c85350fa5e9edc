"""State of an object as plain values and arrays, which pickle, joblib and skops can all read."""

from __future__ import annotations

import functools
import inspect
import pkgutil
from collections.abc import Hashable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.interpolate import BSpline

__all__ = ["PlainState", "SavedByParameters", "skops_trusted_types"]


@dataclass(frozen=True)
class SavedTable:
    """A DataFrame taken apart: skops knows no pandas."""

    #: Entries of the index, tuples where it has several levels.
    index: list[Hashable]
    index_names: list[Hashable]
    #: Names.
    columns: list[Hashable]
    #: Types of the columns.
    dtypes: list[str]
    values: list[np.ndarray]  # each of shape (n_rows,)

    @classmethod
    def of(cls, table: pd.DataFrame) -> Self:
        """Take it apart."""
        values = [table.iloc[:, place].to_numpy() for place in range(table.shape[1])]
        dtypes = [str(dtype) for dtype in table.dtypes]
        return cls(list(table.index), list(table.index.names), list(table.columns), dtypes, values)

    def restored(self) -> pd.DataFrame:
        """The table again."""
        index = pd.Index(self.index, tupleize_cols=len(self.index_names) > 1).set_names(self.index_names)
        columns = [pd.Series(values, index, dtype) for values, dtype in zip(self.values, self.dtypes, strict=True)]
        return pd.DataFrame(dict(enumerate(columns)), index=index).set_axis(self.columns, axis=1)


class PlainState:
    """Mixin of objects that hold tables, alone or in a dict."""

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return _plain(dict(state or {}))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(_restored(state))

    def __copy__(self) -> Self:
        # what is not saved needs no detour
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied


class SavedByParameters(PlainState):
    """Mixin of estimators: the module of a network is not saved, but made anew from its parameters."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "module_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "module_" in self.__dict__.get("_model_attributes", ()):
            fitted = self.__dict__["_fitted"]
            self.__dict__ |= fitted.model.attributes(fitted.start.model_state, fitted.offset, fitted.scale)


def skops_trusted_types() -> list[str]:
    """Names of the types that saved estimators of this package are made of, for ``skops.io.load``.

    They are the classes of this package, its function that makes networks of ``hidden_layer_sizes``,
    `functools.partial`, which holds its arguments, the booster of LightGBM, and the splines of SciPy, which a head has.
    A ``module``, scorer or constraint of your own has to be trusted by its own name. So have types of other packages
    that skops does not trust by itself, such as the trees of scikit-learn: ``skops.io.get_untrusted_types`` lists them.

    Returns
    -------
    names : list of str
        Sorted, such as ``"fairconstrained.estimators.partial_parity.PartialParityClassifier"``.

    Examples
    --------
    >>> from fairconstrained import skops_trusted_types
    >>> "fairconstrained.models.linear.LinearModel" in skops_trusted_types()
    True
    """
    package = __name__.partition(".")[0]
    held = vars(BSpline(np.arange(4.0), np.ones(2), 1)).values()
    # SciPy keeps functions in a spline, and since its version 1.18 another object
    parts = {type(value) for value in held if type(value).__module__.startswith("scipy.")}
    others = [functools.partial, BSpline, *filter(inspect.isfunction, held), *parts]
    found = {f"{other.__module__}.{other.__qualname__}" for other in others}
    found |= {f"{package}.models.layers.mlp", "lightgbm.basic.Booster"}
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        for kind in filter(inspect.isclass, vars(import_module(module.name)).values()):
            if kind.__module__.partition(".")[0] == package:
                found.add(f"{kind.__module__}.{kind.__qualname__}")
    return sorted(found)


def _plain(value: Any) -> Any:
    if isinstance(value, pd.DataFrame):
        return SavedTable.of(value)
    return {name: _plain(entry) for name, entry in value.items()} if type(value) is dict else value


def _restored(value: Any) -> Any:
    if isinstance(value, SavedTable):
        return value.restored()
    return {name: _restored(entry) for name, entry in value.items()} if type(value) is dict else value
