"""The pull of constraints on growing scores: its slopes, its limits, and how its multipliers react."""

import numpy as np
import pytest
import torch

from fairconstrained.constraints import DemographicParity, GroupRates, LossParity, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.objectives import Logistic
from fairconstrained.solvers._pressure import Pressure
from fairconstrained.terms import Terms


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(400, 4, group_proportions=(0.6, 0.4), random_state=0)
    return FairData.from_arrays(X, 2.0 * y - 1, groups, ("a", "b"))


def pressure_on(data, *constraints, n_rounds=300, **options):
    terms = Terms(Logistic().bind(data), tuple(c.bind(data) for c in constraints), data)
    return Pressure(terms, None, n_rounds, **options), terms


def scores_of(data, shift=1.0):
    return data.X[:, 0] + shift * (data.codes == 0)


def pulled(pressure, scores, force):
    """The pull on a single booster, whose own scores are bounded."""
    (pull,) = pressure.pull(scores, [scores], force)
    return pull


def responding(pressure, scores):
    """The pressure after it has seen how the scores respond: as freely as every row on its own."""
    pulled(pressure, scores, 1e9)
    pressure.observe(np.arange(scores.size, dtype=float), np.full(scores.size, 1 / scores.size))
    return pressure


def test_slopes_are_those_of_the_constraint_alone(data):
    pressure, terms = pressure_on(data, LossParity(0.0))
    scores = scores_of(data)
    responding(pressure, scores).refine(scores, np.array([0.1]))
    slopes, curvature, _ = pulled(pressure, scores, 1e9)
    point = terms.at_scores(torch.from_numpy(scores.copy()), np.empty(0))
    active = (point.constraints > 0).astype(float)
    direction = point.slopes(0.0, active)[0].numpy()
    assert active.sum() == 1
    factor = slopes @ direction / (direction @ direction)
    assert factor > 0
    np.testing.assert_allclose(slopes, factor * direction, atol=1e-15)
    np.testing.assert_allclose(curvature / np.abs(slopes), (curvature / np.abs(slopes))[0])


@pytest.mark.parametrize("step", [0.6, 1.5])
def test_no_step_of_the_constraints_alone_is_longer_than_it_may_be(data, step):
    pressure, _ = pressure_on(data, DemographicParity(0.01), step=step)
    scores = scores_of(data)
    responding(pressure, scores).refine(scores, np.array([0.3]))
    slopes, curvature, _ = pulled(pressure, scores, 1e9)
    np.testing.assert_allclose(np.abs(slopes), step * scores.std() * curvature)


def test_slopes_are_at_most_thrice_those_of_the_objective(data):
    pressure, _ = pressure_on(data, DemographicParity(0.01))
    scores = scores_of(data)
    responding(pressure, scores).refine(scores, np.array([0.3]))
    slopes = pulled(pressure, scores, 1e-4).slopes
    assert np.abs(slopes).sum() == pytest.approx(3e-4)


@pytest.mark.parametrize(
    ("excess", "for_unseen_rows", "is_wide"), [(0.1, True, True), (0.002, True, False), (0.1, False, False)]
)
def test_slopes_become_wide_where_unseen_rows_exceed_a_bound(data, excess, for_unseen_rows, is_wide):
    pressure, _ = pressure_on(data, DemographicParity(0.01), n_rounds=20, for_unseen_rows=for_unseen_rows)
    scores = scores_of(data)
    far = np.abs(scores) > 2 * scores.std()
    shares = []
    for _ in range(20):
        pressure.refine(scores, np.array([excess]))
        pull = np.abs(pulled(pressure, scores, 1e9).slopes)
        shares.append(pull[far].max() / pull.max())
    assert shares[9] < 0.03
    assert (shares[-1] > 0.05) == is_wide


def test_multipliers_follow_the_bounded_scores_and_slopes_those_of_each_booster(data):
    pressure, terms = pressure_on(data, LossParity(0.0))
    scores = scores_of(data)
    responding(pressure, scores).refine(scores, np.array([0.1]))
    boosters = [scores, np.zeros_like(scores), 2 * scores]
    active = (terms.at_scores(torch.from_numpy(scores.copy()), np.empty(0)).constraints > 0).astype(float)
    pulls = pressure.pull(scores, boosters, 1e9)
    factors = []
    for own, pull in zip(boosters, pulls, strict=True):
        point = terms.at_scores(torch.from_numpy(own.copy()), np.empty(0))
        direction = point.slopes(0.0, active)[0].numpy()
        factors.append(pull.slopes @ direction / (direction @ direction))
        np.testing.assert_allclose(pull.slopes, factors[-1] * direction, atol=1e-15)
    assert factors == pytest.approx([factors[0]] * 3)
    assert factors[0] > 0


def test_nothing_pulls_where_the_bound_holds(data):
    pressure, _ = pressure_on(data, DemographicParity(0.9))
    scores = scores_of(data)
    responding(pressure, scores).refine(scores, np.array([-0.5]))
    slopes, curvature, _ = pulled(pressure, scores, 1.0)
    assert not slopes.any()
    assert not curvature.any()
    assert not pressure.mean.any()


def test_multipliers_rise_while_a_violation_lasts_and_fall_when_it_is_over(data):
    pressure, _ = pressure_on(data, DemographicParity(0.05), n_rounds=30)
    apart = scores_of(data, 1.5)
    responding(pressure, apart)
    sums = []
    for scores in [apart] * 20:
        pressure.refine(scores, np.array([0.3]))
        pulled(pressure, scores, 1e9)
        sums.append(sum(map(np.sum, pressure.components()[1])))
    assert np.all(np.diff(sums) > 0)
    constant = np.zeros_like(apart)
    for _ in range(80):
        pressure.refine(constant, np.array([-0.05]))
        pulled(pressure, constant, 1e9)
    assert sum(map(np.sum, pressure.components()[1])) < 0.7 * sums[-1]
    assert (pressure.mean >= 0).all()


def test_the_blur_falls_to_its_last_value(data):
    pressure, _ = pressure_on(data, DemographicParity(0.05), n_rounds=30)
    blurs = []
    for _ in range(30):
        blurs.append(pressure.blur)
        pulled(pressure, scores_of(data), 1.0)
    assert blurs[0] == 1.0
    assert blurs[-1] == 0.1
    assert np.all(np.diff(blurs) <= 0)


def test_new_levels_begin_without_a_multiplier(data):
    pressure, _ = pressure_on(data, StatisticalParity(0.05))
    scores = scores_of(data, 2.0)
    before = len(pressure.names)
    pressure.refine(scores, np.array([0.4]))
    after = len(pressure.names)
    assert after > before
    assert pressure.mean.shape == (after,)
    assert not pressure.mean[before:].any()
    pulled(pressure, scores, 1.0)  # of all levels


def test_a_bound_that_stays_exceeded_becomes_stricter_up_to_half_of_it(data):
    pressure, _ = pressure_on(data, LossParity(0.1))
    scores, bounds = scores_of(data, 3.0), []
    for excess in [0.01] * 30 + [0.3] * 30 + [-0.01] * 30:
        pressure.refine(scores, np.array([excess]))
        pulled(pressure, scores, 1.0)
        bounds.append(pressure.worst)  # the scores stay, so that it grows by the margin
    margins = np.array(bounds) - bounds[0]
    assert np.all(np.diff(margins[:60]) >= 0)
    assert 0.015 <= margins[29] <= 0.02  # twice the excess in the end
    assert margins[59] == pytest.approx(0.05)
    assert 0 <= margins[-1] < 0.005


def test_bounds_on_losses_wait_while_these_fall_fast_enough(data):
    """By .02 in a round, so that .5 would be gone after 25 of 200 rounds; then by .005, so that .3 takes 60 of 190."""
    pressure, _ = pressure_on(data, GroupRates("log_loss", rule="ceiling", kappa=0.1), n_rounds=200)
    scores, pulls = scores_of(data), []
    for excess in [*np.linspace(0.5, 0.3, 11), *np.linspace(0.3, 0.25, 11)[1:]]:
        pressure.refine(scores, np.array([excess]))
        pulls.append(bool(pulled(pressure, scores, 1e9).slopes.any()))
    assert not any(pulls[:12])
    assert all(pulls[14:])


def test_a_bound_of_none_has_no_margin(data):
    pressure, _ = pressure_on(data, LossParity(None))
    scores = scores_of(data)
    pressure.refine(scores, np.array([-np.inf]))
    slopes = pulled(pressure, scores, 1.0).slopes
    assert not slopes.any()


def test_costs_are_added_where_the_objective_has_some_and_the_constraint_is_about_decisions(data):
    scores = scores_of(data)
    sums = {}
    for name, constraint, has_costs in (
        ("rates", DemographicParity(0.01), True),
        ("without", DemographicParity(0.01), False),
        ("elsewhere", DemographicParity(0.01, threshold=0.5), True),
        ("losses", LossParity(0.0), True),
    ):
        pressure, _ = pressure_on(data, constraint, has_costs=has_costs)
        responding(pressure, scores).refine(scores, np.array([0.3]))
        pull = pulled(pressure, scores, 1e9)
        assert pull.slopes.any()
        sums[name] = np.bincount(data.codes, pull.costs)
    # The rate of the first group is the larger one: positive decisions cost there what they gain in the other group.
    assert sums["rates"][0] > 0
    assert sums["rates"].sum() == pytest.approx(0, abs=1e-12)
    assert not any(sums[name].any() for name in ("without", "elsewhere", "losses"))


def test_an_overshoot_to_the_other_side_of_a_difference_halves_the_reaction(data):
    def gain_after(second):
        pressure, _ = pressure_on(data, DemographicParity(0.01), n_rounds=30)
        for shift in (2.0, 2.0, 2.0, 2.0, 2.0, second, second):
            scores = scores_of(data, shift)
            pressure.refine(scores, np.array([0.2]))
            pulled(pressure, scores, 1.0)
        return pressure._gain

    assert gain_after(2.0) > gain_after(-2.0)
