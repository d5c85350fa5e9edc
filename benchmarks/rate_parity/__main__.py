"""``python -m benchmarks.rate_parity``: the solvers of the paper on its problems, and what is promised.

``--only`` chooses among ``tuning``, ``convergence``, ``sensitivity``, ``communities``, ``ranking`` and ``web_search``;
each writes its tables to ``benchmarks/results/rate_parity_*.csv``. All but ``ranking`` go on where an interrupted run
ended; remove their files to begin anew. ``--plots`` draws what there is, and ``--docs`` also puts figures and tables
where the documentation takes them from. ``--quick`` is a run of few minutes with files of its own, to see that all of
it works; its numbers mean nothing.
"""

from __future__ import annotations

from benchmarks._common import run_parts
from benchmarks.rate_parity import communities, convergence, ranking, sensitivity, tuning, web_search
from benchmarks.rate_parity.figures import draw_all

PARTS = {
    "tuning": tuning,
    "convergence": convergence,
    "sensitivity": sensitivity,
    "communities": communities,
    "ranking": ranking,
    "web_search": web_search,
}
#: Tables that are not for reading.
_LONG = ("way", "duals", "epochs", "web_search_epochs", "tuning_runs")


if __name__ == "__main__":
    run_parts(__doc__, "rate_parity", PARTS, draw_all, _LONG)
