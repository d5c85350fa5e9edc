"""Populations whose gaps are known: finitely many kinds of rows with their probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from benchmarks._common import load_acs_income
from fairconstrained import metrics
from fairconstrained.certification.sample import Sample, resolve_metric

__all__ = ["LOSS_BOUND", "Population", "Scenario", "acs_population", "scenarios"]

#: Scores are clipped to [-4, 4], so that no log loss exceeds this.
LOSS_BOUND = float(np.logaddexp(0, 4))
_N_SCORES = 100


@dataclass(frozen=True, eq=False)
class Population:
    """Kinds of rows; a score is what a fixed model says of them.

    Attributes
    ----------
    y, scores, groups : ndarray of shape (n_kinds,)
    probabilities : ndarray of shape (n_kinds,)
    """

    y: np.ndarray
    scores: np.ndarray
    groups: np.ndarray
    probabilities: np.ndarray

    def draw(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels, scores and groups of independent rows."""
        kinds = rng.choice(self.probabilities.size, n_samples, p=self.probabilities)
        return self.y[kinds], self.scores[kinds], self.groups[kinds]

    def gap(self, name: str, params: Mapping[str, Any]) -> float:
        """Exact gap that `certify` bounds: the metric of the kinds of rows with their probabilities as weights."""
        weights: dict[str, Any] = {"sensitive_features": self.groups, "sample_weight": self.probabilities}
        value = float(resolve_metric(name, params)[0](self.y, response(name, self.scores), **weights, **params))
        return 1 - value if name == "minority_share" else value


def response(name: str, scores: np.ndarray) -> np.ndarray:
    """Response that the metric reads: decisions, scores or probabilities."""
    kind = metrics.METRICS[name].response if name in metrics.METRICS else "decision_function"
    if kind == "predict":
        return (scores > 0).astype(int)
    return 1 / (1 + np.exp(-scores)) if kind == "predict_proba" else scores


def sample(name: str, params: Mapping[str, Any], rows: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Sample:
    """Sample that `certify` makes of rows."""
    y, scores, groups = rows
    return Sample(
        resolve_metric(name, params)[0], y, response(name, scores), groups, dict(params), loss_bound=(0.0, LOSS_BOUND)
    )


def built_population(share: float, apart: bool, positives: tuple[float, float] = (0.5, 0.4)) -> Population:
    """Two groups; scores are normal given group and label, on a grid of 100, so that there are ties.

    Parameters
    ----------
    share : float
        Share of group b.
    apart : bool
        Whether b has fewer positives and lower scores, or all gaps are 0.
    positives : tuple of float
        Shares of positives where scores are not lower, and where they are.
    """
    grid = np.linspace(-4, 4, _N_SCORES)
    parts = []
    for group, of_group in (("a", 1 - share), ("b", share)):
        lower = apart and group == "b"
        for label, of_label in ((1, positives[lower]), (0, 1 - positives[lower])):
            density = norm.pdf(grid, (1.0 if label else -0.8) - 0.5 * lower, 1.3 if lower else 1.1)
            parts.append(
                (
                    np.full(_N_SCORES, label),
                    grid,
                    np.full(_N_SCORES, group),
                    of_group * of_label * density / density.sum(),
                )
            )
    y, scores, groups, probabilities = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Population(y, scores, groups, probabilities)


@cache
def acs_population(quick: bool) -> Population:
    """ACS income 2018, groups by sex: a logistic regression of 5,000 rows, and the others (20,000 in a quick run)."""
    table = load_acs_income()
    order = np.random.default_rng(0).permutation(table.y.size)[: 25_000 if quick else None]
    fit, rest = order[:5000], order[5000:]
    model = LogisticRegression(max_iter=500).fit(table.X[fit], table.y[fit])
    scores = np.clip(model.decision_function(table.X[rest]), -4, 4)
    return Population((table.y[rest] > 0).astype(int), scores, table.groups[rest], np.full(rest.size, 1 / rest.size))


@dataclass(frozen=True, eq=False)
class Scenario:
    """A population and the size of the samples."""

    name: str
    population: Population
    n_samples: int
    #: The smaller group.
    minority: str


def scenarios(quick: bool) -> list[Scenario]:
    """With a gap, without one, with few rows, with few positives, and resampled from real rows."""
    return [
        Scenario("gaps", built_population(0.3, apart=True), 2000, "b"),
        Scenario("gaps, 20 rows", built_population(0.1, apart=True), 200, "b"),
        Scenario("no gaps, 20 rows", built_population(0.1, apart=False), 200, "b"),
        Scenario("few positives", built_population(0.2, apart=True, positives=(0.06, 0.06)), 1500, "b"),
        Scenario("acs", acs_population(quick), 2000, "female"),
    ]
