"""Fits in processes of their own, over gloo."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from fairconstrained import PartialParityClassifier
from fairconstrained.distributed import fit

pytestmark = pytest.mark.slow


def ended(tmp_path, size, what):
    """Exit status and messages of every process."""
    command = [sys.executable, "-m", "tests.distributed.worker", str(tmp_path / "store")]
    processes = [
        subprocess.Popen([*command, str(rank), str(size), what], stderr=subprocess.PIPE, text=True)
        for rank in range(size)
    ]
    try:
        return [(process.communicate(timeout=240)[1], process.returncode)[::-1] for process in processes]
    finally:
        for process in processes:
            process.kill()


@pytest.mark.parametrize("size", [2, 4])
def test_the_model_of_several_processes_is_that_of_one(tmp_path, size):
    for status, messages in ended(tmp_path, size, "all"):
        assert status == 0, messages


def test_a_process_that_ends_is_an_error_of_all_others(tmp_path):
    begin = time.monotonic()
    first, lost, last = ended(tmp_path, 3, "lost")
    assert lost[0] == 9
    for status, messages in (first, last):
        assert status == 1
        assert "ProcessLost: process 1 of 3 has ended" in messages
        assert "torchrun --max-restarts" in messages
    assert time.monotonic() - begin < 120


def test_processes_have_to_be_started():
    with pytest.raises(RuntimeError, match="start the processes with torchrun"):
        fit(PartialParityClassifier(), [[0.0]], [0])
