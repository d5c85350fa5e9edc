"""Solvers for weakly convex problems, and what `MinorityRateClassifier` and `NeymanPearsonClassifier` promise.

A part is a module that `benchmarks.weakly_convex.__main__` lists, with ``measure(quick) -> dict of str to DataFrame``.
"""
