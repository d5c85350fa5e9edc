"""Versions and dates of what the documentation shows as measured, and whether the measured code has changed since.

``docs/benchmarks/manifest.csv`` has a line for every table, for pictures that no benchmark draws, and for pages whose
text has figures: the benchmark, the version of the package, the commit, the date, and a digest of the code that was
measured. `recorded` writes it when a benchmark renews its tables; ``python -m benchmarks.stale`` and the pages of the
documentation read it. Figures of "the example" on a page of the guide are not in it: the tests run its code.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fairconstrained.version import __version__

__all__ = [
    "MANIFEST",
    "MEASURED",
    "Entry",
    "benchmark_of",
    "changes_since",
    "code_lines",
    "digest",
    "enter",
    "entries",
    "is_measured",
    "recorded",
    "remark",
]

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "docs" / "benchmarks" / "manifest.csv"

# Modules that a kind of fit runs through; "*" are the modules of a folder itself, a folder has all below it.
_SOLVERS = ("solvers/*", "points.py", "problem.py", "terms.py", "kernels.py", "surrogates.py")
_LINEAR = ("models/linear.py", "objectives", *_SOLVERS)
_NETWORKS = ("models/module.py", "models/perceptron.py", "objectives/losses.py", *_SOLVERS)
_PARITY = ("estimators/partial_parity.py", "estimators/_parity.py", "constraints/demographic_parity.py",
           "constraints/statistical_parity.py", *_LINEAR)  # fmt: skip
_AUC = ("estimators/auc_fair.py", "constraints/pairwise_auc.py", "constraints/quadratic_auc_gap.py", "pairwise")
_RATES = ("estimators/rate_parity.py", "constraints/group_rates.py", "constraints/rate_gap.py", *_LINEAR)
_LOSSES = ("estimators/loss_parity.py", "constraints/loss_parity.py", *_NETWORKS)
_BOOSTING = ("estimators/fair_boosting.py", "estimators/_boosting.py", "models/boosted_trees.py", *_SOLVERS)

#: Parts of the package that are measured, by the name of the benchmark, or of the page or snippet of the guide.
MEASURED: dict[str, tuple[str, ...]] = {
    "any_model": ("heads", "postprocessing", *_BOOSTING),
    "auc_fairness": (*_AUC, *_LINEAR, "solvers/published"),
    "boosting_speed": _BOOSTING,
    "bound_speed": (*_AUC, *_LOSSES, "constraints/rate_gap.py"),
    "certification": ("certification",),
    "devices": ("devices.py", "tables/torch_table.py", "models/module.py", *_LINEAR),
    "distributed": ("distributed", "tables", "heads", *_LINEAR),
    "fairness_paths": ("paths", *_PARITY, *_AUC, "constraints/rate_gap.py"),
    "head_speed": ("heads", *_SOLVERS),
    "estimate_cost": ("estimators/new_rows.py", "estimators/_cross_fitted_gaps.py", *_PARITY, *_AUC, *_LOSSES),
    "exact_heads": ("heads", *_SOLVERS),
    "import_time": ("*", "estimators", "solvers", "constraints", "models", "objectives", "checks", "metrics"),
    "large_data": (*_PARITY, *_AUC, "estimators/rate_parity.py", "data.py"),
    "loss_parity": (*_LOSSES, "solvers/published"),
    "new_rows": (
        "estimators/new_rows.py",
        "estimators/_new_row_estimates.py",
        "estimators/_new_row_promise.py",
        "estimators/_cross_fitted_gaps.py",
        "estimators/_standard_errors.py",
        *_PARITY,
        *_AUC,
        *_LOSSES,
    ),
    "notions": ("heads", "estimators/group_loss.py", *_RATES),
    "partial_fairness": (*_PARITY, "estimators/baselines.py", "solvers/published"),
    "rate_parity": (*_RATES, "estimators/fair_ranker.py", "solvers/published"),
    "report_speed": ("reporting", "certification/resampling.py", "metrics"),
    "small_data": ("estimators", *_PARITY, *_AUC, *_RATES),
    "speed": _RATES,
    "training_loop": ("torch", "constraints"),
    "trial": ("estimators", "constraints", "checks", *_LINEAR),
    "weakly_convex": ("estimators/minority_rate.py", "estimators/neyman_pearson.py", "solvers/published", *_LINEAR),
    "demo": ("heads", *_PARITY),
    "baselines": ("estimators/correlation.py", "objectives/correlation.py"),
    "thresholds": ("postprocessing",),
    "snippets.auc_fairness": (*_AUC, *_LINEAR),
    "snippets.certification": ("certification",),
    "snippets.group_loss": ("estimators/group_loss.py", "solvers/interior_point.py"),
    "snippets.loss_parity": _LOSSES,
    "snippets.minority_rate": ("estimators/minority_rate.py", "solvers/published/ipc.py"),
    "snippets.neyman_pearson": ("estimators/neyman_pearson.py", "solvers/published/ipc.py"),
    "snippets.paths": ("paths", *_PARITY),
    "snippets.rate_parity": _RATES,
    "snippets.report": ("reporting",),
}


class Entry(NamedTuple):
    """A line of the manifest.

    Attributes
    ----------
    file : str
        Table in ``docs/benchmarks``, picture in ``docs/images``, or page, by its path below ``docs``.
    benchmark : str
        Name in `MEASURED`.
    version, commit : str
        Version of the package, and commit of the repository, empty outside one.
    date : str
        Day of the measurement, as in 2026-11-25.
    code : str
        `digest` of the measured code on that day.
    """

    file: str
    benchmark: str
    version: str
    commit: str
    date: str
    code: str

    @property
    def is_stale(self) -> bool:
        """Whether the measured code has changed since."""
        return self.code != _digest_now(self.benchmark)


def entries() -> list[Entry]:
    """Read the manifest, in the order of its files."""
    with MANIFEST.open(newline="", encoding="utf-8") as file:
        return [Entry(**line) for line in csv.DictReader(file)]


def digest(sources: Iterable[tuple[str, str]]) -> str:
    """Return a short hash of modules, given by name and source: only names and lines of code count."""
    code = "\n".join(f"{name}\n{code_lines(source)}" for name, source in sorted(sources))
    return hashlib.sha256(code.encode()).hexdigest()[:12]


@cache
def code_lines(source: str) -> str:
    """Return a module without empty lines, lines of comments and docstrings, which change nothing that is measured."""
    words: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            words.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    numbered = enumerate(source.splitlines(), start=1)
    lines = [line.rstrip() for number, line in numbered if number not in words]
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


def is_measured(path: str, benchmark: str) -> bool:
    """Whether a module, given by its path below the package, is one that a benchmark measures."""
    folder, _, name = path.rpartition("/")
    return name.endswith(".py") and any(
        path == part or folder == part or folder.startswith(f"{part}/") or f"{folder}/*".lstrip("/") == part
        for part in MEASURED[benchmark]
    )


@cache
def _digest_now(benchmark: str) -> str:
    package = ROOT / "fairconstrained"
    modules = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    return digest(
        (name, path.read_text(encoding="utf-8")) for name, path in modules.items() if is_measured(name, benchmark)
    )


def benchmark_of(name: str) -> str:
    """Return the benchmark that draws or writes a file, by the beginning of the file's name; empty if there is none."""
    known = [benchmark for benchmark in MEASURED if f"{Path(name).stem}_".startswith(f"{benchmark}_")]
    return max(known, key=len, default="")


def changes_since(entry: Entry) -> str:
    """Return the number of commits since a measurement that touch what it measured; "?" outside a repository."""
    return _changes(entry.benchmark, entry.commit)


@cache
def _changes(benchmark: str, commit: str) -> str:
    listed = _git("ls-files", "--", "fairconstrained").splitlines()
    paths = [path for path in listed if is_measured(path.removeprefix("fairconstrained/"), benchmark)]
    return _git("rev-list", "--count", f"{commit}..HEAD", "--", *paths) if commit and paths else ""


@contextmanager
def recorded(benchmark: str, is_new: bool = True) -> Iterator[None]:
    """Enter the tables of the documentation that change meanwhile as measured today.

    Parameters
    ----------
    benchmark : str
        Name in `MEASURED`.
    is_new : bool, default=True
        Whether something was measured; False where tables were only drawn anew, which keeps their dates.

    Raises
    ------
    ValueError
        If nobody has said what the benchmark measures.
    """
    if benchmark not in MEASURED:
        raise ValueError(f"say in MEASURED of {Path(__file__).name} which parts of the package {benchmark!r} measures.")
    before = _tables()
    yield
    changed = [name for name, content in _tables().items() if content != before.get(name)]
    if is_new and changed:
        enter(changed, benchmark)


def enter(files: Iterable[str], benchmark: str) -> None:
    """Enter files as measured today, by the code of today."""
    _digest_now.cache_clear()
    today = datetime.now(UTC).date().isoformat()
    fields = (benchmark, __version__, _git("rev-parse", "--short", "HEAD"), today, _digest_now(benchmark))
    _write({entry.file: entry for entry in entries()} | {name: Entry(name, *fields) for name in files})


def _tables() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in MANIFEST.parent.glob("*.csv") if path != MANIFEST}


def _write(lines: dict[str, Entry]) -> None:
    with MANIFEST.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Entry._fields)
        writer.writerows(lines[name] for name in sorted(lines))


def remark(found: list[Entry]) -> str:
    """Say with which version and when some files were measured, and which of them are older than the measured code."""
    versions = sorted({entry.version for entry in found})
    days = sorted({entry.date for entry in found})
    when = f"on {_day(days[0])}" if len(days) == 1 else f"between {_day(days[0])} and {_day(days[-1])}"
    words = f"Measured with version {' and '.join(versions)}, {when}."
    stale = [entry for entry in found if entry.is_stale]
    if not stale:
        return f"{words} The measured code has not changed since."
    if len(stale) == len(found):
        return f"{words} The measured code has changed since, so that the package of today may give other figures."
    named = ", ".join(f"{Path(entry.file).stem} ({_day(entry.date)})" for entry in stale)
    return f"{words} The measured code has changed since the measurement of: {named}."


def _day(iso: str) -> str:
    day = date.fromisoformat(iso)
    return f"{day.day} {day:%B %Y}"


def _git(*words: str) -> str:
    """Output of git in the repository; empty where there is no git or no repository."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
