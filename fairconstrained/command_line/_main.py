"""The command ``fairconstrained``: what it runs, and how it ends."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from textwrap import fill

from fairconstrained.command_line._arguments import parser_of

__all__ = ["main"]

#: Exit codes: 0 when the work is done, and these.
NOT_CERTIFIED, USAGE_ERROR = 1, 2
#: Options of the command line by the arguments of functions that messages name.
_OPTIONS = {
    "y_true": "--label",
    "y_score": "--score",
    "y_pred": "--decision",
    "sensitive_features": "--groups",
    "sample_weight": "--weight",
    "pos_label": "--pos-label",
    "n_resamples": "--resamples",
    "pandas.cut": "--bins",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        Words after the name of the command; None for those of the process.

    Returns
    -------
    code : int
        0 if all is done, 1 if all is done and the certificate that was asked for did not pass, 2 if the arguments or
        the file do not allow the work; the reason is then on standard error.

    Raises
    ------
    SystemExit
        With code 2 for unknown or missing arguments, and 0 after ``--help`` or ``--version``.

    Examples
    --------
    >>> from fairconstrained.command_line import main
    >>> main(["metrics", "no_such_file.csv", "--label", "y", "--score", "s", "--groups", "sex"])
    2
    """
    options = parser_of().parse_args(arguments)
    # to parse arguments, or to print help, takes no time; the libraries take seconds
    from fairconstrained.command_line._commands import COMMANDS

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *where: _say(options.command, "warning", message)
        try:
            passed = COMMANDS[options.command](options)
        except (ValueError, OSError, ImportError) as error:
            _say(options.command, "error", error)
            return USAGE_ERROR
    return 0 if passed else NOT_CERTIFIED


def _say(command: str, kind: str, message: Exception | str) -> None:
    """Print an error or a warning without its place in the code."""
    for line in f"fairconstrained {command}: {kind}: {_in_options(str(message))}".splitlines():
        # an option on a line of its own stays as it is, so that it can be pasted
        is_option = line.startswith("--")
        shown = line if is_option else fill(line, 100, subsequent_indent="    ")
        print(shown, file=sys.stderr)


def _in_options(message: str) -> str:
    """Return a message of the package with the options that stand for the arguments which it names."""
    return re.sub(rf"\b({'|'.join(_OPTIONS)})\b", lambda found: _OPTIONS[found[0]], message)
