"""``python -m benchmarks.weakly_convex``: the paper's problems and solvers, Neyman-Pearson classification, complexity.

``--only`` chooses among ``convergence``, ``neyman_pearson`` and ``complexity``; each writes its tables to
``benchmarks/results/weakly_convex_*.csv``. ``--plots`` draws what there is, and ``--docs`` also puts figures and tables
where the documentation takes them from. ``--quick`` is a run of few minutes with files of its own, to see that all of
it works; its numbers mean nothing.
"""

from __future__ import annotations

import argparse

from benchmarks._common import RESULTS, names_of, publish, save, significant
from benchmarks.weakly_convex import complexity, convergence, neyman_pearson
from benchmarks.weakly_convex.figures import draw_all

PARTS = {"convergence": convergence, "neyman_pearson": neyman_pearson, "complexity": complexity}
#: Tables that are not for reading.
_LONG = ("way",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=names_of(PARTS), default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="one data set, few iterations")
    parser.add_argument("--plots", action="store_true", help="run nothing, draw what there is")
    parser.add_argument("--docs", action="store_true", help="also refresh the documentation")
    arguments = parser.parse_args()
    if arguments.docs and arguments.quick:
        parser.error("the documentation shows no quick runs")
    stem = "weakly_convex_quick" if arguments.quick else "weakly_convex"
    if not arguments.plots:
        for name in arguments.only:
            for table, frame in PARTS[name].measure(arguments.quick).items():
                to_read = table not in _LONG
                save(significant(frame) if to_read else frame, f"{stem}_{table}", show=to_read)
    figures = draw_all(RESULTS, stem)
    if arguments.docs:
        publish(figures, stem, without=_LONG)


if __name__ == "__main__":
    main()
