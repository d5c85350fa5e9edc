"""A constraint on two classes, for every one of several classes: this class against all others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import torch
from typing_extensions import override

from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.metrics.classes import class_margins
from fairconstrained.surrogates import SURROGATES
from fairconstrained.views import DirectSlopes, FullBatch, Pull, Stochastic

__all__ = ["BoundEveryClass", "EveryClass"]


class EveryClass(Constraint):
    r"""Bound on the gap of every class against the others, in a constraint on two classes.

    For scores s of shape (n_samples, n_classes), the margins of class k are

    .. math:: m_{ik} = s_{ik} - \max_{j \ne k} s_{ij},

    which are positive exactly where k is predicted. The constraint on two classes is imposed on the margins of every
    class, with the rows of the class as positives and all others as negatives; its metric is the largest gap.

    Parameters
    ----------
    constraint : Constraint
        Constraint on the scores of two classes.
    classes : sequence
        The classes by number, as the targets of the data have them.
    """

    is_of_classes = True

    def __init__(self, constraint: Constraint, classes: Sequence[Hashable]) -> None:
        self.constraint = constraint
        self.classes = classes

    @property
    def kappa(self) -> float | None:
        """The bound on the gap of every class."""
        return self.constraint.kappa

    @override
    def _bind(self, data: FairData) -> BoundEveryClass:
        known = self.constraint if self.compared_as is None else self.constraint.comparing(self.compared_as)
        found = self._bound(known, data)
        # a group that is too small among the rows of one class is compared in no class, or merged in all
        together = {label: name for constraint in found for label, name in constraint.compared_as.items()}
        if together and self.compared_as is None:
            found = self._bound(self.constraint.comparing(together), data)
        return BoundEveryClass.of(found, tuple(map(str, self.classes)), data)

    def _bound(self, constraint: Constraint, data: FairData) -> list[BoundConstraint]:
        found = []
        for label, part in zip(self.classes, _of_classes(data, self.classes), strict=True):
            try:
                found.append(constraint.unchecked(part))
            except ValueError as error:  # of two classes, it does not know which one this is
                raise ValueError(f"Class {label!r} against all others: {error}") from error
        return found

    @property
    @override
    def bounds_from_below(self) -> bool:
        return self.constraint.bounds_from_below

    @property
    @override
    def compares_within_strata(self) -> bool:
        return self.constraint.compares_within_strata

    @override
    def of_all_groups(self) -> Self:
        return type(self)(self.constraint.of_all_groups(), self.classes)

    @override
    def group_table(self, data: FairData, scores: np.ndarray) -> pd.DataFrame | None:
        tables = self._of_each(data, scores, Constraint.group_table)
        if any(table is None for table in tables):
            return None
        return pd.concat(tables, keys=list(self.classes), names=["class"])

    @override
    def value_of_decisions(self, data: FairData, scores: np.ndarray) -> float:
        worst = np.min if self.bounds_from_below else np.max
        return float(worst(self._of_each(data, scores, Constraint.value_of_decisions)))

    def _of_each(self, data: FairData, scores: np.ndarray, method: Callable[..., Any]) -> list[Any]:
        """Results of a method of the constraint on two classes, for every class."""
        margins = class_margins(scores)
        parts, name = _of_classes(data, self.classes), method.__name__
        return [getattr(self.constraint, name)(part, margins[_order(data, k), k]) for k, part in enumerate(parts)]


def _order(data: FairData, number: int) -> np.ndarray:
    """The rows of every group with those of a class last, as the data of two classes are ordered; (n_samples,)."""
    return np.lexsort((data.y.numpy() == number, data.codes))


def _of_classes(data: FairData, classes: Sequence[Hashable]) -> list[FairData]:
    """The rows as data of two classes for every class, which is the positive one; without features."""
    bare = data.without_features
    parts = []
    for number, name in enumerate(classes):
        order = _order(data, number)
        of_two = bare.at(order, data.weights[torch.from_numpy(order)])
        signs = torch.where(of_two.y == number, 1.0, -1.0).to(of_two.y.dtype)
        names = {1.0: str(name), -1.0: f"not {name}"}
        parts.append(replace(of_two, y=signs, codes=data.codes, label_names=names))  # rows move within their groups
    return parts


def _margins(scores: np.ndarray, width: float) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    r"""Smooth margins :math:`s_k - w \log \sum_{j \ne k} e^{s_j / w}`; with width 0 those of `class_margins`, or zero.

    A sigmoid of width w makes the softmax of :math:`s / w` of them, which has no corners where two other classes meet.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)

    Returns
    -------
    margins : ndarray of shape (n_classes, n_samples)
    pull : callable
        Takes slopes in the margins, and returns those in the scores; both shaped as these are.
    """
    by_class, rows = np.ascontiguousarray(scores.T), np.arange(len(scores))
    best = by_class.argmax(axis=0), rows
    largest, others = by_class[best], by_class.copy()
    others[best] = -np.inf
    next_best = others.argmax(axis=0), rows
    second = others[next_best]
    margins = by_class - largest
    margins[best] = largest - second
    # shares of the others in their maximum, smooth or not: for the best class those without itself
    if width:
        all_shares, shares = np.exp((by_class - largest) / width), np.exp((others - second) / width)
        totals = all_shares.sum(axis=0) - all_shares  # without the class itself: at least 1
        totals[best] = shares.sum(axis=0)
        margins -= width * np.log(totals)
        shares /= totals[best]
    else:
        all_shares, shares, totals = np.zeros_like(margins), np.zeros_like(margins), np.ones_like(margins)
        all_shares[best] = shares[next_best] = 1.0

    def pull(slopes: np.ndarray) -> np.ndarray:
        of_others = slopes / totals
        of_others[best] = 0.0
        return (slopes - all_shares * (of_others.sum(axis=0) - of_others) - slopes[best] * shares).T

    return margins, pull


def _common(name: str) -> Any:
    """Attribute that the constraints of all classes share."""
    return property(lambda self: getattr(self.inner[0], name))


def _changed(name: str) -> Any:
    """Method without rows that returns constraints in place of these."""
    return lambda self, *args: replace(self, inner=tuple(getattr(inner, name)(*args) for inner in self.inner))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundEveryClass(BoundConstraint, DirectSlopes):
    """The constraints of all classes as one, on the scores of all classes."""

    #: The constraint of every class, on data whose rows are ordered by that class.
    inner: tuple[BoundConstraint, ...]
    classes: tuple[str, ...]
    data: FairData
    kappa: float
    name: str
    #: The rows of ``data`` in the order of the data of every class.
    orders: np.ndarray  # of shape (n_classes, n_samples)
    #: Number of the class of every component. Those that refinement adds stand behind all others, whatever their class.
    owners: np.ndarray  # of shape (n_components,)
    #: Width of the smooth margins of the surrogate, in units of the scores.
    width: float = 0.0
    #: Amounts by which the components change where the exact margins take the place of the smooth ones, at the scores
    #: of the last refinement.
    correction: Any = 0.0  # ndarray of shape (n_components,), or 0

    #: Where a class is to be given up or taken on, rows of other classes are far away.
    first_blur = 0.3

    @classmethod
    def of(cls, inner: Sequence[BoundConstraint], classes: tuple[str, ...], data: FairData) -> BoundEveryClass:
        """Join the constraints of all classes; mini-batches are possible where they are for each of them."""
        kind = _OnBatches if all(isinstance(constraint, Stochastic) for constraint in inner) else BoundEveryClass
        return kind(
            inner=tuple(constraint.for_class() for constraint in inner),
            classes=classes,
            data=data,
            kappa=inner[0].kappa,
            name=inner[0].name,
            orders=_orders(data, len(classes)),
            owners=np.repeat(np.arange(len(classes)), [len(constraint.component_names) for constraint in inner]),
        )

    bounds_metric = _common("bounds_metric")
    scale = _common("scale")
    penalty_factor = _common("penalty_factor")
    damping = _common("damping")
    strata = _common("strata")
    resolution = _common("resolution")
    compares = _common("compares")
    compared_as = _common("compared_as")

    bounds_from_below = _common("bounds_from_below")
    sees_cells_only = _common("sees_cells_only")
    is_fitted_loss = _common("is_fitted_loss")
    why_undefined = _common("why_undefined")

    with_restoring_slopes = _changed("with_restoring_slopes")
    with_logistic_slopes = _changed("with_logistic_slopes")

    @override
    def with_kappa(self, kappa: float) -> Self:
        return replace(self, kappa=kappa, inner=tuple(inner.with_kappa(kappa) for inner in self.inner))

    @override
    def exact(self, scores: np.ndarray) -> float:
        return max(inner.exact(own) for inner, own in self._with_margins(scores))

    @override
    def is_within(self, scores: np.ndarray, most: float) -> bool:
        return all(inner.is_within(own, most) for inner, own in self._with_margins(scores))  # up to one that is not

    @override
    def metric(self, scores: np.ndarray) -> float:
        """The metric of the class that is furthest beyond the bound, NaN where that of one is."""
        return self._worst(list(self.class_values(scores).values()))

    @override
    def of_decisions(self, scores: np.ndarray) -> float | None:
        found = [inner.of_decisions(own) for inner, own in self._with_margins(scores)]
        values = [value for value in found if value is not None]
        return self._worst(values) if values else None

    def _worst(self, values: list[float]) -> float:
        return float(values[int(np.argmax(self.excess(np.array(values))))])

    @property
    @override
    def granularity(self) -> float:
        return max(inner.granularity for inner in self.inner)

    @property
    @override
    def component_names(self) -> tuple[str, ...]:
        """Those of every class, with the class behind the name of the constraint."""
        names = [
            f"{self.name}[{label}]{name.removeprefix(inner.name)}"
            for inner, label in zip(self.inner, self.classes, strict=True)
            for name in inner.component_names
        ]
        return tuple(names[place] for place in self._places)

    @property
    def _places(self) -> np.ndarray:
        """Place of every component where those of the first class come first; ndarray of shape (n_components,)."""
        return np.argsort(np.argsort(self.owners, kind="stable"))

    @property
    @override
    def value_by_chance(self) -> float:
        return max(inner.value_by_chance for inner in self.inner)

    @override
    def compared_cells(self) -> CellSizes | None:
        """Cells of all classes; those of one class where no class has others."""
        found = [inner.compared_cells() for inner in self.inner]
        sizes = [own for own in found if own is not None]
        if len(sizes) < len(found):
            return None
        if all(np.array_equal(own.shares, sizes[0].shares) for own in sizes):
            return sizes[0]
        named = [cell for own in sizes for cell in own.labels]
        counts, shares, units, groups = (np.concatenate(parts) for parts in list(zip(*sizes, strict=True))[1:5])
        return CellSizes(named, counts, shares, units, groups, sizes[0].mergeable)

    @override
    def caveat(self, scores: np.ndarray) -> str | None:
        pairs = list(self._with_margins(scores))
        telling = [(inner, own) for inner, own in pairs if not inner.decides_alike(own)]
        if not telling:
            return (
                f"all rows are predicted as the same class, where {self.name} is 0 whatever the model is. Raise kappa, "
                "or bound a metric of scores, such as constraint='statistical_parity'."
            )
        return next(filter(None, (inner.caveat(own) for inner, own in telling)), None)

    @override
    def class_values(self, scores: np.ndarray) -> dict[str, float]:
        values = [inner.metric(own) for inner, own in self._with_margins(scores)]
        return dict(zip(self.classes, values, strict=True))

    @property
    @override
    def n_aux(self) -> int:
        return sum(inner.n_aux for inner in self.inner)

    @override
    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        return np.concatenate([inner.initial_aux(own) for inner, own in self._with_margins(scores)])

    @override
    def fair_aux(self) -> np.ndarray:
        return np.concatenate([inner.fair_aux() for inner in self.inner])

    @override
    def stricter(self) -> BoundEveryClass | None:
        found = [inner.stricter() for inner in self.inner]
        if not any(found):
            return None
        pairs = zip(found, self.inner, strict=True)
        return self.of([own or inner for own, inner in pairs], self.classes, self.data)

    @override
    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        refined = [inner.refined(own, blur=blur, margin=margin) for inner, own in self._with_margins(scores)]
        added = [
            len(new.component_names) - len(old.component_names) for new, old in zip(refined, self.inner, strict=True)
        ]
        owners = np.concatenate([self.owners, np.repeat(np.arange(len(added)), added)])
        exact = replace(self, inner=tuple(refined), owners=owners, width=0.0, correction=0.0)
        if not self.counts_rows:
            return exact
        width = blur * float(class_margins(scores).std()) / SURROGATES["logistic"].spread
        smooth, aux = replace(exact, width=width), exact.initial_aux(scores)
        values, smooth_values = (own.with_slopes(scores, aux)[0] for own in (exact, smooth))
        return replace(smooth, correction=values - smooth_values)

    @property
    def counts_rows(self) -> bool:  # type: ignore[override]  # those of a class may be of either kind
        """Whether the metric is a step of the scores, so that solvers see something smooth anyway."""
        return any(inner.counts_rows or inner.decision_threshold is not None for inner in self.inner)

    @override
    def with_slopes(self, scores: np.ndarray, aux: np.ndarray) -> tuple[np.ndarray, Pull]:
        margins, pull_margins = _margins(scores, self.width)
        ends, places = np.cumsum([inner.n_aux for inner in self.inner]), self._places
        parts = [
            cast(FullBatch, inner).with_slopes(own[order], own_aux)
            for inner, own, order, own_aux in zip(
                self.inner, margins, self.orders, np.split(aux, ends[:-1]), strict=True
            )
        ]
        values, pulls = zip(*parts, strict=True)

        def pull(multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            by_class = np.empty_like(multipliers)
            by_class[places] = multipliers
            slopes, first, of_aux = np.zeros_like(margins), 0, np.zeros_like(aux)
            for k, (own, pull_own) in enumerate(zip(values, pulls, strict=True)):
                chosen, first = by_class[first : first + own.size], first + own.size
                if chosen.any():
                    slopes[k, self.orders[k]], of_aux[ends[k] - self.inner[k].n_aux : ends[k]] = pull_own(chosen)
            return pull_margins(slopes), of_aux

        return np.concatenate(values)[places] + self.correction, pull

    def _with_margins(self, scores: np.ndarray) -> list[tuple[Any, np.ndarray]]:
        """The constraint of every class, with its margins in the order of its data."""
        margins = class_margins(scores).T
        return [(inner, own[order]) for inner, own, order in zip(self.inner, margins, self.orders, strict=True)]


class _OnBatches(BoundEveryClass, Stochastic):
    @override
    def on(self, data: FairData) -> Self:
        parts = _of_classes(data, self.classes)
        inner = tuple(cast(Stochastic, own).on(part) for own, part in zip(self.inner, parts, strict=True))
        return replace(self, inner=inner, data=data, orders=_orders(data, len(inner)))


def _orders(data: FairData, n_classes: int) -> np.ndarray:
    return np.stack([_order(data, k) for k in range(n_classes)])
