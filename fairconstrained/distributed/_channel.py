"""Objects sent from one process of a torch.distributed group to another."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from fairconstrained.distributed.errors import ProcessLost

__all__ = ["Channel"]


class Channel:
    """Connections between the processes of a group, for objects with large arrays.

    The arrays are sent as they lie in memory, beside the rest of the object, which is pickled.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup or None
        Processes that take part; None: all of them.
    timeout : float
        Seconds for which a process waits for another one.

    Attributes
    ----------
    rank, size : int
        Number of this process in the group, and number of processes.
    n_bytes, n_messages : int
        Bytes and objects that this process has sent and received so far.
    """

    def __init__(self, group: Any, timeout: float) -> None:
        ranks = dist.get_process_group_ranks(group) if group is not None else None
        # gloo sends arrays of the CPU, whatever the group of the caller is made for
        self._group = dist.new_group(ranks, backend="gloo", timeout=timedelta(seconds=timeout))
        self.rank, self.size = dist.get_rank(self._group), dist.get_world_size(self._group)
        self._timeout, self.n_bytes, self.n_messages = timeout, 0, 0

    def close(self) -> None:
        """Close the connections."""
        dist.destroy_process_group(self._group)

    def send(self, message: Any, to: int) -> None:
        """Send an object to a process, by its number in the group."""
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
        parts = [_as_tensor(part) for part in (head, *(buffer.raw() for buffer in buffers))]
        sizes = torch.tensor([part.numel() for part in parts])
        for tensor in (torch.tensor([len(parts)]), sizes, *parts):
            self._pass(dist.send, tensor, to)
        self.n_messages += 1

    def receive(self, sender: int) -> Any:
        """Wait for an object from a process, by its number in the group."""
        sizes = self._received(int(self._received(1, torch.int64, sender).item()), torch.int64, sender)
        head, *parts = [self._received(size, torch.uint8, sender) for size in sizes.tolist()]
        self.n_messages += 1
        return pickle.loads(head.numpy(), buffers=[part.numpy() for part in parts])

    def _received(self, size: int, dtype: torch.dtype, sender: int) -> torch.Tensor:
        tensor = torch.empty(size, dtype=dtype)
        self._pass(dist.recv, tensor, sender)
        return tensor

    def _pass(self, function: Any, tensor: torch.Tensor, other: int) -> None:
        if not tensor.numel():
            return
        self.n_bytes += tensor.numel() * tensor.element_size()
        try:
            function(tensor, dist.get_global_rank(self._group, other), group=self._group)
        except RuntimeError as error:
            raise ProcessLost(
                f"process {other} of {self.size} has ended, or has not answered for {self._timeout:g} seconds "
                f"({str(error).splitlines()[0]:.200}). Its own output says why. Start all processes again; "
                "torchrun --max-restarts does so."
            ) from error


def _as_tensor(raw: Any) -> torch.Tensor:
    """The bytes of a buffer, without a copy where they may be written to, which torch asks for."""
    values = np.frombuffer(raw, dtype=np.uint8)
    return torch.from_numpy(values if values.flags.writeable else values.copy())
