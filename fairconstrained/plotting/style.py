"""How the Displays look: matplotlib on demand, colours, legends outside the data."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COLORS",
    "DIAGONAL",
    "GREY",
    "LEGEND_ROW",
    "add_legend",
    "letters_in",
    "line_style",
    "plot_shares",
    "prepare_axes",
    "require_matplotlib",
    "wrapped",
]

# Okabe and Ito (2008), told apart with every kind of colour vision; without their yellow, too pale on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#777777"
LEGEND_ROW = 0.21  # inches
#: Lines that the long words of a label, and those of all entries of a legend, are wrapped to at most.
_LABEL_LINES, _LEGEND_LINES = 2, 9
#: Letters that a line has at least.
_FEWEST_LETTERS = 20
#: gid of the diagonal, by which a second display in the same axes recognises that the first one drew it
DIAGONAL = "diagonal"


def require_matplotlib(caller: str) -> Any:
    """Import and return ``matplotlib.pyplot``.

    Raises ImportError if matplotlib is missing, with the command that installs it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib. Install it with: pip install 'fairconstrained[plot]'") from error
    return plt


def prepare_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or new ones in a figure of ``size`` inches; empty ones get our colours and spines."""
    import matplotlib.pyplot as plt

    if ax is None:
        # the constrained layout is what makes room for a legend outside of the axes
        _, ax = plt.subplots(figsize=size, layout="constrained")
    if not isinstance(ax, plt.Axes):
        raise TypeError(f"ax must be matplotlib Axes, or None for new ones; got {ax!r}.")
    if not ax.has_data():
        ax.set_prop_cycle(color=list(COLORS))
        ax.spines[["top", "right"]].set_visible(False)
    return ax


def line_style(defaults: dict[str, Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Defaults overridden by what the user wrote, short names such as ``lw`` included."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return defaults | normalize_kwargs(kwargs, Line2D)


def plot_shares(ax: Axes, label: str, limits: tuple[float, float]) -> None:
    """Make the axes those of two shares, with the diagonal, which `DIAGONAL` marks."""
    from matplotlib.ticker import PercentFormatter

    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (4, 3)), label=label, gid=DIAGONAL, zorder=2)
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(xmax=1))


def letters_in(inches: float, size: Literal["axes.labelsize", "legend.fontsize"]) -> int:
    """Number of letters of a size, named as in ``rcParams``, in a line: a letter is about half as wide as high."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    return int(72 * inches / (0.5 * FontProperties(size=rcParams[size]).get_size_in_points()))


def wrapped(words: str, letters: int, most_lines: int = _LABEL_LINES) -> str:
    """Words in a few lines of so many letters, shortened where these do not suffice, lest they leave axes no room."""
    letters = max(letters, _FEWEST_LETTERS)
    return words if len(words) <= letters else textwrap.fill(words, letters, max_lines=most_lines, placeholder=" …")


def add_legend(ax: Axes, extra: Sequence[Any] = ()) -> None:
    """Legend below the axes: the labelled artists, those in front first, then ``extra``."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties
    from matplotlib.transforms import ScaledTranslation

    handles = sorted(ax.get_legend_handles_labels()[0], key=lambda artist: -artist.get_zorder()) + list(extra)
    if not handles:
        return
    points = {
        key: FontProperties(size=rcParams[key]).get_size_in_points() for key in ("xtick.labelsize", "axes.labelsize")
    }
    # below the tick labels and the label of the axis, whatever the height of the axes
    n_lines = ax.get_xlabel().count("\n") + 1
    down = 1.4 * (points["xtick.labelsize"] + n_lines * points["axes.labelsize"]) + 12
    offset = ScaledTranslation(0, -down / 72, ax.figure.dpi_scale_trans)
    # as many columns as fit side by side, with room for the keys
    letters = letters_in(ax.bbox.width / ax.figure.dpi, "legend.fontsize")
    most_lines = max(_LEGEND_LINES // len(handles), 1)
    labels = [wrapped(handle.get_label(), letters - 8, most_lines) for handle in handles]
    longest = max(map(len, labels)) + 8
    ax.legend(
        handles=handles,
        labels=labels,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + offset,
        borderaxespad=0.0,
        borderpad=0.0,
        frameon=False,
        ncols=int(np.clip(letters // longest, 1, 3)),
    )
