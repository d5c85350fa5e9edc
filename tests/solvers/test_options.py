"""Options of solvers are checked when a solver is made: by name, with the value and what is allowed."""

import re
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import pytest

from fairconstrained import LossParityClassifier, PartialParityClassifier
from fairconstrained.checks.docstrings import entries
from fairconstrained.datasets import make_biased_classification
from fairconstrained.solvers import (
    IPC,
    IQRC,
    PLADA,
    SOLVERS,
    AugmentedLagrangian,
    LevelSet,
    MultiplierModel,
    PenalizedSubgradient,
    ProjectedGradient,
    ProxyLagrangian,
    StochasticGhost,
    StochasticIDCA,
    StochasticSwitching,
    SwitchingSubgradient,
)
from fairconstrained.solvers._options import Positive, _allowed_by_option, check_options

OPTIONS = [(name, option.name) for name, solver in sorted(SOLVERS.items()) for option in fields(solver)]


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_option_is_documented_once(name):
    documented = [own for names, _ in entries(SOLVERS[name].__doc__, "Parameters") for own in names]
    assert sorted(documented) == sorted(option.name for option in fields(SOLVERS[name]))


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_option_of_every_solver_says_what_it_may_be(name, option):
    solver = SOLVERS[name]
    assert _allowed_by_option(solver)[option]
    for wrong in ("a", object(), float("nan"), -1, [[1]]):
        with pytest.raises(ValueError, match=f"^{option} of solver '{name}' must be ") as raised:
            solver(**{option: wrong})
        assert str(raised.value).endswith(f"; got {wrong!r}.")


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_defaults_and_numbers_of_numpy_are_allowed(name):
    solver = SOLVERS[name]()
    numbers = {option.name: getattr(solver, option.name) for option in fields(solver)}
    numbers = {n: np.array(v)[()] for n, v in numbers.items() if isinstance(v, int | float)}
    assert SOLVERS[name](**numbers) == solver


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PLADA(alpha=-1), "alpha of solver 'plada' must be a float in the range (0.0, inf); got -1."),
        (lambda: PLADA(beta=5), "beta of solver 'plada' must be a float in the range (0.0, 1.0); got 5."),
        (lambda: PLADA(gamma=3), "gamma of solver 'plada' must be a float in the range [0.0, 1.0]; got 3."),
        (lambda: PLADA(learning_rate=np.inf), "learning_rate of solver 'plada' must be a float in the range"),
        (lambda: PLADA(batch_size=0), "must be an int in the range [1, inf) or None; got 0."),
        (lambda: PLADA(select="first"), "select of solver 'plada' must be 'last' or 'best'; got 'first'."),
        (lambda: PLADA(keep_on_interrupt=1), "keep_on_interrupt of solver 'plada' must be True or False; got 1."),
        (lambda: AugmentedLagrangian(max_iter=2.5), "max_iter of solver 'augmented_lagrangian' must be an int in"),
        (lambda: StochasticGhost(p0=1.0), "p0 of solver 'stochastic_ghost' must be a float in the range (0.0, 1.0)"),
        (lambda: LevelSet(theta=0.5), "theta of solver 'level_set' must be a float in the range [1.0, inf); got 0.5."),
        (lambda: IQRC(max_doublings=-1), "max_doublings of solver 'iqrc' must be an int in the range [0, inf)"),
        (lambda: IPC(oracle="newton"), "oracle of solver 'ipc' must be 'switching' or 'online' or"),
        (lambda: IPC(oracle="newton"), "or 'augmented_lagrangian' or 'level_set'; got 'newton'."),
        (lambda: IPC(proximity="large"), "must be a float in the range (0.0, inf) or 'auto'; got 'large'."),
        (lambda: SwitchingSubgradient(schedule="cosine"), "must be 'static' or 'diminishing'; got 'cosine'."),
        (lambda: StochasticIDCA(select="first"), "must be 'best' or 'last'; got 'first'."),
        (lambda: StochasticSwitching(output="mean"), "must be 'random' or 'last'; got 'mean'."),
        (lambda: ProxyLagrangian(regret="none"), "must be 'external' or 'swap'; got 'none'."),
        (lambda: ProjectedGradient(step="long"), "must be a float in the range (0.0, inf) or 'spectral'; got 'long'."),
        (
            lambda: PenalizedSubgradient(step=()),
            "or a sequence of values that are each a float in the",
        ),
        (lambda: PenalizedSubgradient(step=(0.1, 0.0)), "got (0.1, 0.0)."),
        (lambda: PenalizedSubgradient(weight=-1), "weight of solver 'penalized_subgradient' must be a float in the"),
        (lambda: MultiplierModel(hidden_layer_sizes=(32, 2.5)), "each an int in the range [1, inf); got (32, 2.5)."),
    ],
)
def test_messages(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_what_is_allowed_is_taken():
    assert PenalizedSubgradient(step=np.array([0.1, 0.2])).step[1] == 0.2
    assert MultiplierModel(hidden_layer_sizes=()).hidden_layer_sizes == ()
    assert IPC(proximity="auto", batch_size=None).proximity == "auto"


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PartialParityClassifier(solver_options={"penalty": "a"}), "penalty of solver 'augmented_lagrangian' must be"),
        (PartialParityClassifier(solver_options={"max_iter": 2.5}), "max_iter of .* an int .* got 2.5"),
        (PartialParityClassifier(solver="idca", solver_options={"eps": -1e-3}), "eps of solver 'idca' .* got -0.001"),
        (LossParityClassifier(solver="plada", solver_options={"beta": 5}), "beta of solver 'plada' must be .* got 5"),
    ],
    ids=["text", "no integer", "negative", "too large"],
)
def test_fit_refuses_an_option_and_leaves_the_estimator_as_it_was(estimator, message):
    X, y, groups = make_biased_classification(200, 3, random_state=0)
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y, sensitive_features=groups)
    assert vars(estimator) == before


def test_annotations_of_a_third_party():
    """Annotations that give no range, or name a class without a meaning here, are no obstacle."""

    @dataclass(frozen=True)
    class Options:
        name: ClassVar[str] = "mine"

        rate: Positive = 0.1
        count: int = 3
        weights: np.ndarray | None = None
        anything: Any = None

    check_options(Options(weights=np.ones(2), anything="a"))
    for options, message in (
        ({"rate": 0}, "rate of solver 'mine' must be a float in the range"),
        ({"count": 2.5}, "count of solver 'mine' must be an int in the range"),
    ):
        with pytest.raises(ValueError, match=message):
            check_options(Options(**options))
