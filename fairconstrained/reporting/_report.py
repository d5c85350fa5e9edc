"""`FairnessReport`: a comparison of the groups in tables, in text and on one self-contained page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd

from fairconstrained.certification import Certificate
from fairconstrained.certification.seen_rows import overlap_with_fit
from fairconstrained.checks.inputs import warn_of_another_order
from fairconstrained.reporting._certificates import certificate_of_rows
from fairconstrained.reporting._gaps import check_gaps, gap_table
from fairconstrained.reporting._measures import class_tables, group_table
from fairconstrained.reporting._metric_frame import metric_frame
from fairconstrained.reporting._model import Bound, answers_of, bounds_of, check_fitted, outcome_of, words_for
from fairconstrained.reporting._names import printable
from fairconstrained.reporting._page import page
from fairconstrained.reporting._resamples import Resampling
from fairconstrained.reporting._rows import ReportRows
from fairconstrained.reporting._words import Verdict, interval_words, remark_sentences, setting_words, verdict_of

__all__ = ["FairnessReport"]


@dataclass(frozen=True, eq=False, repr=False)
class FairnessReport:
    """Comparison of the groups under a model: tables, text, and one self-contained page.

    Made by :func:`fairness_report` or :meth:`from_estimator`.

    Attributes
    ----------
    table : DataFrame
        One row for each group, and a last one called "overall". Columns: ``n_samples``; ``share`` of all rows, by
        weight; ``base_rate``, the share of positives; ``positive_rate``, that of positive decisions;
        ``true_positive_rate``, ``false_positive_rate``, ``precision``, ``accuracy``; and, if there are scores, ``auc``
        and ``log_loss``, which reads scores as log-odds (or as probabilities, if they are). NaN where a cell is empty.
        Of more than two classes: ``n_samples``, ``share``, ``accuracy`` and ``log_loss``.
    class_tables : dict of DataFrame
        The other columns for every one of more than two classes, which is positive against all others; empty for two.
        Scores are the excess over the largest score of the others.
    gaps : DataFrame
        One row for each gap, by the name of its function in :mod:`fairconstrained.metrics`. Columns: ``gap``, its
        name in words; ``value``; ``lower`` and ``upper``, its interval, NaN without resamples; ``unit``; and
        ``description``. The three numbers are NaN where a cell that the gap compares is empty. Of more than two classes
        a gap is the largest one of a class against all others, and a column ``class`` says which it is; None for those
        of losses.
    rows : ReportRows
        Rows that the report is about, validated.
    y_true, y_pred : ndarray of int, of shape (n_samples,)
        Labels and decisions: 1 is positive, 0 is negative; of more than two classes, their numbers.
    y_score : ndarray of shape (n_samples,), or None
        Scores as given.
    sensitive_features : DataFrame of shape (n_samples, n_features)
        Columns that make up the groups.
    sample_weight : ndarray of shape (n_samples,), or None
        Weights as given.
    interval : object
        Percentile interval as given, or None.
    score_name : {"score", "predicted probability"}
        Name of an axis of the scores.
    title : str
        Heading of the page.
    level : float
        Level of the intervals.
    n_resamples : int
        Number of resamples behind the intervals.
    random_state : int
        Seed of the resamples.
    path : FairnessPath or None
        A path to show.
    bounds : list
        Bounds of the model, one for each constraint: its name, ``kappa``, its value in training and on these rows, and
        its price.
    status : str
        ``status_`` of the model; empty if there is none.
    hints : list of str
        ``hints_`` of the model: advice on how it was trained.
    model_words : str
        Text that represents the model; empty if there is none.
    overlap : str
        Whether the model was fitted on these rows, as far as it remembers its rows; empty if there is no record.
    certificates : tuple of Certificate
        Bounds on gaps in the population, see :meth:`certified`.

    See Also
    --------
    fairness_report : From labels and scores, with an example.
    """

    table: pd.DataFrame
    gaps: pd.DataFrame
    rows: ReportRows
    class_tables: dict[Any, pd.DataFrame] = field(default_factory=dict)
    title: str = "Fairness report"
    level: float = 0.95
    n_resamples: int = 0
    random_state: int = 0
    path: Any = None
    bounds: list[Bound] = field(default_factory=list)
    status: str = ""
    hints: list[str] = field(default_factory=list)
    model_words: str = ""
    overlap: str = ""
    certificates: tuple[Certificate, ...] = ()

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: npt.ArrayLike,
        *,
        sensitive_features: Any,
        sample_weight: npt.ArrayLike | None = None,
        response: str = "auto",
        threshold: float | None = None,
        pos_label: Any = None,
        interval: Any = None,
        metrics: Iterable[str] | None = None,
        level: float = 0.95,
        n_resamples: int | None = None,
        random_state: Any = 0,
        path: Any = None,
        title: str | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> FairnessReport:
        """Report on a fitted model.

        Parameters
        ----------
        model : estimator
            Fitted classifier (or regressor of two labels) of this package, scikit-learn or Fairlearn, also in a
            pipeline or a search. It receives the sensitive features if its methods request them through metadata
            routing, or need them. A model with ``predict`` alone gives a report of its decisions, without scores.
            Decisions that are drawn at random are drawn once, with ``random_state``.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows on which the model is measured; they should not be those of its fit.
        y : array-like of shape (n_samples,)
            Labels of the rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
            Groups of the rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        response : {"auto", "decision_function", "predict_proba", "predict"}, default="auto"
            Method that gives the scores; "auto" takes the first of the others that the model offers. Log losses read
            those of ``decision_function`` as log-odds; ask for "predict_proba" where they are not. Predictions of a
            regressor are probabilities if all are in [0, 1]; otherwise log losses are left out. With "predict" there
            are no scores.
        threshold : float, default=None
            Threshold of the scores, for the gaps at one threshold. None takes the model's own if it is a classifier of
            this package, for other classifiers 0 for the ``decision_function`` and 0.5 for probabilities, and for
            regressors the middle of the two labels. Decisions of classifiers are always those of ``predict``.
        pos_label : object, default=None
            The positive label, against all others; by default the last of two classes. None with more than two reports
            on all of them, and decisions are then those of the largest score or of ``predict``, whatever ``threshold``.
        interval, metrics, level, n_resamples, random_state, path, title, verbose, n_jobs
            Arguments of :func:`fairness_report`.

        Returns
        -------
        report : FairnessReport

        Raises
        ------
        ValueError
            As :func:`fairness_report`, or if ``response`` is unknown or the model does not know a label.
        TypeError
            If ``model`` is not an estimator, or does not offer the response.
        NotFittedError
            If it is not fitted.

        Examples
        --------
        >>> from fairconstrained import PartialParityClassifier
        >>> from fairconstrained.datasets import make_biased_classification
        >>> from fairconstrained.reporting import FairnessReport
        >>> X, y, group = make_biased_classification(n_samples=1000, random_state=0)
        >>> model = PartialParityClassifier(kappa=0.1).fit(X, y, sensitive_features=group)
        >>> report = FairnessReport.from_estimator(model, X, y, sensitive_features=group, n_resamples=0)
        >>> bool(report.gaps.loc["statistical_parity_gap", "value"] < 0.11)
        True
        """
        resampling = Resampling.of(level, n_resamples, random_state, n_jobs)
        check_fitted(model)
        warn_of_another_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        answers = answers_of(model, X, y, sensitive_features, response, threshold, pos_label, resampling.seed)
        rows = ReportRows.of(
            sensitive_features=sensitive_features, sample_weight=sample_weight, interval=interval, **answers._asdict()
        )
        bounds = bounds_of(model, X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        overlap = overlap_with_fit(model, X).words
        return cls.of_rows(rows, metrics, resampling, path, title, model, bounds, verbose, overlap)

    @classmethod
    def of_rows(
        cls,
        rows: ReportRows,
        metrics: Iterable[str] | None,
        resampling: Resampling,
        path: Any,
        title: str | None,
        model: Any,
        bounds: list[Bound],
        verbose: int,
        overlap: str = "",
    ) -> FairnessReport:
        """Measure valid rows; the arguments are those of `fairness_report`."""
        names = check_gaps(metrics, rows)
        status, hints = ("", []) if model is None else outcome_of(model)
        if path is not None and not hasattr(path, "table"):
            raise ValueError(f"path must be a FairnessPath, got {type(path).__name__}.")
        return cls(
            table=group_table(rows),
            class_tables=class_tables(rows),
            gaps=gap_table(rows, names, resampling, interval_words(rows), verbose),
            rows=rows,
            title=cls.title if title is None else str(title),
            level=resampling.level,
            n_resamples=resampling.n_resamples,
            random_state=resampling.seed,
            path=path,
            bounds=bounds,
            status=status,
            hints=hints,
            model_words="" if model is None else words_for(model),
            overlap=overlap,
        )

    def certified(
        self,
        metric: str,
        *,
        kappa: float | None = None,
        delta: float = 0.05,
        metric_params: dict[str, Any] | None = None,
    ) -> FairnessReport:
        """Bound a gap in the population from the rows of a report, where there are scores but no model at hand.

        The rows have to be independent draws of the population, of equal weight, and **no model may have seen them**,
        which cannot be checked without the model.

        Parameters
        ----------
        metric : str
            Name of a metric, as in a report or of :func:`fairconstrained.certify`.
        kappa : float, default=None
            Value that the gap should not exceed.
        delta : float, default=0.05
            Probability with which the bound may fail, between 0 and 1.
        metric_params : dict, default=None
            Arguments of the metric besides the percentile interval and the threshold, which are those of the report.

        Returns
        -------
        report : FairnessReport
            The report with one more of its ``certificates``, which the page shows as well.

        Raises
        ------
        ValueError
            If the report is one of a model, of more than two classes or of weighted rows, an argument is out of range,
            or the metric needs scores or an interval that the report does not have.
        """
        if self.overlap:
            raise ValueError(
                "this is the report of a model: fairconstrained.certify(model, X, y, ...) also checks on which rows it "
                "was fitted."
            )
        found = certificate_of_rows(self.rows, metric, kappa, delta, metric_params, self.random_state)
        return replace(self, certificates=(*self.certificates, found))

    y_true = property(attrgetter("rows.y_true"))
    y_pred = property(attrgetter("rows.y_pred"))
    y_score = property(attrgetter("rows.y_score"))
    sensitive_features = property(attrgetter("rows.sensitive_features"))
    sample_weight = property(attrgetter("rows.sample_weight"))
    interval = property(attrgetter("rows.interval"))
    score_name = property(attrgetter("rows.score_name"))

    @property
    def verdict(self) -> list[str]:
        """Sentences about the groups that differ most, by measure: decisions first, the largest difference on top."""
        return self._verdict.sentences

    @cached_property
    def _verdict(self) -> Verdict:
        return verdict_of(self)

    @property
    def settings(self) -> dict[str, str]:
        """Sentences about the measured quantities, the rows and the methods, by their subject."""
        return setting_words(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """One page with everything: tables, figures and words, without any link to a network.

        It is readable without JavaScript; with it, tables can be sorted. The same report gives the same page.

        Parameters
        ----------
        path : str or Path, default=None
            File to write it to as well.

        Returns
        -------
        html : str

        Raises
        ------
        ImportError
            If matplotlib, which draws the figures, is missing.
        """
        html = str(page(self))
        if path is not None:
            Path(path).write_text(html, encoding="utf-8", newline="\n")
        return html

    def to_metric_frame(self) -> Any:
        """The table by group as a :class:`fairlearn.metrics.MetricFrame`.

        Returns
        -------
        frame : MetricFrame
            Frame whose metrics are the columns of ``table``, except ``share``.

        Raises
        ------
        ImportError
            If Fairlearn is missing.
        ValueError
            For more than two classes.
        """
        return metric_frame(self.rows)

    def _repr_html_(self) -> str | None:
        """The page in a frame, so that its style stays inside; None, for plain text, without matplotlib."""
        try:
            html = self.to_html()
        except ImportError:
            return None
        return (
            f'<iframe srcdoc="{escape(html)}" title="{escape(self.title)}" sandbox="allow-scripts" '
            'style="width: 100%; height: 48rem; border: 1px solid #8888; border-radius: 6px"></iframe>'
        )

    def __repr__(self) -> str:
        return f"FairnessReport({self.rows.n_samples:,} rows, {self.rows.grouped.n_groups} groups): {self.verdict[0]}"

    def __str__(self) -> str:
        with pd.option_context("display.width", 160, "display.max_columns", None, "display.precision", 4):
            numbers = self.gaps.filter(items=["value", "class", *["lower", "upper"] * bool(self.n_resamples)])
            by_class = [f"{label}:\n{self._named(table)}" for label, table in self.class_tables.items()]
            tables = [str(self._named(self.table)), *map(printable, by_class), str(numbers)]
        certificates = [printable(str(certificate)) for certificate in self.certificates]
        parts = [printable(self.title), "\n".join(self.verdict), *tables, *certificates]
        parts.append("\n".join(remark_sentences(self)))
        return "\n\n".join(part for part in parts if part)

    def _named(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with words for the groups."""
        return table.set_axis([self.rows.names.words(label) for label in table.index]).rename_axis("group")
