"""`CertifiedFairClassifier`: how often its promise is broken, and the accuracy it costs by calibration size."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm
from sklearn.preprocessing import StandardScaler

from benchmarks._common import load_acs_income
from fairconstrained import CertifiedFairClassifier, RateParityClassifier
from fairconstrained.metrics import independence_gap

__all__ = ["PROMISES", "Normal", "measure"]

_DRAWS, _QUICK_DRAWS = 1000, 5
_COST_DRAWS, _QUICK_COST_DRAWS = 8, 1
_FRACTIONS, _SIZES = (0.1, 0.2, 0.3, 0.5, 0.7), (8000, 32000)
_N_TEST = 50_000


@dataclass(frozen=True)
class Normal:
    """Two normal features, the first of which is lower in group 1 (40 % of the rows); labels are logistic in both."""

    name: str = "normal"
    shift: tuple[float, float] = (-1.0, 0.0)

    def draw(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, labels and groups."""
        groups = (rng.random(n_samples) < 0.4).astype(int)
        X = rng.normal(size=(n_samples, 2)) + groups[:, None] * np.array(self.shift)
        return X, (rng.random(n_samples) < expit(0.5 + X @ [1.2, 1.6])).astype(int), groups

    def judged(self, model: Any) -> tuple[float, float]:
        """The gap in positive rates in the population, in closed form, and the accuracy on many rows."""
        last = getattr(model, "estimator_", model)
        means = np.array([[0.0, 0.0], self.shift])
        scores = means @ last.coef_.ravel() + last.intercept_.item()
        rates = norm.cdf(scores / np.linalg.norm(last.coef_))
        X, y, _ = _test_rows(self)
        return float(abs(rates[0] - rates[1])), float((last.predict(X) == y).mean())


@cache
def _test_rows(source: Normal) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return source.draw(_N_TEST, np.random.default_rng(1))


@dataclass(frozen=True)
class Resampled:
    """ACS income 2018 as a population: age, hours, class of worker, schooling and marital status; groups by sex."""

    name: str = "acs"

    def draw(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, labels and groups of rows drawn with replacement."""
        X, y, groups = _acs()
        rows = rng.integers(y.size, size=n_samples)
        return X[rows], y[rows], groups[rows]

    def judged(self, model: Any) -> tuple[float, float]:
        """The gap in positive rates and the accuracy on all rows."""
        X, y, groups = _acs()
        predicted = model.predict(X)
        return float(independence_gap(None, predicted, sensitive_features=groups)), float((predicted == y).mean())


@cache
def _acs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first columns: two numbers, and three categories one-hot."""
    table = load_acs_income()
    X = StandardScaler(with_std=False).fit_transform(table.X[:, :39].toarray())
    return X, (table.y > 0).astype(int), table.groups


#: Settings for samples of 2,000 rows. The inner bounds are those of sigmoid rates, which take little time to fit; with
#: the loosest one the gap of the predictions in the population is just about what is promised.
PROMISES: dict[str, dict[str, Any]] = {
    "no tightening": {"kappas": [0.15]},
    "one test": {"kappas": [0.15, 0.08, 0.05, 0.03], "cv": 2},
    "bold, three tests": {"kappas": [0.15, 0.08, 0.05, 0.03], "cv": 2, "max_tests": 3, "power": 0.5, "delta": 0.2},
}
_PROMISED, _N_PROMISES = 0.2, 2000
#: What is promised at what cost, and inner bounds as shares of it.
_COST_KAPPAS, _SHARES = {"normal": 0.1, "acs": 0.05}, (1.0, 0.8, 0.6, 0.4, 0.2)


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """How often promises are broken, by setting; and accuracy by calibration size."""
    broken = pd.DataFrame([_broken(name, options, quick) for name, options in PROMISES.items()])
    sources = [Normal()] if quick else [Normal(), Resampled()]
    return {"promises": broken, "cost": pd.DataFrame([run for source in sources for run in _costs(source, quick)])}


def _fitted(rows: tuple[np.ndarray, np.ndarray, np.ndarray], rate: str, **options: Any) -> CertifiedFairClassifier:
    X, y, groups = rows
    model = CertifiedFairClassifier(RateParityClassifier(rate=rate), metric="independence_gap", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # uncertified models are counted
        return model.fit(X, y, sensitive_features=groups)


def _broken(name: str, options: dict[str, Any], quick: bool) -> dict[str, Any]:
    source, found = Normal(), []
    for draw in range(_QUICK_DRAWS if quick else _DRAWS):
        rows, begin = source.draw(_N_PROMISES, np.random.default_rng(draw)), time.process_time()
        model = _fitted(rows, "sigmoid", kappa=_PROMISED, random_state=draw, **options)
        seconds, (gap, accuracy) = time.process_time() - begin, source.judged(model)
        certified = model.status_ == "certified"
        found.append((certified, certified and gap > _PROMISED, gap > _PROMISED, accuracy, seconds))
    certified, violated, above, accuracy, seconds = np.mean(found, axis=0)
    return {
        "setting": name,
        "delta": options.get("delta", 0.05),
        "kappa": _PROMISED,
        "n": _N_PROMISES,
        "draws": len(found),
        "certified": certified,
        "population_gap_above_kappa": above,
        "violated": violated,
        "accuracy": accuracy,
        "seconds": seconds,
    }


def _costs(source: Normal | Resampled, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for every run: with all rows and plain kappa (a fraction of 0), and with parts set aside."""
    kappa = _COST_KAPPAS[source.name]
    options = {"kappa": kappa, "kappas": [kappa * share for share in _SHARES], "cv": 2}
    for n_samples in _SIZES[:1] if quick else _SIZES:
        for draw in range(_QUICK_COST_DRAWS if quick else _COST_DRAWS):
            rows = source.draw(n_samples, np.random.default_rng(draw))
            facts = {"population": source.name, "n": n_samples, "draw": draw, "kappa": kappa}
            plain = RateParityClassifier(kappa=kappa, rate="indicator")
            plain.fit(rows[0], rows[1], sensitive_features=rows[2])
            yield facts | _judged(source, plain) | {"calibration_fraction": 0.0, "certified": False}
            for fraction in _FRACTIONS:
                begin = time.process_time()
                model = _fitted(rows, "indicator", calibration_fraction=fraction, random_state=draw, **options)
                certified = {"calibration_fraction": fraction, "certified": model.status_ == "certified"}
                seconds = {"inner_kappa": model.kappa_, "seconds": time.process_time() - begin}
                bound = {"bound": model.certificate_.upper_bound, "n_calibration": model.certificate_.n_samples}
                yield facts | _judged(source, model) | certified | seconds | bound


def _judged(source: Normal | Resampled, model: Any) -> dict[str, float]:
    gap, accuracy = source.judged(model)
    return {"population_gap": gap, "accuracy": accuracy}
