"""``python -m benchmarks.rate_parity``: the solvers of the paper on its problems, and what is promised.

``--only`` chooses among ``convergence``, ``communities``, ``ranking`` and ``reduction``; each writes its tables to
``benchmarks/results/rate_parity_*.csv``. ``--plots`` draws what there is, and ``--docs`` also puts figures and tables
where the documentation takes them from. ``--quick`` is a run of few minutes with files of its own, to see that all of
it works; its numbers mean nothing.
"""

from __future__ import annotations

from benchmarks._common import run_parts
from benchmarks.rate_parity import communities, convergence, ranking, reduction
from benchmarks.rate_parity.figures import draw_all

PARTS = {"convergence": convergence, "communities": communities, "ranking": ranking, "reduction": reduction}
#: Tables that are not for reading.
_LONG = ("way", "reduction_runs")


if __name__ == "__main__":
    run_parts(__doc__, "rate_parity", PARTS, draw_all, _LONG)
