"""The registry lists every metric with its response, and the package reads numpy data only."""

import ast
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

import fairconstrained.metrics as metrics
from fairconstrained.metrics import METRICS

# nobody but the user knows the subsets of subset_auc_gap, a ranking has queries, and what is fair is not always zero
NOT_METRICS = {
    "METRICS",
    "MetricInfo",
    "PercentileIntervals",
    "find_metric",
    "conditional_parity_gap",
    "granularity",
    "group_rates",
    "metric_names",
    "minority_share",
    "pairwise_ranking_gap",
    "parity_pair",
    "register",
    "score_curve",
    "subset_auc_gap",
}
RESPONSES = {
    "inaccuracy": "predict",
    "independence_gap": "predict",
    "separation_gap": "predict",
    "sufficiency_gap": "predict",
    "equal_opportunity_gap": "predict",
    "statistical_parity_gap": "decision_function",
    "partial_statistical_parity_gap": "decision_function",
    "partial_demographic_parity_gap": "decision_function",
    "partial_equal_opportunity_gap": "decision_function",
    "partial_equalized_odds_gap": "decision_function",
    "partial_group_auc_gap": "decision_function",
    "group_auc_gap": "decision_function",
    "inter_group_auc_gap": "decision_function",
    "intra_group_auc_gap": "decision_function",
    "positive_equality_gap": "decision_function",
    "negative_equality_gap": "decision_function",
    "bpsn_bnsp_gap": "decision_function",
    "wasserstein_gap": "predict_proba",
    "demographic_parity_ratio_gap": "predict",
    "predictive_parity_gap": "predict",
}


def test_every_public_metric_is_registered_under_its_name():
    assert set(METRICS) == set(metrics.__all__) - NOT_METRICS
    for name, info in METRICS.items():
        assert info.function is getattr(metrics, name)


@pytest.mark.parametrize(("name", "response"), RESPONSES.items())
def test_responses(name, response):
    assert METRICS[name].response == response


@pytest.mark.parametrize("info", METRICS.values(), ids=METRICS)
def test_one_signature_and_a_plain_float(info):
    parameters = list(inspect.signature(info.function).parameters.values())
    assert [parameter.kind for parameter in parameters[:2]] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2
    assert all(parameter.kind == inspect.Parameter.KEYWORD_ONLY for parameter in parameters[2:])
    y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0, 0], [1, 0, 1, 0, 1, 1, 1, 0, 0]
    response = y_pred if info.response == "predict" else [0, 0.65, 0.4, 0, 0.6, 0.7, 0.8, 0.9, 0.5]
    value = info.function(y_true, response, sensitive_features=list("aaaabbbbb"), sample_weight=np.ones(9))
    assert type(value) is float
    assert value > 0


def test_pickle():
    info = METRICS["sufficiency_gap"]
    assert pickle.loads(pickle.dumps(info)) == info


def test_no_torch():
    for path in Path(metrics.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "torch" for name in names), path


@pytest.mark.parametrize(
    ("name", "metric", "params"),
    [
        ("demographic_parity", "independence_gap", {}),
        ("demographic_parity_difference", "independence_gap", {}),
        ("equalized_odds", "separation_gap", {}),
        ("Sp", "separation_gap", {"agg_labels": "sum"}),
        ("inter_group", "inter_group_auc_gap", {}),
        ("minority_share", "minority_share", {}),
        ("statistical_parity", "statistical_parity_gap", {}),
    ],
)
def test_names(name, metric, params):
    info, found = metrics.find_metric(name)
    assert (info.name, found) == (metric, params)


def test_unknown_names_are_an_error_that_lists_the_names():
    with pytest.raises(ValueError, match=r"metric must be one of \['Ina'.*'demographic_parity'.*got 'fairness'"):
        metrics.find_metric("fairness")


def test_a_name_stands_for_one_metric():
    with pytest.raises(ValueError, match="my_gap cannot be called 'demographic_parity': independence_gap is"):

        @metrics.register("predict", aliases=("demographic_parity",))
        def my_gap(y_true, y_pred, *, sensitive_features):
            return 0.0


@pytest.mark.parametrize("info", METRICS.values(), ids=METRICS)
def test_entries_are_complete(info):
    """Reports and figures have a title, a sentence and a label of every metric."""
    assert info.title
    assert info.label
    assert info.description.endswith(".") or "; at most" in info.description
    assert info.compared is not None
