from ._certificate import Certificate as Certificate
from ._certify import certify as certify
from ._classifier import CertifiedFairClassifier as CertifiedFairClassifier
from .bootstrap import gap_interval as gap_interval
