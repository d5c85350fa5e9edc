"""Methods whose gaps on new rows are measured: linear models of this package, networks, and other ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.any_model.data import ACS_ROWS, Part, Split, dense, linear_split, load_split
from benchmarks.any_model.methods import Outcome, Setting, quiet, response_of_scores
from benchmarks.any_model.methods import two_regressions as regressions_and_sweep
from benchmarks.any_model.notions import Notion, Response
from benchmarks.any_model.trees import Seconds
from benchmarks.new_rows.other_tables import OTHER_TABLES, other_split
from fairconstrained import AUCFairClassifier, LossParityClassifier, PartialParityClassifier
from fairconstrained.constraints import LossParity

#: Rows of the ACS sample that are used here.
ACS_ROWS_HERE = 20_000
#: Samples of training rows: the data set and their number, by name.
SAMPLES = {
    "a9a_1400": ("a9a", 1400),
    "a9a_5000": ("a9a", 5000),
    "adult_1000": ("adult", 1000),
    "adult_4000": ("adult", 4000),
    "acs_1400": ("acs", 1400),
}


@dataclass(frozen=True)
class Fitted:
    """Outcome of a fit, and the largest of its estimates for new rows with its standard error; NaN without any."""

    outcome: Outcome
    estimate: float = float("nan")
    estimate_error: float = float("nan")
    granularity: float = float("nan")


@lru_cache(maxsize=2)
def split_of(data: str, seed: int) -> Split:
    """Split of a data set, as in `benchmarks.any_model`, but of fewer rows of ACS; or one with a sample to train on."""
    if data in OTHER_TABLES:
        return other_split(data, seed)
    rng = np.random.default_rng(seed)
    if data in SAMPLES:
        whole, size = SAMPLES[data]
        train, test = split_of(whole, seed)
        return Split(_some(train, size, rng), test)
    split = load_split(data, seed)
    if data != "acs":
        return split
    return Split(*(_some(part, part.y.size * ACS_ROWS_HERE // ACS_ROWS, rng) for part in split))


def _some(part: Part, size: int, rng: np.random.Generator) -> Part:
    return part.take(np.sort(rng.choice(part.y.size, size, replace=False)))


@lru_cache(maxsize=2)
def features_of(data: str, seed: int) -> Split:
    """Split with the features of linear models, as arrays."""
    return Split(*(part._replace(X=dense(part.X)) for part in linear_split(split_of(data, seed))))


def linear_model(notion: Notion, kappa: float, **params: Any) -> Any:
    """Estimator of linear scores for a notion, with the package's defaults."""
    if notion.kind == "auc":
        return AUCFairClassifier(kappa, constraint=notion.constraint, **params)
    if notion.kind == "loss":
        return PartialParityClassifier(constraint=LossParity(kappa), **params)
    return PartialParityClassifier(kappa, constraint=notion.constraint, **notion.params, **params)


def _linear(**params: Any) -> Callable[[str, Setting, float], Fitted]:
    def fit(data: str, setting: Setting, kappa: float) -> Fitted:
        return _measured(linear_model(setting.entry, kappa, random_state=setting.seed, **params), data, setting, kappa)

    return fit


def _network(**params: Any) -> Callable[[str, Setting, float], Fitted]:
    def fit(data: str, setting: Setting, kappa: float) -> Fitted:
        return _measured(LossParityClassifier(kappa, random_state=setting.seed, **params), data, setting, kappa)

    return fit


def _measured(model: Any, data: str, setting: Setting, kappa: float) -> Fitted:
    train, test = features_of(data, setting.seed)
    seconds = Seconds()
    with seconds.count(), quiet():
        model.fit(train.X, train.y, sensitive_features=train.groups)
    answers = [response_of_scores(model.decision_function(part.X)) for part in (test, train)]
    promised = max(model.constraint_values_.values())
    outcome = Outcome(kappa, answers[0], answers[1], seconds.total, str(model.status_), float(promised))
    granularity = max(model.granularity_.values(), default=np.nan)
    gaps = getattr(model, "new_row_gaps_", {}).values()
    largest = max(gaps, key=lambda gap: gap.estimate, default=None)
    if largest is None:
        return Fitted(outcome, granularity=granularity)
    return Fitted(outcome, largest.estimate, largest.standard_error, granularity)


def two_regressions(data: str, setting: Setting, kappa: float) -> Fitted:
    """Logistic regressions of the label and of the group: the best difference and threshold within the bound."""
    return Fitted(next(iter(regressions_and_sweep(setting))))


def reduction(data: str, setting: Setting, kappa: float) -> Fitted:
    """Fairlearn's reduction on logistic regression. It decides at random; measured are the expected rates."""
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient

    moments = {"demographic_parity": DemographicParity, "equalized_odds": EqualizedOdds}
    train, test = features_of(data, setting.seed)
    seconds = Seconds()
    constraint = moments[setting.notion](difference_bound=kappa)
    model = ExponentiatedGradient(LogisticRegression(max_iter=1000), constraint)
    with seconds.count(), quiet():
        model.fit(train.X, train.y, sensitive_features=train.groups)
    answers = [Response(model._pmf_predict(part.X)[:, 1]) for part in (test, train)]
    return Fitted(Outcome(kappa, answers[0], answers[1], seconds.total))


#: Fit for one bound, by the method's name. Before there was an estimate for new rows, none was made.
METHODS: dict[str, Callable[[str, Setting, float], Fitted]] = {
    "before": _linear(solver="augmented_lagrangian", new_row_folds=None),
    "default": _linear(),
    "promise": _linear(promise="new_rows"),
    "errors": _linear(objective="zero_one", new_row_folds=None),
    "two_regressions": two_regressions,
    "reduction": reduction,
    "network_before": _network(solver="adam_lagrangian", alpha=0.0, solver_options={"error_weight": 0.0}),
    "network": _network(),
    "one_network": _network(solver="adam_lagrangian"),
}
#: Notions of the methods that are not for all of them. The solver of AUCs is as it was before.
ONLY_FOR: dict[str, tuple[str, ...]] = {
    "before": ("demographic_parity", "equal_opportunity", "equalized_odds", "statistical_parity", "loss_parity"),
    "errors": ("demographic_parity", "equalized_odds"),
    "two_regressions": ("demographic_parity",),
    "reduction": ("demographic_parity", "equalized_odds"),
    "network_before": ("loss_parity",),
    "network": ("loss_parity",),
    "one_network": ("loss_parity",),
}
#: Methods that aim at the fewest errors, and ours whose front they are compared with at equal gaps.
FEWEST_ERRORS, FRONT_OF_ERRORS = ("two_regressions", "reduction"), "errors"
#: Data sets in the order of the figures.
DATA = ("bank", "a9a", "adult", "compas", "law_school", "acs", "oklahoma", "credit", "communities")
