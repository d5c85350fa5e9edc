"""Small files in the original formats, a scikit-learn cache filled from them, and the shared real data."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

HERE = Path(__file__).parent


@pytest.fixture
def files() -> Path:
    return HERE / "files"


@pytest.fixture
def real_data() -> Callable[[str], pd.DataFrame]:
    """Reads a table of the shared real data, or skips."""

    def read(name: str) -> pd.DataFrame:
        folder = Path(os.environ.get("FAIRCONSTRAINED_DATA", HERE.parents[2] / "shared" / "data"))
        if not (folder / name).is_file():
            pytest.skip(f"{name} is neither in $FAIRCONSTRAINED_DATA nor in ../shared/data")
        return pd.read_parquet(folder / name)

    return read


@pytest.fixture
def openml_cache(tmp_path: Path, files: Path) -> Callable[[str, int, str], Path]:
    """A data_home in which ``fetch_openml`` finds one of the small ARFF files as if it had downloaded it."""

    def fill(name: str, data_id: int, target: str) -> Path:
        arff = (files / name).read_bytes()
        features = _feature_list(arff.decode(), target)
        description = {
            "id": str(data_id),
            "name": name,
            "version": "1",
            "description": "a small file of the tests",
            "format": "ARFF",
            "status": "active",
            "url": f"https://www.openml.org/data/v1/download/7/{name}",
            "file_id": "7",
            "md5_checksum": hashlib.md5(arff).hexdigest(),
        }
        root = tmp_path / "openml" / "openml.org"
        _store(root / f"api/v1/json/data/{data_id}", _json(data_set_description=description))
        _store(root / f"api/v1/json/data/features/{data_id}", _json(data_features={"feature": features}))
        _store(root / f"api/v1/json/data/qualities/{data_id}", _json(data_qualities={"quality": []}))
        _store(root / "data/v1/download/7", arff)  # where scikit-learn looked before it followed the url
        _store(root / f"data/v1/download/7/{name}", arff)
        return tmp_path

    return fill


def _feature_list(arff: str, target: str) -> list[dict[str, Any]]:
    header, rows = re.split(r"@data\s*\n", arff, flags=re.IGNORECASE)
    attributes = re.findall(r"^@attribute\s+(\S+)\s+(.+)$", header, flags=re.IGNORECASE | re.MULTILINE)
    cells = [[cell.strip() for cell in row.split(",")] for row in rows.splitlines()]
    return [
        {
            "index": str(index),
            "name": name,
            "data_type": "nominal" if kind.startswith("{") else "numeric",
            "is_target": str(name == target).lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": str(sum(row[index] == "?" for row in cells)),
        }
        for index, (name, kind) in enumerate(attributes)
    ]


def _json(**content: Any) -> bytes:
    return json.dumps(content).encode()


def _store(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
