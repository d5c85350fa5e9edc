"""Wrong calls of functions and of fitted models; and all wrong calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import fairconstrained
from benchmarks.trial.bad_inputs import Call, changed, plain_data, wrong_data, wrong_parameters
from fairconstrained import certify, fairness_path, fairness_report, metrics
from fairconstrained.datasets import load_letor, make_biased_classification
from fairconstrained.groups import threshold_groups
from fairconstrained.model_selection import get_fairness_scorer, make_fairness_scorer, suggest_interval
from fairconstrained.postprocessing import GroupThresholdClassifier, ScoreShiftPostprocessor

__all__ = ["all_calls"]


def _wrong_predictions() -> Iterator[Call]:
    """Calls that fitted and unfitted models refuse."""
    X, y, groups = plain_data()
    model = fairconstrained.PartialParityClassifier(0.2, group_interactions=True).fit(X, y, sensitive_features=groups)
    unfitted = fairconstrained.PartialParityClassifier()
    many = np.arange(y.size) + 10
    yield from [
        Call("predict, unfitted", ("fitted",), lambda: unfitted.predict(X)),
        Call("predict, other columns", ("features",), lambda: model.predict(X[:, :2], sensitive_features=groups)),
        Call("predict, no groups", ("sensitive_features",), lambda: model.predict(X)),
        Call("predict, unknown groups", ("groups",), lambda: model.predict(X, sensitive_features=many),
             lists_groups=True),
        Call("predict, groups too short", ("sensitive_features", "inconsistent"),
             lambda: model.predict(X, sensitive_features=groups[:-1])),
        Call("values, unknown class", ("class", "y"),
             lambda: model.constraint_values(X, y + 7, sensitive_features=groups)),
        Call("set_params, unknown", ("nope",), lambda: unfitted.set_params(nope=1)),
        Call("set_params, no such constraint", ("constraint",), lambda: unfitted.set_params(constraint__a__kappa=0.1)),
    ]  # fmt: skip


def _wrong_metrics() -> Iterator[Call]:
    """Metrics: scores, groups and options."""
    X, y, groups = plain_data()
    scores, given = X[:, 0], {"sensitive_features": groups}
    for name in ("partial_statistical_parity_gap", "partial_equalized_odds_gap", "rate_gap", "inter_group_auc_gap"):
        metric = getattr(metrics, name)
        wrong: list[tuple[str, tuple[str, ...], Any]] = [
            ("strings as scores", ("y_score", "y_pred"), lambda m=metric: m(y, scores.astype(str), **given)),
            ("NaN among scores", ("y_score", "score"), lambda m=metric: m(y, changed(scores, 0, np.nan), **given)),
            ("scores too short", ("y_score", "rows", "inconsistent"), lambda m=metric: m(y, scores[:-1], **given)),
            ("two columns of scores", ("y_score", "score"),
             lambda m=metric: m(y, np.column_stack([scores, scores, scores]), **given)),
            ("groups too short", ("sensitive_features",),
             lambda m=metric: m(y, scores, sensitive_features=groups[:-1])),
            ("unknown agg", ("agg",), lambda m=metric: m(y, scores, agg="median", **given)),
            ("negative weights", ("sample_weight",),
             lambda m=metric: m(y, scores, sample_weight=-np.ones(y.size), **given)),
        ]  # fmt: skip
        yield from (Call(f"{name}, {what}", words, call) for what, words, call in wrong)
    yield from [
        Call("rate_gap, three labels", ("y_true", "label", "binary"),
             lambda: metrics.rate_gap(np.arange(y.size) % 3, scores, **given)),
        Call("rate_gap, unknown constraint", ("constraint",),
             lambda: metrics.rate_gap(y, scores, constraint="x", **given)),
        Call("rate_gap, unknown rate", ("rate",), lambda: metrics.rate_gap(y, scores, rate="x", **given)),
        Call("loss_parity_gap, unknown loss", ("loss",), lambda: metrics.loss_parity_gap(y, scores, loss="x", **given)),
        Call("minority_share, unknown minority", ("minority",),
             lambda: metrics.minority_share(None, scores, minority="x", **given)),
        Call("independence_gap, scores for labels", ("y_pred",), lambda: metrics.independence_gap(y, scores, **given)),
        Call("pairwise_ranking_gap, no queries", ("qid",),
             lambda: metrics.pairwise_ranking_gap(y, scores, qid=None, **given)),
    ]  # fmt: skip


def _wrong_tools() -> Iterator[Call]:
    """Paths, scorers, reports, certificates, files."""
    X, y, groups = plain_data()
    given = {"sensitive_features": groups}
    base = fairconstrained.PartialParityClassifier(0.2).fit(X, y, **given)
    path = fairness_path(fairconstrained.PartialParityClassifier(), X, y, **given, kappas=[0.2, 0.1])
    scores, unfitted = base.decision_function(X), fairconstrained.PartialParityClassifier()

    def read(text: bytes) -> Callable[[], Any]:
        return lambda: load_letor(BytesIO(text))

    yield from [
        Call("path.best, a word", ("bound",), lambda: path.best("x")),
        Call("path.best, negative", ("bound",), lambda: path.best(-1.0)),
        Call("path.best, unknown performance", ("performance",), lambda: path.best(0.5, performance="x")),
        Call("fairness_path, wrong kappas", ("kappas",),
             lambda: fairness_path(base, X, y, **given, kappas=["a"])),
        Call("fairness_path, no kappas", ("kappas", "n_kappas"),
             lambda: fairness_path(base, X, y, **given, n_kappas=0)),
        Call("fairness_path, a plain model", ("estimator", "kappa"),
             lambda: fairness_path(LogisticRegression(), X, y, **given)),
        Call("scorer, unknown name", ("nope",), lambda: get_fairness_scorer("nope")),
        Call("scorer, unknown argument", ("nope",), lambda: get_fairness_scorer("neg_rate_gap", nope=1)),
        Call("scorer, unknown response", ("response",),
             lambda: make_fairness_scorer(metrics.rate_gap, response="x")),
        Call("scorer, no groups", ("sensitive_features",), lambda: get_fairness_scorer("neg_rate_gap")(base, X, y)),
        Call("suggest_interval, wrong width", ("width",), lambda: suggest_interval(scores, **given, width=2.0)),
        Call("report, a word for a model", ("model",),
             lambda: fairness_report(y, scores, **given, model="m", n_resamples=0)),
        Call("report, an unfitted model", ("model", "fitted"),
             lambda: fairness_report(y, scores, **given, model=unfitted, n_resamples=0)),
        Call("report, unknown metric", ("metrics",), lambda: fairness_report(y, scores, **given, metrics=["x"])),
        Call("report, wrong level", ("level",), lambda: fairness_report(y, scores, **given, level=2.0)),
        Call("report, wrong resamples", ("n_resamples",), lambda: fairness_report(y, scores, **given, n_resamples=-1)),
        Call("certify, unknown metric", ("metric",), lambda: certify(base, X, y, **given, metric="x")),
        Call("certify, wrong delta", ("delta",), lambda: certify(base, X, y, **given, metric="rate_gap", delta=2.0)),
        Call("certify, wrong method", ("method",),
             lambda: certify(base, X, y, **given, metric="rate_gap", method="x", allow_training_data=True)),
        Call("score shift, wrong kappa", ("kappa",),
             lambda: ScoreShiftPostprocessor(base, kappa=-1.0).fit(X, y, **given)),
        Call("score shift, wrong constraint", ("constraint",),
             lambda: ScoreShiftPostprocessor(base, constraint="x").fit(X, y, **given)),
        Call("group thresholds, wrong kappa", ("kappa",),
             lambda: GroupThresholdClassifier(base, kappa=2.0, cv="prefit").fit(X, y, **given)),
        Call("group thresholds, wrong objective", ("objective",),
             lambda: GroupThresholdClassifier(base, objective="x", cv="prefit").fit(X, y, **given)),
        Call("threshold_groups, no such column", ("column",), lambda: threshold_groups(X, [99])),
        Call("threshold_groups, wrong quantiles", ("quantiles",), lambda: threshold_groups(X, [0], quantiles=[2.0])),
        Call("ranking file, a word", ("line 1",), read(b"two qid:1 1:0.5\n")),
        Call("ranking file, no query", ("line 2", "query"), read(b"2 qid:1 1:0.5\n1 1:0.5\n")),
        Call("ranking file, no number", ("line 2",), read(b"2 qid:1 1:0.5\n1 qid:1 1:x\n")),
        Call("ranking file, feature 0", ("line 1",), read(b"2 qid:1 0:0.5\n")),
        Call("ranking file, a huge feature", ("feature", "line 1"), read(b"2 qid:1 1000000000:0.5\n")),
        Call("make_biased_classification, wrong rows", ("n_samples",), lambda: make_biased_classification(-1)),
    ]  # fmt: skip


def all_calls() -> list[Call]:
    """All wrong calls."""
    tables = (wrong_parameters, wrong_data, _wrong_predictions, _wrong_metrics, _wrong_tools)
    return [call for table in tables for call in table()]
