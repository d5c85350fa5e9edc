"""`CertifiedFairClassifier`: a classifier that certifies its gap in the population, or says that it cannot."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import _fit_context, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_consistent_length

from fairconstrained.certification._certificate import Certificate, certificate_of
from fairconstrained.certification._certify import check_certification, check_rows, split_params
from fairconstrained.certification._planning import Judge, Ladder, Part, Planner, calibration_rows, fitted
from fairconstrained.certification.evidence import METHODS
from fairconstrained.certification.sample import as_loss_bound, groups_of
from fairconstrained.certification.seen_rows import Overlap
from fairconstrained.checks.inputs import as_targets, check_group_of_every_row
from fairconstrained.checks.messages import (
    NOTHING_TO_COMPARE,
    PASS_GROUPS,
    is_number,
    nothing_to_compare,
    warn_user,
)
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics.registry import info_of
from fairconstrained.model_selection.delegation import DelegatesToFitted

__all__ = ["CertifiedFairClassifier"]

#: No row of the fit is among those that were set aside for the certificate.
_SET_ASIDE = Overlap(0.0, 1)
#: Inner bounds as shares of the outer one.
_SHARES = (1.0, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1)


@with_parameters
class CertifiedFairClassifier(DelegatesToFitted):
    r"""A classifier that certifies, with a stated confidence, a gap of at most kappa in the population, or warns.

    .. math:: P\bigl(\text{certified and gap in the population} > \kappa\bigr) \le \delta

    `fit` sets a part of the rows aside for calibration. With the others it chooses the loosest inner bound with which a
    certificate for ``kappa`` can be expected to pass, and fits the estimator with it. Then it tests once, on the
    calibration rows, as `certify` does. If more than one test is allowed, k tests are planned: at most ``max_tests``,
    and no more than there are inner bounds left. Their number and order are fixed before the first test, and each has a
    confidence of ``1 - delta / k``.

    Parameters
    ----------
    estimator : estimator
        Estimator of this package, Pipeline that ends in one, or any classifier with a parameter ``kappa``, which is
        replaced by tighter values. Other classifiers (such as those with a penalty, those that choose kappa themselves,
        and searches) have nothing that can be tightened; they are fitted as they are, and tested.
    kappa : float
        Value that the gap in the population is to be certified not to exceed, at least 0; of a floor
        (``rule="floor"`` of `group_rates`) the value that it is to be certified to reach.
    metric : str or callable
        The gap, as in `certify`.
    metric_params : dict, default=None
        Further arguments of the metric; strata are an argument of `fit`.
    delta : float, default=0.05
        Probability, in (0, 1), that the model is certified although its gap exceeds ``kappa``; over the draw of the
        rows.
    calibration_fraction : float, default=0.3
        Share of the rows that the fit does not see, in (0, 1).
    max_tests : int, default=1
        Largest number of tests. After a test that fails, the model of the next tighter inner bound is fitted and
        tested.
    kappas : array-like, default=None
        Inner bounds to choose from. None: 1, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2 and 0.1 times ``kappa``; for a floor, those
        whose distance from 1 is so many times that of ``kappa``. Give them if the estimator bounds another quantity
        than the metric; a single one is used without a choice. Bounds are left out, except the loosest one, if they are
        so small that the groups cannot distinguish them from zero, or if a fit to a fold raises an error for them.
    power : float, default=0.8
        Intended probability of passing the test, in [0.5, 1), for which the inner bound is chosen. It is not
        guaranteed.
    cv : int or cross-validation splitter, default=3
        Folds of the rows that are fitted on, by which the inner bound is chosen.
    method : str, default="auto"
        Kind of bound, as in `certify`. With "bootstrap" (and "auto" for a metric that has no other method) the
        guarantee holds in the limit of many rows only.
    loss_bound : float or pair of floats, default=None
        Numbers between which all losses lie, as in `certify`.
    n_resamples : int, default=1000
        Number of resamples of the bootstrap.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of the rows that are set aside, and of the bootstrap.

    Attributes
    ----------
    status_ : {"certified", "uncertified"}
        Whether ``certificate_`` has passed.
    certificate_ : Certificate or None
        The last test; None without groups.
    estimator_ : estimator
        The model that was tested last, and that predicts.
    kappa_ : float or None
        Bound with which the estimator was fitted; None if it has none.
    n_tests_ : int
        Tests on the rows set aside.
    plan_ : DataFrame or None
        One row for each inner bound that was looked at: the ``gap`` on held-out rows of the folds, its standard
        deviation ``std``, the ``bound`` that the calibration rows would give for it, and the bound that is ``planned``
        with an allowance for chance; None if there was nothing to choose. The bounds are those with ``delta`` divided
        by the largest number of tests that was possible before the search, and so are no smaller than those of tests.
    calibration_rows_ : ndarray of int
        Numbers of the rows set aside.
    classes_ : ndarray of shape (n_classes,)

    See Also
    --------
    certify : The test by itself.

    Notes
    -----
    The rows set aside are the same share of every cell whose size the certificate takes as given (of the groups, or of
    groups and two labels, by the metric), and otherwise random. Where rows are weighted, the weights are for the fit;
    the certificate counts every row once.

    Fits inside do not use the calibration rows. Fits *around* it do: put scalers and searches into ``estimator``, not
    around the `CertifiedFairClassifier`, or else the model depends on the rows of its test.

    The guarantee depends on the test alone. The plan only chooses between accuracy and the probability of passing: with
    the gap :math:`\hat g` of held-out rows, the bound B of as many rows as are set aside, and the standard deviation
    :math:`\sigma` of :math:`\hat g`, the loosest inner bound with :math:`B(\hat g, n_{cal}) + z_{power} \, \sigma
    \sqrt{n_{fit} / n_{cal} + 2} \le \kappa` is taken, and the one of the least value if there is none. Of more
    than four bounds every second one is looked at first. The variances
    are those of the gap on the rows set aside, of :math:`\hat g`, and of the gap of the final model itself, which keeps
    its bound on the rows that it was fitted on.

    References
    ----------
    A. Angelopoulos, S. Bates, E. Candès, M. Jordan, L. Lei, "Learn then Test: Calibrating Predictive Algorithms to
    Achieve Risk Control", arXiv:2110.01052: models chosen without the calibration rows, tested on them with a union.
    P. Thomas et al., "Preventing Undesirable Behavior of Intelligent Machines", Science 2019: a candidate is chosen
    with a prediction of its safety test.

    Examples
    --------
    >>> from fairconstrained import CertifiedFairClassifier, RateParityClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=4000, random_state=0)
    >>> model = CertifiedFairClassifier(RateParityClassifier(), kappa=0.15, metric="independence_gap", random_state=0)
    >>> model.fit(X, y, sensitive_features=group).status_
    'certified'
    >>> model.kappa_ < model.certificate_.upper_bound <= 0.15
    True
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True, "strata": True}

    estimator: Any = parameter(allowed=[HasMethods("fit")], kw_only=False)
    kappa: float = parameter(allowed=[Interval(Real, 0, None, closed="left")])
    metric: str | Callable[..., Any] = parameter(allowed=[str, callable])
    metric_params: Mapping[str, Any] | None = parameter(None, [Mapping, None])
    delta: float = parameter(0.05, [Interval(Real, 0, 1, closed="neither")])
    calibration_fraction: float = parameter(0.3, [Interval(Real, 0, 1, closed="neither")])
    max_tests: int = parameter(1, [Interval(Integral, 1, None, closed="left")])
    kappas: Sequence[float] | None = parameter(None, ["array-like", None])
    power: float = parameter(0.8, [Interval(Real, 0.5, 1, closed="left")])
    cv: Any = parameter(3, ["cv_object"])
    method: str = parameter("auto", [StrOptions({"auto", *METHODS})])
    loss_bound: float | tuple[float, float] | None = parameter(None, [Real, tuple, list, None])
    n_resamples: int = parameter(1000, [Interval(Integral, 1, None, closed="left")])
    random_state: Any = parameter(None, ["random_state"])

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, strata: Any = None
    ) -> Self:
        """Set rows aside, choose the inner bound, fit, and test.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            Whatever the estimator accepts.
        y : array-like of shape (n_samples,)
            Labels.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The group of every row. Without it there is one group: the estimator is fitted on all rows, nothing is
            certified, and a `FairnessWarning` says so.
        sample_weight : array-like of shape (n_samples,), optional
            Weights for the fit; the certificate counts every row once.
        strata : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The stratum of every row, for an estimator and a metric that compare groups within strata
            ("conditional_parity").

        Returns
        -------
        self : CertifiedFairClassifier
            Unchanged if an error or an interruption occurs.

        Raises
        ------
        ValueError
            For invalid parameters, for what the estimator raises, and where a cell that the metric compares has no rows
            among those set aside (the message prints the counts).
        TypeError
            If ``estimator`` is a class and no instance, or has no response that the metric could be computed from.

        Warns
        -----
        FairnessWarning
            If the model is not certified; with the bound that was reached and the rows that would be needed.
        """
        changed = copy.copy(self)
        changed._fit(Part(X, as_targets(y), sensitive_features, sample_weight, strata))
        self.__dict__ = changed.__dict__
        return self

    def _fit(self, rows: Part) -> None:
        check_consistent_length(rows.X, rows.y, rows.weights, rows.strata)
        if rows.groups is not None:
            check_group_of_every_row(_num_samples(rows.groups), _num_samples(rows.y))
        rng = check_random_state(self.random_state)
        if isinstance(self.estimator, type):
            raise TypeError(f"estimator must be an instance, such as {self.estimator.__name__}(); got the class.")
        check_certification(self.delta, self.method, self.kappa)
        metric, params, pos_label = split_params(self.metric, self.metric_params, ("strata",))
        judge = Judge(
            metric=metric,
            params=params,
            pos_label=pos_label,
            method=self.method,
            loss_bound=as_loss_bound(self.loss_bound),
            n_resamples=self.n_resamples,
            random_state=rng.randint(2**31),
            classes=np.unique(rows.y).tolist() if pos_label is None else None,
        )
        judge.check_strata(rows)
        self.certificate_: Certificate | None = None
        self.kappa_: float | None = None
        self.plan_: pd.DataFrame | None = None
        self.status_, self.n_tests_ = "uncertified", 0
        self.calibration_rows_ = np.empty(0, dtype=np.int64)
        names = () if rows.groups is None else groups_of(judge.metric, rows.groups).names
        least_groups = info_of(judge.metric).least_groups(judge.params)
        if len(names) < least_groups:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", NOTHING_TO_COMPARE, FairnessWarning)  # said below
                self.estimator_ = fitted(clone(self.estimator), rows)
            warn_user(
                nothing_to_compare(
                    names,
                    "Nothing is certified, and the estimator was fitted on all rows.",
                    f"{PASS_GROUPS}." if least_groups > 1 else "Pass sensitive_features to fit; one group suffices.",
                ),
                FairnessWarning,
            )
            return
        draw = np.random.default_rng(rng.randint(2**31))
        strata = judge.strata(rows)
        self.calibration_rows_ = calibration_rows(strata, self.calibration_fraction, draw)
        fit_rows = np.setdiff1d(np.arange(rows.y.size), self.calibration_rows_)
        if not np.bincount(strata[fit_rows], minlength=strata.max() + 1)[np.bincount(strata) > 1].all():
            raise ValueError(
                f"calibration_fraction={self.calibration_fraction!r} leaves {fit_rows.size} of {rows.y.size} rows to "
                "fit on, and none of some group (or of a label in it); choose a smaller fraction."
            )
        self._choose_and_test(rows.take(fit_rows), rows.take(self.calibration_rows_), judge)

    def _choose_and_test(self, rows: Part, calibration: Part, judge: Judge) -> None:
        """Settle the order of the tests with ``rows``, then test with ``calibration``."""
        ladder = Ladder(self.estimator, info_of(judge.metric).is_floor(judge.params))
        order = self._order_of_tests(ladder, rows, judge, calibration.y.size)
        to_test, left = order[: self.max_tests], order[self.max_tests :]
        delta = self.delta / len(to_test)  # their number is settled by the rows to fit on
        for kappa in to_test:
            self.kappa_ = kappa
            (self.estimator_,) = ladder.fit(rows, [] if kappa is None else [kappa])
            check_rows(self.estimator_, calibration.X, calibration.y, calibration.groups, judge.metric, judge.params)
            evidence = judge.evidence(judge.answers(self.estimator_, calibration), calibration)
            metric = info_of(judge.metric)
            certificate = certificate_of(evidence, metric, judge.params, delta, float(self.kappa), _SET_ASIDE)
            self.certificate_ = certificate
            self.n_tests_ += 1
            if certificate.passed:
                self.status_ = "certified"
                return
        tighter = "larger" if ladder.rises else "smaller"
        more = "more max_tests try tighter models" if left else f"{tighter} kappas make a tighter model"
        self._complain(certificate, more if ladder.has_bound else "")

    def _order_of_tests(self, ladder: Ladder, rows: Part, judge: Judge, n_calibration: int) -> Sequence[float | None]:
        """Inner bounds from the loosest one with a good plan on; sets ``plan_``."""
        if not ladder.has_bound:
            return [None]
        kappas = self._inner_bounds(ladder.rises)
        if len(kappas) == 1:
            return kappas
        delta = self.delta / min(self.max_tests, len(kappas))
        planner = Planner(ladder.for_plan, rows, judge, delta, n_calibration, self.power, self.cv)
        kappas = planner.resolvable(kappas)
        largest = 1 - self.kappa if ladder.is_floor else self.kappa
        self.plan_ = planner.searched(kappas, largest)
        best = self.plan_["planned"].to_numpy()
        good = np.flatnonzero(best <= largest)
        looked_at = self.plan_["kappa"].tolist()
        first, tightest = looked_at[int(good[0] if good.size else best.argmin())], looked_at[-1]
        return kappas[kappas.index(first) : kappas.index(tightest) + 1]

    def _inner_bounds(self, rises: bool) -> list[float]:
        """Return the bounds to choose from, the loosest one first, which is the least one of those that rise."""
        kappas = [self._share_of_bound(share, rises) for share in _SHARES] if self.kappas is None else list(self.kappas)
        if not kappas or not all(is_number(kappa) and kappa >= 0 for kappa in kappas):
            raise ValueError(f"kappas must be one or more numbers of at least 0; got {self.kappas!r}.")
        return sorted(set(map(float, kappas)), reverse=not rises)

    def _share_of_bound(self, share: float, rises: bool) -> float:
        """The inner bound that leaves a share of the room that ``kappa`` does, which a floor leaves up to 1."""
        return round(max(1 - (1 - self.kappa) * share, self.kappa) if rises else self.kappa * share, 10)

    def _complain(self, certificate: Certificate, more: str) -> None:
        """Warn of a model that is not certified; ``more`` says what else could be tried."""
        needed = certificate.sufficient_n
        largest = certificate.largest(self.kappa)
        loosen = "raise kappa" if largest == self.kappa else "lower kappa"
        advice = (
            f"Its gap on these rows, {certificate.gap:.4g}, is too large for any number of rows: {loosen}"
            if needed is None
            else f"With the same estimates {needed:,} calibration rows would be needed, about "
            f"{int(np.ceil(needed / self.calibration_fraction)):,} rows in all"
        )
        advice += f"; {more}." if more else "."
        allowed = f"kappa={self.kappa:g}"
        if largest != self.kappa:
            allowed = f"{largest:.4g}, for {allowed} from below,"
        warn_user(
            f"{certificate.metric} could not be certified to be at most {allowed} in the population: the "
            f"bound is {certificate.upper_bound:.4g} on {certificate.n_samples:,} calibration rows "
            f"({self.n_tests_} test{'s' * (self.n_tests_ != 1)}). {advice}",
            FairnessWarning,
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Accuracy.

        Parameters
        ----------
        X, sensitive_features
            Rows, as in `predict`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        return float(
            accuracy_score(y, self.predict(X, sensitive_features=sensitive_features), sample_weight=sample_weight)
        )
