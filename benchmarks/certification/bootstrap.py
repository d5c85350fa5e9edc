"""How often the gap of the population exceeds the bound of the bootstrap: reported as it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.certification.coverage import DELTA, row
from benchmarks.certification.populations import Scenario, sample, scenarios
from fairconstrained.certification.bootstrap import Replicates
from fairconstrained.certification.sample import strata_of

__all__ = ["measure"]

_DRAWS, _QUICK_DRAWS, _RESAMPLES = 1000, 10, 500

Statistic = Callable[[np.ndarray], float]


class Quick(NamedTuple):
    """A metric of two groups without its checks, which would take longer than all the rest.

    Attributes
    ----------
    name : str
    of : callable
        From labels (boolean), scores and whether rows are of the second group to the metric of some of the rows.
    """

    name: str
    of: Callable[[np.ndarray, np.ndarray, np.ndarray], Statistic]


def _rate_gap(among: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Statistic]:
    """Gap of the rates of positive scores among some of the rows."""

    def of(positive: np.ndarray, scores: np.ndarray, second: np.ndarray) -> Statistic:
        weights, hits = among(positive).astype(float), (among(positive) & (scores > 0)).astype(float)

        def gap(rows: np.ndarray) -> float:
            groups = second[rows]
            rates = np.bincount(groups, hits[rows]) / np.bincount(groups, weights[rows])
            return float(abs(rates[0] - rates[1]))

        return gap

    return of


def _loss_gap(positive: np.ndarray, scores: np.ndarray, second: np.ndarray) -> Statistic:
    losses = np.logaddexp(0, np.where(positive, -scores, scores))

    def gap(rows: np.ndarray) -> float:
        means = np.bincount(second[rows], losses[rows]) / np.bincount(second[rows])
        return float(abs(means[0] - means[1]))

    return gap


def _largest_rank_gap(positive: np.ndarray, scores: np.ndarray, second: np.ndarray) -> Statistic:
    _, places = np.unique(scores, return_inverse=True)
    n_places = places.max() + 1

    def gap(rows: np.ndarray) -> float:
        counts = np.bincount(second[rows] * n_places + places[rows], minlength=2 * n_places).reshape(2, -1)
        shares = np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True)
        return float(np.abs(shares[0] - shares[1]).max())

    return gap


def _auc_gap(positive: np.ndarray, scores: np.ndarray, second: np.ndarray) -> Statistic:
    """Difference of the AUCs within the two groups, as a function of the numbers of the rows."""
    _, places = np.unique(scores, return_inverse=True)
    n_places = places.max() + 1
    cells = (2 * second + positive) * n_places + places

    def gap(rows: np.ndarray) -> float:
        counts = np.bincount(cells[rows], minlength=4 * n_places).reshape(4, -1)
        below = np.cumsum(counts, axis=1) - counts / 2
        aucs = [counts[k + 1] @ below[k] / (counts[k].sum() * counts[k + 1].sum()) for k in (0, 2)]
        return float(abs(aucs[0] - aucs[1]))

    return gap


QUICK = [
    Quick("independence_gap", _rate_gap(np.ones_like)),
    Quick("equal_opportunity_gap", _rate_gap(np.asarray)),
    Quick("loss_parity_gap", _loss_gap),
    Quick("statistical_parity_gap", _largest_rank_gap),
    Quick("intra_group_auc_gap", _auc_gap),
]


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """One row for every metric and population."""
    found = [_summary(scenario, of, quick) for scenario in scenarios(quick) for of in QUICK]
    return {"bootstrap": pd.DataFrame(found)}


def _summary(scenario: Scenario, of: Quick, quick: bool) -> dict[str, Any]:
    rng, bounds = np.random.default_rng(0), []
    for draw in range(_QUICK_DRAWS if quick else _DRAWS):
        rows = scenario.population.draw(scenario.n_samples, rng)
        try:
            taken = sample(of.name, {}, rows)
        except ValueError:  # an empty cell
            continue
        y, scores, groups = rows
        statistic = of.of(y == 1, scores, (groups == np.unique(groups)[1]).astype(int))
        if draw == 0:
            np.testing.assert_allclose(statistic(np.arange(y.size)), taken.gap, atol=1e-12)
        begin = time.process_time()
        strata, _ = strata_of(taken.metric, {}, groups, y, taken.response)
        bound = Replicates.of(statistic, strata, _RESAMPLES, draw).upper(1 - DELTA)
        bounds.append((bound, bound - taken.gap, time.process_time() - begin))
    return row(scenario, of.name, {}, "bootstrap", False, scenario.population.gap(of.name, {}), np.array(bounds))
