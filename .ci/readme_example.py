"""Run the first example of the README with the installed package, from an empty folder."""

import os
import re
import tempfile
from pathlib import Path

import fairconstrained

ROOT = Path(__file__).parents[1]
if Path(fairconstrained.__file__).parents[1] == ROOT:
    raise SystemExit(f"fairconstrained is that of the repository, not of a wheel: {fairconstrained.__file__}")
example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
if example is None:
    raise SystemExit("README.md has no example in Python.")
os.chdir(tempfile.mkdtemp())
exec(compile(example[1], "README.md", "exec"), {"__name__": "__main__"})
