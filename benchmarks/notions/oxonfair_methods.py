"""OxonFair's thresholds by group on the same features, chosen on training rows that it keeps apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.any_model.methods import Outcome
from benchmarks.any_model.peers import oxonfair_rows, rows_kept_apart
from benchmarks.notions.peer import Peer, answered
from benchmarks.notions.setting import Setting

#: Names of the rates in OxonFair's group metrics, how groups are compared, and whether the bound's complement is given.
_METRICS: dict[str, tuple[str, str, bool]] = {
    "demographic_parity": ("pos_pred_rate", "diff", False),
    "demographic_parity_ratio": ("pos_pred_rate", "ratio", True),
    "equal_opportunity": ("true_pos_rate", "diff", False),
    "equalized_odds": ("equalized_odds_max", "", False),
    "predictive_equality": ("false_pos_rate", "diff", False),
    "error_rate_parity": ("accuracy", "diff", False),
    "accuracy_ratio": ("accuracy", "ratio", True),
    "predictive_parity": ("precision", "diff", False),
    "true_positive_floor": ("true_pos_rate", "min", True),
    "false_positive_ceiling": ("false_pos_rate", "max", False),
}


def oxonfair(setting: Setting) -> Outcome:
    """Thresholds by group, which it needs for new rows."""
    from oxonfair import FairPredictor
    from oxonfair.utils import group_metrics

    name, compared, is_complement = _METRICS[setting.notion]
    metric: Any = getattr(group_metrics, name)
    metric = getattr(metric, compared) if compared else metric
    bound = 1 - setting.bound if is_complement else setting.bound

    def fit(train: Any) -> Callable[[Any], np.ndarray]:
        fitted, kept = rows_kept_apart(train, setting.seed)
        base = LogisticRegression(max_iter=1000).fit(fitted.X, fitted.y)
        model = FairPredictor(base, oxonfair_rows(kept))
        model.fit(group_metrics.accuracy, metric, bound)
        return lambda rows: model.predict(oxonfair_rows(rows))

    return answered(setting, fit)


PEERS: dict[str, Peer] = {"oxonfair": Peer(oxonfair, "oxonfair", tuple(_METRICS))}
