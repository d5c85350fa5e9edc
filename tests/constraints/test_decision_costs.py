"""Costs of decisions under a combination of bounds: the growth of their exact components."""

import numpy as np
import pytest
import torch

from fairconstrained.constraints import (
    AUCGap,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupRates,
    LossParity,
    StatisticalParity,
)


@pytest.fixture(scope="module")
def data(make_data):
    return make_data((23, 31, 19), weighted=True)


@pytest.fixture(scope="module")
def scores(data):
    return np.random.default_rng(1).normal(size=data.n_samples) + 0.3 * data.codes


def components(bound, scores):
    """The exact components, which those of a bound are at the scores of its last refinement."""
    refined = bound.refined(scores, blur=0.3, margin=0.0)
    return refined.values(torch.from_numpy(scores), torch.zeros(bound.n_aux, dtype=torch.float64)).numpy()


@pytest.mark.parametrize(
    "constraint",
    [
        DemographicParity(0.1),
        DemographicParity(0.1, interval=(0.0, 0.9)),
        EqualOpportunity(0.1),
        EqualizedOdds(0.1),
        GroupRates(kappa=0.1, rate="error"),
        GroupRates(kappa=0.1, rate="false_positive"),
        GroupRates(kappa=0.3, rate="selection", rule="floor"),
    ],
    ids=str,
)
def test_costs_are_the_difference_that_a_decision_makes(constraint, data, scores):
    bound = constraint.unchecked(data)
    multipliers = np.random.default_rng(2).uniform(size=len(bound.component_names))
    costs = bound.decision_costs(scores, multipliers)
    for row in range(0, data.n_samples, 7):
        with_row, without = scores.copy(), scores.copy()
        with_row[row], without[row] = 1.0, -1.0
        difference = components(bound, with_row) - components(bound, without)
        assert costs[row] == pytest.approx(multipliers @ difference, abs=1e-12)


@pytest.mark.parametrize("constraint", [LossParity(0.1), AUCGap(0.1), StatisticalParity(0.1)], ids=str)
def test_what_is_not_about_decisions_has_no_costs(constraint, data, scores):
    bound = constraint.unchecked(data)
    assert bound.decision_costs(scores, np.ones(len(bound.component_names))) is None
