"""Corners of losses, rounded: above the loss, close to it, and lines below it."""

import numpy as np
import pytest
import torch

from fairconstrained.objectives import ROW_LOSS_OBJECTIVES, Absolute, Hinge, RoundedCorner, Scaled

CORNERS = [ROW_LOSS_OBJECTIVES["hinge"], Absolute(), Scaled(Absolute(), 3.0)]
SCORES = torch.linspace(-3, 3, 121, dtype=torch.float64) + 1e-3  # beside the corners
TARGETS = [torch.ones_like(SCORES), -torch.ones_like(SCORES)]
each_loss = pytest.mark.parametrize("loss", CORNERS, ids=str)
each_target = pytest.mark.parametrize("y", TARGETS, ids=["positive", "negative"])


@each_loss
@each_target
def test_sides_are_the_slopes(loss, y):
    left, right = loss.sides(y)
    np.testing.assert_allclose(loss.slope(SCORES, y), torch.where(y > SCORES, left, right))


@each_loss
@each_target
def test_the_rounded_loss_is_above_by_less_and_less(loss, y):
    left, right = loss.sides(y)
    excess = [RoundedCorner(loss, width).of(SCORES, y) - loss.of(SCORES, y) for width in (0.5, 0.05)]
    assert (excess[0] > excess[1]).all()
    assert excess[1].min() > -1e-9  # the corner of the hinge is rounded by a parabola of this size
    assert ((excess[0] - (right - left) * 0.5 / 2) <= 0).all()


@each_loss
@each_target
def test_lines_with_admissible_slopes_are_below_the_loss(loss, y):
    rounded = RoundedCorner(loss, 0.5)
    for wanted in (-5.0, -0.3, 0.2, 5.0):
        duals = rounded.admissible(torch.full_like(SCORES, wanted), y)
        assert (rounded.floor(SCORES, y, duals) <= loss.of(SCORES, y) + 1e-12).all()
    own = rounded.slope(SCORES, y)
    np.testing.assert_array_equal(rounded.admissible(own, y), own)


@each_loss
@each_target
def test_a_step_with_the_slopes_as_variables_linearises_what_ties_them_to_the_scores(loss, y):
    """The equation is (v - m) sqrt(r^2 + w^2) = h r; its linearisation gives the change of v for one of r."""
    width, step = 0.5, 1e-6
    rounded, distance = RoundedCorner(loss, width), SCORES - y
    left, right = loss.sides(y)
    middle, half = (left + right) / 2, (right - left) / 2
    duals = middle + 0.4 * half

    def residual(distance, duals):
        return (duals - middle) * torch.sqrt(distance**2 + width**2) - half * distance

    change = rounded.slope(SCORES, y) - duals + rounded.newton_curvature(SCORES, y, duals) * step
    by_distance = (residual(distance + step, duals) - residual(distance - step, duals)) / (2 * step)
    by_dual = torch.sqrt(distance**2 + width**2)
    np.testing.assert_allclose(residual(distance, duals) + by_distance * step + by_dual * change, 0, atol=1e-9)


def test_a_rounded_hinge_has_no_corner():
    assert not Hinge(0.01).has_corner
    assert Hinge(1e-9).has_corner
