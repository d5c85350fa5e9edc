"""Every public function refuses a bad argument by its name, and with the value."""

import re
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc
from fairconstrained import metrics, model_selection, plotting, theory
from fairconstrained.datasets import make_biased_classification

mpl.use("Agg")

NAN, INF = np.nan, np.inf
X, Y, GROUPS = make_biased_classification(300, 3, random_state=0)
QUERIES = np.repeat(np.arange(30), 10)
LOGISTIC = LogisticRegression().fit(X, Y)
SCORES = LOGISTIC.decision_function(X)
MASKS = [np.ones(300, bool)] * 4

COUNT = [0, 2.5, NAN, INF, "many"]
NAME = ["other", 3, ["a"]]
FRACTION = [0, 1, NAN, "x"]
INTERVAL = ["top", None, (NAN, 0.5), (False, True), ("0", "1"), [], (0.5, 0.2), [(0, 0.5), (0.4, 1)], {"a": (0, 1)}]
KAPPAS = ["x", ["a"], [], [NAN], [-1.0], [0.1, 0.1], [[0.1]], 3, [True]]
ROWS = {"X": X, "y": Y, "sensitive_features": GROUPS}
PATH = fc.fairness_path(fc.PartialParityClassifier(constraint="demographic_parity"), **ROWS, kappas=[0.3, 0.2])
PROBABILITIES = {"y_true": Y, "y_score": LOGISTIC.predict_proba(X)[:, 1], "sensitive_features": GROUPS}
SCORED = {"y_true": Y, "y_score": SCORES, "sensitive_features": GROUPS}
DECIDED = {"y_true": Y, "y_pred": (SCORES > 0).astype(int), "sensitive_features": GROUPS}
NO_SCORES = [np.full(300, NAN), np.full(300, INF)]
NO_WEIGHTS = [np.full(300, NAN), np.full(300, -1.0)]
UNFITTED = fc.RateParityClassifier()
RESULTS = {"mean_test_accuracy": [0.9, 0.8], "mean_test_pSP": [-0.2, -0.1]}

FUNCTIONS: list[tuple[Any, dict[str, Any], dict[str, list[Any]]]] = [
    (
        fc.fairness_path,
        {"estimator": fc.PartialParityClassifier(constraint="demographic_parity"), **ROWS},
        {
            "estimator": [3, fc.RateParityClassifier, LOGISTIC],
            "kappas": KAPPAS,
            "n_kappas": COUNT,
            "cv": ["x", 1, 2.5, 1000],
            "scoring": ["other", 3, [], {}, ["other"], {"a": 3}],
            "param": ["other", 3],
            "fit_params": ["x", 3],
            "warm_start": ["yes", None],
            "n_jobs": ["x"],
            "verbose": ["x"],
        },
    ),
    (
        PATH.best,
        {"bound": 0.3},
        {"bound": ["x", None, NAN, -1.0, [0.1], True], "one_standard_error": [np.True_], "performance": ["other", 3]},
    ),
    (PATH.best_index, {"bound": 0.3}, {"bound": ["x", None, NAN], "performance": [["a"]]}),
    (
        fc.certify,
        {"model": LOGISTIC, "metric": "independence_gap", **ROWS},
        {
            "model": [3, "m", None, UNFITTED, LogisticRegression(), LogisticRegression],
            "metric": ["other", 3, None, ["a"]],
            "metric_params": ["x", [1], {"other": 1}, {"sample_weight": 1}],
            "kappa": [-1.0, NAN, "x", True, [0.1]],
            "delta": [*FRACTION, True],
            "method": [*NAME, "dkw", None],
            "allow_training_data": ["x"],
            "sensitive_features": [None, GROUPS[:9]],
        },
    ),
    (
        fc.certify,
        {"model": LOGISTIC, "metric": "independence_gap", "method": "bootstrap", **ROWS},
        {"n_resamples": [3, 0, 2.5, "x", None, True], "random_state": ["x", -1]},
    ),
    (
        fc.certify,
        {"model": LOGISTIC, "metric": "loss_parity_gap", **ROWS},
        {"loss_bound": ["x", NAN, INF, -1.0, (1, 0), (0, 1, 2), ("a", "b"), True]},
    ),
    (
        fc.gap_interval,
        {"metric": "independence_gap", "y_true": Y, "y_response": DECIDED["y_pred"], "sensitive_features": GROUPS},
        {
            "metric": ["other", 3, None],
            "level": FRACTION,
            "n_resamples": [3, 0, 2.5, "x", None],
            "random_state": ["x", -1],
            "metric_params": ["x", {"other": 1}],
            "sample_weight": NO_WEIGHTS[1:],
        },
    ),
    (
        model_selection.suggest_interval,
        {"y_score": SCORES, "sensitive_features": GROUPS},
        {
            "y_score": NO_SCORES,
            "width": ["x", NAN, 0, 1.5, [], ["a"], None],
            "step": ["x", NAN, 0, None],
            "rate": ["x", NAN, 0, 2],
            "threshold": ["x", NAN, INF, None],
            "candidates": ["x", [], [(0.2, 0.1)], [("a", "b")], 3, [(NAN, 1)], [(0, 0.5, 1)]],
            "sample_weight": NO_WEIGHTS,
        },
    ),
    (
        model_selection.best_feasible,
        {"gap_scorer": "pSP", "bound": 0.1, "performance_scorer": "accuracy"},
        {"gap_scorer": [3, None], "bound": ["x", NAN, -1.0, None], "performance_scorer": [3]},
    ),
    (
        model_selection.pareto_front,
        {"results": RESULTS},
        {
            "results": [3, "x", None, [1], {"mean_test_accuracy": ["a", "b"], "mean_test_pSP": [0, 1]}],
            "performance": ["other", 3, None],
            "fairness": ["other", 3, ["a"]],
        },
    ),
    (
        theory.generalization_bound,
        {"n_per_group": [100, 100], "vc_dim": 3},
        {
            "n_per_group": ["x", [], [0], [2.5], 3, None],
            "vc_dim": COUNT,
            "n_levels": [0, 2.5, "x"],
            "delta": [*FRACTION, None],
            "interval": INTERVAL,
            "n_near": [[1, 1]],
        },
    ),
    (
        theory.generalization_bound,
        {"n_per_group": [100, 100], "vc_dim": 3, "n_near": [1, 1], "margin": 0.5},
        {"n_near": [None, [101, 1]], "margin": ["x", NAN, 2, -1]},
    ),
    (
        model_selection.make_fairness_scorer,
        {"metric": metrics.independence_gap},
        {"response": NAME},
    ),
    (model_selection.get_fairness_scorer, {"name": "independence_gap"}, {"name": []}),
    (
        metrics.independence_gap,
        DECIDED,
        {
            "agg": NAME,
            "pos_label": ["other"],
            "sample_weight": NO_WEIGHTS,
            "sensitive_features": [GROUPS[:9]],
        },
    ),
    (
        metrics.separation_gap,
        DECIDED,
        {"agg_labels": NAME, "on_empty": NAME, "agg": NAME},
    ),
    (
        metrics.rate_gap,
        SCORED,
        {
            "y_score": NO_SCORES,
            "constraint": NAME,
            "rate": NAME,
            "agg": NAME,
            "on_empty": NAME,
        },
    ),
    (metrics.loss_parity_gap, SCORED, {"constraint": NAME, "loss": NAME, "reference": NAME, "y_score": NO_SCORES}),
    (
        metrics.partial_statistical_parity_gap,
        SCORED,
        {"interval": INTERVAL, "y_score": NO_SCORES, "sample_weight": NO_WEIGHTS},
    ),
    (
        metrics.partial_demographic_parity_gap,
        SCORED,
        {"threshold": ["x", NAN, INF, None], "interval": INTERVAL, "agg": NAME},
    ),
    (metrics.partial_group_auc_gap, SCORED, {"interval": INTERVAL, "agg": NAME}),
    (metrics.group_auc_gap, SCORED, {"protected": ["other", [0], NAN, np.array([0, 1])], "agg": NAME}),
    (metrics.inter_group_auc_gap, SCORED, {"pos_label": ["other"], "on_empty": NAME}),
    (metrics.wasserstein_gap, PROBABILITIES, {"n_bins": COUNT}),
    (metrics.granularity, {"sensitive_features": GROUPS}, {"interval": INTERVAL, "sample_weight": NO_WEIGHTS}),
    (metrics.minority_share, {**SCORED, "minority": 1}, {"minority": [[0], 9, NAN, {}, None], "rate": NAME}),
    (metrics.parity_pair, SCORED, {"beta": ["x", NAN, INF, 0, None], "rate": NAME}),
    (
        metrics.subset_auc_gap,
        {**SCORED, "subsets": MASKS},
        {"subsets": [3, None, MASKS[:3], lambda y: MASKS, lambda y, g: 3, [np.ones(300)] * 4]},
    ),
    (
        metrics.pairwise_ranking_gap,
        {**SCORED, "qid": QUERIES},
        {
            "qid": [None, QUERIES[:9], np.full(300, NAN), [None] * 300, QUERIES.reshape(150, 2), 3],
            "pairs": NAME,
            "y_true": [np.full(300, NAN), ["a"] * 300],
        },
    ),
    (
        fc.FairRanker().fit,
        {**ROWS, "qid": QUERIES},
        {"qid": [None, QUERIES[:9], np.full(300, NAN), ["a", None] * 150, QUERIES.reshape(150, 2), 3]},
    ),
    (
        plotting.ParetoFrontDisplay.from_cv_results,
        {"results": RESULTS},
        {"results": [3, None], "performance": ["other"], "ax": ["x", 3], "fairness": [3]},
    ),
    (
        plotting.ParetoFrontDisplay.from_path,
        {"path": PATH},
        {"path": [3, None, UNFITTED], "performance": ["other", 3], "held_out": [True, "x"], "ax": ["x"]},
    ),
    (
        plotting.ParetoFrontDisplay.from_estimator,
        {"estimators": [LOGISTIC], **ROWS},
        {
            "estimators": [3, [], [3], [UNFITTED], "x"],
            "performance": ["other", 3],
            "fairness": ["other", 3],
        },
    ),
    (
        plotting.ParetoFrontDisplay.from_predictions,
        {"y_true": Y, "y_preds": [DECIDED["y_pred"]], "sensitive_features": GROUPS},
        {"y_preds": [3, [], "x"], "performance": ["x", 3], "gap": ["x", 3]},
    ),
    (
        plotting.ScoreCurveDisplay.from_estimator,
        {"estimator": LOGISTIC, "X": X, "sensitive_features": GROUPS},
        {"estimator": [3, "x", UNFITTED, LogisticRegression()], "interval": INTERVAL[:1], "reference": ["other", [0]]},
    ),
    (
        plotting.ScoreCurveDisplay.from_predictions,
        {"y_score": SCORES, "sensitive_features": GROUPS},
        {"y_score": NO_SCORES, "interval": [v for v in INTERVAL if v is not None], "reference": ["other"], "ax": ["x"]},
    ),
    (
        plotting.ScoreDensityDisplay.from_estimator,
        {"estimator": LOGISTIC, "X": X, "sensitive_features": GROUPS},
        {"estimator": [3, "x", UNFITTED]},
    ),
    (
        plotting.ScoreDensityDisplay.from_predictions,
        {"y_score": SCORES, "sensitive_features": GROUPS},
        {"y_score": NO_SCORES, "ax": ["x"]},
    ),
    (
        plotting.SubsetRocDisplay.from_estimator,
        {"estimator": LOGISTIC, **ROWS},
        {"estimator": [3, "x", UNFITTED, LogisticRegression()], "metric": ["other", 3]},
    ),
    (
        plotting.SubsetRocDisplay.from_predictions,
        SCORED,
        {"y_score": NO_SCORES, "metric": NAME, "protected": ["other", [0]], "pos_label": ["other"], "ax": ["x"]},
    ),
]


def bad_arguments() -> list[Any]:
    return [
        pytest.param(function, {**usual, name: value}, name, value, id=f"{function.__qualname__}-{name}-{i}")
        for function, usual, table in FUNCTIONS
        for name, values in table.items()
        for i, value in enumerate(values)
    ]


@pytest.mark.parametrize(("function", "arguments", "parameter", "value"), bad_arguments())
def test_arguments(function, arguments, parameter, value):
    with pytest.raises((ValueError, TypeError)) as raised:
        function(**arguments)
    message = str(raised.value)
    if not isinstance(raised.value, NotFittedError):  # which names the model
        assert re.search(rf"\b{parameter}\b", message), message
    if isinstance(value, (str, int, float, tuple)):
        assert repr(value) in message


MANY = np.repeat(np.arange(30), 10)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fc.PartialParityClassifier(interval={0: (0, 1)}).fit(X, Y, sensitive_features=MANY),
        lambda: fc.AUCFairClassifier(protected="x").fit(X, Y, sensitive_features=MANY),
        lambda: fc.MinorityRateClassifier(minority="x").fit(X, Y, sensitive_features=MANY),
        lambda: fc.NeymanPearsonClassifier(priority_class="x").fit(X, MANY),
        lambda: fc.NeymanPearsonClassifier(dict.fromkeys(range(30, 60), 0.1)).fit(X, Y),
        lambda: metrics.minority_share(None, SCORES, sensitive_features=MANY, minority="x"),
        lambda: fc.certify(LogisticRegression().fit(X, Y), X, MANY, sensitive_features=GROUPS, metric="inaccuracy"),
    ],
)
def test_a_message_lists_at_most_ten_labels(call):
    with pytest.raises(ValueError, match=r"\.\.\. and (18|20) more") as raised:
        call()
    assert len(re.findall(r"\d+", str(raised.value))) < 25
