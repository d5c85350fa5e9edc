"""Bounds on gaps in the population, from rows that no fit has seen."""

from fairconstrained.certification._bootstrap import gap_interval
from fairconstrained.certification._certificate import Certificate, certify

__all__ = ["Certificate", "certify", "gap_interval"]
