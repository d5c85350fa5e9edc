"""The benchmark of heads on boosted trees: gaps, floors, the sweep, comparisons of fronts, and a small run."""

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

pytest.importorskip("tqdm")

from benchmarks.any_model import __main__ as command
from benchmarks.any_model import methods, peers
from benchmarks.any_model.data import Part, as_codes, categorical_columns, load_split
from benchmarks.any_model.fronts import compare, expected_share, half_width, half_widths_of_all, points
from benchmarks.any_model.methods import out_of_fold_answers, sweep
from benchmarks.any_model.notions import NOTIONS, Response, floor, floor_of_several
from benchmarks.any_model.peers import FAIRGBM_PYTHON, lacks
from benchmarks.any_model.tables import kept, wins, write_tables
from benchmarks.any_model.tasks import NOTIONS_OF, all_tasks, performance
from benchmarks.any_model.trees import Trees
from fairconstrained import FairBoostingClassifier
from fairconstrained.metrics import equal_opportunity_gap, independence_gap, separation_gap

pytestmark = pytest.mark.slow

RATE_METRICS = {
    "demographic_parity": independence_gap,
    "equal_opportunity": equal_opportunity_gap,
    "equalized_odds": separation_gap,
}


def _rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.where(rng.random(n) < 0.4, "a", "b")
    y = (rng.random(n) < np.where(groups == "a", 0.3, 0.6)).astype(int)
    return Part(pd.DataFrame({"x": rng.normal(size=n)}), y, groups), rng


@pytest.mark.parametrize("name", RATE_METRICS)
def test_rates_of_decisions_are_those_of_the_package(name):
    part, rng = _rows()
    decisions = (rng.random(part.y.size) < 0.5).astype(float)
    measured = NOTIONS[name].measure(part, Response(decisions))
    assert measured.gap == pytest.approx(RATE_METRICS[name](part.y, decisions, sensitive_features=part.groups))


def test_random_decisions_count_with_their_probability():
    part, _ = _rows()
    response = Response(np.where(part.groups == "a", 0.25, 0.75))
    assert NOTIONS["demographic_parity"].measure(part, response).gap == pytest.approx(0.5)
    expected = np.where(part.y == 1, response.decisions, 1 - response.decisions).mean()
    assert performance(part.y, response) == {"accuracy": pytest.approx(expected)}


def test_the_answers_of_boosted_trees_that_a_bound_is_about_have_its_gap():
    part = load_split("generated", 0).train
    options = {"constraint": "equalized_odds", "n_estimators": 20, "new_row_folds": None}
    model = FairBoostingClassifier(0.1, **options).fit(part.X, part.y, sensitive_features=part.groups)
    answers = out_of_fold_answers(model, part)
    assert NOTIONS["equalized_odds"].measure(part, answers).gap == pytest.approx(
        model.constraint_values_["equalized_odds"]
    )
    seen = model.set_params(cv=None).fit(part.X, part.y, sensitive_features=part.groups)
    assert out_of_fold_answers(seen, part) is None


@pytest.mark.parametrize("name", list(NOTIONS))
def test_standard_errors_are_those_of_repeated_samples(name):
    signed = []
    errors = []
    for seed in range(200):
        part, rng = _rows(1000, seed)
        scores = rng.normal(size=part.y.size) + part.y + 0.6 * (part.groups == "a")
        measured = NOTIONS[name].measure(part, Response((scores > 0.5).astype(float), scores))
        signed.append(measured.gap)
        errors.append(measured.error)
    # the gaps of intra_group and loss_parity are near zero, where the absolute value folds their distribution
    if np.mean(signed) > 3 * np.mean(errors):
        assert np.std(signed) == pytest.approx(np.mean(errors), rel=0.25)
    else:
        assert np.mean(errors) / 2 < np.std(signed) < 2 * np.mean(errors)


@pytest.mark.parametrize("kappa", [0.0, 0.01, 0.05])
def test_the_floor_is_the_mean_of_the_absolute_value(kappa):
    draws = np.random.default_rng(0).normal(kappa, 0.02, 200_000)
    assert floor(kappa, 0.02) == pytest.approx(np.abs(draws).mean(), rel=0.01)
    assert floor(kappa, 0.0) == kappa


def _with_rates(part, rates):
    """Decisions whose rates in both groups are the same within the labels."""
    chosen = np.zeros(part.y.size)
    for group, rate in rates.items():
        for label in (0, 1):
            rows = np.flatnonzero((part.groups == group) & (part.y == label))
            chosen[rows[: round(rate * rows.size)]] = 1
    return Response(chosen)


def test_samples_of_the_rows_of_a_bound_say_what_sampling_explains():
    part, _ = _rows(4000)
    response = _with_rates(part, {"a": 0.45, "b": 0.5})
    ratios = {}
    for name in ("demographic_parity", "equalized_odds"):
        notion = NOTIONS[name]
        measured = notion.measure(part, response)
        found = floor_of_several(notion, measured.gap, part, response, part.y.size)
        ratios[name] = found / floor(measured.gap, measured.error)
    assert [NOTIONS[name].of_several for name in ratios] == [False, True]
    assert ratios["demographic_parity"] == pytest.approx(1, abs=0.1)
    assert 1.15 < ratios["equalized_odds"] < 1.4  # the larger one of two differences of .05


def test_the_sweep_finds_the_best_threshold():
    rng = np.random.default_rng(0)
    a, group = rng.normal(size=60), rng.random(60) < 0.5
    y = (a + group + rng.normal(size=60) > 0).astype(int)
    [(mu, threshold)] = sweep(a, np.zeros(60), y, group, (0.1,))
    correct = []
    for cut in [*(a - 1e-9), np.inf]:
        decisions = a > cut
        if abs(decisions[group].mean() - decisions[~group].mean()) <= 0.1:
            correct.append(np.mean(decisions == y))
    assert np.mean((a > threshold) == y) == pytest.approx(max(correct))
    assert -3 <= mu <= 3


def _result(method, kappa, seed, gap, accuracy):
    row = {"data": "adult", "notion": "demographic_parity", "task": f"{method}|{seed}", "status": "fitted"}
    measured = {"train_gap": gap, "promised": gap, "test_gap": gap, "error": 0.001, "seconds": 1.0}
    measured |= {"floor": kappa, "floor_of_several": kappa}
    performance = {"accuracy": accuracy, "auc": np.nan, "log_loss": np.nan}
    return row | measured | performance | {"method": method, "kappa": kappa, "seed": seed}


def _results(peer_accuracy):
    noise = {0: 0.0, 1: 0.001, 2: -0.001}
    rows = [
        _result("head", kappa, seed, kappa, accuracy + extra)
        for seed, extra in noise.items()
        for kappa, accuracy in ((0.02, 0.80), (0.04, 0.84))
    ]
    return pd.DataFrame(
        rows + [_result("fairgbm", 0.02, seed, 0.03, peer_accuracy + extra) for seed, extra in noise.items()]
    )


def test_a_point_is_compared_at_its_own_gap():
    # half way between the head's points, whose accuracies are .80 and .84
    line = compare(_results(0.83)).iloc[0]
    assert line.difference == pytest.approx(0.01)
    assert line.half_width == pytest.approx(0.0, abs=1e-12)
    assert line.dominates
    assert not compare(_results(0.81)).iloc[0].dominates


def test_a_bound_that_was_run_in_one_of_the_splits_is_no_point_of_the_front():
    results = _results(0.83)
    once = _result("head", 0.03, 0, 0.03, 0.9)
    pd.testing.assert_frame_equal(compare(pd.concat([results, pd.DataFrame([once])])), compare(results))


def test_one_split_is_no_comparison():
    results = _results(0.83)
    line = compare(results[results.seed == 0]).iloc[0]
    assert line.dominates is None
    assert wins(compare(results[results.seed == 0])).empty


def test_the_expected_share_is_that_of_independent_samples():
    rng = np.random.default_rng(0)
    on_new_rows = 0.02 + rng.normal(0, 0.01, (20_000, 3)) + rng.normal(0, 0.01 * np.sqrt(0.3 / 0.7), (20_000, 3))
    explained = np.abs(rng.normal(0.02, 0.01, 20_000)).mean()
    table = pd.DataFrame({"kappa": [0.02], "error": 0.01, "floor": explained, "splits": 3})
    share = (np.abs(on_new_rows).mean(axis=1) <= 1.25 * explained).mean()
    assert expected_share(table)[0] == pytest.approx(share, abs=0.02)


def test_tables_count_wins_and_kept_bounds():
    results = _results(0.83)
    table = points(results)
    assert table.set_index(["method", "kappa"]).loc[("head", 0.02), "splits"] == 3
    counted = wins(compare(results)).iloc[0]
    assert (counted.points, counted.method_better, counted.head_better) == (1, 1, 0)
    shares = kept(table).set_index("method")
    assert shares.share_kept.to_dict() == shares.of_one.to_dict() == {"head": 1.0, "fairgbm": 0.0}
    unknown = results.assign(floor_of_several=results.floor_of_several.where(results.seed > 0))
    assert kept(points(unknown)).share_kept.isna().all()  # it was not measured in the first split


def test_aims_are_missed_met_or_not_run():
    results = _results(0.83)  # between the fronts of the head and of fair boosting, which is .02 higher
    heads = results[results.method == "head"]
    better = [
        heads.assign(method=name, accuracy=heads.accuracy + 0.02) for name in ("boosting_errors", "head_ensemble")
    ]
    aims = write_tables(pd.concat([results, *better]))["targets"].set_index("target")
    beyond = "no point of another package is beyond the front of {} by more than its interval"
    assert aims.met[beyond.format("the head")] == "no"
    assert aims.met[beyond.format("the head on the mean of the folds' models")] == "yes"
    assert aims.met[beyond.format("fair boosting")] == "yes"
    assert aims[aims.index.str.contains("demographic_parity")].met.tolist() == ["no"]
    assert aims[aims.index.str.contains("loss_parity")].measured.tolist() == ["not run"] * 4


def test_intervals_for_all_points_together_are_wider():
    compared = pd.DataFrame({"splits": [10, 3], "half_width": [0.01, 0.01]})
    ten, three = half_widths_of_all(compared)
    assert ten == pytest.approx(0.01 * student.ppf(0.9875, 9) / student.ppf(0.975, 9))
    assert three > ten > 0.01
    alone = half_widths_of_all(compared[:1])
    assert alone.tolist() == pytest.approx([0.01])
    # sixty points of no difference: about three are beyond an interval of their own, and none beyond those of all
    rng = np.random.default_rng(0)
    draws = pd.DataFrame(rng.normal(size=(10, 60)))
    compared = pd.DataFrame({"splits": 10, "half_width": [half_width(draws[j]) for j in draws]})
    means = draws.mean().abs()
    assert 0 < (means > compared.half_width).sum() <= 8
    assert (means <= half_widths_of_all(compared)).all()


def test_heads_have_more_bounds_where_others_are_compared_with_their_fronts():
    tasks = all_tasks(["adult"], ["demographic_parity", "loss_parity"], ["head", "linear"], [0], [])
    head, linear, *of_losses = (task.kappas for task in tasks)
    assert set(linear) < set(head)
    assert list(head) == sorted(head)
    assert of_losses[0] == of_losses[1]


def test_tasks_have_names_of_their_own():
    tasks = list(all_tasks(["adult"], list(NOTIONS), list(NOTIONS_OF), range(2), [0.02, 0.05]))
    assert len({task.name for task in tasks}) == len(tasks)
    assert all(task.notion in NOTIONS_OF[task.method] for task in tasks)


def test_what_is_not_installed_is_left_out_with_a_reason(monkeypatch):
    monkeypatch.delenv(FAIRGBM_PYTHON, raising=False)
    assert FAIRGBM_PYTHON in lacks("fairgbm")
    monkeypatch.setattr("benchmarks._common.find_spec", lambda name: None)
    assert lacks("exponentiated_gradient") == "fairlearn is not installed and lightgbm is not installed"
    assert lacks("oxonfair_groups") == "oxonfair is not installed and lightgbm is not installed"
    assert lacks("head") == "lightgbm is not installed"
    assert lacks("linear") == ""


def test_benchmarks_are_imported_without_the_packages_that_they_compare():
    """One interpreter for two benchmarks, as to start one takes seconds."""
    code = (
        "import sys; import benchmarks.any_model.__main__, benchmarks.notions.__main__; "
        "print(sorted({'lightgbm', 'fairlearn', 'oxonfair'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_categories_become_codes_and_missing_values_stay():
    split = load_split("generated", 0)
    codes = as_codes(split.train.X)
    places = categorical_columns(split.train.X)
    assert [split.train.X.columns[place] for place in places] == ["level"]
    assert np.array_equal(np.isnan(codes), split.train.X.isna().to_numpy())
    assert set(split.train.X.index).isdisjoint(split.test.X.index)


def test_a_quick_run_writes_tables_and_a_figure(monkeypatch, tmp_path):
    """With fewer trees and folds: only that everything works is tested, not the numbers."""
    pytest.importorskip("lightgbm")
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks._common.RESULTS", tmp_path)
    monkeypatch.setattr(methods, "FOLDS_OF_FEW", 5)
    for module in (methods, peers):
        monkeypatch.setattr(module, "Trees", partial(Trees, n_estimators=20))
    monkeypatch.setattr(sys, "argv", ["any_model", "--quick"])
    command.main()
    raw = pd.read_csv(tmp_path / "any_model_quick_raw.csv")
    assert raw[raw.status.str.startswith("error")].empty
    assert {"trees", "head", "linear", "two_regressions"} <= set(raw.method)
    assert (tmp_path / "any_model_quick_demographic_parity.png").exists()
    command.main()  # everything is there: nothing is run again
    assert len(pd.read_csv(tmp_path / "any_model_quick_raw.csv")) == len(raw)
