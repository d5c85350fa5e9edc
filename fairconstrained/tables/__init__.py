"""Features elsewhere than in the memory of this process: in files larger than memory, in other processes, on a GPU."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
