"""Bounds on gaps in the population, from rows that no fit has seen."""

from fairconstrained.certification._bootstrap import gap_interval
from fairconstrained.certification._certificate import Certificate, certify
from fairconstrained.certification._classifier import CertifiedFairClassifier

__all__ = ["Certificate", "CertifiedFairClassifier", "certify", "gap_interval"]
