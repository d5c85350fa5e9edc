"""Terms that are convex quadratic functions of the parameters of a linear model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, cast

import numpy as np

from fairconstrained.data import Rows
from fairconstrained.models import Coordinates, LinearMoments
from fairconstrained.pairwise import CellQuadratics
from fairconstrained.problem import Problem
from fairconstrained.views import ConvexQuadratic

__all__ = ["Quadratics", "parameter_quadratics", "quadratics_of"]

#: Curvature below this fraction of the terms that it is summed from is rounding error.
_ROUNDING = 1e-13

#: Means and covariances of what multiplies the parameters, in cells.
CellMoments = tuple[np.ndarray, np.ndarray]


class Quadratics(NamedTuple):
    """Functions ``w H_j w / 2 + b_j w + c_j``.

    Attributes
    ----------
    hessians : ndarray of shape (n_hessians, n_params, n_params)
        The different ones, positive semidefinite.
    which : ndarray of shape (n_components,)
        The Hessian of every component.
    b : ndarray of shape (n_components, n_params)
    c : ndarray of shape (n_components,)
    """

    hessians: np.ndarray
    which: np.ndarray
    b: np.ndarray
    c: np.ndarray

    def values(self, w: np.ndarray) -> np.ndarray:
        """Every function at ``w``; ndarray of shape (n_components,)."""
        return (self.hessians @ w @ w)[self.which] / 2 + self.b @ w + self.c

    def gradients(self, w: np.ndarray) -> np.ndarray:
        """Gradients at ``w``; ndarray of shape (n_components, n_params)."""
        return (self.hessians @ w)[self.which] + self.b

    def within(self, coordinates: Coordinates) -> Quadratics:
        """Return the functions of the coordinates of ``w``."""

        def pulled(rows: np.ndarray) -> np.ndarray:
            return np.stack([coordinates.pull(row) for row in rows]) if len(rows) else rows

        hessians = [pulled(pulled(hessian).T) for hessian in self.hessians]
        return self._replace(hessians=np.stack(hessians) if hessians else self.hessians, b=pulled(self.b))


def parameter_quadratics(
    problem: Problem, terms: Sequence[object], moments: Callable[[CellQuadratics], CellMoments] | None = None
) -> Quadratics:
    """The components of some terms of a problem with a linear model as functions of its parameters.

    Parameters
    ----------
    problem : Problem
        Problem whose model offers `LinearMoments`.
    terms : sequence
        Constraints or objectives that offer `ConvexQuadratic`.
    moments : callable, optional
        Function that finds the moments in the cells; calls that share it need one pass over cells that they share.
    """
    moments = moments or cell_moments(problem)
    forms = [cast(ConvexQuadratic, term).quadratics() for term in terms]
    return quadratics_of([(form, moments(form)) for form in forms], problem.n_params)


def cell_moments(problem: Problem) -> Callable[[CellQuadratics], CellMoments]:
    """Return a function that finds the moments in the cells of a form, and remembers them by the rows of the cell."""
    model, known = cast(LinearMoments, problem.model), {}

    def moments(form: CellQuadratics) -> CellMoments:
        keys = [_key(rows) for rows in form.rows]
        for key, rows in zip(keys, form.rows, strict=True):
            if key not in known:
                means, covariances = model.moments(problem.data, [rows], form.shares)
                known[key] = means[0], covariances[0]
        return np.stack([known[key][0] for key in keys]), np.stack([known[key][1] for key in keys])

    return moments


def quadratics_of(forms: Sequence[tuple[CellQuadratics, CellMoments]], n_params: int) -> Quadratics:
    """The components of all forms.

    With the means M and the covariances C in the cells, in the terms of `CellQuadratics`:
    ``H = 2 sum_c variance_c C_c + 2 M' product M`` and ``b = M' linear``. A parameter that moves all scores alike, such
    as the intercept, has no curvature.
    """
    hessians: list[np.ndarray] = []
    which: list[int] = []
    b, c = [np.empty((0, n_params))], [np.empty(0)]
    for form, (means, covariances) in forms:
        known: dict[bytes, int] = {}  # a component and its mirror image share their Hessian
        for variance, product in zip(form.variance, form.product, strict=True):
            key = variance.tobytes() + product.tobytes()
            if key not in known:
                known[key] = len(hessians)
                hessians.append(_hessian(variance, product, means, covariances))
            which.append(known[key])
        b.append(form.linear @ means)
        c.append(form.constant)
    table = np.stack(hessians) if hessians else np.empty((0, n_params, n_params))
    return Quadratics(table, np.array(which, dtype=int), np.concatenate(b), np.concatenate(c))


def _hessian(variance: np.ndarray, product: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """The Hessian of one component, zero where it is rounding error: a solver that scales would make much of that."""
    within = np.tensordot(variance, covariances, 1)
    hessian = within + means.T @ product @ means
    terms = np.diag(within) + (np.abs(means) * (np.abs(product) @ np.abs(means))).sum(axis=0)
    none = np.diag(hessian) <= _ROUNDING * terms
    hessian[none], hessian[:, none] = 0.0, 0.0
    return 2 * hessian


def _key(rows: Rows) -> Hashable:
    return (rows.start, rows.stop) if isinstance(rows, slice) else rows.tobytes()
