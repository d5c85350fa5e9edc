"""The command line: pages and numbers are those of the functions, and errors say what to change."""

import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairconstrained import fairness_report
from fairconstrained.command_line import main
from fairconstrained.metrics import METRICS, conditional_parity_gap, independence_gap
from fairconstrained.version import __version__

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


@pytest.fixture(scope="module")
def people():
    """Labels, probabilities, decisions, two columns of groups, strata and weights of 400 rows."""
    rng = np.random.default_rng(0)
    sex, age = rng.choice(["f", "m"], 400), rng.integers(18, 80, 400)
    score = rng.normal(size=400) + 0.8 * (sex == "m")
    hired = np.where(score + rng.logistic(size=400) > 0, "yes", "no")
    return pd.DataFrame(
        {
            "hired": hired,
            "score": (1 / (1 + np.exp(-score))).round(4),
            "said": np.where(score > 0.3, "yes", "no"),
            "sex": sex,
            "age": age,
            "job": rng.choice(["clerk", "cook"], 400),
            "weight": rng.uniform(0.5, 2, 400).round(2),
            "grade": rng.choice(["a", "b", "c"], 400),
        }
    )


@pytest.fixture(scope="module")
def file(people, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "scores.csv"
    people.to_csv(path, index=False)
    return str(path)


def gaps_of(people, **arguments):
    rows = {"sensitive_features": people[["sex"]], "threshold": 0.5, "n_resamples": 0, **arguments}
    return fairness_report(people["hired"], people["score"], **rows).gaps["value"]


def written(main_arguments, tmp_path):
    """The gaps that ``fairconstrained metrics`` writes."""
    assert main(["metrics", *main_arguments, "-o", str(tmp_path / "gaps.csv")]) == 0
    return pd.read_csv(tmp_path / "gaps.csv", index_col="metric")


SCORED = ["--label", "hired", "--score", "score", "--groups", "sex"]


def test_gaps_are_those_of_the_report(people, file, tmp_path, capsys):
    gaps = written([file, *SCORED], tmp_path)
    pd.testing.assert_series_equal(gaps["value"], gaps_of(people))
    assert list(gaps) == ["value", "lower", "upper", "unit", "description"]
    assert gaps["lower"].isna().all()
    out = capsys.readouterr().out
    assert out.startswith("Label 'hired': 'yes' is positive. Decision: positive where 'score' is above 0.5.")
    assert "independence_gap" in out


def test_many_groups_have_a_line_each(people, file, capsys):
    assert main(["metrics", file, "--label", "hired", "--score", "score", "--groups", "grade,job"]) == 0
    first = ((people["grade"] == "a") & (people["job"] == "clerk")).sum()
    assert re.search(rf"^a & clerk +{first} ", capsys.readouterr().out, re.MULTILINE)


def test_arguments_reach_the_report(people, file, tmp_path):
    """Several groups, cut ages, weights, threshold, positive label, a union of intervals and names of gaps."""
    options = ["--label", "hired", "--score", "score", "--groups", "sex,age", "--bins", "age=40", "--weight", "weight"]
    options += ["--threshold", "0.6", "--pos-label", "no", "--interval", "0,0.2", "--interval", "0.8,1"]
    asked = "disparate_impact,partial_statistical_parity"
    gaps = written([file, *options, "--metrics", asked], tmp_path)
    groups = people[["sex"]].assign(age=np.where(people["age"] < 40, "young", "old"))
    same = {"sensitive_features": groups, "sample_weight": people["weight"], "threshold": 0.6, "pos_label": "no"}
    expected = gaps_of(people, **same, interval=[(0, 0.2), (0.8, 1)])
    assert list(gaps.index) == ["partial_statistical_parity_gap", "demographic_parity_ratio_gap"]
    pd.testing.assert_series_equal(gaps["value"], expected[list(gaps.index)])


@pytest.mark.parametrize(
    ("cuts", "ranges"),
    [
        ("25,40.5", ["below 25", "25 to below 40.5", "40.5 or more"]),
        ("5,40.5,100", ["5 to below 40.5", "40.5 to below 100"]),  # those without rows are left out
    ],
)
def test_ranges_stand_in_the_order_of_their_numbers(file, capsys, cuts, ranges):
    assert (
        main(["metrics", file, "--label", "hired", "--score", "score", "--groups", "age", "--bins", f"age={cuts}"]) == 0
    )
    assert " ".join([*ranges, "overall"]) in re.sub(" +", " ", capsys.readouterr().out)


def test_decisions_without_scores_and_conditional_parity(people, file, tmp_path, capsys):
    asked = ["--metrics", "demographic_parity,conditional_parity", "--strata", "job", "--resamples", "400"]
    asked += ["--certify", "conditional_parity"]
    gaps = written([file, "--label", "hired", "--decision", "said", "--groups", "sex", *asked], tmp_path)
    given = people["hired"], people["said"]
    expected = [
        independence_gap(*given, sensitive_features=people["sex"]),
        conditional_parity_gap(*given, sensitive_features=people["sex"], strata=people["job"]),
    ]
    np.testing.assert_allclose(gaps["value"], expected)
    assert (gaps["lower"] < gaps["value"]).all()
    assert (gaps["value"] < gaps["upper"]).all()
    out = capsys.readouterr().out
    assert "conditional_parity is at most" in out
    assert f"Measured: {expected[1]:.4g} on 400 rows." in out


def test_one_label_of_several_against_the_others(people, file, tmp_path):
    asked = ["--score", "score", "--groups", "sex", "--metrics", "equal_opportunity"]
    gaps = written([file, "--label", "grade", "--pos-label", "b", *asked], tmp_path)
    rates = [np.mean(rows["score"] > 0.5) for _, rows in people[people["grade"] == "b"].groupby("sex")]
    assert gaps["value"].item() == pytest.approx(abs(rates[0] - rates[1]))


@pytest.mark.parametrize(("kappa", "code"), [("0.9", 0), ("0.1", 1)])
def test_the_exit_code_says_whether_the_certificate_passed(file, tmp_path, capsys, kappa, code):
    page = tmp_path / "page.html"
    certificate = ["--certify", "demographic_parity", "--kappa", kappa, "--resamples", "0", "-o", str(page)]
    assert main(["report", file, *SCORED, *certificate, "--title", "Hiring <2026>"]) == code
    out, html = capsys.readouterr().out, page.read_text(encoding="utf-8")
    verdict = f"kappa = {kappa}: {'passed' if code == 0 else 'not passed'}"
    assert verdict in out
    assert verdict in html
    assert "Hiring &lt;2026&gt;" in html
    assert "demographic_parity is at most" in html  # the name that was asked for


def test_logarithms_of_odds_are_compared_with_zero(people, tmp_path, capsys):
    odds = np.log(people["score"] / (1 - people["score"]))
    people.assign(score=odds).to_parquet(tmp_path / "scores.parquet")
    gaps = written([str(tmp_path / "scores.parquet"), *SCORED, "--metrics", "demographic_parity"], tmp_path)
    assert "above 0." in capsys.readouterr().out
    assert gaps["value"].item() == pytest.approx(gaps_of(people)["independence_gap"])


@pytest.mark.parametrize(("written_as", "separator"), [(r"\t", "\t"), (";", ";"), ("§", "§")])
def test_any_character_separates_columns(people, tmp_path, capsys, written_as, separator):
    path = tmp_path / "scores.csv"
    path.write_bytes(people.to_csv(index=False).replace(",", separator).encode())
    gaps = written([str(path), *SCORED, "--separator", written_as, "--metrics", "demographic_parity"], tmp_path)
    assert gaps["value"].item() == pytest.approx(gaps_of(people)["independence_gap"])
    assert capsys.readouterr().err == ""


def test_names_lists_every_gap(capsys):
    assert main(["names"]) == 0
    out = capsys.readouterr().out
    assert {*METRICS, "conditional_parity_gap"} <= set(out.replace(",", " ").split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "hird"], r"no column 'hird'. Did you mean 'hired'\? Its columns are \['hired', 'score'"),
        (["--label", "grade"], r"has 3 labels: \['a', 'b', 'c'\]. Say with --pos-label"),
        (["--pos-label", "maybe"], r"--pos-label maybe is not among the labels of column 'hired': \['no', 'yes'\]"),
        (["--score", "sex"], r"should hold numbers, and 400 of 400 values are not, such as '[fm]' in row 1 \(counted"),
        (["--decision", "job"], r"column 'job' should hold labels of column 'hired', \['.*\], and holds \['clerk'"),
        (["--groups", "sex,agee"], "no column 'agee'. Did you mean 'age'"),
        (["--metrics", "demografic_parity"], "no gap 'demografic_parity'. Did you mean 'demographic_parity'"),
        (["--metrics", "Sp"], "no gap 'Sp'. Did you mean 'separation_gap'"),
        (["--certify", "xyz"], "no gap 'xyz'. `fairconstrained names` lists all"),
        (["--metrics", "partial_group_auc"], "'partial_group_auc_gap' needs an interval"),
        (["--kappa", "0.1"], "say with --certify of which gap"),
        (["--certify", "independence", "--weight", "weight"], "equal weight: leave out the weights"),
        (["--certify", "conditional_parity"], "name their columns with --strata"),
        (["--certify", "independence", "--delta", "2"], "delta"),
        (["--bins", "job=3"], r"--bins cuts 'job', which is none of the columns of --groups: \['sex'\]"),
        (["--groups", "job", "--bins", "job=3"], "column 'job' should hold numbers"),
        (["--separator", ";"], r"no column 'hired'. Its columns are \['hired,score.*is --separator right"),
        (["--interval", "0.5,0.2"], "interval"),
        (["--resamples", "3"], "--resamples"),
        (["--weight", "age", "--level", "2"], "level"),
    ],
)
def test_errors_say_what_to_change(file, tmp_path, capsys, options, message):
    # the last one of an option that occurs twice counts
    with pytest.raises(ValueError, match=message):
        _fail([file, *SCORED, *options], capsys)


def _fail(arguments, capsys):
    """Raise the message of a command that has to fail as an error."""
    assert main(["metrics", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fairconstrained metrics: error: ")
    raise ValueError(" ".join(err.split()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("hired,score,sex\n", "has columns, but no rows"),
        ("hired,score,sex\nyes,0.2,f\nno,0.7,\n", r"'sex' has no value, .* NA, in 1 of 2 rows, row 2 \(counted"),
        (
            "hired,score,sex\n,0.2,f\nno,,m\nyes,.3,f\n,.4,m\n",
            r"column 'hired' has no value, or a word for none such as NA, in 2 of 4 rows, rows 1, 4",
        ),
        ("hired,score,sex\nyes,0,f\nno,1,m\n", "nothing but 0 and 1, so these are decisions: name it with --decision"),
        (
            "hired,score,sex\nyes,60,f\nno,0,m\n",
            "has scores from 0 to 60, neither probabilities nor log-odds: say with --threshold above which score",
        ),
        ("hired,score,sex\nyes,0.2,f\nyes,0.4,m\n", r"one label only: \['yes'\]. Both labels are needed"),
        ("hired,score,sex\nyes,0.2,f\nno,0.4,f\n", "there is only one: 'f'"),
        ("hired,score,sex\nyes,0.2,f,1\nno,0.4,f,2,3\n", "cannot be read as a table"),
        (b"hired,score,sex\nyes,0.2,\xff\n", "is no text in UTF-8"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, capsys, content, message):
    path = tmp_path / "scores.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message):
        _fail([str(path), *SCORED], capsys)


def test_points_need_no_threshold_beside_decisions(tmp_path, capsys):
    path = tmp_path / "scores.csv"
    path.write_text("hired,score,said,sex\nyes,60,yes,f\nno,10,no,f\nyes,30,no,m\nno,20,no,m\n")
    assert main(["metrics", str(path), *SCORED, "--decision", "said"]) == 0
    out, _ = capsys.readouterr()
    assert "the column 'said' says" in out
    assert re.search(r"independence_gap +0\.500", out)
    assert "loss" not in out


def test_warnings_are_in_words_of_the_command_line(tmp_path, capsys):
    path = tmp_path / "scores.csv"
    lines = [f"{'yes' if k % 3 else 'no'},{k / 40},{20 + k}" for k in range(40)]
    path.write_text("\n".join(["hired,score,age", *lines]))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(["metrics", str(path), "--label", "hired", "--score", "score", "--groups", "age"]) == 0
    _, error = capsys.readouterr()
    assert error.startswith("fairconstrained metrics: warning: --groups has 40 groups")
    assert "every value of 'age' is a group. Cut numbers into bands first, for example with --bins, and write the" in (
        " ".join(error.split())
    )


def test_a_missing_file_and_nothing_to_judge(file, capsys):
    with pytest.raises(ValueError, match=r"there is no file none.csv"):
        _fail(["none.csv", *SCORED], capsys)
    with pytest.raises(ValueError, match=r"with --score, or that of the decisions with --decision"):
        _fail([file, "--label", "hired", "--groups", "sex"], capsys)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--interval", "1"],
        ["--bins", "age=40,25"],
        ["--groups", "sex,"],
        ["--bins", "age"],
        ["--separator", ""],
        ["--separator", "||"],
    ],
)
def test_arguments_that_cannot_be_parsed(file, capsys, wrong):
    with pytest.raises(SystemExit) as raised:
        main(["metrics", file, *SCORED, *wrong])
    assert raised.value.code == 2
    assert f"argument {wrong[0]}" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_shows_what_the_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(GUIDE / "scores.csv", tmp_path)
    page = (GUIDE / "command_line.rst").read_text(encoding="utf-8").replace("\\\n", "")
    blocks = re.findall(r"code-block:: console\n\n   \$ fairconstrained (.*)\n((?:   .*\n|\n(?=   ))*)", page)
    codes = []
    for words, shown in blocks:
        codes.append(main(shlex.split(words)))
        printed = "".join(capsys.readouterr())
        assert [line.strip() for line in shown.splitlines()] == [line.strip() for line in printed.splitlines()]
    assert codes == [0, 0, 1, 2]


def test_the_table_of_the_page_is_that_of_its_snippet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(GUIDE.parent / "snippets" / "command_line.py"))
    made, shown = pd.read_csv("scores.csv"), pd.read_csv(GUIDE / "scores.csv")
    pd.testing.assert_frame_equal(made.drop(columns="score"), shown.drop(columns="score"))
    np.testing.assert_allclose(made["score"], shown["score"], atol=0.002)


@pytest.mark.slow
@pytest.mark.parametrize("installed", [False, True])
def test_through_the_shell(file, tmp_path, installed):
    command = Path(sys.executable).with_name("fairconstrained")
    if installed and not command.exists():
        pytest.skip("the package is not installed, so that there is no command")
    words = [str(command)] if installed else [sys.executable, "-m", "fairconstrained"]
    version = subprocess.run([*words, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"fairconstrained {__version__}\n"
    certificate = ["--certify", "demographic_parity", "--kappa", "0.1", "--resamples", "0"]
    done = subprocess.run([*words, "report", file, *SCORED, *certificate], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "not passed" in done.stdout
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_help_loads_no_library():
    code = "import sys\nfrom fairconstrained.command_line import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n"
    code += "    print(sorted({'numpy', 'pandas', 'torch', 'sklearn'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


# --- columns that mislead


def of_file(people, tmp_path, *arguments):
    """Exit code of ``fairconstrained metrics`` for a table."""
    people.to_csv(tmp_path / "table.csv", index=False)
    return main(["metrics", str(tmp_path / "table.csv"), *arguments])


def said(capsys):
    """Lines of the messages as one."""
    return " ".join(capsys.readouterr().err.split())


def test_groups_of_yes_and_no_have_the_names_of_their_columns(people, tmp_path, capsys):
    path = tmp_path / "coded.csv"
    people.assign(citizen=np.where(people["age"] < 40, "no", "yes"), parent=people["age"] % 2).to_csv(path, index=False)
    main(["metrics", str(path), "--label", "hired", "--score", "score", "--groups", "citizen,parent"])
    assert "citizen no & parent 0" in capsys.readouterr().out
    main(["metrics", str(path), "--label", "hired", "--score", "score", "--groups", "citizen"])
    assert re.search("^ +citizen no +citizen yes +overall$", capsys.readouterr().out, re.MULTILINE)


def test_blanks_around_the_names_of_columns_do_not_matter(people, tmp_path, capsys):
    blanks = people.rename(columns={"score": " score", "sex": "sex "})
    assert of_file(blanks, tmp_path, *SCORED) == 0
    assert of_file(blanks, tmp_path, "--label", "hired ", "--score", " score", "--groups", "sex ") == 0
    assert of_file(blanks, tmp_path, *SCORED[:-1], "age", "--bins", " age =30,50") == 0
    assert said(capsys) == ""
    assert of_file(blanks.assign(sex="f"), tmp_path, *SCORED) == 2
    assert "has several columns 'sex', up to blanks around the name: rename them" in said(capsys)


@pytest.mark.parametrize("written", ["0,48", "48%"])
def test_numbers_in_another_notation(people, tmp_path, capsys, written):
    assert of_file(people.assign(score=written), tmp_path, *SCORED) == 2
    assert f"such as '{written}' in row 1" in (text := said(capsys))
    assert "Write numbers with a decimal point, and without units or signs such as %." in text


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(
    ("factor", "threshold", "is_told"),
    [(100, "0.5", True), (1, "50", True), (100, "50", False), (1, "0.5", False), (1.5, "0.5", False)],
)
def test_thresholds_in_other_units_than_the_scores(people, tmp_path, capsys, factor, threshold, is_told):
    scores = people.assign(score=factor * people["score"])
    assert of_file(scores, tmp_path, *SCORED, "--threshold", threshold) == 0
    advice = "in the units of the scores, such as 0.5 for probabilities and 50 for percentages."
    assert (advice in said(capsys)) == is_told


@pytest.mark.filterwarnings("always")
def test_words_whose_order_is_not_that_of_the_scores(people, tmp_path, capsys):
    words = people.assign(hired=people["hired"].map({"yes": "approved", "no": "denied"}))
    assert of_file(words, tmp_path, *SCORED) == 0
    text = said(capsys)
    assert "'denied' is taken as the positive label because it is the larger one, and its rows have the lower" in text
    assert text.endswith("If a high score speaks for 'approved', add --pos-label=approved")
    for label in ("approved", "denied"):
        assert of_file(words, tmp_path, *SCORED, "--pos-label", label) == 0
        assert said(capsys) == ""


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(
    ("labels", "advice"),
    [
        ({"yes": 0, "no": 1}, "--pos-label=0"),
        ({"yes": "is paid", "no": "unpaid"}, "--pos-label='is paid'"),
        ({"yes": "granted-in-full", "no": "no"}, "--pos-label=granted-in-full"),
        ({"yes": "-no", "no": "0"}, "--pos-label=-no"),
    ],
    ids=["numbers", "two words", "hyphens", "hyphen first"],
)
def test_the_advice_of_another_positive_label_can_be_pasted(people, tmp_path, capsys, labels, advice):
    other = people.assign(hired=people["hired"].map(labels))
    assert of_file(other, tmp_path, *SCORED) == 0
    *_, last = capsys.readouterr().err.splitlines()
    assert last == advice
    pasted = shlex.split(last)
    assert of_file(other, tmp_path, *SCORED, *pasted) == 0
    assert said(capsys) == ""


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(("share", "weight", "is_told"), [(0.1, 1, False), (0.6, 1, True), (0.6, 0.05, False)])
def test_only_clearly_lower_scores_of_the_positive_label_are_told(people, tmp_path, capsys, share, weight, is_told):
    """The larger label has the lower scores in a share of the rows, and ``weight`` is the weight of these rows."""
    is_yes, lower = people["hired"] == "yes", np.arange(len(people)) < share * len(people)
    ranks = np.random.default_rng(1).permutation(len(people)) / len(people)
    score = np.where(lower, 0.5 * ranks + 0.5 * ~is_yes, ranks)
    table = people.assign(score=score, weight=np.where(lower, weight, 1))
    assert of_file(table, tmp_path, *SCORED, "--weight", "weight") == 0
    assert ("its rows have the lower scores" in said(capsys)) == is_told
    assert of_file(table.assign(weight=~is_yes + 0), tmp_path, *SCORED, "--weight", "weight") == 0
    assert said(capsys) == ""  # one label has no weight, and so there is no AUC


def test_decisions_in_other_words_than_the_labels(people, tmp_path, capsys):
    assert of_file(people.assign(said=1), tmp_path, "--label", "hired", "--decision", "said", "--groups", "sex") == 2
    assert "holds [1]. Write the same two words or numbers in both columns." in said(capsys)


@pytest.mark.filterwarnings("always")
def test_dates_as_groups(people, tmp_path, capsys):
    dates = people.assign(sex=pd.date_range("2000-01-01", periods=len(people)).astype(str))
    assert of_file(dates, tmp_path, *SCORED, "--metrics", "independence_gap") == 0
    text = said(capsys)
    assert "as every value of 'sex' is a group." in text
    assert "and write the year or the decade in place of dates." in text
