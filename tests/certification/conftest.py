"""Samples for the tests of certificates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairconstrained import certify, metrics  # noqa: F401  (the families of bounds list themselves with certify)
from fairconstrained.certification.evidence import evidence_of, methods_of
from fairconstrained.certification.sample import Sample, resolve_metric


@pytest.fixture(scope="session")
def draw():
    """Labels, scores with some ties, and three groups that differ."""

    def drawn(n_samples: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        groups = rng.choice(list("abc"), n_samples, p=[0.5, 0.3, 0.2])
        y = (rng.random(n_samples) < 0.45).astype(int)
        scores = np.round(rng.normal(size=n_samples) + y + 0.4 * (groups == "b") - 0.3, 1) + 0.05
        return y, scores, groups

    return drawn


@pytest.fixture(scope="session")
def sample():
    """Return a function that makes the sample that `certify` makes of a model with some scores."""

    def made(name: str, params: dict[str, Any], y: Any, scores: Any, groups: Any, **more: Any) -> Sample:
        response = metrics.METRICS[name].response if name in metrics.METRICS else "decision_function"
        said = {"predict": (scores > 0).astype(int), "predict_proba": 1 / (1 + np.exp(-scores))}.get(response, scores)
        return Sample(resolve_metric(name, params)[0], y, said, groups, params, **more)

    return made


@pytest.fixture(scope="session")
def evidences(sample):
    """The evidence of every family but the bootstrap that has a bound for a case; losses lie between 0 and 60."""

    def found(name: str, params: dict[str, Any], *rows: Any) -> dict[str, Any]:
        taken, by_method = sample(name, params, *rows, loss_bound=(0.0, 60.0)), {}
        for method in methods_of(resolve_metric(name, params)[0]):
            if method == "bootstrap":
                continue
            try:
                by_method[method] = evidence_of(taken, method)
            except ValueError as refusal:
                if "has no bound" not in str(refusal):
                    raise
        return by_method

    return found
