"""Heads on boosted trees, for notions that other benchmarks do not have."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.any_model.trees import Trees
from benchmarks.notions.linear import Fitted, Method, bounded, fitted
from benchmarks.notions.setting import Setting
from fairconstrained import FairHeadClassifier


def head(setting: Setting) -> Fitted:
    """A head of fewest errors on cross-fitted boosted trees, whose bound is on the scores that they were fitted on."""
    own = bounded(setting, objective="zero_one")
    model = FairHeadClassifier(Trees(), head=own, random_state=setting.seed)
    found = fitted(model, setting, setting.tables)
    promised = float(max(model.constraint_values_.values()))
    return replace(found, outcome=replace(found.outcome, promised=promised))


METHODS: dict[str, Method] = {
    "head": Method(head, notions=("demographic_parity_ratio", "predictive_equality", "false_positive_ceiling")),
}
