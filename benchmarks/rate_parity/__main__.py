"""``python -m benchmarks.rate_parity``: the solvers of the paper on its problems, and what is promised.

``--only`` chooses among ``convergence``, ``communities``, ``ranking`` and ``reduction``; each writes its tables to
``benchmarks/results/rate_parity_*.csv``. ``--plots`` draws what there is, and ``--docs`` also puts figures and tables
where the documentation takes them from. ``--quick`` is a run of few minutes with files of its own, to see that all of
it works; its numbers mean nothing.
"""

from __future__ import annotations

import argparse

from benchmarks._common import RESULTS, names_of, publish, save, significant
from benchmarks.rate_parity import communities, convergence, ranking, reduction
from benchmarks.rate_parity.figures import draw_all

PARTS = {"convergence": convergence, "communities": communities, "ranking": ranking, "reduction": reduction}
#: Tables that are not for reading.
_LONG = ("way", "reduction_runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=names_of(PARTS), default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="few rows, one seed, few iterations")
    parser.add_argument("--plots", action="store_true", help="run nothing, draw what there is")
    parser.add_argument("--docs", action="store_true", help="also refresh the documentation")
    arguments = parser.parse_args()
    if arguments.docs and arguments.quick:
        parser.error("the documentation shows no quick runs")
    stem = "rate_parity_quick" if arguments.quick else "rate_parity"
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
