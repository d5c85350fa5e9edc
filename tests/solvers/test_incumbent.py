"""The best iterate so far, as methods keep it."""

import numpy as np
import pytest

from fairconstrained.solvers.method import Incumbent

OTHER = np.array([9.0])


def offered(*iterates):
    """An incumbent after iterates with an objective and an excess."""
    best = Incumbent()
    for number, (objective, excess) in enumerate(iterates):
        best.offer(np.array([float(number)]), objective, excess)
    return best


@pytest.mark.parametrize(
    ("iterates", "best", "feasible"),
    [
        ([], OTHER, OTHER),
        ([(1.0, 0.3), (5.0, 0.1), (0.0, 0.2)], [1.0], OTHER),
        ([(1.0, 0.3), (5.0, -0.1), (4.0, 0.0), (6.0, -0.5), (0.0, 0.2)], [2.0], [2.0]),
    ],
    ids=["no iterate", "none within the bounds", "some within the bounds"],
)
def test_the_best_iterate_and_the_best_one_within_the_bounds(iterates, best, feasible):
    found = offered(*iterates)
    np.testing.assert_array_equal(found.best_or(OTHER), best)
    np.testing.assert_array_equal(found.feasible_or(OTHER), feasible)
    assert found.is_feasible == (feasible is not OTHER)


def test_an_offer_says_whether_it_was_taken():
    best = Incumbent()
    taken = [best.offer(OTHER, *offer) for offer in [(2.0, 0.1), (1.0, 0.2), (3.0, 0.0), (3.0, -1.0), (2.5, -1.0)]]
    assert taken == [True, False, True, False, True]
