"""Linear scores of the package: of least log loss, of fewest errors, and of scores that know the group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.any_model.data import Split
from benchmarks.any_model.methods import Outcome, quiet, response_of_scores
from benchmarks.any_model.trees import Seconds
from benchmarks.notions.catalogue import ENTRIES
from benchmarks.notions.setting import Setting
from fairconstrained import RateParityClassifier


@dataclass(frozen=True)
class Fitted:
    """Outcome of a fit, and the largest change of the bounded number by one row."""

    outcome: Outcome
    granularity: float = float("nan")


@dataclass(frozen=True)
class Method:
    """A method of the package.

    Parameters
    ----------
    fit : callable
        Fits for a setting.
    answers : tuple of str
        Methods of other packages with the same information, whose training values it is also bounded by.
    notions : tuple of str
    splits : int
        First so many splits on which it is run.
    """

    fit: Callable[[Setting], Fitted]
    answers: tuple[str, ...] = ()
    notions: tuple[str, ...] = tuple(ENTRIES)
    splits: int = 1_000


def fitted(model: Any, setting: Setting, split: Split) -> Fitted:
    """Fit a classifier of the package to the training part of the split, and measure its seconds."""
    strata = {"strata": split.train.strata} if setting.entry.within and np.isfinite(setting.bound) else {}  # type: ignore
    seconds = Seconds()
    with seconds.count(), quiet():
        model.fit(split.train.X, split.train.y, sensitive_features=split.train.groups, **strata)
    test, train = (
        response_of_scores(model.decision_function(part.X, sensitive_features=part.groups))
        for part in (split.test, split.train)
    )
    outcome = Outcome(setting.bound, test, train, seconds.total, str(model.status_))
    return Fitted(outcome, float(max(model.granularity_.values(), default=np.nan)))


def bounded(setting: Setting, **params: Any) -> RateParityClassifier:
    """The package's classifier with the setting's bound, without an estimate for new rows, which are at hand."""
    asked = setting.entry.ask(setting.bound) if np.isfinite(setting.bound) else {"kappa": None}
    return RateParityClassifier(**{"new_row_folds": None, "random_state": setting.seed, **asked, **params})


def _linear(**params: Any) -> Callable[[Setting], Fitted]:
    return lambda setting: fitted(bounded(setting, **params), setting, setting.split)


_REDUCTION = "exponentiated_gradient"
_WITH_GROUPS = ("threshold_optimizer", "oxonfair", "reject_option", "equal_odds", "gerry_fair")
METHODS: dict[str, Method] = {
    "linear": Method(_linear(), (_REDUCTION,)),
    "linear_errors": Method(_linear(objective="zero_one"), (_REDUCTION, "grid_search", "reweighing")),
    "linear_groups": Method(_linear(objective="zero_one", group_interactions=True), _WITH_GROUPS),
    # as by default, with the estimate for new rows: for its seconds
    "linear_estimate": Method(
        _linear(new_row_folds="auto"),
        notions=("demographic_parity", "demographic_parity_ratio", "equalized_odds", "predictive_parity"),
        splits=1,
    ),
}
