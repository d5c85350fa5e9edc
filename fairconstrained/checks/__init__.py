"""Checks of what users pass, and the readable errors for it."""
