"""Check that what is published is complete.

``python .ci/archives.py FOLDER`` compares the archive of the source in the folder with all files of the repository, so
that the tests pass from it as from a clone, and the wheel with those of the package.
"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]


def tracked(folder: str) -> set[str]:
    """Files of the repository below a folder."""
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


def in_source(archive: Path) -> set[str]:
    """Files in the archive of the source, without the folder that holds them all."""
    with tarfile.open(archive) as content:
        return {"/".join(PurePosixPath(member.name).parts[1:]) for member in content if member.isfile()}


def in_wheel(wheel: Path) -> set[str]:
    """Files in the wheel."""
    with zipfile.ZipFile(wheel) as content:
        return set(content.namelist())


def main(folder: Path) -> int:
    """Print what is missing; 0 if nothing is."""
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    missing = {
        source.name: tracked(".") - in_source(source),
        wheel.name: tracked("fairconstrained") - in_wheel(wheel),
    }
    for name, files in missing.items():
        print(f"{name}: {len(files)} files are missing {sorted(files)[:10]}" if files else f"{name}: complete")
    return int(any(missing.values()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
