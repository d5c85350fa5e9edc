"""matplotlib is optional, and missed in plain words. That it is imported late is in tests/test_layering.py."""

import sys

import pytest

from fairconstrained.plotting import ParetoFrontDisplay, ScoreCurveDisplay, ScoreDensityDisplay, SubsetRocDisplay

SCORES, GROUPS = [1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "b"]

CALLS = {
    "ParetoFrontDisplay.plot": lambda: ParetoFrontDisplay([0.9], [-0.1]).plot(),
    "ParetoFrontDisplay.from_cv_results": lambda: ParetoFrontDisplay.from_cv_results({}),
    "ParetoFrontDisplay.from_estimator": lambda: ParetoFrontDisplay.from_estimator(
        [], None, None, sensitive_features=None
    ),
    "ParetoFrontDisplay.from_predictions": lambda: ParetoFrontDisplay.from_predictions(
        None, [], sensitive_features=None
    ),
    "ParetoFrontDisplay.from_report": lambda: ParetoFrontDisplay.from_report(None),
    "ScoreCurveDisplay.from_estimator": lambda: ScoreCurveDisplay.from_estimator(None, None, sensitive_features=None),
    "ScoreCurveDisplay.from_predictions": lambda: ScoreCurveDisplay.from_predictions(SCORES, sensitive_features=GROUPS),
    "ScoreCurveDisplay.from_report": lambda: ScoreCurveDisplay.from_report(None),
    "ScoreDensityDisplay.from_report": lambda: ScoreDensityDisplay.from_report(None),
    "SubsetRocDisplay.from_report": lambda: SubsetRocDisplay.from_report(None),
    "ScoreDensityDisplay.from_estimator": lambda: ScoreDensityDisplay.from_estimator(
        None, None, sensitive_features=None
    ),
    "ScoreDensityDisplay.from_predictions": lambda: ScoreDensityDisplay.from_predictions(
        SCORES, sensitive_features=GROUPS
    ),
    "SubsetRocDisplay.plot": lambda: SubsetRocDisplay([], gap=0.0).plot(),
    "SubsetRocDisplay.from_estimator": lambda: SubsetRocDisplay.from_estimator(
        None, None, None, sensitive_features=None
    ),
    "SubsetRocDisplay.from_predictions": lambda: SubsetRocDisplay.from_predictions(
        None, SCORES, sensitive_features=GROUPS
    ),
}


@pytest.mark.parametrize("caller", CALLS)
def test_missing_matplotlib_says_how_to_install_it(monkeypatch, caller):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=rf"{caller} needs matplotlib.*pip install 'fairconstrained\[plot\]'"):
        CALLS[caller]()
