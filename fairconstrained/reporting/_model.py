"""Answers of a fitted model for the rows of a report, and its bounds in training."""

from __future__ import annotations

import contextlib
import inspect
import re
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairconstrained.model_selection.pipelines import model_with
from fairconstrained.model_selection.response import RESPONSES, Response, check_model, get_response, seed_argument

__all__ = ["Answers", "Bound", "answers_of", "bounds_of", "check_fitted", "words_for"]

#: Attribute of a model with bounds, inside of pipelines, searches and the like.
_BOUND = "constraint_values_"


class Answers(NamedTuple):
    """Arguments of a report: labels and decisions of one kind, and scores where the model has some."""

    y_true: np.ndarray
    y_score: np.ndarray | None
    y_pred: np.ndarray | None
    threshold: float
    pos_label: Any
    labels: tuple[str, str] | None
    has_probabilities: bool | None
    classes: list[Any] | None = None
    are_log_odds: bool = True


class Bound(NamedTuple):
    """A constraint of a fitted model."""

    name: str
    #: Largest value of the metric that was allowed, of a floor the least one; None where nothing was bounded, NaN where
    #: that is not known.
    kappa: float | None
    #: The metric on the rows that the bound is about.
    trained: float
    #: The metric on the rows of the report; NaN where it was not measured.
    here: float
    #: By how much the training objective would fall for one unit more of kappa, to first order; NaN where it is not
    #: known.
    price: float
    #: The training objective; NaN where it is not known.
    objective: float = np.nan
    #: new_rows and error: estimate of the metric on new rows by the fit, and its standard error; NaN where there is
    #: none.
    new_rows: float = np.nan
    error: float = np.nan
    #: The rows of ``trained`` in words: of boosted trees they may be those that no tree was fitted to.
    rows: str = "training rows"
    #: Whether ``kappa`` is the least value that was allowed.
    is_floor: bool = False
    #: Whether the fit made the value as small as it could, in place of a bound.
    is_minimised: bool = False

    @property
    def is_known(self) -> bool:
        """Whether there is a bound, and what it is."""
        return self.kappa is not None and not np.isnan(self.kappa)


def check_fitted(model: Any) -> None:
    """Refuse what cannot be the model of a report.

    Raises TypeError if it is not an estimator, and NotFittedError if it is not fitted.
    """
    check_model(model, "model")
    # what has no fit, such as a model that was loaded in another form, counts as fitted
    if hasattr(model, "fit") and not _is_fitted(model):
        raise NotFittedError(f"model must be a fitted estimator, and {words_for(model)} is not: call its fit first.")


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def answers_of(
    model: Any,
    X: Any,
    y: Any,
    sensitive_features: Any,
    response: str,
    threshold: float | None,
    pos_label: Any,
    seed: int,
) -> Answers:
    """Ask a fitted model for scores, as far as it has some, and for its decisions.

    Raises ValueError if ``response`` is unknown, and TypeError if the model does not offer it.
    """
    if response != "auto" and response not in RESPONSES:
        raise ValueError(f"response must be 'auto' or one of {list(RESPONSES)}; got {response!r}.")
    if response == "auto":
        offered = [method for method in ("decision_function", "predict_proba") if hasattr(model, method)]
        response = offered[0] if offered else "decision_function" if is_regressor(model) else "predict"
    special = _special_arguments(model, sensitive_features, seed)
    if special:  # then there is nothing but decisions, in the labels of the user
        return Answers(np.asarray(y), None, np.asarray(model.predict(X, **special)), 0.0, pos_label, None, None)
    several = np.size(getattr(model, "classes_", ())) > 2  # the report tells the positive one from the others
    asked = {"sensitive_features": sensitive_features, "pos_label": None if several else pos_label}
    decided = None if is_regressor(model) else get_response(model, X, "predict", **asked)
    if response == "predict" and decided is not None:
        return Answers(
            decided.encode(y), None, decided.values, 0.0, *_labels(decided, pos_label), None, _several(decided)
        )
    scored = get_response(model, X, response, **asked)
    labels = scored.encode(y)
    if threshold is None:
        threshold = 0.5 if response == "predict_proba" else _own_threshold(model, labels)
    # a classifier says by the method what its scores are; predictions of a regressor may be probabilities
    classifies = scored.classes is not None
    known = response == "predict_proba" if classifies else None
    decisions = None if decided is None else decided.values
    positive, names = _labels(scored, pos_label)
    return Answers(labels, scored.values, decisions, threshold, positive, names, known, _several(scored), classifies)


def bounds_of(model: Any, X: Any = None, y: Any = None, **metadata: Any) -> list[Bound]:
    """The constraints of a model of this package, alone or last in a pipeline or the best of a search.

    With ``X``, they are measured on these rows as well.
    """
    core, X = model_with(_BOUND, model, X)
    trained: dict[str, float] = getattr(core, "constraint_values_", {})
    if not trained:  # other libraries may mean something else by the names below
        return []
    prices: dict[str, float] = getattr(core, "prices_", {})
    here: dict[str, float] = {}
    if X is not None and hasattr(core, "constraint_values"):
        # a report leaves out what these rows do not tell, as where a group has no positives
        with contextlib.suppress(ValueError):
            here = core.constraint_values(X, y, **metadata)
    kappas: dict[str, float | None] = core.named_kappas()
    floors, minimised = core._bounded_from_below(), core._minimised()
    objective = float(getattr(core, "objective_", np.nan))
    estimates: dict[str, tuple[float, float, str]] = getattr(core, "new_row_gaps_", {})
    rows = getattr(core, "_bounded_rows", "training rows")
    bounds = []
    for name, value in trained.items():
        new_rows, error, _ = estimates.get(name, (np.nan, np.nan, ""))
        price = float(prices.get(name, np.nan))
        numbers = float(value), float(here.get(name, np.nan)), price, objective, new_rows, error
        bounds.append(Bound(name, kappas[name], *numbers, rows, name in floors, name in minimised))
    return bounds


def words_for(model: Any) -> str:
    """The text that represents the model, without addresses in memory, which differ from run to run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(model))


def outcome_of(model: Any) -> tuple[str, list[str]]:
    """``status_`` and ``hints_`` of the model of this package in ``model``; empty if there is none."""
    core, _ = model_with(_BOUND, model)
    if not hasattr(core, "constraint_values_"):
        return "", []
    return str(getattr(core, "status_", "")), list(getattr(core, "hints_", []))


def _own_threshold(model: Any, labels: np.ndarray) -> float:
    """Score above which a model decides positively: for a regressor the middle of the labels, else its own."""
    if is_regressor(model) and labels.dtype.kind in "biuf":
        return (float(labels.min()) + float(labels.max())) / 2
    core, _ = model_with(_BOUND, model)
    return float(core._decision_threshold()) if hasattr(core, "_decision_threshold") else 0.0


def _special_arguments(model: Any, sensitive_features: Any, seed: int) -> dict[str, Any]:
    """Return what ``predict`` needs outside of scikit-learn's conventions: groups without a default, a seed."""
    try:
        groups = inspect.signature(model.predict).parameters.get("sensitive_features")
        special = seed_argument(model.predict, seed)
    except (AttributeError, TypeError, ValueError):
        return {}
    if groups is not None and groups.default is groups.empty:
        special["sensitive_features"] = sensitive_features
    return special


def _several(response: Response) -> list[Any] | None:
    """The classes, if none of them is the positive one yet."""
    return None if response.classes is None or response.positive is not None else response.classes.tolist()


def _labels(response: Response, pos_label: Any) -> tuple[Any, tuple[str, str] | None]:
    """The positive label after `Response.encode`, and the names of both; otherwise labels stay as they are."""
    if response.classes is None or response.positive is None:
        return pos_label, None
    others = [f"{label}" for label in response.classes if label != response.positive]
    return 1, (others[0] if len(others) == 1 else f"not {response.positive}", f"{response.positive}")
