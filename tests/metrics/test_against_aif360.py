"""Differences and ratios of two groups against those of AIF360, as its guide page maps them."""

import numpy as np
import pytest

from fairconstrained.metrics import group_rates, independence_gap, separation_gap, sufficiency_gap

pytest.importorskip("aif360")
pytestmark = pytest.mark.filterwarnings("ignore")  # on importing it

#: Our value from labels, decisions and groups, by the name in AIF360: of gaps, and of ratios as one minus the quotient.
GAPS = {
    "mean_difference": lambda y, d, groups: independence_gap(y, d, sensitive_features=groups),
    "equal_opportunity_difference": lambda *rows: rates("true_positive", *rows),
    "false_positive_rate_difference": lambda *rows: rates("false_positive", *rows),
    "false_negative_rate_difference": lambda *rows: rates("false_negative", *rows),
    "error_rate_difference": lambda *rows: rates("error", *rows),
    "false_discovery_rate_difference": lambda *rows: rates("positive_predictive_value", *rows),
    "false_omission_rate_difference": lambda *rows: rates("negative_predictive_value", *rows),
    "equalized_odds_difference": lambda y, d, groups: separation_gap(y, d, sensitive_features=groups),
    "average_abs_odds_difference": lambda y, d, groups: (
        separation_gap(y, d, sensitive_features=groups, agg_labels="sum") / 2
    ),
}
RATIOS = {
    "disparate_impact": "selection",
    "false_positive_rate_ratio": "false_positive",
    "false_negative_rate_ratio": "false_negative",
    "error_rate_ratio": "error",
}


def rates(rate, y, decisions, groups, **options):
    return group_rates(y, decisions, sensitive_features=groups, rate=rate, **options)


@pytest.fixture(scope="module", params=range(3))
def rows(request):
    rng = np.random.default_rng(request.param)
    y, groups = rng.random(200) < 0.4, rng.random(200) < 0.3
    decisions = rng.random(200) < 0.2 + 0.4 * y + 0.2 * groups * rng.random()
    return y.astype(int), decisions.astype(int), groups.astype(int)


@pytest.fixture
def theirs(rows):
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import ClassificationMetric
    from pandas import DataFrame

    def data_set(labels):
        frame = DataFrame({"group": rows[2], "y": labels}, dtype=float)
        return BinaryLabelDataset(df=frame, label_names=["y"], protected_attribute_names=["group"])

    sets = {"unprivileged_groups": [{"group": 0.0}], "privileged_groups": [{"group": 1.0}]}
    return ClassificationMetric(data_set(rows[0]), data_set(rows[1]), **sets)


@pytest.mark.parametrize("name", GAPS)
def test_gaps_are_their_differences_without_a_sign(name, rows, theirs):
    assert GAPS[name](*rows) == pytest.approx(abs(getattr(theirs, name)()), abs=1e-12)


@pytest.mark.parametrize("name", RATIOS)
def test_gaps_of_ratios_are_one_minus_their_smaller_quotient(name, rows, theirs):
    quotient = getattr(theirs, name)()
    assert rates(RATIOS[name], *rows, rule="ratio") == pytest.approx(1 - min(quotient, 1 / quotient), abs=1e-12)


def test_half_of_the_sufficiency_gap_is_their_average_without_signs(rows, theirs):
    values = (theirs.positive_predictive_value, theirs.false_omission_rate)
    average = sum(abs(theirs.difference(value)) for value in values) / 2
    assert sufficiency_gap(*rows[:2], sensitive_features=rows[2]) / 2 == pytest.approx(average, abs=1e-12)
    assert abs(theirs.average_predictive_value_difference()) <= average + 1e-12
