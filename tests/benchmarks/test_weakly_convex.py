"""The benchmark of weakly convex problems: what has arrived, the known proximal solution, and tiny runs."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

pytest.importorskip("tqdm")
pytest.importorskip("matplotlib")

from benchmarks.weakly_convex import complexity, convergence, figures, tuning
from benchmarks.weakly_convex.cases import Case, Rows
from benchmarks.weakly_convex.convergence import _summary, way_of
from benchmarks.weakly_convex.parameters import FIXED, GRIDS, PARAMETERS
from benchmarks.weakly_convex.simple_example import SimpleExample
from fairconstrained.problem import FullBatchView

pytestmark = pytest.mark.slow


@pytest.fixture
def case(monkeypatch):
    """Sixty rows with labels and forty with groups."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    groups = np.where(rng.random(40) < 0.4, "few", "many")
    X[60:, 1] += groups == "few"
    rows = Rows(X[:60], np.where(X[:60, 0] + rng.normal(size=60) > 0, 1, -1), X[60:], groups)
    monkeypatch.setattr(Case, "rows", lambda self: rows)
    return Case("none", "few", 0.3)


def test_the_problem_is_that_of_the_paper(case):
    problem, rows = case.problem(), case.rows()
    w = case.start(problem).model_state
    assert np.abs(w).sum() == pytest.approx(3.0)  # three ones are inside
    point = FullBatchView(problem).at(w)
    losses = np.logaddexp(0, -rows.y * (rows.X @ w))
    assert point.objective == pytest.approx(np.mean(2 * np.log1p(losses / 2)))
    rates = 1 / (1 + np.exp(-rows.X_constraint @ w))
    by_hand = (0.3 * rates.sum() - rates[rows.groups == "few"].sum()) / 40
    assert point.constraints == pytest.approx([by_hand])


@pytest.mark.parametrize("method", PARAMETERS)
def test_a_tiny_run(case, method):
    options = {"inner_iter": 20} if "ipc" in method else {}
    way = way_of(case, method, PARAMETERS[method] | options | {"max_iter": 5})
    assert way.passes.is_monotonic_increasing
    assert (way.seconds.diff().dropna() >= 0).all()
    assert way.objective.iloc[-1] < way.objective.iloc[0]
    assert way.stationarity.iloc[-1] >= 0


@pytest.mark.parametrize("method", ["auto", "exact_penalty", "ipc_alm", "online_subgradient"])
def test_the_simple_example(method):
    """Its solution is (0, 1), with the value -1/2 and the constraint -12.5."""
    example = SimpleExample()
    way = way_of(example, method, example.options(PARAMETERS[method]))
    assert way.objective.iloc[0] == pytest.approx(-1 / 8)  # at (0, 0.5)
    assert way.objective.iloc[-1] == pytest.approx(-0.5, abs=1e-3)
    assert way.constraint.iloc[-1] == pytest.approx(-12.5, abs=1e-2)
    assert way.stationarity.iloc[-1] <= 1e-2


def test_every_method_has_as_many_sets(case, monkeypatch):
    assert {len(grid) for grid in GRIDS.values()} == {8}
    assert all(PARAMETERS[method].items() >= FIXED[method].items() for method in GRIDS)
    monkeypatch.setattr(tuning, "TUNING", case)
    monkeypatch.setattr(tuning, "GRIDS", {"online_subgradient": [{"V": 1.0, "alpha": alpha} for alpha in (1e3, 1.0)]})
    table = tuning.measure(True)["tuning"]
    assert table.chosen.tolist() == [False, True]
    assert table.set.tolist() == ["V=1, alpha=1e+03", "V=1, alpha=1"]


def test_runs_go_on_where_they_were_interrupted(case, tmp_path, monkeypatch):
    path = tmp_path / "runs.csv"
    convergence.run_methods(["auto"], [case], path, quick=True)
    first = pd.read_csv(path)
    monkeypatch.setattr(convergence, "way_of", lambda case, method, options: first.assign(seconds=-1.0).tail(2))
    convergence.run_methods(["auto", "exact_penalty"], [case], path, quick=True)
    runs = pd.read_csv(path)
    assert (runs.seconds < 0).sum() == 2
    pd.testing.assert_frame_equal(runs[runs.method == "auto"].head(len(first)), first)


def test_arrival_counts_only_what_holds():
    ways = {
        "auto": [(1.0, 9, 0.6, 0.0, np.nan), (2.0, 10, 0.5, 0.0, 0.01)],
        "ipc": [(1.0, 9, 0.4, 0.1, np.nan), (30.0, 99, 0.5005, 0.00005, 0.1)],
        "exact_penalty": [(4.0, 9, 0.7, 0.0, 0.1)],
    }
    columns = ["seconds", "passes", "objective", "constraint", "stationarity"]
    frames = [pd.DataFrame(rows, columns=columns).assign(method=method) for method, rows in ways.items()]
    table = _summary(pd.concat(frames).assign(problem="none")).set_index("method")
    assert table.above_best.tolist() == pytest.approx([0.0, 0.0005, 0.2])
    assert table.arrived.tolist()[:2] == [10, 99]
    assert table.seconds_arrived.tolist()[:2] == [2.0, 30.0]
    assert np.isnan(table.arrived["exact_penalty"])
    assert table.times_auto.tolist() == [1.0, 9.9, 0.9]


@pytest.mark.parametrize("x", [(0.3, -0.5), (0.9, 1.4), (-1.6, 0.2), (0.0, 1.7)])
def test_the_proximal_solution(x):
    """Against SLSQP from many starts, with a variable for each absolute value."""
    x = np.array(x)
    found = complexity._proximal_solution(x)
    r, targets = complexity._PROXIMITY, complexity._TARGETS

    def size(y):
        return y @ y - complexity._BOUND + r / 2 * (y - x) @ (y - x)

    def value(y):
        return np.abs(y**2 - targets).sum() + r / 2 * (y - x) @ (y - x)

    assert size(found) <= 1e-9
    solutions = [
        minimize(
            lambda v: v[2:].sum() + r / 2 * (v[:2] - x) @ (v[:2] - x),
            np.append(start, np.abs(start**2 - targets) + 0.1),
            constraints=[
                {"type": "ineq", "fun": lambda v: -size(v[:2])},
                {"type": "ineq", "fun": lambda v: v[2:] - (v[:2] ** 2 - targets)},
                {"type": "ineq", "fun": lambda v: v[2:] + (v[:2] ** 2 - targets)},
            ],
        ).x[:2]
        for start in np.random.default_rng(0).uniform(-1.2, 1.2, size=(6, 2))
    ]
    best = min(value(y) for y in solutions if size(y) <= 1e-6)
    assert value(found) <= best + 1e-5


def test_figures(tmp_path):
    n = len(PARAMETERS)
    way = pd.DataFrame(
        {
            "seconds": [0.0, 1.0] * n,
            "passes": [0, 10] * n,
            "objective": [1.0, 0.5] * n,
            "constraint": [-0.1, 0.0] * n,
            "method": np.repeat(list(PARAMETERS), 2),
            "problem": "none",
        }
    )
    way.to_csv(tmp_path / "stem_way.csv", index=False)
    pd.DataFrame({"eps": [0.2, 0.1], "n_subgradients": [10, 40]}).to_csv(tmp_path / "stem_complexity.csv", index=False)
    errors = {"bound": [0.1, 0.2], "method": "a", "data": "none", "priority": [0.3, 0.2], "priority_test": [0.3, 0.2]}
    pd.DataFrame(errors).to_csv(tmp_path / "stem_neyman_pearson.csv", index=False)
    paths = figures.draw_all(tmp_path, "stem")
    assert [path.name for path in paths] == [
        f"stem_{name}.png" for name in ("passes", "seconds", "neyman_pearson", "complexity")
    ]
    assert all(path.stat().st_size > 5000 for path in paths)
