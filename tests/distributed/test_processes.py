"""Fits in processes of their own, over gloo."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from itertools import count

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.distributed import fit
from fairconstrained.tables import array_table
from tests.distributed import worker
from tests.distributed.worker import SAVED, reads_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def context():
    """How processes begin: as copies of one that has imported the package, which takes longer than their fits."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker.__name__])
    return context


def ended(context, tmp_path, size, what, store="store"):
    """Exit status and messages of every process."""
    files = [tmp_path / f"messages of {what} {rank}" for rank in range(size)]
    processes = [
        context.Process(target=worker.main, args=(str(tmp_path / store), rank, size, what, file))
        for rank, file in enumerate(files)
    ]
    for file in files:
        file.touch()  # a process may end before it writes
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(timeout=240)
        return [(process.exitcode, file.read_text()) for process, file in zip(processes, files, strict=True)]
    finally:
        for process in processes:
            process.kill()


@pytest.mark.parametrize("size", [2, 4])
def test_the_model_of_several_processes_is_that_of_one(context, tmp_path, size):
    for status, messages in ended(context, tmp_path, size, "all"):
        assert status == 0, messages


def test_a_process_that_ends_is_an_error_of_all_others(context, tmp_path):
    begin = time.monotonic()
    first, lost, last = ended(context, tmp_path, 3, "lost")
    assert lost[0] == 9
    for status, messages in (first, last):
        assert status == 1
        assert "ProcessLost: process 1 of 3 has ended" in messages
        assert "within fairconstrained.callbacks.resumable" in messages
    assert time.monotonic() - begin < 120


@pytest.mark.usefixtures("in_parts")
def test_a_fit_goes_on_after_its_first_process_was_killed(context, tmp_path):
    X, y, group = make_biased_classification(600, n_features=5, random_state=0)
    table, reads = array_table(X), count()
    table._parts._readers[0] = reads_until(table._parts._readers[0], np.inf, calls=reads)
    whole = clone(SAVED).fit(table, y, sensitive_features=group)
    n_reads = next(reads)
    (tmp_path / "n_reads").write_text(str(n_reads))
    first, other = ended(context, tmp_path, 2, "killed", "store of the killed")
    assert first[0] == -signal.SIGKILL
    assert (other[0], "ProcessLost" in other[1]) == (1, True)
    assert (tmp_path / "checkpoint").exists()
    for status, messages in ended(context, tmp_path, 2, "resumed", "store of the resumed"):
        assert status == 0, messages
    np.testing.assert_allclose(np.load(tmp_path / "coef.npy"), whole.coef_, rtol=1e-6)
    assert int((tmp_path / "n_reads").read_text()) < 0.8 * n_reads
    assert not (tmp_path / "checkpoint").exists()


def test_the_example_fits_to_the_files_of_two_processes(tmp_path):
    X, y, group = make_biased_classification(400, n_features=3, random_state=0)
    people = pd.DataFrame(X).add_prefix("x").assign(label=y, group=group)
    people[:250].to_parquet(tmp_path / "part-0.parquet")
    people[250:].to_parquet(tmp_path / "part-1.parquet")
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*run, "examples/fit_parts.py", str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("optimal")
    model = pd.read_pickle(tmp_path / "model.pickle")
    whole = clone(model).fit(people[model.feature_names_in_], y, sensitive_features=group)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6)


def test_processes_have_to_be_started():
    with pytest.raises(RuntimeError, match="start the processes with torchrun"):
        fit(PartialParityClassifier(), [[0.0]], [0])
