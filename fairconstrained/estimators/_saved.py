"""State of an estimator that is saved."""

from __future__ import annotations

from typing import Any

from fairconstrained.estimators.saving import PlainState

__all__ = ["SavedByParameters"]


class SavedByParameters(PlainState):
    """Mixin of estimators: the module of a network is not saved, but made anew from its parameters."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "module_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "module_" in self.__dict__.get("_model_attributes", ()):
            fitted = self.__dict__["_fitted"]
            self.__dict__ |= fitted.model.attributes(fitted.start.model_state, fitted.offset, fitted.scale)
