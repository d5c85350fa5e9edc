"""The promise on real data: kappa is met, and accuracy is not given away."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler

from benchmarks._common import load_a9a, load_bank_table, load_compas_table, load_law_school_table
from fairconstrained import AUCFairClassifier, PartialParityClassifier, PartialParityRegressor, RateParityClassifier
from fairconstrained.datasets import load_law_school
from fairconstrained.groups import threshold_groups
from fairconstrained.metrics import (
    demographic_parity_ratio_gap,
    granularity,
    group_auc_gap,
    inter_group_auc_gap,
    intra_group_auc_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
    rate_gap,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def law():
    """Every second row."""
    data = load_law_school()
    X = StandardScaler().fit_transform(data.data)
    return tuple(column[::2] for column in (X, data.target, data.sensitive_features))


def check_promise(model, scores, groups):
    gap = partial_statistical_parity_gap(None, scores, sensitive_features=groups, interval=model.interval)
    assert gap <= model.kappa + granularity(groups, interval=model.interval) + 1e-9
    assert model.status_ == "optimal"
    return gap


@pytest.mark.parametrize("parity", ["statistical_parity", "demographic_parity"])
def test_law_school(law, parity):
    X, y, race = law
    options = {"interval": (0.7, 1.0), "constraint": parity}
    free = PartialParityClassifier(None, **options).fit(X, y, sensitive_features=race)
    fair = PartialParityClassifier(0.05, **options).fit(X, y, sensitive_features=race)
    assert fair.constraint_values_[parity] <= 0.05 + granularity(race, interval=(0.7, 1.0))
    assert free.constraint_values_[parity] > 0.2
    assert fair.score(X, y) > free.score(X, y) - 0.02
    if parity == "statistical_parity":
        check_promise(fair, fair.decision_function(X), race)


def test_law_school_regression(law):
    """The undergraduate grades from the rest."""
    X, _, race = law
    data = load_law_school()
    target = data.feature_names.index("ugpa")
    features, grades = np.delete(X, target, axis=1), data.data[::2, target]
    free = PartialParityRegressor(None, interval=(0.0, 0.3)).fit(features, grades, sensitive_features=race)
    fair = PartialParityRegressor(0.05, interval=(0.0, 0.3)).fit(features, grades, sensitive_features=race)
    check_promise(fair, fair.predict(features), race)
    assert free.constraint_values_["statistical_parity"] > 0.2
    assert fair.score(features, grades) > free.score(features, grades) - 0.03


@pytest.fixture(scope="module")
def a9a(adult):
    """Every third training row."""
    return tuple(column[::3] for column in adult[0])


def test_a9a(a9a):
    X, y, sex = a9a
    interval = (0.05, 0.3)
    free = PartialParityClassifier(None, interval=interval).fit(X, y, sensitive_features=sex)
    fair = PartialParityClassifier(0.1, interval=interval).fit(X, y, sensitive_features=sex)
    check_promise(fair, fair.decision_function(X), sex)
    assert free.constraint_values_["statistical_parity"] > 0.4
    assert fair.score(X, y) > free.score(X, y) - 0.02


#: From the parity to kappa, the metric and the labels within which it compares.
NOTIONS = {
    "equal_opportunity": (0.02, partial_equal_opportunity_gap, (1,)),
    "equalized_odds": (0.05, partial_equalized_odds_gap, (0, 1)),
    "group_auc": (0.02, partial_group_auc_gap, (None,)),
}


@pytest.mark.parametrize("parity", NOTIONS)
def test_a9a_other_notions(a9a, parity):
    """The larger class is 75.9 % of the rows; the fit without a constraint has an accuracy of 84.7 %, and a gap of
    0.14 in true positive rates and of 0.23 in the group AUC."""
    X, y, sex = a9a
    kappa, metric, labels = NOTIONS[parity]
    positive = y == y.max()
    fair = PartialParityClassifier(kappa, constraint=parity).fit(X, y, sensitive_features=sex)
    gap = metric(y, fair.decision_function(X), sensitive_features=sex)
    cells = [sex[slice(None) if label is None else positive == label] for label in labels]
    assert gap <= kappa + max(granularity(groups) for groups in cells) + 1e-9
    assert fair.status_ == "optimal"
    assert fair.constraint_values_ == {parity: pytest.approx(gap)}
    # measured: 0.844 under equal opportunity and equalized odds, 0.839 under group AUC
    assert fair.score(X, y) > (1 - positive.mean()) + 0.07


def test_a9a_area_under_the_curve(a9a):
    """Measured: AUC 0.904 without a constraint, where accuracy is 0.846; 0.880 and 0.832 with it."""
    X, y, sex = a9a
    fair = PartialParityClassifier(0.1, interval=(0.05, 0.3), objective="auc").fit(X, y, sensitive_features=sex)
    check_promise(fair, fair.decision_function(X), sex)
    assert roc_auc_score(y, fair.decision_function(X)) > 0.87
    assert fair.score(X, y) > (y != y.max()).mean() + 0.06


#: From the metric to its function, and the test AUC and the test gap that are asked for at kappa 0.02.
AUC_GAPS = {
    # measured: 0.8951 and 0.027
    "inter_group": (inter_group_auc_gap, 0.893, 0.035),
    # measured: 0.8967 and 0.026
    "intra_group": (intra_group_auc_gap, 0.894, 0.035),
    # measured: 0.8827 and 0.016
    "group_auc": (group_auc_gap, 0.880, 0.025),
}


@pytest.mark.parametrize("metric", AUC_GAPS)
def test_a9a_auc_gaps(adult, metric):
    (X, y, sex), (new_X, new_y, new_sex) = adult
    gap, least_auc, largest_gap = AUC_GAPS[metric]
    fair = AUCFairClassifier(0.02, constraint=metric).fit(X, y, sensitive_features=sex)
    trained = gap(y, fair.decision_function(X), sensitive_features=sex)
    assert 0 <= trained <= 0.0205
    assert fair.constraint_values_ == {metric: pytest.approx(trained)}
    assert fair.status_ == "optimal"
    scores = fair.decision_function(new_X)
    assert roc_auc_score(new_y, scores) >= least_auc
    assert gap(new_y, scores, sensitive_features=new_sex) <= largest_gap


def test_a9a_as_a_stream(adult):
    """Batches of a thousand rows of one group, first all women and then all men, against fits to all rows at once: the
    same by moments, and nearly the same by the stochastic method of the paper."""
    (X, y, sex), (new_X, new_y, new_sex) = adult
    options = {"kappa": 0.5, "surrogate": "quadratic", "objective": "auc", "random_state": 0}
    stream = AUCFairClassifier(**options)
    for one in ("female", "male"):
        rows = np.flatnonzero(sex == one)
        for chunk in np.array_split(rows, rows.size // 1000):
            announced = {"classes": np.unique(y), "groups": ["female", "male"]}
            stream.partial_fit(X[chunk], y[chunk], sensitive_features=sex[chunk], **announced)

    def measured(model):
        scores = model.decision_function(new_X)
        return roc_auc_score(new_y, scores), inter_group_auc_gap(new_y, scores, sensitive_features=new_sex)

    auc, gap = measured(stream)
    assert auc > 0.89  # measured: 0.8946 and 0.038
    assert stream.score(new_X, new_y) > (new_y != new_y.max()).mean() + 0.05
    for solver, auc_tolerance, gap_tolerance in [("moments", 1e-4, 1e-3), ("level_set", 0.005, 0.02)]:
        batch = AUCFairClassifier(**options, solver=solver, tol=2e-3).fit(X, y, sensitive_features=sex)
        assert measured(batch) == (pytest.approx(auc, abs=auc_tolerance), pytest.approx(gap, abs=gap_tolerance))


def test_a9a_rates(adult):
    """Gap and accuracy on new rows are those that a reduction reaches, in a fraction of its time."""
    (X, y, groups), (X_new, y_new, groups_new) = adult
    model = RateParityClassifier(0.02, rate="indicator", objective="zero_one", group_interactions=True)
    model.fit(X, y, sensitive_features=groups)
    gap = rate_gap(y, model.predict(X, sensitive_features=groups), sensitive_features=groups)
    assert gap == pytest.approx(model.constraint_values_["demographic_parity"])
    assert gap <= 0.02 + 1e-4
    assert np.mean(model.predict(X_new, sensitive_features=groups_new) == y_new) > 0.828


@pytest.mark.filterwarnings("ignore:.* probabilities:fairconstrained.FairnessWarning")
def test_communities_and_crime_with_many_groups(real_folder):
    path = real_folder / "communities_crime.parquet"
    if not path.is_file():
        pytest.skip("no communities_crime.parquet in the folder with the real data")
    frame = pd.read_parquet(path)
    columns = ["racepctblack", "racePctHisp", "racePctAsian"]
    members = threshold_groups(frame, columns, quantiles=np.linspace(0.5, 0.99, 10))
    features = frame.select_dtypes("number").drop(columns=["state", "fold", "ViolentCrimesPerPop"])
    X = StandardScaler().fit_transform(features.loc[:, features.notna().all()])
    y = np.where(frame["ViolentCrimesPerPop"] >= 0.28, 1, -1)
    model = RateParityClassifier(0.05, constraint="intersectional", rate="sigmoid")
    model.fit(X, y, sensitive_features=members)
    assert members.shape[1] == len(model.group_rates_) > 500
    assert model.status_ == "optimal"
    assert model.constraint_values_["intersectional"] <= 0.05 + 1.001e-6
    rates = model.predict_proba(X)[:, 1]
    by_hand = [abs(rates[members[name]].mean() - rates.mean()) for name in members]
    assert max(by_hand) == pytest.approx(model.constraint_values_["intersectional"])
    assert model.score(X, y) > 0.6


@pytest.mark.usefixtures("real_folder")
@pytest.mark.parametrize("metric", ["group_auc", "inter_group"])
@pytest.mark.parametrize("load", [load_compas_table, load_a9a, load_bank_table, load_law_school_table])
def test_no_optimum_of_the_quadratic_surrogate_is_better_at_the_same_gap(load, metric):
    """The general solver ends at a local solution, and the convex problem of the paper leads to no better one."""
    table = load()
    rows = np.random.default_rng(0).permutation(table.y.size)[:5000]
    X = StandardScaler(with_mean=not sp.issparse(table.X)).fit_transform(table.X[rows])
    y, groups = table.y[rows], table.groups[rows]
    for kappa in (0.01, 0.05, 0.3):
        quadratic = AUCFairClassifier(kappa, constraint=metric, surrogate="quadratic", objective="auc")
        scores = quadratic.fit(X, y, sensitive_features=groups).decision_function(X)[:, None]
        (gap,) = quadratic.constraint_values_.values()
        # its gap is that of all positive multiples, so compare with the best of them
        loss = log_loss(y, LogisticRegression(C=np.inf).fit(scores, y).predict_proba(scores))
        general = AUCFairClassifier(gap, constraint=metric, solver="augmented_lagrangian")
        general.fit(X, y, sensitive_features=groups)
        assert general.status_ in ("optimal", "max_iter")
        assert general.objective_ <= (1 + 1e-4) * loss


@pytest.mark.usefixtures("real_folder")
def test_bank_has_no_pile_of_rows_under_the_threshold():
    """Near the threshold, the smaller group has no larger share of rows below it in training than among new rows."""
    table = load_bank_table()
    X = StandardScaler().fit_transform(table.X)
    part = np.random.default_rng(0).random(table.y.size) < 0.7
    smaller = table.groups == "other"
    apart = {}
    for solver in ("auto", "augmented_lagrangian"):
        model = PartialParityClassifier(0.02, constraint="demographic_parity", solver=solver, new_row_folds=None)
        model.fit(X[part], table.y[part], sensitive_features=table.groups[part])
        of_group = map(model.decision_function, (X[part & smaller], X[~part & smaller]))
        near = [scores[np.abs(scores) < 0.2] for scores in of_group]
        shares = [np.mean(scores <= 0) for scores in near]
        apart[solver] = (shares[0] - shares[1]) / np.sqrt(sum(0.25 / scores.size for scores in near))
    assert apart["auto"] < 2 < apart["augmented_lagrangian"]


# on COMPAS the rule takes most of the accuracy, which is what the hint is for
@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.CostlyBoundWarning")
@pytest.mark.parametrize("load", [load_compas_table, load_bank_table], ids=["compas", "bank"])
def test_the_four_fifths_rule_in_training_and_on_new_rows(real_folder, load):
    """The ratio is at least 0.8 in training, and at least 0.8 less two of its standard errors on rows set aside."""
    table = load()
    X, y, groups = StandardScaler().fit_transform(table.X), table.y, table.groups
    half = np.random.default_rng(0).random(len(y)) < 0.5
    model = RateParityClassifier(0.2, constraint="demographic_parity_ratio", new_row_folds=2)
    model.fit(X[half], y[half], sensitive_features=groups[half])
    seen, new = (
        1 - demographic_parity_ratio_gap(y[rows], model.predict(X[rows]), sensitive_features=groups[rows])
        for rows in (half, ~half)
    )
    assert seen >= 0.8
    accepted = [(model.predict(X[half & (groups == group)]) > 0) for group in np.unique(groups)]
    # of a ratio of two shares, to first order
    error = seen * np.sqrt(sum((1 - share.mean()) / share.sum() for share in accepted))
    assert new >= 0.8 - 2 * np.sqrt(2) * error
    free = RateParityClassifier(None).fit(X[half], y[half], sensitive_features=groups[half])
    assert 1 - demographic_parity_ratio_gap(y, free.predict(X), sensitive_features=groups) < 0.75
    assert model.score(X[~half], y[~half]) > free.score(X[~half], y[~half]) - 0.04
