"""FairRanker on LightGBM's example of learning to rank, by quality group, and on up to a million documents.

The example names no groups: its documents are divided at the median of the feature that tells most about the grade, as
pages of high and of low quality would be.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from benchmarks._common import data_folder, set_threads
from benchmarks.rate_parity.parameters import NETWORK
from fairconstrained import FairRanker
from fairconstrained.datasets import make_biased_ranking
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import pairwise_ranking_gap

__all__ = ["measure", "quality_of"]

KAPPA = 0.02
DOCUMENTS = (10_000, 100_000, 1_000_000)
_PER_QUERY = 10
_HIDDEN = (64,)


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Methods on the example, and seconds by number of documents."""
    set_threads(1)
    return {"ranking": _example(quick), "ranking_rows": _rows(DOCUMENTS[:1] if quick else DOCUMENTS)}


def _example(quick: bool) -> pd.DataFrame:
    raw = np.load(data_folder() / "ltr_lightgbm_example.npz")
    parts = {}
    for part in ("train", "test"):
        sizes = raw[f"group_{part}"]
        parts[part] = raw[f"X_{part}"], raw[f"y_{part}"], np.repeat(np.arange(sizes.size), sizes)
    X, y, _ = parts["train"]
    quality = quality_of(X, y)
    at = float(np.median(X[:, quality]))
    network = {"hidden_layer_sizes": _HIDDEN, "alpha": 1e-3}
    methods: dict[str, dict[str, Any]] = {
        "unconstrained": {"kappa": None},
        "auto": {},
        **{f"{name}, network": network | _options(name, options, quick) for name, options in NETWORK.items()},
    }
    rows = []
    for name, options in tqdm(methods.items(), desc="ranking"):
        model = make_pipeline(
            StandardScaler(), FairRanker(**{"kappa": KAPPA, "random_state": 0, "alpha": 1e-3} | options)
        )
        X, y, qid = parts["train"]
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)  # the table tells what holds
            model.fit(X, y, fairranker__qid=qid, fairranker__sensitive_features=X[:, quality] > at)
        row: dict[str, Any] = {"method": name, "seconds": time.process_time() - begin}
        for part, (X, y, qid) in parts.items():
            row[f"{part}_right"] = model[-1].score(model[:-1].transform(X), y, qid=qid)
            groups = X[:, quality] > at
            row[f"{part}_gap"] = pairwise_ranking_gap(y, model.predict(X), qid=qid, sensitive_features=groups)
        rows.append(row | {"status": model[-1].status_})
    return pd.DataFrame(rows)


def quality_of(X: np.ndarray, y: np.ndarray) -> int:
    """The feature that tells most about the grade."""
    return int(np.nanargmax([abs(np.corrcoef(column, y)[0, 1]) if column.std() else 0.0 for column in X.T]))


def _options(name: str, options: dict[str, Any], quick: bool) -> dict[str, Any]:
    return {"solver": name, "solver_options": options, "max_iter": 2 if quick and name != "auto" else None}


def _rows(sizes: tuple[int, ...]) -> pd.DataFrame:
    rows = []
    for size in sizes:
        X, y, qid, groups = make_biased_ranking(size // _PER_QUERY, _PER_QUERY, random_state=0)
        begin = time.process_time()
        model = FairRanker(KAPPA).fit(X, y, qid=qid, sensitive_features=groups)
        seconds = time.process_time() - begin
        table = model.pair_accuracies_
        rows.append(
            {
                "documents": size,
                "pairs": int(table.iloc[:, 0].sum()),
                "seconds": seconds,
                "gap": model.constraint_values_["pairwise_ranking"],
                "right": model.score(X, y, qid=qid),
                "evaluations": model.n_evaluations_,
            }
        )
    return pd.DataFrame(rows)
