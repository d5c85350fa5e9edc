"""Processes of a fit as threads, whose messages go through queues and pickle."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from queue import Queue

from fairconstrained.distributed.packing import pickled
from fairconstrained.distributed.processes import fit_in
from fairconstrained.distributed.requests import HeldRows, attempt


@dataclass
class QueueChannel:
    """A channel between threads, as `fairconstrained.distributed.channel.Channel` is one between processes."""

    rank: int
    size: int
    leader: int
    queues: dict = field(repr=False)
    timeout: float = 60.0

    @property
    def leads(self):
        return self.rank == self.leader

    @property
    def others(self):
        return [k for k in range(self.size) if k != self.leader]

    def close(self):
        """Do nothing: queues need no end."""

    def send(self, message, to):
        self.queues[self.leader, self.rank, to].put([bytearray(part) for part in pickled(message)])

    def receive(self, sender):
        head, *buffers = self.queues[self.leader, sender, self.rank].get(timeout=self.timeout)
        return pickle.loads(head, buffers=buffers)


class DirectChannel:
    """A channel to one other process, which computes as soon as it is asked."""

    leader, others = 0, (1,)

    def __init__(self, X):
        self.other, self.sent_bytes, self._request = HeldRows(X), 0, None

    def send(self, message, to):
        head, *buffers = [bytearray(part) for part in pickled(message)]
        self.sent_bytes, self._request = sum(map(len, [head, *buffers])), pickle.loads(head, buffers=buffers)

    def receive(self, sender):
        return attempt(self.other.result, self._request)


def fits_of(estimator, shards):
    """Result of every process, or its error; ``shards`` are the arguments of `fit` of one process after the other."""
    size = len(shards)
    leaders = range(min(size, 2))
    queues = {places: Queue() for places in product(leaders, range(size), range(size))}

    def run(rank):
        X, columns = shards[rank]
        try:
            channels = [QueueChannel(rank, size, leader, queues) for leader in leaders]
            return fit_in(channels, estimator, X, columns)
        except Exception as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))
