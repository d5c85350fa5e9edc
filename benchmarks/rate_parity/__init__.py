"""Solvers for rate constraints from one start, and what `RateParityClassifier` and `FairRanker` promise.

A part is a module that `benchmarks.rate_parity.__main__` lists, with ``measure(quick) -> dict of str to DataFrame``.
"""
