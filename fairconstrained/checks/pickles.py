"""Files with one pickled object, which are whole at any time."""

from __future__ import annotations

import pickle
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["check_place", "read_pickle", "write_pickle"]

T = TypeVar("T")


def check_place(path: str | PathLike[str]) -> None:
    """Raise ValueError if a checkpoint cannot be written there, as there is no folder or the path is one."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ValueError(f"the checkpoint {path} cannot be written: there is no folder {path.parent}. Make it first.")
    if path.is_dir():
        raise ValueError(f"the checkpoint {path} is a folder; pass the path of a file in it.")


def write_pickle(path: str | PathLike[str], value: Any) -> None:
    """Write an object to a file. Whatever happens meanwhile, the file holds the former object or this one."""
    path = Path(path)
    fresh = path.with_name(f"{path.name}.tmp")
    with fresh.open("wb") as file:
        pickle.dump(value, file)
    fresh.replace(path)


def read_pickle(path: str | PathLike[str], kind: type[T]) -> T:
    """Read an object of a kind from a checkpoint. Raises ValueError if the file holds something else."""
    path = Path(path)
    content = path.read_bytes()
    try:
        value = pickle.loads(content)
    except Exception as error:  # a damaged file may ask for anything
        raise ValueError(f"{path} is not a checkpoint that this version can read: {error}") from error
    if not isinstance(value, kind):
        raise ValueError(f"{path} is not a checkpoint: it holds an object of {type(value)}.")
    return value
