"""Communities and Crime: 535 overlapping groups, networks, hinge losses of groups against that of all rows.

The bound is on every group or, as in the paper (eq. 18), on the mean over the groups. The groups are those with more
than 1 % of the rows of eleven thresholds on each of three percentages, the first 535 of them: the paper does not say
how its ten thresholds make that number. Five hidden layers learn these few rows by heart, and then the mean excess of
the groups is negative without any bound. So the mean is bounded for a smaller network with a larger penalty, where it
is about 0.1 without a bound; five hidden layers have the bound on every group.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._common import RESULTS, data_folder, median_seconds, set_threads
from benchmarks._runner import Row, read, run_all
from benchmarks.rate_parity.parameters import NETWORK
from fairconstrained.constraints import RateGap
from fairconstrained.data import FairData
from fairconstrained.groups import Groups, threshold_groups
from fairconstrained.metrics import rate_gap
from fairconstrained.models import LinearModel, Perceptron, mlp
from fairconstrained.objectives import Logistic
from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers import make_solver

__all__ = ["measure"]

KAPPA = 0.02
N_GROUPS = 535
#: Hidden layers and penalty, by what is bounded.
NETWORKS = {"mean": ((8,), 0.1), "max": ((32,) * 5, 1e-3)}
N_SEEDS, N_EPOCHS = 5, 100
METHODS = ("unconstrained", *NETWORK)
COLUMNS = (
    *("task", "status", "bound", "seed", "method", "epoch", "seconds", "message"),
    *(f"{part}_{value}" for part in ("train", "test") for value in ("error", "log_loss", "mean_excess", "max_excess")),
)
_COLUMNS = ["racepctblack", "racePctHisp", "racePctAsian"]
#: Crime rates above it are the upper 30 %.
_CRIME = 0.28


class Communities(NamedTuple):
    """Features without identifiers, labels, and which rows are in every group."""

    X: np.ndarray
    y: np.ndarray
    members: pd.DataFrame


def load() -> Communities:
    """Missing numbers of police departments are filled with medians."""
    frame = pd.read_parquet(data_folder() / "communities_crime.parquet")
    names = ["state", "county", "community", "communityname", "fold", "ViolentCrimesPerPop"]
    features = frame.drop(columns=names).astype(float)
    members = threshold_groups(frame, _COLUMNS, quantiles=np.linspace(0.5, 0.99, 11))
    labels = np.where(frame["ViolentCrimesPerPop"] >= _CRIME, 1, -1)
    return Communities(features.fillna(features.median()).to_numpy(), labels, members.iloc[:, :N_GROUPS])


@dataclass(frozen=True)
class Fit:
    """One method on one split; the options belong to the name, so that other options are another fit."""

    bound: str
    seed: int
    method: str
    epochs: int

    @property
    def options(self) -> dict[str, Any]:
        """Options of the solver."""
        return NETWORK.get(self.method, {}) | {"max_epochs": self.epochs}

    @property
    def name(self) -> str:
        """Name of the fit, with its options."""
        return f"{self.bound}, {NETWORKS[self.bound]}, {self.seed}, {self.method}, {self.options}"

    @property
    def columns(self) -> Row:
        """Columns that all rows of the fit share."""
        common = {"bound": self.bound, "seed": self.seed, "method": self.method}
        return {"task": self.name, "status": "ok", "message": ""} | common


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """How fits ended, and what an iteration costs; the epochs of every fit are kept beside."""
    set_threads(1)
    path = RESULTS / f"rate_parity{'_quick' if quick else ''}_epochs.csv"
    seeds, epochs = (1, 2) if quick else (N_SEEDS, N_EPOCHS)
    fits = [Fit(bound, seed, name, epochs) for seed in range(seeds) for bound in NETWORKS for name in METHODS]
    run_all(fits, _rows_of, path, COLUMNS, jobs=1)
    return {"communities": _summary(read(path, COLUMNS)), "iteration": _iterations()}


class _Part(NamedTuple):
    problem: Problem
    y: np.ndarray
    members: pd.DataFrame


@cache
def _parts(bound: str, seed: int) -> dict[str, _Part]:
    data = load()
    split = train_test_split(data.X, data.y, data.members, test_size=0.3, random_state=seed, stratify=data.y)
    X, test_X, y, test_y, members, test_members = split
    kept = (members.sum() > 0) & (test_members.sum() > 0)  # small groups may have no row in a part
    scaler = StandardScaler().fit(X)
    rows = {"train": (X, y, members), "test": (test_X, test_y, test_members)}
    return {
        name: _Part(_problem(scaler.transform(X), y, members.loc[:, kept], bound), y, members.loc[:, kept])
        for name, (X, y, members) in rows.items()
    }


def _problem(X: np.ndarray, y: np.ndarray, members: pd.DataFrame, bound: str) -> Problem:
    hidden, penalty = NETWORKS[bound]
    groups = Groups.of(members, overlapping=True)
    data = FairData.from_arrays(X, y.astype(float), groups.codes, groups.labels, unions=groups.unions)
    constraint = RateGap(KAPPA, constraint="intersectional", rate="hinge", agg=bound).unchecked(data)
    return Problem(Logistic().bind(data), (constraint,), data, model=_network(X.shape[1], hidden, penalty))


def _rows_of(fit: Fit) -> list[Row]:
    """A row for every epoch, and one for what is returned, which has no epoch."""
    parts, rows = _parts(fit.bound, fit.seed), []
    problem = parts["train"].problem
    solved = problem.without_constraints() if fit.method == "unconstrained" else problem
    solver = make_solver(
        "adam_lagrangian" if fit.method in ("auto", "unconstrained") else fit.method, fit.options, solved
    )
    begin = time.process_time()

    def note(epoch: int | None, params: np.ndarray, message: str = "") -> None:
        row = fit.columns | {"epoch": epoch, "seconds": time.process_time() - begin, "message": message}
        for name, part in parts.items():
            row |= {f"{name}_{key}": value for key, value in _judged(part, params).items()}
        rows.append(row)

    result = solver.solve(
        solved, None, np.random.default_rng(fit.seed), lambda record: note(record["n_iter"], record["params"])
    )
    note(None, result.model_state, result.message)
    return rows


def _judged(part: _Part, params: np.ndarray) -> dict[str, float]:
    problem = part.problem
    scores = np.empty(part.y.size)
    scores[problem.data.order] = FullBatchView(problem).at(problem.start(params)).scores
    options: dict[str, Any] = {"constraint": "intersectional", "rate": "hinge"}
    excess = {
        f"{how}_excess": rate_gap(part.y, scores, sensitive_features=part.members, agg=how, **options)
        for how in ("mean", "max")
    }
    error = float(np.mean(np.where(scores > 0, 1, -1) != part.y))
    return {"error": error, "log_loss": float(np.logaddexp(0, -part.y * scores).mean())} | excess


def _summary(epochs: pd.DataFrame) -> pd.DataFrame:
    """Means of what the fits returned, and how many of them stopped early."""
    ends = epochs[epochs.epoch.isna()]
    ends = ends.assign(stopped=ends.message.fillna("") != "")
    names = ["bound", "method"]
    numbers = [name for name in COLUMNS if name.startswith(("train", "test"))]
    table = ends.groupby(names, sort=False)
    counts = table.agg(seeds=("seed", "nunique"), stopped=("stopped", "sum"))
    return counts.join(table[numbers].mean()).reset_index()


def _iterations() -> pd.DataFrame:
    """Value and gradient of the objective and all constraints at once, with 2 groups and with 535."""
    data = load()
    X = StandardScaler().fit_transform(data.X)
    rows = []
    for title, model in (
        ("linear", LinearModel(X.shape[1])),
        ("five hidden layers", _network(X.shape[1], *NETWORKS["max"])),
    ):
        calls = [_iteration(model, X, data.y, data.members.iloc[:, columns]) for columns in (_two(data), slice(None))]
        few, many = (median_seconds(call, repeats=200) for call in calls)
        rows.append({"scores": title, "microseconds_2": 1e6 * few, "microseconds_535": 1e6 * many, "ratio": many / few})
    return pd.DataFrame(rows)


def _network(n_features: int, hidden: tuple[int, ...], penalty: float) -> Perceptron:
    return Perceptron(lambda n_in, n_out: mlp(n_in, n_out, hidden), n_features, alpha=penalty, device="cpu")


def _two(data: Communities) -> np.ndarray:
    """The largest and the smallest group."""
    sizes = data.members.sum().to_numpy()
    return np.array([sizes.argmax(), sizes.argmin()])


def _iteration(model: Any, X: np.ndarray, y: np.ndarray, members: pd.DataFrame) -> Callable[[], Any]:
    groups = Groups.of(members, overlapping=True)
    data = FairData.from_arrays(X, y.astype(float), groups.codes, groups.labels, unions=groups.unions)
    constraint = RateGap(KAPPA, constraint="intersectional", rate="hinge").unchecked(data)
    problem = Problem(Logistic().bind(data), (constraint,), data, model=model)
    view, z = FullBatchView(problem), problem.start(model.init(np.random.default_rng(0)))
    multipliers = np.full(len(problem.component_names), 1 / len(problem.component_names))
    return lambda: view.at(z).gradient(1.0, multipliers)
