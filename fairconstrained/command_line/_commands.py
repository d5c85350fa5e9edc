"""The commands: a page, tables, and the names of gaps."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.certification import gap_interval
from fairconstrained.command_line._table import AuditTable
from fairconstrained.metrics import METRICS, conditional_parity_gap
from fairconstrained.metrics.registry import info_of, similar_gap
from fairconstrained.reporting import FairnessReport, fairness_report

__all__ = ["COMMANDS"]

#: Gap that only a table with strata has, so that it is no gap of every report.
_CONDITIONAL = info_of(conditional_parity_gap)
#: Characters in a line of output.
WIDTH = 100
#: Groups that fit beside each other; of more, each has a line of its own.
_MOST_COLUMNS = 5


def _report(options: Namespace) -> bool:
    """Write the page and print its words."""
    table = AuditTable.read(options)
    report = _measured(options, table, title=options.title)
    report.to_html(options.output)
    _print(table.reading, *report.verdict)
    _print_certificates(report)
    print(f"\nPage written to {options.output}")
    return _passed(report)


def _metrics(options: Namespace) -> bool:
    """Print the rates of the groups and the gaps between them."""
    table = AuditTable.read(options)
    report = _measured(options, table, title=None)
    rates = report.table.set_axis([report.rows.names.words(label) for label in report.table.index])
    rates = rates.T if len(rates) <= _MOST_COLUMNS else rates
    numbers = ["value", "lower", "upper"] if report.n_resamples else ["value"]
    _print(table.reading)
    with pd.option_context("display.width", WIDTH, "display.max_columns", None, "display.max_rows", None):
        gaps = report.gaps[numbers].rename(index=_asked_names(options)).rename_axis("gap")
        print(f"\n{rates.map(_written)}\n\n{gaps.map(_written)}")
    _print_certificates(report)
    if options.output is not None:
        report.gaps.drop(columns="gap").to_csv(options.output)
        print(f"\nGaps written to {options.output}")
    return _passed(report)


def _names(options: Namespace) -> bool:
    """Print all gaps by all their names."""
    for info in [*METRICS.values(), _CONDITIONAL]:
        print(", ".join(info.plain_names))
        print(fill(info.description, WIDTH, initial_indent="    ", subsequent_indent="    "))
    return True


#: Functions of the commands, which return whether the certificate passed, if one was asked for.
COMMANDS: dict[str, Callable[[Namespace], bool]] = {"report": _report, "metrics": _metrics, "names": _names}


def _passed(report: FairnessReport) -> bool:
    return all(certificate.passed is not False for certificate in report.certificates)


def _print(*sentences: str) -> None:
    """Print sentences that fit a window."""
    for sentence in sentences:
        print(fill(sentence, WIDTH, subsequent_indent="    "))


def _print_certificates(report: FairnessReport) -> None:
    for certificate in report.certificates:
        print()
        _print(*str(certificate).splitlines())


def _written(number: float) -> str:
    """A count without, a rate with decimals; a dash for what is not defined."""
    if np.isnan(number):
        return "-"
    return f"{number:,.0f}" if number >= 1 and float(number).is_integer() else f"{number:.3f}"


def _measured(options: Namespace, table: AuditTable, title: str | None) -> FairnessReport:
    """Return the report of a table, with conditional parity and the certificate where they were asked for."""
    metrics = None if options.metrics is None else [_gap_called(name) for name in options.metrics]
    certified = None if options.certify is None else _gap_called(options.certify)
    if certified is None and options.kappa is not None:
        raise ValueError("--kappa belongs to a certificate: say with --certify of which gap.")
    if table.strata is None and _CONDITIONAL.name in {certified, *(metrics or [])}:
        raise ValueError(f"{_CONDITIONAL.name} compares rows within strata: name their columns with --strata.")
    report = fairness_report(
        table.labels,
        table.scores,
        sensitive_features=table.groups,
        sample_weight=table.weights,
        y_pred=table.decisions,
        threshold=table.threshold,
        pos_label=table.pos_label,
        interval=options.interval,
        metrics=None if metrics is None else [name for name in metrics if name != _CONDITIONAL.name],
        level=options.level,
        n_resamples=options.resamples,
        random_state=options.seed,
        title=title,
    )
    if options.pos_label is None:
        table.warn_of_reversed()
    if table.strata is not None:
        report = _with_conditional_parity(report, table.strata)
    if certified is None:
        return report
    params = {"strata": table.strata} if certified == _CONDITIONAL.name else None
    report = report.certified(certified, kappa=options.kappa, delta=options.delta, metric_params=params)
    asked = [replace(each, metric=options.certify) for each in report.certificates]
    return replace(report, certificates=tuple(asked))


def _asked_names(options: Namespace) -> dict[str, str]:
    """Return the names of gaps that the user asked for, by the names of their functions."""
    names = [*(options.metrics or []), *([] if options.certify is None else [options.certify])]
    return {_gap_called(name): name for name in names}


def _gap_called(name: str) -> str:
    """Return the name of the function of a gap."""
    gaps = [*METRICS.values(), _CONDITIONAL]
    known = {each: info.name for info in gaps for each in info.plain_names}
    if name not in known:
        raise ValueError(f"there is no gap {name!r}.{similar_gap(name, gaps)} `fairconstrained names` lists all.")
    return known[name]


def _with_conditional_parity(report: FairnessReport, strata: pd.DataFrame) -> FairnessReport:
    """Add the gap of the decisions within strata, which a report by itself does not know, and its interval."""
    rows = report.rows
    given: dict[str, Any] = {"sensitive_features": rows.sensitive_features, "sample_weight": rows.sample_weight}
    value = conditional_parity_gap(rows.y_true, rows.y_pred, strata=strata, **given)
    ends = (np.nan, np.nan)
    if report.n_resamples:
        resampling = {"level": report.level, "n_resamples": report.n_resamples, "random_state": report.random_state}
        params = {"strata": strata}
        ends = gap_interval(_CONDITIONAL.name, rows.y_true, rows.y_pred, metric_params=params, **given, **resampling)
    words = f"{_CONDITIONAL.description} Strata: {', '.join(strata.columns)}."
    line = pd.DataFrame(
        [(_CONDITIONAL.title, value, *ends, _CONDITIONAL.unit, words)],
        index=pd.Index([_CONDITIONAL.name], name=report.gaps.index.name),
        columns=report.gaps.columns,
    )
    return replace(report, gaps=line if report.gaps.empty else pd.concat([report.gaps, line]))
