from .dask_estimator import DaskEstimator as DaskEstimator
from .errors import ProcessLost as ProcessLost
from .processes import fit as fit
