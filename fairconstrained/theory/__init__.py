"""Theorems of the papers in numbers: parameters of their methods, and bounds for new rows.

One function for each theorem. They take the constants of its assumptions and return what it asks for, with the term
that limits it. Worst cases over all functions with these constants, they are as a rule far from what a run needs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
