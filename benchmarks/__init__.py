"""Measurements: run ``python -m benchmarks`` to see what there is."""
