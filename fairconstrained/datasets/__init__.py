"""Data for fairness problems: bundled (``load_*``), downloaded (``fetch_*``) or generated (``make_*``).

Every loader of a named data set returns a Bunch with ``data``, ``target``, ``sensitive_features``, ``feature_names``,
``sensitive_names``, ``target_names``, ``categories``, ``frame`` and ``DESCR``. The sensitive features stay
out of ``data`` unless ``include_sensitive=True``. So does `make_acs_like`; the generators ``make_biased_*`` return
``(X, y, sensitive_features)``, and `make_biased_ranking` also queries. `load_letor` reads any file of its format.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
