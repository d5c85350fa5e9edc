"""FairRanker: pairs of documents by query, the bound on the gap between kinds of pairs, readable errors."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import FairnessWarning, FairRanker
from fairconstrained.checks.queries import query_pairs
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_ranking
from fairconstrained.estimators import fair_ranker
from fairconstrained.metrics import pairwise_ranking_gap
from fairconstrained.models import LinearModel, Perceptron, mlp
from fairconstrained.models.pairs import PairModel
from tests.covering import each_value


def draw(n_queries=40, n_documents=12, seed=0):
    """Documents of two groups; a feature stands for the group, and relevance is noisier in one of them."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), n_documents)
    group = rng.integers(0, 2, qid.size)
    X = rng.normal(size=(qid.size, 4))
    X[:, 3] += group
    noise = rng.normal(size=qid.size) * (0.5 + group)
    relevance = np.digitize(X[:, 0] + 0.8 * group + noise, [0.0, 1.0, 2.0])
    return X, relevance, qid, np.array(["a", "b"])[group]


@pytest.fixture(scope="module")
def documents():
    return draw()


def gap_by_hand(y, scores, qid, group, pairs):
    right, total = {}, {}
    for i in range(len(y)):
        for j in range(len(y)):
            if qid[i] == qid[j] and y[i] > y[j]:
                kind = group[i], group[j]
                total[kind] = total.get(kind, 0) + 1
                right[kind] = right.get(kind, 0) + (scores[i] > scores[j])
    wanted = {"between": lambda k: k[0] != k[1], "within": lambda k: k[0] == k[1], "all": lambda k: True}[pairs]
    shares = [right[kind] / total[kind] for kind in total if wanted(kind)]
    return max(shares) - min(shares)


@pytest.mark.parametrize("pairs", ["between", "within", "all"])
def test_the_gap_by_hand(pairs):
    _, y, qid, group = draw(6, 7)
    scores = np.random.default_rng(1).normal(size=y.size)
    order = np.random.default_rng(2).permutation(y.size)
    expected = gap_by_hand(y, scores, qid, group, pairs)
    for rows in (slice(None), order):  # queries need not stand together
        columns = {"qid": qid[rows], "sensitive_features": group[rows]}
        assert pairwise_ranking_gap(y[rows], scores[rows], **columns, pairs=pairs) == pytest.approx(expected)


def test_pairs_of_a_query():
    pairs = query_pairs(np.array([2.0, 1.0, 2.0, 0.0, 5.0]), np.array([0, 0, 1, 0, 1]))
    assert sorted(map(tuple, pairs.tolist())) == [(0, 1), (0, 3), (1, 3), (4, 2)]
    assert query_pairs(np.ones(3), np.zeros(3, dtype=int)).shape == (0, 2)


@pytest.mark.filterwarnings("ignore:.* probabilities:fairconstrained.FairnessWarning")
@each_value(rate=["indicator", "sigmoid"], pairs=["between", "within", "all"])
def test_kappa_is_kept(documents, rate, pairs):
    X, y, qid, group = documents
    free = FairRanker(None, constraint=pairs, rate=rate).fit(X, y, qid=qid, sensitive_features=group)
    before = free.constraint_values_["pairwise_ranking"]
    assert before > 0.05
    model = FairRanker(before / 3, constraint=pairs, rate=rate).fit(X, y, qid=qid, sensitive_features=group)
    assert model.status_ == "optimal"
    assert model.constraint_values_["pairwise_ranking"] <= before / 3 + (0.003 if rate == "indicator" else 1.001e-6)
    if rate == "indicator":
        columns = {"qid": qid, "sensitive_features": group}
        gap = pairwise_ranking_gap(y, model.predict(X), **columns, pairs=pairs)
        assert model.constraint_values_ == {"pairwise_ranking": pytest.approx(gap)}
    assert 0.6 < model.score(X, y, qid=qid) <= free.score(X, y, qid=qid) + 0.005
    assert model.pair_accuracies_.index.tolist() == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    assert model.pair_accuracies_.n_pairs.sum() == len(query_pairs(y, qid))


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_scores_and_gradients_of_pairs(kind):
    rng = np.random.default_rng(0)
    X, pairs = rng.normal(size=(30, 3)), rng.integers(0, 30, (50, 2))
    items = FairData.from_arrays(X, rng.normal(size=30), np.zeros(30, dtype=int), (None,))
    base = LinearModel(3, 1, False, 0.1) if kind == "linear" else Perceptron(mlp, 3, device="cpu")
    model = PairModel(base, items)
    params = rng.normal(size=model.n_params)
    for some in (slice(None), slice(0, 5)):  # all rows are scored, or those of few pairs
        n = len(pairs[some])
        data = FairData.from_arrays(pairs[some], np.ones(n), np.zeros(n, dtype=int), (None,))
        scores, pullback = model.forward(params, data)
        single = base.forward(params, items)[0].numpy()
        np.testing.assert_allclose(scores.numpy(), single[data.X[:, 0]] - single[data.X[:, 1]])
        cotangent = rng.normal(size=data.n_samples)
        gradient, step = pullback(torch.from_numpy(cotangent)), 1e-6 * rng.normal(size=params.size)
        change = cotangent @ (model.forward(params + step, data)[0] - model.forward(params - step, data)[0]).numpy()
        assert change == pytest.approx(2 * gradient @ step, rel=1e-4)


@pytest.mark.slow
def test_a_network_keeps_the_bound(documents):
    X, y, qid, group = documents
    model = FairRanker(0.03, hidden_layer_sizes=(8,), random_state=0).fit(X, y, qid=qid, sensitive_features=group)
    gap = pairwise_ranking_gap(y, model.predict(X), qid=qid, sensitive_features=group)
    assert gap <= 0.03 + 0.003
    assert model.status_ == "completed"
    assert model.score(X, y, qid=qid) > 0.6


@pytest.mark.slow
def test_order_and_form_of_the_input_do_not_matter(documents):
    X, y, qid, group = documents
    order = np.random.default_rng(0).permutation(y.size)
    names = np.array([f"query {q}" for q in qid])
    model = FairRanker(0.05).fit(X, y, qid=qid, sensitive_features=group)
    other = FairRanker(0.05).fit(sp.csr_array(X[order]), y[order], qid=names[order], sensitive_features=group[order])
    np.testing.assert_allclose(model.coef_, other.coef_, atol=5e-3)
    frame = FairRanker(0.05).fit(pd.DataFrame(X, columns=list("abcd")), y, qid=list(qid), sensitive_features=group)
    np.testing.assert_array_equal(frame.coef_, model.coef_)
    assert frame.feature_names_in_.tolist() == list("abcd")


def test_without_groups_nothing_is_bounded(documents):
    X, y, qid, group = documents
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        model = FairRanker().fit(X, y, qid=qid)
    free = FairRanker(None).fit(X, y, qid=qid, sensitive_features=group)
    np.testing.assert_allclose(model.coef_, free.coef_, atol=1e-3)
    assert model.constraint_values_ == {}


def test_pairs_that_are_all_ranked_right_are_no_decisions_at_a_wrong_threshold(documents):
    X, y, qid, group = documents
    known = np.column_stack([10.0 * y, X[:, :2]])  # a feature that tells the relevance; warnings are errors
    model = FairRanker(new_row_folds=None).fit(known, y, qid=qid, sensitive_features=group)
    assert model.constraint_values_ == {"pairwise_ranking": 0.0}
    assert (model.pair_accuracies_.accuracy == 1).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"qid": None}, "qid is missing"),
        ({"qid": np.zeros(3)}, "qid must have one query for each of the 480 rows"),
        ({"qid": np.arange(480)}, "no query has two documents of different relevance"),
        ({"sensitive_features": ["a", "b"]}, "sensitive_features has 2 rows in place of 480"),
        ({"y": np.ones(480)}, "no query has two documents of different relevance"),
    ],
)
def test_bad_input(documents, columns, message):
    X, y, qid, group = documents
    given = {"y": y, "qid": qid, "sensitive_features": group} | columns
    with pytest.raises(ValueError, match=re.escape(message)):
        FairRanker().fit(X, **given)


@pytest.mark.slow
def test_mini_batches_of_queries(documents, monkeypatch):
    X, y, qid, group = documents
    seen = []
    forward = PairModel.forward

    def watched(self, params, data):
        seen.append(data)
        return forward(self, params, data)

    monkeypatch.setattr(PairModel, "forward", watched)
    options = {"batch_size": 400, "max_epochs": 2}
    ranker = FairRanker(0.1, batches="queries", solver="adam_lagrangian", solver_options=options, random_state=0)
    ranker.fit(X, y, qid=qid, sensitive_features=group)
    pairs = query_pairs(y, qid)
    queries = qid[pairs[:, 0]]
    batches = [data for data in seen if data.n_samples < len(pairs)]
    assert len(batches) > 5
    for batch in batches:
        drawn = np.unique(queries[batch.order])
        assert set(batch.order) == set(np.flatnonzero(np.isin(queries, drawn)))
    assert ranker.score(X, y, qid=qid) > 0.6


@pytest.mark.slow
def test_pipelines_and_cross_validation_pass_queries_and_groups_on(documents):
    X, y, qid, groups = documents
    metadata = {"qid": qid, "sensitive_features": groups}
    folds = list(GroupKFold(2).split(X, y, qid))
    pipe = make_pipeline(StandardScaler(), FairRanker())
    with config_context(enable_metadata_routing=True):
        found = cross_val_score(pipe, X, y, params=metadata, cv=folds, error_score="raise")
    for (train, test), score in zip(folds, found, strict=True):
        scaler = StandardScaler().fit(X[train])
        alone = FairRanker().fit(scaler.transform(X[train]), y[train], qid=qid[train], sensitive_features=groups[train])
        assert score == pytest.approx(alone.score(scaler.transform(X[test]), y[test], qid=qid[test]), abs=1e-12)


@pytest.mark.slow
def test_weights_of_a_score_stand_for_repeated_documents(documents):
    X, y, qid, groups = documents
    model = FairRanker().fit(X, y, qid=qid, sensitive_features=groups)
    repeats = np.random.default_rng(0).integers(0, 3, y.size)
    rows = np.repeat(np.arange(y.size), repeats)
    repeated = model.score(X[rows], y[rows], qid=qid[rows])
    assert model.score(X, y, repeats, qid=qid) == pytest.approx(repeated, abs=1e-12)
    assert repeated != model.score(X, y, qid=qid)
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.score(X, y, np.zeros(y.size), qid=qid)


def test_the_bound_is_not_learned_by_heart():
    """The gap on other queries, in the mean over four draws of 120 queries with 60 features."""
    gaps = {"auto": [], "augmented_lagrangian": []}
    for seed in range(4):
        X, y, qid, group = make_biased_ranking(520, n_features=60, random_state=seed)
        new = qid >= 120
        told = {"qid": qid[~new], "sensitive_features": group[~new]}
        for solver, found in gaps.items():
            ranker = FairRanker(0.05, solver=solver).fit(X[~new], y[~new], **told)
            assert ranker.status_ == "optimal"
            found.append(ranker.constraint_values(X[new], y[new], qid=qid[new], sensitive_features=group[new]))
    means = {solver: np.mean([gap["pairwise_ranking"] for gap in found]) for solver, found in gaps.items()}
    assert means["auto"] < 0.65 * means["augmented_lagrangian"]


@pytest.mark.parametrize(("n_queries", "most", "is_few"), [(100, 2**25, True), (100, 0, False), (8, 2**25, False)])
def test_few_directions_where_differences_fit_and_pairs_are_enough(n_queries, most, is_few, monkeypatch):
    monkeypatch.setattr(fair_ranker, "_MOST_NUMBERS", most)
    X, y, qid, group = make_biased_ranking(n_queries, random_state=0)
    ranker = FairRanker(0.1).fit(X, y, qid=qid, sensitive_features=group)
    assert ranker.solver_ == ("cross_fitted" if is_few else "augmented_lagrangian")
    scores = X @ ranker.coef_[0]
    np.testing.assert_allclose(ranker.predict(X), scores)
    gap = pairwise_ranking_gap(y, scores, qid=qid, sensitive_features=group)
    assert ranker.constraint_values_["pairwise_ranking"] == pytest.approx(gap)


def test_sparse_documents_give_the_same_scores():
    X, y, qid, group = make_biased_ranking(100, random_state=0)
    fitted = [FairRanker(0.1).fit(form(X), y, qid=qid, sensitive_features=group) for form in (np.array, sp.csr_array)]
    assert {ranker.solver_ for ranker in fitted} == {"cross_fitted"}
    np.testing.assert_allclose(fitted[0].coef_, fitted[1].coef_, rtol=1e-4, atol=1e-6)


def test_a_run_under_stricter_bounds_finds_more_than_equal_scores():
    """Three groups and grades, noise of heavy tails: a first run misses the bound, and only equal scores keep it."""
    rng = np.random.default_rng(106)
    group = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 6)) + 0.6 * group[:, None]
    qid = rng.integers(0, 40, 400)
    quality = 2 * X[:, 0] - 1.5 * group + np.sinh(rng.normal(size=400))
    relevance = np.digitize(quality, [0.0, 1.0, 2.0])
    model = FairRanker(0.02, solver="augmented_lagrangian").fit(X, relevance, qid=qid, sensitive_features=group)
    assert model.violation_ <= model.granularity_["pairwise_ranking"]
    assert model.objective_ < 0.65 * np.log(2)
