"""Measurements on real data: ``partial_parity_speed``, ``versus_fairlearn`` and ``partial_fairness``.

Run one as ``python -m benchmarks.NAME``; tables and pictures go to ``benchmarks/results``.
"""
