"""Which metrics exist and which response of an estimator each one reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

__all__ = ["METRICS", "MetricInfo", "register"]

Response = Literal["predict", "decision_function", "predict_proba"]
Metric = TypeVar("Metric", bound=Callable[..., Any])


@dataclass(frozen=True)
class MetricInfo:
    """A metric and the estimator response it is computed from.

    Parameters
    ----------
    function : callable
        ``function(y_true, response, *, sensitive_features, sample_weight=None, ...)``, smaller is better.
    response : {"predict", "decision_function", "predict_proba"}
        The estimator method that yields the second argument. ``"decision_function"`` means raw scores;
        ``"predict_proba"`` the probability of the positive class.
    symbol : str, default=""
        Its name in the tables and figures of papers, such as "Sp"; empty if it has none.
    symbol_params : dict, default={}
        Arguments with which the metric is what the papers call so.
    """

    function: Callable[..., Any]
    response: Response
    symbol: str = ""
    symbol_params: Mapping[str, Any] = field(default_factory=dict)


#: The metrics by name, each with the estimator response that it reads.
METRICS: dict[str, MetricInfo] = {}


def register(response: Response, symbol: str = "", **symbol_params: Any) -> Callable[[Metric], Metric]:
    """List the decorated metric in ``METRICS`` under its own name."""

    def add(function: Metric) -> Metric:
        METRICS[function.__name__] = MetricInfo(function, response, symbol, symbol_params)
        return function

    return add
