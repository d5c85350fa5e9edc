"""The rate parity benchmark: near-stationarity, what has arrived, and a tiny run of every method."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("tqdm")
pytest.importorskip("matplotlib")

from benchmarks.rate_parity import communities, convergence, figures, sensitivity, tuning, web_search
from benchmarks.rate_parity.cases import KAPPA
from benchmarks.rate_parity.convergence import _proximity, _summary, way_of
from benchmarks.rate_parity.parameters import CHOSEN, LINEAR, SETS
from fairconstrained.constraints import RateGap
from fairconstrained.problem import FullBatchView
from fairconstrained.solvers import AugmentedLagrangian, near_stationarity

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def problem(make_data, make_problem):
    data = make_data(counts=(60, 50), shift=1.0)
    return make_problem(data, RateGap(KAPPA, rate="sigmoid").bind(data))


def test_solutions_are_stationary_and_other_points_are_not(problem):
    proximity = _proximity(problem)
    solution = AugmentedLagrangian().solve(problem, None, np.random.default_rng(0)).model_state
    assert near_stationarity(problem, solution, proximity) < 2e-3
    assert near_stationarity(problem, np.zeros(problem.n_params), proximity) > 0.05
    # what breaks the bound is measured against the best point that breaks it no more
    assert near_stationarity(problem, 5 * solution, proximity) > 0.05


@pytest.mark.parametrize("method", LINEAR)
def test_a_tiny_run(problem, monkeypatch, method):
    monkeypatch.setattr(convergence, "_N_ORACLES", 2)
    options = {name: 3 if "max" in name or "iter" in name else value for name, value in LINEAR[method].items()}
    way = way_of(problem, method, options)
    assert (way.violation >= 0).all()
    assert (way.seconds.diff().dropna() >= 0).all()
    assert way.objective.iloc[-1] <= np.log(2) + 1e-9  # where all begin
    assert np.isfinite(way.distance).sum() >= 1


def test_arrival_counts_only_what_holds():
    ways = {
        "auto": [(1.0, 0.6, 0.0), (2.0, 0.5001, 0.0), (3.0, 0.5, 0.0)],
        "plada": [(1.0, 0.4, 0.1), (8.0, 0.5005, 0.00005), (9.0, 0.45, 0.02)],
        "ssg": [(4.0, 0.7, 0.0)],
    }
    columns = ["seconds", "objective", "violation"]
    rows = [pd.DataFrame(way, columns=columns).assign(method=name, distance=0.0) for name, way in ways.items()]
    table = _summary(pd.concat(rows).assign(data="d", constraint="c")).set_index("method")
    assert table.arrived["auto"] == 2.0
    assert table.arrived["plada"] == 8.0
    assert np.isnan(table.arrived["ssg"])
    assert table.times_auto.to_dict() == {"auto": 1.0, "plada": 4.0, "ssg": 2.0}
    assert table.best["plada"] == pytest.approx(0.0005)
    assert table.end["plada"] == pytest.approx(-0.05)


def test_figures(problem, tmp_path, monkeypatch):
    monkeypatch.setattr(convergence, "_N_ORACLES", 2)
    ways = [way_of(problem, method, {"max_iter": 3}).assign(method=method) for method in ("auto", "ssg")]
    way = pd.concat(ways).assign(data="d", constraint="demographic_parity")
    way.to_csv(tmp_path / "rate_parity_way.csv", index=False)
    assert figures.draw_all(tmp_path, "rate_parity") == [tmp_path / "rate_parity_way.png"]


# --- the rule by which parameters are chosen


def runs_of_a_tuning():
    """Two methods with two sets each on two problems; the second set of each is better on average."""
    losses = {("ssg", 0): (0.5, 0.4), ("ssg", 1): (0.52, 0.31), ("plada", 0): (0.6, np.nan), ("plada", 1): (0.55, 0.3)}
    rows = [
        {"data": data, "constraint": "demographic_parity", "method": method, "place": place, "loss": loss}
        for (method, place), pair in losses.items()
        for data, loss in zip(("a", "b"), pair, strict=True)
    ]
    return pd.DataFrame(rows)


def test_the_set_of_least_mean_loss_above_the_best_is_chosen():
    table = tuning.summary(runs_of_a_tuning())
    assert tuning.chosen(table) == {"ssg": 1, "plada": 1}
    means = table.set_index(["method", "place"])["mean"]
    assert means["ssg", 1] == pytest.approx((0.02 + 0.01) / 2)
    # what never keeps the bound counts as the start
    assert means["plada", 0] == pytest.approx((0.1 + np.log(2) - 0.3) / 2)


def test_every_method_has_as_many_sets_and_evaluations():
    assert {len(sets) for sets in SETS.values()} == {8}
    for sets in SETS.values():
        assert len({str(options) for options in sets}) == 8
    steps = {
        "plada": lambda o: o["max_epochs"] * o["epoch_steps"],
        "ssg": lambda o: o["max_iter"],
        "ipp_ssg": lambda o: o["max_iter"] * o["inner_iter"],
        "ipp_conex": lambda o: o["max_iter"] * o["inner_iter"],
        "proxy_lagrangian": lambda o: o["max_iter"],
    }
    assert {count(options) for name, count in steps.items() for options in SETS[name]} == {2000}
    assert set(CHOSEN) <= set(SETS)


def test_tiny_parts_and_their_figures(tmp_path, monkeypatch, problem):
    monkeypatch.setattr(sensitivity, "problem_of", lambda case: problem)
    monkeypatch.setattr(sensitivity, "_EVERY", 2)
    runs = sensitivity._runs(4)
    way = pd.DataFrame([row for run in runs for row in sensitivity._rows_of(run)])
    table = sensitivity._summary(way)
    assert len(table) == len(runs)
    assert (table.best.dropna() >= 0).all()
    assert np.isfinite(table.residual).all()
    fits = [web_search.Fit(method, 0, 40, 2) for method in web_search.METHODS]
    epochs = pd.DataFrame([row for fit in fits for row in web_search._rows_of(fit)])
    assert web_search._summary(epochs).pairs.min() > 36 * 30
    assert (epochs.epoch.isna().to_numpy() == [False, False, True] * 2).all()
    way.to_csv(tmp_path / "rate_parity_duals.csv", index=False)
    epochs.to_csv(tmp_path / "rate_parity_web_search_epochs.csv", index=False)
    names = [path.name for path in figures.draw_all(tmp_path, "rate_parity")]
    assert names == ["rate_parity_duals.png", "rate_parity_web_search_epochs.png"]


def test_communities_are_judged_by_epoch(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    shape = (120, 6)
    members = pd.DataFrame(rng.random((120, 3)) < 0.5, columns=list("abc"))
    X = rng.normal(size=shape)
    data = communities.Communities(X, np.where(X[:, 0] + rng.normal(size=120) > 0, 1, -1), members)
    monkeypatch.setattr(communities, "load", lambda: data)
    communities._parts.cache_clear()
    fits = [communities.Fit(bound, 0, name, 2) for bound in communities.NETWORKS for name in communities.METHODS]
    epochs = pd.DataFrame([row for fit in fits for row in communities._rows_of(fit)])
    for bound in communities.NETWORKS:  # scores and labels are in one order
        part = communities._parts(bound, 0)["test"]
        params = part.problem.model.init(np.random.default_rng(1))
        point = FullBatchView(part.problem).at(part.problem.start(params))
        excess = part.problem.constraints[0].metric(point.scores)
        assert communities._judged(part, params)[f"{bound}_excess"] == pytest.approx(excess)
    communities._parts.cache_clear()
    table = communities._summary(epochs)
    assert table.method.tolist() == list(communities.METHODS) * 2
    assert (table.seeds == 1).all()
    assert (table.train_max_excess >= table.train_mean_excess).all()
    epochs.to_csv(tmp_path / "rate_parity_epochs.csv", index=False)
    assert [path.name for path in figures.draw_all(tmp_path, "rate_parity")] == ["rate_parity_epochs.png"]
