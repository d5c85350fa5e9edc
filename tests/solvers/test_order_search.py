"""Search for scores whose order keeps the bounds: as good as a fine grid of directions, or nothing."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairHeadClassifier, PartialParityClassifier
from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.solvers import best_rescaled, ordered_within
from tests.solvers.test_polish import objective, problem_of


def constant_of(problem):
    return best_rescaled(problem, [np.zeros(problem.n_params)])


def best_of_grid(problem, n_angles=360):
    """The least objective within the bounds, of the best multiple and shift in every direction of two features."""
    angles = np.linspace(0, 2 * np.pi, n_angles, endpoint=False)
    ways = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(n_angles)])
    kept = [way for way in ways if problem.holds(problem.scores(way))]
    return min(objective(problem, best_rescaled(problem, [way])) for way in kept)


@pytest.mark.parametrize("kappa", [0.1, 0.14])
def test_it_is_as_good_as_the_best_direction_of_a_grid(kappa):
    problem = problem_of(StatisticalParity(kappa))
    constant = constant_of(problem)
    found = ordered_within(problem, constant)
    assert problem.holds(problem.scores(found))
    assert objective(problem, found) < objective(problem, constant)
    assert objective(problem, best_rescaled(problem, [found])) <= 1.005 * best_of_grid(problem)


def test_there_is_nothing_where_no_direction_keeps_the_bound():
    problem = problem_of(StatisticalParity(0.02))
    assert ordered_within(problem, constant_of(problem)) is None


def test_bounds_on_decisions_are_not_searched():
    problem = problem_of(DemographicParity(0.2))  # their gaps depend on the shift as well
    assert ordered_within(problem, constant_of(problem)) is None


@pytest.mark.slow
def test_a_fit_takes_what_the_search_finds_in_place_of_a_constant():
    X, y, groups = make_biased_classification(800, random_state=103)
    head = PartialParityClassifier(0.05, interval=(0.0, 0.3), new_row_folds=None, random_state=0)
    with pytest.warns(ConvergenceWarning, match="a search in random directions found"):
        model = FairHeadClassifier(LogisticRegression(), head=head, random_state=0).fit(X, y, sensitive_features=groups)
    assert model.status_ == "max_iter"
    (granularity,) = model.head_.granularity_.values()
    assert model.head_.violation_ <= granularity
    assert model.head_.objective_ < 0.55  # the best constant has 0.693
