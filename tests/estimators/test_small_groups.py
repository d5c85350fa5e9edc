"""Groups that are too small for a bound: an error, merged, or ignored; and bounds that compare nothing."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from fairconstrained import (
    AUCFairClassifier,
    FairnessWarning,
    FairRanker,
    LossParityClassifier,
    ParityPairClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
)
from fairconstrained.constraints import DemographicParity, GroupAUC, RateGap
from fairconstrained.groups import MERGED
from fairconstrained.metrics import (
    inter_group_auc_gap,
    loss_parity_gap,
    partial_demographic_parity_gap,
    partial_statistical_parity_gap,
    rate_gap,
)
from tests.estimators.conftest import Sample

KAPPA = 0.1
#: Rows of every group; with KAPPA, those of the last three are too few, and all three together are enough.
SIZES = {"a": 200, "b": 180, "c": 8, "d": 9, "e": 9}
SMALL = ["c", "d", "e"]


def draw(sizes=SIZES, seed=0):
    """Rows in random order, every group with as many of both labels, and features that tell groups apart."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(list(sizes), list(sizes.values()))
    y = np.concatenate([np.arange(size) % 2 for size in sizes.values()])
    shift = np.repeat(np.arange(len(sizes)) % 3, list(sizes.values()))
    X = rng.normal(size=(y.size, 3)) + 0.8 * y[:, None] + 0.9 * shift[:, None]
    order = rng.permutation(y.size)
    return Sample(X[order], y[order], groups[order])


@pytest.fixture(scope="module")
def sample():
    return draw()


#: An estimator, the name of what it bounds, and the metric.
MODELS = {
    "statistical_parity": (PartialParityClassifier(KAPPA), "statistical_parity", partial_statistical_parity_gap),
    "demographic_parity": (
        PartialParityClassifier(KAPPA, constraint="demographic_parity"),
        "demographic_parity",
        partial_demographic_parity_gap,
    ),
    "regressor": (PartialParityRegressor(KAPPA), "statistical_parity", partial_statistical_parity_gap),
    "auc": (AUCFairClassifier(KAPPA), "inter_group", inter_group_auc_gap),
    "rate": (RateParityClassifier(KAPPA), "demographic_parity", rate_gap),
    "loss": (
        LossParityClassifier(KAPPA, hidden_layer_sizes=(3,), max_epochs=20, random_state=0),
        "loss_parity",
        loss_parity_gap,
    ),
}
each_model = pytest.mark.parametrize(("model", "name", "metric"), MODELS.values(), ids=MODELS)


def fitted(model, sample, **params):
    return clone(model).set_params(**params).fit(sample.X, sample.y, sensitive_features=sample.groups)


def scores_of(model, X, **groups):
    return (model.predict if isinstance(model, PartialParityRegressor) else model.decision_function)(X, **groups)


def merged(groups):
    return np.where(np.isin(groups, SMALL), MERGED, groups)


# --- error, merge, ignore


@each_model
def test_small_groups_are_an_error_unless_said_otherwise(model, name, metric, sample):
    broken = clone(model)
    with pytest.raises(ValueError, match=rf"{name} with kappa=0.1 .* at least 10 rows .*fewer rows: \{{'c") as raised:
        broken.fit(sample.X, sample.y, sensitive_features=sample.groups)
    assert "set small_groups='merge' or 'ignore'" in str(raised.value)
    for small in SMALL:
        assert f"'{small}" in str(raised.value)
    for large in ("a", "b"):
        assert f"'{large}" not in str(raised.value).split("fewer rows")[1]
    assert vars(broken) == vars(clone(model))


def test_a_merged_group_that_is_still_too_small_is_not_to_be_merged_again():
    few = draw({"a": 200, "c": 3})
    model = PartialParityClassifier(kappa=KAPPA, small_groups="merge")
    with pytest.raises(ValueError, match=r"\(small groups\)': 3\}. Pass more rows, or raise kappa"):
        model.fit(few.X, few.y, sensitive_features=few.groups)


@pytest.mark.slow
@each_model
def test_merged_groups_are_one_group(model, name, metric, sample):
    model = fitted(model, sample, small_groups="merge")
    gap = metric(sample.y, scores_of(model, sample.X), sensitive_features=merged(sample.groups))
    assert model.constraint_values_ == {name: pytest.approx(gap)}
    assert gap <= KAPPA + model.granularity_[name] <= 2 * KAPPA
    assert model.status_ in ("optimal", "completed")
    assert model.ignored_groups_ == []
    assert model.constraint_values_all_groups_ == model.constraint_values_
    new = draw(seed=1)
    gap = metric(new.y, scores_of(model, new.X), sensitive_features=merged(new.groups))
    assert model.constraint_values(new.X, new.y, sensitive_features=new.groups) == {name: pytest.approx(gap)}
    assert model.constraint_values(sample.X, sample.y, sensitive_features=sample.groups) == pytest.approx(
        model.constraint_values_
    )


@pytest.mark.slow
@each_model
def test_small_groups_that_are_too_small_together_are_joined_by_the_next_one(model, name, metric):
    sample = draw({"a": 200, "b": 180, "c": 60, "d": 8})
    model = fitted(model, sample, small_groups="merge")
    together = np.where(np.isin(sample.groups, ["c", "d"]), MERGED, sample.groups)
    gap = metric(sample.y, scores_of(model, sample.X), sensitive_features=together)
    assert model.constraint_values_[name] == pytest.approx(gap)


@pytest.mark.parametrize("small_groups", ["merge", "ignore"])
def test_parity_pairs_have_small_groups_too(sample, small_groups):
    model = fitted(ParityPairClassifier(1.1, rate="indicator"), sample, small_groups=small_groups)
    assert model.constraint_values_["parity_pair"] <= 1.1 + model.granularity_["parity_pair"]
    assert model.ignored_groups_ == (SMALL if small_groups == "ignore" else [])


@each_model
def test_ignored_groups_are_not_compared(model, name, metric, sample):
    model = fitted(model, sample, small_groups="ignore")
    scores, kept = scores_of(model, sample.X), ~np.isin(sample.groups, SMALL)
    gap = metric(sample.y[kept], scores[kept], sensitive_features=sample.groups[kept])
    assert model.constraint_values_ == {name: pytest.approx(gap)}
    assert gap <= KAPPA + model.granularity_[name]
    assert model.status_ in ("optimal", "completed")
    assert model.ignored_groups_ == SMALL
    over_all = metric(sample.y, scores, sensitive_features=sample.groups)
    assert model.constraint_values_all_groups_ == {name: pytest.approx(over_all)}
    assert over_all > gap
    assert model.constraint_values(sample.X, sample.y, sensitive_features=sample.groups) == pytest.approx(
        model.constraint_values_
    )
    new = draw(seed=1)
    kept = ~np.isin(new.groups, SMALL)
    gap = metric(new.y[kept], scores_of(model, new.X)[kept], sensitive_features=new.groups[kept])
    assert model.constraint_values(new.X, new.y, sensitive_features=new.groups) == {name: pytest.approx(gap)}


@pytest.mark.slow
@each_model
def test_large_groups_are_left_as_they_are(model, name, metric):
    sample = draw({"a": 120, "b": 100})
    plain = fitted(model, sample)
    assert plain.ignored_groups_ == []
    for small_groups in ("merge", "ignore"):
        other = fitted(model, sample, small_groups=small_groups)
        np.testing.assert_array_equal(scores_of(other, sample.X), scores_of(plain, sample.X))
        assert other.groups_.tolist() == ["a", "b"]


@pytest.mark.slow
@each_model
def test_clone_and_pickle(model, name, metric, sample):
    model = fitted(model, sample, small_groups="merge")
    assert clone(model).small_groups == "merge"
    with pytest.raises(NotFittedError):
        clone(model).predict(sample.X)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(sample.X), model.predict(sample.X))
    rows = {"sensitive_features": sample.groups}
    assert loaded.constraint_values(sample.X, sample.y, **rows) == model.constraint_values(sample.X, sample.y, **rows)


@pytest.mark.slow
def test_ignored_rows_are_learnt_from(sample):
    kept = ~np.isin(sample.groups, SMALL)
    all_rows = fitted(MODELS["statistical_parity"][0], sample, small_groups="ignore")
    without = fitted(MODELS["statistical_parity"][0], Sample(*(column[kept] for column in sample)))
    assert np.abs(all_rows.coef_ - without.coef_).max() > 1e-3
    assert all_rows.n_features_in_ == 3


def test_small_groups_is_checked(sample):
    for model, *_ in MODELS.values():
        with pytest.raises(ValueError, match=r"'small_groups' parameter .* must be a str among .*'merge'.* Got 'drop'"):
            fitted(model, sample, small_groups="drop")


@pytest.mark.slow
def test_a_size_of_the_users_own_is_not_the_rule_where_means_are_met_exactly(sample):
    model = fitted(MODELS["loss"][0], sample, min_group_size=9, small_groups="ignore")
    assert model.ignored_groups_ == ["c"]
    model = fitted(MODELS["loss"][0], sample, min_group_size=1)
    assert model.ignored_groups_ == []
    # of decisions, a row's share is the least step, whatever the user says
    model = fitted(MODELS["rate"][0], sample, min_group_size=1, small_groups="ignore")
    assert model.ignored_groups_ == SMALL


# --- what groups are called


@pytest.mark.slow
def test_labels_keep_their_types(sample):
    numbers = np.select([sample.groups == g for g in SIZES], [10, 20, 30, 40, 50])
    model = PartialParityClassifier(KAPPA, small_groups="merge").fit(sample.X, sample.y, sensitive_features=numbers)
    assert model.groups_.tolist() == [10, 20, MERGED]
    assert model.groups_.dtype == object
    table = pd.DataFrame({"sex": np.where(numbers == 10, "f", "m"), "code": numbers})
    model.set_params(small_groups="ignore").fit(sample.X, sample.y, sensitive_features=table)
    assert model.groups_.tolist() == [("f", 10), ("m", 20), ("m", 30), ("m", 40), ("m", 50)]
    assert model.ignored_groups_ == [("m", 30), ("m", 40), ("m", 50)]


@pytest.mark.slow
@pytest.mark.parametrize("spec", [{}, {"hidden_layer_sizes": (3,), "random_state": 0}], ids=["linear", "network"])
def test_models_of_merged_groups_are_asked_for_by_the_groups_own_labels(sample, spec):
    model = PartialParityClassifier(KAPPA, group_interactions=True, small_groups="merge", **spec)
    model.fit(sample.X, sample.y, sensitive_features=sample.groups)
    assert model.groups_.tolist() == ["a", "b", MERGED]
    scores = model.decision_function(sample.X, sensitive_features=sample.groups)
    gap = partial_statistical_parity_gap(sample.y, scores, sensitive_features=merged(sample.groups))
    assert model.constraint_values_ == {"statistical_parity": pytest.approx(gap)}
    if not spec:
        assert model.coef_.shape == (3, 3)
        heads = {"a": 0, "b": 1, "c": 2, "d": 2, "e": 2}
        own = np.array([heads[g] for g in sample.groups])
        expected = (sample.X * model.coef_[own]).sum(axis=1) + model.intercept_[own]
        np.testing.assert_allclose(scores, expected)
    one = model.decision_function(sample.X, sensitive_features=np.full(sample.y.size, "c"))
    other = model.decision_function(sample.X, sensitive_features=np.full(sample.y.size, "e"))
    np.testing.assert_array_equal(one, other)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.decision_function(sample.X, sensitive_features=sample.groups), scores)
    with pytest.raises(ValueError, match=r"groups that were not seen in fit: \['f'\]"):
        model.predict(sample.X[:1], sensitive_features=["f"])


def test_models_of_ignored_groups_are_their_own(sample):
    model = PartialParityClassifier(KAPPA, group_interactions=True, small_groups="ignore", alpha=0.1)
    model.fit(sample.X, sample.y, sensitive_features=sample.groups)
    assert model.groups_.tolist() == list(SIZES)
    assert model.coef_.shape == (5, 3)
    scores = model.decision_function(sample.X, sensitive_features=sample.groups)
    kept = ~np.isin(sample.groups, SMALL)
    gap = partial_statistical_parity_gap(None, scores[kept], sensitive_features=sample.groups[kept])
    assert model.constraint_values_ == {"statistical_parity": pytest.approx(gap)}
    assert model.score(sample.X[~kept], sample.y[~kept], sensitive_features=sample.groups[~kept]) > 0.5


@pytest.mark.slow
def test_groups_are_small_if_one_of_the_constraints_says_so(sample):
    constraints = [("coarse", DemographicParity(0.5)), ("fine", GroupAUC(0.115))]
    model = PartialParityClassifier(constraint=constraints, small_groups="ignore")
    model.fit(sample.X, sample.y, sensitive_features=sample.groups)
    assert model.ignored_groups_ == ["c"]
    assert list(model.constraint_values_) == list(model.constraint_values_all_groups_) == ["coarse", "fine"]
    assert model.constraint_values_all_groups_["fine"] > model.constraint_values_["fine"]


def test_rates_have_small_groups_of_their_own():
    """Group c has enough rows and two positives: its rate is compared, its true positive rate is not."""
    sample = draw({"a": 200, "b": 180, "c": 40})
    y = sample.y.copy()
    y[np.flatnonzero((sample.groups == "c") & (y == 1))[2:]] = 0
    sample = sample._replace(y=y)
    names = ["demographic_parity", "equal_opportunity"]
    kappas = dict(zip(names, [KAPPA, 0.2], strict=True))
    pairs = [(name, RateGap(kappa, constraint=name, small_groups="ignore")) for name, kappa in kappas.items()]
    model = fitted(RateParityClassifier(constraint=pairs), sample)
    scores = model.decision_function(sample.X)
    kept = sample.groups != "c"
    both = rate_gap(sample.y[kept], scores[kept], sensitive_features=sample.groups[kept], constraint=names[1])
    assert model.constraint_values_ == {
        names[0]: pytest.approx(rate_gap(sample.y, scores, sensitive_features=sample.groups, constraint=names[0])),
        names[1]: pytest.approx(both),
    }


def test_rates_of_decisions_compare_merged_groups_as_one(sample):
    model = fitted(RateParityClassifier(KAPPA, rate="indicator"), sample, small_groups="merge")
    predicted = model.predict(sample.X)
    rates = [predicted[merged(sample.groups) == group].mean() for group in ("a", "b", MERGED)]
    assert model.constraint_values_ == {"demographic_parity": pytest.approx(np.ptp(rates))}
    assert model.groups_.tolist() == ["a", "b", "c", "d", "e"]


def test_a_group_that_has_the_name_of_merged_ones_is_one_of_them(sample):
    named = sample._replace(groups=np.where(sample.groups == "b", MERGED, sample.groups))
    model = fitted(RateParityClassifier(KAPPA, rate="indicator"), named, small_groups="merge")
    predicted = model.predict(named.X)
    rates = [predicted[merged(named.groups) == group].mean() for group in ("a", MERGED)]
    assert model.constraint_values_ == {"demographic_parity": pytest.approx(np.ptp(rates))}
    assert model.constraint_values(named.X, named.y, sensitive_features=named.groups) == model.constraint_values_


def test_predictions_for_a_group_that_has_the_name_of_merged_ones(sample):
    named = sample._replace(groups=np.where(sample.groups == "b", MERGED, sample.groups))
    model = PartialParityClassifier(KAPPA, constraint="demographic_parity", group_interactions=True, tol=0.05)
    model = fitted(model, named, small_groups="merge")
    assert set(model.groups_) == {"a", MERGED}
    of_small = model.predict(named.X, sensitive_features=np.full(named.y.size, SMALL[0]))
    np.testing.assert_array_equal(model.predict(named.X, sensitive_features=np.full(named.y.size, MERGED)), of_small)


@pytest.mark.slow
def test_labels_count_where_they_are_compared():
    sample = draw({"a": 200, "b": 180, "c": 30})
    few = np.flatnonzero((sample.groups == "c") & (sample.y == 1))[2:]
    y = sample.y.copy()
    y[few] = 0  # two positives are left in group c
    for model, *_ in (MODELS["statistical_parity"], MODELS["rate"]):
        assert fitted(model, sample._replace(y=y), small_groups="ignore").ignored_groups_ == []
    options = {"small_groups": "ignore"}
    for model in (
        PartialParityClassifier(KAPPA, constraint="equal_opportunity", **options),
        AUCFairClassifier(KAPPA, **options),
        RateParityClassifier(KAPPA, constraint="equalized_odds", **options),
        LossParityClassifier(KAPPA, constraint="equalized_odds", hidden_layer_sizes=(2,), max_epochs=3, **options),
    ):
        assert fitted(model, sample._replace(y=y)).ignored_groups_ == ["c"]
    y[sample.groups == "c"] = 0
    model = fitted(AUCFairClassifier(KAPPA, **options), sample._replace(y=y))
    assert model.constraint_values_["inter_group"] <= 2 * KAPPA
    assert np.isnan(model.constraint_values_all_groups_["inter_group"])  # it has no positives to rank


def test_a_gap_over_all_groups_is_undefined_where_an_ignored_one_lacks_a_label():
    sample = draw({"a": 100, "b": 90, "c": 30})
    model = RateParityClassifier(KAPPA, constraint="equal_opportunity", small_groups="ignore")
    model = fitted(model, sample._replace(y=np.where(sample.groups == "c", 0, sample.y)))
    assert model.ignored_groups_ == ["c"]
    assert model.constraint_values_["equal_opportunity"] <= 2 * KAPPA
    assert np.isnan(model.constraint_values_all_groups_["equal_opportunity"])


# --- what is too little all the same


def test_merged_groups_that_are_still_too_small_are_an_error():
    sample = draw({"a": 200, "c": 3, "d": 4})
    for model in (PartialParityClassifier(KAPPA), RateParityClassifier(KAPPA)):
        with pytest.raises(ValueError, match=r"\{'\(small groups\)': 7\}"):
            fitted(model, sample, small_groups="merge")


@each_model
def test_what_leaves_nothing_to_compare_is_said(model, name, metric):
    sample = draw({"a": 200, "c": 8, "d": 9})
    free = clone(model).set_params(kappa=None).fit(sample.X, sample.y)
    message = r"small_groups='ignore' leaves fewer than two groups to compare \(it left out \['c', 'd'\]\), so nothing"
    with pytest.warns(FairnessWarning, match=message) as caught:
        model = fitted(model, sample, small_groups="ignore")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.status_ == "unconstrained"
    assert model.constraint_values_ == model.granularity_ == {}
    assert model.violation_ == 0
    assert model.ignored_groups_ == ["c", "d"]
    gap = metric(sample.y, scores_of(model, sample.X), sensitive_features=sample.groups)
    assert model.constraint_values_all_groups_ == {name: pytest.approx(gap)}
    np.testing.assert_allclose(scores_of(model, sample.X), scores_of(free, sample.X), atol=1e-4)
    assert model.constraint_values(sample.X, sample.y, sensitive_features=sample.groups) == {}
    assert free.status_ in ("optimal", "completed")  # no bound was asked for


def test_many_ignored_groups_are_not_all_listed():
    sample = draw({"a": 200} | {f"g{k:02}": 4 for k in range(15)})
    with pytest.warns(FairnessWarning, match=r"left out \['g00', 'g01', .*'g09'\D") as caught:
        model = fitted(PartialParityClassifier(KAPPA), sample, small_groups="ignore")
    assert "g10" not in str(caught[0].message)
    assert len(model.ignored_groups_) == 15
    with pytest.raises(ValueError, match="and 5 more") as raised:
        fitted(PartialParityClassifier(KAPPA), sample)
    assert "g10" not in str(raised.value)


def test_all_groups_merged_are_one_group():
    sample = draw({"c": 8, "d": 9})
    with pytest.warns(FairnessWarning, match=r"small_groups='merge' leaves a single group \(it put \['c', 'd'\]"):
        model = fitted(PartialParityClassifier(KAPPA), sample, small_groups="merge")
    assert model.status_ == "unconstrained"
    assert model.groups_.tolist() == [MERGED]


@each_model
def test_no_groups_are_nothing_to_compare(model, name, metric, sample):
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        model = clone(model).fit(sample.X, sample.y)
    assert model.status_ == "unconstrained"
    assert model.constraint_values_ == model.constraint_values_all_groups_ == {}
    assert model.ignored_groups_ == []


@pytest.mark.parametrize("estimator", [PartialParityClassifier, PartialParityRegressor, RateParityClassifier])
def test_an_empty_list_of_constraints_bounds_nothing(estimator, sample):
    model = estimator(constraint=[])
    with pytest.warns(FairnessWarning, match=r"constraint=\[\] names no constraint, so nothing is bounded"):
        model.fit(sample.X, sample.y, sensitive_features=sample.groups)
    assert model.status_ == "unconstrained"
    assert model.constraint_values_ == {}
    plain = estimator(None).fit(sample.X, sample.y, sensitive_features=sample.groups)
    assert plain.status_ == "optimal"
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)


# --- the hostile cases


@pytest.fixture(scope="module")
def lopsided():
    """A group of which all rows but one are positive."""
    rng = np.random.default_rng(0)
    groups = np.arange(1000) % 10 // 9
    X = rng.normal(size=(1000, 4)) + groups[:, None]
    y = (X[:, 0] + rng.normal(size=1000) > 0.8).astype(int)
    y[groups == 1] = 1
    y[9] = 0
    return Sample(X, y, groups)


def test_cells_are_named_as_the_user_names_classes(lopsided):
    X, y, groups = lopsided
    of_two = np.where(y == 1, "good", "bad")
    with pytest.raises(ValueError, match=r"fewer rows: \{'1, y=bad': 1\}"):
        AUCFairClassifier(0.05).fit(X, of_two, sensitive_features=groups)
    of_three = np.where(np.arange(y.size) % 3 == 1, "poor", of_two)
    with pytest.raises(ValueError, match=r"fewer rows: \{'1, y=bad': 1\}"):
        RateParityClassifier(0.05, constraint="equal_opportunity").fit(X, of_three, sensitive_features=groups)


@pytest.mark.parametrize(
    "model",
    [
        RateParityClassifier(0.05, constraint="equalized_odds"),
        PartialParityClassifier(0.0, constraint="equalized_odds"),
        LossParityClassifier(0.05, constraint="equalized_odds"),
        AUCFairClassifier(0.05),
    ],
    ids=lambda model: type(model).__name__,
)
def test_one_row_is_no_cell_to_bound(lopsided, model):
    with pytest.raises(ValueError, match=r"fewer rows: \{'1, y=0': 1\}. Pass more rows"):
        fitted(model, lopsided)
    with pytest.raises(ValueError, match=r"'(1|\(small groups\)), y=0': 1\}"):
        fitted(model, lopsided, small_groups="merge")  # there is no other group to merge it with
    with pytest.warns(FairnessWarning, match=r"leaves fewer than two groups .*was fitted. Pass more rows, or raise"):
        ignoring = fitted(model, lopsided, small_groups="ignore")
    assert ignoring.status_ == "unconstrained"
    (value,) = ignoring.constraint_values_all_groups_.values()
    assert value > 0.1  # the gap that nobody bounded is told


@each_model
def test_one_heavy_row_is_no_group_to_bound(model, name, metric):
    sample = draw({"a": 200, "b": 180})
    weights = np.ones(380)
    heavy = np.flatnonzero(sample.groups == "a")[0]
    weights[heavy] = 1e5
    model = clone(model)
    with pytest.raises(ValueError, match=r"\{'a[^']*': \d+ \(effectively 1\)\}"):
        model.fit(sample.X, sample.y, sensitive_features=sample.groups, sample_weight=weights)
    assert not hasattr(model, "status_")


# --- rankers


@pytest.fixture(scope="module")
def documents():
    """Sixty queries of ten documents, of which a group has six in all."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(60), 10)
    group = rng.choice(["a", "b"], 600)
    group[::100] = "c"
    X = rng.normal(size=(600, 3)) + (group == "b")[:, None]
    y = (X[:, 0] - (group == "b") + rng.normal(size=600) > 0).astype(int)
    return X, y, qid, group


@pytest.mark.slow
def test_kinds_of_pairs_that_are_few(documents):
    X, y, qid, group = documents
    rows = {"qid": qid, "sensitive_features": group}
    with pytest.raises(ValueError, match=r"pairwise_ranking .*fewer rows: \{.*'. > c': \d"):
        FairRanker(0.02).fit(X, y, **rows)
    model = FairRanker(0.02, small_groups="ignore").fit(X, y, **rows)
    assert set(model.ignored_groups_) == {"a > c", "b > c", "c > a", "c > b"}
    accuracies = model.pair_accuracies_.accuracy
    gap = abs(accuracies["a", "b"] - accuracies["b", "a"])
    assert model.constraint_values_ == {"pairwise_ranking": pytest.approx(gap)}
    assert gap <= 0.02 + model.granularity_["pairwise_ranking"]
    between = accuracies[[a != b for a, b in accuracies.index]]
    assert model.constraint_values_all_groups_ == {"pairwise_ranking": pytest.approx(np.ptp(between))}
    assert model.constraint_values(X, y, **rows) == pytest.approx(model.constraint_values_)


@pytest.mark.slow
def test_kinds_of_pairs_are_merged(documents):
    X, y, qid, group = documents
    model = FairRanker(0.1, small_groups="merge").fit(X, y, qid=qid, sensitive_features=group)
    table = model.pair_accuracies_
    small = [("a", "c"), ("b", "c"), ("c", "b")]
    together = np.average(table.accuracy[small], weights=table.n_pairs[small])
    kept = table.accuracy[[("a", "b"), ("b", "a"), ("c", "a")]]
    assert model.constraint_values_ == {"pairwise_ranking": pytest.approx(np.ptp([together, *kept]))}
    assert model.status_ == "optimal"
    assert model.groups_.tolist() == ["a", "b", "c"]


def test_a_ranker_of_one_group_bounds_nothing(documents):
    X, y, qid, group = documents
    with pytest.warns(FairnessWarning, match="leaves fewer than two groups to compare"):
        model = FairRanker(0.02, small_groups="ignore").fit(X, y, qid=qid, sensitive_features=group == "c")
    assert model.status_ == "unconstrained"
    assert model.constraint_values_ == {}
    assert model.constraint_values_all_groups_["pairwise_ranking"] >= 0


def test_a_cell_without_rows_is_said_to_have_no_rate():
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    with pytest.raises(
        ValueError, match=r"no rows, or none with a label that is compared.* as demographic_parity does"
    ):
        RateParityClassifier(0.1, constraint="equalized_odds").fit(X, y, sensitive_features=y)


def test_labels_of_ignored_groups_are_as_given():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], [300, 290, 10])
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + groups + rng.normal(size=600) > 0.5).astype(int)
    model = RateParityClassifier(small_groups="ignore", new_row_folds=None).fit(X, y, sensitive_features=groups)
    assert model.ignored_groups_ == [2]
    assert np.isin(groups, model.ignored_groups_).sum() == 10


def test_groups_of_the_same_text_are_two_groups():
    rng = np.random.default_rng(0)
    groups = np.array([0, "0", 1, "1"] * 100, dtype=object)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    with pytest.warns(FairnessWarning, match=r"type alone, .*: \[0, '0'\], \[1, '1'\]. Write them alike"):
        model = PartialParityClassifier(0.3, new_row_folds=None).fit(X, y, sensitive_features=groups)
    assert len(model.groups_) == 4
    gap = partial_statistical_parity_gap(y, model.decision_function(X), sensitive_features=groups)
    assert model.constraint_values_["statistical_parity"] == pytest.approx(gap)
