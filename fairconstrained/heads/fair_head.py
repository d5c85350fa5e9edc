"""Heads: any estimator of scikit-learn under any constraint of the package."""

from __future__ import annotations

from functools import partial

from fairconstrained.checks.parameters import with_parameters
from fairconstrained.estimators import PartialParityClassifier, PartialParityRegressor
from fairconstrained.heads.base import FairHead

__all__ = ["FairHeadClassifier", "FairHeadRegressor"]


@with_parameters
class FairHeadClassifier(FairHead):
    r"""Any classifier of scikit-learn under any constraint of this package.

    With the scores :math:`s(x)` of a model, estimates :math:`b_g(x)` of the probabilities of the groups, and the
    features :math:`z(x)` that `CrossFittedScores` makes of them,

    .. math:: \min_v \; f(v \cdot z) \quad \text{s.t.} \quad \mathrm{gap}(v \cdot z) \le \kappa,

    where the head says what the objective f and the gaps are. Rows are scored by models of the folds that they are not
    in, so that ``kappa`` bounds the gap on rows that the model has not seen; and a head of a few numbers hardly
    overfits the rows of the constraint. A path over ``kappa`` (`fairness_path`) fits the model once and the heads only.

    Parameters
    ----------
    head : estimator, default=None
        Classifier of this package: `PartialParityClassifier`, `RateParityClassifier`, `AUCFairClassifier`,
        `LossParityClassifier`, `MinorityRateClassifier`, `ParityPairClassifier`, `NeymanPearsonClassifier` and others,
        with its own constraint, ``kappa`` and objective, which searches reach as ``head__kappa``. None is
        ``PartialParityClassifier(0.02, constraint="demographic_parity")``. With ``solver="auto"``, "span_search" fits a
        head whose objective and constraint count decisions, such as one with ``objective="zero_one"``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes; the second one of two is the positive class.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : The interface that this one follows, for calibrated probabilities.

    Notes
    -----
    Without the group at prediction, the best classifier under demographic parity is a threshold on
    :math:`P(y = 1 \mid x) - \sum_g \lambda_g P(g \mid x) / P(g)`, which is why the head needs the groups'
    probabilities; with ``group_estimator=None`` it is a function of the scores alone.

    References
    ----------
    Menon, Williamson, The cost of fairness in binary classification, FAT* 2018: proposition 4.
    Xian, Zhao, A unified post-processing framework for group fairness in classification, arXiv:2405.04025: equalized
    odds, and several groups.

    Examples
    --------
    >>> from fairconstrained import FairHeadClassifier, PartialParityClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> head = PartialParityClassifier(0.05, constraint="demographic_parity")
    >>> model = FairHeadClassifier(HistGradientBoostingClassifier(), head, random_state=0)
    >>> model = model.fit(X, y, sensitive_features=group)
    >>> model.status_, model.constraint_values_["demographic_parity"] <= 0.05 + model.granularity_["demographic_parity"]
    ('optimal', True)
    """

    _classifies = True
    _default_head = staticmethod(partial(PartialParityClassifier, 0.02, constraint="demographic_parity"))


@with_parameters
class FairHeadRegressor(FairHead):
    r"""Any regressor of scikit-learn under any constraint of this package on predictions.

    The problem is that of `FairHeadClassifier`, with the predictions of the estimator in place of scores.

    Parameters
    ----------
    head : estimator, default=None
        Regressor of this package, or `FairRanker`. None is ``PartialParityRegressor(0.02)``.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained import FairHeadRegressor, PartialParityRegressor
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 3)) + group[:, None]
    >>> y = np.abs(X[:, 0]) + X[:, 1] + rng.normal(size=1000)
    >>> model = FairHeadRegressor(HistGradientBoostingRegressor(), PartialParityRegressor(0.1), random_state=0)
    >>> model.fit(X, y, sensitive_features=group).violation_ <= 0.01
    True
    """

    _classifies = False
    _default_head = staticmethod(partial(PartialParityRegressor, 0.02))
