"""Included code of ``docs/snippets`` with the imports that it needs above it, and what it prints and draws below it.

Every file is run once while the documentation is built, which fails if one of them does, so that no output is typed by
hand. A fragment shows the imports of the file that it uses and that no fragment above it on the page has shown. Below
it stands the text that its lines print, and the figures that they show; the option ``figure`` of ``literalinclude``
describes these in words.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import re
import runpy
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.directives.code import LiteralInclude
from sphinx.errors import ExtensionError
from sphinx.util.display import status_iterator

HERE = Path(__file__).parent
SNIPPETS = HERE / "snippets"
RECORDS = HERE / "generated" / "records"
JOBS = 2
WIDTH = 100


class RunCode(LiteralInclude):
    """``literalinclude`` that runs files of ``docs/snippets``."""

    option_spec: ClassVar = {**LiteralInclude.option_spec, "figure": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Nodes of the code and of its output."""
        shown = super().run()
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        if path.parent != SNIPPETS or not isinstance(shown[0], nodes.literal_block):
            return shown
        block, source = shown[0], path.read_text(encoding="utf-8")
        text = block.astext()
        seen = self.env.current_document.setdefault(f"runcode {path.name}", set())
        imports = needed_imports(source, text, seen)
        block.rawsource = f"{imports}\n\n{text.strip()}" if imports else text.strip("\n")
        block[:] = [nodes.Text(block.rawsource)]
        return [*shown, *self._output(path, lines_of(source, text))]

    def _output(self, path: Path, lines: range) -> list[nodes.Node]:
        """Nodes of the text and the figures that these lines of the file have written."""
        records = json.loads((RECORDS / f"{path.stem}.json").read_text(encoding="utf-8"))["records"]
        printed = "".join(record["text"] for record in records if "text" in record and record["line"] in lines)
        output: list[nodes.Node] = []
        if printed.strip():
            block = nodes.literal_block("", wrapped(printed), language="text", classes=["output"])
            block.rawsource = block.astext()
            output.append(block)
        for record in records:
            if "figure" in record and record["line"] in lines:
                where = os.path.relpath(record["figure"], Path(self.env.doc2path(self.env.docname)).parent)
                output.append(nodes.image(uri=where, alt=self.options["figure"], classes=["output"]))
        return output


def wrapped(printed: str) -> str:
    """Break long lines of words, such as messages, but not those of tables, whose columns are apart."""
    lines = [
        textwrap.fill(line, WIDTH) if len(line) > WIDTH and "  " not in line else line for line in printed.split("\n")
    ]
    return "\n".join(lines).rstrip("\n")


def lines_of(source: str, text: str) -> range:
    """Numbers of the lines that a fragment has in its file."""
    for indent in ("", " " * 4):
        start = source.find(textwrap.indent(text, indent))
        if start >= 0:
            first = source.count("\n", 0, start) + 1
            return range(first, first + text.count("\n") + 1)
    raise ValueError(f"the fragment is not a part of its file:\n{text}")


def needed_imports(source: str, text: str, seen: set[str]) -> str:
    """Import statements of the file, for the names that the fragment uses; these are added to ``seen``."""
    words = set(re.findall(r"\w+", text))
    own = {alias.asname or alias.name for node in imports_of(text) for alias in node.names}
    statements = []
    for node in imports_of(source):
        names = [alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) in words - own - seen]
        if names:
            statements.append(statement(node, names))
            seen.update(alias.asname or alias.name.split(".")[0] for alias in names)
    seen.update(own)
    return "\n".join(statements)


def imports_of(source: str) -> list[ast.Import | ast.ImportFrom]:
    """Import statements at the outermost level."""
    nodes = ast.parse(textwrap.dedent(source)).body
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def statement(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> str:
    """An import statement for some of the names of another one, in several lines where it is long."""
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(names))
    line = ast.unparse(ast.ImportFrom(node.module, names, node.level))
    if len(line) <= WIDTH:
        return line
    inner = "".join(f"    {ast.unparse(alias)},\n" for alias in names)
    return f"from {node.module} import (\n{inner})"


def run_files(app: Any) -> None:
    """Run the files, two at a time, unless their records belong to this state of the package."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    package = b"".join(path.read_bytes() for path in sorted((HERE.parent / "fairconstrained").rglob("*.py")))
    tasks = {}
    for path in SNIPPETS.glob("*.py"):
        source = path.read_bytes()
        key = hashlib.sha256(source + package).hexdigest()
        target = RECORDS / f"{path.stem}.json"
        known = json.loads(target.read_text(encoding="utf-8"))["key"] if target.exists() else None
        if key != known:
            tasks[path] = target, key
    context = multiprocessing.get_context("forkserver")
    # the module of an estimator: `fairconstrained` alone loads nothing, see lazy_loader
    preload = ["fairconstrained.estimators.partial_parity", "matplotlib.pyplot", "pandas", "scipy.stats", "torch"]
    context.set_forkserver_preload(preload)
    os.environ.update(MPLBACKEND="Agg", OMP_NUM_THREADS="1")
    with ProcessPoolExecutor(JOBS, mp_context=context, max_tasks_per_child=1) as pool:
        running = {pool.submit(run_file, str(path), str(target), key): path for path, (target, key) in tasks.items()}
        finished = as_completed(running)
        named = {"length": len(tasks), "stringify_func": lambda done: running[done].name}
        for done in status_iterator(finished, "running snippets... ", **named):
            if done.exception():
                raise ExtensionError(f"{running[done].name} fails") from done.exception()


def run_file(path: str, target: str, key: str) -> None:
    """Run a file in a folder of its own, and write to ``target`` what it prints and shows."""
    import matplotlib.pyplot as plt

    records: list[dict[str, Any]] = []

    def line() -> int:
        frame: Any = sys._getframe()
        while frame.f_code.co_filename != path or frame.f_code.co_name != "<module>":
            frame = frame.f_back
        return frame.f_lineno

    class Output:
        def write(self, text: str) -> None:
            records.append({"line": line(), "text": text})

        def flush(self) -> None:
            pass

    def show() -> None:
        figure = Path(target).with_name(f"{Path(path).stem}_{line()}.png")
        plt.gcf().savefig(figure, dpi=150)
        records.append({"line": line(), "figure": str(figure)})
        plt.close()

    plt.show = show
    silent = contextlib.redirect_stderr(io.StringIO())  # the pages speak about warnings where they matter
    with TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(Output()), silent:
        runpy.run_path(path, run_name="__main__")
    Path(target).write_text(json.dumps({"key": key, "records": records}), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("literalinclude", RunCode, override=True)
    app.connect("builder-inited", run_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
