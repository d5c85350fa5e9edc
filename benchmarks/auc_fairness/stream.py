"""One pass over a stream by `AUCFairClassifier.partial_fit`: mirror descent beside the exact moments."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._common import Table, load_a9a, load_bank_table
from benchmarks.auc_fairness.methods import QUADRATIC
from fairconstrained import AUCFairClassifier
from fairconstrained.constraints import QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.metrics import inter_group_auc_gap

KAPPA = 0.5
N_SEEDS = 5
#: Rows of a call.
CHUNK = 1000
MODELS: dict[str, dict[str, Any]] = {
    "moments, linear": {"solver": "moments"},
    "mirror_descent, linear": {"solver": "mirror_descent"},
    "mirror_descent, ten sigmoid units": {"hidden_layer_sizes": (10,)},
    "mirror_descent, ten ReLU units, step 0.1": {
        "hidden_layer_sizes": (10,),
        "activation": "relu",
        "solver_options": {"step": 0.1},
    },
}


def stream() -> pd.DataFrame:
    """a9a and bank in random order, a pass of calls of 1,000 rows; means over five orders, splits and seeds."""
    torch.set_num_threads(1)
    rows = [
        {"data": table.name, "scores": name, **_pass(table, options, seed)}
        for table in (load_a9a(), load_bank_table())
        for name, options in MODELS.items()
        for seed in range(N_SEEDS)
    ]
    return pd.DataFrame(rows).groupby(["data", "scores"], sort=False).mean().reset_index()


def _pass(table: Table, options: dict[str, Any], seed: int) -> dict[str, float]:
    train, test = train_test_split(np.arange(len(table.y)), test_size=0.3, random_state=seed)
    X = table.X.toarray() if hasattr(table.X, "toarray") else table.X
    X = StandardScaler().fit(X[train]).transform(X)
    model = AUCFairClassifier(KAPPA, random_state=seed, **QUADRATIC, **options)
    begin = time.process_time()
    for part in np.array_split(train, len(train) // CHUNK):
        model.partial_fit(X[part], table.y[part], [-1, 1], table.groups[part], groups=np.unique(table.groups))
    scores = model.decision_function(X)
    seconds = time.process_time() - begin
    codes = np.unique(table.groups, return_inverse=True)[1]
    data = FairData.from_arrays(np.empty((len(train), 0)), table.y[train].astype(float), codes[train], (0, 1))
    bound = QuadraticAUCGap(KAPPA).bind(data)
    positive, negative = scores[train][table.y[train] > 0], scores[train][table.y[train] < 0]
    gap = positive.mean() - negative.mean() - 1
    return {
        "train_objective": (gap**2 + positive.var() + negative.var()) / 2,
        "train_surrogate": KAPPA + bound.exact(scores[train][data.order]),
        "reported_surrogate": model.constraint_values_["inter_group_surrogate"],
        "test_auc": roc_auc_score(table.y[test], scores[test]),
        "test_gap": inter_group_auc_gap(table.y[test], scores[test], sensitive_features=table.groups[test]),
        "seconds": seconds,
    }
