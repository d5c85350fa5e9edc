"""Reports and metrics of a table of scores, from the command line: for audits without a line of Python."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
