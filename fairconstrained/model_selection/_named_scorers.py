"""Scorers by name: gaps, as in the papers and in Fairlearn, and measures of performance, as in scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn import metrics as skm

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.checks.messages import meant
from fairconstrained.metrics import METRICS, MetricInfo, conditional_parity_gap
from fairconstrained.metrics.registry import info_of
from fairconstrained.model_selection._scorers import (
    MADE,
    FairnessScorer,
    Metric,
    make_fairness_scorer,
    make_performance_scorer,
)

__all__ = ["get_fairness_scorer", "get_fairness_scorer_names"]

# name: (metric, response, greater is better). The names are scikit-learn's.
_PERFORMANCE: dict[str, tuple[Metric, str, bool]] = {
    "accuracy": (skm.accuracy_score, "predict", True),
    "balanced_accuracy": (skm.balanced_accuracy_score, "predict", True),
    "f1": (skm.f1_score, "predict", True),
    "precision": (skm.precision_score, "predict", True),
    "recall": (skm.recall_score, "predict", True),
    "roc_auc": (skm.roc_auc_score, "decision_function", True),
    "average_precision": (skm.average_precision_score, "decision_function", True),
    "neg_log_loss": (skm.log_loss, "predict_proba", False),
    "neg_brier_score": (skm.brier_score_loss, "predict_proba", False),
    "r2": (skm.r2_score, "predict", True),
    "neg_mean_squared_error": (skm.mean_squared_error, "predict", False),
    "neg_mean_absolute_error": (skm.mean_absolute_error, "predict", False),
}


@documented_by(MADE)
def get_fairness_scorer(name: str, **kwargs: Any) -> FairnessScorer:
    """Look up a scorer by name.

    Parameters
    ----------
    name : str
        ``"neg_"`` and a name of a metric of :mod:`fairconstrained.metrics`, such as
        ``"neg_partial_statistical_parity_gap"``, ``"neg_demographic_parity"`` or Fairlearn's
        ``"neg_equalized_odds_difference"``; the symbol of a metric in the papers, "Ind", "Sp", "Sf", "Ina", "Wd",
        "pSP", "pDP", "pGAUC", "pEOP" or "pEOD"; or a performance measure such as ``"accuracy"``. See
        :func:`get_fairness_scorer_names`.

    Returns
    -------
    scorer : FairnessScorer
        New scorer on every call. Greater is better, as scikit-learn requires: the score is *minus* the gap, also where
        the name is a symbol, so ``-get_fairness_scorer("Ind")(...)`` is what a table of a paper shows under "Ind".

    Raises
    ------
    ValueError
        If there is no such name; the message lists those there are.

    Examples
    --------
    >>> from fairconstrained.model_selection import get_fairness_scorer
    >>> get_fairness_scorer("neg_independence_gap")
    make_fairness_scorer(independence_gap, response='predict')

    The papers' separation is the sum of two differences:

    >>> get_fairness_scorer("Sp")
    make_fairness_scorer(separation_gap, response='predict', agg_labels='sum')
    """
    if name in _PERFORMANCE:
        metric, response, greater_is_better = _PERFORMANCE[name]
        return make_performance_scorer(metric, response=response, greater_is_better=greater_is_better, **kwargs)
    gaps = _gaps_by_name()
    if name not in gaps:
        raise ValueError(
            f"There is no scorer {name!r}. There are {(names := get_fairness_scorer_names())}." + meant(name, names)
        )
    info, params = gaps[name]
    return make_fairness_scorer(info.function, response=info.response, **{**params, **kwargs})


def get_fairness_scorer_names() -> list[str]:
    """Names that :func:`get_fairness_scorer` knows.

    Returns
    -------
    names : list of str
        Sorted.

    Examples
    --------
    >>> from fairconstrained.model_selection import get_fairness_scorer_names
    >>> "accuracy" in get_fairness_scorer_names()
    True
    """
    return sorted([*_PERFORMANCE, *_gaps_by_name()])


def _gaps_by_name() -> dict[str, tuple[MetricInfo, Mapping[str, Any]]]:
    """Metrics, and their arguments, by the names of their scorers."""
    infos = [*METRICS.values(), info_of(conditional_parity_gap)]  # which reports cannot list, without strata
    named: dict[str, tuple[MetricInfo, Mapping[str, Any]]] = {
        f"neg_{name}": (info, {}) for info in infos for name in info.names
    }
    return named | {info.symbol: (info, info.symbol_params) for info in METRICS.values() if info.symbol}
