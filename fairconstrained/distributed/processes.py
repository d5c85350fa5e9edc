"""Fits in which every process of a torch.distributed group has rows of its own."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch.distributed as dist
from sklearn.base import clone

from fairconstrained.distributed.channel import Channel
from fairconstrained.distributed.requests import attempt, lead, served
from fairconstrained.distributed.second_leader import FirstParts, SecondLeader
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
    products with their features: each product of one column sends at most 8 bytes a row, each sum one number a feature.
    While it fits, the second process makes the estimate for new rows in the same way, and needs as much memory. It does
    not if there is no estimate (``new_row_folds=None``), if the fit itself yields the models without a fold, or within
    ``resumable``. Then the first process has more work than the others: give it fewer rows. Models without a fold that
    the fit itself yields are found by all processes with rows, where there are several. These need about as much memory
    as the first one then.

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
        For invalid data in any process, and for an estimator that cannot be pickled; it is raised in all of them.
    ProcessLost
        If a process has ended or does not answer.
    RuntimeError
        If the processes are not started, that is if ``torch.distributed.init_process_group`` has not been called.

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
    channels = [Channel(group, timeout, leader) for leader in range(min(dist.get_world_size(group), 2))]
    return fit_in(channels, estimator, X, columns)


def fit_in(channels: Sequence[Channel], estimator: Any, X: Any, columns: dict[str, Any]) -> Any:
    """Fit an estimator with the other processes of the channels, each of which has a leader of its own; see `fit`.

    The channels are closed at the end.
    """
    channel, checked = channels[0], attempt(checked_part, X, columns)
    X, described = checked.result or (X, None)
    with ExitStack() as at_end:
        second = None
        for other in channels[1:]:
            at_end.callback(other.close)
            second = at_end.enter_context(SecondLeader(other, X))
        at_end.callback(channel.close)  # first of all, so that the others notice where this process is interrupted
        if channel.leads:
            outcome = lead(channel, _fitted, channel, second, estimator, X, checked.error or described)
        else:
            channel.send(checked.error or described, channel.leader)
            outcome = served(channel, X, None if second is None else second.begin)
        if outcome.error is not None:
            raise outcome.error
        return outcome.result


def _fitted(channel: Channel, second: SecondLeader | None, estimator: Any, X: Any, own: Any) -> Any:
    """Fit in the first process, to its own rows, given by their description or an error, and those of all others."""
    others = [attempt(channel.receive, k) for k in channel.others]
    for other in others:
        if other.error:
            raise other.error
    parts = [own, *(other.result for other in others)]
    for k, part in enumerate(parts):
        if isinstance(part, Exception):
            raise ValueError(f"in process {k}: {part}") from part
    if unsent := attempt(pickle.dumps, estimator).error:
        raise ValueError(
            f"the estimator cannot be sent to the other processes: {unsent}. Give it functions and classes of modules, "
            "no lambdas and none that are made within a function."
        ) from unsent
    dtype, joined = joined_columns(parts, "process")
    lengths = [part.n_rows for part in parts]
    table = Table(FirstParts(second, channel, X, lengths, dtype, parts[0].names))
    return clone(estimator).fit(table, joined.pop("y"), **joined)
