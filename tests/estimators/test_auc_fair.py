"""AUCFairClassifier: kappa is met by the exact gap, streams are batches, and it is an estimator like all others."""

import pickle
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from fairconstrained import AUCFairClassifier, FairnessWarning
from fairconstrained.constraints import AUCGap
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.estimators._held_out import HeldOut
from fairconstrained.exceptions import ConvergenceWarning, IncompatibleProblem
from fairconstrained.metrics import (
    bpsn_bnsp_gap,
    group_auc_gap,
    inter_group_auc_gap,
    intra_group_auc_gap,
    negative_equality_gap,
    positive_equality_gap,
    subset_auc_gap,
)
from fairconstrained.models import LinearModel
from fairconstrained.objectives import PairwiseAUC
from fairconstrained.problem import Problem
from fairconstrained.solvers import make_solver
from fairconstrained.views import FullBatch

METRICS = {
    "group_auc": group_auc_gap,
    "inter_group": inter_group_auc_gap,
    "intra_group": intra_group_auc_gap,
    "positive_equality": positive_equality_gap,
    "negative_equality": negative_equality_gap,
    "bpsn_bnsp": bpsn_bnsp_gap,
}
QUADRATIC = {"surrogate": "quadratic", "objective": "auc"}


def classifier(**options):
    return AUCFairClassifier(**{"kappa": 0.03, **options})


def stream(**options):
    return AUCFairClassifier(**{"kappa": 0.3, **QUADRATIC, **options})


def fit(model, sample, **extra):
    return model.fit(sample.X, sample.y, sensitive_features=sample.groups, **extra)


@pytest.fixture(scope="module")
def biased(classes):
    """Every gap is large without a constraint: one group is ranked lower, and its labels are harder to predict."""
    options = {"group_shift": (0.0, -1.0), "separation": (2.0, 0.8), "positive_rates": (0.6, 0.35)}
    data = make_biased_classification(400, 4, group_proportions=(0.5, 0.5), **options, random_state=0)
    return type(classes)(*data)


@pytest.fixture(scope="module")
def free(biased):
    return fit(classifier(kappa=None), biased)


@pytest.fixture(scope="module")
def fair(biased):
    return fit(classifier(), biased)


@pytest.fixture(scope="module")
def batch(biased):
    """The moment solver on all rows."""
    return fit(stream(), biased)


def gap_of(metric, model, sample, **options):
    scores = model.decision_function(sample.X)
    return METRICS[metric](sample.y, scores, sensitive_features=sample.groups, **options)


def pair_share(sample):
    """Largest weight of a pair of rows in two AUCs between cells of a group and a label, in both together."""
    return 2 / min(np.prod(counts) for counts in combinations(np.bincount(2 * sample.groups + sample.y), 2))


def four_masks(positive, groups):
    """Sets that overlap: everybody is in two of them, or in three."""
    one = groups == 1
    return one & positive, ~positive, positive, one & ~positive


# --- the promise


@pytest.mark.parametrize(
    ("metric", "kappa"),
    [
        *(pytest.param(metric, 0.04, marks=pytest.mark.slow) for metric in METRICS),
        ("inter_group", 0.01),
        ("group_auc", 0.1),
    ],
)
def test_kappa_is_met_by_the_gap_itself(biased, free, metric, kappa):
    model = fit(classifier(kappa=kappa, constraint=metric), biased)
    gap = gap_of(metric, model, biased)
    assert gap_of(metric, free, biased) > kappa + 0.04  # the constraint has something to do
    assert gap <= kappa + pair_share(biased)
    assert gap > kappa / 2  # and gives no more away than it must
    assert model.constraint_values_ == {metric: pytest.approx(gap, abs=1e-12)}
    assert model.violation_ == pytest.approx(max(gap - kappa, 0), abs=1e-12)
    assert model.status_ == "optimal"
    assert roc_auc_score(biased.y, model.decision_function(biased.X)) > 0.7
    assert max(model.multipliers_.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("as_arrays", [False, True])
def test_kappa_is_met_for_masks(biased, free, as_arrays):
    arrays = four_masks(biased.y == 1, biased.groups)
    gap = subset_auc_gap(biased.y, free.decision_function(biased.X), subsets=list(arrays))
    assert gap > 0.1
    model = fit(classifier(kappa=0.04, constraint=list(arrays) if as_arrays else four_masks), biased)
    gap = subset_auc_gap(biased.y, model.decision_function(biased.X), subsets=list(arrays))
    assert 0.02 < gap <= 0.04 + pair_share(biased)
    assert model.constraint_values_ == {"subset_auc": pytest.approx(gap, abs=1e-12)}


def test_masks_need_no_groups(biased):
    """And no warning says that there is one group only."""
    young = biased.X[:, 0] < 0
    model = classifier(constraint=[young, ~young, young, young], kappa=0.3, **QUADRATIC).fit(biased.X, biased.y)
    assert model.groups_.size == 0
    scores = model.decision_function(biased.X)
    auc = roc_auc_score(young, scores)
    assert model.constraint_values_ == {"subset_auc": pytest.approx(abs(auc - 0.5))}


@pytest.mark.slow
def test_protected_is_one_group_against_all_others(classes):
    X, y, groups = make_biased_classification(
        400, 4, group_proportions=(0.4, 0.3, 0.3), positive_rates=(0.5,) * 3, group_shift=(0, -0.8, 0.4), random_state=1
    )
    model = classifier(protected="x", kappa=0.05).fit(X, y, sensitive_features=np.array(["w", "x", "z"])[groups])
    scores = model.decision_function(X)
    assert inter_group_auc_gap(y, scores, sensitive_features=groups, protected=1) <= 0.051
    assert inter_group_auc_gap(y, scores, sensitive_features=groups) > 0.07
    assert set(model.multipliers_) <= {"inter_group[x - others]", "inter_group[others - x]"}


def test_no_kappa_is_the_fit_without_groups(biased, free):
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        alone = classifier().fit(biased.X, biased.y)
    np.testing.assert_allclose(alone.coef_, free.coef_, atol=1e-5)
    loose = fit(classifier(kappa=0.5), biased)
    np.testing.assert_allclose(loose.coef_, free.coef_, atol=1e-5)
    assert free.status_ == loose.status_ == "optimal"


@pytest.mark.slow
@pytest.mark.parametrize("options", [QUADRATIC, {"objective": "auc", "tol": 0.01}], ids=["quadratic", "ramp"])
def test_the_auc_as_the_objective(biased, options):
    """The intercept, on which no AUC depends, makes for accuracy."""
    half = type(biased)(*(column[::2] for column in biased))
    model = fit(classifier(kappa=0.15, **options), half)
    scores = model.decision_function(half.X)
    assert options is QUADRATIC or gap_of("inter_group", model, half) <= 0.15 + pair_share(half)
    best = max(np.mean((scores > threshold) == half.y) for threshold in scores)
    assert model.score(half.X, half.y) == pytest.approx(best, abs=1e-12)
    assert best > max(half.y.mean(), 1 - half.y.mean()) + 0.05


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [0.2, 1.0, None])
def test_the_quadratic_surrogate_is_bounded_and_the_gap_reported(biased, metric, kappa):
    model = fit(stream(kappa=kappa, constraint=metric), biased)
    assert model.constraint_values_ == {metric: pytest.approx(gap_of(metric, model, biased), abs=1e-12)}
    assert model.status_ == "optimal"
    assert model.violation_ <= 1e-6
    scores = model.decision_function(biased.X)

    def mean(ell, above, below):
        return np.mean(ell(scores[above][:, None] - scores[below]))

    a, P, every = biased.groups == 0, biased.y == 1, np.ones(400, dtype=bool)
    G1, G1_, G2, G2_ = {
        "group_auc": (a, ~a, every, every),
        "inter_group": (a & P, ~a & ~P, ~a & P, a & ~P),
        "intra_group": (a & P, a & ~P, ~a & P, ~a & ~P),
        "positive_equality": (a & P, P, every, every),
        "negative_equality": (a & ~P, ~P, every, every),
        "bpsn_bnsp": (P, a & ~P, a & P, ~P),
    }[metric]

    def ell(t):
        return (t - 1) ** 2 / 2

    surrogates = [
        mean(lambda d: ell(-d), G1, G1_) + mean(ell, G2, G2_),
        mean(lambda d: ell(-d), G2, G2_) + mean(ell, G1, G1_),
    ]
    if kappa is not None:
        assert max(surrogates) <= 1 + kappa + 1e-5
        if model.multipliers_ and metric in ("inter_group", "intra_group", "group_auc"):  # of one pair of groups
            assert max(surrogates) == pytest.approx(1 + kappa, abs=1e-5)
    else:
        assert model.multipliers_ == {}


@pytest.mark.slow
def test_solvers_of_the_quadratic_surrogate_agree(biased, batch):
    other = fit(stream(solver="augmented_lagrangian"), biased)
    assert other.status_ == "optimal"
    assert other.objective_ == pytest.approx(batch.objective_, rel=1e-3)
    assert batch.n_evaluations_ == 1


def test_what_the_moment_solver_cannot_solve(biased):
    for options in ({"objective": "auc"}, {"surrogate": "quadratic"}, {**QUADRATIC, "hidden_layer_sizes": (2,)}):
        with pytest.raises(IncompatibleProblem, match=r"'moments' needs the view (SaddleMoments|LinearMoments)"):
            fit(classifier(solver="moments", **options), biased)


@pytest.mark.slow
def test_modules(biased):
    model = fit(classifier(kappa=0.05, hidden_layer_sizes=(10,), random_state=0, tol=0.01), biased)
    assert gap_of("inter_group", model, biased) <= 0.05 + pair_share(biased)
    assert roc_auc_score(biased.y, model.decision_function(biased.X)) > 0.7
    assert not hasattr(model, "coef_")
    assert model.module_[0].out_features == 10


# --- what goes in


@pytest.mark.parametrize("kappa", [-0.1, 0.6, np.nan, "small", True])
def test_kappa_is_at_most_one_half(biased, kappa):
    with pytest.raises(ValueError, match="kappa"):
        fit(classifier(kappa=kappa), biased)


def test_the_quadratic_kappa_may_be_larger(biased):
    assert fit(stream(kappa=10), biased).status_ == "optimal"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": "xauc"}, r"constraint must be one of .*got 'xauc'"),
        ({"constraint": None}, "'constraint' parameter"),
        ({"surrogate": "hinge"}, "'surrogate' parameter"),
        ({"objective": "squared"}, "'objective' parameter"),
        ({"protected": "nobody"}, r"protected must be one of the groups \[0, 1\].* got 'nobody'"),
        ({"protected": 0, "constraint": four_masks}, "masks say which"),
        ({"constraint": [np.ones(399, dtype=bool)] * 4}, r"masks of \[399\] entries, but there are 400 rows"),
        ({"constraint": [np.ones(401, dtype=bool)] * 4}, r"masks of \[401\] entries, .* give a function"),
        ({"constraint": [np.ones(400)] * 4}, "four boolean masks"),
        ({"solver": "moments"}, "'moments' needs the view SaddleMoments"),
        ({"solver": "simplex"}, "solver must be one of"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter"),
    ],
)
def test_mistakes(biased, options, message):
    with pytest.raises(ValueError, match=message):
        fit(classifier(**options), biased)


def test_a_group_of_one_class_prints_the_counts(biased):
    groups = np.where((biased.groups == 1) & (biased.y == 1), 0, biased.groups)
    with pytest.raises(ValueError, match=r"inter_group with kappa=0.03 needs .* at least 34 rows .*'1, y=1': 0\}"):
        classifier().fit(biased.X, biased.y, sensitive_features=groups)


def test_masks_as_arrays_do_not_survive_cross_validation(biased):
    """Silently, the rows of a fold would be taken for other rows."""
    search = GridSearchCV(stream(constraint=[biased.y == 1] * 4), {"kappa": [0.3]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match=r"masks of \[400\] entries, but there are 200 rows"):
        search.fit(biased.X, biased.y, sensitive_features=biased.groups)


def test_string_labels_and_data_frames(biased, batch):
    frame = pd.DataFrame(biased.X, columns=["a", "b", "c", "d"], index=np.arange(400)[::-1] + 1000)
    labels = pd.Series(np.array(["no", "yes"])[biased.y])
    model = stream().fit(frame, labels, sensitive_features=pd.DataFrame({"sex": np.array(["f", "m"])[biased.groups]}))
    np.testing.assert_array_equal(model.coef_, batch.coef_)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.groups_.tolist() == ["f", "m"]
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(model.predict(frame) == "yes", batch.predict(biased.X) == 1)
    probabilities = model.predict_proba(frame)
    assert roc_auc_score(biased.y, probabilities[:, 1]) == pytest.approx(
        roc_auc_score(biased.y, batch.decision_function(biased.X))
    )


@pytest.mark.parametrize("options", [QUADRATIC, {"kappa": None}], ids=["quadratic", "logistic"])
def test_sparse_and_dense_features_agree(biased, options):
    X = np.where(np.abs(biased.X) > 0.7, biased.X, 0.0)
    dense, sparse = (fit(classifier(**options), biased._replace(X=table)) for table in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-6)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), sparse.decision_function(X))


# --- changes of the data that must not change the model


def check_same(one, other, tolerance=1e-7):
    np.testing.assert_allclose(one.coef_, other.coef_, atol=tolerance)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=tolerance)
    assert one.constraint_values_ == {k: pytest.approx(v, abs=1e-9) for k, v in other.constraint_values_.items()}


@pytest.mark.parametrize("metric", ["inter_group", "bpsn_bnsp", four_masks], ids=["inter_group", "bpsn_bnsp", "masks"])
class TestInvariances:
    def test_integer_weights_are_repeated_rows(self, biased, metric):
        weights = np.random.default_rng(0).integers(0, 4, 400)
        repeated = type(biased)(*(np.repeat(column, weights, axis=0) for column in biased))
        check_same(
            fit(stream(constraint=metric), biased, sample_weight=weights.astype(float)),
            fit(stream(constraint=metric), repeated),
        )

    def test_permuted_rows(self, biased, metric):
        order = np.random.default_rng(0).permutation(400)
        permuted = type(biased)(*(column[order] for column in biased))
        check_same(fit(stream(constraint=metric), biased), fit(stream(constraint=metric), permuted))

    def test_relabelled_groups(self, biased, metric):
        relabelled = biased._replace(groups=np.array(["z", "a"])[biased.groups])  # in the opposite order
        if callable(metric):

            def other(positive, groups):
                return four_masks(positive, groups == "a")
        else:
            other = metric
        check_same(fit(stream(constraint=metric), biased), fit(stream(constraint=other), relabelled))


@pytest.mark.slow
def test_invariances_of_the_exact_bound(biased, fair):
    """Rounding errors grow along the path of a solver that refines itself; what is attained does not change."""
    order = np.random.default_rng(0).permutation(400)
    weights = np.full(800, 2.0)
    weights[400:] = 0.0  # rows of weight zero are not there
    changed = type(biased)(*(np.concatenate([column[order], column[order]]) for column in biased))
    changed = changed._replace(groups=np.array(["z", "a"])[changed.groups])
    other = fit(classifier(), changed, sample_weight=weights)
    assert other.status_ == fair.status_ == "optimal"
    assert other.constraint_values_["inter_group"] <= 0.03 + pair_share(biased)
    assert other.objective_ == pytest.approx(fair.objective_, rel=0.01)


def test_masks_follow_their_rows(biased):
    """Masks are sorted with the rows, whatever the groups and the weights are."""
    masks = four_masks(biased.y == 1, biased.groups)
    order = np.random.default_rng(0).permutation(400)
    weights = np.where(np.arange(400) % 7 == 0, 0.0, 1.0)
    one = stream(constraint=list(masks)).fit(biased.X, biased.y, sample_weight=weights)
    other = stream(constraint=[mask[order] for mask in masks])
    other.fit(biased.X[order], biased.y[order], sensitive_features=biased.groups[order], sample_weight=weights[order])
    check_same(one, other)


# --- an estimator like all others


def test_clone_and_pickle(biased, fair, batch):
    for model in (fair, batch):
        copied = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copied.predict(biased.X), model.predict(biased.X))
        fresh = clone(model)
        assert fresh.get_params() == model.get_params()
        with pytest.raises(NotFittedError):
            fresh.predict(biased.X)
    masked = stream(constraint=[biased.y == 1] * 4)
    np.testing.assert_array_equal(clone(masked).constraint, masked.constraint)


def test_pipeline_with_step_parameters(biased):
    pipe = make_pipeline(StandardScaler(), stream())
    pipe.fit(biased.X, biased.y, aucfairclassifier__sensitive_features=biased.groups)
    alone = fit(stream(), biased._replace(X=StandardScaler().fit_transform(biased.X)))
    np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)


@pytest.mark.usefixtures("routing")
def test_grid_search_with_a_function_of_sets(biased):
    search = GridSearchCV(
        make_pipeline(StandardScaler(), stream(constraint=four_masks)),
        {"aucfairclassifier__kappa": [0.1, 1.0, None]},
        scoring="roc_auc",
        cv=3,
        error_score="raise",
    )
    search.fit(biased.X, biased.y, sensitive_features=biased.groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.7
    assert list(search.best_estimator_[-1].constraint_values_) == ["subset_auc"]
    assert search.best_estimator_[-1].groups_.tolist() == [0, 1]


@pytest.mark.usefixtures("routing")
def test_a_failed_fit_changes_nothing(biased, batch):
    model = pickle.loads(pickle.dumps(batch))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="protected must be"):
        fit(model.set_params(protected="nobody"), biased)
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items() if name != "protected")


@pytest.mark.slow
def test_warm_start(biased, fair):
    model = fit(classifier(kappa=0.06, warm_start=True), biased)
    fit(model.set_params(kappa=0.03), biased)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(fair.objective_, rel=0.02)


# --- a part set aside


def test_validation_rows_are_as_if_they_were_not_there(biased):
    model = fit(stream(validation_fraction=0.25, random_state=3), biased)
    weights = np.ones(400)
    seed = np.random.RandomState(3).randint(2**31)
    held = HeldOut.of(biased.X, biased.y, biased.groups, weights, 0.25, seed)
    assert held.rows.size == 100
    # the same share of every group and class
    cells = 2 * biased.groups + biased.y
    np.testing.assert_allclose(np.bincount(cells[held.rows]) / np.bincount(cells), 0.25, atol=0.02)
    weights[held.rows] = 0.0
    rest = fit(stream(), biased, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, rest.coef_, atol=1e-9)
    assert model.constraint_values_ == rest.constraint_values_
    again = fit(stream(validation_fraction=0.25, random_state=3), biased)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert not np.array_equal(model.coef_, fit(stream(validation_fraction=0.25, random_state=4), biased).coef_)


def test_masks_and_a_validation_part(biased):
    masks = list(four_masks(biased.y == 1, biased.groups))
    one, other = (
        fit(stream(constraint=metric, validation_fraction=0.25, random_state=0), biased)
        for metric in (masks, four_masks)
    )
    check_same(one, other)
    assert one.status_ == "optimal"


def test_rows_without_weight_do_not_change_the_validation_part(biased):
    doubled = type(biased)(*(np.concatenate([column, column[::-1]]) for column in biased))
    weights = np.repeat([1.0, 0.0], 400)
    options = {"validation_fraction": 0.3, "random_state": 0}
    check_same(fit(stream(**options), biased), fit(stream(**options), doubled, sample_weight=weights))


def test_validation_needs_two_rows_of_every_group_and_class(biased):
    groups = biased.groups.copy()
    groups[np.flatnonzero(biased.y == 1)[0]] = 2
    groups[np.flatnonzero(biased.y == 0)[:5]] = 2
    with pytest.raises(ValueError, match="takes two of every group and class"):
        stream(validation_fraction=0.2).fit(biased.X, biased.y, sensitive_features=groups)


class Replay:
    """A solver that records some iterates and returns the last one."""

    def __init__(self, *iterates):
        self.iterates = iterates

    def solve(self, problem, start, random_state, callback):
        callback({"n_iter": 0})  # not every record has parameters
        for number, params in enumerate(self.iterates):
            callback({"n_iter": number, "params": params})
        free = problem.without_constraints()
        found = make_solver("moments", {}, free).solve(free, None, random_state)
        return replace(
            found, model_state=self.iterates[-1], objective=problem.view(FullBatch).at(self.iterates[-1]).objective
        )


def test_the_feasible_iterate_of_best_validation_auc_is_taken(biased, free, fair):
    weights = np.ones(400)
    held = HeldOut.of(biased.X, biased.y, biased.groups, weights.copy(), 0.3, 0)
    weights[held.rows] = 0.0
    data = FairData.from_arrays(biased.X, 2.0 * biased.y - 1, biased.groups, (0, 1), weights)
    # of the free fit the gap is far above, of the fair one far below this kappa
    terms = PairwiseAUC("quadratic").bind(data), (AUCGap(0.15).bind(data),)
    problem = Problem(*terms, data, model=LinearModel(4))
    free, fair = (np.append(model.coef_[0], 0.0) for model in (free, fair))
    constant = np.zeros(5)
    auc = {name: roc_auc_score(held.y, held.X @ w[:4]) for name, w in (("free", free), ("fair", fair))}
    assert auc["free"] > auc["fair"] > 0.5
    for iterates, expected in [
        ((free, fair, constant), fair),
        ((fair, free), fair),  # the solver's own result breaks the bound
        ((constant, free, fair), fair),
        ((free, free), free),  # nothing is feasible: the solver's own
    ]:
        result = held.solve(Replay(*iterates), problem, None, np.random.default_rng(0))
        np.testing.assert_array_equal(result.model_state, expected)
    chosen = held.solve(Replay(free, fair, constant), problem, None, np.random.default_rng(0))
    assert chosen.objective == pytest.approx(problem.view(FullBatch).at(fair).objective)


# --- streams


def streamed(model, sample, pieces, weights=None, **first):
    """Fed piece by piece."""
    for number, rows in enumerate(pieces):
        extra = {"classes": [0, 1], "groups": [0, 1], **first} if number == 0 else {}
        if weights is not None:
            extra["sample_weight"] = weights[rows]
        model.partial_fit(sample.X[rows], sample.y[rows], sensitive_features=sample.groups[rows], **extra)
    return model


ORDER = np.random.default_rng(0).permutation(400)
PIECES = {
    "at once": lambda sample: [np.arange(400)],
    "chunks": lambda sample: np.array_split(ORDER, 7),
    "single points": lambda sample: ORDER[:, None],
    "groups in blocks": lambda sample: [np.flatnonzero(sample.groups == g) for g in (1, 0)],
    "classes in blocks": lambda sample: [np.flatnonzero(sample.y == c) for c in (1, 0)],
}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_a_stream_is_the_batch(biased, batch, pieces):
    model = streamed(stream(), biased, pieces(biased))
    np.testing.assert_allclose(model.coef_, batch.coef_, atol=1e-7)
    assert model.status_ == "optimal"
    assert model.multipliers_ == {k: pytest.approx(v, abs=1e-6) for k, v in batch.multipliers_.items()}
    assert model.objective_ == pytest.approx(batch.objective_)
    assert model.constraint_values_ == {"inter_group_surrogate": pytest.approx(0.3, abs=1e-6)}
    np.testing.assert_allclose(model.decision_function(biased.X), biased.X @ model.coef_[0] + model.intercept_)
    # the intercepts differ, since there are no rows to search
    assert model.score(biased.X, biased.y) > batch.score(biased.X, biased.y) - 0.05


@pytest.mark.parametrize(
    "options",
    [
        *({"constraint": metric} for metric in METRICS if metric != "inter_group"),
        {"kappa": None},
        {"alpha": 0.3},
        {"fit_intercept": False},
        {"protected": 1, "constraint": "bpsn_bnsp"},
    ],
    ids=str,
)
def test_streams_of_other_problems(biased, options):
    model, other = streamed(stream(**options), biased, np.array_split(ORDER, 5)), fit(stream(**options), biased)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-7)
    assert model.multipliers_ == {k: pytest.approx(v, abs=1e-6) for k, v in other.multipliers_.items()}
    if not model.fit_intercept:
        assert model.intercept_.tolist() == [0.0]


def test_streams_of_sparse_rows_and_weights(biased):
    weights = np.random.default_rng(0).integers(0, 4, 400).astype(float)
    model = streamed(stream(), biased._replace(X=sp.csr_array(biased.X)), np.array_split(ORDER, 9), weights)
    batch = fit(stream(), biased, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, batch.coef_, atol=1e-7)


def test_three_groups_and_several_columns():
    X, y, groups = make_biased_classification(
        300, 4, group_proportions=(0.4, 0.3, 0.3), positive_rates=(0.5, 0.4, 0.6), random_state=1
    )
    table = np.array([["f", "n"], ["m", "n"], ["f", "s"]])
    model = stream(constraint="intra_group")
    for group in (2, 0, 1):
        rows = groups == group
        model.partial_fit(X[rows], y[rows], classes=[1, 0], sensitive_features=table[groups[rows]], groups=table)
    batch = stream(constraint="intra_group").fit(X, y, sensitive_features=table[groups])
    np.testing.assert_allclose(model.coef_, batch.coef_, atol=1e-7)
    assert model.groups_.tolist() == batch.groups_.tolist() == [("f", "n"), ("f", "s"), ("m", "n")]
    assert model.multipliers_ == {k: pytest.approx(v, abs=1e-6) for k, v in batch.multipliers_.items()}


def test_it_goes_on_after_having_been_asked(biased, batch):
    model = stream()
    for number, rows in enumerate(np.array_split(ORDER, 4)):
        first = {"classes": [0, 1], "groups": [0, 1]} if number == 0 else {}
        model.partial_fit(biased.X[rows], biased.y[rows], sensitive_features=biased.groups[rows], **first)
        so_far = ORDER[: 100 * (number + 1)]
        part = fit(stream(), type(biased)(*(column[so_far] for column in biased)))
        np.testing.assert_allclose(model.coef_, part.coef_, atol=1e-7)
    np.testing.assert_allclose(model.coef_, batch.coef_, atol=1e-7)


def test_not_fitted_before_every_set_has_rows(biased):
    model = stream()
    cells = 2 * biased.groups + biased.y
    for number, cell in enumerate([3, 0, 2, 1]):
        rows = cells == cell
        model.partial_fit(
            biased.X[rows], biased.y[rows], classes=[0, 1], sensitive_features=biased.groups[rows], groups=[0, 1]
        )
        if number < 3:
            assert not hasattr(model, "coef_")
            with pytest.raises(NotFittedError):
                model.predict(biased.X)
            with pytest.raises(NotFittedError):
                check_is_fitted(model)
    check_is_fitted(model)
    assert model.coef_.shape == (1, 4)


def test_pickled_before_it_was_asked(biased, batch):
    model = pickle.loads(pickle.dumps(streamed(stream(), biased, np.array_split(ORDER, 3))))
    np.testing.assert_allclose(model.coef_, batch.coef_, atol=1e-7)
    half = pickle.loads(pickle.dumps(streamed(stream(), biased, [ORDER[:200]])))
    half.partial_fit(biased.X[ORDER[200:]], biased.y[ORDER[200:]], sensitive_features=biased.groups[ORDER[200:]])
    np.testing.assert_allclose(half.coef_, batch.coef_, atol=1e-7)
    assert not hasattr(clone(half), "coef_")


WRONG = {
    "class": (lambda X, y, g: (X, y + 1, g), r"unknown classes \[2\]"),
    "group": (lambda X, y, g: (X, y, g + 1), r"not seen in fit: \[2\]"),
    "no groups": (lambda X, y, g: (X, y, None), "needs the sensitive_features"),
    "features": (lambda X, y, g: (X[:, :2], y, g), "2 features"),
    "missing": (lambda X, y, g: (np.where(X > 0, np.nan, X), y, g), "NaN"),
    "lengths": (lambda X, y, g: (X, y, g[:-1]), "sensitive_features has 199 rows in place of 200"),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("asked", [False, True])
def test_an_error_leaves_the_stream_as_it_was(biased, change, message, asked):
    model = streamed(stream(), biased, [ORDER[:200]])
    if asked:
        assert model.coef_.shape == (1, 4)
    before = dict(vars(model))
    X, y, groups = change(biased.X[ORDER[200:]], biased.y[ORDER[200:]], biased.groups[ORDER[200:]])
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, sensitive_features=groups)
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())
    expected = streamed(stream(), biased, [ORDER[:200]])
    np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ({"classes": None}, "classes must be given in the first call"),
        ({"classes": [0]}, r"classes must be two, got \[0\]"),
        ({"classes": [0, 1, 2]}, r"classes must be two, got \[0, 1, 2\]"),
        ({"classes": ["no", "yes"]}, "unknown classes"),
        ({"groups": [0]}, "not seen in fit"),
    ],
    ids=str,
)
def test_the_first_call(biased, first, message):
    model = stream(kappa=None)
    with pytest.raises(ValueError, match=message):
        streamed(model, biased, [ORDER], **first)
    assert vars(model).keys() == vars(stream()).keys()


def test_an_unknown_protected_group_is_said_at_once(biased):
    model = stream(protected=7)
    with pytest.raises(ValueError, match="protected must be one of the groups"):
        streamed(model, biased, [ORDER])
    assert not hasattr(model, "coef_")


def test_a_stream_of_one_group_warns(biased):
    first = biased.groups == 0
    model = stream()
    with pytest.warns(FairnessWarning, match="Announce all groups"):
        model.partial_fit(
            biased.X[first], biased.y[first], classes=[0, 1], sensitive_features=biased.groups[first]
        )  # fmt: skip
    with pytest.raises(ValueError, match="not seen in fit"):
        model.partial_fit(biased.X[~first], biased.y[~first], sensitive_features=biased.groups[~first])
    assert model.constraint_values_ == {"inter_group_surrogate": 0.0}


@pytest.mark.parametrize(
    "options",
    [{}, {**QUADRATIC, "constraint": four_masks}, {**QUADRATIC, "solver": "level_set"}],
    ids=["ramp", "masks", "level_set"],
)
def test_no_stream_of_other_problems(options):
    model = classifier(**options)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as raised:
        model.partial_fit  # noqa: B018
    assert re.search("needs surrogate='quadratic'.*'auto' or one of", str(raised.value.__cause__))


def test_fit_begins_anew_and_so_does_the_stream_after_it(biased, batch):
    model = streamed(stream(), biased, [ORDER[:100]])
    fit(model, biased)
    np.testing.assert_array_equal(model.coef_, batch.coef_)
    np.testing.assert_array_equal(model.intercept_, batch.intercept_)
    assert list(model.constraint_values_) == ["inter_group"]
    streamed(model, biased, [ORDER[:100]], classes=None)  # known from the fit
    np.testing.assert_array_equal(model.coef_, streamed(stream(), biased, [ORDER[:100]]).coef_)
    assert list(model.constraint_values_) == ["inter_group_surrogate"]


@pytest.mark.slow
def test_a_stream_after_a_module(biased):
    model = fit(stream(kappa=None, hidden_layer_sizes=(2,), random_state=0, max_iter=2, tol=1.0), biased)
    model.set_params(hidden_layer_sizes=None)
    streamed(model, biased, [ORDER])
    assert not hasattr(model, "module_")
    assert model.coef_.shape == (1, 4)


def test_the_intercept_of_a_stream_tells_the_classes_apart():
    """Normal classes of one variance, far apart, of which one is rare: the intercept is not in the middle."""
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.1).astype(int)
    X = rng.normal(size=(4000, 2)) + 1.5 * y[:, None]
    groups = rng.integers(0, 2, 4000)
    model = stream(kappa=None).partial_fit(X, y, classes=[0, 1], sensitive_features=groups)
    scores = model.decision_function(X)
    best = max(np.mean((scores > threshold) == y) for threshold in np.quantile(scores, np.linspace(0.5, 1, 200)))
    assert model.score(X, y) > max(best - 0.003, 0.92)


def test_too_few_iterations_warn(biased):
    with pytest.warns(ConvergenceWarning, match="no iterate kept the bound") as caught:
        model = fit(classifier(kappa=0.001, max_iter=1), biased)
    assert len(caught) == 1
    assert model.status_ == "max_iter"
    assert model.violation_ <= model.granularity_["inter_group"]


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_a_bound_out_of_reach_is_tried_under_one_stricter_one(monkeypatch):
    """One feature, whose direction differs between the groups: under every bound, a run ends at the same AUC gap."""
    runs, run = [], AUCFairClassifier._run
    monkeypatch.setattr(AUCFairClassifier, "_run", lambda *args: runs.append(args[2]) or run(*args))
    rng, rows = np.random.default_rng(0), np.arange(200)
    y, groups = rows % 2, rows // 2 % 2
    X = rng.normal(size=(200, 1)) + (y * np.where(groups, 1, -1))[:, np.newaxis]
    model = AUCFairClassifier(0.05, constraint="group_auc", random_state=0).fit(X, y, sensitive_features=groups)
    assert np.ptp(model.decision_function(X)) == 0
    assert [problem.constraints[0].kappa for problem in runs] == [0.05, 0.025]
