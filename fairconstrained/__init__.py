"""scikit-learn compatible estimators trained under fairness constraints that hold for the reported metric."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
