"""Parts that all displays have in common: their factories, matplotlib on demand, and documentation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Self

import numpy as np

from fairconstrained.checks.docstrings import documented_by, inherited_documentation
from fairconstrained.checks.messages import shortened
from fairconstrained.model_selection.response import Response, get_response
from fairconstrained.plotting.style import require_matplotlib

__all__ = ["Display", "ScoresDisplay", "scores_of"]

#: Documentation of the parameters that several factories and `plot` have.
_SHARED = """Parameters
----------
estimator : estimator
    Fitted classifier or regressor. It receives the sensitive features if its response method requests them through
    metadata routing.
X : {array-like, sparse matrix} of shape (n_samples, n_features)
    Rows to predict.
y : array-like of shape (n_samples,)
    Labels of the rows.
y_true : array-like of shape (n_samples,)
    Labels of the rows.
y_score : array-like of shape (n_samples,)
    Scores; only their order matters.
report : FairnessReport
    See :func:`fairconstrained.reporting.fairness_report`.
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
    Groups of the rows.
sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows.
interval : pair of floats, list of pairs, or dict from group to either, default=None
    Percentile interval to mark, as fractions; 0 is the top.
pos_label : object, default=None
    The positive label; by default the last of two classes. Of more than two, the one to draw against all others, by the
    excess of its score over the largest of the others.
name : str, default=None
    Name in the legend.
ax : matplotlib Axes, default=None
    Axes to draw into; new ones by default.
**kwargs : object
    Passed to :meth:`plot`.

Returns
-------
display : Self
    The display, drawn.

Raises
------
ImportError
    If matplotlib is missing.
"""


def _drawing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that asks for matplotlib first, with the documentation that all share."""

    @documented_by(_SHARED)
    @wraps(method)
    def drawn(owner: Any, *args: Any, **kwargs: Any) -> Any:
        cls = owner if isinstance(owner, type) else type(owner)
        require_matplotlib(f"{cls.__name__}.{method.__name__}")
        return method(owner, *args, **kwargs)

    return drawn


def scores_of(
    estimator: Any, X: Any, response: str, *, sensitive_features: Any = None, pos_label: Any = None
) -> Response:
    """Return one score for every row; see `get_response`.

    Raises ValueError for more than two classes without ``pos_label``.
    """
    found = get_response(estimator, X, response, sensitive_features=sensitive_features, pos_label=pos_label)
    if found.classes is not None and found.classes.size > 2 and found.positive is None:
        raise ValueError(
            f"{type(estimator).__name__} has more than two classes: pass as pos_label the one whose scores to draw "
            f"against all others, of {shortened(found.classes)}."
        )
    return found


class Display:
    """A figure in the style of scikit-learn: factories named ``from_...``, and `plot`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = inherited_documentation(cls, {})
        for name, member in vars(cls).copy().items():
            if name == "plot":
                setattr(cls, name, _drawing(member))
            elif name.startswith("from_"):
                setattr(cls, name, classmethod(_drawing(member.__func__)))


class ScoresDisplay(Display):
    """Display of the scores of one model."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, sensitive_features: Any, pos_label: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the scores of a fitted estimator.

        Parameters
        ----------
        **kwargs : object
            Passed to :meth:`from_predictions`, such as ``sample_weight``, ``interval`` or ``ax``.
        """
        asked = {"sensitive_features": sensitive_features, "pos_label": pos_label}
        values = scores_of(estimator, X, "decision_function", **asked).values
        return cls.from_predictions(values, sensitive_features=sensitive_features, **kwargs)

    @classmethod
    def from_predictions(cls, *args: Any, **kwargs: Any) -> Self:
        """Draw given scores."""
        raise NotImplementedError

    @staticmethod
    def _of_report(report: Any) -> dict[str, Any]:
        """Arguments of ``from_predictions`` that a report has, beside scores, groups and weights."""
        return {"interval": report.interval}

    @classmethod
    def from_report(cls, report: Any, **kwargs: Any) -> Self:
        """Draw the scores of a report, with its percentile interval if it has one and the display shows it.

        Parameters
        ----------
        **kwargs : object
            Passed to :meth:`from_predictions`.

        Raises
        ------
        ValueError
            If the report has decisions and no scores, or is one of several classes, or :meth:`from_predictions` raises.
        """
        if report.y_score is None:
            raise ValueError("this report has decisions and no scores; make one with y_score to draw them.")
        if np.ndim(report.y_score) > 1:
            raise ValueError("this report has scores of several classes; make one with pos_label to draw those of one.")
        columns = {name: getattr(report, name) for name in ("y_score", "sensitive_features", "sample_weight")}
        return cls.from_predictions(**columns, **cls._of_report(report), **kwargs)
