"""scikit-learn compatible estimators trained under fairness constraints."""

from fairconstrained._version import __version__

__all__ = ["__version__"]
