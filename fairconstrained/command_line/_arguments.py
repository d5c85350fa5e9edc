"""Arguments of the command line, read without any library, so that help is there at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairconstrained.version import __version__

__all__ = ["parser_of"]

_CODES = (
    "Exit codes: 0 done; 1 done, but the certificate of --certify did not pass; 2 the arguments or the file are wrong, "
    "and the message says what to change."
)
_EXAMPLES = {
    "report": "fairconstrained report scores.csv --label hired --score score --groups sex,age -o report.html",
    "metrics": "fairconstrained metrics scores.csv --label hired --score score --groups sex -o gaps.csv",
}


def parser_of() -> argparse.ArgumentParser:
    """Return the parser of ``fairconstrained report`` and ``fairconstrained metrics``."""
    parser = argparse.ArgumentParser(
        prog="fairconstrained",
        description="Compare the groups in a table of labels and scores (CSV or parquet), without a line of Python.",
        epilog=_CODES,
    )
    parser.add_argument("--version", action="version", version=f"fairconstrained {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    report = _command(commands, "report", "Write a page about the groups, for readers who do not train models.")
    report.add_argument("-o", "--output", type=Path, default=Path("report.html"), help="page to write (%(default)s)")
    report.add_argument("--title", help="heading of the page")
    metrics = _command(commands, "metrics", "Print the rates of every group and the gaps between groups.")
    metrics.add_argument("-o", "--output", type=Path, help="CSV file to write the gaps to as well")
    metrics.set_defaults(resamples=0)
    commands.add_parser("names", help="List the names of all gaps.", description="List the names of all gaps.")
    return parser


def _command(commands: argparse._SubParsersAction, name: str, summary: str) -> argparse.ArgumentParser:
    """Add a command with the arguments that both have."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary, epilog=f"Example: {_EXAMPLES[name]}. {_CODES}"
    )
    parser.add_argument("file", type=Path, help="table with a row for each person: .csv (also .csv.gz) or .parquet")
    columns = parser.add_argument_group("columns of the file")
    columns.add_argument(
        "--label", required=True, type=str.strip, metavar="COLUMN", help="what happened: the true label"
    )
    columns.add_argument(
        "--score", type=str.strip, metavar="COLUMN", help="score of the model, higher for the positive label"
    )
    columns.add_argument(
        "--decision",
        type=str.strip,
        metavar="COLUMN",
        help="decision, in the values of the label, in place of --threshold",
    )
    columns.add_argument(
        "--groups", required=True, type=_names, metavar="COLUMN,...", help="groups; several columns are combined"
    )
    columns.add_argument(
        "--strata", type=_names, default=[], metavar="COLUMN,...",
        help="compare the decisions within these as well, such as within each job (conditional parity)",
    )  # fmt: skip
    columns.add_argument("--weight", type=str.strip, metavar="COLUMN", help="weight of the row")
    columns.add_argument(
        "--separator", type=_separator, default=",", help="character between the columns of a CSV (%(default)s)"
    )
    reading = parser.add_argument_group("how to read them")
    reading.add_argument("--pos-label", metavar="VALUE", help="positive label; the larger one if there are two")
    reading.add_argument(
        "--threshold", type=float,
        help="scores above it are positive; 0.5 if all are in [0, 1] (probabilities), 0 if some are negative",
    )  # fmt: skip
    reading.add_argument(
        "--bins", type=_bins, action="append", default=[], metavar="COLUMN=EDGE,...",
        help="cut numbers of a group column: age=25,60 makes three groups",
    )  # fmt: skip
    measured = parser.add_argument_group("what to measure")
    measured.add_argument("--metrics", type=_names, metavar="NAME,...", help="gaps by name; all that apply by default")
    measured.add_argument(
        "--interval", type=_pair, action="append", metavar="FROM,TO",
        help="ranks of the partial gaps, as fractions from the top: 0,0.2 is the top fifth; may be repeated",
    )  # fmt: skip
    measured.add_argument("--level", type=float, default=0.95, help="level of the intervals (%(default)s)")
    measured.add_argument(
        "--resamples", type=int,
        help="resamples behind the intervals, 0 for no intervals; by default 20 / (1 - level) in report, 0 in metrics",
    )  # fmt: skip
    measured.add_argument("--seed", type=int, default=0, help="seed of the resamples (%(default)s)")
    certificate = parser.add_argument_group("certificate: a bound for the population, from rows that no fit has seen")
    certificate.add_argument("--certify", metavar="NAME", help="name of the gap")
    certificate.add_argument("--kappa", type=float, help="value that the gap should not exceed; none by default")
    certificate.add_argument("--delta", type=float, default=0.05, help="chance that the bound fails (%(default)s)")
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"a name is empty in {text!r}; write names with commas between them")
    return names


def _separator(text: str) -> str:
    separator = {r"\t": "\t"}.get(text, text)
    if len(separator) != 1:
        raise argparse.ArgumentTypeError(rf"{text!r} is no single character; write a tab as \t")
    return separator


def _pair(text: str) -> tuple[float, float]:
    ends = _numbers(text)
    if len(ends) != 2:
        raise argparse.ArgumentTypeError(f"{text!r} is no pair of numbers such as 0,0.2")
    return ends[0], ends[1]


def _bins(text: str) -> tuple[str, list[float]]:
    column, _, edges = text.rpartition("=")
    column, numbers = column.strip(), _numbers(edges)
    if not column or not numbers or numbers != sorted(set(numbers)):
        raise argparse.ArgumentTypeError(f"{text!r} is no column with increasing edges such as age=25,60")
    return column, numbers


def _numbers(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers with commas between them") from None
