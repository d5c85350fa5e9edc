"""RateParityClassifier: kappa bounds the gap that is measured, of few groups and of many that overlap."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    ConvergenceWarning,
    FairnessWarning,
    LossParityClassifier,
    RateParityClassifier,
)
from fairconstrained.constraints import GroupRates, RateGap
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import CostlyBoundWarning
from fairconstrained.groups import threshold_groups
from fairconstrained.metrics import independence_gap, loss_parity_gap, rate_gap
from fairconstrained.model_selection import get_fairness_scorer

#: What a bound on smooth rates says where that of the decisions is larger, which a test of its own is about.
ignores_decisions = pytest.mark.filterwarnings("ignore:.* probabilities:fairconstrained.FairnessWarning")
CONSTRAINTS = ("demographic_parity", "equal_opportunity", "equalized_odds", "intersectional")


@pytest.fixture(scope="module")
def biased():
    return make_biased_classification(n_samples=1200, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def crowded():
    """Features, labels and 27 groups by thresholds on two columns, which have to do with the labels."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(800, 4)), columns=list("abcd"))
    y = (X.a + 0.7 * X.b + rng.normal(size=800) > 0).astype(int)
    members = threshold_groups(X, ["a", "b"], quantiles=np.linspace(0.3, 0.9, 6), min_share=0.05)
    assert members.shape[1] > 20
    return X, y, members


def gap_of(model, X, y, groups, **options):
    return rate_gap(y, model.decision_function(X), sensitive_features=groups, **options)


@pytest.mark.slow
@ignores_decisions
@pytest.mark.parametrize("rate", ["sigmoid", "hinge", "indicator"])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_kappa_is_kept(biased, constraint, rate):
    X, y, group = biased
    free = RateParityClassifier(None, constraint=constraint, rate=rate).fit(X, y, sensitive_features=group)
    before = gap_of(free, X, y, group, constraint=constraint, rate=rate)
    kappa = max(before / 3, 0.02)
    model = RateParityClassifier(kappa, constraint=constraint, rate=rate).fit(X, y, sensitive_features=group)
    gap = gap_of(model, X, y, group, constraint=constraint, rate=rate)
    assert gap <= kappa + (0.01 if rate == "indicator" else 1.001e-6)
    assert gap > 0.8 * min(kappa, before)  # and no more is given away than it must
    assert model.status_ == "optimal"
    assert model.constraint_values_ == {constraint: pytest.approx(gap)}
    assert model.exact_gaps_ == {constraint: pytest.approx(gap_of(model, X, y, group, constraint=constraint))}
    assert free.constraint_values_ == {constraint: pytest.approx(before)}
    assert free.objective_ <= model.objective_ + 1e-9 < np.log(2)


@pytest.mark.slow
def test_bounds_are_on_decisions_unless_something_else_is_asked_for(biased):
    X, y, group = biased
    model = RateParityClassifier(0.05).fit(X, y, sensitive_features=group)
    decided = independence_gap(y, model.predict(X), sensitive_features=group)
    assert model.rate == "indicator"
    assert model.constraint_values_ == {"demographic_parity": pytest.approx(decided)}
    assert decided <= 0.05 + 1 / np.bincount(group).min()


@pytest.mark.slow
def test_probabilities_whose_decisions_are_apart_are_said(biased):
    X, y, group = biased
    share = 1 / np.bincount(group).min()
    free = RateParityClassifier(None, rate="sigmoid").fit(X, y, sensitive_features=group)  # asks for no bound
    assert free.exact_gaps_["demographic_parity"] > 0.2
    with pytest.warns(FairnessWarning) as caught:
        model = RateParityClassifier(0.06, rate="sigmoid").fit(X, y, sensitive_features=group)
    decided = independence_gap(y, model.predict(X), sensitive_features=group)
    assert decided > 0.06 + share
    (warning,) = caught
    assert str(warning.message) == (
        f"kappa=0.06 bounds demographic_parity of probabilities; of the decisions it is {decided:.4g} on the training "
        "rows. To bound the decisions, set rate='indicator', or rate='selection' of a GroupRates."
    )
    assert warning.filename == __file__
    assert model.status_ == "optimal"
    # where the decisions are within the bound too, up to a row's share, there is nothing to say
    model = RateParityClassifier(0.3, rate="sigmoid").fit(X, y, sensitive_features=np.arange(y.size) % 2)
    assert model.exact_gaps_["demographic_parity"] <= 0.3


@pytest.mark.slow
@ignores_decisions
@pytest.mark.parametrize("kind", ["frame", "sparse"])
@pytest.mark.parametrize("rate", ["sigmoid", "hinge", "indicator"])
def test_many_groups_that_overlap(crowded, rate, kind):
    X, y, members = crowded
    features = members if kind == "frame" else sp.csr_array(members.to_numpy())
    options = {"constraint": "intersectional", "rate": rate}
    free = RateParityClassifier(None, **options).fit(X, y, sensitive_features=features)
    before = gap_of(free, X, y, members, **options)
    kappa = max(before / 2, 0.025)  # which groups of 40 rows can be bounded by
    model = RateParityClassifier(kappa, **options).fit(X, y, sensitive_features=features)
    assert gap_of(model, X, y, members, **options) <= kappa + (0.025 if rate == "indicator" else 1.001e-6)
    assert before > 1.1 * kappa
    assert model.groups_.tolist() == (members.columns.tolist() if kind == "frame" else list(range(members.shape[1])))
    assert model.group_rates_.index.tolist() == model.groups_.tolist()
    assert model.group_rates_.n_samples.tolist() == members.sum().tolist()
    assert model.score(X, y) > 0.6


def test_the_mean_over_groups(crowded):
    X, y, members = crowded
    options = {"constraint": "intersectional", "rate": "hinge", "agg": "mean"}
    free = RateParityClassifier(None, **options).fit(X, y, sensitive_features=members)
    assert gap_of(free, X, y, members, **options) < -0.1  # large values make for clear cases here
    kappa = gap_of(free, X, 1 - y, members, **options) / 2
    model = RateParityClassifier(max(kappa, 0.0), **options).fit(X, y, sensitive_features=members)
    assert gap_of(model, X, y, members, **options) <= max(kappa, 0.0) + 1e-6
    assert len(model.multipliers_) <= 1


@pytest.mark.slow
def test_several_constraints_with_bounds_of_their_own(biased):
    X, y, group = biased
    names = ["demographic_parity", "equal_opportunity"]
    pairs = [(name, RateGap(kappa, constraint=name)) for name, kappa in zip(names, [0.05, 0.1], strict=True)]
    model = RateParityClassifier(constraint=pairs).fit(X, y, sensitive_features=group)
    assert list(model.constraint_values_) == names
    share, share_of_positives = (1 / np.bincount(group[rows]).min() for rows in (y >= 0, y == 1))
    assert model.constraint_values_["demographic_parity"] <= 0.05 + share
    assert model.constraint_values_["equal_opportunity"] <= 0.1 + share_of_positives
    assert set(model.group_rates_) == set(names)
    same = clone(model).set_params(constraint__equal_opportunity__kappa=0.05).fit(X, y, sensitive_features=group)
    assert max(same.constraint_values_.values()) <= 0.05 + share_of_positives


def test_decisions_are_bounded_where_the_labels_are_separable():
    """With more features than rows no score is near the threshold, and hardly any row needs another decision."""
    rng, groups = np.random.default_rng(0), np.arange(120) % 2
    X, y = rng.normal(size=(120, 200)), rng.random(120) < np.where(groups, 0.7, 0.4)
    model = RateParityClassifier(0.02, constraint="intersectional").fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"
    assert model.score(X, y) > 0.87  # where the scores are only shifted, 0.76


@pytest.mark.slow
def test_accuracy_is_not_given_away_for_the_exact_rates(biased):
    X, y, group = biased
    options = {"rate": "indicator", "kappa": 0.03}
    logistic = RateParityClassifier(**options).fit(X, y, sensitive_features=group)
    counted = RateParityClassifier(**options, objective="zero_one").fit(X, y, sensitive_features=group)
    assert max(counted.constraint_values_.values()) <= 0.03 + 0.01
    assert counted.score(X, y) >= logistic.score(X, y) - 0.005


@pytest.mark.slow
@ignores_decisions
@pytest.mark.parametrize("rate", ["sigmoid", "indicator"])
def test_networks(biased, rate):
    X, y, group = biased
    model = RateParityClassifier(0.03, rate=rate, hidden_layer_sizes=(8,), random_state=0)
    model.fit(X, y, sensitive_features=group)
    assert gap_of(model, X, y, group, rate=rate) <= 0.03 + (0.01 if rate == "indicator" else 1e-6)
    assert model.status_ == "completed"
    assert model.score(X, y) > max(y.mean(), 1 - y.mean()) + 0.1


@pytest.mark.slow
@ignores_decisions
def test_a_network_with_many_groups_does_not_collapse(crowded):
    """Groups that say about the same push together; the sum of their multipliers must not grow with their number."""
    X, y, members = crowded
    options = {"constraint": "intersectional", "rate": "sigmoid"}
    model = RateParityClassifier(0.2, **options, hidden_layer_sizes=(8, 8), random_state=0)
    model.fit(X, y, sensitive_features=members)
    linear = RateParityClassifier(0.2, **options).fit(X, y, sensitive_features=members)
    assert gap_of(model, X, y, members, **options) <= 0.2 + 1.001e-6
    assert model.objective_ < linear.objective_ + 0.05


@ignores_decisions
@pytest.mark.parametrize("solver", ["plada", "ssg", "ipp_ssg", "ipp_conex", "multiplier_model", "proxy_lagrangian"])
def test_other_solvers_report_the_gap(biased, solver):
    X, y, group = biased
    options = {
        "plada": {"max_epochs": 10, "learning_rate": 0.1},
        "ssg": {"max_iter": 200},
        "ipp_ssg": {"max_iter": 5},
        "ipp_conex": {"max_iter": 5},
        "multiplier_model": {"max_epochs": 5, "learning_rate": 0.05},
        "proxy_lagrangian": {"max_iter": 100},
    }[solver]
    model = RateParityClassifier(0.001, rate="sigmoid", solver=solver, solver_options=options, random_state=0)
    if solver in ("proxy_lagrangian", "ssg", "ipp_ssg"):  # these choose among iterates
        model.fit(X, y, sensitive_features=group)
    else:
        with pytest.warns(ConvergenceWarning, match="exceeds kappa=0.001"):
            model.fit(X, y, sensitive_features=group)
        assert model.status_ == "infeasible"
    assert model.constraint_values_ == {"demographic_parity": pytest.approx(gap_of(model, X, y, group, rate="sigmoid"))}
    assert model.score(X, y) > 0.5


@pytest.mark.slow
def test_losses_of_groups_that_overlap(crowded):
    X, y, members = crowded
    model = LossParityClassifier(0.1, hidden_layer_sizes=(4,), reference="overall", max_epochs=5, random_state=0)
    model.fit(X, y, sensitive_features=members)
    scores = model.decision_function(X)
    gap = loss_parity_gap(y, scores, sensitive_features=members, reference="overall")
    assert gap <= 0.1 + 1e-6
    assert model.constraint_values_ == {"loss_parity": pytest.approx(gap)}
    assert model.group_losses_.index.tolist() == members.columns.tolist()
    with pytest.raises(ValueError, match="partial_fit takes no overlapping groups"):
        LossParityClassifier(0.1).partial_fit(X, y, classes=[0, 1], sensitive_features=members)
    early = LossParityClassifier(0.1, hidden_layer_sizes=(4,), max_epochs=3, early_stopping=True, random_state=0)
    early.fit(X, y, sensitive_features=members)
    assert early.groups_.size == members.shape[1]


@pytest.mark.slow
def test_in_a_search(biased):
    X, y, group = biased
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), RateParityClassifier(rate="indicator")),
            {"rateparityclassifier__kappa": [0.05, 0.2]},
            scoring={"gap": get_fairness_scorer("neg_rate_gap"), "accuracy": "accuracy"},
            refit="accuracy",
            cv=2,
        ).fit(X, y, sensitive_features=group)
    gaps = -search.cv_results_["mean_test_gap"]
    assert gaps[0] < gaps[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kappa": [0.1, 0.2]}, "'kappa' parameter"),
        ({"constraint": "parity"}, "constraint must be one of"),
        ({"constraint": ["parity"]}, "constraint must be one of"),
        ({"kappa": 1.5}, "kappa must be in [0, 1]"),
        ({"rate": "step"}, "'rate' parameter"),
        ({"agg": "mean"}, "agg='mean' is for constraint='intersectional' with rate='hinge'"),
        ({"agg": "mean", "rate": "indicator"}, "agg='mean' is for constraint='intersectional' with rate='hinge'"),
        ({"objective": "auc"}, "'objective' parameter"),
    ],
)
def test_bad_parameters(biased, options, message):
    X, y, group = biased
    with pytest.raises(ValueError, match=re.escape(message)):
        RateParityClassifier(**options).fit(X, y, sensitive_features=group)


def test_bad_groups(crowded):
    X, y, members = crowded
    with pytest.raises(ValueError, match=r"groups \['empty'\] of sensitive_features have no rows"):
        RateParityClassifier().fit(X, y, sensitive_features=members.assign(empty=False))
    with pytest.raises(ValueError, match="sensitive_features has 799 rows in place of 800"):
        RateParityClassifier().fit(X, y, sensitive_features=members.iloc[1:])
    with pytest.raises(ValueError, match="group_interactions=True needs groups that do not overlap"):
        RateParityClassifier(group_interactions=True).fit(X, y, sensitive_features=members)
    weights = 1.0 - members.iloc[:, 3]
    with pytest.raises(ValueError, match="have no row with a positive sample_weight"):
        RateParityClassifier().fit(X, y, sensitive_features=members, sample_weight=weights)
    with pytest.raises(ValueError, match="fewer than min_group_size=300 rows"):
        RateParityClassifier(min_group_size=300).fit(X, y, sensitive_features=members)


@pytest.mark.parametrize(
    ("rate", "rule", "kappa"), [("selection_rate", "floor", 0.6), ("false_positive_rate", "ceiling", 0.02)]
)
def test_a_single_group_has_a_limit_of_its_own(biased, rate, rule, kappa):
    X, y, _ = biased
    limit, groups = GroupRates(rate, rule=rule, kappa=kappa), np.full(y.size, "all")
    free = RateParityClassifier(constraint=clone(limit).set_params(kappa=None)).fit(X, y, sensitive_features=groups)
    sign = 1 if rule == "floor" else -1
    (unbounded,) = free.constraint_values_.values()
    assert sign * unbounded < sign * kappa - 0.02
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CostlyBoundWarning)
        model = RateParityClassifier(constraint=[("limit", limit)]).fit(X, y, sensitive_features=groups)
    rows = y == 0 if rate == "false_positive_rate" else np.ones(y.size, dtype=bool)
    assert model.status_ == "optimal"
    assert sign * model.predict(X)[rows].mean() >= sign * kappa - 1 / rows.sum()
    assert model.constraint_values(X, y, sensitive_features=groups) == model.constraint_values_
    with pytest.warns(FairnessWarning, match="nothing to compare: sensitive_features was not given"):
        assert RateParityClassifier(constraint=limit).fit(X, y).status_ == "unconstrained"


def test_one_group_holds_vacuously(biased):
    X, y, _ = biased
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        model = RateParityClassifier().fit(X, y)
    assert model.constraint_values_ == {}
    assert model.groups_.size == 0
