"""Runnable examples: the demo of the README, and the gallery of the documentation."""
