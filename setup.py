"""Settings that pyproject.toml cannot hold: the page on an index, and archives without the builder's identity."""

import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
#: Targets of links and pictures that are files of the repository.
_FILE = r"(?!\w+:|#)[^)\s\"]+"


def without_files(text: str) -> str:
    """Return Markdown whose links need no files beside it, without pictures in files and what they show in italics."""
    text = re.sub(rf"<picture>.*?</picture>|<img\b[^>]*\bsrc=\"{_FILE}\"[^>]*>", "", text, flags=re.DOTALL)
    text = re.sub(rf"!\[[^\]]*\]\({_FILE}\)(\n\n\*[^*]+\*(?=\n\n))?", "", text)
    return re.sub(rf"\[([^\]]*)\]\({_FILE}\)", r"\1", text)


if __name__ == "__main__":
    setup(
        long_description=without_files((ROOT / "README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
        options={"sdist": {"owner": "root", "group": "root"}},
    )
