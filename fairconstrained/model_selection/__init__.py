"""Scorers that see the sensitive features, rules for choosing a model or an interval, and a bound for new data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
