"""Code of the documentation is shown with its imports and its output (``docs/runcode.py``)."""

import importlib.util
import json
from pathlib import Path

import pytest

pytest.importorskip("sphinx.directives")
pytest.importorskip("matplotlib")

SOURCE = """import os
from pathlib import Path, PurePath

# first
print("one",
      Path("x"))

# second
for number in range(2):
    print(number, os.sep, Path("y"))
"""


@pytest.fixture(scope="module")
def runcode():
    path = Path(__file__).parents[1] / "docs" / "runcode.py"
    spec = importlib.util.spec_from_file_location("runcode", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_fragment_has_the_imports_that_it_uses_once(runcode):
    first, second = SOURCE.split("# first\n")[1].split("# second\n")
    seen = set()
    assert runcode.needed_imports(SOURCE, first, seen) == "from pathlib import Path"
    assert runcode.needed_imports(SOURCE, second, seen) == "import os"
    assert runcode.needed_imports(SOURCE, second, seen) == ""


def test_imports_of_the_fragment_itself_are_not_repeated(runcode):
    seen = set()
    assert runcode.needed_imports(SOURCE, SOURCE, seen) == ""
    assert {"os", "Path"} <= seen


def test_output_belongs_to_the_lines_that_print_it(runcode, tmp_path):
    path, target = tmp_path / "code.py", tmp_path / "code.json"
    path.write_text(SOURCE, encoding="utf-8")
    runcode.run_file(str(path), str(target), "key")
    found = json.loads(target.read_text(encoding="utf-8"))
    assert found["key"] == "key"
    first, second = SOURCE.split("# first\n")[1].split("# second\n")
    for fragment, printed in ((first, "one x\n"), (second, "0 / y\n1 / y\n")):
        lines = runcode.lines_of(SOURCE, fragment)
        assert "".join(each["text"] for each in found["records"] if each["line"] in lines) == printed


def test_a_fragment_of_another_file_is_an_error(runcode):
    with pytest.raises(ValueError, match="not a part"):
        runcode.lines_of(SOURCE, "print('three')")
