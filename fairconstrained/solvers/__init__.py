"""Solvers: one file per algorithm; importing a file enters its solver into ``SOLVERS``."""

from fairconstrained.solvers._base import (
    SOLVERS,
    Callback,
    Recorder,
    Solver,
    SolverResult,
    Status,
    StoppedBy,
    make_solver,
    solver_class,
    solver_with,
    surrogate_result,
)
from fairconstrained.solvers._curvature import weak_convexity
from fairconstrained.solvers._kkt import KKTConditions, kkt_conditions
from fairconstrained.solvers._order_search import ordered_within
from fairconstrained.solvers._polish import polished
from fairconstrained.solvers._rescaling import best_constant, best_rescaled, no_worse_than_constants
from fairconstrained.solvers._shifting import beats_constants, best_shifted
from fairconstrained.solvers._stationarity import Stationarity, near_stationarity, stationarity
from fairconstrained.solvers.adam_lagrangian import AdamLagrangian
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.cross_fitted import CrossFitted
from fairconstrained.solvers.cross_fitted_network import CrossFittedNetwork
from fairconstrained.solvers.cross_fitted_span import CrossFittedSpan
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.fold_steps import has_steps, scores_without_folds
from fairconstrained.solvers.gradient_descent import SGD, Adam, StochasticPenalty
from fairconstrained.solvers.group_weights import GroupWeights
from fairconstrained.solvers.interior_point import InteriorPoint
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.moments import MomentSolver, QuadraticOptimum, minimise_quadratic
from fairconstrained.solvers.newton_boosting import NewtonBoosting
from fairconstrained.solvers.proxy_lagrangian import ProxyLagrangian
from fairconstrained.solvers.published.idca import IDCA
from fairconstrained.solvers.published.ipc import IPC
from fairconstrained.solvers.published.iqrc import IQRC
from fairconstrained.solvers.published.level_set import LevelSet
from fairconstrained.solvers.published.mirror_descent import StochasticMirrorDescent
from fairconstrained.solvers.published.multiplier_model import MultiplierModel
from fairconstrained.solvers.published.nupi import NuPI
from fairconstrained.solvers.published.online_subgradient import OnlineSubgradient
from fairconstrained.solvers.published.penalized_subgradient import PenalizedSubgradient
from fairconstrained.solvers.published.penalty_barrier import PenaltyBarrier
from fairconstrained.solvers.published.plada import PLADA, PLagrangian, p_lagrangian
from fairconstrained.solvers.published.projected_gradient import ProjectedGradient
from fairconstrained.solvers.published.proximal_point import IPPSSG, IPPConEx
from fairconstrained.solvers.published.ssl_alm import SSLALM, StochasticALM
from fairconstrained.solvers.published.stochastic_ghost import StochasticGhost
from fairconstrained.solvers.published.stochastic_idca import StochasticIDCA
from fairconstrained.solvers.published.stochastic_switching import StochasticSwitching
from fairconstrained.solvers.published.switching_subgradient import SSG, SwitchingSubgradient
from fairconstrained.solvers.quadratics import Quadratics, quadratics_of
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic
from fairconstrained.solvers.span import Span
from fairconstrained.solvers.span_search import SpanSearch
from fairconstrained.solvers.stochastic import SeparateBatches, StochasticSolver

__all__ = [
    "IDCA",
    "IPC",
    "IPPSSG",
    "IQRC",
    "PLADA",
    "SGD",
    "SOLVERS",
    "SSG",
    "SSLALM",
    "Adam",
    "AdamLagrangian",
    "AugmentedLagrangian",
    "Callback",
    "CrossFitted",
    "CrossFittedNetwork",
    "CrossFittedSpan",
    "ExactPenalty",
    "GroupWeights",
    "IPPConEx",
    "InteriorPoint",
    "IterativeSolver",
    "KKTConditions",
    "LevelSet",
    "MomentSolver",
    "MultiplierModel",
    "NewtonBoosting",
    "NuPI",
    "OnlineSubgradient",
    "PLagrangian",
    "PenalizedSubgradient",
    "PenaltyBarrier",
    "ProjectedGradient",
    "ProxyLagrangian",
    "QuadraticOptimum",
    "Quadratics",
    "Recorder",
    "SeparateBatches",
    "SequentialQuadratic",
    "Solver",
    "SolverResult",
    "Span",
    "SpanSearch",
    "Stationarity",
    "Status",
    "StochasticALM",
    "StochasticGhost",
    "StochasticIDCA",
    "StochasticMirrorDescent",
    "StochasticPenalty",
    "StochasticSolver",
    "StochasticSwitching",
    "StoppedBy",
    "SwitchingSubgradient",
    "beats_constants",
    "best_constant",
    "best_rescaled",
    "best_shifted",
    "has_steps",
    "kkt_conditions",
    "make_solver",
    "minimise_quadratic",
    "near_stationarity",
    "no_worse_than_constants",
    "ordered_within",
    "p_lagrangian",
    "polished",
    "quadratics_of",
    "scores_without_folds",
    "solver_class",
    "solver_with",
    "stationarity",
    "surrogate_result",
    "weak_convexity",
]
