"""Python blocks of the README run, and pages of the guide are complete; ``docs/runcode.py`` runs what pages include."""

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairconstrained.constraints.group_rates import NAMED_RATES
from fairconstrained.metrics import decision_rates

ROOT = Path(__file__).parents[1]
#: Blocks of the README in Python, each with the block of its output, if there is one.
BLOCKS = re.findall(
    r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", (ROOT / "README.md").read_text(encoding="utf8"), re.DOTALL
)


def test_there_is_something_to_run():
    assert [bool(output) for _, output in BLOCKS] == [True, True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize(("block", "output"), BLOCKS, ids=["first", "promise", "grid search", "new data"])
def test_readme(block, output, tmp_path):
    script = tmp_path / "block.py"
    script.write_text(block, encoding="utf8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}  # as the tests run beside each other
    run = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    if output:
        number = r"\d+\.\d+"
        assert re.sub(number, "", run.stdout) == re.sub(number, "", output)
        assert [*map(float, re.findall(number, run.stdout))] == pytest.approx(
            [*map(float, re.findall(number, output))], abs=1e-3
        )


def code_on(page):
    """Words in code of a page of the guide."""
    text = (ROOT / "docs" / "guide" / f"{page}.rst").read_text(encoding="utf8")
    return set(re.findall(r"\w+", " ".join(re.findall(r"`+([^`]+)`+", text))))


def test_the_page_on_notions_has_every_name():
    assert {*NAMED_RATES, *decision_rates.__all__} - code_on("notions") == set()


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guide").glob("*.rst")), ids=lambda page: page.stem)
def test_formulas_stand_below_code_or_a_picture(page):
    text = page.read_text(encoding="utf8")
    before, formula, _ = text.partition(".. math::")
    assert not formula or re.search(r"^\.\. (literalinclude|code-block|image)::", before, re.MULTILINE)


@pytest.mark.parametrize(
    "module", ["adversarial", "datasets", "metrics", "postprocessing", "preprocessing", "reductions"]
)
def test_the_page_on_fairlearn_has_every_name(module):
    pytest.importorskip("fairlearn")
    theirs = importlib.import_module(f"fairlearn.{module}")
    classes = [value for name in theirs.__all__ if inspect.isclass(value := getattr(theirs, name))]
    arguments = {argument for one in classes for argument in inspect.signature(one).parameters}
    assert {*theirs.__all__, *arguments} - {"args", "kwargs"} - code_on("from_fairlearn") == set()
