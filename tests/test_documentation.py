"""Code in the documentation runs: the Python blocks of the README and the snippets that pages include."""

import importlib
import inspect
import multiprocessing
import re
from multiprocessing import forkserver
from pathlib import Path

import pytest

from fairconstrained.constraints.group_rates import NAMED_RATES
from fairconstrained.metrics import decision_rates

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf8"), re.DOTALL)
SNIPPETS = sorted((ROOT / "docs" / "snippets").glob("*.py"))
#: Packages that a snippet needs besides those of the tests.
NEEDED = {
    "deploy_onnx": ["skl2onnx", "onnxruntime"],
    "deploy_skops": ["skops"],
    "from_fairlearn": ["fairlearn"],
    "from_fairlearn_metrics": ["fairlearn"],
}
#: What every block imports, which takes longer than most blocks.
LIBRARIES = [
    "fairconstrained",
    "matplotlib.pyplot",
    "pandas",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.model_selection",
    "sklearn.pipeline",
    "torch",
]
#: Code of the process: the block as a program of its own, and what it prints in files.
PROGRAM = """
import os, runpy
os.chdir(folder)
for stream, name in enumerate(("stdout", "stderr"), start=1):
    os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), stream)
runpy.run_path(script, run_name="__main__")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """``run(script)``: the exit code, the output and the errors of a process of its own.

    The processes are forks of one that has loaded the libraries and the package, and done nothing else.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # as the tests run beside each other
        patch.setenv("MPLBACKEND", "Agg")
        forkserver.ensure_running()

    def run_script(script):
        folder = tmp_path_factory.mktemp("run")
        process = context.Process(target=exec, args=(PROGRAM, {"script": str(script), "folder": str(folder)}))
        process.start()
        process.join()
        return process.exitcode, *((folder / name).read_text(encoding="utf8") for name in ("stdout", "stderr"))

    return run_script


def test_there_is_something_to_run():
    assert len(BLOCKS) == 4
    assert len(SNIPPETS) >= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    BLOCKS,
    ids=["first", "promise", "grid search", "new data"],
)
def test_readme(run, block, tmp_path):
    script = tmp_path / "block.py"
    script.write_text(block, encoding="utf8")
    exit_code, output, errors = run(script)
    assert exit_code == 0, errors
    assert output.strip()


@pytest.mark.slow
@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda path: path.stem)
def test_snippet(run, snippet):
    for package in NEEDED.get(snippet.stem, ()):
        pytest.importorskip(package)
    exit_code, _, errors = run(snippet)
    assert exit_code == 0, errors


def code_on(page):
    """Words in code of a page of the guide."""
    text = (ROOT / "docs" / "guide" / f"{page}.rst").read_text(encoding="utf8")
    return set(re.findall(r"\w+", " ".join(re.findall(r"`+([^`]+)`+", text))))


def test_the_page_on_notions_has_every_name():
    assert {*NAMED_RATES, *decision_rates.__all__} - code_on("notions") == set()


@pytest.mark.parametrize(
    "module", ["adversarial", "datasets", "metrics", "postprocessing", "preprocessing", "reductions"]
)
def test_the_page_on_fairlearn_has_every_name(module):
    pytest.importorskip("fairlearn")
    theirs = importlib.import_module(f"fairlearn.{module}")
    classes = [value for name in theirs.__all__ if inspect.isclass(value := getattr(theirs, name))]
    arguments = {argument for one in classes for argument in inspect.signature(one).parameters}
    assert {*theirs.__all__, *arguments} - {"args", "kwargs"} - code_on("from_fairlearn") == set()
