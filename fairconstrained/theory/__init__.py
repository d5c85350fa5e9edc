"""Theorems of the papers in numbers: parameters of their methods, and bounds for new rows.

There is one function for each theorem. It takes the constants of the theorem's assumptions and returns the numbers that
the theorem asks for, with the term that limits them. These numbers hold for the worst of all functions with these
constants, so that a run usually needs far fewer iterations, and gaps on new data are usually far smaller.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
