"""Fits in which every process of a torch.distributed group has rows of its own."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from sklearn.base import clone

from fairconstrained.distributed.channel import Channel
from fairconstrained.distributed.requests import LeaderParts, Outcome, attempt, serve, tell
from fairconstrained.tables import Table
from fairconstrained.tables.described import checked_part, joined_columns

__all__ = ["fit"]


def fit(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    strata: Any = None,
    group: Any = None,
    timeout: float = 1800,
) -> Any:
    """Fit an estimator to the rows of all processes, none of which has the features of all rows.

    Every process calls it with its own rows, and returns the same fitted estimator, which is the one of a single
    process with all rows, up to rounding. The features stay where they are. The first process computes with targets,
    groups, weights and scores of all rows, which takes some 180 bytes a row there, and asks the others for
    products with their features: each product of one column sends 8 bytes a row, each sum one number a feature.

    Parameters
    ----------
    estimator : estimator
        Any estimator of the package with linear scores or a network. It is not changed.
    X : array-like, CSR matrix or Table of shape (n_rows, n_features)
        Features of the rows of this process; there may be none. A `Table` reads them from files.
    y : array-like of shape (n_rows,)
    sensitive_features, sample_weight, strata : array-like, optional
        Columns of the rows of this process, as for `fit` of the estimator.
    group : torch.distributed.ProcessGroup, optional
        Processes that take part. None: all of the default group, which ``torch.distributed.init_process_group`` makes.
    timeout : float, default=1800
        Seconds for which a process waits for an answer of another one. A process that ends is noticed at once.

    Returns
    -------
    fitted : estimator
        A fitted copy, the same in every process.

    Raises
    ------
    ValueError
        For invalid data in any process; it is raised in all of them.
    ProcessLost
        If a process has ended or does not answer.

    Examples
    --------
    In a script that ``torchrun --nproc-per-node 4 script.py`` runs::

        torch.distributed.init_process_group("gloo")
        part = pandas.read_parquet(f"part-{torch.distributed.get_rank()}.parquet")
        model = fit(PartialParityClassifier(0.02, constraint="demographic_parity"),
                    part[features], part["hired"], sensitive_features=part["sex"])

    Within ``with fairconstrained.callbacks.resumable("fit.checkpoint"):`` a fit that was cut off goes on where it was.
    """
    if not dist.is_initialized():
        raise RuntimeError('start the processes with torchrun, and call torch.distributed.init_process_group("gloo").')
    columns = {"y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight, "strata": strata}
    channel = Channel(group, timeout)
    try:
        return fit_in(channel, estimator, X, columns)
    finally:
        channel.close()


def fit_in(channel: Channel, estimator: Any, X: Any, columns: dict[str, Any]) -> Any:
    """Fit an estimator with the other processes of a channel; see `fit`."""
    outcome = _follow(channel, X, columns) if channel.rank else _lead(channel, estimator, X, columns)
    if outcome.error is not None:
        raise outcome.error
    return outcome.estimator


def _follow(channel: Channel, X: Any, columns: dict[str, Any]) -> Outcome:
    """Work of all processes but the first one."""
    checked = attempt(checked_part, X, columns)
    X, described = checked.result or (X, None)
    channel.send(checked.error or described, 0)
    return serve(channel, X)


def _lead(channel: Channel, estimator: Any, X: Any, columns: dict[str, Any]) -> Outcome:
    """Fit in the first process, and tell the others."""
    try:
        outcome = Outcome(_fitted(channel, estimator, X, columns), None)
    except Exception as error:
        outcome = Outcome(None, error)
    tell(channel, outcome)
    return outcome


def _fitted(channel: Channel, estimator: Any, X: Any, columns: dict[str, Any]) -> Any:
    own = attempt(checked_part, X, columns)
    X, described = own.result or (X, None)
    others = [attempt(channel.receive, k) for k in range(1, channel.size)]
    for other in others:
        if other.error:
            raise other.error
    parts = [own.error or described, *(other.result for other in others)]
    for k, part in enumerate(parts):
        if isinstance(part, Exception):
            raise ValueError(f"in process {k}: {part}") from part
    dtype, joined = joined_columns(parts, "process")
    table = Table(LeaderParts(channel, X, [part.n_rows for part in parts], dtype, parts[0].names))
    return clone(estimator).fit(table, joined.pop("y"), **joined)
