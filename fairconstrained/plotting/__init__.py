"""Displays in the style of scikit-learn; matplotlib is imported when one is drawn.

Install it with ``pip install 'fairconstrained[plot]'``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
