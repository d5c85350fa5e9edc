"""Our methods: heads, boosted trees, linear scores, networks, and two regressions with a sweep."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from benchmarks.any_model.data import Part, Split, as_codes, dense, linear_split
from benchmarks.any_model.notions import NOTIONS, Notion, Response
from benchmarks.any_model.trees import Seconds, Trees
from fairconstrained import AUCFairClassifier, LossParityClassifier, PartialParityClassifier, fairness_path
from fairconstrained.constraints import LossParity
from fairconstrained.data import FairData
from fairconstrained.models.boosted_trees import mean_of_unseen
from fairconstrained.solvers import NewtonBoosting

#: kappa of a model without a bound.
UNCONSTRAINED = float("inf")
#: Share of the training rows that OxonFair keeps apart for its bounds.
VALIDATION_SHARE = 0.3
#: Folds of heads, and of those on fewer training rows than `FEW_ROWS`, where models of four fifths of them are too
#: unlike the model of all; the bounds of linear heads are then about their estimates for new rows.
FOLDS, FOLDS_OF_FEW, FEW_ROWS = 5, 20, 20_000
#: Weights of the group's log-odds that two regressions are searched over.
WEIGHTS = np.linspace(-3, 3, 241)


@dataclass(frozen=True)
class Setting:
    """Setting of a task: rows, notion, and bounds that share what they can of a fit."""

    split: Split
    notion: str
    kappas: tuple[float, ...]
    seed: int

    @property
    def entry(self) -> Notion:
        """Entry of the notion."""
        return NOTIONS[self.notion]


@dataclass(frozen=True)
class Outcome:
    """A fitted model: its answers, the seconds of the task so far, and the gap that its bound is a promise about.

    ``promised`` is NaN where the promise is about the decisions on the training rows, as the benchmark measures them.
    ``promise`` are the answers for the training rows that it is about, where these are not ``train``.
    """

    kappa: float
    test: Response
    train: Response
    seconds: float
    status: str = "fitted"
    promised: float = float("nan")
    promise: Response | None = None


def response_of_scores(scores: np.ndarray) -> Response:
    """Return scores, and the positive decision of those above zero."""
    return Response((scores > 0).astype(float), scores)


def plain(setting: Setting) -> Iterator[Outcome]:
    """The boosted trees alone."""
    train, seconds = setting.split.train, Seconds()
    with seconds.count():
        model = Trees().fit(train.X, train.y)
    yield Outcome(UNCONSTRAINED, *_trees_responses(model, setting.split), seconds.total)


def _trees_responses(model: Trees, split: Split) -> tuple[Response, Response]:
    def response(part: Part) -> Response:
        return response_of_scores(logit(np.clip(model.predict_proba(part.X)[:, 1], 1e-9, 1 - 1e-9)))

    return response(split.test), response(split.train)


def _bounded(setting: Setting, kappa: float, **params: Any) -> Any:
    """The package's estimator for a notion, linear in its features; without estimates, as new rows are at hand."""
    notion, params = setting.entry, {"new_row_folds": None, "random_state": setting.seed, **params}
    if notion.kind == "auc":
        return AUCFairClassifier(kappa, constraint=notion.constraint, **params)
    if notion.kind == "loss":
        # without a penalty a few rows of extreme scores make up for the losses of the others
        return PartialParityClassifier(constraint=LossParity(kappa), **{"alpha": 1e-3, **params})
    return PartialParityClassifier(kappa, constraint=notion.constraint, **notion.params, **params)


def head(setting: Setting) -> Iterator[Outcome]:
    """A head that is linear in its features, on cross-fitted boosted trees; the path over kappa fits the trees once.

    For rates of decisions it has the fewest errors, by an exact search; for other notions the least log loss.
    """
    return _head(setting, _linear(setting, **_errors(setting.entry)))


def head_groups(setting: Setting) -> Iterator[Outcome]:
    """A head that knows the group of new rows, for comparison with methods that need it."""
    return _head(setting, _linear(setting, **_errors(setting.entry)), use_groups=True)


def head_ensemble(setting: Setting) -> Iterator[Outcome]:
    """The head of `head`, but new rows get the mean score of the models of all folds."""
    return _head(setting, _linear(setting, **_errors(setting.entry)), ensemble=True)


def head_groups_ensemble(setting: Setting) -> Iterator[Outcome]:
    """The head of `head_groups`, but new rows get the mean score of the models of all folds."""
    return _head(setting, _linear(setting, **_errors(setting.entry)), use_groups=True, ensemble=True)


def head_logistic(setting: Setting) -> Iterator[Outcome]:
    """A head of least log loss for rates of decisions."""
    return _head(setting, _linear(setting))


def _linear(setting: Setting, **params: Any) -> Any:
    """A head that is linear in its features, with the promise for new rows where rows are few."""
    few = {"promise": "new_rows", "new_row_folds": "auto"} if _has_few_rows(setting) else {}
    return _bounded(setting, 0.1, **few, **params)


def _has_few_rows(setting: Setting) -> bool:
    return setting.split.train.y.size < FEW_ROWS


def _errors(notion: Notion) -> dict[str, Any]:
    return {"objective": "zero_one"} if notion.kind == "rate" else {}


def head_network(setting: Setting) -> Iterator[Outcome]:
    """A head that is the network of `LossParityClassifier`; every bound is a fit from the start."""
    return _head(setting, LossParityClassifier(new_row_folds=None, random_state=setting.seed), warm_start=False)


def _head(
    setting: Setting, own: Any, use_groups: bool = False, warm_start: bool = True, ensemble: bool = False
) -> Iterator[Outcome]:
    from fairconstrained.heads import FairHeadClassifier

    folds = FOLDS_OF_FEW if _has_few_rows(setting) else FOLDS
    options = {"use_groups": use_groups, "cv": folds, "ensemble": ensemble, "random_state": setting.seed}
    model = FairHeadClassifier(Trees(), head=own, **options)
    return _path(setting, model, setting.split, warm_start, _cross_fitted_answers(model, setting))


def _cross_fitted_answers(model: Any, setting: Setting) -> Callable[[Any], Response] | None:
    """Function from a fitted head to its answers for the training rows, each scored by models of other folds.

    Only notions that need them have it: the fits of the trees are remembered, so that they cost little.
    """
    if not setting.entry.of_several:
        return None
    train = setting.split.train
    features = model.own_steps()[0][1].fit_transform(train.X, train.y, sensitive_features=train.groups)
    return lambda fitted: response_of_scores(fitted.head_.decision_function(features, sensitive_features=train.groups))


def linear(setting: Setting) -> Iterator[Outcome]:
    """Linear scores of standardised numbers and one-hot categories."""
    return _path(setting, _bounded(setting, 0.1), linear_split(setting.split))


def _path(
    setting: Setting,
    model: Any,
    split: Split,
    warm_start: bool = True,
    promise: Callable[[Any], Response | None] | None = None,
) -> Iterator[Outcome]:
    kappas, train, seconds = sorted(setting.kappas, reverse=True), split.train, Seconds()
    given = {"sensitive_features": train.groups, "kappas": kappas, "warm_start": warm_start}
    with seconds.count(), quiet():
        path = fairness_path(model, train.X, train.y, **given)
    return _outcomes(zip(kappas, path.models, strict=True), split, seconds, promise)


def _outcomes(
    fitted: Iterable[tuple[float, Any]],
    split: Split,
    seconds: Seconds,
    promise: Callable[[Any], Response | None] | None = None,
) -> Iterator[Outcome]:
    for kappa, model in fitted:
        test, train = (
            response_of_scores(model.decision_function(part.X, sensitive_features=part.groups))
            for part in (split.test, split.train)
        )
        promised = max(model.constraint_values_.values())
        answers = None if promise is None else promise(model)
        yield Outcome(kappa, test, train, seconds.total, str(model.status_), float(promised), answers)


def boosting(setting: Setting) -> Iterator[Outcome]:
    """Boosted trees that follow the Lagrangian, with a bound on the gap of the training rows."""
    return _boosting(setting, cv=None)


def boosting_errors(setting: Setting) -> Iterator[Outcome]:
    """Boosted trees of fewest errors, with a bound on the gap of the training rows."""
    return _boosting(setting, objective="zero_one", cv=None)


def boosting_folds(setting: Setting) -> Iterator[Outcome]:
    """Boosted trees that follow the Lagrangian, with a bound on the gap of scores out of fold (default)."""
    return _boosting(setting)


def _boosting(setting: Setting, **params: Any) -> Iterator[Outcome]:
    from fairconstrained import FairBoostingClassifier

    notion, train = setting.entry, setting.split.train
    params |= {"constraint": notion.constraint, "n_estimators": 300, "learning_rate": 0.05, **notion.params}
    params["new_row_folds"] = None
    for kappa in setting.kappas:
        seconds, model = Seconds(), FairBoostingClassifier(kappa=kappa, random_state=setting.seed, **params)
        with seconds.count(), quiet():
            model.fit(train.X, train.y, sensitive_features=train.groups)
        answers = partial(out_of_fold_answers, part=train) if notion.of_several else None
        yield from _outcomes([(kappa, model)], setting.split, seconds, answers)


def out_of_fold_answers(model: Any, part: Part) -> Response | None:
    """Answers of boosted trees for the training rows, each by boosters that have not seen it; None without folds."""
    n_boosters = model.n_boosters_
    if n_boosters == 1 or model.booster_ is None:
        return None
    labels, codes = np.unique(part.groups, return_inverse=True)
    features, size = as_codes(part.X), model.n_trees_ // n_boosters
    data = FairData.from_arrays(features, part.y.astype(float), codes, tuple(labels))
    unseen = [data.order[rows] for rows in NewtonBoosting(n_folds=n_boosters).unseen_rows(data)]
    # the booster of the model is the mean of all, one after the other
    scores = (
        n_boosters * model.booster_.predict(features[rows], place * size, size, raw_score=True)
        for place, rows in enumerate(unseen)
    )
    return response_of_scores(mean_of_unseen(unseen, scores))


def network(setting: Setting) -> Iterator[Outcome]:
    """The network of `LossParityClassifier`, with its default arguments."""
    split = Split(*(part._replace(X=dense(part.X)) for part in linear_split(setting.split)))
    for kappa in setting.kappas:
        seconds, model = Seconds(), LossParityClassifier(kappa, new_row_folds=None, random_state=setting.seed)
        with seconds.count(), quiet():
            model.fit(split.train.X, split.train.y, sensitive_features=split.train.groups)
        yield from _outcomes([(kappa, model)], split, seconds)


def two_regressions(setting: Setting) -> Iterator[Outcome]:
    """Logistic regressions a of y and b of the group: the best a - mu b and threshold within the bound."""
    split, seconds = linear_split(setting.split), Seconds()
    names = np.unique(split.train.groups)
    with seconds.count(), quiet():
        models = [
            LogisticRegression(max_iter=1000).fit(split.train.X, target)
            for target in (split.train.y, split.train.groups == names[1])
        ]
        a, b = (model.decision_function(split.train.X) for model in models)
        chosen = sweep(a, b, split.train.y, split.train.groups == names[1], setting.kappas)
    for kappa, (mu, threshold) in zip(setting.kappas, chosen, strict=True):
        responses = []
        for part in (split.test, split.train):
            a, b = (model.decision_function(part.X) for model in models)
            responses.append(response_of_scores(a - mu * b - threshold))
        yield Outcome(kappa, *responses, seconds.total)


def sweep(
    a: np.ndarray, b: np.ndarray, y: np.ndarray, group: np.ndarray, kappas: tuple[float, ...]
) -> list[tuple[float, float]]:
    """Return for every bound on the gap of rates the weight and threshold of least error among all thresholds."""
    best = [(-np.inf, 0.0, np.inf)] * len(kappas)
    for mu in WEIGHTS:
        scores = a - mu * b
        order = np.argsort(-scores)
        values, positive, member = scores[order], y[order], group[order]
        # after i rows: the i largest scores are positive decisions
        correct = np.concatenate([[0], np.cumsum(2 * positive - 1)])
        rate = np.concatenate([[0], np.cumsum(member)]) / member.sum()
        other = np.concatenate([[0], np.cumsum(~member)]) / (~member).sum()
        cuts = np.concatenate([[values[0] + 1], (values[1:] + values[:-1]) / 2, [values[-1] - 1]])
        possible = np.concatenate([[True], values[1:] < values[:-1], [True]])
        for place, kappa in enumerate(kappas):
            allowed = np.flatnonzero(possible & (np.abs(rate - other) <= kappa))
            i = allowed[np.argmax(correct[allowed])]
            best[place] = max(best[place], (float(correct[i]), float(mu), float(cuts[i])))
    return [(mu, threshold) for _, mu, threshold in best]


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out the warnings of fits: the table has their status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


Method = Callable[[Setting], Iterator[Outcome]]
#: Our methods by name, and the trees without a bound.
METHODS: dict[str, Method] = {
    "trees": plain,
    "head": head,
    "head_groups": head_groups,
    "head_ensemble": head_ensemble,
    "head_groups_ensemble": head_groups_ensemble,
    "head_logistic": head_logistic,
    "head_network": head_network,
    "boosting": boosting,
    "boosting_errors": boosting_errors,
    "boosting_folds": boosting_folds,
    "linear": linear,
    "network": network,
    "two_regressions": two_regressions,
}
RATES = tuple(name for name, notion in NOTIONS.items() if notion.kind == "rate")
#: Notions of the methods that are not for all of them.
ONLY_FOR = {
    "head_groups": RATES,
    "head_groups_ensemble": RATES,
    "boosting_errors": RATES,
    "head_logistic": RATES,
    "head_network": ("loss_parity",),
    "network": ("loss_parity",),
    "two_regressions": ("demographic_parity",),
}
