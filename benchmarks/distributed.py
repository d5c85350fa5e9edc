"""Rows in several processes, in files, and on a Dask cluster: seconds, bytes, memory, and what they let one expect.

``python -m benchmarks.distributed [processes shares traffic disk machines dask]`` writes a CSV each.

processes
    The same fit with all rows in one process and with half of them in each of two; one thread a process.
shares
    Seconds of two processes, of which the first one holds half of the rows or fewer.
traffic
    Bytes and rounds of a fit with 1 to 8 processes, which do not depend on the machine.
machines
    Seconds and memory for 10^7 to 10^10 rows on 2 to 512 machines, by a model of costs with the measured numbers.
disk
    20 million rows of 50 float32 features, from a file.
dask
    A fit to a parquet folder on a cluster of two workers, beside LightGBM's and XGBoost's own for Dask.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch.distributed as dist

from benchmarks._common import (
    RESULTS,
    command_line,
    in_own_process,
    load_acs_income,
    names_of,
    parsed,
    peak_memory,
    publish,
    save,
    set_threads,
    significant,
)
from fairconstrained import FairHeadClassifier, PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.distributed import DaskEstimator, processes
from fairconstrained.distributed.channel import FIRST, Channel
from fairconstrained.distributed.requests import HeldRows, LeaderParts
from fairconstrained.tables import array_table

KAPPA = 0.05
#: Assumptions of the model of costs: seconds for a message to arrive, and bytes a second.
LATENCY, BANDWIDTH = 50e-6, 10e9 / 8
#: Runs of every fit of `measure_processes`, of which the least seconds count.
RUNS = 2
#: Shares of the rows that the first of two processes holds in `measure_shares`.
SHARES = (0.5, 0.25, 0.0)


def estimator(**params: Any) -> PartialParityClassifier:
    """The model that is fitted everywhere."""
    return PartialParityClassifier(KAPPA, constraint="demographic_parity", random_state=0, **params)


def dense(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Generated rows, labels and groups."""
    return make_biased_classification(n_rows, n_features=n_features, random_state=0)


def acs() -> tuple[Any, np.ndarray, np.ndarray]:
    """The sample of ACS income, 819 sparse columns."""
    table = load_acs_income()
    return table.X, table.y, table.groups


# -- processes ------------------------------------------------------------------------------------------------------


def _made(kind: Any) -> list[Any]:
    """All objects of a class that this process makes from now on."""
    made: list[Any] = []

    def remember(self: Any, *given: Any, make: Callable[..., None] = kind.__init__) -> None:
        make(self, *given)
        made.append(self)

    kind.__init__ = remember
    return made


def _timed(kind: Any, name: str) -> list[float]:
    """Processor seconds of every call of a method from now on."""
    seconds: list[float] = []
    method = getattr(kind, name)

    def timed(self: Any, *given: Any) -> Any:
        begin = time.thread_time()
        result = method(self, *given)
        seconds.append(time.thread_time() - begin)
        return result

    setattr(kind, name, timed)
    return seconds


def _part(
    rank: int, size: int, share: float, store: str, rows: Callable[..., Any], arguments: tuple, answers: Any
) -> None:
    """One process: fits with its share of the rows, ``share`` in the first one, and answers with what it took."""
    set_threads(1)
    warnings.simplefilter("ignore")
    channels, leaders, with_rows = _made(Channel), _made(LeaderParts), _timed(HeldRows, "result")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    X, y, groups = rows(*arguments)
    ends = (y.size * np.array([0, *np.linspace(share, 1, size)])).astype(int)
    own = slice(ends[rank], ends[rank + 1])
    X, y_own, groups = X[own], y[own], groups[own]
    begin, worked = time.perf_counter(), time.process_time()
    model = processes.fit(estimator(), X, y_own, sensitive_features=groups)
    measured = {
        "rank": rank,
        "seconds": time.perf_counter() - begin,
        "processor_seconds": time.process_time() - worked,
        "of_rows": sum(with_rows),
        "rounds": sum(parts.n_rounds for parts in leaders),
        # without the beginning of every message, which has one length whatever the rows are
        "bytes": sum(channel.n_bytes - FIRST * channel.n_messages for channel in channels),
        "messages": sum(channel.n_messages for channel in channels),
        "objective": model.objective_,
    }
    answers.put(measured)
    dist.destroy_process_group()


def in_processes(size: int, rows: Callable[..., Any], *arguments: Any, share: float | None = None) -> pd.DataFrame:
    """Return what a fit in so many processes takes in every one of them, see `_part`; None: equal shares."""
    # copies of a process that has imported what they need, which takes longer than a small fit
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks._common", "fairconstrained.estimators.partial_parity"])
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        given = (size, 1 / size if share is None else share, str(Path(folder) / "store"), rows, arguments, answers)
        started = [context.Process(target=_part, args=(rank, *given)) for rank in range(size)]
        for process in started:
            process.start()
        found = [answers.get() for _ in started]
        for process in started:
            process.join()
    return pd.DataFrame(found).sort_values("rank", ignore_index=True)


def _sent(parts: pd.DataFrame) -> tuple[float, float, float]:
    """Rounds of all leaders, and their bytes and messages, which count at both ends."""
    rounds, n_bytes, n_messages = parts[["rounds", "bytes", "messages"]].sum()
    return rounds, n_bytes / 2, n_messages / 2


def _generated(quick: bool) -> dict[str, tuple[Callable[..., Any], tuple]]:
    """Generated data by name: a function that makes them, and its arguments."""
    return {
        "generated, dense": (dense, (20_000, 20) if quick else (200_000, 200)),
        "generated, few features": (dense, (20_000, 10) if quick else (400_000, 20)),
    }


def measure_processes(quick: bool) -> pd.DataFrame:
    """Seconds with all rows in one process and in two, in turns, and those for which the busier one computes."""
    cases = {**_generated(quick), **({} if quick else {"ACS income, sparse": (acs, ())})}
    records = []
    for name, (rows, arguments) in cases.items():
        runs = [[in_processes(size, rows, *arguments) for size in (1, 2)] for _ in range(1 if quick else RUNS)]
        wall, busy = (
            [min(pair[k][name].max() for pair in runs) for k in (0, 1)] for name in ("seconds", "processor_seconds")
        )
        first, second = runs[0]
        n_rounds, n_bytes, _ = _sent(second)
        X, y, _ = rows(*arguments)
        records.append(
            {
                "data": name,
                "rows": y.size,
                "features": X.shape[1],
                "seconds_1": wall[0],
                "seconds_2": wall[1],
                "speed_up": wall[0] / wall[1],
                "processor_seconds_1": busy[0],
                "processor_seconds_2": busy[1],
                "processor_speed_up": busy[0] / busy[1],
                "share_of_products": float(first["of_rows"].iloc[0] / first["processor_seconds"].iloc[0]),
                "rounds": n_rounds,
                "bytes_per_row_and_round": n_bytes / n_rounds / y.size,
                "difference_of_objectives": abs(first["objective"].iloc[0] - second["objective"].iloc[0]),
            }
        )
    return pd.DataFrame(records)


def measure_shares(quick: bool) -> pd.DataFrame:
    """Seconds of two processes by the share of the rows that the first one holds, which has more other work."""
    records = []
    for name, (rows, arguments) in _generated(quick).items():
        for share in SHARES:
            found = in_processes(2, rows, *arguments, share=share)
            records.append(
                {
                    "data": name,
                    "rows": arguments[0],
                    "features": arguments[1],
                    "share_of_first": share,
                    "seconds": found["seconds"].max(),
                    "processor_seconds_first": found["processor_seconds"][0],
                    "processor_seconds_second": found["processor_seconds"][1],
                    "objective": found["objective"][0],
                }
            )
    return pd.DataFrame(records)


def measure_traffic(quick: bool) -> pd.DataFrame:
    """Rounds and bytes by the number of processes."""
    n_rows, n_features = (20_000, 10) if quick else (100_000, 20)
    records = []
    for size in (2,) if quick else (2, 4):
        rounds, n_bytes, n_messages = _sent(in_processes(size, dense, n_rows, n_features))
        records.append(
            {
                "processes": size,
                "rounds": rounds,
                "messages_per_round": n_messages / rounds,
                "bytes_per_row_and_round": n_bytes / rounds / n_rows,
            }
        )
    return pd.DataFrame(records)


def measure_machines(quick: bool) -> pd.DataFrame:
    """Seconds by the model of costs, from what `processes`, `traffic` and `disk` have measured.

    A fit of n rows takes ``a n / p + b n`` seconds of computing, the products with the rows of p machines and the rest
    in the first one, and at most ``rounds (latency + bytes n / bandwidth)`` for sending.
    """
    stem = "distributed_quick" if quick else "distributed"
    traffic = pd.read_csv(RESULTS / f"{stem}_traffic.csv")
    timed = pd.read_csv(RESULTS / f"{stem}_processes.csv").iloc[0]
    held = pd.read_csv(RESULTS / f"{stem}_disk.csv")["bytes_per_row"].iloc[0]
    rounds, per_row = traffic["rounds"].iloc[-1], traffic["bytes_per_row_and_round"].iloc[-1]
    of_row = timed["processor_seconds_1"] / timed["rows"]
    a, b = of_row * timed["share_of_products"], of_row * (1 - timed["share_of_products"])
    records = []
    for n_rows in (1e7, 1e8, 1e9, 1e10):
        for machines in (1, 2, 8, 64, 512):
            sending = 0.0 if machines == 1 else rounds * (LATENCY + per_row * n_rows / BANDWIDTH)
            records.append(
                {
                    "rows": n_rows,
                    "machines": machines,
                    "seconds_of_products": a * n_rows / machines,
                    "seconds_of_the_first": b * n_rows,
                    "seconds_of_sending": sending,
                    "hours": (a * n_rows / machines + b * n_rows + sending) / 3600,
                    "gib_a_machine": timed["features"] * 8 * n_rows / machines / 2**30,
                    "gib_of_the_first": held * n_rows / 2**30,
                }
            )
    return pd.DataFrame(records)


# -- files ----------------------------------------------------------------------------------------------------------


def write_rows(path: Path, n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Write float32 features to a file, block by block; returns labels and groups."""
    rng, at_once = np.random.default_rng(0), 500_000
    labels, groups = np.empty(n_rows, dtype=np.int8), np.empty(n_rows, dtype=np.int8)
    weights = np.linspace(1, -1, n_features)
    with path.open("wb") as file:
        for begin in range(0, n_rows, at_once):
            rows = slice(begin, min(begin + at_once, n_rows))
            block = rng.standard_normal((rows.stop - begin, n_features), dtype=np.float32)
            block.tofile(file)
            groups[rows] = block[:, 0] + rng.normal(size=len(block)) > 0
            labels[rows] = block @ weights / 3 + 2 * groups[rows] + rng.logistic(size=len(block)) > 0.5
    return labels, groups


def _from_disk(path: str, n_rows: int, n_features: int, labels: Any, groups: Any) -> dict[str, Any]:
    """A fit to rows of a file, with the solver that has the fewest numbers for each row, without an estimate."""
    set_threads(1)
    warnings.simplefilter("ignore")
    X = np.memmap(path, dtype=np.float32, mode="r", shape=(n_rows, n_features))
    model = estimator(solver="augmented_lagrangian", new_row_folds=None)
    before, begin = peak_memory(), time.perf_counter()
    model.fit(array_table(X), labels, sensitive_features=groups)
    seconds, peak = time.perf_counter() - begin, peak_memory()
    return {
        "seconds": seconds,
        "peak_gib": peak,
        "bytes_per_row": (peak - before) * 2**30 / n_rows,
        "train_gap": next(iter(model.constraint_values_.values())),
        "status": model.status_,
    }


def measure_disk(quick: bool) -> pd.DataFrame:
    """A fit in a process of its own to rows of a file."""
    n_rows, n_features = (50_000, 10) if quick else (20_000_000, 50)
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        path = Path(folder) / "rows"
        labels, groups = write_rows(path, n_rows, n_features)
        size = {"rows": n_rows, "features": n_features, "gib_on_disk": path.stat().st_size / 2**30}
        found = in_own_process(_from_disk, str(path), n_rows, n_features, labels, groups)
    return pd.DataFrame([size | found])


# -- Dask -----------------------------------------------------------------------------------------------------------


def _linear(client: Any, people: Any, names: list[str]) -> Any:
    return DaskEstimator(estimator(), client).fit(people[names], people["label"], sensitive_features=people["group"])


def _lightgbm(client: Any, people: Any, names: list[str]) -> Any:
    from lightgbm import DaskLGBMClassifier

    return DaskLGBMClassifier(client=client, verbose=-1).fit(people[names], people["label"])


def _xgboost(client: Any, people: Any, names: list[str]) -> Any:
    from xgboost.dask import DaskXGBClassifier

    model = DaskXGBClassifier()
    model.client = client
    return model.fit(people[names], people["label"])


def _head(client: Any, people: Any, names: list[str]) -> Any:
    """Trees on three quarters of the partitions, and a head on the others."""
    n_seen = 3 * people.npartitions // 4
    trees = _lightgbm(client, people.partitions[:n_seen], names).to_local()
    new = people.partitions[n_seen:]
    head = FairHeadClassifier(trees, estimator(), cv="prefit", random_state=0)
    return head.fit(new[names], new["label"], sensitive_features=new["group"])


#: Fits on a cluster, and the package that each needs besides.
DASK_FITS: dict[str, tuple[Callable[..., Any], str]] = {
    "linear, kappa .05": (_linear, "fairconstrained"),
    "lightgbm.dask, 100 trees, then a head, kappa .05": (_head, "lightgbm"),
    "lightgbm.dask, 100 trees, no bound": (_lightgbm, "lightgbm"),
    "xgboost.dask, 100 trees, no bound": (_xgboost, "xgboost"),
}


def _on_cluster(fit: str, folder: str, names: list[str]) -> dict[str, Any]:
    """One fit on a cluster of its own, so that the peaks of memory are those of this fit."""
    import dask.dataframe as dd
    from dask.distributed import Client

    set_threads(1)
    warnings.simplefilter("ignore")
    test = pd.read_parquet(Path(folder) / "test.parquet")
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        begin = time.perf_counter()
        people = dd.read_parquet(f"{folder}/part-*.parquet").persist()
        model = DASK_FITS[fit][0](client, people, names)
        seconds = time.perf_counter() - begin
        peaks = peak_memory(), max(client.run(peak_memory).values())
        decided = np.asarray(model.predict(dd.from_pandas(test[names], npartitions=2))) > 0
        shares = pd.Series(decided).groupby(test["group"].to_numpy()).mean()
    return {
        "fit": fit,
        "seconds": seconds,
        "client_gib": peaks[0],
        "worker_gib": peaks[1],
        "new_accuracy": float((decided == test["label"]).mean()),
        "new_gap": float(shares.max() - shares.min()),
    }


def measure_dask(quick: bool) -> pd.DataFrame:
    """Fits from a folder of parquet files on two workers, beside boosted trees without any bound."""
    n_rows, n_features = (10_000, 10) if quick else (1_000_000, 50)
    X, y, groups = dense(n_rows + n_rows // 4, n_features)
    frame = pd.DataFrame(X.astype(np.float32)).add_prefix("x").assign(label=(y > 0).astype(int), group=groups)
    names, records = list(frame.columns[:n_features]), []
    with tempfile.TemporaryDirectory() as folder:
        for k, part in enumerate(np.array_split(np.arange(n_rows), 8)):
            frame.iloc[part].to_parquet(Path(folder) / f"part-{k}.parquet")
        frame.iloc[n_rows:].to_parquet(Path(folder) / "test.parquet")
        del X, frame
        for fit, (_, package) in DASK_FITS.items():
            if not importlib.util.find_spec(package):
                print(f"{fit}: left out, as {package} is not installed")
                continue
            found = in_own_process(_on_cluster, fit, folder, names)
            records.append({"rows": n_rows, "features": n_features, **found})
    return pd.DataFrame(records)


PARTS = {
    "processes": measure_processes,
    "shares": measure_shares,
    "traffic": measure_traffic,
    "disk": measure_disk,
    "machines": measure_machines,
    "dask": measure_dask,
}


def main() -> None:
    """Measure what the command line names."""
    parser = command_line(__doc__, "little data")
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    arguments = parsed(parser)
    stem = "distributed_quick" if arguments.quick else "distributed"
    RESULTS.mkdir(exist_ok=True)
    for name in names_of(PARTS)(",".join(arguments.parts)):
        save(significant(PARTS[name](arguments.quick)), f"{stem}_{name}")
    if arguments.docs:
        publish([], "distributed")


if __name__ == "__main__":
    main()
