"""Objects sent from one process of a torch.distributed group to another."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from fairconstrained.distributed.errors import ProcessLost
from fairconstrained.distributed.packing import pickled

__all__ = ["FIRST", "Channel"]


#: Bytes of the first part of every message, which small ones fit into: waiting takes longer than sending them.
FIRST = 2**14


class Channel:
    """Connections between the processes of a group, for objects with large arrays.

    The arrays are sent as they lie in memory, or in fewer bytes if these give back the same numbers, beside the rest
    of the object, which is pickled.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup or None
        Processes that take part; None: all of them.
    timeout : float
        Seconds for which a process waits for another one.
    leader : int
        Number of the process that asks all others.

    Attributes
    ----------
    rank, size : int
        Number of this process in the group, and number of processes.
    others : list of int
        Numbers of all processes but the leader.
    leads : bool
        Whether this process is the leader.
    n_bytes, n_messages : int
        Bytes and objects that this process has sent and received so far.
    """

    def __init__(self, group: Any, timeout: float, leader: int = 0) -> None:
        ranks = dist.get_process_group_ranks(group) if group is not None else None
        # gloo sends arrays of the CPU, whatever the group of the caller is made for
        self._group = dist.new_group(ranks, backend="gloo", timeout=timedelta(seconds=timeout))
        self.rank, self.size = dist.get_rank(self._group), dist.get_world_size(self._group)
        self.leader, self.leads = leader, self.rank == leader
        self.others = [k for k in range(self.size) if k != leader]
        self.timeout, self.n_bytes, self.n_messages = timeout, 0, 0

    def close(self) -> None:
        """Close the connections."""
        dist.destroy_process_group(self._group)

    def send(self, message: Any, to: int) -> None:
        """Send an object to a process, by its number in the group."""
        parts = [np.frombuffer(part, dtype=np.uint8) for part in pickled(message)]
        first = np.zeros(FIRST, dtype=np.uint8)
        sizes = np.array([len(parts), *(part.size for part in parts)])
        first[: sizes.nbytes] = sizes.view(np.uint8)
        fits = sizes.nbytes + sum(sizes[1:]) <= FIRST
        if fits:
            first[sizes.nbytes : sizes.nbytes + sum(sizes[1:])] = np.concatenate(parts)
        for part in (first, *([] if fits else parts)):
            # torch asks for arrays that may be written to
            self._pass(dist.send, torch.from_numpy(part if part.flags.writeable else part.copy()), to)
        self.n_messages += 1

    def receive(self, sender: int) -> Any:
        """Wait for an object from a process, by its number in the group."""
        first = self._received(FIRST, sender)
        n_parts = int(first[:8].view(np.int64)[0])
        sizes = first[8 : 8 * (n_parts + 1)].view(np.int64)
        begin = 8 * (n_parts + 1)
        if begin + sizes.sum() <= FIRST:
            parts = np.split(first[begin:], np.cumsum(sizes))[:-1]
        else:
            parts = [self._received(size, sender) for size in sizes.tolist()]
        self.n_messages += 1
        return pickle.loads(parts[0].tobytes(), buffers=parts[1:])

    def _received(self, size: int, sender: int) -> np.ndarray:
        tensor = torch.empty(size, dtype=torch.uint8)
        self._pass(dist.recv, tensor, sender)
        return tensor.numpy()

    def _pass(self, function: Any, tensor: torch.Tensor, other: int) -> None:
        if not tensor.numel():
            return
        self.n_bytes += tensor.numel() * tensor.element_size()
        try:
            function(tensor, dist.get_global_rank(self._group, other), group=self._group)
        except RuntimeError as error:
            raise ProcessLost(
                f"process {other} of {self.size} has ended, or has not answered for {self.timeout:g} seconds. Its own "
                "output says why. Start all processes again: within fairconstrained.callbacks.resumable, the fit goes "
                "on where it was."
            ) from error
