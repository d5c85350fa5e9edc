"""Random problems: a seed says everything, so that ``draw_problem(seed)`` reproduces one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.trial.other_problems import fair_ranker, loss_parity, minority_rate, neyman_pearson
from benchmarks.trial.parity_problems import auc_fair, partial_parity, rate_parity, regression
from benchmarks.trial.problem import Problem

__all__ = ["FAMILIES", "draw_problem"]

#: How often problems are drawn for an estimator.
FAMILIES: dict[Callable[[np.random.Generator, int], Problem], float] = {
    partial_parity: 0.32,
    rate_parity: 0.22,
    auc_fair: 0.14,
    regression: 0.1,
    neyman_pearson: 0.08,
    loss_parity: 0.06,
    minority_rate: 0.04,
    fair_ranker: 0.04,
}


def draw_problem(seed: int) -> Problem:
    """The problem of a seed.

    Parameters
    ----------
    seed : int

    Returns
    -------
    problem : Problem
        Problem that depends on nothing but the seed.
    """
    rng = np.random.default_rng(seed)
    families = list(FAMILIES)
    draw = families[int(rng.choice(len(families), p=list(FAMILIES.values())))]
    return draw(rng, seed)
