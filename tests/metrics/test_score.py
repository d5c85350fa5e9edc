"""Distances between whole score distributions, against scipy and against arithmetic done by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from fairconstrained.metrics import score_curve, statistical_parity_gap, wasserstein_gap


def wasserstein_of(first, second, **options):
    group = np.repeat([0, 1], [len(first), len(second)])
    return wasserstein_gap(None, [*first, *second], sensitive_features=group, **options)


class TestStatisticalParity:
    def test_by_hand(self):
        # Above 4: a 1/2, b 0/2. Above 2: a 2/2, b 1/2.
        score, group = [5, 3, 4, 1], list("aabb")
        gap, table = statistical_parity_gap(None, score, sensitive_features=group, return_groups=True)
        assert gap == 0.5
        assert table["threshold"].tolist() == [4.0, 4.0]
        assert table["rank"].tolist() == [0.5, 0.0]
        assert list(table.columns) == ["n_samples", "weight", "threshold", "rank"]

    @pytest.mark.parametrize("decimals", [8, 1], ids=["distinct", "tied"])
    def test_same_as_scipy(self, decimals):
        rng = np.random.default_rng(0)
        for shift in (0.0, 0.4, 3.0):
            first, second = rng.normal(size=80).round(decimals), rng.normal(shift, 2, 50).round(decimals)
            gap = statistical_parity_gap(
                None, np.concatenate([first, second]), sensitive_features=np.repeat([0, 1], [80, 50])
            )
            assert gap == pytest.approx(ks_2samp(first, second, method="asymp").statistic)

    def test_mean_over_pairs_uses_scipys_distances(self):
        rng = np.random.default_rng(1)
        samples = [rng.normal(mean, size=40) for mean in (0, 0.3, 1)]
        distances = [ks_2samp(samples[g], samples[h], method="asymp").statistic for g, h in [(0, 1), (0, 2), (1, 2)]]
        score, group = np.concatenate(samples), np.repeat([0, 1, 2], 40)
        gap = statistical_parity_gap(None, score, sensitive_features=group, agg="mean")
        assert gap == pytest.approx(np.mean(distances))

    def test_constant_score(self):
        assert statistical_parity_gap(None, np.zeros(5), sensitive_features=list("aabbb")) == 0.0


class TestWasserstein:
    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            ([0.2, 0.4], [0.8, 0.6], 0.16),  # both quantiles move by 0.4
            ([0.0, 1.0], [0.5], 0.25),  # each half moves by 0.5
            ([0.0, 0.6], [0.0, 0.3, 0.6], 0.03),  # u in (1/3, 1/2) and (1/2, 2/3) differ by 0.3: 2/6 * 0.09
            ([0.3, 0.3], [0.3], 0.0),
        ],
    )
    def test_by_hand(self, first, second, expected):
        assert wasserstein_of(first, second) == pytest.approx(expected, abs=1e-15)

    def test_samples_of_different_size_against_repeated_sorted_samples(self):
        rng = np.random.default_rng(0)
        first, second = rng.uniform(size=12), rng.beta(2, 5, size=18)
        # Both repeated to 36 rows have their quantiles on one grid.
        differences = np.repeat(np.sort(first), 3) - np.repeat(np.sort(second), 2)
        assert wasserstein_of(first, second) == pytest.approx(np.mean(differences**2))

    def test_weights_by_hand(self):
        # a is 0 with mass 3/4 and 1 with mass 1/4; b is 0: 1/4.
        gap = wasserstein_of([0.0, 1.0], [0.0], sample_weight=[3, 1, 2])
        assert gap == pytest.approx(0.25)

    def test_bins_by_hand(self):
        # Two bins with centres 1/4 and 3/4; 0.5 belongs to the upper one, 1.0 too.
        assert wasserstein_of([0.1, 0.49], [0.5, 1.0], n_bins=2) == pytest.approx(0.25)
        assert wasserstein_of([0.1, 0.9], [0.4, 0.45], n_bins=2) == pytest.approx(0.125)
        assert wasserstein_of([0.1, 0.9], [0.4, 0.45], n_bins=1) == 0.0

    @pytest.mark.parametrize("n_bins", [7, 50])
    def test_bins_are_those_of_numpy(self, n_bins):
        rng = np.random.default_rng(3)
        first, second = rng.uniform(size=40).round(2), rng.beta(2, 5, size=40).round(2)
        edges = np.linspace(0, 1, n_bins + 1)
        quantiles = [
            np.repeat((edges[1:] + edges[:-1]) / 2, np.histogram(sample, bins=edges)[0]) for sample in (first, second)
        ]
        expected = np.mean((quantiles[0] - quantiles[1]) ** 2)
        assert wasserstein_of(first, second, n_bins=n_bins) == pytest.approx(expected)

    def test_many_bins_approach_the_exact_distance(self):
        rng = np.random.default_rng(4)
        first, second = rng.uniform(size=30), rng.beta(2, 5, size=45)
        exact = wasserstein_of(first, second)
        assert wasserstein_of(first, second, n_bins=10**5) == pytest.approx(exact, abs=1e-4)

    def test_three_groups_and_table(self):
        # Points at 0, 0.2, 0.6: pairs 0.04, 0.36, 0.16.
        options = {"sensitive_features": list("abc"), "return_groups": True}
        gap, table = wasserstein_gap(None, [0.0, 0.2, 0.6], **options)
        assert gap == pytest.approx(0.36)
        assert table["gap"].tolist() == pytest.approx([0.36, 0.16, 0.36])
        assert table["mean_score"].tolist() == pytest.approx([0.0, 0.2, 0.6])
        gap, _ = wasserstein_gap(None, [0.0, 0.2, 0.6], agg="mean", **options)
        assert gap == pytest.approx(0.56 / 3)

    def test_raw_scores_are_refused(self):
        with pytest.raises(ValueError, match=r"probabilities in \[0, 1\]; its range is \[-1, 0.5\]"):
            wasserstein_of([-1.0], [0.5])
        with pytest.raises(ValueError, match="Pass predict_proba"):
            wasserstein_of([0.3], [1.2])

    def test_rounding_of_probabilities_is_forgiven(self):
        assert wasserstein_of([1 + 1e-7], [0.0], n_bins=2) == 0.25

    @pytest.mark.parametrize("n_bins", [0, -3, 2.5, "auto", True])
    def test_number_of_bins(self, n_bins):
        with pytest.raises(ValueError, match="n_bins must be an integer of at least 1"):
            wasserstein_of([0.1], [0.5], n_bins=n_bins)


class TestScoreCurve:
    def test_by_hand(self):
        curve = score_curve(None, [3, 1, 3, 2, 2], sensitive_features=list("aabbb"))
        expected = pd.DataFrame(
            # above 3, above 2, above 1, everybody
            {"a": [0, 1 / 2, 1 / 2, 1], "b": [0, 1 / 3, 1, 1]},
            index=pd.Index([3.0, 2.0, 1.0, -np.inf], name="threshold"),
        )
        expected.columns.name = "group"
        pd.testing.assert_frame_equal(curve, expected)

    def test_largest_distance_to_the_diagonal_is_statistical_parity(self):
        rng = np.random.default_rng(0)
        score, group = rng.normal(size=60).round(1), rng.integers(0, 2, 60)
        weight = rng.uniform(size=60)
        data = {"y_true": None, "y_score": score, "sensitive_features": group, "sample_weight": weight}
        curve = score_curve(**data)
        assert (curve[0] - curve[1]).abs().max() == pytest.approx(statistical_parity_gap(**data))
        assert (curve.iloc[-1] == 1).all()
        assert (curve.iloc[0] == 0).all()

    def test_combined_groups_stay_tuples(self):
        curve = score_curve(None, [1, 2], sensitive_features=[["f", "old"], ["m", "old"]])
        assert curve.columns.tolist() == [("f", "old"), ("m", "old")]
