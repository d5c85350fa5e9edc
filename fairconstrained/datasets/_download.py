"""Downloads that fail with one sentence a user can act on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from http.client import HTTPException
from os import PathLike
from typing import TypeVar

import pandas as pd
from sklearn.datasets import fetch_openml, get_data_home

__all__ = ["fetch_openml_table", "or_connection_error"]

Result = TypeVar("Result")


def or_connection_error(fetch: Callable[[], Result], *, what: str, remedy: str) -> Result:
    """Run ``fetch`` and turn any failure of the network into one readable error.

    Parameters
    ----------
    fetch : callable
        Downloads, or reads from the cache.
    what : str
        The data, for the message.
    remedy : str
        Advice to the user: what to do instead of connecting to the internet.

    Raises
    ------
    ConnectionError
        From the original error, if the data could be neither downloaded nor read from the cache.
    PermissionError
        Unchanged: the cache folder cannot be written, which no connection repairs.
    """
    with warnings.catch_warnings():
        # scikit-learn announces every retry; the error below says all of it once.
        warnings.filterwarnings("ignore", message="A network error occurred while downloading")
        warnings.filterwarnings("ignore", message="Retry downloading from url")
        try:
            return fetch()
        except PermissionError:
            raise
        except (OSError, HTTPException) as error:
            # A file that is missing after a download says nothing about why the download failed.
            reason = "" if isinstance(error, FileNotFoundError) else f" because of {error}".rstrip(".")
            raise ConnectionError(
                f"Could not download {what}{reason}; connect this machine to the internet and call again, or {remedy}."
            ) from error


def fetch_openml_table(data_id: int, what: str, data_home: str | PathLike[str] | None) -> pd.DataFrame:
    """The whole table of an OpenML dataset as text, label included, from scikit-learn's cache or the network.

    Raises ConnectionError if the dataset is not in the cache and OpenML cannot be reached.
    """
    bunch = or_connection_error(
        # As text: which types pandas infers for nominal columns of digits differs between its versions, and
        # scikit-learn up to 1.9.1 fails on those of pandas 3.1 (scikit-learn pull request 34902).
        lambda: fetch_openml(data_id=data_id, data_home=data_home, as_frame=True, read_csv_kwargs={"dtype": str}),
        what=f"{what} (OpenML dataset {data_id})",
        remedy=(
            "copy the folder 'openml' from the scikit-learn data folder of a machine that has fetched it "
            f"into '{get_data_home(data_home)}'"
        ),
    )
    return bunch.frame
