"""`fairness_path`: fits from loose to tight, each from the one before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.parallel import Parallel, delayed

from fairconstrained.checks.inputs import without_none
from fairconstrained.checks.messages import PASS_GROUPS, is_number, nothing_to_compare, warn_user
from fairconstrained.estimators import BaseFairEstimator
from fairconstrained.exceptions import ConvergenceWarning, CostlyBoundWarning, FairnessWarning, NewRowsWarning
from fairconstrained.paths._kept import better_kept
from fairconstrained.paths._result import FairnessPath
from fairconstrained.paths._rows import Rows, folds, smallest_group
from fairconstrained.paths._scoring import make_scorers
from fairconstrained.paths._walk import Plan, Walk, begin_fold, checked_last_step, walk, walk_fold
from fairconstrained.solvers import Status

__all__ = ["fairness_path"]

#: First columns of the table.
_FIRST = ("kappa", "objective", "gap", "status", "price", "multipliers", "n_evaluations", "seconds")

#: Other entries of a record.
_NOT_SHOWN = ("exact", "excess", "granularity", "warned")

#: How far above the least level that a fit finds the least bound is, as a share of the way to the unconstrained one.
_ABOVE_LEAST = 0.01
#: A number in a message.
_NUMBER = re.compile(r"-?\d[\d.,]*(e[-+]?\d+)?")
#: Kinds of messages that one warning shows of many fits.
_MOST_KINDS = 3
#: Warnings that are not passed on one by one: those that are told once for all fits, and what the table shows.
_TOLD_TOGETHER = (ConvergenceWarning, NewRowsWarning, CostlyBoundWarning)


@validate_params(
    {
        "estimator": [object],
        "sensitive_features": [object],
        "kappas": ["array-like", None],
        "n_kappas": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "scoring": [str, callable, Mapping, list, tuple, None],
        "param": [str, None],
        "fit_params": [Mapping, None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=False,
)
def fairness_path(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    kappas: Sequence[float | None] | None = None,
    n_kappas: int = 10,
    cv: Any = None,
    scoring: Any = None,
    param: str | None = None,
    fit_params: Mapping[str, Any] | None = None,
    warm_start: bool = True,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FairnessPath:
    r"""Fit an estimator for many bounds on the gap, from loose to tight, each fit from the one before.

    Without ``kappas`` the first model is the unconstrained one. From its exact gap :math:`\kappa_0` the bounds decrease
    to the least :math:`\kappa_{\min}` that the group sizes can resolve, and are denser where they are tight:

    .. math:: \kappa_j = \kappa_{\min} + (\kappa_0 - \kappa_{\min}) \left( 1 - \frac{j}{m - 1} \right)^2,
              \qquad j = 1, \ldots, m - 1 .

    :math:`\kappa_{\min} = \sqrt{r} / 2` is the largest standard error of a share of :math:`1 / r` rows, as many as the
    smallest group has (of all rows if there are no groups); with ``cv``, in the training part of any fold. Where one
    row changes the metric by more, as in a part of a group, r is this ``granularity_``; with fewer than four such rows,
    :math:`\kappa_{\min}` is r itself. Smaller gaps cannot be distinguished from zero. Smaller bounds can be given as
    ``kappas``. Where the levels of single groups are bounded, such as their losses, :math:`\kappa_{\min}` is a
    hundredth of the way from the least largest level that a fit finds to the unconstrained one.

    A fit finds a local solution. Where a tighter bound has led to a model with a better objective than a looser one,
    this model is used for both, so that the objective never rises with ``kappa``. No fit is made for a bound that the
    optimum for the looser bound before it already keeps (by its estimate for new rows as well, if there is one), where
    that looser bound has not changed the optimum. Then ``n_evaluations`` is 0, and callbacks are not called. With
    ``warm_start=False``, there is a fit for every bound.

    Parameters
    ----------
    estimator : estimator
        Any estimator of the package, or a Pipeline that ends in one, whose transformers are then fitted once for all
        models; they get those of ``sensitive_features``, ``sample_weight`` and ``fit_params`` that they request through
        metadata routing. It is not changed.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Target.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), or None
        The group of every row, as `fit` of the estimator takes it; None for `NeymanPearsonClassifier`, which has no
        groups.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights, for the fits and for all measures.
    kappas : array-like of shape (n_kappas,), default=None
        Bounds in any order, None or infinity for no bound; with ``param``, its values, from loose to tight. None: see
        above.
    n_kappas : int, default=10
        Number of models where ``kappas`` is None.
    cv : int, cross-validation splitter or iterable, default=None
        Folds for cross-validation: for each of the values, a model is fitted on the training part and measured on the
        held-out one. An integer is a number of folds with the same share of every group, and of a classifier of every
        group and class; with a ``qid`` the documents of a query stay together. Others are those of
        :func:`sklearn.model_selection.check_cv`; of splitters that need groups of their own give
        ``list(splitter.split(X, y, groups))``. None: everything is measured on the training rows.
    scoring : str, callable, list of str or dict, default=None
        Performance. None: "roc_auc" for `AUCFairClassifier` and `CorrelationPenaltyClassifier`, "accuracy" for the
        other classifiers, "r2" for regressors, and `score` for all others. Or a name that
        :func:`~fairconstrained.model_selection.get_fairness_scorer` or :func:`sklearn.metrics.get_scorer` knows, a
        scorer ``scorer(estimator, X, y)``, several names, or a dict from names to either. Scorers that take
        ``sensitive_features`` get them. The gaps are measured in any case.
    param : str, default=None
        The parameter of the (last) estimator that takes the ``kappas``, such as ``"constraint__top__kappa"``, or
        ``"weight"`` of a penalty. None: what bounds the gaps in ``constraint_values_``, all of them if they are
        several.
    fit_params : dict, default=None
        Further arguments of `fit`, such as ``qid`` of `FairRanker`. Those with one entry for every row are divided into
        folds as the rows are.
    warm_start : bool, default=True
        Whether a fit starts from the result of the one before. False takes longer, and is for methods that stay near an
        unfair start, such as the subgradient steps of `RegularizedParityClassifier`.
    n_jobs : int, default=None
        Number of processes for the folds and for all rows, which are fitted side by side; see joblib.
    verbose : int, default=0
        If positive, there is a progress bar for every fold and one for all rows.

    Returns
    -------
    path : FairnessPath

    Raises
    ------
    TypeError
        If the estimator is not one of the package.
    ValueError
        For invalid arguments or data, for an estimator without a bound or with a floor (give ``param`` and ``kappas``)
        or whose kappa bounds a surrogate (give ``kappas``), where the gap of the unconstrained model does not exist
        (give ``kappas``), and for what `fit` raises; the message then names the value and the fold.

    Warns
    -----
    ConvergenceWarning
        Once for all fits, with the values for which the bound was not kept, the objective did not settle, or a fit
        warned of something else; it shows the first message of each of the three most frequent kinds.
    NewRowsWarning
        Once for all fits whose estimate for new rows, ``new_row_gaps_``, exceeds their bound, with the values.
    FairnessWarning
        If the path has one model only, as the unconstrained one has no gap that could be told from zero.

    See Also
    --------
    FairnessPathCV : An estimator that chooses the bound in `fit`.

    References
    ----------
    Friedman, Hastie, Tibshirani, Regularization Paths for Generalized Linear Models via Coordinate Descent, Journal of
    Statistical Software 33 (2010), section 2.5: warm starts along a path of penalties.

    Examples
    --------
    >>> from fairconstrained import PartialParityClassifier, fairness_path
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=1000, random_state=0)
    >>> model = PartialParityClassifier(constraint="demographic_parity")
    >>> path = fairness_path(model, X, y, sensitive_features=group, n_kappas=4)
    >>> len(path.models)
    4
    >>> path.table["gap"].is_monotonic_decreasing
    True
    """
    checked_last_step(estimator)
    estimator = clone(estimator)  # a fitted one may hold a last step of other parameters
    last = checked_last_step(estimator)
    if param is None:
        _check_bounds(last)
    plan = Plan(estimator, param, make_scorers(scoring, last), warm_start, verbose)
    # an array, as metrics of older scikit-learn take nothing else
    weights = None if sample_weight is None else np.asarray(sample_weight)
    metadata = {"sensitive_features": sensitive_features, "sample_weight": weights, **(fit_params or {})}
    rows = Rows(X, y, without_none(**metadata))
    values = None if kappas is None else _checked(kappas, param)
    if values is None and param is not None:
        raise ValueError(f"kappas must be given with param={param!r}: a grid is known only for bounds.")
    return _fit(plan, rows, values, n_kappas, cv, n_jobs)


def _check_bounds(last: BaseFairEstimator) -> None:
    """Raise ValueError for an estimator that bounds nothing."""
    try:
        last._bound_params(1.0)
    except ValueError as error:
        raise ValueError(
            f"{error} Name the parameter that takes the values, such as param='weight' "
            "or param='constraint__kappa', and give kappas."
        ) from error


def _fit(
    plan: Plan, given: Rows, values: list[float] | None, n_kappas: int, cv: Any, n_jobs: int | None
) -> FairnessPath:
    """The fit for the first value on all rows, then all others."""
    transformers = plan.transformers()
    rows = plan.fit_transformed(given, transformers)
    first = [np.inf] if values is None else values[:1]
    whole = walk(plan, rows, first, transformers=transformers)
    parts = folds(cv, plan.last, given)
    names = [f"fold {i} of {len(parts)}" for i in range(1, len(parts) + 1)]
    parallel = Parallel(n_jobs=n_jobs, prefer="processes")

    def begun(values: Sequence[float], goes_on: bool) -> list[Any]:
        return [
            delayed(begin_fold)(plan, given, part, values, name, place, goes_on)
            for place, (part, name) in enumerate(zip(parts, names, strict=True), start=1)
        ]

    heads = [Walk()] * len(parts)
    if values is not None:
        in_folds = begun(values, False)
    else:
        heads = parallel(begun(first, True))
        values = _grid(plan, rows, [whole, *heads], n_kappas, smallest_group(plan.last, given, parts))
        in_folds = [
            delayed(walk_fold)(plan, head.fold, values[1:], head.last, name, place)
            for place, (head, name) in enumerate(zip(heads, names, strict=True), start=1)
        ]
    rest = delayed(walk)(plan, rows, values[1:], whole.last, transformers)
    tail, *tails = parallel([rest, *in_folds])
    whole = better_kept(plan, whole.then(tail))
    others = [better_kept(plan, head.then(more)) for head, more in zip(heads, tails, strict=True)]
    _warn(plan, [whole, *others], ["all rows", *names])
    return FairnessPath(
        table=_table(whole, others),
        models=[plan.assembled(transformers, model) for model in whole.models],
        scores=tuple(scorer.name for scorer in plan.scorers),
        gaps=tuple(whole.records[-1]["exact"]),
        n_splits=len(parts),
    )


def _checked(kappas: Any, param: str | None) -> list[float]:
    """The values in the order of the fits."""
    given = list(kappas) if isinstance(kappas, Iterable) else []
    if not given or not all(kappa is None or is_number(kappa) or kappa in (np.inf, -np.inf) for kappa in given):
        raise ValueError(
            f"kappas must be a list of at least one number (or None, for no bound) without NaN; got {kappas!r}."
        )
    values = [np.inf if kappa is None else float(kappa) for kappa in given]
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise ValueError(f"kappas has values more than once: {repeated} (None is infinity).")
    if param is not None:
        return values
    if min(values) < 0:
        raise ValueError(f"kappas must be at least 0; got {min(values):g}.")
    return sorted(values, reverse=True)


def _grid(plan: Plan, rows: Rows, heads: Sequence[Walk], n_kappas: int, n_smallest: int) -> list[float]:
    """Bounds from none to the least that all fits accept; only the first of these where no other is of use."""
    gap = heads[0].records[0]["gap"]
    if np.isnan(gap):
        raise ValueError(
            "kappas must be given: the gap of the unconstrained model, from which bounds would decrease, does not "
            "exist, as a group has no rows to measure it by, or no group has a rate above 0."
        )
    alone = "The path has one model, the unconstrained one"
    if not heads[0].records[0]["exact"]:
        message = nothing_to_compare(heads[0].models[0].groups_, f"{alone}.", f"{PASS_GROUPS}.")
        warn_user(message, FairnessWarning)
        return [np.inf]
    if plan.last._bounds_levels():
        least = walk(plan, rows, [0.0], heads[0].last).records[0]["gap"]
        least += _ABOVE_LEAST * (gap - least)
        why = "no model has one that is clearly smaller."
    else:
        least = _least_difference(heads, n_smallest)
        why = f"the groups are so small that gaps below {least:.4g} cannot be told from zero."
    if not np.isfinite(least):
        raise ValueError(
            f"kappas must be given: kappa of {plan.last_name} bounds a surrogate here, about whose values "
            f"the gap of the unconstrained model ({gap:.4g}) says nothing."
        )
    if gap <= least:
        warn_user(f"{alone}: its gap is {gap:.4g}, and {why}", FairnessWarning)
        return [np.inf]
    return [np.inf, *(least + (gap - least) * np.linspace(1, 0, n_kappas)[1:] ** 2).tolist()]


def _least_difference(heads: Sequence[Walk], n_smallest: int) -> float:
    """The least difference of groups that can be told from zero."""
    # of smooth metrics the granularity is a tolerance, and says nothing of the groups
    steps = [step for head in heads for step in head.records[0]["granularity"].values()]
    granularity = max([1 / n_smallest, *steps])
    # groups of a few rows: what one row changes
    return max(0.5 * np.sqrt(granularity), granularity)


def _table(whole: Walk, others: Sequence[Walk]) -> pd.DataFrame:
    """One row for every value, with the means and deviations over the folds."""
    table = pd.DataFrame(whole.records)
    table = table[[*_FIRST, *table.columns.drop([*_FIRST, *_NOT_SHOWN])]].copy()
    if not others:
        return table
    measured = [pd.DataFrame([record["test"] for record in other.records]) for other in others]
    for name in measured[0]:
        by_fold = np.stack([frame[name].to_numpy(dtype=float) for frame in measured])
        table[f"mean_test_{name}"], table[f"std_test_{name}"] = by_fold.mean(axis=0), by_fold.std(axis=0)
    return table


class _Fit(NamedTuple):
    """A fit of the path: the name of its rows, its value, how it ended, and what it warned of."""

    rows: str
    value: float
    status: Status
    warned: list[tuple[type[Warning], str]]

    def messages(self, category: type[Warning]) -> list[str]:
        """Its warnings of a category."""
        return [message for own, message in self.warned if issubclass(own, category)]


def _warn(plan: Plan, walks: Sequence[Walk], names: Sequence[str]) -> None:
    """One warning for all fits that missed their bound or stopped early; every other message once."""
    fits = [
        _Fit(name, record["kappa"], Status(record["status"]), record["warned"])
        for walk, name in zip(walks, names, strict=True)
        for record in walk.records
    ]
    of_new_rows = [fit for fit in fits if fit.messages(NewRowsWarning)]
    missed = [fit for fit in fits if fit.status.is_infeasible]
    early = [fit for fit in fits if fit.status is Status.MAX_ITER]
    warned = [fit for fit in fits if fit.messages(ConvergenceWarning) and fit not in missed and fit not in early]
    exceeding = [("exceed their bound by the estimate for new rows", of_new_rows)]
    ending = [
        (f"did not keep {plan.value_name}", missed),
        ("ended before the objective settled", early),
        ("gave another warning" if missed or early else "gave a warning", warned),
    ]
    for category, complaints in ((NewRowsWarning, exceeding), (ConvergenceWarning, ending)):
        told = [f"{_count(of, fits)} {complaint} ({_places(of)})" for complaint, of in complaints if of]
        if told:
            affected = [fit for _, of in complaints for fit in of]
            text = f"{', and '.join(told)}.{_examples(plan, category, affected, fits)}"
            warn_user(text, category)
    others = [warning for fit in fits for warning in fit.warned if not issubclass(warning[0], _TOLD_TOGETHER)]
    for category, message in dict.fromkeys([*others, *(warning for done in walks for warning in done.warnings)]):
        of_fit = issubclass(category, FairnessWarning)  # which may name parameters of the estimator
        warn_user(f"{plan.last_name}: {message}" if of_fit else message, category)


def _count(some: Sequence[_Fit], fits: Sequence[_Fit]) -> str:
    return f"{len(some)} of {len(fits)} fits"


def _places(fits: Iterable[_Fit]) -> str:
    """The values of fits, by the rows that they are of."""
    values: dict[str, list[str]] = {}
    for fit in fits:
        values.setdefault(fit.rows, []).append(f"{fit.value:.4g}")
    return "; ".join(f"{name}: {', '.join(of)}" for name, of in values.items())


def _examples(plan: Plan, category: type[Warning], affected: Sequence[_Fit], fits: Sequence[_Fit]) -> str:
    """One message of each of the most frequent kinds, with its fits where these are not all of them.

    Messages that differ in numbers alone are of one kind.
    """
    kinds: dict[str, tuple[str, list[_Fit]]] = {}
    for fit in affected:
        for message in fit.messages(category):
            _, having = kinds.setdefault(_NUMBER.sub("0", message), (message, []))
            if fit not in having:
                having.append(fit)
    text, begin = "", f"The first message of {plan.last_name}"
    by_frequency = sorted(kinds.values(), key=lambda kind: -len(kind[1]))
    for message, having in by_frequency[:_MOST_KINDS]:
        where = "" if len(having) == len(affected) else f", in {_count(having, fits)} ({_places(having)})"
        stop = "" if message.endswith((".", "!", "?")) else "."
        text, begin = f"{text} {begin}{where}: {message}{stop}", "Another message"
    n_left = len(by_frequency[_MOST_KINDS:])
    left = f" {n_left} more {'kind is' if n_left == 1 else 'kinds are'} not shown." if n_left else ""
    return text + left
