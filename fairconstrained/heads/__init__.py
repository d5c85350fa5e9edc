"""Heads: small models under constraints, fitted on the scores of any scikit-learn estimator."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
