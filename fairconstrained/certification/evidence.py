"""Evidence: the interface of a family of bounds, and the families that a metric has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from typing_extensions import override

from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import Compared, NotOffered
from fairconstrained.metrics.contrasts import Contrast
from fairconstrained.metrics.registry import info_of

__all__ = ["METHODS", "CellEvidence", "Cells", "ClassEvidence", "Evidence", "evidence_of", "methods_of", "offers"]

#: Families, the one that "auto" prefers first.
METHODS = ("betting", "hoeffding", "unconditional", "binomial", "ustatistic", "dkw", "bootstrap")

#: Samples of up to this many times the rows are looked at for `Evidence.sufficient_scale`.
_LARGEST_SCALE = 1e8


@dataclass(frozen=True, eq=False)
class Evidence(ABC):
    """Evidence of a sample about a gap in the population."""

    #: Value of the metric in the sample.
    gap: float
    n_samples: int
    #: Name of the family.
    method: ClassVar[str]
    #: Whether `upper` holds with the probability stated for every distribution and every sample size.
    is_distribution_free: ClassVar[bool] = True
    #: Relative precision of `sufficient_scale`.
    _precision: ClassVar[float] = 1e-6

    @property
    @abstractmethod
    def n_events(self) -> int:
        """Number of events in the union."""

    @property
    @abstractmethod
    def union(self) -> str:
        """The events in words."""

    @abstractmethod
    def upper(self, delta: float, scale: float = 1.0) -> float:
        """Bound that the gap in the population exceeds with probability at most ``delta``.

        Parameters
        ----------
        scale : float, default=1.0
            Factor of all counts of rows, while the estimates stay.
        """

    @abstractmethod
    def cells(self, delta: float) -> pd.DataFrame:
        """The counts of rows, the estimates and the ends that `upper` is made of, by cell."""

    def by_class(self, delta: float) -> pd.DataFrame | None:
        """Return the gap and the bound of every class against all others; None for two classes."""
        return None

    def sufficient_scale(self, delta: float, kappa: float) -> float | None:
        """The least scale with ``upper(delta, scale) <= kappa``; None if the gap is not below, or there is none."""
        if self.gap >= kappa:
            return None

        def excess(root: float) -> float:
            return self.upper(delta, root**-2) - kappa

        # In 1 / sqrt(scale) bounds are close to linear, which saves the root finder most of its steps.
        inside = outside = 1.0
        while excess(inside) > 0:
            outside, inside = inside, inside / 4
            if inside**-2 > _LARGEST_SCALE:
                return None
        while inside >= outside:
            outside *= 4
            if outside**2 >= self.n_samples:
                return 1 / self.n_samples
            if excess(outside) <= 0:
                inside = outside
        root = float(brentq(excess, inside, outside, rtol=self._precision))
        step = self._precision
        while excess(root) > 0:  # of counts that are rounded the bound is not quite continuous
            root, step = root * (1 - step), 2 * step
        return root**-2


class Cells(ABC):
    """Parameters of cells of rows, each with a confidence interval."""

    #: Name of the family.
    method: ClassVar[str]

    @abstractmethod
    def ends(self, delta: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, each of which fails with probability at most ``delta``; as `Contrast` takes them."""

    @abstractmethod
    def table(self, delta: float, contrast: Contrast) -> pd.DataFrame:
        """Counts, estimates and ends; of many thresholds at the one that the contrast finds worst."""


@dataclass(frozen=True, eq=False)
class CellEvidence(Evidence):
    """A gap that is made of the parameters of cells."""

    of_cells: Cells
    contrast: Contrast

    @property
    def method(self) -> str:  # type: ignore[override]
        """Name of the method by which the cells are bounded."""
        return self.of_cells.method

    @property
    @override
    def n_events(self) -> int:
        return self.contrast.n_tails

    @property
    @override
    def union(self) -> str:
        return self.contrast.words

    @override
    def upper(self, delta: float, scale: float = 1.0) -> float:
        return self.contrast.upper(*self.of_cells.ends(delta / self.n_events, scale))

    @override
    def cells(self, delta: float) -> pd.DataFrame:
        return self.of_cells.table(delta / self.n_events, self.contrast)


@dataclass(frozen=True, eq=False)
class ClassEvidence(Evidence):
    """The largest gap of a class against all others.

    The class with the largest gap in the population is a fixed one, and its bound is enough: the largest bound needs no
    union over the classes, see `fairconstrained.metrics.contrasts`. So all gaps are below it at once.
    """

    #: Evidence about every class.
    of_class: dict[Any, Evidence]
    _known: dict[tuple[float, float], dict[Any, float]] = field(default_factory=dict, init=False, repr=False)

    @property
    def method(self) -> str:  # type: ignore[override]
        """Name of the family, which is the same for all classes."""
        return next(iter(self.of_class.values())).method

    @property
    def is_distribution_free(self) -> bool:  # type: ignore[override]
        """Whether the bounds of all classes are."""
        return all(evidence.is_distribution_free for evidence in self.of_class.values())

    @property
    @override
    def n_events(self) -> int:
        return max(evidence.n_events for evidence in self.of_class.values())

    @property
    @override
    def union(self) -> str:
        largest = max(self.of_class.values(), key=lambda evidence: evidence.n_events)
        return f"{largest.union}; none over the {len(self.of_class)} classes, for the same reason"

    @override
    def upper(self, delta: float, scale: float = 1.0) -> float:
        return max(self._uppers(delta, scale).values())

    def _uppers(self, delta: float, scale: float = 1.0) -> dict[Any, float]:
        """Bounds by class; they take their time."""
        if (delta, scale) not in self._known:
            bounds = {label: evidence.upper(delta, scale) for label, evidence in self.of_class.items()}
            self._known[delta, scale] = bounds
        return self._known[delta, scale]

    @override
    def cells(self, delta: float) -> pd.DataFrame:
        return pd.concat({label: evidence.cells(delta) for label, evidence in self.of_class.items()}, names=["class"])

    @override
    def by_class(self, delta: float) -> pd.DataFrame:
        gaps = [evidence.gap for evidence in self.of_class.values()]
        columns = {"gap": gaps, "upper_bound": list(self._uppers(delta).values())}
        return pd.DataFrame(columns, index=pd.Index(list(self.of_class), name="class"))

    @override
    def sufficient_scale(self, delta: float, kappa: float) -> float | None:
        scales = [evidence.sufficient_scale(delta, kappa) for evidence in self.of_class.values()]
        known = [scale for scale in scales if scale is not None]
        return max(known) if len(known) == len(scales) else None


Builder = Callable[[Sample], Evidence]
_BUILDERS: dict[tuple[str, type[Compared] | None], Builder] = {}


def offers(method: str, compared: type[Compared] | None = None) -> Callable[[Builder], Builder]:
    """Return a decorator that lists a function as what makes the evidence of metrics that compare such numbers.

    Without ``compared`` it is for all metrics. The function may raise `NotOffered`.
    """

    def add(build: Builder) -> Builder:
        _BUILDERS[method, compared] = build
        return build

    return add


def methods_of(metric: Callable[..., Any]) -> list[str]:
    """Names of the families that there are for a metric, the preferred one first."""
    return list(_builders(metric))


def _builders(metric: Callable[..., Any]) -> dict[str, Builder]:
    """Builders by the name of their family, the preferred one first."""
    kinds = (*type(info_of(metric).compared).__mro__, None)
    found = {method: [_BUILDERS[method, kind] for kind in kinds if (method, kind) in _BUILDERS] for method in METHODS}
    return {method: builders[0] for method, builders in found.items() if builders}


def evidence_of(sample: Sample, method: str = "auto") -> Evidence:
    """Return the evidence of the family named, or of the first one that the metric has.

    Raises ValueError if the family has no bound for this metric with these parameters.
    """
    if sample.by_class:
        of_class = {label: evidence_of(part, method) for label, part in sample.by_class.items()}
        return ClassEvidence(sample.gap, sample.n_samples, of_class)
    known = _builders(sample.metric)
    if method != "auto" and method not in known:
        offered = [name for name, build in known.items() if _offers_a_bound(name, build, sample)]
        raise ValueError(f"method={method!r} has no bound for {sample.name}; it has {['auto', *offered]}.")
    refusals = []
    for name in known if method == "auto" else [method]:
        try:
            return known[name](sample)
        except NotOffered as refusal:
            refusals.append(str(refusal))
    others = [name for name, build in known.items() if name != method and _offers_a_bound(name, build, sample)]
    raise ValueError(f"method={method!r} has no bound for {sample.name}: {' '.join(refusals)} There are {others}.")


def _offers_a_bound(name: str, build: Builder, sample: Sample) -> bool:
    """Whether a family has a bound with these parameters; the bootstrap, which takes long, has one for all."""
    if name == "bootstrap":
        return True
    try:
        build(sample)
    except ValueError:
        return False
    return True
