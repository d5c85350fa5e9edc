"""Quadratic losses over pairs of rows: moments instead of pairs, for any unions of cells."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime

from fairconstrained.pairwise import PairTerms

SIZES = (5, 1, 7, 4)  # rows of the cells
#: Unions of cells, which overlap; the last one is everything.
UNIONS = [(0,), (1, 2), (0, 2, 3), (3,), (0, 1, 2, 3)]
#: Component, A and B of every term; A and B may be disjoint, overlap or be the same set.
TERMS = [(0, 0, 3), (0, 1, 0), (1, 2, 1), (1, 4, 4), (1, 3, 2), (2, 4, 0)]


class Example:
    """Rows in cells that are slices, or scattered, with weights; some rows are in no cell."""

    def __init__(self, scattered=False, c1=0.5, c2=1.0, seed=0):
        rng = np.random.default_rng(seed)
        n = sum(SIZES) + 3
        order = rng.permutation(n) if scattered else np.arange(n)
        ends = np.cumsum((0, *SIZES))
        cells = [np.sort(order[a:b]) for a, b in pairwise(ends)]
        self.weights, self.scores = rng.uniform(0.1, 3.0, n), rng.normal(size=n)
        self.mass = np.array([self.weights[cell].sum() for cell in cells])
        shares = np.zeros(n)
        for cell, mass in zip(cells, self.mass, strict=True):
            shares[cell] = self.weights[cell] / mass
        sets = np.zeros((len(UNIONS), len(SIZES)))
        for row, union in zip(sets, UNIONS, strict=True):
            row[list(union)] = self.mass[list(union)] / self.mass[list(union)].sum()
        component, first, second = np.array(TERMS).T
        self.constant = np.array([0.3, -1.0, 0.0])
        self.rows = [np.concatenate([cells[c] for c in union]) for union in UNIONS]
        self.terms = PairTerms(
            rows=tuple(cells) if scattered else tuple(slice(int(c[0]), int(c[-1]) + 1) for c in cells),
            shares=torch.from_numpy(shares),
            sets=sets,
            component=component,
            first=first,
            second=second,
            constant=self.constant,
            c1=c1,
            c2=c2,
        )

    def by_pairs(self):
        """Every component by all pairs of rows."""
        values = self.constant.copy()
        for component, a, b in TERMS:
            first, second = self.rows[a], self.rows[b]
            pairs = np.outer(self.weights[first], self.weights[second])
            losses = self.terms.c1 * (self.scores[first][:, None] - self.scores[second] - self.terms.c2) ** 2
            values[component] += (pairs * losses).sum() / pairs.sum()
        return values


@pytest.mark.parametrize("scattered", [False, True], ids=["slices", "numbers"])
@pytest.mark.parametrize(("c1", "c2"), [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (0.5, 0.3)])
def test_values_are_means_over_all_pairs(scattered, c1, c2):
    for seed in range(3):
        example = Example(scattered, c1, c2, seed)
        values = example.terms.quadratics.values(torch.from_numpy(example.scores))
        np.testing.assert_allclose(values, example.by_pairs(), rtol=1e-12)


def test_by_hand():
    """One set {0, 2}, the other {1, 5} of weights 1 and 3: (0-1-1)^2, (0-5-1)^2, (2-1-1)^2, (2-5-1)^2."""
    terms = PairTerms(
        rows=(slice(0, 2), slice(2, 4)),
        shares=torch.tensor([0.5, 0.5, 0.25, 0.75], dtype=torch.float64),
        sets=np.eye(2),
        component=np.array([0]),
        first=np.array([0]),
        second=np.array([1]),
        constant=np.zeros(1),
    )
    scores = torch.tensor([0.0, 2.0, 1.0, 5.0], dtype=torch.float64)
    expected = (4 / 8 + 36 * 3 / 8 + 0 / 8 + 16 * 3 / 8) / 2
    assert terms.quadratics.values(scores).tolist() == [pytest.approx(expected)]
    assert terms.plus(-0.75).quadratics.values(scores).tolist() == [pytest.approx(expected - 0.75)]


def test_every_component_is_convex():
    quadratics = Example().terms.quadratics
    assert quadratics.variance.min() >= 0
    np.testing.assert_array_equal(quadratics.product, quadratics.product.transpose(0, 2, 1))
    eigenvalues = np.linalg.eigvalsh(quadratics.product)
    assert eigenvalues.min() > -1e-14
    assert eigenvalues.max(axis=1).min() > 0.1
    # all scores alike, so the loss of every pair is c1 c2^2
    np.testing.assert_allclose(quadratics.product @ np.ones(len(SIZES)), 0, atol=1e-14)


@pytest.mark.parametrize("component", range(3))
def test_gradient(component):
    example = Example(scattered=True)
    values = example.terms.quadratics.values
    scores = torch.from_numpy(example.scores).requires_grad_()
    (gradient,) = torch.autograd.grad(values(scores)[component], scores)
    numeric = approx_fprime(example.scores, lambda s: float(values(torch.from_numpy(s))[component]), 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    assert np.abs(gradient.numpy()).max() > 0.01


def test_rows_in_no_cell_do_not_count():
    example = Example()
    values = example.terms.quadratics.values
    changed = example.scores.copy()
    changed[sum(SIZES) :] = 100.0
    np.testing.assert_array_equal(values(torch.from_numpy(changed)), values(torch.from_numpy(example.scores)))


def test_no_terms_is_the_constant():
    example = Example()
    none = np.empty(0, dtype=int)
    terms = PairTerms(
        example.terms.rows, example.terms.shares, example.terms.sets, none, none, none, np.array([0.25, -2.0])
    )
    np.testing.assert_array_equal(terms.quadratics.values(torch.from_numpy(example.scores)), [0.25, -2.0])
