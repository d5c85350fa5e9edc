"""Stress test: random problems, wrong inputs, interruptions and drop-in cases, judged independently of the package."""
