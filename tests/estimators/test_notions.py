"""Every notion of parity on every kind of interval: the metric that the user measures is within kappa."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained import ConvergenceWarning, PartialParityClassifier, PartialParityRegressor
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import (
    granularity,
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
)
from fairconstrained.model_selection import get_fairness_scorer

GAPS = {
    "statistical_parity": partial_statistical_parity_gap,
    "demographic_parity": partial_demographic_parity_gap,
    "group_auc": partial_group_auc_gap,
    "equal_opportunity": partial_equal_opportunity_gap,
    "equalized_odds": partial_equalized_odds_gap,
}
UNION = [(0.0, 0.3), (0.5, 1.0)]
INTERVALS = {
    "interval": lambda groups: (0.2, 1.0),
    "union": lambda groups: UNION,
    "by group": lambda groups: {g: UNION if g == 1 else (0.1, 0.9) for g in np.unique(groups)},
}
#: Short runs: what is tested here is the constraint, not how far the objective comes.
TOL = 0.01
#: Below what the models without a constraint reach.
KAPPAS = dict.fromkeys(GAPS, 0.08) | {"equal_opportunity": 0.05, "equalized_odds": 0.05}


@pytest.fixture(scope="module", params=[2, 3], ids=["2 groups", "3 groups"])
def sample(request):
    """Groups of which the second is underrated, so that every notion is violated without a constraint."""
    n = request.param
    return make_biased_classification(
        500,
        4,
        group_proportions=[(0.55, 0.45), (0.35, 0.35, 0.3)][n - 2],
        positive_rates=(0.65, 0.4, 0.5)[:n],
        group_shift=(0.0, -1.0, -0.3)[:n],
        random_state=n,
    )


def resolution(parity, y, groups, interval):
    """Largest change of a gap by one row, in the smallest cell that is compared."""
    cells = {"equal_opportunity": [y == 1], "equalized_odds": [y == 0, y == 1]}.get(parity, [y >= 0])
    return max(granularity(groups[rows], interval=interval) for rows in cells)


def check_promise(model, X, y, groups, codes):
    """``constraint_values_`` is the public metric, and within kappa up to one row."""
    scores = model.decision_function(X, sensitive_features=groups)
    gap = GAPS[model.constraint](y, scores, sensitive_features=groups, interval=model.interval)
    assert gap <= model.kappa + resolution(model.constraint, y, codes, model.interval) + 1e-9
    assert model.status_ == "optimal"
    assert model.constraint_values_ == {model.constraint: pytest.approx(gap, abs=1e-9)}
    assert model.violation_ == pytest.approx(max(gap - model.kappa, 0), abs=1e-9)


#: Every notion with two groups and with three, on a union and on intervals by group, of which one is a union. Single
#: intervals are in the next test, and for the notions that are not there in test_promise.py.
CASES = [
    *((parity, *case) for parity in GAPS if parity != "demographic_parity" for case in ((2, "union"), (3, "by group"))),
    ("demographic_parity", 2, "by group"),
    ("demographic_parity", 3, "union"),
    ("statistical_parity", 3, "interval"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("parity", "sample", "kind"), CASES, indirect=["sample"], ids=str)
def test_kappa_is_kept(sample, parity, kind):
    X, y, groups = sample
    interval = INTERVALS[kind](groups)
    model = PartialParityClassifier(
        KAPPAS[parity], constraint=parity, interval=interval, group_interactions=True, tol=TOL
    )
    model.fit(X, y, sensitive_features=groups)
    check_promise(model, X, y, groups, groups)
    free = PartialParityClassifier(**{**model.get_params(), "kappa": None}).fit(X, y, sensitive_features=groups)
    (unconstrained,) = free.constraint_values_.values()
    assert unconstrained > model.kappa + resolution(parity, y, groups, interval)  # there was something to do
    assert free.objective_ < model.objective_
    assert model.score(X, y, sensitive_features=groups) > max(y.mean(), 1 - y.mean()) + 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parity", "sample"), [("group_auc", 2), ("equal_opportunity", 3), ("equalized_odds", 2)], indirect=["sample"]
)
def test_coefficients_that_the_groups_share(sample, parity):
    X, y, groups = sample
    model = PartialParityClassifier(0.15, constraint=parity, interval=(0.2, 1.0), tol=TOL).fit(
        X, y, sensitive_features=groups
    )
    check_promise(model, X, y, groups, groups)
    assert model.score(X, y) > max(y.mean(), 1 - y.mean()) + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("parity", ["statistical_parity", "equalized_odds"])
def test_crossed_attributes(parity):
    X, y, groups = make_biased_classification(
        700,
        4,
        group_proportions=(0.3, 0.3, 0.4),
        positive_rates=(0.65, 0.35, 0.5),
        group_shift=(0.0, -0.8, 0.0),
        random_state=2,
    )
    # three of the four combinations are observed
    table = pd.DataFrame({"sex": np.array(["f", "m", "m"])[groups], "old": np.array([True, True, False])[groups]})
    labels = [("f", True), ("m", False), ("m", True)]
    interval = {label: UNION if label[0] == "f" else (0.1, 1.0) for label in labels}
    model = PartialParityClassifier(0.12, constraint=parity, interval=interval, group_interactions=True, tol=TOL)
    model.fit(X, y, sensitive_features=table)
    assert list(model.groups_) == labels
    lengths = {index: interval[("m" if index else "f", index < 2)] for index in range(3)}
    scores = model.decision_function(X, sensitive_features=table)
    gap = GAPS[parity](y, scores, sensitive_features=table, interval=interval)
    assert gap <= 0.12 + resolution(parity, y, groups, lengths) + 1e-9
    assert list(model.constraint_values_.values()) == [pytest.approx(gap, abs=1e-9)]


@pytest.mark.parametrize("parity", ["equal_opportunity", "equalized_odds"])
def test_weights_and_threshold_reach_the_rates(sample, parity):
    X, y, groups = sample
    weights = np.random.default_rng(0).uniform(0.3, 2.0, y.size)
    model = PartialParityClassifier(0.25, constraint=parity, threshold=0.5, tol=TOL)
    model.fit(X, y, sensitive_features=groups, sample_weight=weights)
    measured = {"sensitive_features": groups, "sample_weight": weights, "threshold": 0.5}
    gap = GAPS[parity](y, model.decision_function(X), **measured)
    assert model.constraint_values_ == {parity: pytest.approx(gap)}
    cells = [(y == c) & (groups == g) for c in ([1] if parity == "equal_opportunity" else [0, 1]) for g in set(groups)]
    assert gap <= 0.25 + max(weights[rows].max() / weights[rows].sum() for rows in cells) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parity", "kind"), [("statistical_parity", "by group"), ("demographic_parity", "union"), ("group_auc", "by group")]
)
def test_regressor(numbers, parity, kind):
    X, y, groups = numbers
    interval = INTERVALS[kind](groups)
    model = PartialParityRegressor(
        0.1, constraint=parity, interval=interval, threshold=-0.5, group_interactions=True, tol=TOL
    )
    model.fit(X, y, sensitive_features=groups)
    extra = {"threshold": -0.5} if parity == "demographic_parity" else {}
    predicted = model.predict(X, sensitive_features=groups)
    gap = GAPS[parity](None, predicted, sensitive_features=groups, interval=interval, **extra)
    assert gap <= 0.1 + granularity(groups, interval=interval) + 1e-9
    assert list(model.constraint_values_.values()) == [pytest.approx(gap, abs=1e-9)]
    assert model.score(X, y, sensitive_features=groups) > 0.3


@pytest.mark.parametrize("parity", ["equal_opportunity", "equalized_odds"])
def test_regressor_has_no_labels_to_compare_within(numbers, parity):
    with pytest.raises(ValueError, match=rf"constraint must be one of .*'group_auc'\], .*got '{parity}'"):
        PartialParityRegressor(0.1, constraint=parity).fit(numbers.X, numbers.y, sensitive_features=numbers.groups)


def test_a_group_without_positives_is_named(classes):
    X, y, _ = classes
    with pytest.raises(ValueError, match=r"equal_opportunity with kappa=0.1 .* \{'few, y=1': 0\}"):
        PartialParityClassifier(0.1, constraint="equal_opportunity").fit(
            X, y, sensitive_features=np.where((np.arange(y.size) < 100) & (y == 0), "few", "many")
        )


# --- zero-one: the search over thresholds is exact


def test_zero_one_under_equal_opportunity_is_the_best_pair_of_thresholds(classes):
    """One feature that orders the rows of every group: all classifiers are pairs of thresholds."""
    X, y, groups = classes
    x = X[:, [0]] + X[:, [1]]
    kappa = 0.03
    model = PartialParityClassifier(
        kappa, constraint="equal_opportunity", objective="zero_one", group_interactions=True
    )
    model.fit(x, y, sensitive_features=groups)
    assert (model.coef_ > 0).all()  # in both groups a larger x speaks for the positive class
    rates, hits = [], []
    for group in (0, 1):
        own = groups == group
        ordered = y[own][np.argsort(-x[own, 0])]
        hits.append(np.append(0, np.cumsum(2 * ordered - 1)) + (1 - y[own]).sum())
        rates.append(np.append(0, np.cumsum(ordered)) / ordered.sum())
    allowed = np.abs(rates[0][:, None] - rates[1][None, :]) <= kappa + 1e-12
    best = (hits[0][:, None] + hits[1][None, :])[allowed].max()
    everything = hits[0].max() + hits[1].max()
    assert best < everything  # the constraint costs something
    assert model.score(x, y, sensitive_features=groups) == pytest.approx(best / y.size)
    assert model.constraint_values_["equal_opportunity"] <= kappa + 1e-12
    assert model.n_iter_ == 1


@pytest.mark.slow
@pytest.mark.parametrize("interval", [(0.2, 0.7), [(0.2, 0.4), (0.5, 0.8)]], ids=["interval", "union"])
@pytest.mark.parametrize("parity", ["equal_opportunity", "equalized_odds"])
def test_ranks_in_the_whole_group(parity, interval):
    """The bound is that of the public metric with the same ranks, and says nothing about the other one."""
    X, y, groups = make_biased_classification(1500, 4, group_shift=(0.0, -1.0), random_state=0)
    options = {"constraint": parity, "interval": interval, "ranks": "group"}
    free = PartialParityClassifier(None, **options).fit(X, y, sensitive_features=groups)
    assert free.constraint_values_[parity] > 0.15
    model = PartialParityClassifier(0.08, **options, tol=TOL).fit(X, y, sensitive_features=groups)
    scores, row = model.decision_function(X), resolution(parity, y, groups, interval)
    value = GAPS[parity](y, scores, sensitive_features=groups, interval=interval, ranks="group")
    assert model.constraint_values_[parity] == pytest.approx(value, abs=1e-9)
    assert model.constraint_values(X, y, sensitive_features=groups)[parity] == pytest.approx(value, abs=1e-9)
    assert value <= 0.08 + row + 1e-9
    assert model.status_ in {"optimal", "max_iter"}
    scorer = get_fairness_scorer(f"neg_{GAPS[parity].__name__}", ranks="group", interval=interval)
    assert scorer(model, X, y, sensitive_features=groups) == pytest.approx(-value, abs=1e-9)
    plain = GAPS[parity](y, scores, sensitive_features=groups, interval=interval)
    assert plain != pytest.approx(value, abs=1e-3)
    default = PartialParityClassifier(None, constraint=parity, interval=interval).fit(X, y, sensitive_features=groups)
    assert default.constraint_values_[parity] != pytest.approx(free.constraint_values_[parity], abs=1e-3)


@pytest.mark.slow
def test_a_label_that_is_not_at_the_ranks_of_a_group_is_said():
    X, y, groups = make_biased_classification(800, 4, random_state=1)
    top = {"constraint": "equalized_odds", "interval": (0, 0.05), "ranks": "group", "new_row_folds": None}
    with pytest.warns(ConvergenceWarning, match="equalized_odds does not exist, as a group has no rows of a label at"):
        PartialParityClassifier(0.3, objective="zero_one", **top).fit(X, y, sensitive_features=groups)
    # where classes weigh, runs from other decisions lead to ranks at which there are rows of both
    model = PartialParityClassifier(0.3, **top).fit(X, y, sensitive_features=groups)
    assert model.constraint_values_["equalized_odds"] <= 0.3
    assert 0 < model.predict(X).mean() < 1


def test_solvers_that_split_or_sample_do_not_take_ranks_in_the_whole_group():
    X, y, groups = make_biased_classification(500, 4, random_state=0)
    for solver in ("idca", "stochastic_idca"):
        model = PartialParityClassifier(constraint="equal_opportunity", ranks="group", solver=solver)
        with pytest.raises(ValueError, match=r"'equal_opportunity' does not offer(.|\n)*'augmented_lagrangian'"):
            model.fit(X, y, sensitive_features=groups)
