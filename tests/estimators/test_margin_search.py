"""The search for bounds on training rows under which estimates for new rows are small enough."""

from __future__ import annotations

import numpy as np
import pytest

from fairconstrained.estimators._margin_search import Trial, best_of, next_margins

KAPPA = np.array([0.05])


def searched(estimate, aim=0.05, largest=KAPPA):
    """Trials of a search where the estimate is a function of the bound on training rows; NaN: a constant score."""
    trials, margins = [], np.zeros(1)
    while margins is not None:
        found = estimate(0.05 - margins)
        trials.append(Trial(margins, found - aim, bool(np.isnan(found).any())))
        margins = next_margins(trials, largest)
    return trials, 0.05 - trials[best_of(trials)].margins[0]


@pytest.mark.parametrize("slope", [0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_few_trials_find_a_bound_that_is_small_enough_and_not_much_smaller(slope, share):
    largest_bound = 0.05 * (1 - share)
    trials, bound = searched(lambda bound: 0.05 + slope * (bound - largest_bound))
    assert len(trials) <= 5
    assert 0.5 * largest_bound <= bound <= largest_bound


def test_bounds_that_are_kept_at_once_take_one_trial():
    trials, bound = searched(lambda bound: bound - 0.001)
    assert len(trials) == 1
    assert bound == 0.05


def test_an_excess_as_large_as_the_bound_does_not_lead_to_zero():
    trials, bound = searched(lambda bound: 2.2 * bound)
    assert 0.015 < bound <= 0.05 / 2.2
    assert min(0.05 - trial.margins[0] for trial in trials) > 0.015


def test_a_search_ends_where_smaller_bounds_do_not_help():
    """Zero is tried before it ends."""
    trials, bound = searched(lambda bound: 0.09 + 0.1 * bound)
    assert len(trials) == 4
    assert bound == 0


def test_a_search_ends_where_a_smaller_bound_leads_to_a_larger_estimate():
    trials, bound = searched(lambda bound: 0.09 - 0.1 * bound)
    assert len(trials) == 4
    assert bound == 0.05  # the nearest estimate


def test_the_last_trial_is_a_bound_of_zero():
    estimates = iter([0.06, 0.056, 0.053, 0.0505, 0.049])
    trials, bound = searched(lambda bound: next(estimates) + 0 * bound)
    assert len(trials) == 5
    assert bound == 0


def test_noise_after_a_small_step_does_not_end_a_search():
    estimates = iter([0.053, 0.0535, 0.049])
    trials, bound = searched(lambda bound: next(estimates) + 0 * bound)
    assert len(trials) == 3
    assert trials[1].margins < 0.01 < trials[2].margins
    assert bound == 0.05 - trials[2].margins


def test_a_constant_score_is_avoided_where_a_bound_in_between_is_small_enough():
    trials, bound = searched(lambda bound: np.where(bound < 0.02, np.nan, 1.6 * bound))
    assert trials[1].has_constant
    assert 0.02 <= bound <= 0.05 / 1.6


def test_where_nothing_but_a_constant_score_is_within_the_bound_it_is_taken():
    trials, bound = searched(lambda bound: np.where(bound < 0.04, np.nan, 0.1 + bound))
    assert trials[best_of(trials)].has_constant
    assert bound < 0.04


def test_a_lower_bound_may_rise_as_far_as_it_has_to():
    trials, bound = searched(lambda bound: 0.05 + 0.5 * (bound + 0.3), largest=np.array([np.inf]))
    assert len(trials) <= 4
    assert bound <= -0.3


def test_bounds_of_zero_cannot_become_smaller():
    assert next_margins([Trial(np.zeros(1), np.array([0.01]))], np.zeros(1)) is None


def test_only_bounds_that_are_missed_become_smaller():
    trials = [Trial(np.zeros(2), np.array([0.01, -0.01]))]
    margins = next_margins(trials, np.array([0.05, 0.05]))
    assert margins[0] > 0.01
    assert margins[1] == 0
