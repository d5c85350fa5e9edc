"""Processes of a fit as threads, whose messages go through queues and pickle."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Queue

from fairconstrained.distributed.processes import fit_in


@dataclass
class QueueChannel:
    """A channel between threads, as `fairconstrained.distributed.channel.Channel` is one between processes."""

    rank: int
    size: int
    queues: dict = field(repr=False)

    def send(self, message, to):
        self.queues[self.rank, to].put(pickle.dumps(message))

    def receive(self, sender):
        return pickle.loads(self.queues[sender, self.rank].get(timeout=60))


def fits_of(estimator, shards):
    """Result of every process, or its error; ``shards`` are the arguments of `fit` of one process after the other."""
    size = len(shards)
    queues = {(a, b): Queue() for a in range(size) for b in range(size)}

    def run(rank):
        X, columns = shards[rank]
        try:
            return fit_in(QueueChannel(rank, size, queues), estimator, X, columns)
        except Exception as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))
