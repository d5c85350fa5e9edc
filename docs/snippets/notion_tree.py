"""The decision trees of the page on notions: to the argument that asks for a notion, and to the estimator."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

#: Width of the picture in inches; at 100 dots an inch it is that of a page.
WIDTH = 7.8
#: Left edge and width of the boxes, letters in a line, and colour, of every column.
COLUMNS = [(0.04, 1.2, 14, "#DCE6F1"), (1.46, 2.24, 31, "#FFF1D6"), (3.92, 3.84, 60, "#E7F3E8")]
LINE, PADDING, GAP = 0.165, 0.09, 0.09


@dataclass
class Box:
    """A question or an answer, and in the last line the argument that asks for it."""

    text: str
    code: str = ""
    children: tuple[Box, ...] = ()
    y: float = 0.0


NOTIONS = Box(
    "What reaches people?",
    children=(
        Box(
            "Decisions, and their shares should be alike: a rule asks for it, or the labels are in doubt.",
            children=(
                Box("Alike by their ratio: four-fifths rule", '"demographic_parity_ratio", kappa=0.2'),
                Box("Alike by their difference: demographic parity", '"demographic_parity"'),
                Box("Alike within a job, a department: conditional parity", '"conditional_parity"'),
            ),
        ),
        Box(
            "Decisions, and the labels are what should be predicted. Whom do errors harm?",
            children=(
                Box("Those who are wrongly refused: equal opportunity", '"equal_opportunity"'),
                Box("Those who are wrongly suspected: predictive equality", '"predictive_equality"'),
                Box("Both: equalized odds", '"equalized_odds"'),
                Box("Anyone, whatever the error is: error rate parity", '"error_rate_parity"'),
                Box("Those who rely on a positive decision: predictive parity", '"predictive_parity"'),
            ),
        ),
        Box(
            "Decisions, and every group should reach a level, alike or not.",
            children=(
                Box("A rate has to be high enough: floor", 'GroupRates("true_positive", rule="floor")'),
                Box("A rate has to be low enough: ceiling", 'GroupRates("false_positive", rule="ceiling")'),
            ),
        ),
        Box(
            "Scores: a ranking, probabilities, or decisions at a threshold that is not known yet.",
            children=(
                Box("Any threshold, or the top of a ranking: statistical parity", '"statistical_parity", interval='),
                Box("Who is ranked above whom: AUC gaps", '"inter_group", "intra_group", "group_auc"'),
                Box("Each group is predicted as well: loss parity", 'GroupRates("log_loss")'),
                Box("Each group is predicted well enough: bounded group loss", '"bounded_group_loss"'),
            ),
        ),
        Box(
            "Predicted numbers (regression).",
            children=(
                Box("Alike on average: parity of means", 'GroupRates("score")'),
                Box("Alike in distribution: statistical parity", '"statistical_parity"'),
                Box("Errors small enough in every group: ceiling", 'GroupRates("squared", rule="ceiling")'),
            ),
        ),
    ),
)


ESTIMATORS = Box(
    "What do you have?",
    children=(
        Box(
            "A model of your own, or a pipeline.",
            children=(
                Box(
                    "It can be fitted again, or is finished: a head on its scores",
                    "FairHeadClassifier, FairHeadRegressor",
                ),
                Box("Its scores are fixed, and decisions may use the group: thresholds", "GroupThresholdClassifier"),
                Box("It is trained by a loop in torch", "fairconstrained.torch"),
            ),
        ),
        Box(
            "A table, and decisions to take.",
            children=(
                Box("Categories, missing values: boosted trees, or a head on a pipeline", "FairBoostingClassifier"),
                Box("Numbers: linear scores or a small network", "RateParityClassifier"),
                Box("Many rows: a network on mini-batches", "LossParityClassifier"),
            ),
        ),
        Box(
            "A table, and scores that are ranked or published.",
            children=(
                Box("Any threshold, or the top of the ranking", "PartialParityClassifier"),
                Box("Who is ranked above whom", "AUCFairClassifier, FairRanker"),
                Box("Losses of every group, or of the worst one", "LossParityClassifier, GroupLossClassifier"),
            ),
        ),
        Box(
            "Numbers to predict (regression).",
            children=(
                Box("Linear predictions or a network", "PartialParityRegressor, GroupLossRegressor"),
                Box("Boosted trees; any other model", "FairBoostingRegressor; FairHeadRegressor"),
            ),
        ),
        Box(
            "Somebody who relies on the bound.",
            children=(Box("An upper limit for the population", "CertifiedFairClassifier, certify"),),
        ),
    ),
)


def lines(box: Box, column: int) -> list[tuple[str, dict[str, str]]]:
    """Return the lines of a box and how they are set."""
    code = [(box.code, {"family": "monospace", "color": "#0B4F8A"})] if box.code else []
    return [(line, {}) for line in textwrap.wrap(box.text, COLUMNS[column][2])] + code


def height(box: Box, column: int) -> float:
    """Return the height of a box in inches."""
    return LINE * len(lines(box, column)) + 2 * PADDING


def place_leaves(tree: Box) -> float:
    """Put the leaves below each other, every other box in the middle of its children; return the whole height."""
    bottom = 0.0
    for branch in reversed(tree.children):
        for leaf in reversed(branch.children):
            leaf.y = bottom + height(leaf, 2) / 2
            bottom += height(leaf, 2) + GAP
        branch.y = (branch.children[0].y + branch.children[-1].y) / 2
        bottom += GAP
    tree.y = (tree.children[0].y + tree.children[-1].y) / 2
    return bottom - 2 * GAP


def draw(axes, box: Box, column: int, drawn: list) -> None:
    """Draw a box with its text, and what hangs on it."""
    left, width, _, color = COLUMNS[column]
    corner, high = box.y - height(box, column) / 2, height(box, column)
    style = "round,pad=0,rounding_size=0.06"
    patch = FancyBboxPatch((left, corner), width, high, boxstyle=style, fc=color, ec="#667788", lw=0.8)
    axes.add_patch(patch)
    texts = [
        axes.text(left + PADDING, corner + high - PADDING - LINE * (number + 0.5), line, size=9, va="center", **how)
        for number, (line, how) in enumerate(lines(box, column))
    ]
    drawn.append((patch, texts))
    for child in box.children:
        start, end = left + width, COLUMNS[column + 1][0]
        middle = (start + end) / 2
        axes.plot([start, middle, middle, end], [box.y, box.y, child.y, child.y], color="#667788", lw=0.8)
        draw(axes, child, column + 1, drawn)


for tree, name in ((NOTIONS, "notion_tree.png"), (ESTIMATORS, "estimator_tree.png")):
    total = place_leaves(tree)
    figure = plt.figure(figsize=(WIDTH, total + 0.08), dpi=200)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(-0.04, total + 0.04))
    axes.set_axis_off()
    drawn: list = []
    draw(axes, tree, 0, drawn)
    figure.savefig(name, dpi="figure", facecolor="white", pil_kwargs={"optimize": True})

    # every text lies within its box, and no box touches another one
    extents = [patch.get_window_extent() for patch, _ in drawn]
    for extent, (_, texts) in zip(extents, drawn, strict=True):
        for text in texts:
            inner = text.get_window_extent()
            assert all(extent.contains(*corner) for corner in inner.corners()), text.get_text()
    for number, extent in enumerate(extents):
        assert not any(extent.overlaps(other) for other in extents[number + 1 :])
