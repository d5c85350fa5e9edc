"""What the documentation shows runs: the Python blocks of the README and the snippets that pages include."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf8"), re.DOTALL)
SNIPPETS = sorted((ROOT / "docs" / "snippets").glob("*.py"))


def run(arguments, folder):
    # one thread, as the tests run beside each other
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_there_is_something_to_run():
    assert len(BLOCKS) == 2
    assert len(SNIPPETS) >= 5


@pytest.mark.parametrize("block", BLOCKS, ids=["quick start", "grid search"])
def test_readme(block, tmp_path):
    result = run(["-c", block], tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda path: path.stem)
def test_snippet(snippet, tmp_path):
    result = run([str(snippet)], tmp_path)
    assert result.returncode == 0, result.stderr
