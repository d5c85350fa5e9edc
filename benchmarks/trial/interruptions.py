"""Fits that are cut short: the estimator, and what the process shares, are afterwards as they were before."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_info

import fairconstrained as fc
from fairconstrained.datasets import make_biased_classification

__all__ = ["Interruption", "all_interruptions", "judge_interruption"]

#: What comes in between.
_ERRORS = {"KeyboardInterrupt": KeyboardInterrupt, "RuntimeError": RuntimeError, "MemoryError": MemoryError}
_N = 300
_QUICK_FITS = {"max_epochs": 4, "batch_size": 64}


class Fuse:
    """Raises an error when it has been lit and asked so many times; the same one in all copies."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.fired: type[BaseException] | None = None
        self.error: type[BaseException] = RuntimeError

    def __deepcopy__(self, memo: Any) -> Fuse:
        return self

    def light(self, after: int, error: type[BaseException]) -> None:
        """Raise ``error`` when asked for the ``after``-th time."""
        self.left, self.error = after, error

    def ask(self) -> None:
        """Burn down by one."""
        if self.left is None:
            return
        self.left -= 1
        if self.left == 0:
            self.left, self.fired = None, self.error
            raise self.error("cut short")


_FUSE = Fuse()


class Fragile(torch.nn.Module):
    """A linear module that asks the fuse whenever it is called."""

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(n_features, n_outputs)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Scores."""
        _FUSE.ask()
        return self.linear(X)


def _ask(record: Any) -> None:
    _FUSE.ask()


@dataclass(frozen=True)
class Interruption:
    """A fit that is cut short.

    Attributes
    ----------
    name : str
    make : callable
        Function that returns the estimator.
    fit : callable
        Function that fits an estimator.
    cut : callable
        Context in which a fit is cut short.
    fitted_before : bool
        Whether the estimator has been fitted before.
    """

    name: str
    make: Callable[[], Any]
    fit: Callable[[Any], Any]
    cut: Callable[[], Any]
    fitted_before: bool


@contextmanager
def _fuse(after: int, error: type[BaseException]) -> Iterator[None]:
    _FUSE.light(after, error)
    try:
        yield
    finally:
        _FUSE.left = None


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """KeyboardInterrupt after so long, wherever the fit is by then."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _shared() -> dict[str, Any]:
    """State that all fits of a process share."""
    generator = np.random.get_state()  # noqa: NPY002  the generator that all code shares
    return {
        "torch threads": torch.get_num_threads(),
        "threads of libraries": sorted((pool["filepath"], pool["num_threads"]) for pool in threadpool_info()),
        "numpy's generator": (generator[0], generator[1].tobytes(), *generator[2:]),
        "torch's generator": torch.get_rng_state().numpy().tobytes(),
        "warning filters": list(warnings.filters),
        "torch's gradients": torch.is_grad_enabled(),
        "torch's type": torch.get_default_dtype(),
        "numpy's errors": np.geterr(),
    }


def judge_interruption(case: Interruption) -> dict[str, Any]:
    """Changes that a fit left behind; ``broken`` is empty where there are none."""
    model = case.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.fitted_before:
            case.fit(model)
        own, shared, outcome = dict(vars(model)), _shared(), "completed"
        _FUSE.fired = None
        try:
            with case.cut():
                case.fit(model)
        except (Exception, KeyboardInterrupt) as error:  # what a fit makes of an error is its own affair
            outcome = type(error).__name__
        after = _shared()
    changed = [name for name, value in shared.items() if after[name] != value]
    if _FUSE.fired is not None and outcome == "completed":
        changed.append("the error was swallowed")
    if _FUSE.fired is KeyboardInterrupt and outcome != "KeyboardInterrupt":
        changed.append(f"the interruption came out as {outcome}")
    if outcome != "completed":  # one that was ready before the alarm has every right to change the estimator
        now = vars(model)
        changed += [name for name in {*own, *now} if own.get(name) is not now.get(name)]
        again = _still_works(case, model)
        changed += [again] if again else []
    return {"task": case.name, "outcome": outcome, "broken": "; ".join(changed), "status": "judged"}


def _still_works(case: Interruption, model: Any) -> str:
    """Whether the estimator can be fitted afterwards; what is wrong if not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case.fit(model)
        except Exception as error:
            return f"cannot be fitted again: {type(error).__name__}: {error}"
    return ""


def _fits() -> dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]]:
    """Estimators by name, and how they are fitted."""
    X, y, groups = make_biased_classification(_N, n_features=4, random_state=0)
    plain = lambda model: model.fit(X, y, sensitive_features=groups)  # noqa: E731
    return {
        "PartialParityClassifier": (
            partial(fc.PartialParityClassifier, 0.1, constraint="demographic_parity", random_state=0),
            plain,
        ),
        "PartialParityRegressor": (
            partial(fc.PartialParityRegressor, 0.1, constraint="demographic_parity", random_state=0),
            lambda model: model.fit(X, X[:, 0] + y, sensitive_features=groups),
        ),
        "RateParityClassifier": (partial(fc.RateParityClassifier, 0.1, random_state=0), plain),
        "GroupLossClassifier": (partial(fc.GroupLossClassifier, "minimax", random_state=0), plain),
        "AUCFairClassifier": (partial(fc.AUCFairClassifier, 0.1, random_state=0), plain),
        "NeymanPearsonClassifier": (
            partial(fc.NeymanPearsonClassifier, {1: 0.5}, random_state=0),
            lambda model: model.fit(X, y),
        ),
        "FairRanker": (
            partial(fc.FairRanker, 0.1, random_state=0),
            lambda model: model.fit(X, y, qid=np.arange(_N) // 10, sensitive_features=groups),
        ),
        "LossParityClassifier": (partial(fc.LossParityClassifier, 0.1, random_state=0, **_QUICK_FITS), plain),
    }


def all_interruptions() -> list[Interruption]:
    """All of them: by a module's forward, by a callback, and by the clock."""
    fits, cases = _fits(), []
    for name, (make, fit) in fits.items():
        few = {"max_epochs" if name == "LossParityClassifier" else "max_iter": 2}
        fragile = partial(make, module=Fragile, **few)
        for after, (word, error) in zip((1, 2, 6, 15), [*_ERRORS.items(), *list(_ERRORS.items())[:1]], strict=True):
            for before in (False, True):
                title = f"{name}, {word} at call {after} of the module{', fitted before' * before}"
                cases.append(Interruption(title, fragile, fit, partial(_fuse, after, error), before))
        for seconds in (0.003, 0.02, 0.06):
            title = f"{name}, stopped by the clock after {seconds} seconds"
            cases.append(Interruption(title, make, fit, partial(_alarm, seconds), True))
    make, fit = fits["LossParityClassifier"]
    for after in (1, 3):
        for word, error in _ERRORS.items():
            title = f"LossParityClassifier, {word} in a callback at epoch {after}"
            watched = partial(make, callbacks=[_ask])
            cases.append(Interruption(title, watched, fit, partial(_fuse, after, error), after == 3))
    return cases
