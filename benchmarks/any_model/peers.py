"""Methods of other packages over the same boosted trees; each is left out, with a reason, where it is not installed."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.model_selection import train_test_split

from benchmarks._common import missing
from benchmarks.any_model.data import Part, Split, as_codes, categorical_columns
from benchmarks.any_model.methods import METHODS, VALIDATION_SHARE, Method, Outcome, Setting, quiet, response_of_scores
from benchmarks.any_model.notions import Response
from benchmarks.any_model.trees import Seconds, Trees

#: Environment variable with the interpreter of an environment that has FairGBM, which needs numpy < 2.
FAIRGBM_PYTHON = "FAIRGBM_PYTHON"
#: Names of the notions in Fairlearn's ThresholdOptimizer.
_FAIRLEARN = {
    "demographic_parity": "demographic_parity",
    "equal_opportunity": "true_positive_rate_parity",
    "equalized_odds": "equalized_odds",
}
#: Names of the notions in OxonFair; of equalized odds the larger difference, as in the package.
_OXONFAIR = {
    "demographic_parity": "demographic_parity",
    "equal_opportunity": "equal_opportunity",
    "equalized_odds": "equalized_odds_max",
}


def _coded(split: Split) -> tuple[Split, Trees]:
    """Tables as numbers, which other packages do not rewrite, and the trees for them: the same trees."""
    coded = Split(*(part._replace(X=as_codes(part.X)) for part in split))
    return coded, Trees(categories=tuple(categorical_columns(split.train.X)))


def exponentiated_gradient(setting: Setting) -> Iterator[Outcome]:
    """Fairlearn's reduction. It decides at random; measured are the expected rates, without that chance."""
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient, TruePositiveRateParity

    moments = {
        "demographic_parity": DemographicParity,
        "equal_opportunity": TruePositiveRateParity,
        "equalized_odds": EqualizedOdds,
    }

    def make(trees: Trees, kappa: float) -> ExponentiatedGradient:
        return ExponentiatedGradient(trees, moments[setting.notion](difference_bound=kappa))

    return _for_each_bound(setting, make, lambda model, part: model._pmf_predict(part.X))


def _for_each_bound(
    setting: Setting, make: Callable[[Trees, float], Any], probabilities: Callable[[Any, Part], np.ndarray]
) -> Iterator[Outcome]:
    """A fit of Fairlearn's for every bound, and the probabilities of its decisions."""
    split, trees = _coded(setting.split)
    for kappa in setting.kappas:
        seconds, model = Seconds(), make(trees, kappa)
        with seconds.count(), quiet():
            model.fit(split.train.X, split.train.y, sensitive_features=split.train.groups)
        test, train = (Response(probabilities(model, part)[:, 1]) for part in (split.test, split.train))
        yield Outcome(kappa, test, train, seconds.total)


def threshold_optimizer(setting: Setting) -> Iterator[Outcome]:
    """Fairlearn's thresholds by group, at random between two of them; it needs the group of every new row.

    Equalized odds cannot be relaxed there, so that all bounds have the same model.
    """
    from fairlearn.postprocessing import ThresholdOptimizer

    def make(trees: Trees, kappa: float) -> ThresholdOptimizer:
        tolerance = None if setting.notion == "equalized_odds" else kappa
        return ThresholdOptimizer(estimator=trees, constraints=_FAIRLEARN[setting.notion], tol=tolerance)

    return _for_each_bound(
        setting, make, lambda model, part: model._pmf_predict(part.X, sensitive_features=part.groups)
    )


def oxonfair_groups(setting: Setting) -> Iterator[Outcome]:
    """OxonFair's thresholds by group, chosen on rows kept apart; it needs the group of every new row."""
    return _oxonfair(setting, inferred=False)


def oxonfair_inferred(setting: Setting) -> Iterator[Outcome]:
    """OxonFair's thresholds by the group that a second model infers; no group is needed for new rows."""
    return _oxonfair(setting, inferred=True)


def _oxonfair(setting: Setting, inferred: bool) -> Iterator[Outcome]:
    from oxonfair import FairPredictor
    from oxonfair.utils import group_metrics

    split, trees = _coded(setting.split)
    fitted, kept = rows_kept_apart(split.train, setting.seed)
    metric = getattr(group_metrics, _OXONFAIR[setting.notion])
    seconds = Seconds()
    with seconds.count(), quiet():
        base = trees.fit(fitted.X, fitted.y)
        guess: Any = Trees(trees.categories).fit(fitted.X, fitted.groups) if inferred else False
        model = FairPredictor(base, oxonfair_rows(kept), inferred_groups=guess, threshold=_unsure_below(guess, kept))
        model.fit(group_metrics.accuracy, metric, max(setting.kappas))
    for kappa in setting.kappas:
        with seconds.count(), quiet():
            # the front has been computed: only another point of it is chosen
            model.fit(group_metrics.accuracy, metric, kappa, recompute=False)
        test, train = (
            Response(np.asarray(model.predict(oxonfair_rows(part)), dtype=float)) for part in (split.test, kept)
        )
        promised = setting.entry.measure(kept, train).gap
        whole = Response(np.asarray(model.predict(oxonfair_rows(split.train)), dtype=float))
        yield Outcome(kappa, test, whole, seconds.total, promised=promised)


def _unsure_below(guess: Any, rows: Part) -> float:
    """Return OxonFair's default probability below which a group is unknown; 0, for off, where this never occurs.

    OxonFair 0.3 raises an error if there are no rows of unknown group.
    """
    sure = guess is False or guess.predict_proba(rows.X).max(axis=1).min() >= 2 / 3
    return 0.0 if sure else 2 / 3


def rows_kept_apart(train: Part, seed: int) -> tuple[Part, Part]:
    """Split the training rows by group and label: the larger part, and rows to choose thresholds on."""
    cells = np.char.add(train.groups.astype(str), train.y.astype(str))
    places = np.arange(train.y.size)
    first, second = train_test_split(places, test_size=VALIDATION_SHARE, stratify=cells, random_state=seed)
    return tuple(Part(train.X[rows], train.y[rows], train.groups[rows]) for rows in (first, second))  # type: ignore


def oxonfair_rows(part: Part) -> dict[str, Any]:
    """Return rows in the form that OxonFair takes."""
    return {"data": part.X, "target": part.y, "groups": part.groups}


def fairgbm(setting: Setting) -> Iterator[Outcome]:
    """FairGBM in an interpreter of its own, with its default step of the multipliers."""
    split, _ = _coded(setting.split)
    script = Path(__file__).with_name("fairgbm_script.py")
    codes = np.unique(split.train.groups, return_inverse=True)[1]
    types = {"equal_opportunity": "FNR", "equalized_odds": "FNR,FPR"}
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder, "given.npz"), Path(folder, "answer.npz")
        arrays = {"train": split.train.X, "test": split.test.X, "y": split.train.y, "groups": codes}
        np.savez(given, **arrays, categories=categorical_columns(setting.split.train.X), kappas=setting.kappas)
        command = [os.environ[FAIRGBM_PYTHON], str(script), str(given), str(answer), types[setting.notion]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
        if done.returncode:
            raise RuntimeError(f"FairGBM failed: {done.stderr.strip()[-200:]}")
        with np.load(answer) as loaded:
            answers = {name: loaded[name] for name in loaded.files}
    for place, kappa in enumerate(setting.kappas):
        test, train = (
            response_of_scores(logit(np.clip(answers[name][place], 1e-9, 1 - 1e-9))) for name in ("test", "train")
        )
        yield Outcome(kappa, test, train, float(answers["seconds"][: place + 1].sum()))


PEERS: dict[str, Method] = {
    "exponentiated_gradient": exponentiated_gradient,
    "threshold_optimizer": threshold_optimizer,
    "oxonfair_groups": oxonfair_groups,
    "oxonfair_inferred": oxonfair_inferred,
    "fairgbm": fairgbm,
}
#: Notions of every peer.
NOTIONS_OF_PEERS = dict.fromkeys(PEERS, tuple(_FAIRLEARN)) | {"fairgbm": ("equal_opportunity", "equalized_odds")}


#: Packages of the methods, of which most are on trees of LightGBM.
_PACKAGES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(METHODS, ("lightgbm",)),
    **dict.fromkeys(("linear", "network", "two_regressions", "fairgbm"), ()),
    **dict.fromkeys(("exponentiated_gradient", "threshold_optimizer"), ("fairlearn", "lightgbm")),
    **dict.fromkeys(("oxonfair_groups", "oxonfair_inferred"), ("oxonfair", "lightgbm")),
}


def lacks(method: str) -> str:
    """Return the reason why a method cannot be run here; empty if it can."""
    if method == "fairgbm" and not Path(os.environ.get(FAIRGBM_PYTHON, "")).is_file():
        return f"{FAIRGBM_PYTHON} does not name the Python of an environment with FairGBM"
    return missing(_PACKAGES[method])
