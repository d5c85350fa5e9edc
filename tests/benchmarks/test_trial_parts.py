"""The trial's bad inputs, interruptions and drop-in cases: planted failures are found, and names are unique."""

import time
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("tqdm")

from benchmarks.trial import bad_inputs
from benchmarks.trial.bad_calls import all_calls
from benchmarks.trial.bad_inputs import Call, judge_call
from benchmarks.trial.drop_in import ESTIMATORS, TOOLS, Case, all_cases, judge_case
from benchmarks.trial.interruptions import Interruption, all_interruptions, judge_interruption
from benchmarks.trial.parts import PARTS, Part, run_part
from benchmarks.trial.tasks import of_part

pytestmark = pytest.mark.slow


def raises(error):
    def function(*args):
        raise error

    return function


@pytest.mark.parametrize(
    ("function", "broken"),
    [
        (raises(ValueError("kappa must be in [0, 1], got 2.")), ""),
        (raises(TypeError("kappa is a word")), ""),
        (raises(ValueError("bad value")), "unclear"),
        (raises(KeyError("kappa")), "crash"),
        (lambda: None, "accepted"),
        (lambda: time.sleep(3), "endless"),
    ],
)
def test_a_wrong_call(function, broken, monkeypatch):
    monkeypatch.setattr(bad_inputs, "_PATIENCE", 1)
    assert judge_call(Call("planted", ("kappa",), function))["broken"] == broken


def test_a_wrong_call_that_changes_the_estimator_or_lists_too_much():
    model = SimpleNamespace()

    def fit():
        model.coef_ = 3
        raise ValueError("kappa")

    assert judge_call(Call("planted", ("kappa",), fit, model))["broken"] == "changed"
    long = raises(ValueError(f"kappa {list(range(1000))}"))
    assert judge_call(Call("planted", ("kappa",), long, lists_groups=True))["broken"] == "too long"
    assert judge_call(Call("planted", ("kappa",), long))["broken"] == ""


def interrupted(fit, fitted_before=False):
    return judge_interruption(Interruption("planted", SimpleNamespace, fit, nullcontext, fitted_before))


def test_an_interruption_that_leaves_something_behind():
    def half(model):
        model.coef_ = object()
        raise KeyboardInterrupt

    def draws(model):
        np.random.random()  # noqa: NPY002  what a careless fit does
        raise KeyboardInterrupt

    before = np.random.get_state()  # noqa: NPY002
    with pytest.raises(KeyboardInterrupt):
        interrupted(half)  # also when it is fitted again
    calls = []

    def once(model):
        calls.append(1)
        if len(calls) == 1:
            half(model)

    assert interrupted(once)["broken"] == "coef_"
    calls.clear()

    def draws_once(model):
        calls.append(1)
        if len(calls) == 1:
            draws(model)

    assert interrupted(draws_once)["broken"] == "numpy's generator"
    np.random.set_state(before)  # noqa: NPY002
    assert interrupted(lambda model: None)["broken"] == ""


def test_drop_in_cases():
    assert judge_case(Case("planted", lambda: None))["broken"] == ""
    assert judge_case(Case("planted", raises(AssertionError("NaN"))))["broken"] == "fails"
    assert judge_case(Case("planted", raises(ValueError("no"))))["broken"] == "unclear refusal"
    assert judge_case(Case("planted", raises(ValueError("pass sensitive_features to predict."))))["broken"] == ""


@pytest.mark.parametrize("tool", ["GridSearchCV", "GridSearchCV with weights", "cross_validate", "cross_val_predict"])
def test_a_bound_on_losses_has_rows_enough_in_the_folds_of_tools(tool):
    (case,) = [case for case in all_cases() if case.name == f"GroupLossClassifier in {tool}"]
    assert judge_case(case)["broken"] == ""


def test_three_classes_are_a_wrong_call_of_an_estimator_for_two():
    (call,) = [call for call in all_calls() if call.name == "y of three classes"]
    assert judge_call(call)["broken"] == ""


def test_cases_have_different_names():
    calls, interruptions, cases = all_calls(), all_interruptions(), all_cases()
    for several in (calls, interruptions, cases):
        names = [case.name for case in several]
        assert len(set(names)) == len(names)
    assert len(calls) > 260
    assert len(cases) == len(ESTIMATORS) * len(TOOLS)


def test_parts_resume(tmp_path, monkeypatch):
    done = []

    def judge(case):
        done.append(case.name)
        return {"task": case.name, "broken": "accepted" if case.name == "b" else ""}

    names = ["a", "b", "c", "d"]
    part = Part("every case is right", lambda: [SimpleNamespace(name=name) for name in names], judge, 2)
    monkeypatch.setitem(PARTS, "planted", part)
    path = tmp_path / "planted.csv"
    assert len(run_part("planted", path, quick=True)) == 2
    assert done == ["a", "c"]
    results = run_part("planted", path, quick=False)
    assert sorted(done) == names
    table = of_part(part.promise, results)
    assert table.loc[0, ["cases", "broken", "which"]].tolist() == [4, 1, "b"]
