"""Errors of fits in several processes."""

from __future__ import annotations

__all__ = ["ProcessLost"]


class ProcessLost(RuntimeError):
    """Another process that takes part in a fit has ended or does not answer."""
