"""Measure how strong the fast tier is: the share of seeded random faults in the code that its tests notice.

Run from the root of a checkout, in an environment with the package, its tests' requirements, ``cosmic-ray`` and
``coverage``::

    python .ci/mutation.py map MAP       # the fast tier once: which test runs which line, and for how long
    python .ci/mutation.py run MAP LOG   # the mutants; LOG has a line of JSON for each

cosmic-ray writes the mutants. A place in the code is drawn, then one of its mutations, so that an operator with many
substitutes weighs no more than others. Annotations, decorators and flags that only declare something are no places;
what is no Python, what Python warns of (``is`` with a string) and ``<`` or ``>`` with a string are not drawn. Each
mutant is a fork of a process that has imported numpy, torch and scikit-learn, and runs the tests of the mutated line
until one fails: those of the package's own folder first, then those of less work, up to a budget of CPU seconds. A
mutant that would have needed more than this counts as survived. The first few of these tests, which kill most mutants,
have a fork of their own, as the rest takes long to collect.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import random
import resource
import sys
import textwrap
import time
import warnings
from collections import Counter, defaultdict
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

PLACES = (
    "constraints/*.py",
    "terms.py",
    "points.py",
    "problem.py",
    "estimators/_base.py",
    "estimators/_outcome.py",
    "certification/*.py",
)
ROOT = Path.cwd()
#: Tests that look at definitions (defaults, how dataclasses compare) without running a line of them.
DEFINITIONS = ("tests/test_documented_defaults.py", "tests/test_dataclasses.py")
FILES = sorted(path for place in PLACES for path in (ROOT / "fairconstrained").glob(place))


class Recorder:
    """Plugin of pytest: the coverage of each test as a context, and its CPU seconds."""

    def __init__(self, coverage):
        self.coverage, self.seconds = coverage, Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Note the context and the CPU seconds of a test."""
        self.coverage.switch_context(item.nodeid)
        begin = time.process_time()
        result = yield
        self.seconds[item.nodeid] += time.process_time() - begin
        self.coverage.switch_context("")
        return result


def record(where: Path) -> None:
    """Run the fast tier once and write the tests of every line."""
    from coverage import Coverage

    coverage = Coverage(data_file=None, include=[str(path) for path in FILES])
    recorder = Recorder(coverage)
    with coverage.collect():
        pytest.main(["-q", "-p", "no:cacheprovider", "--ignore=tests/benchmarks"], plugins=[recorder])
    write_map(where, coverage.get_data(), recorder.seconds)


def write_map(where: Path, data, seconds) -> None:
    """Write the tests of every line, and the seconds of every test."""
    lines = {str(p.relative_to(ROOT)): data.contexts_by_lineno(str(p)) for p in FILES}
    where.write_text(json.dumps({"seconds": seconds, "lines": lines}))


def candidates(path: Path):
    """Yield the places of a file with their mutations: (line, column, family), [(operator, occurrence), ...]."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast(path.read_text())))
    found = defaultdict(list)
    for name in sorted(operator_names()):
        operator = get_operator(name)
        if operator.arguments() or "NoOp" in name:
            continue
        positions = ((node, at) for node in nodes for at in operator().mutation_positions(node))
        for occurrence, (node, (begin, _)) in enumerate(positions):
            if not (without_effect(node) or orders_strings(node, name)):
                found[*begin, name.split("/")[1].split("_")[0]].append((name, occurrence))
    yield from sorted(found.items())


def orders_strings(node, operator: str) -> bool:
    """Tell whether a mutation asks which of two strings comes first in the alphabet."""
    in_order = operator.rpartition("_")[2] in ("Lt", "LtE", "Gt", "GtE")
    compared = node if node.type == "comparison" else node.parent
    return in_order and any(child.type == "string" for child in compared.children)


#: Decorators without which nothing changes: calls go through the class, checkers alone read the others.
DECLARING = ("override", "staticmethod", "final")
#: Arguments that forbid something, or change what is printed, and nothing else.
FLAGS = ("frozen", "strict", "kw_only", "repr")
#: Where in its parent a type annotation stands.
ANNOTATIONS = {"annassign": 1, "tfpdef": 2}
#: Parents of stars that neither multiply nor raise to a power.
STARRED = ("parameters", "param", "argument", "arglist", "star_expr", "dictorsetmaker", "atom", "lambdef")


def without_effect(node) -> bool:
    """Tell whether a mutation of the node can change nothing that a program does."""
    if node.type == "decorator":
        decorated, code = node.parent.get_code(), node.get_code()
        if any(name in code for name in DECLARING) or "abstractmethod" in decorated:
            return True
        if "dataclass" in code and not has_fields(node.parent):
            return True  # the class inherits all that the decorator would write
    if node.type == "operator" and node.value in ("*", "**") and node.parent.type in STARRED:
        return True
    while node.parent is not None:
        inside, node = node, node.parent
        if node.type == "funcdef" and node.annotation is inside:
            return True
        if node.type in ANNOTATIONS and node.children[ANNOTATIONS[node.type]] is inside:
            return True
        if node.type == "argument" and getattr(node.children[0], "value", "") in FLAGS:
            return True
        if node.type == "classdef" and (bases := node.get_super_arglist()) and "Protocol" in bases.get_code():
            return True
    return False


def has_fields(decorated) -> bool:
    """Tell whether a class has annotated attributes of its own."""
    (definition,) = ast.parse(textwrap.dedent(decorated.get_code())).body
    return any(isinstance(statement, ast.AnnAssign) for statement in definition.body)


def drawn(seed: int, n_mutants: int):
    """Yield mutants that can be compiled: file, line, column, operator, occurrence and compiled code."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    rng = random.Random(seed)
    places = [(path, *place) for path in FILES for place in candidates(path)]
    rng.shuffle(places)
    for path, (line, column, _), ways in places:
        operator, occurrence = rng.choice(ways)
        text = mutate_code(path.read_text(), get_operator(operator)(), occurrence)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", SyntaxWarning)
                code = compile(text, str(path), "exec")
        except SyntaxError:
            continue
        if not n_mutants:
            return
        n_mutants -= 1
        yield path, line, column, operator, occurrence, code


def chosen_tests(path: str, line: int, tests: dict, budget: float) -> list[str]:
    """Return the tests to run for a line in their order, by file and by work, within the budget."""
    by_line = tests["lines"][path]
    covering = {name for name in by_line.get(str(line), []) if name}
    at_import = not covering and "" in by_line.get(str(line), [])
    if at_import:
        covering = {name for names in by_line.values() for name in names if name}
        covering = covering or set(tests["seconds"])  # such as a class that has nothing but attributes
        covering |= {name for name in tests["seconds"] if name.startswith(DEFINITIONS)}
    files = defaultdict(list)
    for name in covering:
        files[name.split("::")[0]].append((tests["seconds"][name], name))
    own = path.split("/")[1].removesuffix(".py")
    order = sorted(
        files, key=lambda file: (at_import and file not in DEFINITIONS, own not in file, min(files[file]), file)
    )
    chosen, spent = [], 0.0
    for share in (0.25, 1.0):  # at first no file takes more than a quarter, then what is left
        for file in order:
            of_file = 0.0
            for seconds, name in sorted(files[file]):
                seconds += 0.01
                of_file += seconds
                if name not in chosen and of_file <= share * budget and spent + seconds <= budget:
                    chosen.append(name)
                    spent += seconds
    return chosen


class Chosen:
    """Plugin of pytest: nothing but the chosen tests, in their order."""

    def __init__(self, names):
        self.rank = {name: i for i, name in enumerate(names)}
        self.killer = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Keep the chosen tests, file by file."""
        files = {name.split("::")[0]: rank for name, rank in reversed(self.rank.items())}
        items[:] = [item for item in items if item.nodeid in self.rank]
        items.sort(key=lambda item: (files[item.nodeid.split("::")[0]], self.rank[item.nodeid]))

    def pytest_runtest_logreport(self, report):
        """Note the first test that fails."""
        if report.failed and not self.killer:
            self.killer = report.nodeid

    def pytest_collectreport(self, report):
        """Note a file that cannot be imported."""
        if report.failed and not self.killer:
            self.killer = f"collection of {report.nodeid}"


def in_fork(path: Path, code: CodeType, names: list[str], budget: float) -> dict:
    """Run the tests with the code in the file's place, in a fork, and return which one failed ('' is none)."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(4 * budget) + 60,) * 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        sys.meta_path.insert(0, Mutant(path, code))
        chosen = Chosen(names)
        try:
            files = list(dict.fromkeys(name.split("::")[0] for name in names))
            status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files], plugins=[chosen])
            if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                chosen.killer = chosen.killer or status.name  # such as a conftest.py that cannot be imported
        finally:
            os.write(writer, json.dumps({"killer": chosen.killer}).encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else {"killer": "time limit"}


class Mutant(SourceFileLoader):
    """Finder and loader of one module, with other code than its file has."""

    def __init__(self, path, code):
        self.name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        super().__init__(self.name, str(path))
        self.code = code

    def find_spec(self, name, path=None, target=None):
        """Return the module of the mutant, and nothing for all others."""
        if name != self.name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        spec.loader = self
        return spec

    def get_code(self, fullname):
        """Return the code of the mutant."""
        return self.code


def stages(names: list[str], seconds: dict, limit: float = 2.0, n_files: int = 3) -> list[list[str]]:
    """Split the tests into the first few, and the rest."""
    spent, files = 0.0, set()
    for cut, name in enumerate(names):
        spent += seconds[name]
        files.add(name.split("::")[0])
        if spent > limit or len(files) > n_files:
            return [part for part in (names[:cut], names[cut:]) if part]
    return [names] if names else []


def finished(log: Path) -> list[dict]:
    """Return what the log has."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def run(where: Path, log: Path, n_mutants: int, seed: int, budget: float, part: slice) -> None:
    """Draw the mutants and run those of a part of them that the log has not yet."""
    tests = json.loads(where.read_text())
    done = {one["number"] for one in finished(log)}
    for number, (path, line, column, operator, occurrence, code) in list(enumerate(drawn(seed, n_mutants)))[part]:
        if number in done:
            continue
        name = str(path.relative_to(ROOT))
        names = chosen_tests(name, line, tests, budget)
        begin = time.monotonic()
        result = {"killer": ""}
        for stage in stages(names, tests["seconds"]):
            if not result["killer"]:
                result = in_fork(path, code, stage, budget)
        place = {"number": number, "file": name, "line": line, "column": column}
        mutation = {"operator": operator, "occurrence": occurrence, "n_tests": len(names)}
        with log.open("a") as out:
            print(json.dumps(place | mutation | result | {"seconds": time.monotonic() - begin}), file=out, flush=True)


def in_processes(n_processes: int, log: Path, **options) -> None:
    """Share the mutants among processes, and print how many were killed."""
    children = []
    for k in range(n_processes):
        if not (child := os.fork()):
            run(log=log, part=slice(k, None, n_processes), **options)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    done = finished(log)
    killed = sum(bool(one["killer"]) for one in done)
    print(f"{killed} of {len(done)} mutants killed ({killed / len(done):.1%})")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["map", "run"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--budget", type=float, default=30.0, help="CPU seconds of tests for a mutant")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    sys.dont_write_bytecode = True
    if options.what == "map":
        record(*options.files)
        return
    for heavy in ("torch", "sklearn.utils.estimator_checks", "pandas", "scipy.stats", "scipy.optimize"):
        importlib.import_module(heavy)
    where, log = options.files
    draw = {"n_mutants": options.mutants, "seed": options.seed, "budget": options.budget}
    in_processes(options.processes, log, where=where, **draw)


if __name__ == "__main__":
    main()
