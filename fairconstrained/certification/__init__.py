"""Bounds on gaps in the population, from rows that no fit has seen."""

from fairconstrained.certification._certificate import Certificate, certify
from fairconstrained.certification._classifier import CertifiedFairClassifier
from fairconstrained.certification.bootstrap import gap_interval

__all__ = ["Certificate", "CertifiedFairClassifier", "certify", "gap_interval"]
