"""Fixtures of the tests of all layers: small data in the package's own form, and the real data where it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import torch
from hypothesis import settings
from packaging.version import Version
from sklearn.utils import estimator_checks, get_tags
from threadpoolctl import threadpool_limits

from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.distributed.requests import LeaderParts
from fairconstrained.estimators import new_rows
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic, Loss
from fairconstrained.problem import Problem
from fairconstrained.tables import Parts
from fairconstrained.views import DifferenceOfConvex, FullBatch, Stochastic

# Benchmarks compare with packages of the extra "compare", which the lowest versions of `make test-min` leave out.
collect_ignore = [] if find_spec("fairlearn") else ["benchmarks", "certification/test_benchmark.py"]

# The suite runs one worker on every core. One thread also fixes the order in which torch adds up.
torch.set_num_threads(1)
threadpool_limits(1)

# An estimate for new rows takes two fits more: tests that are about it ask for it, see `new_row_estimates`.
N_FOLDS = new_rows._FOLDS["training"]
new_rows._FOLDS["training"] = None

# The same examples in every run, and no deadline: a slow machine is not an error.
settings.register_profile("tests", derandomize=True, deadline=None, max_examples=10)
settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begin every test at the same point of the global generators, which ``random_state=None`` draws from."""
    np.random.seed(0)  # noqa: NPY002 - there is no other way to seed the global generator
    torch.manual_seed(0)


@pytest.fixture
def classes_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn's checks call the smaller label of binary rows the first class.

    Those of scikit-learn 1.6 take the label of the first row, so that one check gives rows with weights and the same
    rows repeated, in another order, different labels and expects the same model.
    """
    by_first_row = estimator_checks._enforce_estimator_tags_y

    def by_value(estimator: Any, y: np.ndarray) -> np.ndarray:
        tags = get_tags(estimator).classifier_tags
        is_binary = tags is not None and not tags.multi_class and y.size > 0
        return np.where(y == y.min(), y, y.min() + 1) if is_binary else by_first_row(estimator, y)

    if Version(sklearn.__version__) < Version("1.7"):
        monkeypatch.setattr(estimator_checks, "_enforce_estimator_tags_y", by_value)


@pytest.fixture(scope="module")
def new_row_estimates() -> Iterator[None]:
    """All fits of a module estimate the bounded metrics on new rows, as those of users do by default.

    In other modules only those with ``new_row_folds`` or ``promise="new_rows"`` do.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(new_rows._FOLDS, "training", N_FOLDS)
        yield


@pytest.fixture
def routing() -> Iterator[None]:
    """Metadata reaches the steps of pipelines and the scorers of searches."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="session")
def make_data() -> Callable[..., FairData]:
    """Small `FairData` with groups of unequal size, in an order that the rows of the caller do not have."""

    def make(
        counts: tuple[int, ...] = (23, 31),
        n_features: int = 3,
        weighted: bool = False,
        sparse: bool = False,
        classes: bool = True,
        shift: float = 0.4,
        seed: int = 0,
    ) -> FairData:
        rng = np.random.default_rng(seed)
        codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        X = rng.normal(size=(codes.size, n_features)) + shift * codes[:, None]
        y = X[:, 0] + rng.normal(size=codes.size)
        weights = rng.uniform(0.2, 3.0, codes.size) if weighted else None
        labels = tuple("abcdefgh"[: len(counts)])
        if sparse:
            X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
        return FairData.from_arrays(X, np.where(y > 0, 1.0, -1.0) if classes else y, codes, labels, weights)

    return make


@pytest.fixture(scope="session")
def real_folder() -> Path:
    """The folder with the real data sets, which are not part of the package; skips where there is none."""
    folder = Path(os.environ.get("FAIRCONSTRAINED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data: neither $FAIRCONSTRAINED_DATA nor ../shared/data is a folder")
    return folder


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of which no rows are few enough to be brought into memory, or to the first process."""
    for parts in (Parts, LeaderParts):
        monkeypatch.setattr(parts, "most_gathered", 0)


@pytest.fixture(scope="session")
def adult(real_folder: Path) -> tuple[tuple[sp.csr_array, np.ndarray, np.ndarray], ...]:
    """Features, labels and sexes of the training rows of Adult, then of the test rows, as they are split officially."""
    path = real_folder / "adult_a9a.npz"
    if not path.is_file():
        pytest.skip("no adult_a9a.npz in the folder with the real data")
    with np.load(path) as raw:
        X, y, train = sp.csr_array(raw["X"].astype(float)), raw["y"], raw["is_train"]
        sex = np.where(raw["female"].astype(bool), "female", "male")
    return tuple((X[np.flatnonzero(rows)], y[rows], sex[rows]) for rows in (train, ~train))


@dataclass(frozen=True, eq=False)
class MeanGap(BoundConstraint):
    """``|mean score of the first group - mean score of the second| <= kappa``, without any view but the exact one.

    Linear in the scores, so that problems with it have a known optimum; and a constraint of a third party: it
    uses nothing but the contract.
    """

    data: FairData
    kappa: float
    margin: float = 0.0
    granularity: float = 1e-5  # a plain attribute is a property enough
    name: str = "mean_gap"

    @property
    def component_names(self) -> tuple[str, ...]:
        return ("mean_gap[first - second]", "mean_gap[second - first]")

    def metric(self, scores: np.ndarray) -> float:
        weights = self.data.group_weights.numpy()
        first, second = (weights[rows] @ scores[rows] for rows in self.data.slices)
        return abs(float(first - second))

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Any:
        return replace(self, margin=margin)

    def _gaps(self, scores: torch.Tensor) -> torch.Tensor:
        first, second = (self.data.group_weights[rows] @ scores[rows] for rows in self.data.slices)
        return torch.stack([first - second, second - first]) - (self.kappa - self.margin)


class WithValues(MeanGap, FullBatch):
    def values(self, scores: torch.Tensor, aux: torch.Tensor) -> torch.Tensor:
        return self._gaps(scores)


class WithSplit(MeanGap, DifferenceOfConvex):
    """Split with a parabola that a linear function would not need, so that `minus` is something to linearise."""

    def plus(self, scores: torch.Tensor, aux: torch.Tensor) -> torch.Tensor:
        return self._gaps(scores) + self.minus(scores, aux)

    def minus(self, scores: torch.Tensor, aux: torch.Tensor) -> torch.Tensor:
        return (self.data.weights @ scores**2).expand(2) / 2


class WithBatches(MeanGap, Stochastic):
    """With mini-batches."""


class WithAll(WithValues, WithSplit, WithBatches):
    """Every view."""


@pytest.fixture(scope="session")
def mean_gap() -> Callable[..., BoundConstraint]:
    """``mean_gap(data, kappa, *views)``: the constraint `MeanGap` with these views, or all."""
    classes = {
        frozenset({FullBatch}): WithValues,
        frozenset({DifferenceOfConvex}): WithSplit,
        frozenset({Stochastic}): WithBatches,
        frozenset(): WithAll,
    }

    def make(data: FairData, kappa: float, *views: type) -> BoundConstraint:
        return classes[frozenset(views)](data, kappa)

    return make


@pytest.fixture(scope="session")
def make_problem() -> Callable[..., Problem]:
    """A problem on data with a linear model and constraints that are bound already."""

    def make(data: FairData, *constraints: BoundConstraint, loss: Loss | None = None, **model: Any) -> Problem:
        return Problem(
            model=LinearModel(data.n_features, **{"alpha": 0.05, **model}),
            objective=(loss or Logistic()).bind(data),
            constraints=constraints,
            data=data,
        )

    return make
