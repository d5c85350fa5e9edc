"""Measurements on real data: ``partial_parity_speed``, ``versus_fairlearn`` and ``partial_fairness``.

Run one as ``python -m benchmarks.NAME``; tables and pictures go to ``benchmarks/results``. ``manifest`` records what
the documentation shows of them, and ``python -m benchmarks.stale`` lists what is older than the measured code.
"""
