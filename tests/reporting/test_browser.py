"""The page in a browser: no error, figures that can be seen, tables that sort, no request."""

import base64
import hashlib
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from fairconstrained import PartialParityClassifier, fairness_path
from fairconstrained.datasets import make_biased_classification
from fairconstrained.reporting import FairnessReport

pytestmark = pytest.mark.slow

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
    "--window-size=1200,900",
]
#: Before the page's own script: collects what goes wrong.
WATCH = """
window.found = {errors: []};
const wrong = (what) => window.found.errors.push(String(what));
window.addEventListener("error", (event) => wrong(event.message));
document.addEventListener("securitypolicyviolation", (event) => wrong("policy: " + event.violatedDirective));
console.error = wrong;
"""
#: After it: looks at the figures, presses headings, and leaves what it found in the document.
PROBE = """
const box = (element) => { const b = element.getBoundingClientRect(); return [b.width, b.height]; };
const found = window.found;
found.figures = Array.from(document.querySelectorAll("figure svg"), box);
found.bars = Array.from(document.querySelectorAll("svg.bar"), box);
found.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
found.requests = performance.getEntriesByType("resource").map((entry) => entry.name);
const table = document.querySelector("table.sortable");
const state = (column) => ({
  names: Array.from(table.tBodies[0].rows, (row) => row.cells[0].textContent),
  values: Array.from(table.tBodies[0].rows, (row) => row.cells[column].dataset.value),
  foot: Array.from(table.tFoot.rows, (row) => row.cells[0].textContent),
  sorts: Array.from(table.tHead.rows[0].cells, (cell) => cell.getAttribute("aria-sort")),
});
found.headings = Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent);
found.states = {};
for (const heading of ["rows", "precision", "group"]) {
  const column = found.headings.indexOf(heading);
  const button = table.tHead.rows[0].cells[column].querySelector("button");
  button.focus();
  found.focus = document.activeElement === button;
  button.click();
  const up = state(column);
  button.click();
  found.states[heading] = {column, up, down: state(column)};
}
const out = document.createElement("pre");
out.id = "found";
out.textContent = JSON.stringify(found);
document.body.append(out);
"""


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")
    return found


@pytest.fixture(scope="module")
def report():
    """Three groups, one of which has no positive decision, and a path."""
    X, y, groups = make_biased_classification(n_samples=400, random_state=0)
    path = fairness_path(PartialParityClassifier(), X, y, sensitive_features=groups, kappas=[None, 0.3])
    groups = np.where(path.models[0].decision_function(X) < -2.5, 2, groups)  # far below the threshold
    return FairnessReport.from_estimator(
        path.models[1], X, y, sensitive_features=np.array(["ten", "two", "<three>"])[groups], n_resamples=0, path=path
    )


def allowed(html, *scripts):
    """The page with these scripts before and after its own, which its policy is told to allow."""
    before, after = scripts
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    html = re.sub(r"script-src ", f"script-src {hashes} ", html, count=1)
    html = html.replace("<style>", f"<script>{before}</script><style>", 1)
    return html.replace("</body>", f"<script>{after}</script></body>", 1)


@pytest.fixture(scope="module")
def opened(browser, report, tmp_path_factory):
    """Findings of the scripts, and the browser's log."""
    folder = tmp_path_factory.mktemp("browser")
    (folder / "report.html").write_text(allowed(report.to_html(), WATCH, PROBE), encoding="utf-8")
    done = subprocess.run(
        [browser, *OPTIONS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", (folder / "report.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")), done.stderr


def test_no_error(opened):
    found, log = opened
    assert found["errors"] == []
    assert "CONSOLE" not in log


def test_no_request(opened):
    assert opened[0]["requests"] == []


def test_figures_have_size(opened, report):
    found = opened[0]
    assert len(found["figures"]) == 3
    assert all(width > 300 and height > 200 for width, height in found["figures"])
    assert len(found["bars"]) == report.gaps["unit"].isin(["rate", "AUC"])[report.gaps["value"].notna()].sum()
    assert all(width > 150 and height > 10 for width, height in found["bars"])
    assert found["overflow"] == 0


def test_tables_sort_by_numbers_both_ways_and_nan_is_last(opened, report):
    found = opened[0]
    groups = report.table.iloc[:-1]
    assert found["headings"][:2] == ["group", "rows"]
    for heading, name in {"rows": "n_samples", "precision": "precision"}.items():
        state = found["states"][heading]
        up = groups.sort_values(name).index.tolist()
        down = groups.sort_values(name, ascending=False).index.tolist()
        assert (state["up"]["names"], state["down"]["names"]) == (up, down)
        assert state["up"]["sorts"][state["column"]] == "ascending"
        assert state["down"]["sorts"][state["column"]] == "descending"
        assert state["down"]["sorts"].count(None) == len(found["headings"]) - 1
        assert state["down"]["foot"] == ["overall"]
    assert np.isnan(groups["precision"].to_numpy()).sum() == 1
    for way in ("up", "down"):
        assert found["states"]["precision"][way]["values"][-1] == ""
        assert found["states"]["precision"][way]["names"][-1] == "<three>"


def test_tables_sort_by_words(opened):
    state = opened[0]["states"]["group"]
    assert state["up"]["names"] == ["<three>", "ten", "two"]
    assert state["down"]["names"] == ["two", "ten", "<three>"]


def test_headings_can_be_reached_by_keys(opened):
    assert opened[0]["focus"] is True
