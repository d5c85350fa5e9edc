"""What is set before every example of the gallery runs."""

from __future__ import annotations

import warnings
from typing import Any


def plain_warnings(gallery_conf: dict[str, Any], example: str) -> None:
    """Show warnings of an example without the folders of the machine that has run it."""

    def plain(message: Warning | str, category: type[Warning], *_: Any) -> str:
        return f"{category.__name__}: {message}\n"

    warnings.formatwarning = plain
