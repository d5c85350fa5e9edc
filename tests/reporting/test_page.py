"""The page without a browser: valid markup, nothing of the user's as markup, nothing from a network."""

import base64
import hashlib
import re
import sys
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from fairconstrained.plotting.style import COLORS
from fairconstrained.reporting import fairness_report
from fairconstrained.reporting._html import Cell, joined, table, tag

VOID = {"meta", "link", "br", "hr", "img", "input", "col"}
EVIL = [
    "<script>alert(1)</script>",
    'a" onload="alert(2)',
    "b & c",
    "$\\foo$ $5",
    "_hidden",
    "</style></svg>",
    "日本 ال",
    "a\x00\x07b",
]


class Page(HTMLParser):
    """Reads a page strictly: every element is closed in order."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.words = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        assert len(attributes) == len(dict(attributes)), f"an attribute of {name} occurs twice"
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open, f"</{name}> closes nothing"
        assert self.open.pop() == name

    def handle_data(self, words):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(words)

    def values(self, attribute):
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]

    def count(self, name):
        return sum(element == name for element, _ in self.elements)


@pytest.fixture(scope="module")
def evil_page():
    """Names of groups, features, labels and the title are all markup."""
    rng = np.random.default_rng(0)
    groups = pd.Series(np.array(EVIL)[rng.integers(len(EVIL), size=600)], name="<img src=x onerror=alert(3)>")
    y_true = np.where(rng.random(600) < 0.5, "<b>yes", "no<b>")
    report = fairness_report(
        y_true, rng.normal(size=600), sensitive_features=groups, n_resamples=0, title="<i>", pos_label="<b>yes"
    )
    return report.to_html()


@pytest.fixture(scope="module")
def html(report):
    return report.to_html()


def test_markup_is_valid(html):
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert page.count("svg") == 2 + sum(attributes.get("class") == "bar" for _, attributes in page.elements)
    assert [page.count(name) for name in ("h1", "main", "table", "figure", "script", "style")] == [1, 1, 2, 2, 1, 1]


def test_ids_are_unique_and_what_is_referred_to_is_there(html):
    page = Page(html)
    ids = page.values("id")
    assert max(Counter(ids).values()) == 1
    assert not any(re.search(r"\s", name) for name in ids)
    referred = [value.removeprefix("#") for value in page.values("href")] + page.values("aria-labelledby")
    referred += re.findall(r"url\(#([^)]+)\)", html)
    assert len(referred) > 20
    assert set(referred) <= set(ids)


def test_nothing_comes_from_a_network(html):
    page = Page(html)
    assert not page.values("src")
    assert all(value.startswith("#") for value in page.values("href"))
    assert "http:" not in html
    assert "https:" not in html
    assert "@import" not in html


def test_policy_allows_this_script_alone(html):
    (policy,) = [a["content"] for name, a in Page(html).elements if a.get("http-equiv") == "Content-Security-Policy"]
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_figures_have_text_and_titles(html):
    page = Page(html)
    figures = [attributes for name, attributes in page.elements if name == "svg" and attributes.get("role") == "img"]
    assert len(figures) == 2
    assert all("viewbox" in attributes for attributes in figures)
    words = " ".join(page.words)
    for text in ("share of group a above the threshold", "b (n = 200)", "Positive rates at every threshold."):
        assert text in words


def test_what_users_write_is_text(evil_page):
    page = Page(evil_page)
    assert page.count("script") == 1
    assert page.count("b") == page.count("i") == page.count("img") == 0
    assert not page.values("onload")
    assert not page.values("onerror")
    words = " ".join(page.words)
    for text in [*EVIL[:-1], "a\ufffd\ufffdb", "<img src=x onerror=alert(3)>", "<b>yes", "<i>"]:
        assert text in words


def test_names_that_no_file_holds(rows, tmp_path):
    """Half of a surrogate pair, which UTF-8 does not have."""
    y_true, scores, groups = rows
    report = fairness_report(y_true, scores, sensitive_features=groups, n_resamples=0, title="\ud800")
    assert "<title>\ufffd</title>" in report.to_html(str(tmp_path / "report.html"))
    assert "<title>\ufffd</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_names_of_groups_are_neither_mathematics_nor_hidden_in_figures(evil_page):
    figure = evil_page[evil_page.index("<figure>") : evil_page.index("</figure>")]
    assert " _hidden</text>" in figure
    assert "$\\foo$ $5</text>" in figure


def test_the_same_report_gives_the_same_page(report, html, tmp_path):
    plt.rcParams["font.size"], before = 30, plt.rcParams["font.size"]
    try:
        assert report.to_html(tmp_path / "report.html") == html
    finally:
        plt.rcParams["font.size"] = before
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html
    assert plt.get_fignums() == []


def test_numbers_of_the_tables_are_on_the_page(report, html):
    words = Page(html).words
    for value in report.gaps["value"]:
        assert f"{value:.3f}" in words
    assert f"{100 * report.table.loc['b', 'positive_rate']:.1f}%" in words


def test_notebook_shows_the_page_in_a_frame(report, html):
    shown = report._repr_html_()
    page = Page(shown)
    assert [name for name, _ in page.elements] == ["iframe"]
    assert page.values("srcdoc") == [html]
    assert page.values("sandbox") == ["allow-scripts"]
    assert unescape(re.search(r'srcdoc="([^"]*)"', shown)[1]) == html


def test_without_matplotlib(monkeypatch, report):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert report._repr_html_() is None
    with pytest.raises(ImportError, match=r"FairnessReport.to_html needs matplotlib.*fairconstrained\[plot\]"):
        report.to_html()


def test_many_groups_show_the_largest():
    sizes = np.array([60] * 3 + [40] * 10 + [100])
    groups = np.repeat([f"g{number}" for number in range(14)], sizes)
    rng = np.random.default_rng(0)
    report = fairness_report(
        rng.integers(2, size=groups.size), rng.normal(size=groups.size), sensitive_features=groups, n_resamples=0
    )
    html = report.to_html()
    assert html.count("Shown are the 7 largest of 14 groups.") == 4  # captions, and titles for those who do not see
    words = Page(html).words
    shown = {word.split(" ")[0] for word in words if re.fullmatch(r"g\d+ \(n = \d+\)", word)}
    assert len(shown) == len(COLORS)
    assert {"g0", "g1", "g2", "g13"} <= shown
    assert {f"g{number}" for number in range(14)} <= set(words)  # the table has all
    assert "<details>" not in html


def many_groups(n_groups, n_rows=20):
    """A report of groups of equal size; g3 has nothing but positive decisions, g5 none."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(n_groups), n_rows)
    scores = np.where(codes == 3, 5.0, np.where(codes == 5, -5.0, 0.0)) + rng.normal(size=codes.size)
    y_true = rng.integers(2, size=codes.size)
    names = np.char.add("g", codes.astype(str))
    return fairness_report(y_true, scores, sensitive_features=names, n_resamples=0, metrics="independence_gap")


def rows_of(table):
    """Names of the rows of a table, as it is written."""
    return re.findall(r'<th scope="row">(.*?)</th>', table)


def test_many_groups_are_folded():
    html = many_groups(200).to_html()
    first, second, rest = (part.partition("</table>")[0] for part in html.split("<table")[1:4])
    shown = rows_of(first)
    assert {"g3", "g5", "overall"} <= set(shown)
    assert 12 <= len(shown) <= 31
    assert "Shown are" in first
    assert len(rows_of(second)) == 201
    folded = Page(html[html.index("<details>") : html.index("</details>") + len("</details>")])
    assert [name for name, _ in folded.elements[:2]] == ["details", "summary"]
    assert folded.words[0] == "All 200 groups"
    assert len(rows_of(rest)) == 1  # the gaps
    assert len(html) < 350_000


def test_very_many_groups_are_counted():
    report = many_groups(3000, n_rows=4)
    html = report.to_html()
    assert "<details>" not in html
    shown = rows_of(html.split("<table")[1].partition("</table>")[0])
    assert len(shown) <= 31
    assert f"A page does not hold the other {3001 - len(shown):,} groups; all are in the report's table" in unescape(
        html
    )
    assert len(html) < 200_000
    assert "g0, g1, g10, g100, g1000, g1001 and 2,994 more" in html
    assert len(str(report)) < 20_000


def test_names_cannot_turn_the_text_around_them(rows):
    """An override and an isolate without an end in one name, Arabic letters in the other."""
    y_true, scores, groups = rows
    evil, arabic = "a\u202eb\u2067\u2069c", "\u0627\u0644"
    report = fairness_report(
        y_true, scores, sensitive_features=np.where(groups == "a", evil, arabic), n_resamples=0, title="x\u202ey"
    )
    for text in (report.to_html(), str(report)):
        assert not re.search("[\u202a-\u202e\u2066\u2067]", text)
        assert "a\ufffdb\ufffd\ufffdc" in text
        assert f"\u2068{arabic}\u2069, " in text  # in a sentence, the percentage of the next group follows
        assert text.count("\u2068") == text.count("\u2069") == text.count(arabic)
    figure = report.to_html().partition("<figure>")[2]
    assert f"\u2068{arabic}\u2069 (n = 200)" in figure


def test_long_names_that_begin_alike_stay_apart(rows):
    y_true, scores, groups = rows
    names = np.char.add("a very long name of a group of people ", groups)
    html = fairness_report(y_true, scores, sensitive_features=names, n_resamples=0).to_html()
    assert "a very long name of a group… (1)" in html


@pytest.mark.parametrize(
    ("names", "interval"),
    [
        (["a", "b"], [(i / 10, (i + 0.5) / 10) for i in range(10)]),
        (["Anthropologists of 25 years a", "Anthropologists of 25 years b"], None),
    ],
)
def test_long_texts_leave_axes_their_room(rows, names, interval):
    """Otherwise matplotlib gives the layout up, with a warning, which is an error here."""
    y_true, scores, groups = rows
    names = np.where(groups == "a", *names)
    interval = interval or {name: [(0, 0.1 + 0.1 * number), (0.3, 0.5)] for number, name in enumerate(np.unique(names))}
    figures = (
        fairness_report(y_true, scores, sensitive_features=names, interval=interval, n_resamples=0)
        .to_html()
        .split("<figure>")[1:]
    )
    assert all("ranks 0%–" in figure for figure in figures)


@pytest.mark.parametrize("constant", ["one group", "all"])
def test_groups_of_equal_scores_get_a_histogram(rows, constant):
    y_true, scores, groups = rows
    scores = np.where((groups == "b") | (constant == "all"), 0.5, scores)
    html = fairness_report(y_true, scores - 1, sensitive_features=groups, n_resamples=0).to_html()
    assert "Histogram of the scores" in html


@pytest.mark.slow
def test_path_and_price(report):
    table = pd.DataFrame(
        {
            "kappa": [np.inf, 0.1],
            "gap": [0.3, 0.1],
            "train_accuracy": [0.9, 0.81234],
            "std_test_gap": [0.1, 0.1],
            "multipliers": [{}, {"x": 1}],
            "status": ["optimal", "<odd>"],
            "seconds": [1.5, 2.5],
        }
    )
    path = SimpleNamespace(table=table, scores=("accuracy",), gaps=("demographic_parity",), n_splits=0)
    page = Page(
        fairness_report(
            report.y_true,
            report.y_score,
            sensitive_features=report.sensitive_features,
            n_resamples=0,
            metrics=["independence_gap"],
            path=path,
        ).to_html()
    )
    headings = ["kappa", "gap", "train accuracy", "status"]
    assert [word for word in page.words if word in (*headings, "seconds", "multipliers", "std test gap")][
        -4:
    ] == headings
    assert {"none", "0.8123", "<odd>", "What fairness costs. "} <= set(page.words)
    assert page.count("figure") == 3


def test_pieces_that_are_no_markup_are_escaped():
    assert tag("p", "<", tag("b", "&"), title='"') == '<p title="&quot;">&lt;<b>&amp;</b></p>'
    assert joined("a", 1) == "a1"
    written = table("c", [Cell("x"), Cell("<y>")], [[Cell("a"), Cell("1", 1.0)], [Cell("b"), Cell("–", np.nan)]])
    assert '<th scope="col" class="number">&lt;y&gt;</th>' in written
    assert '<td class="number" data-value="">–</td>' in written
