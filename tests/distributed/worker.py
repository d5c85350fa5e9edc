"""One process of a fit, for `multiprocessing`."""

import os
import signal
import sys
import warnings
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from fairconstrained import AUCFairClassifier, LossParityClassifier, PartialParityClassifier
from fairconstrained.callbacks import resumable
from fairconstrained.datasets import make_biased_classification
from fairconstrained.distributed import fit
from fairconstrained.distributed.requests import LeaderParts
from fairconstrained.tables import array_table

ESTIMATORS = [
    PartialParityClassifier(0.2, constraint="equalized_odds", objective="zero_one", random_state=0),
    AUCFairClassifier(0.05, random_state=0),
    LossParityClassifier(0.05, hidden_layer_sizes=(4,), max_epochs=2, random_state=0),
]
#: What is killed, and goes on.
SAVED = PartialParityClassifier(
    0.1, constraint="demographic_parity", solver="augmented_lagrangian", new_row_folds=None, random_state=0
)


def main(store, rank, size, what, messages):
    """Fit; the messages of the process are written to a file."""
    with open(messages, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    LeaderParts.most_gathered = 0
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    X, y, group = make_biased_classification(600, n_features=5, random_state=0)
    ends = np.append(0, np.cumsum(np.random.default_rng(0).multinomial(600, np.full(size, 1 / size))))
    own = slice(ends[rank], ends[rank + 1])
    if what == "lost" and rank == 1:
        X = array_table(X[own], block_size=50)
        for k in range(len(X._parts._readers)):  # ends like a process that is killed, in the middle of the fit
            X._parts._readers[k] = reads_until(X._parts._readers[k], 30, partial(os._exit, 9))
        fit(ESTIMATORS[0], X, y[own], sensitive_features=group[own])
    if what in ("killed", "resumed"):
        saves_and_goes_on(what, Path(store).parent, X, y, group, own)
        return
    for estimator in ESTIMATORS if what == "all" else ESTIMATORS[:1]:
        model = fit(estimator, X[own], y[own], sensitive_features=group[own])
        if rank:  # the first process alone compares: the others would compete with it for the cores
            continue
        whole = estimator.fit(X, y, sensitive_features=group)
        np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-7)
        assert abs(model.objective_ - whole.objective_) <= 1e-9 * abs(whole.objective_)
        for name, value in whole.constraint_values_.items():
            assert abs(model.constraint_values_[name] - value) <= 1e-9


def saves_and_goes_on(what, folder, X, y, group, own):
    """The fit that is saved; ``killed`` ends the first process in the middle, ``resumed`` goes on from there."""
    is_first, reads = own.start == 0, count()
    table = array_table(X[own])
    until = int((folder / "n_reads").read_text()) // 2 if what == "killed" else np.inf
    reader = table._parts._readers[0]
    kill = partial(os.kill, os.getpid(), signal.SIGKILL)
    table._parts._readers[0] = reads_until(reader, until if is_first else np.inf, kill, reads)
    with resumable(folder / "checkpoint", every=0):
        model = fit(SAVED, table, y[own], sensitive_features=group[own])
    if is_first:
        (folder / "n_reads").write_text(str(next(reads)))
        np.save(folder / "coef.npy", model.coef_)


def reads_until(read, most, end=None, calls=None):
    """The reader of a block, which ends the process at its call number ``most``."""
    calls = count() if calls is None else calls

    def reads():
        if next(calls) >= most:
            end()
        return read()

    return reads
