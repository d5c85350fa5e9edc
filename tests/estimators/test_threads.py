"""Fits limit the number of threads, and put it back."""

import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone

from fairconstrained import FairRanker, NeymanPearsonClassifier, PartialParityClassifier
from fairconstrained.estimators import _base

#: A process of its own, where no test has set a number of threads before.
BEGIN = """
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from threadpoolctl import threadpool_info

from fairconstrained import PartialParityClassifier
from fairconstrained.solvers import SOLVERS

rng = np.random.default_rng(0)
X, groups = rng.normal(size=(200, 2)), np.arange(200) % 2
y = X[:, 0] + rng.normal(size=200) > 0
solver = SOLVERS["augmented_lagrangian"]
solve = solver.solve


def threads():
    return [torch.get_num_threads(), *sorted(lib["num_threads"] for lib in threadpool_info())]


def fit(*_):
    return PartialParityClassifier(kappa=None).fit(X, y, sensitive_features=groups)


before = threads()
assert set(before) == {2}, before
"""
#: Fits one after the other, one of them interrupted.
IN_TURN = """
fit()
assert threads() == before, threads()

def interrupt(*args, **kwargs):
    assert set(threads()) == {1}, threads()
    raise KeyboardInterrupt

solver.solve = interrupt
try:
    fit()
except KeyboardInterrupt:
    assert threads() == before, threads()
else:
    raise AssertionError
"""
#: Three fits at a time, of which one fails; each of them is the last to end once.
OVERLAPPING = """
everyone_in, order, raised = threading.Barrier(3), iter(range(12)), 0

def solve_together(*args, **kwargs):
    number = next(order)
    everyone_in.wait(60)
    assert set(threads()) == {1}, threads()
    if number % 3 == 2:
        raise RuntimeError("on purpose")
    return solve(*args, **kwargs)

def checked(_):
    own = torch.get_num_threads()
    try:
        model = fit()
    except RuntimeError as error:
        model = None
        assert "on purpose" in str(error)
    assert torch.get_num_threads() == own == 2
    return model

solver.solve = solve_together
with ThreadPoolExecutor(3) as pool:
    models = list(pool.map(checked, range(12)))
assert threads() == before, threads()
assert models.count(None) == 4
solutions = {model.coef_.tobytes() for model in models if model is not None}
assert len(solutions) == 1
"""
#: The first fit begins in the main thread, and ends before a second one does.
FIRST_ENDS_FIRST = """
first_in, second_in, first_out = (threading.Event() for _ in range(3))
order = iter(["first", "second"])

def in_turn(*args, **kwargs):
    if next(order) == "first":
        first_in.set()
        assert second_in.wait(60)
    else:
        second_in.set()
        assert first_out.wait(60)
        assert set(threads()) == {1}, threads()
    return solve(*args, **kwargs)

def second():
    assert first_in.wait(60)
    return fit()

solver.solve = in_turn
with ThreadPoolExecutor(1) as pool:
    other = pool.submit(second)
    fit()
    first_out.set()
    other.result()
assert threads() == before, threads()
"""


@pytest.mark.slow
def test_fits_leave_the_number_of_threads_alone():
    """One process for all cases: to load the package takes longer than they do."""
    settings = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "2")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGIN + IN_TURN + OVERLAPPING + FIRST_ENDS_FIRST],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("hidden", [None, [2]], ids=["linear", "network"])
@pytest.mark.parametrize(
    ("estimator", "columns", "n_rows"),
    [
        (PartialParityClassifier(kappa=0.5), {"sensitive_features": np.arange(60) // 30}, 60),
        (FairRanker(kappa=0.5), {"sensitive_features": np.arange(60) % 4 // 2, "qid": np.arange(60) // 6}, 90),
        (NeymanPearsonClassifier(0.9, priority_class=1), {}, 60),
    ],
    ids=["rows", "pairs", "margins"],
)
def test_linear_scores_take_one_thread_whatever_the_rows_are(estimator, columns, n_rows, hidden, monkeypatch):
    asked = []

    @contextmanager
    def limited(n_samples):
        asked.append(n_samples)
        yield

    monkeypatch.setattr(_base, "limited_threads", limited)
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    model = clone(estimator).set_params(hidden_layer_sizes=hidden, solver="augmented_lagrangian")
    model.fit(X, y, **columns)
    assert asked == [1 if hidden is None else n_rows]
