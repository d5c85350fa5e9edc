"""`certify`: what it takes, what it refuses, and what it says."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

import fairconstrained
from fairconstrained import FairHeadClassifier, PartialParityClassifier, PartialParityClassifierCV, RateParityClassifier
from fairconstrained.certification import Certificate, certify
from fairconstrained.certification.seen_rows import Overlap, _noticeable, model_kappa, overlap_with_fit
from fairconstrained.constraints import GroupRates, StatisticalParity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.estimators import row_sketch
from fairconstrained.estimators.row_sketch import RowSketch
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import METRICS, independence_gap, minority_share, pairwise_ranking_gap
from fairconstrained.postprocessing import ScoreShiftPostprocessor


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(n_samples=1200, random_state=0)
    return X, y, np.where(groups == groups[0], "one", "other")


@pytest.fixture(scope="module")
def parts(data):
    """For fitting, and what is left."""
    X, y, groups = data
    return (X[:600], y[:600], groups[:600]), (X[600:], y[600:], groups[600:])


@pytest.fixture(scope="module")
def logistic(parts):
    (X, y, _), _ = parts
    return LogisticRegression().fit(X, y)


@pytest.fixture(scope="module")
def fair(parts):
    (X, y, groups), _ = parts
    return RateParityClassifier(kappa=0.1).fit(X, y, sensitive_features=groups)


def certificate(model, parts, metric="independence_gap", **options) -> Certificate:
    X, y, groups = parts[1]
    return certify(model, X, y, **{"sensitive_features": groups, "metric": metric, **options})


class DecidesAtRandom(ClassifierMixin, BaseEstimator):
    """Decisions are drawn, as those of Fairlearn's ExponentiatedGradient."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X, random_state=None):
        return self.classes_[check_random_state(random_state).randint(2, size=len(X))]


def test_decisions_at_random_are_drawn_with_the_seed(parts):
    (X, y, _), (X_new, *_) = parts
    model = DecidesAtRandom().fit(X, y)
    found = [certificate(model, parts, random_state=seed) for seed in (0, 0, 1)]
    assert found[0].gap == found[1].gap != found[2].gap
    assert found[0].gap == independence_gap(None, model.predict(X_new, random_state=0), sensitive_features=parts[1][2])


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_every_metric_has_a_certificate(logistic, parts, metric):
    X, y, groups = parts[1]
    info = METRICS[metric]
    said = {
        "predict": logistic.predict(X),
        "decision_function": logistic.decision_function(X),
        "predict_proba": logistic.predict_proba(X)[:, 1],
    }[info.response]
    found = certificate(logistic, parts, metric, loss_bound=30)
    assert found.metric == metric
    assert found.gap == info.function(y, said, sensitive_features=groups)
    assert found.gap <= found.upper_bound
    assert found.is_distribution_free
    assert found.n_samples == 600
    assert {"estimate"} <= set(found.cells)
    assert found.cells.filter(like="n_").to_numpy().min() > 0
    assert (found.kappa, found.passed, found.sufficient_n, found.share_seen) == (None, None, None, None)


def test_what_a_certificate_says(logistic, parts):
    found = certificate(logistic, parts, kappa=0.35)
    assert found.passed is True
    assert found.sufficient_n == found.sample_size(0.35) < 600
    tight = certificate(logistic, parts, kappa=found.gap + 0.01)
    assert tight.passed is False
    assert tight.sufficient_n > tight.n_samples
    impossible = certificate(logistic, parts, kappa=found.gap / 2)
    assert impossible.sufficient_n is None
    for certified, words in (
        (found, "passed."),
        (tight, f"not passed; {tight.sufficient_n:,} rows would have sufficed"),
        (impossible, "no sample suffices"),
    ):
        text = str(certified)
        assert words in text
        assert f"at most {certified.upper_bound:.4g} in the population, with 0.95 confidence" in text
        assert "Union: the difference of one pair of groups" in text
    assert "Certificate(metric='independence_gap', gap=0." in repr(found)
    again = pickle.loads(pickle.dumps(found))
    assert (again.upper_bound, again.sample_size(0.35)) == (found.upper_bound, found.sufficient_n)


@pytest.mark.parametrize("slack", [0.03, 0.1, 0.2])
def test_the_sufficient_sample_is_the_smallest(logistic, parts, slack):
    found = certificate(logistic, parts, "statistical_parity_gap")
    kappa = found.gap + slack
    size = found.sample_size(kappa)
    fewer, enough = (found._evidence.upper(found.delta, n / found.n_samples) for n in (size - 1, size))
    assert fewer > kappa >= enough - 1e-9


def test_smaller_delta_and_fewer_rows_make_larger_bounds(logistic, parts):
    X, y, groups = parts[1]
    usual, strict = (certificate(logistic, parts, delta=delta).upper_bound for delta in (0.05, 0.001))
    few = certify(logistic, X[:300], y[:300], sensitive_features=groups[:300], metric="independence_gap")
    assert usual < strict
    assert few.upper_bound - few.gap > usual - certificate(logistic, parts).gap


def test_labels_of_any_kind(logistic, parts):
    (X, y, _), (X_new, y_new, groups) = parts
    names = np.array(["no", "yes"])
    model = LogisticRegression().fit(X, names[(y == y.max()).astype(int)])
    renamed = certify(
        model, X_new, names[(y_new == y.max()).astype(int)], sensitive_features=groups, metric="separation_gap"
    )
    assert renamed.upper_bound == certificate(logistic, parts, "separation_gap").upper_bound
    flipped = certificate(logistic, parts, "equal_opportunity_gap", metric_params={"pos_label": y.min()})
    rates = [
        (logistic.predict(X_new[rows]) == y.min()).mean()
        for rows in ((groups == g) & (y_new == y.min()) for g in ("one", "other"))
    ]
    assert flipped.gap == pytest.approx(abs(rates[0] - rates[1]))


@pytest.mark.parametrize("column", ["y", "groups"])
def test_row_labels_in_another_order(logistic, parts, column):
    X, y, groups = parts[1]
    columns = {"y": pd.Series(y), "groups": pd.Series(groups)}
    columns[column] = columns[column].set_axis(range(y.size)[::-1])
    with pytest.warns(FairnessWarning, match="X and .* have the same row labels"):
        certificate(logistic, (None, (pd.DataFrame(X), columns["y"], columns["groups"])))


def test_several_columns_make_groups(logistic, parts):
    X, y, groups = parts[1]
    frame = pd.DataFrame({"group": groups, "side": np.where(X[:, 0] > 0, "left", "right")})
    found = certify(logistic, X, y, sensitive_features=frame, metric=independence_gap)
    assert found.cells.index.tolist() == [(g, s) for g in ("one", "other") for s in ("left", "right")]
    # columns of booleans too, unless the metric takes them for groups that overlap
    flags = pd.DataFrame({"one": groups == "one", "left": X[:, 0] < np.inf, "nobody": np.zeros(600, dtype=bool)})
    found = certify(logistic, X, y, sensitive_features=flags, metric=independence_gap)
    assert found.upper_bound == certificate(logistic, parts).upper_bound
    with pytest.raises(ValueError, match=r"groups \['nobody'\] of sensitive_features have no rows"):
        certify(logistic, X, y, sensitive_features=flags, metric="rate_gap")


def test_share_of_a_minority_is_bounded_from_below(logistic, parts):
    X, _, groups = parts[1]
    found = certificate(logistic, parts, "minority_share", metric_params={"minority": "one"})
    positive = logistic.predict(X) == logistic.classes_[1]
    share = minority_share(None, logistic.decision_function(X), sensitive_features=groups, minority="one")
    assert found.metric == "1 - minority_share"
    assert found.gap == pytest.approx(1 - share)
    assert found.cells["n_samples"].tolist() == [positive.sum()]


@pytest.mark.slow
def test_kappa_of_the_model_is_the_default(fair, parts):
    (X, y, groups), _ = parts
    pipeline = make_pipeline(StandardScaler(), RateParityClassifier(kappa=0.07))
    with fairconstrained_routing():
        pipeline.fit(X, y, sensitive_features=groups)
    assert certificate(fair, parts).kappa == 0.1
    assert certificate(fair, parts, kappa=0.2).kappa == 0.2
    assert certificate(pipeline, parts).kappa == 0.07
    assert certificate(fair, parts, "inaccuracy").kappa is None  # errors are no gap
    top = ("top", StatisticalParity(0.4, interval=(0, 0.5)))
    for constraint, kappa in [
        (StatisticalParity(0.3), 0.3),
        ([("all", StatisticalParity(0.3))], 0.3),
        ([("all", StatisticalParity(0.3)), top], None),  # there is no one bound
        ([("all", StatisticalParity(None)), top], 0.4),
    ]:
        model = PartialParityClassifier(constraint=constraint).fit(X, y, sensitive_features=groups)
        assert certificate(model, parts, "statistical_parity_gap").kappa == kappa


def fairconstrained_routing():
    from sklearn import config_context

    return config_context(enable_metadata_routing=True)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", ["alone", "pipeline", "search", "shift"])
def test_training_data_are_refused(parts, wrap):
    (X, y, groups), (X_new, y_new, groups_new) = parts
    model = {
        "alone": RateParityClassifier(kappa=0.2),
        "pipeline": make_pipeline(StandardScaler(), RateParityClassifier(kappa=0.2)),
        "search": GridSearchCV(
            make_pipeline(StandardScaler(), RateParityClassifier()), {"rateparityclassifier__kappa": [0.2]}, cv=2
        ),
        "shift": ScoreShiftPostprocessor(RateParityClassifier(kappa=0.2), constraint="inter_group"),
    }[wrap]
    with fairconstrained_routing():
        model.fit(X, y, sensitive_features=groups)
    certificate_of = lambda *rows, **options: certify(  # noqa: E731
        model, rows[0], rows[1], sensitive_features=rows[2], metric="group_auc_gap", **options
    )
    with pytest.raises(ValueError, match=r"100% of the rows are among those that RateParityClassifier was fitted on"):
        certificate_of(X, y, groups)
    mixed = [np.concatenate(pair) for pair in ((X[:100], X_new), (y[:100], y_new), (groups[:100], groups_new))]
    with pytest.raises(ValueError, match="14% of the rows"):
        certificate_of(*mixed)
    assert certificate_of(X_new, y_new, groups_new).share_seen == 0
    forced = certificate_of(*mixed, allow_training_data=True)
    assert forced.share_seen == pytest.approx(1 / 7)
    assert "NOT VALID. The model was fitted on 14% of these rows" in str(forced)


def test_rows_that_repeat_by_chance_are_no_training_data():
    """Two binary features: every new row has been seen."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(800, 2)).astype(float)
    groups, y = rng.choice(["a", "b"], 800), (X[:, 0] + rng.random(800) > 0.9).astype(int)
    model = RateParityClassifier(kappa=0.5).fit(X[:400], y[:400], sensitive_features=groups[:400])
    found = certify(model, X[400:], y[400:], sensitive_features=groups[400:], metric="independence_gap")
    assert found.share_seen == 0


def test_many_rows_seen_are_more_than_chance_where_few_would_be():
    """90 % of the rows are one of three kinds, the others differ from all: 4 standard errors reach up to 100 %."""
    rng = np.random.default_rng(0)

    def draw(n_rows):
        own = rng.random(n_rows)
        return np.where(np.arange(n_rows) % 10 == 0, own, np.floor(3 * own))[:, None]

    known, new = draw(1000), draw(1000)
    model = SimpleNamespace(_rows_seen=RowSketch.of(known))
    assert overlap_with_fit(model, new).share == 0.0
    # 5 % of the rows in addition: 4 standard errors are sqrt(0.9 * 0.1 * 2 / 1000) * 4 = 0.054, and 1 % is tolerated
    place = np.arange(0, 1000, 10)
    for n_more, is_noticed in ((50, False), (80, True)):
        mixed = new.copy()
        mixed[place[:n_more]] = known[place[:n_more]]
        assert (overlap_with_fit(model, mixed).share > 0) == is_noticed


def test_the_very_rows_of_the_fit_are_known_even_if_they_repeat():
    """Three binary features: a row says nothing, but how often each of eight kinds occurs does."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(400, 3)).astype(float)
    groups, y = rng.choice(["a", "b"], 400), (X[:, 0] + rng.random(400) > 0.9).astype(int)
    model = RateParityClassifier(kappa=0.5).fit(X, y, sensitive_features=groups)
    options = {"sensitive_features": groups[::-1], "metric": "independence_gap"}
    with pytest.raises(ValueError, match=r"100% of the rows .* was fitted on \(each of them as often as there\)"):
        certify(model, X[::-1], y[::-1], **options)
    assert certify(model, X[::-1], y[::-1], **options, allow_training_data=True).share_seen == 1
    # a single kind of rows occurs as often in all other samples of the size
    same = np.ones((400, 1))
    model = RateParityClassifier(kappa=0.5).fit(same, y, sensitive_features=groups)
    assert certify(model, same, y, **options).share_seen == 0


def test_what_cannot_be_checked_is_said(fair, parts):
    assert "is not known: it has no record that tells" in str(
        certificate(LogisticRegression().fit(*parts[0][:2]), parts)
    )
    model = pickle.loads(pickle.dumps(fair))
    found = certificate(model, parts)
    # 1 % is tolerated
    assert (found.share_seen, found.noticeable_overlap) == (0.0, 7)
    assert "of 7 of them or more this would be noticed with a probability of at least 95%" in str(found)
    assert model.forget_rows() is model
    found = certificate(model, parts)
    assert (found.share_seen, found.noticeable_overlap) == (None, None)
    X, y, groups = parts[0]
    assert certify(model, X, y, sensitive_features=groups, metric="independence_gap").share_seen is None
    assert "has no record that tells" in str(found)
    np.testing.assert_array_equal(model.predict(X), fair.predict(X))
    with pytest.raises(NotFittedError):
        RateParityClassifier().forget_rows()


@pytest.mark.parametrize("share", [0.1, 0.6])
@pytest.mark.parametrize("n_needed", [1, 2, 3, 10])
def test_the_fewest_rows_of_which_enough_are_remembered(n_needed, share):
    """By the binomial probabilities, summed."""
    sizes = [n for n in range(200) if sum(binom.pmf(range(n_needed, n + 1), n, share)) >= 0.95]
    expected = sizes[0] if sizes else None
    assert _noticeable(200, n_needed, share) == expected
    assert _noticeable(expected - 1, n_needed, share) is None


@pytest.mark.slow
def test_how_large_an_overlap_a_short_record_notices(monkeypatch):
    """In 95 % of many splits of the rows, and hardly more, an overlap of the size that it names is noticed."""
    monkeypatch.setattr(row_sketch, "_SIZE", 100)
    rng = np.random.default_rng(0)
    n_fit, n_new, noticed, sizes = 1000, 500, 0, []
    for _ in range(300):
        fitted, new = rng.normal(size=(n_fit, 1)), rng.normal(size=(n_new, 1))
        model = SimpleNamespace(_rows_seen=RowSketch.of(fitted))
        clean = overlap_with_fit(model, new)
        assert clean.share == 0.0
        sizes.append(clean.noticeable)
        mixed = np.concatenate([fitted[: clean.noticeable], new[clean.noticeable :]])
        noticed += overlap_with_fit(model, mixed).share > 0
    # a tenth of the rows is remembered: one of m is with probability 1 - 0.9^m, which is 95 % at 29
    assert min(sizes) >= 20
    assert max(sizes) <= 45
    assert 0.92 <= noticed / 300 <= 0.99


def test_few_rows_may_go_unnoticed(monkeypatch):
    monkeypatch.setattr(row_sketch, "_SIZE", 100)
    model = SimpleNamespace(_rows_seen=RowSketch.of(np.random.default_rng(0).normal(size=(2000, 1))))
    new = np.random.default_rng(1).normal(size=(30, 1))
    found = overlap_with_fit(model, new)
    assert found == Overlap(0.0, None)
    assert "even of all of them this might go unnoticed" in found.words


def test_models_of_others(parts):
    X, y, _ = parts[0]
    for model in (DecisionTreeClassifier(max_depth=2), CalibratedClassifierCV(RidgeClassifier(), cv=2)):
        found = certificate(model.fit(X, y), parts, "separation_gap")
        assert found.gap <= found.upper_bound
    assert certificate(RidgeClassifier().fit(X, y), parts, "statistical_parity_gap").method == "binomial"
    regressor = LinearRegression().fit(X, y)
    assert certificate(regressor, parts, "statistical_parity_gap").method == "binomial"


def test_models_of_fairlearn(parts):
    """A `ThresholdOptimizer` asks for the groups, and is not asked for what it does not offer."""
    postprocessing = pytest.importorskip("fairlearn.postprocessing")
    (X, y, groups), (X_new, _, groups_new) = parts
    model = postprocessing.ThresholdOptimizer(
        estimator=LogisticRegression(), constraints="demographic_parity", predict_method="predict_proba"
    ).fit(X, y, sensitive_features=groups)
    with pytest.raises(TypeError, match=r"set_predict_request\(sensitive_features=True\)"):
        certificate(model, parts)
    with config_context(enable_metadata_routing=True):
        model.set_predict_request(sensitive_features=True)
    assert certificate(model, parts).gap < 0.2

    class Wrapped(ClassifierMixin, BaseEstimator):
        """Predicts the same in every call, and with the groups through metadata routing."""

        __metadata_request__predict: ClassVar = {"sensitive_features": True}
        classes_ = np.unique(y)

        def __sklearn_is_fitted__(self):
            return True

        def fit(self, X, y):
            return self

        def predict(self, X, sensitive_features):
            return model.predict(X, sensitive_features=sensitive_features, random_state=0)

    found = certificate(Wrapped(), parts)
    predicted = model.predict(X_new, sensitive_features=groups_new, random_state=0)
    assert found.gap == independence_gap(None, predicted, sensitive_features=groups_new)


def test_rows_that_are_not_numbers_say_so_where_they_are_compared_with_those_of_the_fit(parts):
    (X, y, _), (X_new, y_new, groups_new) = parts
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    new = pd.DataFrame(X_new, columns=table.columns)
    model = RateParityClassifier(kappa=None).fit(table, y)
    options = {"sensitive_features": groups_new, "metric": "independence_gap"}
    with pytest.raises(ValueError, match="X has dates or durations in the column 'x1'"):
        certify(model, new.assign(x1=pd.Timestamp("2020-01-31")), y_new, **options)
    with pytest.raises(ValueError, match="X has text in the column 'x1'"):
        certify(model, new.assign(x1="clerk"), y_new, **options)
    head = FairHeadClassifier(LogisticRegression(), RateParityClassifier(kappa=None)).fit(X, y)
    with pytest.raises(ValueError, match="X must have two dimensions"):
        certify(head, X_new[:, 0], y_new, **options)


def test_groups_that_the_fit_ignored_need_no_rows(parts):
    (X, y, groups), (X_new, y_new, groups_new) = parts
    groups = np.where(np.arange(y.size) < 2, "few", groups)
    model = RateParityClassifier(kappa=0.3, small_groups="ignore").fit(X, y, sensitive_features=groups)
    assert model.ignored_groups_ == ["few"]
    options = {"sensitive_features": groups_new, "metric": "independence_gap"}
    assert certify(model, X_new, y_new, **options).n_samples == y_new.size


@pytest.mark.parametrize("metric", ["predictive_equality_gap", "equal_opportunity_gap"])
def test_columns_of_booleans_are_combined_where_groups_may_not_overlap(parts, logistic, metric):
    _, (X, y, groups) = parts
    columns = pd.DataFrame({"one": groups == "one", "first half": np.arange(y.size) < y.size // 2})
    combined = columns["one"].map(str) + columns["first half"].map(str)
    by_columns, by_column = (
        certify(logistic, X, y, sensitive_features=features, metric=metric) for features in (columns, combined)
    )
    assert by_columns.gap == by_column.gap
    assert by_columns.upper_bound == pytest.approx(by_column.upper_bound)


def test_groups_that_overlap_in_the_model_are_not_combined(parts):
    (X, y, groups), (X_new, y_new, groups_new) = parts
    seen, new = (
        pd.DataFrame({"one": g == "one", "first half": np.arange(g.size) % 4 < 2}) for g in (groups, groups_new)
    )
    model = RateParityClassifier(kappa=0.3).fit(X, y, sensitive_features=seen)
    with pytest.raises(ValueError, match=r"groups that overlap, \['one', 'first half'\], and independence_gap would"):
        certify(model, X_new, y_new, sensitive_features=new, metric="independence_gap")
    assert certify(model, X_new, y_new, sensitive_features=new, metric="rate_gap").n_samples == y_new.size


def test_functions_of_the_user(logistic, parts):
    def accuracy_gap(y_true, y_pred, *, sensitive_features, sample_weight=None):
        return np.ptp([(y_true[r] == y_pred[r]).mean() for r in (sensitive_features == g for g in ("one", "other"))])

    found = certificate(logistic, parts, accuracy_gap, n_resamples=200, random_state=0)
    assert (found.metric, found.method, found.is_distribution_free) == ("accuracy_gap", "bootstrap", False)
    assert found.gap < found.upper_bound
    assert found.cells["n_samples"].sum() == 600
    assert "in the limit of many rows only" in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1; got 0.0"),
        ({"delta": 1.5}, "delta must lie strictly between 0 and 1"),
        ({"metric": pairwise_ranking_gap}, r"pairwise_ranking_gap compares rows of one query.* Choose a metric of"),
        ({"metric": "parity"}, r"metric must be one of \['Ina'.*got 'parity'"),
        ({"method": "exact"}, r"method must be one of \['auto', 'betting', 'hoeffding', 'unconditional'"),
        ({"method": "dkw"}, "method='dkw' has no bound for independence_gap"),
        ({"kappa": -0.1}, "kappa must be a number of at least 0 or None"),
        ({"sensitive_features": None}, "independence_gap compares groups: pass sensitive_features"),
        ({"sensitive_features": ["a", "b"]}, "must have the same number of rows; got .*'sensitive_features': 2"),
        ({"sensitive_features": ["a"] * 600}, "all 600 rows are of one group, 'a'"),
        ({"metric": "loss_parity_gap", "loss_bound": (1, 0)}, r"loss_bound must be a positive number or a pair"),
        ({"metric": "loss_parity_gap", "loss_bound": "ten"}, r"loss_bound must be a positive number or a pair"),
        ({"metric": "loss_parity_gap", "loss_bound": np.inf}, r"loss_bound must be a positive number or a pair"),
        ({"metric": "loss_parity_gap", "loss_bound": (0, 1, 2)}, r"loss_bound must be a positive number or a pair"),
        ({"metric_params": {"sample_weight": [1.0] * 600}}, "'sample_weight' is no argument to give"),
        ({"metric_params": {"return_groups": True}}, "'return_groups' is no argument to give"),
        ({"metric": "loss_parity_gap", "loss_bound": 0.01}, "losses of these rows lie between"),
        ({"metric": "conditional_parity"}, r"conditional_parity_gap needs the arguments \['strata'\]; give them in"),
        ({"metric": "group_rates", "metric_params": {"rule": "flor"}}, "rule must be one of .*'floor'.*got 'flor'"),
        ({"metric": "minority_share"}, r"minority_share needs the arguments \['minority'\]"),
        ({"method": "bootstrap", "n_resamples": 100}, "n_resamples=100 are too few for a quantile of 0.05; use 200"),
    ],
)
def test_bad_arguments(logistic, parts, options, message):
    with pytest.raises(ValueError, match=message):
        certificate(logistic, parts, **options)


def test_empty_cells_are_named(logistic, parts):
    X, y, groups = parts[1]
    kept = (groups == "one") | (y == y.min())
    with pytest.raises(ValueError, match=r"(?s)Rows per cell:.*other +[0-9]+ +0"):
        certify(logistic, X[kept], y[kept], sensitive_features=groups[kept], metric="equal_opportunity_gap")
    with pytest.raises(ValueError, match="Rows per cell"):
        certify(
            logistic, X[kept], y[kept], sensitive_features=groups[kept], metric="separation_gap",
            metric_params={"on_empty": "nan"},
        )  # fmt: skip


@pytest.mark.parametrize(
    "wrapped",
    [
        pytest.param(lambda model: model, id="alone"),
        pytest.param(lambda model: make_pipeline(StandardScaler(), model), id="pipeline"),
        pytest.param(lambda model: GridSearchCV(model, {"kappa": [0.3]}, cv=2), id="search"),
        pytest.param(lambda model: FairHeadClassifier(GaussianNB(), model, random_state=0), id="head"),
    ],
)
def test_a_group_of_the_model_without_rows(parts, wrapped):
    (X, y, groups), (X_new, y_new, groups_new) = parts
    three = np.where(X[:, 0] > 1, "third", groups)
    with config_context(enable_metadata_routing=True):
        model = wrapped(RateParityClassifier(kappa=0.3)).fit(X, y, sensitive_features=three)
    with pytest.raises(ValueError, match=r"no rows of the groups \['third'\].*rows by group: \{'one'"):
        certify(model, X_new, y_new, sensitive_features=groups_new, metric="independence_gap")


def test_metrics_that_do_not_fit_the_model(parts):
    (X, y, _), _ = parts
    only_predict = make_pipeline(StandardScaler(), OnlyPredict()).fit(X, y)
    assert certificate(only_predict, parts).method == "unconditional"
    with pytest.raises(TypeError, match=r"has none of \['decision_function', 'predict_proba'\]"):
        certificate(only_predict, parts, "group_auc_gap")
    with pytest.raises(ValueError, match="LinearRegression is a regressor"):
        certificate(LinearRegression().fit(X, y), parts)
    with pytest.raises(ValueError, match=r"must hold probabilities.*statistical_parity_gap compares.*of a regressor"):
        certificate(LinearRegression().fit(X, 10 * y), parts, "wasserstein_gap")


class OnlyPredict(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


def test_names_at_the_top():
    assert fairconstrained.certify is certify


@pytest.mark.parametrize(
    ("kappa", "expected"),
    [(0.1, 0.1), (None, None), ([0.1, 0.1], 0.1), ([0.1, 0.2], None), ([0.1, None], 0.1), ([], None)],
)
def test_the_bound_of_a_model_is_the_one_of_all_its_constraints(kappa, expected):
    for wrapped in (lambda model: model, make_pipeline, FrozenEstimator):
        assert model_kappa(wrapped(RateParityClassifier(kappa=kappa))) == expected


def test_the_bound_of_a_model_that_chooses_it_is_the_chosen_one(parts):
    (X, y, groups), _ = parts
    model = PartialParityClassifierCV(kappas=[0.3, 0.5], bound=1.0, cv=2)
    assert model_kappa(model) is None
    model.fit(X, y, sensitive_features=groups)
    assert model_kappa(model) == model_kappa(make_pipeline(StandardScaler(), model)) == model.kappa_


class TestFloors:
    """A floor is bounded from below: its certificate bounds the complement, and ``kappa`` is the least rate."""

    FLOOR: ClassVar[dict] = {"rate": "true_positive", "rule": "floor"}

    def floor(self, logistic, parts):
        X, y, groups = parts[1]
        positive = (y == logistic.classes_[1]) & (logistic.predict(X) == logistic.classes_[1])
        is_positive = y == logistic.classes_[1]
        return min(positive[groups == g].sum() / is_positive[groups == g].sum() for g in np.unique(groups))

    def test_passes_below_the_bound_only(self, logistic, parts):
        found = certificate(logistic, parts, "group_rates", metric_params=self.FLOOR, kappa=0.9)
        assert found.gap == pytest.approx(1 - self.floor(logistic, parts))
        certified = 1 - found.upper_bound
        assert certified < self.floor(logistic, parts) < 0.9
        assert not found.passed
        for kappa, passes in ((certified - 1e-6, True), (certified + 1e-6, False)):
            again = certificate(logistic, parts, "group_rates", metric_params=self.FLOOR, kappa=kappa)
            assert again.passed is passes
            assert again.kappa == kappa
            assert again.largest(kappa) == pytest.approx(1 - kappa)

    def test_rows_that_suffice_are_those_of_the_complement(self, logistic, parts):
        found = certificate(logistic, parts, "group_rates", metric_params=self.FLOOR)
        least = self.floor(logistic, parts)
        assert found.sample_size(least + 0.01) is None
        assert found.sample_size(least - 0.01) > found.sample_size(least - 0.02)

    def test_loss_bound_of_a_floor_is_that_of_the_losses(self, logistic, parts):
        X, y, groups = parts[1]
        margins = logistic.decision_function(X) * np.where(y == logistic.classes_[1], 1, -1)
        losses = np.logaddexp(0, -margins)
        options = {"metric": "group_rates", "metric_params": {"rate": "log_loss", "rule": "floor"}}
        found = certificate(logistic, parts, **options, loss_bound=(-1, losses.max()))
        assert found.gap == pytest.approx(1 - min(losses[groups == g].mean() for g in np.unique(groups)))
        assert found.gap < found.upper_bound < 2
        between = rf"lie between {losses.min():g} and {losses.max():g}\."
        with pytest.raises(ValueError, match=rf"loss_bound=\(0, 0.5\) does not hold: losses of these rows {between}"):
            certificate(logistic, parts, **options, loss_bound=0.5)

    def test_kappa_of_the_model_is_that_of_its_floor(self, parts):
        (X, y, groups), _ = parts
        floor = GroupRates(**self.FLOOR, kappa=0.5)
        model = RateParityClassifier(constraint=floor).fit(X, y, sensitive_features=groups)
        assert certificate(model, parts, "group_rates", metric_params=self.FLOOR).kappa == 0.5
        assert certificate(model, parts).kappa is None  # of a gap

    @pytest.mark.parametrize("rule", ["floor", "ceiling"])
    def test_of_a_single_group(self, logistic, parts, rule):
        """One rate of known rows: Clopper and Pearson's bound. A difference still needs two groups."""
        X, y, _ = parts[1]
        is_positive = y == logistic.classes_[1]
        share = ((logistic.predict(X) == y) == (rule == "ceiling"))[is_positive].mean()
        n, k = is_positive.sum(), round(share * is_positive.sum())
        options = {"metric": "group_rates", "sensitive_features": ["all"] * len(y)}
        found = certificate(logistic, parts, **options, metric_params={"rate": "true_positive", "rule": rule})
        assert found.gap == pytest.approx(share)
        assert found.upper_bound == pytest.approx(beta.ppf(0.95, k + 1, n - k), abs=1e-9)
        with pytest.raises(ValueError, match="all 600 rows are of one group, 'all'"):
            certificate(logistic, parts, **options, metric_params={"rate": "true_positive"})
