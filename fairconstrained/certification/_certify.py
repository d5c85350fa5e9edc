"""`certify`: a bound on the gap in the population, from rows that no fit has seen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import is_regressor
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import _num_samples, check_is_fitted

# The families list themselves when they are imported.
from fairconstrained.certification import (  # noqa: F401
    _auc_bands,
    _betting,
    _binomial,
    _bounded_means,
    _dkw,
    _hoeffding,
    _unconditional,
    _ustatistics,
    bootstrap,
)
from fairconstrained.certification._certificate import Certificate, certificate_of
from fairconstrained.certification.evidence import METHODS, evidence_of
from fairconstrained.certification.sample import Sample, as_loss_bound, groups_of, resolve_metric
from fairconstrained.certification.seen_rows import check_unseen, model_kappa
from fairconstrained.checks.inputs import as_table, in_memory, refuse_masked, warn_of_another_order
from fairconstrained.checks.messages import check_fraction, is_number, shortened
from fairconstrained.groups import is_membership
from fairconstrained.metrics.registry import info_of
from fairconstrained.model_selection import make_fairness_scorer
from fairconstrained.model_selection.pipelines import model_with
from fairconstrained.model_selection.response import check_model, get_response
from fairconstrained.tables.dask_table import as_rows

__all__ = ["answers_of", "certify", "check_certification", "check_rows", "split_params"]


@validate_params(
    {
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "allow_training_data": ["boolean"],
    },
    prefer_skip_nested_validation=False,
)
def certify(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    metric: str | Callable[..., Any],
    metric_params: dict[str, Any] | None = None,
    kappa: float | None = None,
    delta: float = 0.05,
    method: str = "auto",
    loss_bound: float | tuple[float, float] | None = None,
    n_resamples: int = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
    allow_training_data: bool = False,
) -> Certificate:
    r"""Bound the gap of a fitted model in the population, from rows that it was not fitted on.

    .. math:: P\bigl(\text{gap in the population} > \text{upper bound}\bigr) \le \delta

    The probability is over the draw of the rows, which have to be independent, of one distribution, and of equal
    weight. The groups are those of the rows. Where the numbers of rows in groups (or in the cells of group and label
    that a metric compares) are fixed beforehand, bounds on gaps between groups hold all the same, as they hold given
    these numbers. Metrics in which rows of several groups are averaged need the groups to be drawn with their shares of
    the population: `inaccuracy`, `minority_share`, "intersectional" rates, losses with ``reference="overall"``,
    `group_rates` with ``rule="to_overall"``, `positive_equality_gap`, `negative_equality_gap`, `bpsn_bnsp_gap`, groups
    that overlap, and AUC gaps of a ``protected`` group to all others.

    For more than two classes, the largest gap of a class against all others is measured and bounded: all classes of the
    model count, also those that no row has. Log losses and errors are those of all classes.

    ===============  ===============================================================================================
    method           for
    ===============  ===============================================================================================
    "betting"        Wealth of bets on all pairings of two samples, or on one row after the other, whatever their
                     distributions are. AUC gaps; `rate_gap`, `group_rates` and `parity_pair` of sigmoids; losses with
                     ``loss_bound``.
    "hoeffding"      Hoeffding's inequality for a sum as a whole. Sufficiency, and separation with
                     ``agg_labels="sum"``, which are sums over labels; inter- and intra-group AUC gaps, which are
                     differences of independent AUCs.
    "unconditional"  Exact bounds on the difference of two rates, whatever the rates are. Independence, equal
                     opportunity, separation, other differences of rates of decisions (`predictive_equality_gap`,
                     `error_rate_parity_gap`, `predictive_parity_gap`, `conditional_parity_gap`, `group_rates`), and
                     `rate_gap` of indicators, between groups that do not overlap.
    "binomial"       Exact intervals of Clopper and Pearson for every rate. All these metrics, ratios of rates, the
                     other rules of `group_rates`, sufficiency, inaccuracy, `parity_pair` and `minority_share` of
                     indicators, partial gaps at a threshold (but with ``ranks="group"``, for which there is the
                     bootstrap), and gaps that are the largest over all thresholds (statistical parity, whole or
                     partial).
    "ustatistic"     Chernoff's bound for U-statistics of two samples. AUC gaps.
    "dkw"            Bands around distribution functions. `wasserstein_gap`, `partial_group_auc_gap`; also statistical
                     parity and AUC gaps, less tight.
    "bootstrap"      Quantiles of resamples (BCa). Every metric, also functions of your own. Right only in the limit of
                     many rows, and marked so.
    ===============  ===============================================================================================

    Parameters
    ----------
    model : estimator
        Fitted: of this package, scikit-learn, Fairlearn, a Pipeline, a search. It gets the sensitive features if its
        response method requests them.
    X : {array-like, sparse matrix, Table, Dask collection} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels or targets; it and the groups may be Dask collections too.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Group of every row; several columns are combined. They count as they are here, also those that ``small_groups``
        has merged in the fit or left out of it: give these one name, or leave out their rows, to certify what the fit
        compares. `rate_gap`, `loss_parity_gap` and `group_rates` also take a
        table of booleans that says which groups a row belongs to. May be None for `inaccuracy` and `subset_auc_gap`.
    metric : str or callable
        A name or symbol of a metric, see `fairconstrained.metrics.metric_names` ("demographic_parity"), the function
        itself, or any ``metric(y_true, y_pred or y_score, *, sensitive_features, ...)`` of your own.
    metric_params : dict, default=None
        Further arguments of the metric, such as ``interval``; no ``sample_weight``.
    kappa : float, default=None
        Value that the bound is compared with; for a floor (``rule="floor"`` of `group_rates`) the least value of the
        metric. None: the ``kappa`` of the model, if it has one in use and the metric compares groups.
    delta : float, default=0.05
        Probability with which the bound may fail, in (0, 1).
    method : str, default="auto"
        Kind of bound, as above. "auto" takes the first one that the metric has.
    loss_bound : float or pair of floats, default=None
        Numbers between which the losses of all rows lie, of the sample and of the population; a single one stands for
        (0, loss_bound). Only for losses.
    n_resamples : int, default=1000
        Number of resamples of the bootstrap; at least ``10 / delta``.
    random_state : int, RandomState instance or None, default=None
        Seed of the bootstrap, and of a model that decides at random and takes a seed.
    n_jobs : int, default=None
        Number of processes for the resamples of the bootstrap; see joblib. The certificate is the same.
    allow_training_data : bool, default=False
        Whether to accept rows on which the model was fitted; the certificate then says so. Models of this package keep
        a record of their rows. **Of other models nothing is known, and this is not checked.**

    Returns
    -------
    certificate : Certificate

    Raises
    ------
    ValueError
        If ``delta`` is not in (0, 1), ``kappa`` is negative, lengths differ, there is a single group (unless the metric
        is a floor or a ceiling), a cell that the metric compares is empty (the message prints the counts), the metric
        is unknown or has no such method, it compares labels and the model is a regressor, it combines columns that the
        model takes for overlapping groups, ``metric_params`` holds weights, a loss lies outside ``loss_bound``, or the
        model was fitted on the rows.
    TypeError
        If the model is no estimator, or has no response that the metric could be computed from.
    NotFittedError
        If the model is not fitted.

    Warns
    -----
    FairnessWarning
        If X, y and the groups have the same row labels (index) in different orders: rows are matched by position.

    Notes
    -----
    The largest of several gaps needs no union over them. Where ``bound_j`` fails with probability at most delta for
    each pair j of groups, so does ``max_j bound_j`` for ``max_j gap_j``: the pair that is worst in the population is
    a fixed one, and its bound is enough. The same holds for thresholds and for classes. The union is over the ends of
    intervals that the bound of one pair is made of; with ``agg="mean"`` over those of all pairs.

    References
    ----------
    .. [1] C. J. Clopper, E. S. Pearson, "The Use of Confidence or Fiducial Limits", Biometrika 1934.
    .. [2] R. Berger, D. Boos, "P Values Maximized Over a Confidence Set for the Nuisance Parameter", JASA 1994.
    .. [3] W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963: theorem 1 and
       section 5.
    .. [4] P. Massart, "The Tight Constant in the Dvoretzky-Kiefer-Wolfowitz Inequality", Annals of Probability 1990.
    .. [5] B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, section 14.3.
    .. [6] I. Waudby-Smith, A. Ramdas, "Estimating Means of Bounded Random Variables by Betting", JRSS B 2024.
    .. [7] R. L. Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", Technometrics 1982: why the
       largest needs no union.

    Examples
    --------
    >>> from fairconstrained import PartialParityClassifier, certify
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=6000, random_state=0)
    >>> model = PartialParityClassifier(kappa=0.05).fit(X[:3000], y[:3000], sensitive_features=group[:3000])
    >>> certificate = certify(model, X[3000:], y[3000:], sensitive_features=group[3000:],
    ...                       metric="statistical_parity_gap", kappa=0.2)
    >>> certificate.passed, certificate.gap <= certificate.upper_bound
    (True, True)
    """
    check_certification(delta, method, kappa)
    function, params, pos_label = split_params(metric, metric_params)
    X, y, sensitive_features = as_rows(X), in_memory(y), in_memory(sensitive_features)
    warn_of_another_order(X=X, y=y, sensitive_features=sensitive_features)
    check_model(model, "model")
    check_is_fitted(model)
    overlap = check_unseen(model, X, allow_training_data)
    check_rows(model, X, y, sensitive_features, function, params)
    answers = answers_of(model, X, y, sensitive_features, function, pos_label, random_state)
    sample = Sample(
        function,
        *answers,
        sensitive_features,
        params,
        loss_bound=as_loss_bound(loss_bound),
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
        classes=getattr(model, "classes_", None) if pos_label is None else None,
    )
    if kappa is None and info_of(function).compares_groups:
        kappa = model_kappa(model, info_of(function).is_floor(params))
    bound = None if kappa is None else float(kappa)
    return certificate_of(evidence_of(sample, method), info_of(function), params, delta, bound, overlap)


def check_certification(delta: Any, method: Any, kappa: Any) -> None:
    """Raise a ValueError for arguments out of range."""
    check_fraction("delta", delta)
    if method not in ("auto", *METHODS):
        raise ValueError(f"method must be one of {['auto', *METHODS]}; got {method!r}.")
    if kappa is not None and not (is_number(kappa) and kappa >= 0):
        raise ValueError(f"kappa must be a number of at least 0 or None; got {kappa!r}.")


def answers_of(
    model: Any,
    X: Any,
    y: Any,
    sensitive_features: Any,
    metric: Callable[..., Any],
    pos_label: Any = None,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and the response of a model to rows, as the metric takes them."""
    response = make_fairness_scorer(metric).response
    if response == "predict" and is_regressor(model):
        raise ValueError(
            f"{info_of(metric).name} compares labels, and {type(model).__name__} is a regressor. "
            "Choose a metric of scores."
        )
    with config_context(enable_metadata_routing=True):  # the requests of the model say whether it gets the groups
        asked = {"sensitive_features": sensitive_features, "pos_label": pos_label, "random_state": random_state}
        answer = get_response(model, X, response, **asked)
    return answer.encode(y), answer.values


def check_rows(
    model: Any, X: Any, y: Any, sensitive_features: Any, metric: Callable[..., Any], params: Mapping[str, Any]
) -> None:
    """Raise a ValueError for lengths that differ, masks, too few groups, and groups of the model without rows."""
    refuse_masked(X=X, y=y)
    if sensitive_features is None:
        if info_of(metric).compares_groups:
            raise ValueError(f"{info_of(metric).name} compares groups: pass sensitive_features.")
        return
    groups = groups_of(metric, sensitive_features)
    sizes = {"X": _num_samples(X), "y": _num_samples(y), "sensitive_features": groups.codes.size}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"X, y and sensitive_features must have the same number of rows; got {sizes}.")
    if len(groups.names) < info_of(metric).least_groups(params):
        raise ValueError(
            f"all {sizes['X']} rows are of one group, {groups.names[0]!r}: there is nothing to compare, and no gap."
        )
    comparing, _ = model_with("groups_", model)
    known = np.asarray(getattr(comparing, "groups_", ())).tolist()
    combines = groups.unions is None and is_membership(sensitive_features)
    if combines and set(as_table(sensitive_features).columns) == set(known):
        raise ValueError(
            f"the model compares groups that overlap, {shortened(known)}, and {info_of(metric).name} would compare the "
            "combinations of these columns. Certify 'rate_gap', 'loss_parity_gap' or 'group_rates', which compare what "
            "the model does."
        )
    left_out = list(getattr(comparing, "ignored_groups_", ()))
    missing = [group for group in known if group not in groups.names and group not in left_out]
    if missing and set(groups.names) <= set(known):
        counts = dict(zip(groups.names, groups.sums(np.ones(sizes["X"])).astype(int).tolist(), strict=True))
        raise ValueError(
            f"there are no rows of the groups {shortened(missing)} that the model was fitted with; rows by group: "
            f"{shortened(counts)}. "
            "Nothing can be certified about them: collect rows of every group."
        )


def split_params(
    metric: Any, metric_params: Mapping[str, Any] | None, given_later: Collection[str] = ()
) -> tuple[Callable[..., Any], dict[str, Any], Any]:
    """Return the function of a metric, its arguments, and the positive label.

    By the latter labels become 0 and 1 before the metric sees them.

    Raises ValueError for an unknown metric, arguments that users may not give here, and those that the metric needs and
    that are neither there nor ``given_later``.
    """
    function, params = resolve_metric(metric, metric_params, given_later)
    params.pop("on_empty", None)  # an empty cell has no bound
    return function, params, params.pop("pos_label", None)
