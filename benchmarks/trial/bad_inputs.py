"""Wrong calls: every one has to raise a ValueError or TypeError that names what is wrong, soon, and change nothing."""

from __future__ import annotations

import copy
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import fairconstrained
from benchmarks.trial.bad_parameters import BAD_PARAMETERS
from fairconstrained.datasets import make_biased_classification

__all__ = ["Call", "changed", "judge_call", "plain_data", "wrong_data", "wrong_parameters"]

#: Seconds until a call counts as one that does not end, and characters of a message that lists at most ten groups.
_PATIENCE, _LONGEST = 20, 1000
_N = 240


@dataclass(frozen=True)
class Call:
    """A wrong call.

    Attributes
    ----------
    name : str
    words : tuple of str
        The message has one of them.
    function : callable
        Function without arguments that makes the call.
    unchanged : object
        Object that the call must not change.
    lists_groups : bool
        Whether the message may list groups, of which there are many.
    """

    name: str
    words: tuple[str, ...]
    function: Callable[[], Any]
    unchanged: Any = None
    lists_groups: bool = False


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in what takes longer."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judge_call(call: Call) -> dict[str, Any]:
    """Outcome of a call; ``broken`` is empty where it raised the right kind of error."""
    before = copy.copy(vars(call.unchanged)) if call.unchanged is not None else None
    row: dict[str, Any] = {"task": call.name, "message": "", "broken": ""}
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with _within(_PATIENCE):
                call.function()
            row["broken"] = "accepted"
        except TimeoutError as error:
            row |= {"broken": "endless", "message": str(error)}
        except (ValueError, TypeError) as error:
            row |= {"broken": _wrong_with(str(error), call), "message": " ".join(str(error).split())[:400]}
        except Exception as error:  # whatever it is, it is what the trial looks for
            row |= {"broken": "crash", "message": f"{type(error).__name__}: {error}"[:400]}
    if before is not None and vars(call.unchanged) != before:
        row["broken"] = "; ".join(filter(None, [row["broken"], "changed"]))
    return row | {"seconds": time.perf_counter() - begin, "status": "judged"}


def _wrong_with(message: str, call: Call) -> str:
    if not any(word.lower() in message.lower() for word in call.words):
        return "unclear"
    return "too long" if call.lists_groups and len(message) > _LONGEST else ""


def plain_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return make_biased_classification(_N, n_features=4, random_state=0)


def _fit_params(name: str) -> dict[str, Any]:
    """Arguments of `fit` besides X and y, by the estimator's name."""
    groups = {"sensitive_features": plain_data()[2]}
    if name == "FairRanker":
        return {**groups, "qid": np.arange(_N) // 8}
    return {} if name == "NeymanPearsonClassifier" else groups


#: Arguments of which something else may be named as well: what is wrong within them, or what it is about.
_ALSO = {
    "solver_options": ("nope", "tol", "max_iter"),
    "constraint": ("constraint", "kappa"),
    "min_group_size": ("fewer",),
    "small_groups": ("min_group_size",),
    "solver": ("view",),
    "bounds": ("bound",),
    "callbacks": ("callback",),
}
#: Arguments that wrong values of another argument come with.
_WITH = {"activation": {"hidden_layer_sizes": (3,)}, "surrogate_width": {}, "device": {"max_epochs": 1}}


def wrong_parameters() -> Iterator[Call]:
    """Constructor arguments, which `fit` judges."""
    X, y, _ = plain_data()
    for name, table in BAD_PARAMETERS.items():
        for parameter, values in table.items():
            for number, value in enumerate(values):
                others: dict[str, Any] = dict(_WITH.get(parameter, {}))
                if (name, parameter, value) == ("RateParityClassifier", "agg", "mean"):
                    others = {"constraint": "demographic_parity"}
                if name == "LossParityClassifier":
                    others = {"max_epochs": 1, "early_stopping": parameter == "validation_fraction"} | others
                model = getattr(fairconstrained, name)(**{**others, parameter: value})
                yield Call(
                    f"{name}({parameter}) {number}",
                    (parameter, *_ALSO.get(parameter, ())),
                    lambda model=model, name=name: model.fit(X, y, **_fit_params(name)),
                    model,
                )


def changed(values: np.ndarray, place: Any, value: Any) -> np.ndarray:
    changed = values.astype(float) if isinstance(value, float) else values.copy()
    changed[place] = value
    return changed


def wrong_data() -> Iterator[Call]:
    """X, y, groups and weights that `fit` refuses."""
    X, y, groups = plain_data()
    object_groups = groups.astype(object)
    weights = np.ones(_N)
    ragged = [[1, 2] if i % 2 else [1] for i in range(_N)]
    cases: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
        ("X with NaN", ("X",), {"X": changed(X, (0, 0), np.nan)}),
        ("X with infinity", ("X",), {"X": changed(X, (0, 0), np.inf)}),
        ("X whose squares overflow", ("X",), {"X": X * 1e200}),
        ("X of 1e155", ("X",), {"X": X * 1e155}),
        ("X with the largest number", ("X",), {"X": changed(X, (0, 0), float(np.finfo(float).max))}),
        ("X of three dimensions", ("dim", "X"), {"X": X[:, :, None]}),
        ("X of one dimension", ("2D", "X"), {"X": X[:, 0]}),
        ("X of strings", ("convert", "X"), {"X": np.full(X.shape, "a")}),
        ("X without columns", ("feature", "X"), {"X": X[:, :0]}),
        ("X without rows", ("sample", "X"), {"X": X[:0], "y": y[:0], "sensitive_features": groups[:0]}),
        ("X of complex numbers", ("complex", "X"), {"X": X + 1j}),
        ("X sparse with NaN", ("X",), {"X": sp.csr_array(changed(X, (0, 0), np.nan))}),
        ("y with NaN", ("y",), {"y": changed(y, 0, np.nan)}),
        ("y of one class", ("y has one class", "class"), {"y": np.zeros(_N, dtype=int)}),
        ("y continuous", ("continuous", "y"), {"y": X[:, 0]}),
        ("y too short", ("inconsistent", "y"), {"y": y[:-1]}),
        ("y of two columns", ("y",), {"y": np.column_stack([y, y])}),
        ("y missing", ("y",), {"y": None}),
        ("weights negative", ("sample_weight",), {"sample_weight": changed(weights, 0, -1.0)}),
        ("weights with NaN", ("sample_weight",), {"sample_weight": changed(weights, 0, np.nan)}),
        ("weights too short", ("sample_weight",), {"sample_weight": weights[:-1]}),
        ("weights zero", ("sample_weight", "sample weights"), {"sample_weight": 0 * weights}),
        ("weights of 1e307", ("sample_weight",), {"sample_weight": 1e307 * weights}),
        ("weights of two columns", ("sample_weight", "sample weights"), {"sample_weight": np.ones((_N, 2))}),
        ("weights of strings", ("sample_weight", "convert"), {"sample_weight": np.full(_N, "a")}),
        ("weights zero in a group", ("sample_weight",), {"sample_weight": (groups == groups[0]) * 1.0}),
        ("groups too short", ("sensitive_features", "inconsistent"), {"sensitive_features": groups[:-1]}),
        ("groups with NaN", ("sensitive_features",), {"sensitive_features": changed(groups, 0, np.nan)}),
        ("groups with None", ("sensitive_features",), {"sensitive_features": changed(object_groups, 0, None)}),
        ("groups with infinity", ("sensitive_features",), {"sensitive_features": changed(groups, 0, np.inf)}),
        ("groups of three dimensions", ("sensitive_features",), {"sensitive_features": groups[:, None, None]}),
        ("groups without columns", ("sensitive_features",), {"sensitive_features": np.empty((_N, 0))}),
        ("groups empty", ("sensitive_features",), {"sensitive_features": []}),
        ("groups ragged", ("sensitive_features",), {"sensitive_features": ragged}),
        ("groups as a number", ("sensitive_features",), {"sensitive_features": 3}),
        ("groups as a word", ("sensitive_features",), {"sensitive_features": "sex"}),
        ("groups as a dict", ("sensitive_features",), {"sensitive_features": {"sex": groups}}),
        ("groups sparse", ("sensitive_features",), {"sensitive_features": sp.csr_array(groups[:, None])}),
        ("groups as a recarray", ("sensitive_features",), {"sensitive_features": np.rec.fromarrays([groups])}),
        ("groups masked", ("sensitive_features",), {"sensitive_features": np.ma.masked_equal(groups, 1)}),
        ("many small groups", ("kappa", "rows"), {"sensitive_features": np.arange(_N)}),
    ]  # fmt: skip
    for name, words, changes in cases:
        arguments = {"X": X, "y": y, "sensitive_features": groups} | changes
        model = fairconstrained.PartialParityClassifier()
        yield Call(name, words, lambda m=model, a=arguments: m.fit(**a), model, name == "many small groups")
    auc, three = fairconstrained.AUCFairClassifier(), np.arange(_N) % 3
    yield Call("y of three classes", ("binary",), lambda: auc.fit(X, three, sensitive_features=groups), auc)
    table = np.column_stack([groups == 0, groups == 1, np.zeros(_N, dtype=bool)])
    rate = fairconstrained.RateParityClassifier()
    yield Call("a group without rows", ("sensitive_features",), lambda: rate.fit(X, y, sensitive_features=table), rate)
    twos = sp.csr_array(2.0 * table)
    yield Call("a table of twos", ("sensitive_features",), lambda: rate.fit(X, y, sensitive_features=twos), rate)
    yield from _wrong_queries(X, y, groups)


def _wrong_queries(X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> Iterator[Call]:
    """Queries that a ranker refuses."""
    queries = np.arange(_N) // 8
    for name, qid in {
        "missing": None,
        "with NaN": changed(queries, 0, np.nan),
        "too short": queries[:-1],
        "of two columns": np.column_stack([queries, queries]),
        "all different": np.arange(_N),
    }.items():
        model = fairconstrained.FairRanker()
        fit = lambda m=model, q=qid: m.fit(X, y, qid=q, sensitive_features=groups)  # noqa: E731
        yield Call(f"queries {name}", ("qid", "query"), fit, model)
