"""Measurements on real data: of every method of the papers, beside other packages, and of time and memory.

Run one as ``python -m benchmarks.NAME``; tables and pictures go to ``benchmarks/results``. ``manifest`` records what
the documentation shows of them, and ``python -m benchmarks.stale`` lists what is older than the measured code.
"""
