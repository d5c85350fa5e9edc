"""The benchmark of certificates: populations with known gaps, quick statistics, and tiny runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from benchmarks.certification import bootstrap, classifier, coverage, figures
from benchmarks.certification.populations import Scenario, built_population, response, sample
from fairconstrained import RateParityClassifier
from fairconstrained.certification.sample import resolve_metric
from fairconstrained.metrics import independence_gap


@pytest.fixture(scope="module")
def apart():
    return built_population(0.3, apart=True)


@pytest.mark.parametrize("name", ["independence_gap", "separation_gap", "statistical_parity_gap", "bpsn_bnsp_gap"])
def test_gaps_of_the_population_are_those_of_many_rows(apart, name):
    y, scores, groups = apart.draw(200_000, np.random.default_rng(0))
    metric = resolve_metric(name)[0]
    measured = metric(y, response(name, scores), sensitive_features=groups)
    assert apart.gap(name, {}) == pytest.approx(measured, abs=0.012)
    assert measured > 0.05
    assert built_population(0.1, apart=False).gap(name, {}) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("of", bootstrap.QUICK, ids=lambda of: of.name)
def test_quick_statistics_are_the_metrics(apart, of):
    rows = apart.draw(300, np.random.default_rng(1))
    y, scores, groups = rows
    statistic = of.of(y == 1, scores, (groups == "b").astype(int))
    some = np.random.default_rng(2).integers(300, size=300)
    assert statistic(some) == pytest.approx(sample(of.name, {}, tuple(column[some] for column in rows)).gap)


@pytest.mark.slow
def test_a_tiny_run(apart, monkeypatch, tmp_path):
    scenario = Scenario("gaps", apart, 200, "b")
    for module in (coverage, bootstrap):
        monkeypatch.setattr(module, "scenarios", lambda quick: [scenario])
        monkeypatch.setattr(module, "_QUICK_DRAWS", 4)
    monkeypatch.setattr(bootstrap, "_RESAMPLES", 200)
    cases = [("minority_share", {}), ("partial_statistical_parity_gap", {"interval": (0, 0.5)})]
    table = coverage.coverage(cases, quick=True)
    assert table["method"].tolist() == ["binomial", "binomial", "dkw"]
    assert table["violated"].max() <= 0.2
    assert (table["mean_bound"] > table["true_gap"]).all()
    drawn = bootstrap.measure(quick=True)["bootstrap"]
    assert not drawn["distribution_free"].any()
    assert drawn["metric"].tolist() == [of.name for of in bootstrap.QUICK]
    for name, frame in (("scores", table), ("bootstrap", drawn)):
        frame.to_csv(tmp_path / f"tiny_{name}.csv", index=False)
    costs = pd.DataFrame(
        {
            "population": "normal", "n": 100, "draw": [0, 0, 1, 1], "kappa": 0.1, "population_gap": 0.05,
            "accuracy": [0.8, 0.7, 0.8, 0.7], "calibration_fraction": [0.0, 0.3, 0.0, 0.3],
            "certified": [False, True, False, False],
        }
    )  # fmt: skip
    costs.to_csv(tmp_path / "tiny_cost.csv", index=False)
    assert [path.name for path in figures.draw_all(tmp_path, "tiny")] == ["tiny_coverage.png", "tiny_cost.png"]
    assert all(path.stat().st_size > 10_000 for path in tmp_path.glob("*.png"))


@pytest.mark.slow
def test_the_gap_in_closed_form():
    source = classifier.Normal()
    X, y, groups = source.draw(2000, np.random.default_rng(0))
    model = RateParityClassifier(kappa=0.1).fit(X, y, sensitive_features=groups)
    gap, accuracy = source.judged(model)
    X_new, y_new, groups_new = source.draw(200_000, np.random.default_rng(1))
    assert gap == pytest.approx(independence_gap(None, model.predict(X_new), sensitive_features=groups_new), abs=0.008)
    assert accuracy == pytest.approx(model.score(X_new, y_new), abs=0.008)
