"""Figures of the documentation that are older than the last change of the code which they measure.

``python -m benchmarks.stale`` prints them by benchmark, with the day of the measurement and, in a repository, the
number of commits since then that touch what was measured; ``make stale`` does the same. Comments, docstrings and empty
lines are no change. Benchmarks enter their own tables in the manifest. ``--measured guide/thresholds.rst`` enters a
page or a picture whose figures have been measured again by hand.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

from benchmarks.manifest import MEASURED, Entry, changes_since, enter, entries


def listed(found: list[Entry]) -> str:
    """Return the lines to print."""
    stale: dict[str, list[Entry]] = defaultdict(list)
    for entry in found:
        if entry.is_stale:
            stale[entry.benchmark].append(entry)
    lines = [f"{sum(map(len, stale.values()))} of {len(found)} files are older than the code that they measure."]
    for benchmark in [name for name in MEASURED if name in stale]:
        lines.append(benchmark)
        for entry in stale[benchmark]:
            changes = changes_since(entry) or "unknown"
            lines.append(f"    {entry.date}  version {entry.version}, commits since: {changes:>7}  {entry.file}")
    return "\n".join(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", nargs="+", metavar="FILE", help="files to enter as measured today")
    names = parser.parse_args().measured or []
    known = {entry.file: entry.benchmark for entry in entries()}
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"the manifest has no {unknown}: add a line with the name of what they measure")
    for name in names:
        enter([name], known[name])
    print(listed(entries()))


if __name__ == "__main__":
    main()
