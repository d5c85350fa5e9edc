"""Scorers that pass the sensitive features to the metric, and to models that need them for prediction."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.metadata_routing import UNUSED

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.checks.inputs import without_none
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.metrics import METRICS
from fairconstrained.metrics.registry import check_options
from fairconstrained.metrics.validation import check_binary_labels
from fairconstrained.model_selection.response import RESPONSES, get_response

__all__ = ["MADE", "FairnessScorer", "Metric", "make_fairness_scorer", "make_performance_scorer"]

Metric = Callable[..., Any]

# scikit-learn's convention for the second argument of a metric
_RESPONSE_OF_ARGUMENT = {
    "y_pred": "predict",
    "y_score": "decision_function",
    "y_prob": "predict_proba",
    "y_proba": "predict_proba",
}

#: Documentation of what the functions that make scorers have in common.
MADE = """Parameters
----------
response : {"auto", "predict", "decision_function", "predict_proba"}, default="auto"
    Output of the estimator that the metric is given. "auto" knows it for every metric of
    :mod:`fairconstrained.metrics`. For others it goes by the name of the second argument (``y_pred``, ``y_score``,
    ``y_prob``, ``y_proba``).
greater_is_better : bool, default=True
    False negates the metric, as for gaps, which are better when small.
pos_label : object, default=None
    The label that counts as positive; by default the last of two classes.
**kwargs : object
    Further arguments of the metric, such as ``interval=(0.05, 0.3)``.

Returns
-------
scorer : FairnessScorer

Raises
------
ValueError
    If ``response`` is unknown, or "auto" and not to be told from the metric.
TypeError
    If the metric has no argument of that name; the message lists those it has.
"""


@with_parameters
class FairnessScorer(BaseEstimator):
    """A scikit-learn scorer that receives the sensitive features.

    It requests ``sensitive_features`` through metadata routing: ``GridSearchCV(...).fit(X, y, sensitive_features=...)``
    passes the rows of each test fold to it, without any ``set_score_request``; and so it requests the ``strata`` of a
    metric that needs them, such as :func:`~fairconstrained.metrics.conditional_parity_gap`. Only ``sample_weight``
    needs ``set_score_request(sample_weight=True)``. Metadata routing has to be enabled:
    ``sklearn.set_config(enable_metadata_routing=True)``.

    An estimator whose response method requests ``sensitive_features`` itself (a model with coefficients per
    group, alone or at the end of a pipeline) receives them as well; no other estimator does.

    A scorer of decisions (``response="predict"``) also chooses the threshold of
    :class:`sklearn.model_selection.TunedThresholdClassifierCV`, which passes the groups to the metric but not to the
    model.

    Build one with :func:`make_fairness_scorer`, :func:`make_performance_scorer` or
    :func:`get_fairness_scorer`.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, response, *, sensitive_features=..., **metric_params)``.
    response : {"predict", "decision_function", "predict_proba"}
        Output of the estimator that the metric is given. A classifier without ``decision_function`` is judged by the
        log-odds of its ``predict_proba`` (0 remains the threshold), a regressor always by its predictions.
    greater_is_better : bool, default=False
        False negates the metric.
    by_group : bool, default=True
        Whether the metric itself takes ``sensitive_features``.
    pos_label : object, default=None
        The label that counts as positive, against all others; by default the last of two classes. Where there is one,
        the metric sees labels and decisions as 0 and 1, whatever they were, and the score of one of more than two
        classes as its excess over the largest score of the others.
    metric_params : dict, default=None
        Further keyword arguments of the metric.
    """

    # "score" is the method under which metadata routing looks up what a scorer requests
    __metadata_request__score: ClassVar[dict[str, Any]] = {
        "estimator": UNUSED,
        "sensitive_features": True,
        "strata": False,
    }

    metric: Metric = parameter(kw_only=False)
    response: str = parameter(kw_only=False)
    greater_is_better: bool = parameter(default=False)
    by_group: bool = parameter(default=True)
    pos_label: Any = parameter(default=None)
    metric_params: dict[str, Any] | None = parameter(default=None)

    def score(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        strata: Any = None,
    ) -> float:
        """Judge a fitted estimator; the same as calling the scorer.

        Parameters
        ----------
        estimator : estimator object
            Fitted classifier or regressor, or a pipeline ending in one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to judge it on.
        y : array-like of shape (n_samples,)
            Labels of the rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features), default=None
            Groups of the rows. Only a performance scorer works without them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        strata : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Strata of the rows, for a metric within strata.

        Returns
        -------
        score : float
            Greater is better.

        Raises
        ------
        ValueError
            If the metric compares groups and ``sensitive_features`` did not arrive, or needs ``strata`` and they did
            not.
        TypeError
            If a classifier does not offer the response.
        """
        columns = self._columns(sensitive_features, sample_weight, strata)
        response = get_response(
            estimator, X, self.response, sensitive_features=sensitive_features, pos_label=self.pos_label
        )
        return self._sign * self._value(response.encode(y), response.values, columns)

    __call__ = score

    def get_metadata_routing(self) -> Any:
        """Return what the scorer requests: the strata as well where the metric needs them.

        Returns
        -------
        routing : MetadataRequest
        """
        routing = super().get_metadata_routing()
        if _needs_strata(self.metric):
            routing.score.add_request(param="strata", alias=True)
        return routing

    def _columns(self, sensitive_features: Any, sample_weight: Any, strata: Any) -> dict[str, Any]:
        """The columns that the metric takes; raises ValueError if one that it needs did not arrive."""
        needed = {"sensitive_features": sensitive_features} if self.by_group else {}
        if strata is not None or _needs_strata(self.metric):
            needed["strata"] = strata
        for name, column in needed.items():
            if column is None:
                raise ValueError(
                    f"{self!r} needs {name}. In a search or a cross-validation call "
                    f"sklearn.set_config(enable_metadata_routing=True) first, and pass {name}= to fit "
                    f"(to cross_validate: params={{{name!r}: ...}})."
                )
        return needed | without_none(sample_weight=sample_weight)

    def _value(self, y_true: Any, response: Any, columns: Mapping[str, Any]) -> float:
        """The metric itself."""
        return float(np.asarray(self.metric(y_true, response, **(self.metric_params or {}), **columns)))

    # scikit-learn reads these four of a scorer whose metric it applies to decisions by many thresholds.

    @property
    def _sign(self) -> int:
        return 1 if self.greater_is_better else -1

    @property
    def _response_method(self) -> str:
        return self.response

    @property
    def _kwargs(self) -> dict[str, Any]:
        return {"pos_label": self.pos_label}

    def _score_func(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        pos_label: Any,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        strata: Any = None,
    ) -> float:
        """The metric of decisions; both columns hold the labels of the classifier."""
        if self.response != "predict":
            raise ValueError(
                f"A threshold is chosen by a metric of decisions, and {_name_of(self.metric)} judges "
                f"{self.response!r}, which no threshold changes. Choose a scorer with response='predict', such as "
                "get_fairness_scorer('neg_independence_gap')."
            )
        columns = self._columns(sensitive_features, sample_weight, strata)
        labels = check_binary_labels(y_true, y_pred, pos_label)
        value = self._value(labels.y_true.astype(int), labels.y_pred.astype(int), columns)
        if np.isnan(value):  # scikit-learn would take the first NaN for the best score
            raise ValueError(
                f"No threshold can be chosen, as {_name_of(self.metric)} is NaN on the rows of a fold, for example "
                "where they are of a single group."
            )
        return value

    def _accept_sample_weight(self) -> bool:
        # scikit-learn asks a scorer this when routing is off and a search was fitted with sample_weight
        return "sample_weight" in inspect.signature(self.metric).parameters

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        factory = make_fairness_scorer if self.by_group else make_performance_scorer
        parts = [_name_of(self.metric), f"response={self.response!r}"]
        default = not self.by_group  # of the factory: gaps are better when small, performance when large
        if self.greater_is_better is not default:
            parts.append(f"greater_is_better={self.greater_is_better}")
        if self.pos_label is not None:
            parts.append(f"pos_label={self.pos_label!r}")
        parts += [f"{key}={value!r}" for key, value in (self.metric_params or {}).items()]
        return f"{factory.__name__}({', '.join(parts)})"

    def _routing_repr(self) -> str:
        return repr(self)


@documented_by(MADE)
def make_fairness_scorer(
    metric: Metric,
    *,
    response: str = "auto",
    greater_is_better: bool = False,
    pos_label: Any = None,
    **kwargs: Any,
) -> FairnessScorer:
    """Build a scorer from a metric that compares groups.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, response, *, sensitive_features, **kwargs)``: one of
        :mod:`fairconstrained.metrics`, of Fairlearn's, or your own.

    Examples
    --------
    >>> from fairconstrained.metrics import independence_gap
    >>> from fairconstrained.model_selection import make_fairness_scorer
    >>> make_fairness_scorer(independence_gap)
    make_fairness_scorer(independence_gap, response='predict')
    """
    return _made(metric, response, kwargs, greater_is_better=greater_is_better, pos_label=pos_label)


@documented_by(MADE)
def make_performance_scorer(
    metric: Metric,
    *,
    response: str = "predict",
    greater_is_better: bool = True,
    pos_label: Any = None,
    **kwargs: Any,
) -> FairnessScorer:
    """Build a scorer from a metric without groups, for models that may need groups for prediction.

    The scorers of scikit-learn call ``estimator.predict(X)``, which a model with coefficients per group does not
    support. This scorer passes the sensitive features to a model that requests them.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, response, **kwargs)``, such as :func:`sklearn.metrics.accuracy_score`.

    Examples
    --------
    >>> from sklearn.metrics import fbeta_score
    >>> from fairconstrained.model_selection import make_performance_scorer
    >>> make_performance_scorer(fbeta_score, beta=2)
    make_performance_scorer(fbeta_score, response='predict', beta=2)
    """
    options = {"greater_is_better": greater_is_better, "by_group": False, "pos_label": pos_label}
    return _made(metric, response, kwargs, **options)


def _made(metric: Any, response: str, params: dict[str, Any], **options: Any) -> FairnessScorer:
    """The scorer of a metric; an error for what is no function, and for arguments that it does not have."""
    if not callable(metric):
        raise InvalidParameterError(
            f"metric must be a function, such as one of fairconstrained.metrics; got {metric!r}. For a scorer by name, "
            "call get_fairness_scorer, whose names get_fairness_scorer_names lists."
        )
    check_options(metric, params)
    return FairnessScorer(metric, _resolve_response(metric, response), metric_params=params, **options)


def _needs_strata(metric: Metric) -> bool:
    """Whether the metric has strata without a default."""
    strata = inspect.signature(metric).parameters.get("strata")
    return strata is not None and strata.default is inspect.Parameter.empty


def _resolve_response(metric: Metric, response: str) -> str:
    if response in RESPONSES:
        return response
    if response != "auto":
        raise ValueError(f"response must be one of {['auto', *RESPONSES]}; got {response!r}.")
    function = metric.func if isinstance(metric, partial) else metric
    for info in METRICS.values():
        if info.function is function:
            return info.response
    arguments = list(inspect.signature(function).parameters)
    argument = arguments[1] if len(arguments) > 1 else None
    if argument not in _RESPONSE_OF_ARGUMENT:
        raise ValueError(
            f"What {_name_of(metric)} judges cannot be told from its second argument ({argument}); give it one of the "
            f"names {list(_RESPONSE_OF_ARGUMENT)}. A scorer can also be told by response=, one of {list(RESPONSES)}."
        )
    return _RESPONSE_OF_ARGUMENT[argument]


def _name_of(metric: Metric) -> str:
    if isinstance(metric, partial):
        arguments = [*map(repr, metric.args), *(f"{key}={value!r}" for key, value in metric.keywords.items())]
        return f"partial({', '.join([_name_of(metric.func), *arguments])})"
    return getattr(metric, "__name__", None) or repr(metric)
