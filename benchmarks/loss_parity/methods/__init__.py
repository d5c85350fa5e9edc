"""Methods that train the network of `benchmarks.loss_parity.network`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch

from benchmarks.loss_parity.methods import _cooper, _fairret, _humancompatible
from benchmarks.loss_parity.methods._ours import fit, train, train_penalty
from benchmarks.loss_parity.methods._setting import BATCH, Outcome, Setting, Visit
from fairconstrained.solvers import (
    SGD,
    SSLALM,
    NuPI,
    PenaltyBarrier,
    StochasticALM,
    StochasticGhost,
    StochasticSwitching,
)

__all__ = ["METHODS", "Method", "Outcome", "Setting", "Visit", "published"]


@dataclass(frozen=True)
class Method:
    """A method.

    Attributes
    ----------
    label : str
        Name in figures and tables.
    run : callable
        Trains on ``setting.train``, for about ``setting.seconds`` if they are not None, and calls ``setting.record`` on
        the way; ``setting.follow`` does both. What is reported is computed from the parameters, afterwards.
    ends_itself : bool
        Whether there is no time limit.
    requires : tuple of str
        Modules without which it is left out.
    published : dict from column to float
        The paper's means and standard deviations of its experiment, shown beside ours; see `published`.
    like : str
        The method of which it is another implementation; it is drawn in that one's colour, dashed.
    """

    label: str
    run: Callable[[Setting], Outcome]
    ends_itself: bool = False
    requires: tuple[str, ...] = ()
    published: Mapping[str, float] = field(default_factory=dict)
    like: str = ""


def published(train: str, test: str, train_gap: float) -> dict[str, float]:
    """A line of the published table 3, and the mean gap on the training part.

    Parameters
    ----------
    train, test : str
        Ind, Sp, Ina, Sf and Wd of the part, each as "mean+-deviation", or "mean" where the deviation cannot be read.
    train_gap : float
    """
    found = {"train_gap": train_gap}
    for part, line in (("train", train), ("test", test)):
        for name, cell in zip(("Ind", "Sp", "Ina", "Sf", "Wd"), line.split(), strict=True):
            mean, _, deviation = cell.partition("+-")
            found[f"{part}_{name}"] = float(mean)
            if deviation:
                found[f"{part}_{name}_sd"] = float(deviation)
    return found


_HUMANCOMPATIBLE, _COOPER = ("humancompatible.train",), ("cooper",)

#: Methods by name, in the order of tables and figures.
METHODS = {
    # without constraints; the step length is that of the authors' configuration
    "sgd": Method(
        "SGD",
        partial(train, solver=SGD(batch_size=BATCH, learning_rate=0.005)),
        published=published(
            train="0.094443+-0.004259 0.132486+-0.006998 0.200677 0.114701+-0.006428 0.007532+-0.000458",
            test="0.096775+-0.005544 0.176032+-0.016177 0.214565+-0.001823 0.171057 0.008435+-0.000438",
            train_gap=0.063,
        ),
    ),
    # Algorithms 1, 2 without and with smoothing, and 3, with the published parameters
    "stochastic_ghost": Method(
        "ghost",
        partial(train, solver=StochasticGhost(batch_size=BATCH)),
        published=published(
            train="0.047964 0.049369 0.273076+-0.024253 0.200477+-0.037679 0.002160+-0.001485",
            test="0.049311 0.095833 0.275698+-0.021965 0.211302+-0.032551 0.002811+-0.002232",
            train_gap=0.034,
        ),
    ),
    "alm": Method(
        "ALM",
        partial(train, solver=StochasticALM(batch_size=BATCH)),
        published=published(
            train="0.058148+-0.006806 0.061222+-0.015689 0.239594+-0.012417 0.196727+-0.011451 0.002603+-0.000449",
            test="0.057785+-0.011813 0.113852+-0.014183 0.243527+-0.007427 0.221226+-0.016810 0.003345+-0.000567",
            train_gap=0.017,
        ),
    ),
    "ssl_alm": Method(
        "SSL-ALM",
        partial(train, solver=SSLALM(batch_size=BATCH)),
        published=published(
            train="0.065700+-0.008725 0.071423+-0.015466 0.233350+-0.017184 0.186114+-0.013367 0.003141+-0.000789",
            test="0.066243+-0.011337 0.117294+-0.022977 0.240095+-0.011787 0.215484+-0.021818 0.003987+-0.000941",
            train_gap=0.026,
        ),
    ),
    "stochastic_switching": Method(
        "switching",
        partial(train, solver=StochasticSwitching(batch_size=BATCH)),
        published=published(
            train="0.077298+-0.028892 0.114662+-0.028553 0.223959+-0.017304 0.132848+-0.014592 0.001401",
            test="0.080345+-0.029126 0.144289+-0.050398 0.228739+-0.012889 0.175419+-0.030738 0.001724",
            train_gap=0.033,
        ),
    ),
    # figure 5 of the paper
    "switching_equal_steps": Method(
        "switching, equal steps",
        partial(train, solver=StochasticSwitching(batch_size=BATCH, learning_rate=0.02, constraint_rate=0.02)),
    ),
    # with the defaults of the authors' newer package, and Adam
    "nupi": Method("nuPI", partial(train, solver=NuPI(batch_size=BATCH))),
    "penalty_barrier": Method(
        "penalty-barrier", partial(train, solver=PenaltyBarrier(batch_size=BATCH, smoothing=2.0))
    ),
    # with a regulariser, and with a penalty
    "sgd_fairret": Method(
        "SGD, fairret",
        _fairret.run,
        requires=("fairret",),
        published=published(
            train="0.090960+-0.012313 0.120788+-0.017138 0.201242 0.106497 0.004973+-0.000744",
            test="0.093657+-0.009546 0.174371+-0.018708 0.213142 0.180496+-0.022141 0.005847+-0.000829",
            train_gap=0.066,
        ),
    ),
    "penalty": Method("penalty", train_penalty),
    # without constraints, with its own number of epochs
    "adam": Method("Adam", partial(fit, solver="adam"), ends_itself=True),
    # the default of `fairconstrained.LossParityClassifier`, also in a Moreau envelope with the published parameters
    "auto": Method("auto", partial(fit, solver="auto"), ends_itself=True),
    "auto_envelope": Method(
        "auto, envelope", partial(fit, solver="auto", solver_options={"smoothing": 2.0}), ends_itself=True, like="auto"
    ),
    # the outside references, with the published parameters
    "humancompatible_alm": Method(
        "ALM, humancompatible",
        partial(_humancompatible.run, smooth=False),
        requires=_HUMANCOMPATIBLE,
        like="alm",
    ),
    "humancompatible_ssl_alm": Method(
        "SSL-ALM, humancompatible",
        partial(_humancompatible.run, smooth=True),
        requires=_HUMANCOMPATIBLE,
        like="ssl_alm",
    ),
    # gradient descent and ascent with the optimisers and rates of Cooper's README
    "cooper_lagrangian": Method(
        "Lagrangian, Cooper",
        partial(_cooper.run, primal=partial(torch.optim.Adam, lr=1e-3), dual_rate=1e-2),
        requires=_COOPER,
    ),
    # with the paper's parameters of ALM
    "cooper_alm": Method(
        "ALM, Cooper",
        partial(
            _cooper.run,
            primal=partial(torch.optim.SGD, lr=_humancompatible.LEARNING_RATE),
            dual_rate=_humancompatible.DUAL_RATE,
            penalty=_humancompatible.PENALTY,
        ),
        requires=_COOPER,
        like="alm",
    ),
}
