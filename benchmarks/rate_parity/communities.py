"""Communities and Crime: 535 overlapping groups, five hidden layers, hinge losses of groups against that of all rows.

The bound is on every group or, as in the paper (eq. 18), on the mean over the groups. The groups are those with more
than 1 % of the rows of eleven thresholds on each of three percentages, the first 535 of them: the paper does not say
how its ten thresholds make that number.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from benchmarks._common import data_folder, median_seconds, set_threads
from benchmarks.rate_parity.parameters import NETWORK
from fairconstrained import RateParityClassifier
from fairconstrained.constraints import RateGap
from fairconstrained.data import FairData
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.groups import Groups, threshold_groups
from fairconstrained.metrics import rate_gap
from fairconstrained.models import LinearModel, Perceptron, mlp
from fairconstrained.objectives import Logistic
from fairconstrained.problem import FullBatchView, Problem

__all__ = ["measure"]

KAPPA = 0.02
N_GROUPS = 535
HIDDEN = (32,) * 5
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


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Fits, and what an iteration costs."""
    set_threads(1)
    return {"communities": _fits(seeds=1 if quick else 3, epochs=2 if quick else None), "iteration": _iterations()}


def _fits(seeds: int, epochs: int | None) -> pd.DataFrame:
    data, rows = load(), []
    methods: dict[str, dict[str, Any]] = {
        "unconstrained": {"kappa": None},
        **{name: {"solver": name, "solver_options": options} for name, options in NETWORK.items()},
    }
    cases = [(agg, seed, name) for agg in ("mean", "max") for seed in range(seeds) for name in methods]
    for agg, seed, name in tqdm(cases, desc="fits"):
        parts = train_test_split(data.X, data.y, data.members, test_size=0.3, random_state=seed, stratify=data.y)
        X, test_X, y, test_y, members, test_members = parts
        kept = (members.sum() > 0) & (test_members.sum() > 0)  # small groups may have no row in a part
        members, test_members = members.loc[:, kept], test_members.loc[:, kept]
        options = {"constraint": "intersectional", "rate": "hinge", "hidden_layer_sizes": HIDDEN, "alpha": 1e-3}
        options["min_group_size"] = 1  # the paper compares groups of one percent of the rows
        classifier = RateParityClassifier(
            **{"kappa": KAPPA, "agg": agg, "max_iter": epochs, "random_state": seed, **options, **methods[name]}
        )
        model = make_pipeline(StandardScaler(), classifier)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)  # the table tells what holds
            model.fit(X, y, rateparityclassifier__sensitive_features=members)
        row = {"bound": agg, "seed": seed, "method": name, "groups": members.shape[1]}
        row["seconds"] = time.process_time() - begin
        for part, features, labels, groups in (("train", X, y, members), ("test", test_X, test_y, test_members)):
            scores = model.decision_function(features)
            row[f"{part}_error"] = float(np.mean(np.where(scores > 0, 1, -1) != labels))
            row[f"{part}_log_loss"] = float(np.logaddexp(0, -labels * scores).mean())
            for how in ("mean", "max"):
                row[f"{part}_{how}_excess"] = rate_gap(
                    labels, scores, sensitive_features=groups, constraint="intersectional", rate="hinge", agg=how
                )
        rows.append(row)
    names = ["bound", "method"]
    return pd.DataFrame(rows).drop(columns="seed").groupby(names, sort=False).mean().reset_index()


def _iterations() -> pd.DataFrame:
    """Value and gradient of the objective and all constraints at once, with 2 groups and with 535."""
    data = load()
    X = StandardScaler().fit_transform(data.X)
    rows = []
    for title, model in (("linear", LinearModel(X.shape[1])), ("five hidden layers", _network(X.shape[1]))):
        calls = [_iteration(model, X, data.y, data.members.iloc[:, columns]) for columns in (_two(data), slice(None))]
        few, many = (median_seconds(call, repeats=200) for call in calls)
        rows.append({"scores": title, "microseconds_2": 1e6 * few, "microseconds_535": 1e6 * many, "ratio": many / few})
    return pd.DataFrame(rows)


def _network(n_features: int) -> Perceptron:
    return Perceptron(lambda n_in, n_out: mlp(n_in, n_out, HIDDEN), n_features, device="cpu")


def _two(data: Communities) -> np.ndarray:
    """The largest and the smallest group."""
    sizes = data.members.sum().to_numpy()
    return np.array([sizes.argmax(), sizes.argmin()])


def _iteration(model: Any, X: np.ndarray, y: np.ndarray, members: pd.DataFrame) -> Callable[[], Any]:
    groups = Groups.of(members, overlapping=True)
    data = FairData.from_arrays(X, y.astype(float), groups.codes, groups.labels, unions=groups.unions)
    constraint = RateGap(KAPPA, constraint="intersectional", rate="hinge").bind(data)
    problem = Problem(model, Logistic().bind(data), (constraint,), data)
    view, z = FullBatchView(problem), problem.start(model.init(np.random.default_rng(0)))
    multipliers = np.full(len(problem.component_names), 1 / len(problem.component_names))
    return lambda: view.at(z).gradient(1.0, multipliers)
