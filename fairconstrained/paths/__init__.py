"""Fits for many values of kappa, their scores and gaps on held-out rows, and the choice of one of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
