"""Scores of the models of a path, besides the gaps."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils.metadata_routing import get_routing_for_object

from fairconstrained.checks.inputs import without_none
from fairconstrained.estimators import AUCFairClassifier, CorrelationPenaltyClassifier
from fairconstrained.model_selection import FairnessScorer, get_fairness_scorer, get_fairness_scorer_names
from fairconstrained.paths._rows import Rows

__all__ = ["PathScorer", "make_scorers"]

#: Scores for ``scoring=None``, by the first of the estimator's classes that is listed.
DEFAULTS: dict[type, str] = {
    AUCFairClassifier: "roc_auc",
    CorrelationPenaltyClassifier: "roc_auc",
    ClassifierMixin: "accuracy",
    RegressorMixin: "r2",
}
_METADATA = ("sensitive_features", "sample_weight", "qid")


@dataclass(frozen=True, eq=False)
class PathScorer:
    """A scorer, and what it takes."""

    name: str
    #: ``function(estimator, X, y, **metadata)``, greater is better.
    function: Callable[..., float]
    #: The metadata that it is handed.
    takes: frozenset[str]
    #: Whether it sees nothing but what the estimator predicts, so that the last step of a pipeline will do.
    judges_responses: bool

    def __call__(self, model: Any, pipeline: Any, rows: Rows) -> float:
        """The score of ``model``, the last step of ``pipeline``."""
        metadata = {key: value for key, value in rows.metadata.items() if key in self.takes}
        judged, X = (model, rows.seen) if self.judges_responses else (pipeline, rows.X)
        try:
            return float(self.function(judged, X, rows.y, **metadata))
        except ValueError as error:
            raise ValueError(f"scoring {self.name!r}: {error}") from error


def make_scorers(scoring: Any, estimator: Any) -> tuple[PathScorer, ...]:
    """Scorers from what the user wrote; ``estimator`` is the last step.

    Raises ValueError for an unknown name, a function that is no scorer, or a name that a column of the gaps has.
    """
    if scoring is None:
        scoring = next((DEFAULTS[kind] for kind in type(estimator).__mro__ if kind in DEFAULTS), _own_score)
    if isinstance(scoring, str):
        scoring = {scoring: scoring}
    elif callable(scoring):
        scoring = {"score": scoring}
    elif not isinstance(scoring, Mapping):
        if unnamed := [entry for entry in scoring if not isinstance(entry, str)]:
            raise ValueError(f"scoring lists {unnamed}, which have no names; give a dict from names to scorers.")
        scoring = {name: name for name in scoring}
    if not scoring:
        raise ValueError("scoring is empty; name at least one measure of performance, or leave it None.")
    if reserved := [name for name in scoring if name == "gap" or name.startswith("gap_")]:
        raise ValueError(f"scoring has the names {reserved}, but gap and gap_... are columns of the gaps themselves.")
    return tuple(_scorer(name, scorer, estimator) for name, scorer in scoring.items())


def _scorer(name: str, scorer: Any, estimator: Any) -> PathScorer:
    if isinstance(scorer, str):
        known = scorer in get_fairness_scorer_names()
        function = get_fairness_scorer(scorer) if known else get_scorer(scorer)
        return PathScorer(name, function, _taken(function), judges_responses=True)
    check_scoring(estimator, scorer)  # a metric in place of a scorer
    return PathScorer(name, scorer, _taken(scorer), isinstance(scorer, FairnessScorer) or scorer is _own_score)


def _taken(scorer: Any) -> frozenset[str]:
    """The metadata that a scorer names among its arguments, or requests through metadata routing."""
    taken = {name for name in _METADATA if name in inspect.signature(scorer).parameters}
    taken |= set(get_routing_for_object(scorer).consumes("score", _METADATA))
    if not getattr(scorer, "_accept_sample_weight", lambda: True)():
        taken.discard("sample_weight")
    return frozenset(taken)


def _own_score(estimator: Any, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> float:
    """The `score` of an estimator that is neither a classifier nor a regressor."""
    return estimator.score(X, y, **without_none(qid=qid, sample_weight=sample_weight))
