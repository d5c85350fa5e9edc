"""``python -m benchmarks.certification``: how often certificates are wrong, how wide they are, and what they cost.

``--only`` chooses among ``rates`` and ``scores`` (bounds for every distribution), ``bootstrap``, ``classifier`` and
``speed``; each writes its tables to ``benchmarks/results/certification_*.csv``. ``--plots`` draws what there is, and
``--docs`` also puts figures and tables where the documentation takes them from. ``--quick`` is a run of a minute or two
with files of its own, to see that all of it works; its numbers mean nothing.
"""

from __future__ import annotations

from benchmarks._common import run_parts
from benchmarks.certification import bootstrap, classifier, rates, scores, speed
from benchmarks.certification.figures import draw_all

PARTS = {"rates": rates, "scores": scores, "bootstrap": bootstrap, "classifier": classifier, "speed": speed}
#: Tables that are not for reading.
_LONG = ("cost",)


if __name__ == "__main__":
    run_parts(__doc__, "certification", PARTS, draw_all, _LONG)
