from .cross_fitted import CrossFittedScores as CrossFittedScores
from .fair_head import FairHeadClassifier as FairHeadClassifier
from .fair_head import FairHeadRegressor as FairHeadRegressor
