"""The device of torch that a name stands for."""

from __future__ import annotations

from functools import cache

import torch

__all__ = ["found_device"]


def found_device(device: str | torch.device) -> torch.device:
    """Return a device that torch knows and finds.

    Parameters
    ----------
    device : str or torch.device
        ``"auto"``: the CUDA device if there is one, and otherwise the CPU.

    Raises
    ------
    ValueError
        If it is no device of these kinds, or there is none of that number.
    """
    n_found = torch.cuda.device_count()
    if device == "auto":
        return _opened(torch.device("cuda")) if n_found else torch.device("cpu")
    try:
        known = torch.device(device)
    except RuntimeError:
        known = None
    if known is None or known.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu' or a CUDA device such as 'cuda', got {str(device)!r}.")
    if known.type == "cuda" and (known.index or 0) >= n_found:
        found = f"{n_found} CUDA devices" if n_found else "no CUDA device"
        raise ValueError(f"device={str(device)!r}, but torch finds {found}. Set device='auto' or 'cpu'.")
    return known if known.type == "cpu" else _opened(known)


@cache
def _opened(device: torch.device) -> torch.device:
    """Return a CUDA device that a backward pass has used: torch warns where the first one begins with a product."""
    torch.ones(1, device=device, requires_grad=True).sqrt().backward()
    return device
