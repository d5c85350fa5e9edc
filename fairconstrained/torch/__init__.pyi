from .batch_terms import BatchConstraint as BatchConstraint
from .batch_terms import BatchObjective as BatchObjective
from .batch_terms import ConstraintValues as ConstraintValues
from .batch_terms import bind as bind
from .multipliers import MODES as MODES
from .multipliers import Multipliers as Multipliers
from .sampler import StratifiedBatchSampler as StratifiedBatchSampler
