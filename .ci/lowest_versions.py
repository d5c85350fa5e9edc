"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

``make test-min`` installs them. A requirement such as ``numpy>=1.26`` becomes ``numpy==1.26.*``. torch is left out:
the build at hand is the CPU's of one version.
"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]


def all_of(extra: str) -> list[str]:
    """Requirements of an extra, with those of the extras that it includes."""
    found = []
    for requirement in extras[extra]:
        included = re.fullmatch(r"fairconstrained\[(.*)\]", requirement)
        found += [line for name in included[1].split(",") for line in all_of(name)] if included else [requirement]
    return found


for requirement in [*project["dependencies"], *all_of("test")]:
    name, version = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement).groups()
    if name != "torch":
        print(f"{name}=={version}.*")
print("pyparsing<3.3")  # those after it warn about how matplotlib 3.8 calls them, and warnings are errors in the tests
