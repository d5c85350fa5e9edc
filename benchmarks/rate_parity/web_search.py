"""Figure 7 of the paper: ranking on mini-batches, on generated queries of MSLR-WEB10K's size and shape.

That set has 10,000 queries and 136 features, and the paper makes more than 470,000 pairs of its documents, which is
about what twelve documents of every query make here. A tenth of the queries is kept for the test. The scores are those
of a network, the bound is on the sigmoid rates of the two kinds of pairs.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks._common import RESULTS, set_threads
from benchmarks._runner import Row, read, run_all
from benchmarks.rate_parity.parameters import NETWORK
from fairconstrained import FairRanker
from fairconstrained.datasets import make_biased_ranking
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import pairwise_ranking_gap

__all__ = ["measure"]

KAPPA = 0.02
QUERIES, DOCUMENTS, FEATURES = 10_000, 12, 136
N_SEEDS, N_EPOCHS = 3, 10
_BATCH = 1000
METHODS = ("plada", "multiplier_model")
COLUMNS = (
    *("task", "status", "method", "seed", "pairs", "epoch", "seconds", "objective", "train_gap"),
    *("train_right", "test_right", "test_gap"),
)


@dataclass(frozen=True)
class Fit:
    """One method on one set of queries."""

    method: str
    seed: int
    queries: int
    epochs: int

    @property
    def options(self) -> dict[str, Any]:
        """Options of the solver."""
        return NETWORK[self.method] | {"max_epochs": self.epochs, "batch_size": _BATCH}

    @property
    def name(self) -> str:
        """Name of the fit, with its options."""
        return f"{self.method}, {self.seed}, {self.queries}, {self.options}"

    @property
    def columns(self) -> Row:
        """Columns that all rows of the fit share."""
        return {"task": self.name, "status": "ok", "method": self.method, "seed": self.seed}


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """How fits ended; the epochs of every fit are kept beside, and fits that are there already are not repeated."""
    set_threads(1)
    path = RESULTS / f"rate_parity{'_quick' if quick else ''}_web_search_epochs.csv"
    queries, seeds, epochs = (100, 1, 2) if quick else (QUERIES, N_SEEDS, N_EPOCHS)
    run_all([Fit(m, seed, queries, epochs) for seed in range(seeds) for m in METHODS], _rows_of, path, COLUMNS, jobs=1)
    return {"web_search": _summary(read(path, COLUMNS))}


def _rows_of(fit: Fit) -> list[Row]:
    """A row for every epoch, and one for what is returned, which has no epoch."""
    X, y, qid, groups = make_biased_ranking(fit.queries, DOCUMENTS, FEATURES, random_state=fit.seed)
    is_train = qid < qid.max() - fit.queries // 10 + 1
    ranker = FairRanker(
        KAPPA,
        rate="sigmoid",
        hidden_layer_sizes=(64,),
        alpha=1e-3,
        random_state=fit.seed,
        solver=fit.method,
        solver_options=fit.options,
    )
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)  # the table tells what holds
        ranker.fit(X[is_train], y[is_train], qid=qid[is_train], sensitive_features=groups[is_train])
    end: Row = {"seconds": time.process_time() - begin, "pairs": int(ranker.pair_accuracies_.iloc[:, 0].sum())}
    for part, rows in (("train", is_train), ("test", ~is_train)):
        parts = {"qid": qid[rows], "sensitive_features": groups[rows]}
        end[f"{part}_right"] = ranker.score(X[rows], y[rows], qid=qid[rows])
        end[f"{part}_gap"] = pairwise_ranking_gap(y[rows], ranker.predict(X[rows]), **parts)
    names = {"n_iter": "epoch", "seconds": "seconds", "objective": "objective", "pairwise_ranking": "train_gap"}
    epochs = [{column: record[name] for name, column in names.items()} for record in ranker.history_]
    return [fit.columns | row for row in (*epochs, end)]


def _summary(epochs: pd.DataFrame) -> pd.DataFrame:
    """Means over the sets of queries of what the fits returned."""
    ends = epochs[epochs.epoch.isna()]
    names = ["pairs", "seconds", "train_right", "train_gap", "test_right", "test_gap"]
    table = ends.groupby("method", sort=False)
    return table.agg(seeds=("seed", "nunique")).join(table[names].mean()).reset_index()
