"""Names of the measures of candidates in plots, and their standard deviations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from fairconstrained.model_selection import FairnessScorer, get_fairness_scorer

__all__ = ["column_words", "deviation_of", "listed", "scorer_of", "scoring_name"]


def deviation_of(results: Mapping[str, Any] | pd.DataFrame, column: str) -> Any:
    """The column of standard deviations beside one of means, if there is one."""
    name = column.replace("mean_", "std_", 1)
    return results[name] if column.startswith("mean_") and name in results else None


def column_words(name: str) -> str:
    """Words for a column of ``cv_results_`` or a scorer: "accuracy, mean of test folds"."""
    short = name.removeprefix("mean_test_")
    words = short.removeprefix("neg_").replace("_", " ")
    negated = "negated " if short.startswith("neg_") else ""
    return negated + words + (", mean of test folds" if short != name else "")


def scoring_name(function: Any) -> str:
    """Words for a metric or a scorer."""
    metric = function.metric if isinstance(function, FairnessScorer) else function
    return column_words(getattr(metric, "__name__", None) or repr(metric))


def listed(candidates: Any, name: str) -> list[Any]:
    """Return the candidates as a list; raises ValueError if there are none."""
    found = list(candidates) if isinstance(candidates, Iterable) and not isinstance(candidates, str) else []
    if not found:
        raise ValueError(f"{name} must be a list of at least one candidate; got {candidates!r}.")
    return found


def scorer_of(scoring: Any, name: str) -> Callable[..., float]:
    """The scorer that the user named or gave; raises ValueError for what is none."""
    if not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(f"{name} must be a scorer or the name of one; got {scoring!r}.")
    if not isinstance(scoring, str):
        return scoring
    try:
        return get_fairness_scorer(scoring)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
