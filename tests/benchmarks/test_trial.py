"""The trial: problems follow from their seeds, gaps agree with the package, and planted failures are found."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

pytest.importorskip("tqdm")

from benchmarks._runner import read, run_all
from benchmarks.trial import gaps
from benchmarks.trial.__main__ import forget_slow
from benchmarks.trial.judgements import COLUMNS, judge, run
from benchmarks.trial.objectives import of_classes, of_pairs, of_rows, of_target, pairs_of_labels
from benchmarks.trial.obvious import best_constant, best_rescaling, feasible_constants
from benchmarks.trial.problem import ORDER, THRESHOLD, VALUES, Bound, Problem
from benchmarks.trial.problems import draw_problem
from benchmarks.trial.rows import LAYOUTS, WEIGHTS, Rows, draw_rows
from benchmarks.trial.tasks import Task, summary
from fairconstrained import PartialParityClassifier, metrics

pytestmark = pytest.mark.slow


def test_a_seed_says_everything():
    for seed in range(30):
        one, other = draw_problem(seed), draw_problem(seed)
        assert repr(one.make()) == repr(other.make())
        assert one.notion == other.notion
        for a, b in ((one.rows.X, other.rows.X), (one.target, other.target), (one.rows.groups, other.rows.groups)):
            assert abs(a - b).max() == 0 if hasattr(a, "tocsr") else np.array_equal(a, b)


def test_problems_are_of_all_kinds():
    problems = [draw_problem(seed) for seed in range(250)]
    assert len({p.estimator for p in problems}) == 8
    assert {p.rows.layout for p in problems} == set(LAYOUTS)
    assert {p.rows.weighting for p in problems} == set(WEIGHTS)
    assert {p.loss for p in problems if p.estimator == "PartialParityClassifier"} == {
        "logistic", "hinge", "squared", "truncated_logistic", "zero_one", "auc",
    }  # fmt: skip
    assert np.mean([not p.too_heavy for p in problems]) > 0.4


@pytest.mark.parametrize("seed", range(6))
def test_gaps_agree_with_the_metrics(seed):
    rng = np.random.default_rng(seed)
    rows = draw_rows(rng, overlapping=False, largest=300)
    members, weights, positive = rows.members, rows.weights, rows.positive
    everyone, both = [np.ones(positive.size, dtype=bool)], [positive, ~positive]
    scores = np.round(rng.normal(size=positive.size), 1)  # with ties
    given = {"sensitive_features": rows.groups, "sample_weight": rows.sample_weight}
    y = positive.astype(int)
    for interval in ([(0.0, 1.0)], [(0.0, 0.3)], [(0.1, 0.35), (0.6, 0.9)]):
        pieces = [interval] * len(rows.labels)
        options = {**given, "interval": interval}
        for normalize in (True, False):
            package = metrics.partial_statistical_parity_gap(y, scores, **options, normalize=normalize)
            assert gaps.statistical_gap(scores, members, weights, pieces, normalize) == pytest.approx(
                package, abs=1e-10
            )
            for name, subsets in (("demographic_parity", everyone), ("equalized_odds", both)):
                if any((weights[c] * k[c]).sum() == 0 for c in members.T for k in subsets):
                    continue
                metric = getattr(metrics, f"partial_{name}_gap")
                package = metric(y, scores, **options, normalize=normalize, threshold=0.3)
                own = gaps.parity_gap(scores, members, weights, subsets, 0.3, pieces, normalize)
                assert own == pytest.approx(package, abs=1e-10)
        package = metrics.partial_group_auc_gap(y, scores, **options)
        assert gaps.group_auc_gap(scores, members, weights, pieces) == pytest.approx(package, abs=1e-10)
    if any((weights[c] * k[c]).sum() == 0 for c in members.T for k in both):
        return
    for name in ("inter_group", "intra_group", "positive_equality", "negative_equality", "bpsn_bnsp"):
        metric = metrics.find_metric(name)[0].function
        own = gaps.auc_sets_gap(scores, weights, gaps.auc_sets(name, members, positive, None))
        assert own == pytest.approx(metric(y, scores, **given), abs=1e-10)
    for rate in ("indicator", "sigmoid", "hinge"):
        values = gaps.row_values(rate, scores, positive)
        for constraint, subsets in (("equalized_odds", both), ("intersectional", everyone)):
            reference = "pairwise" if constraint == "equalized_odds" else "excess" if rate == "hinge" else "overall"
            own = gaps.gap_of_means(values, members, weights, subsets, reference)
            assert own == pytest.approx(
                metrics.rate_gap(y, scores, **given, constraint=constraint, rate=rate), abs=1e-10
            )
    for loss in ("log_loss", "hinge", "absolute", "squared"):
        own = gaps.gap_of_means(gaps.row_values(loss, scores, positive), members, weights, everyone)
        assert own == pytest.approx(metrics.loss_parity_gap(y, scores, **given, loss=loss), abs=1e-10)
    own = gaps.majority_share(scores, members[:, 0], weights, "sigmoid")
    package = metrics.minority_share(None, scores, **given, minority=rows.labels[0], rate="sigmoid")
    assert own == pytest.approx(1 - package, abs=1e-10)


def test_an_auc_is_the_share_of_pairs():
    scores, weights = np.array([1.0, 2.0, 2.0, 0.0]), np.array([1.0, 2.0, 1.0, 3.0])
    above, below = np.array([True, True, False, False]), np.array([False, False, True, True])
    # 1 > 0 (3), 2 = 2 (2 of half), 2 > 0 (6), of 3 * 4
    assert gaps.auc(scores, weights, above, below) == pytest.approx((3 + 1 + 6) / 12)


def test_slopes_of_objectives():
    rng = np.random.default_rng(0)
    n = 40
    positive, weights, scores = rng.random(n) < 0.5, rng.random(n), rng.normal(size=n)
    pairs = gaps.query_pairs(rng.integers(3, size=n), rng.integers(4, size=n))
    objectives = [of_rows(loss, positive, weights) for loss in ("logistic", "hinge", "squared", "truncated_logistic")]
    objectives += [pairs_of_labels(loss, positive, weights) for loss in ("logistic", "hinge", "quadratic")]
    objectives += [of_target(rng.normal(size=n), weights), of_pairs(pairs)]
    for objective in objectives:
        check_slope(objective, scores, rng)
    outputs = rng.normal(size=(n, 3))
    check_slope(of_classes("logistic", rng.integers(3, size=n), weights, [0, 2], 2.0), outputs, rng)


def check_slope(objective, scores, rng):
    way, step = rng.normal(size=scores.shape), 1e-6
    difference = objective.value(scores + step * way) - objective.value(scores - step * way)
    assert (objective.slope(scores) * way).sum() == pytest.approx(difference / (2 * step), rel=1e-4, abs=1e-7)


def made(bound="statistical_parity", kappa=0.3, loss="logistic", n=240):
    """A problem of two groups, whose scores differ, that is easy to look through."""
    rng = np.random.default_rng(0)
    codes = np.arange(n) % 2
    X = rng.normal(size=(n, 3)) + 0.5 * codes[:, None]
    positive = X[:, 0] + rng.normal(size=n) > 0.4
    members, weights = np.eye(2, dtype=bool)[codes], np.ones(n)
    rows = Rows(X, positive.astype(int), positive, X[:, 0], codes, (0, 1), members, None, "shifted", "none", "gaussian")
    whole, everyone = [[(0.0, 1.0)]] * 2, [np.ones(n, dtype=bool)]
    gap_of, depends_on = {
        "statistical_parity": (lambda s: gaps.statistical_gap(s, members, weights, whole), ORDER),
        "demographic_parity": (lambda s: gaps.parity_gap(s, members, weights, everyone, 0.0, whole), THRESHOLD),
        "sigmoid": (
            lambda s: gaps.gap_of_means(gaps.row_values("sigmoid", s, positive), members, weights, everyone),
            VALUES,
        ),
    }[bound]
    return Problem(
        seed=0,
        estimator="PartialParityClassifier",
        notion=bound,
        loss=loss,
        make=lambda: PartialParityClassifier(None, objective=loss, alpha=0.01),
        rows=rows,
        target=rows.y,
        fit_params={"sensitive_features": codes},
        scores_of=lambda model: model.decision_function(X),
        bounds=[Bound(bound, kappa, gap_of, depends_on, list(members.T), [1.0, 1.0])],
        objective=None
        if loss == "zero_one"
        else of_rows(loss, positive, weights)
        if loss != "auc"
        else (pairs_of_labels("logistic", positive, weights)),
        weights=weights,
        alpha=0.01,
        counts_errors=loss == "zero_one",
    )


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "auc"])
def test_the_objective_is_the_one_of_the_estimator(loss):
    problem = made(loss=loss)
    model = problem.make().fit(problem.rows.X, problem.target, **problem.fit_params)
    own = problem.objective.value(problem.scores_of(model)) + problem.penalty(model)
    assert own == pytest.approx(model.objective_, rel=1e-9)


@pytest.fixture(scope="module")
def best():
    """A problem whose bound is loose, and its solution."""
    problem = made()
    n = problem.target.size
    return problem, LogisticRegression(C=1 / (0.01 * n), tol=1e-12, max_iter=1000).fit(problem.rows.X, problem.target)


def planted(problem, scores, coef, **facts):
    """A model with these scores, and what it says of itself."""
    said = {"status_": "optimal", "granularity_": {bound.name: 1 / 120 for bound in problem.bounds}}
    said["constraint_values_"] = {bound.name: bound.gap(scores) for bound in problem.bounds}
    return SimpleNamespace(
        solver_="augmented_lagrangian", coef_=coef, decision_function=lambda X: scores, **(said | facts)
    )


def broken(problem, *args, warned=False, **facts):
    return judge(problem, planted(problem, *args, **facts), warned)[1]


def test_scores_that_are_too_small_or_upside_down(best):
    problem, model = best
    scores, coef = problem.scores_of(model), model.coef_
    assert broken(problem, scores, coef) == []
    assert broken(problem, 0.5 * scores, 0.5 * coef) == ["above rescaling"]
    assert broken(problem, scores + 0.1, coef) == ["above rescaling"]
    assert broken(problem, -scores, -coef) == ["above constant", "above rescaling"]
    facts, _ = judge(problem, planted(problem, 0.5 * scores + 0.3, 0.5 * coef), False)
    assert (facts["scale"], facts["shift"]) == pytest.approx((2.0, -0.6), abs=1e-4)


def test_a_silent_miss(best):
    problem, _ = best
    scores, coef = problem.rows.members[:, 0] * 1.0, np.zeros((1, 3))  # a gap of 1
    assert "silent miss" in broken(problem, scores, coef)
    assert "silent miss" in broken(problem, scores, coef, warned=True)  # but the status says optimal
    assert "silent miss" in broken(problem, scores, coef, status_="infeasible")  # but there is no warning
    assert "silent miss" not in broken(problem, scores, coef, status_="infeasible", warned=True)
    # the allowance is never more than max(kappa, 0.02), whatever the model says
    assert "silent miss" in broken(problem, scores, coef, granularity_={"statistical_parity": 1.0})


def test_a_wrong_value_and_a_wrong_status(best):
    problem, model = best
    scores, coef = problem.scores_of(model), model.coef_
    gap = problem.bounds[0].gap(scores)
    assert broken(problem, scores, coef, constraint_values_={"statistical_parity": gap + 1e-6}) == ["wrong value"]
    assert broken(problem, scores, coef, status_="infeasible", warned=True) == ["infeasible", "wrong status"]


def test_an_accuracy_below_that_of_a_constant():
    problem = made(loss="zero_one")
    wrong = np.where(problem.rows.positive, -1.0, 1.0)
    assert "below majority" in broken(problem, wrong, np.zeros((1, 3)))
    assert "below majority" not in broken(problem, -wrong, np.zeros((1, 3)))


def test_exceptions_and_refusals():
    def fails(error):
        def fit(*args, **kwargs):
            raise error

        return run(replace(made(), make=lambda: SimpleNamespace(fit=fit)))

    assert fails(KeyError("x"))["broken"] == "crash"
    assert fails(ValueError("too few"))["broken"] == "refused"  # a row weighs 1/120 of its group
    few = replace(made(n=60), make=lambda: PartialParityClassifier(2.0))
    assert few.too_heavy is False  # 1/30 is less than the kappa of 0.3
    heavy = made(n=60, kappa=0.0)
    assert heavy.too_heavy


@pytest.mark.parametrize("kappa", [0.0, 0.08])
@pytest.mark.parametrize("bound", ["demographic_parity", "sigmoid"])
def test_the_best_rescaling_is_as_good_as_that_of_a_fine_grid(bound, kappa):
    problem = made(bound, kappa)
    scores = problem.rows.X @ [0.5, 0.3, 0.1]
    limits = [kappa + 1e-12]
    best = best_rescaling(problem, scores, 0.01, limits)
    tries = [
        problem.objective.value(a * scores + b) + a**2 * 0.01
        for a in np.linspace(0.0, 3, 25)
        for b in np.linspace(-3, 3, 49)
        if problem.bounds[0].gap(a * scores + b) <= limits[0]
    ]
    of_constants = best_constant(problem, feasible_constants(problem))
    assert min(best.objective if best else np.inf, of_constants) <= min(tries) + 1e-9
    assert best is None or problem.bounds[0].gap(best.scale * scores + best.shift) <= limits[0]
    assert kappa == 0 or best is not None


def test_constants_are_feasible_unless_they_miss_a_class():
    assert feasible_constants(made(kappa=0.0))
    one = Bound("error[1]", 0.1, lambda s: np.mean(s[made().rows.positive] <= 0), THRESHOLD, [], [])
    zero = Bound("error[0]", 0.1, lambda s: np.mean(s[~made().rows.positive] > 0), THRESHOLD, [], [])
    assert feasible_constants(replace(made(), bounds=[one]))
    assert not feasible_constants(replace(made(), bounds=[one, zero]))


def test_results_resume(tmp_path):
    path, done = tmp_path / "trial.csv", []

    def note(task):
        done.append(task.seed)
        return [task.columns | {"cpu_seconds": 1.0, "broken": "", "status": "optimal"}]

    run_all([Task(seed) for seed in range(3)], note, path, COLUMNS, jobs=1)
    run_all([Task(seed) for seed in range(5)], note, path, COLUMNS, jobs=1)
    assert done == [0, 1, 2, 3, 4]
    results = read(path, COLUMNS)
    assert summary(results, 5)["broken"].sum() == 0
    assert summary(results, 6)["broken"].sum() == 1  # one is missing


def test_failed_tasks_are_counted_with_a_message_and_run_again(tmp_path, capsys):
    path, outcomes = tmp_path / "trial.csv", iter([None, ValueError("no numpy"), None])

    def note(task):
        if (error := next(outcomes)) is not None:
            raise error
        return [task.columns | {"cpu_seconds": 1.0, "broken": "", "status": "optimal"}]

    run_all([Task(seed) for seed in range(2)], note, path, COLUMNS, jobs=1)
    assert "1 tasks failed" in (printed := capsys.readouterr().out)
    assert "no numpy" in printed
    run_all([Task(seed) for seed in range(2)], note, path, COLUMNS, jobs=1)
    assert "failed" not in capsys.readouterr().out
    assert sorted(read(path, COLUMNS).seed) == [0, 1]


def test_slow_problems_run_again(tmp_path):
    path, seconds = tmp_path / "trial.csv", iter([1.0, 6.0, 2.0, 3.0])

    def note(task):
        return [task.columns | {"seconds": (took := next(seconds)), "cpu_seconds": took, "broken": "", "status": ""}]

    run_all([Task(seed) for seed in range(3)], note, path, COLUMNS, jobs=1)
    forget_slow(path, 4.0)
    run_all([Task(seed) for seed in range(3)], note, path, COLUMNS, jobs=1)
    results = read(path, COLUMNS).set_index("seed").sort_index()
    assert results.cpu_seconds.tolist() == [1.0, 3.0, 2.0]
