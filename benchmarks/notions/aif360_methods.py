"""Methods of AIF360 on the same features; where they decide at random, expected rates count.

Of its other methods, meta fair classification, the prejudice remover and fair representations are not here:
version 0.6.1 cannot run the first two on these data sets with the current NumPy and SciPy, and the third decides alike
for all rows of Adult by default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks.any_model.methods import Outcome
from benchmarks.notions.catalogue import Rows
from benchmarks.notions.peer import Peer, answered
from benchmarks.notions.setting import Setting

#: Rounds of the game, of which the default, 10, is for a first look.
_ROUNDS = 100
_UNPRIVILEGED, _PRIVILEGED = [{"group": 0.0}], [{"group": 1.0}]


def _regression(rows: Rows, weights: np.ndarray | None = None) -> LogisticRegression:
    return LogisticRegression(max_iter=1000).fit(rows.X, rows.y, sample_weight=weights)


def _is_privileged(train: Rows) -> Callable[[Rows], np.ndarray]:
    """Whether rows are of the group with the largest share of positive labels in training."""
    names = np.unique(train.groups)
    best = names[np.argmax([train.y[train.groups == name].mean() for name in names])]
    return lambda rows: rows.groups == best


def _data_set(rows: Rows, privileged: np.ndarray, probabilities: np.ndarray | None = None) -> Any:
    """Rows in its form: with their labels, or with a model's probabilities and decisions."""
    from aif360.datasets import BinaryLabelDataset

    frame = pd.DataFrame(rows.X, columns=[f"x{number}" for number in range(rows.X.shape[1])])
    frame = frame.assign(group=privileged.astype(float), y=rows.y.astype(float))
    found = BinaryLabelDataset(df=frame, label_names=["y"], protected_attribute_names=["group"])
    if probabilities is not None:
        found.scores, found.labels = probabilities[:, None], (probabilities[:, None] > 0.5).astype(float)
    return found


def reweighing(setting: Setting) -> Outcome:
    """Weights with which labels and groups are independent; it has no bound."""
    from aif360.algorithms.preprocessing import Reweighing

    def fit(train: Rows) -> Callable[[Rows], np.ndarray]:
        found = Reweighing(_UNPRIVILEGED, _PRIVILEGED).fit_transform(_data_set(train, _is_privileged(train)(train)))
        model = _regression(train, found.instance_weights)
        return lambda rows: model.predict(rows.X)

    return answered(setting, fit)


def _after_regression(train: Rows, corrected: Any) -> Callable[[Rows], Any]:
    """A correction of the regression's decisions, fitted; it needs the group of new rows."""
    base, privileged = _regression(train), _is_privileged(train)

    def predicted(rows: Rows) -> Any:
        return _data_set(rows, privileged(rows), base.predict_proba(rows.X)[:, 1])

    corrected.fit(_data_set(train, privileged(train)), predicted(train))
    return predicted


_REJECT_OPTION = {
    "demographic_parity": "Statistical parity difference",
    "equal_opportunity": "Equal opportunity difference",
}


def reject_option(setting: Setting) -> Outcome:
    """Other decisions for the groups within a margin about the threshold, the most accurate of a grid in the bound."""
    from aif360.algorithms.postprocessing import RejectOptionClassification

    options = {
        "metric_name": _REJECT_OPTION[setting.notion],
        "metric_ub": setting.bound,
        "metric_lb": -setting.bound,
    }

    def fit(train: Rows) -> Callable[[Rows], np.ndarray]:
        model = RejectOptionClassification(_UNPRIVILEGED, _PRIVILEGED, **options)
        predicted = _after_regression(train, model)
        return lambda rows: model.predict(predicted(rows)).labels

    return answered(setting, fit)


def equal_odds(setting: Setting) -> Outcome:
    """Decisions that are changed at random, with probabilities by group, to equal rates; it has no bound."""
    from aif360.algorithms.postprocessing import EqOddsPostprocessing

    def fit(train: Rows) -> Callable[[Rows], np.ndarray]:
        model = EqOddsPostprocessing(_UNPRIVILEGED, _PRIVILEGED)
        predicted = _after_regression(train, model)

        def expected(rows: Rows) -> np.ndarray:
            answers = predicted(rows)
            # probabilities of a positive decision: where it was positive and negative, of both groups
            privileged, other = np.split(model.model_params.x, 2)
            chances = np.where(answers.protected_attributes == 1, privileged, other)
            return np.where(answers.labels[:, 0] == 1, chances[:, 0], chances[:, 1])

        return expected

    return answered(setting, fit)


def gerry_fair(setting: Setting) -> Outcome:
    """Fictitious play between least squares and an auditor; the mixture of its models decides at random.

    It knows the group, as it audits by it. Its bound is on the distance of a group's rate from that of all rows, times
    the share of the group's negative rows in all rows: of two groups with shares w and 1 - w of n negative rows among N
    it is n / N w (1 - w) times a bound on their difference.
    """
    from aif360.algorithms.inprocessing import GerryFairClassifier

    def fit(train: Rows) -> Callable[[Rows], np.ndarray]:
        privileged = _is_privileged(train)
        share = privileged(train)[train.y == 0].mean()
        gamma = (train.y == 0).mean() * share * (1 - share) * setting.bound
        model = GerryFairClassifier(gamma=gamma, max_iters=_ROUNDS, fairness_def="FP")
        model.fit(_data_set(train, privileged(train)))
        return lambda rows: model.predict(_data_set(rows, privileged(rows)), threshold=None).labels

    return answered(setting, fit)


PEERS: dict[str, Peer] = {
    "reweighing": Peer(reweighing, "aif360", ("demographic_parity",)),
    "reject_option": Peer(reject_option, "aif360", tuple(_REJECT_OPTION)),
    "equal_odds": Peer(equal_odds, "aif360", ("equalized_odds",)),
    "gerry_fair": Peer(gerry_fair, "aif360", ("predictive_equality",)),
}
