"""The manifest of measured figures is complete, and says what is older than the code that was measured."""

import importlib
import sys
from pathlib import Path

import pytest

from benchmarks import manifest, stale
from benchmarks.manifest import MEASURED, Entry, benchmark_of, code_lines, digest, entries, is_measured, remark

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOW = Entry("speed.csv", "speed", "1.0", "abc", "2026-11-25", "now")


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A manifest of one table, and the code "now" of everything."""
    (tmp_path / "speed.csv").write_text("seconds\n1\n")
    monkeypatch.setattr(manifest, "MANIFEST", tmp_path / "manifest.csv")
    manifest._write({NOW.file: NOW._replace(code="then")})
    monkeypatch.setattr(manifest, "_digest_now", lambda benchmark: "now")
    monkeypatch.setattr(manifest._digest_now, "cache_clear", lambda: None, raising=False)
    return tmp_path


def test_every_table_has_an_entry_and_every_entry_a_file():
    known = {entry.file: entry for entry in entries()}
    tables = {path.name for path in (DOCS / "benchmarks").glob("*.csv")} - {"manifest.csv"}
    assert tables - set(known) == set()
    places = [DOCS, DOCS / "benchmarks", DOCS / "images"]
    assert [name for name in known if not any((place / name).exists() for place in places)] == []
    assert {entry.benchmark for entry in known.values()} <= set(MEASURED)
    for name in tables:
        assert known[name].benchmark == benchmark_of(name)


def test_every_picture_of_a_page_was_drawn_by_something_that_is_known():
    pictures = {path.name for path in (DOCS / "images").glob("*.png") if not path.stem.endswith("_dark")}
    known = {entry.file for entry in entries()}
    without_figures = {"notion_tree.png", "estimator_tree.png"}
    assert {name for name in pictures - known if not benchmark_of(name)} == without_figures


def test_what_is_measured_exists():
    package = ROOT / "fairconstrained"
    modules = [path.relative_to(package).as_posix() for path in package.rglob("*.py")]
    for benchmark, parts in MEASURED.items():
        for part in parts:
            places = {"only": (part,)}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(manifest, "MEASURED", places)
                assert any(is_measured(name, "only") for name in modules), (benchmark, part)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("paths/_walk.py", True), ("solvers/span.py", True), ("solvers/published/ipc.py", False), ("data.pyi", False)],
)
def test_a_star_stands_for_the_modules_of_a_folder_itself(path, expected):
    assert is_measured(path, "fairness_paths") is expected


def test_only_code_counts():
    source = '"""Doc."""\n\nx = 1  \n# why\ndef f():\n    """Doc\n\n    more."""\n    return x\n'
    same = '"""Other."""\nx = 1\ndef f():\n    # because\n    return x\n'
    assert code_lines(source) == "x = 1\ndef f():\n    return x"
    assert digest([("a", source), ("b", "y = 1")]) == digest([("b", "y = 1"), ("a", same)])
    assert digest([("a", source)]) != digest([("a", same.replace("1", "2"))]) != digest([("c", same)])


def test_tables_that_change_are_entered(copied):
    with manifest.recorded("speed"):
        (copied / "speed.csv").write_text("seconds\n1\n")
    assert entries() == [NOW._replace(code="then")]  # the same figures
    with manifest.recorded("speed", is_new=False):
        (copied / "speed.csv").write_text("seconds\n1.0\n")
    assert entries() == [NOW._replace(code="then")]  # drawn anew from what was measured then
    with manifest.recorded("trial"):
        (copied / "trial.csv").write_text("seconds\n2\n")
        (copied / "speed.csv").write_text("seconds\n3\n")
    speed, trial = entries()
    assert (speed.file, speed.benchmark, trial.file, trial.code) == ("speed.csv", "trial", "trial.csv", "now")
    assert trial.date > NOW.date
    assert not trial.is_stale


def test_a_benchmark_has_to_say_what_it_measures(copied):
    with pytest.raises(ValueError, match=r"MEASURED of manifest.py which parts of the package 'other' measures"):
        manifest.recorded("other").__enter__()


def test_the_list_names_what_is_old(copied, capsys, monkeypatch):
    manifest._write({NOW.file: NOW, "trial.csv": NOW._replace(file="trial.csv", benchmark="trial", code="then")})
    monkeypatch.setattr(sys, "argv", ["stale"])
    stale.main()
    out = capsys.readouterr().out
    assert out.startswith("1 of 2 files are older than the code that they measure.\ntrial\n    2026-11-25  version 1.0")
    assert "speed.csv" not in out
    monkeypatch.setattr(sys, "argv", ["stale", "--measured", "trial.csv"])
    stale.main()
    assert capsys.readouterr().out.startswith("0 of 2 files")
    monkeypatch.setattr(sys, "argv", ["stale", "--measured", "other.csv"])
    with pytest.raises(SystemExit):
        stale.main()
    assert "the manifest has no ['other.csv']" in capsys.readouterr().err


def test_without_a_repository_the_number_of_changes_is_unknown(copied, monkeypatch):
    monkeypatch.setattr(manifest, "ROOT", copied)
    manifest._changes.cache_clear()
    assert "commits since: unknown" in stale.listed([NOW._replace(code="then")])
    manifest._changes.cache_clear()


def test_the_words_of_a_page(copied):
    old = NOW._replace(file="speed_old.csv", date="2026-10-01", code="then")
    assert remark([NOW]).endswith("1.0, on 25 November 2026. The measured code has not changed since.")
    assert "between 1 October 2026 and 25 November 2026" in remark([NOW, old])
    assert remark([NOW, old]).endswith("has changed since the measurement of: speed_old (1 October 2026).")
    assert "package of today may give other figures" in remark([old])


def test_pages_find_their_figures(monkeypatch):
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(DOCS))
    measured = importlib.import_module("measured")
    found = measured.entries_of("benchmarks/any_model", {"any_model_kept.csv", "other.csv"}, {"any_model_rates.png"})
    assert [entry.file for entry in found] == ["any_model_kept.csv"]
    found = measured.entries_of("guide/certification", set(), {"certification_cost.png"})
    assert {entry.file for entry in found} == {"guide/certification.rst"}
    found = measured.entries_of("guide/paths", set(), {"fairness_paths.png", "notion_tree.png"})
    assert [entry.file for entry in found] == ["fairness_paths_table.csv"]
    assert measured.entries_of("guide/deploy", set(), set()) == []
