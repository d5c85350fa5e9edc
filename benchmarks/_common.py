"""Data, splits, timing and output that the benchmarks share."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from scipy.stats import t as student
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.manifest import recorded

RESULTS = Path(__file__).parent / "results"
#: Probability of the intervals of means, see `half_width`.
CONFIDENCE = 0.95
DOCS = Path(__file__).parents[1] / "docs"


class Table(NamedTuple):
    """One data set: features, labels in {-1, 1}, groups, and the official training part if there is one."""

    name: str
    X: sp.csr_array | np.ndarray
    y: np.ndarray
    groups: np.ndarray
    is_train: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Table:
        """The given rows, by their numbers or a mask."""
        columns = (None if column is None else column[rows] for column in self[1:])
        return Table(self.name, *columns)

    def some(self, n_rows: int | None) -> Table:
        """Rows drawn at random; None takes all."""
        if n_rows is None or n_rows >= self.y.size:
            return self
        return self.take(np.sort(np.random.default_rng(0).choice(self.y.size, n_rows, replace=False)))

    def standardised(self) -> Table:
        """The table with standardised features."""
        return self._replace(X=StandardScaler().fit_transform(self.X))


def data_folder() -> Path:
    """Where the real data sets are: ``FAIRCONSTRAINED_DATA``, else ``../shared/data``."""
    folder = Path(os.environ.get("FAIRCONSTRAINED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        raise SystemExit(f"No data in {folder}: set FAIRCONSTRAINED_DATA to the folder with adult_a9a.npz and others.")
    return folder


@cache
def load_a9a() -> Table:
    """Adult as 123 binary features; groups: female."""
    raw = np.load(data_folder() / "adult_a9a.npz")
    return Table(
        "a9a",
        sp.csr_array(raw["X"].astype(float)),
        raw["y"].astype(int),
        np.where(raw["female"].astype(bool), "female", "male"),
        raw["is_train"].astype(bool),
    )


@cache
def load_law_school_table() -> Table:
    """Law school admissions: the ten columns besides race and the label, as numbers; groups: race.

    The label is passing the bar exam. Not standardised: that is for the training part to decide.
    """
    frame = pd.read_parquet(data_folder() / "law_school.parquet")
    features = frame.drop(columns=["race", "pass_bar"]).to_numpy(dtype=float)
    return Table("law_school", features, np.where(frame["pass_bar"] > 0, 1, -1), frame["race"].to_numpy(dtype=str))


@cache
def load_bank_table() -> Table:
    """Bank marketing in 54 columns: marital status and day of the week dropped, categories one-hot.

    Groups: age from 25 to 60, or other. Not standardised.
    """
    frame = pd.read_parquet(data_folder() / "bank_additional_full.parquet")
    features = pd.get_dummies(frame.drop(columns=["y", "marital", "day_of_week"]), dtype=float)
    middle = frame["age"].between(25, 60)
    return Table(
        "bank",
        features.to_numpy(dtype=float),
        np.where(frame["y"] == "yes", 1, -1),
        np.where(middle, "25 to 60", "other"),
    )


@cache
def load_compas_table() -> Table:
    """COMPAS, all 11,757 defendants: sex, age and its three classes, four counts of offences, the degree of the charge.

    Groups: Caucasian or other. The label is a new offence; the few of unknown outcome count as none. Not standardised.
    """
    frame = pd.read_parquet(data_folder() / "compas_scores.parquet")
    names = ["sex", "age", "age_cat", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
    features = pd.get_dummies(frame[[*names, "c_charge_degree"]], dtype=float)
    return Table(
        "compas",
        features.to_numpy(dtype=float),
        np.where(frame["is_recid"] == 1, 1, -1),
        np.where(frame["race"] == "Caucasian", "caucasian", "other"),
    )


@cache
def load_acs_income() -> Table:
    """ACS income 2018, the sample of 765,670 rows: seven categorical columns one-hot, age and hours standardised.

    Groups: sex.
    """
    frame = pd.read_parquet(data_folder() / "acs_income_2018_us_sample.parquet")
    numbers = frame[["AGEP", "WKHP"]].to_numpy(dtype=float)
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    parts = [sp.csr_array(numbers)]
    for column in ("COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "RAC1P"):
        codes, values = pd.factorize(frame[column], sort=True)
        rows = np.arange(codes.size)
        parts.append(sp.csr_array((np.ones(codes.size), (rows, codes)), shape=(codes.size, len(values))))
    X = sp.csr_array(sp.hstack(parts, format="csr"))
    y = np.where(frame["PINCP_gt_50000"], 1, -1)
    return Table("acs_income", X, y, np.where(frame["SEX"] == 1, "male", "female"))


@cache
def load_celeba() -> Table:
    """CelebA without its images: the other 38 binary attributes, 0 or 1, and "Attractive"; groups: "Male"."""
    frame = pd.read_parquet(data_folder() / "celeba_attributes.parquet").select_dtypes("number")
    features = frame.drop(columns=["Attractive", "Male"]).to_numpy(dtype=float)
    groups = np.where(frame["Male"] > 0, "male", "female")
    return Table("celeba", (features > 0).astype(float), frame["Attractive"].to_numpy(dtype=int), groups)


def missing(modules: Iterable[str]) -> str:
    """Say which of the modules are not installed, as the reason why something is left out; empty if there are none."""
    return " and ".join(f"{name} is not installed" for name in modules if not _is_installed(name))


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False


def set_threads(threads: int) -> None:
    """Threads of torch and of BLAS, for everything measured in this process."""
    torch.set_num_threads(threads)
    threadpool_limits(threads)


def peak_memory() -> float:
    """Peak resident memory of this process so far, in GiB; `resource` would count that of the process it comes from."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def in_own_process(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a call in a new process, whose peak memory is then that of the call."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call, and its processor seconds."""
    begin = time.process_time()
    return function(), time.process_time() - begin


def median_seconds(function: Callable[[], Any], repeats: int) -> float:
    """Median wall-clock time of a call, after one call to warm up."""
    function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def names_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that reads a list of known names from the command line."""

    def read_names(text: str) -> list[str]:
        names = text.split(",")
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {unknown}; there are {list(known)}")
        return names

    return read_names


def add_names(parser: argparse.ArgumentParser, option: str, known: Iterable[str], default: Any = None) -> None:
    """Add an option that takes known names, joined by commas; by default those of ``default``, or all."""
    names = list(known)
    parser.add_argument(option, type=names_of(names), default=default or names, help=", ".join(names))


def command_line(
    description: str | None, quick: str = "", jobs: int = 0, plots: bool = False
) -> argparse.ArgumentParser:
    """The command line of a benchmark; what else it can choose is for it to add.

    Parameters
    ----------
    description : str or None
    quick : str, default=""
        Help of ``--quick``; empty if there is no such run.
    jobs : int, default=0
        Default of ``--jobs``; 0 if all is run in one process.
    plots : bool, default=False
        Whether there is ``--plots``.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if quick:
        parser.add_argument("--quick", action="store_true", help=quick)
    if jobs:
        parser.add_argument("--jobs", type=int, default=jobs, help="processes, of one thread each")
    if plots:
        parser.add_argument("--plots", action="store_true", help="run nothing, draw what there is")
    parser.add_argument("--docs", action="store_true", help="also refresh the documentation")
    return parser


def parser_of_splits(description: str | None, n_splits: int) -> argparse.ArgumentParser:
    """The command line of a benchmark on several splits, see `command_line`."""
    parser = command_line(description, "one split of a small data set, under a minute", jobs=1, plots=True)
    every = f"0-{n_splits - 1}"
    parser.add_argument("--seeds", type=_first_to_last, default=every, help=f"first and last split, such as {every}")
    return parser


def _first_to_last(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments, by default those of the command line."""
    found = parser.parse_args(arguments)
    if {"docs", "quick"} <= vars(found).keys() and found.docs and found.quick:
        parser.error("the documentation shows no quick runs")
    return found


def begun(name: str) -> Path:
    """Path of raw results, begun with those of the documentation where there are none."""
    path, kept = RESULTS / name, DOCS / "benchmarks" / name
    if not path.exists() and kept.exists():
        RESULTS.mkdir(exist_ok=True)
        shutil.copy(kept, path)
    return path


def publish(figures: Iterable[Path], stem: str, without: Sequence[str] = (), is_new: bool = True) -> None:
    """Copy figures, and the tables of a benchmark but those of quick runs and ``without``, to the documentation.

    Tables that differ from those of the documentation are entered in its manifest as measured today if ``is_new``.
    """
    left = {f"{stem}_{name}" for name in without}
    for figure in figures:
        shutil.copy(figure, DOCS / "images" / figure.name)
    with recorded(stem, is_new):
        for table in RESULTS.glob(f"{stem}_*.csv"):
            if "quick" not in table.name and table.stem not in left:
                shutil.copy(table, DOCS / "benchmarks" / table.name)


def keep(
    found: pd.DataFrame, stem: str, options: argparse.Namespace, part: str = "", shown: pd.DataFrame | None = None
) -> None:
    """Save the table of a benchmark, or of a part of it, and with ``--docs`` write it to the documentation.

    The table of a quick run has a name of its own. The documentation may have another form of it, ``shown``.
    """
    name = f"{stem}{part and '_' + part}"
    save(found, f"{name}_quick" if getattr(options, "quick", False) else name)
    if options.docs:
        to_docs(found if shown is None else shown, stem, part)


def to_docs(table: pd.DataFrame, stem: str, part: str = "") -> None:
    """Write the table of a benchmark, or of a part of it, to the documentation, and to its manifest as of today."""
    with recorded(stem):
        table.to_csv(DOCS / "benchmarks" / f"{stem}{part and '_' + part}.csv", index=False)


def run_parts(
    description: str | None,
    name: str,
    parts: Mapping[str, ModuleType],
    draw_all: Callable[[Path, str], list[Path]],
    long: Sequence[str],
) -> None:
    """The command line of a benchmark of several parts.

    Parameters
    ----------
    description : str
    name : str
        First part of the names of all files.
    parts : dict
        Modules with ``measure(quick) -> dict of str to DataFrame``.
    draw_all : callable
        Draws whatever there are tables for in a folder, from the first part of their names.
    long : sequence of str
        Tables that are not for reading.
    """
    parser = command_line(description, "little data, few iterations", plots=True)
    add_names(parser, "--only", parts)
    arguments = parsed(parser)
    stem = f"{name}_quick" if arguments.quick else name
    if not arguments.plots:
        for part in arguments.only:
            for table, frame in parts[part].measure(arguments.quick).items():
                to_read = table not in long
                save(significant(frame) if to_read else frame, f"{stem}_{table}", show=to_read)
    figures = draw_all(RESULTS, stem)
    if arguments.docs:
        publish(figures, stem, without=long, is_new=not arguments.plots)


def significant(frame: pd.DataFrame, digits: int = 4) -> pd.DataFrame:
    """Numbers with as many digits as mean something."""
    numbers = frame.select_dtypes("float")
    return frame.assign(
        **{name: [float(f"{value:.{digits}g}") for value in column] for name, column in numbers.items()}
    )


def half_width(values: pd.Series) -> float:
    """Half the width of the interval of a mean with the `CONFIDENCE` (Student's t); NaN for one value."""
    n = values.count()
    return float(student.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std() / np.sqrt(n)) if n > 1 else np.nan


def save_tables(tables: Mapping[str, pd.DataFrame], stem: str, show: str) -> None:
    """Write the tables of a benchmark by name, and print the one to ``show``."""
    for name, table in tables.items():
        save(significant(table), f"{stem}_{name}", show=name == show)


def save(frame: pd.DataFrame, name: str, show: bool = True) -> None:
    """Write ``results/name.csv`` and print the table, unless it is too long to ``show``."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    frame.to_csv(path, index=False)
    if show:
        print(frame.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    print(f"written to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
