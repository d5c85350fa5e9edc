"""``python -m benchmarks.weakly_convex``: the paper's problems and solvers, Neyman-Pearson classification, complexity.

``--only`` chooses among ``tuning``, ``convergence`` (which can be interrupted and started again), ``neyman_pearson``
and ``complexity``; each writes its tables to
``benchmarks/results/weakly_convex_*.csv``. ``--plots`` draws what there is, and ``--docs`` also puts figures and tables
where the documentation takes them from. ``--quick`` is a run of few minutes with files of its own, to see that all of
it works; its numbers mean nothing.
"""

from __future__ import annotations

from benchmarks._common import run_parts
from benchmarks.weakly_convex import complexity, convergence, neyman_pearson, tuning
from benchmarks.weakly_convex.figures import draw_all

PARTS = {"tuning": tuning, "convergence": convergence, "neyman_pearson": neyman_pearson, "complexity": complexity}
#: Tables that are not for reading.
_LONG = ("way", "runs")


if __name__ == "__main__":
    run_parts(__doc__, "weakly_convex", PARTS, draw_all, _LONG)
