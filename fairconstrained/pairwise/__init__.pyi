from ._means import SoftplusKernel as SoftplusKernel
from ._means import interval_weights as interval_weights
from ._means import pair_mean as pair_mean
from ._means import pair_table as pair_table
from ._quadratics import CellQuadratics as CellQuadratics
from ._quadratics import PairTerms as PairTerms
