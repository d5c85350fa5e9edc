"""Domains: projections against a solver of the quadratic problem, and what every projection satisfies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog, minimize

from fairconstrained.domains import Box, Domain, L1Ball, L2Ball, NonNegative, Product, Simplex
from fairconstrained.exceptions import IncompatibleProblem

DOMAINS = {
    "l1": L1Ball(1.5),
    "l2": L2Ball(1.5),
    "box": Box(-0.5, 0.75),
    "box by entry": Box(np.array([-1.0, 0.0, -0.1, 0.3]), np.array([0.0, 0.5, 0.1, 0.3])),
    "non-negative": NonNegative(),
    "simplex": Simplex(),
    "simplex of total 3": Simplex(3.0),
    "product": Product(((slice(2, 4), L1Ball(0.75)), (slice(0, 1), Box(-0.5, 0.25)))),
}
#: How far a point is outside: at most 0 in the set.
EXCESS = {
    "l1": lambda x: np.abs(x).sum() - 1.5,
    "l2": lambda x: np.linalg.norm(x) - 1.5,
    "box": lambda x: max((-0.5 - x).max(), (x - 0.75).max()),
    "box by entry": lambda x: max(
        (np.array([-1.0, 0.0, -0.1, 0.3]) - x).max(), (x - np.array([0.0, 0.5, 0.1, 0.3])).max()
    ),
    "non-negative": lambda x: (-x).max(),
    "simplex": lambda x: max((-x).max(), abs(x.sum() - 1)),
    "simplex of total 3": lambda x: max((-x).max(), abs(x.sum() - 3)),
    "product": lambda x: max(np.abs(x[2:]).sum() - 0.75, -0.5 - x[0], x[0] - 0.25),
}
POINTS = arrays(np.float64, 4, elements=st.floats(-50, 50, allow_subnormal=False))
each_domain = pytest.mark.parametrize("name", DOMAINS)


def quadratic_program(name, x):
    """The projection by SLSQP; the l1 ball in the variables (positive part, negative part)."""
    d = x.size
    entrywise = {
        "box": [(-0.5, 0.75)] * d,
        "box by entry": [(-1.0, 0.0), (0.0, 0.5), (-0.1, 0.1), (0.3, 0.3)],
        "non-negative": [(0, None)] * d,
        "simplex": [(0, None)] * d,
        "simplex of total 3": [(0, None)] * d,
        # the positive parts, then the negative parts; a free entry has both
        "product": [(0, 0.25), *[(0, None)] * 3, (0, 0.5), *[(0, None)] * 3],
    }
    coupling = {
        "l2": {"type": "ineq", "fun": lambda z: 1.5**2 - z @ z, "jac": lambda z: -2 * z},
        "simplex": {"type": "eq", "fun": lambda z: z.sum() - 1, "jac": np.ones_like},
        "simplex of total 3": {"type": "eq", "fun": lambda z: z.sum() - 3, "jac": np.ones_like},
        "l1": {"type": "ineq", "fun": lambda z: 1.5 - z.sum(), "jac": lambda z: -np.ones_like(z)},
        "product": {
            "type": "ineq",
            "fun": lambda z: 0.75 - z @ [0, 0, 1, 1, 0, 0, 1, 1],
            "jac": lambda z: -np.array([0.0, 0, 1, 1, 0, 0, 1, 1]),
        },
    }
    split = name in ("l1", "product")

    def point(z):
        return z[:d] - z[d:] if split else z

    def gradient(z):
        residual = point(z) - x
        return np.concatenate([residual, -residual]) if split else residual

    found = minimize(
        lambda z: ((point(z) - x) ** 2).sum() / 2,
        np.full(2 * d if split else d, 0.1),
        jac=gradient,
        method="SLSQP",
        bounds=entrywise.get(name, [(0, None)] * (2 * d) if split else None),
        constraints=coupling.get(name, ()),
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return point(found.x)


@each_domain
@pytest.mark.parametrize("seed", range(4))
def test_projection_solves_the_quadratic_problem(name, seed):
    x = np.random.default_rng(seed).normal(scale=2.0, size=4)
    np.testing.assert_allclose(DOMAINS[name].project(x), quadratic_program(name, x), atol=1e-6)


@each_domain
@given(x=POINTS)
def test_projection_is_in_the_set(name, x):
    assert EXCESS[name](DOMAINS[name].project(x)) <= 1e-12


@each_domain
@given(x=POINTS)
def test_projection_is_idempotent(name, x):
    once = DOMAINS[name].project(x)
    np.testing.assert_allclose(DOMAINS[name].project(once), once, rtol=0, atol=1e-12)


@each_domain
@given(x=POINTS, y=POINTS)
def test_projection_is_nonexpansive(name, x, y):
    project = DOMAINS[name].project
    assert np.linalg.norm(project(x) - project(y)) <= np.linalg.norm(x - y) + 1e-12


@each_domain
@given(x=POINTS, y=POINTS)
def test_no_point_of_the_set_is_nearer(name, x, y):
    nearest, other = DOMAINS[name].project(x), DOMAINS[name].project(y)
    # the obtuse-angle criterion, which a convex set's projection satisfies and nothing else does
    assert (x - nearest) @ (other - nearest) <= 1e-9


@each_domain
def test_projection_does_not_change_its_argument(name):
    x = np.array([3.0, -2.0, 0.1, 0.4])
    DOMAINS[name].project(x)
    np.testing.assert_array_equal(x, [3.0, -2.0, 0.1, 0.4])


@pytest.mark.parametrize("ball", [L1Ball(1.5), L2Ball(1.5)])
def test_rescaled_balls_can_be_rescaled_again(ball):
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0.1, 10, size=(2, 4))
    twice, once = ball.scaled(first).scaled(second), ball.scaled(first * second)
    for x in rng.normal(size=(20, 4)) * np.array([1e-3, 10.0] * 10)[:, None]:
        np.testing.assert_allclose(twice.project(x), once.project(x), rtol=1e-9)
    inside = first * ball.project(rng.normal(size=4)) / 2
    np.testing.assert_array_equal(ball.scaled(first).project(inside), inside)  # to the last digit


def test_the_polyhedron_of_a_rescaled_ball():
    """The largest value is at a corner: the radius by the weight of one entry."""
    factors, slope = np.array([2.0, 0.5, 1.0]), np.array([1.0, -5.0, 2.0])
    A, b, lower, upper = L1Ball(1.5).scaled(factors).polyhedron(3)
    found = linprog(np.append(-slope, np.zeros(3)), A_ub=A, b_ub=b, bounds=np.column_stack([lower, upper]))
    assert -found.fun == pytest.approx(1.5 * (np.abs(slope) * factors).max())


FACTORS = arrays(np.float64, 4, elements=st.floats(-3, 3)).map(lambda exponents: 10.0**exponents)


@each_domain
@given(x=POINTS, y=POINTS, factors=FACTORS)
def test_rescaled_sets_have_a_projection_of_their_own(name, x, y, factors):
    domain = DOMAINS[name]
    nearest, other = domain.scaled(factors).project(factors * x), factors * domain.project(y)
    assert EXCESS[name](nearest / factors) <= 1e-9
    # in units of the sizes of what is multiplied
    scale = 1 + np.linalg.norm(factors * x - nearest) * (np.linalg.norm(other) + np.linalg.norm(nearest))
    assert (factors * x - nearest) @ (other - nearest) <= 1e-9 * scale


def test_rescaled_sets_of_a_domain_that_only_projects_are_unknown():
    class Half(Domain):
        def project(self, x):
            return np.maximum(x, 1.0)

    assert Half().scaled(np.ones(2)) is None
    assert Product(((slice(0, 1), Half()), (slice(1, 2), NonNegative()))).scaled(np.ones(2)) is None


@pytest.mark.parametrize("domain", [L1Ball(5.0), L2Ball(5.0), Box(-5, 5)])
def test_points_of_the_set_stay_where_they_are(domain):
    x = np.array([1.0, -2.0, 0.5])
    np.testing.assert_array_equal(domain.project(x), x)


@pytest.mark.parametrize("create", [L1Ball, L2Ball, Simplex])
@pytest.mark.parametrize("size", [0.0, -1.0, float("nan")])
def test_sizes_must_be_positive(create, size):
    with pytest.raises(ValueError, match="must be a finite number above 0; got"):
        create(size)


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 0.0), (np.array([0.0, 2.0]), 1.0)])
def test_box_needs_ordered_bounds(lower, upper):
    with pytest.raises(ValueError, match="lower <= upper"):
        Box(lower, upper)


# --- as linear inequalities


@pytest.mark.parametrize("name", sorted(set(DOMAINS) - {"l2"}))
@pytest.mark.parametrize("seed", range(3))
def test_a_linear_program_over_the_polyhedron_is_one_over_the_set(name, seed):
    """The maximiser is in the set, and no projected point has a greater value."""
    assert DOMAINS[name].is_polyhedral
    rng = np.random.default_rng(seed)
    slope = rng.normal(size=4)
    if name == "non-negative":
        slope = -np.abs(slope)  # otherwise unbounded
    if name == "product":
        slope[1] = 0.0  # a free entry
    A, b, lower, upper = DOMAINS[name].polyhedron(4)
    cost = np.append(-slope, np.zeros(lower.size - 4))
    found = linprog(cost, A_ub=A, b_ub=b, bounds=np.column_stack([lower, upper]))
    assert found.status == 0
    assert EXCESS[name](found.x[:4]) <= 1e-9
    others = [DOMAINS[name].project(rng.normal(scale=5.0, size=4)) for _ in range(50)]
    far = DOMAINS[name].project(found.x[:4] + 1e3 * slope)
    assert slope @ found.x[:4] >= max(slope @ x for x in others) - 1e-9
    assert slope @ found.x[:4] == pytest.approx(slope @ far, abs=1e-9)


@pytest.mark.parametrize("domain", [L2Ball(1.0), Product(((slice(0, 2), L2Ball(1.0)),))])
def test_curved_sides_have_no_polyhedron(domain):
    assert not domain.is_polyhedral
    with pytest.raises(IncompatibleProblem, match=r"L2Ball\(radius=1.0\) has curved sides"):
        domain.polyhedron(3)


@pytest.mark.parametrize("part", [slice(None, 2), slice(1, None), slice(0, 4, 2), slice(-2, 1), slice(2, 2)])
def test_product_needs_plain_slices(part):
    with pytest.raises(ValueError, match="0 <= start < stop"):
        Product(((part, NonNegative()),))


def test_product_needs_disjoint_slices():
    with pytest.raises(ValueError, match="do not overlap"):
        Product(((slice(2, 4), NonNegative()), (slice(0, 3), L2Ball(1.0))))


def test_free_entries_of_a_product_stay_as_they_are():
    x = np.array([5.0, -7.0, 3.0, 4.0])
    np.testing.assert_allclose(Product(((slice(2, 4), L2Ball(1.0)),)).project(x), [5.0, -7.0, 0.6, 0.8])
