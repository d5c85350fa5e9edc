"""Models of tight bounds, kept for looser bounds where they are the better ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairconstrained.paths._walk import Plan, Walk
from fairconstrained.solvers import Status

__all__ = ["better_kept"]


def better_kept(plan: Plan, walked: Walk) -> Walk:
    """The walk in which a looser bound has the model of a tighter one where that has the better objective.

    A model within a bound is within every looser one. A fit finds a local solution only, so without this the objective
    of a path might rise with ``kappa``.
    """
    if not plan.sets_bound:
        return walked
    records = walked.records
    places = [_best(plan, records, place) for place in range(len(records))]
    kept = [_kept(plan, records[place], records[best]) for place, best in enumerate(places)]
    if len(walked.models) < len(records):  # of a fold, which is measured already
        return replace(walked, records=kept)
    models = [
        own if best == place else walked.models[best].under_bounds_of(own, record["excess"])
        for place, (own, best, record) in enumerate(zip(walked.models, places, kept, strict=True))
    ]
    return replace(walked, records=kept, models=models)


def _best(plan: Plan, records: list[dict[str, Any]], place: int) -> int:
    """The number of the record that is best within the bound of another one; its own if no other is better."""
    own = records[place]
    best, least = place, np.inf if Status(own["status"]).is_infeasible else own["objective"]
    for number, other in enumerate(records):
        # another set of constraints may come with another objective
        if other["kappa"] < own["kappa"] and other["excess"].keys() == own["excess"].keys():
            excess = _loosened(plan, own, other)
            is_within = all(value <= own["granularity"][name] for name, value in excess.items())
            if is_within and other["objective"] < least:
                best, least = number, other["objective"]
    return best


def _loosened(plan: Plan, own: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    """By how much the model of another record exceeds the bounds of this one."""
    bounded = plan.bounded(other["excess"])
    more = own["kappa"] - other["kappa"]
    return {name: value - more if name in bounded else value for name, value in other["excess"].items()}


def _kept(plan: Plan, own: dict[str, Any], best: dict[str, Any]) -> dict[str, Any]:
    """The record of the best model under the bound of this one."""
    if best is own:
        return own
    told = ("kappa", "granularity", "n_evaluations", "seconds")
    if Status(own["status"]).is_infeasible:
        known: dict[str, Any] = {"price": np.nan, "multipliers": None, "warned": []}
    else:
        known = {name: own[name] for name in ("status", "price", "multipliers", "warned")}
    return {**best, **{name: own[name] for name in told}, **known, "excess": _loosened(plan, own, best)}
