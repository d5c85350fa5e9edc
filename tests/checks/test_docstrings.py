"""Documentation that is written once and completed from elsewhere."""

import inspect

import pytest

from fairconstrained import constraints, metrics
from fairconstrained.checks.docstrings import completed_documentation, entries

SHARED = """Parameters
----------
a : int, default=1
    The first.
b : str
    The second.
c : float
    Not a parameter of the function.
"""
DOCUMENTED = [
    *(metrics.find_metric(name)[0].function for name in metrics.METRICS),
    *(getattr(constraints, name) for name in constraints.__all__),
]


def test_entries_come_in_the_order_of_the_signature_with_its_defaults():
    doc = "Do.\n\nParameters\n----------\nb : str\n    Own.\n\nReturns\n-------\nvalue : int\n"
    expected = (
        "Do.\n\nParameters\n----------\na : int, default=2\n    The first.\nb : str\n    Own.\n\n"
        "Returns\n-------\nvalue : int\n"
    )
    assert completed_documentation(doc, [SHARED], {"a": 2, "b": ""}).rstrip() == expected.rstrip()
    made = "Do.\n\nParameters\n----------\na : int, default=2\n    The first.\n\nNotes\n-----\nNone."
    assert completed_documentation("Do.\n\nNotes\n-----\nNone.", [SHARED], {"a": 2}) == made
    assert completed_documentation("Do.", [SHARED], {}) == "Do."
    assert completed_documentation(None, [SHARED], {"a": 2}) is None


@pytest.mark.parametrize("documented", DOCUMENTED, ids=lambda documented: documented.__name__)
def test_every_parameter_of_a_metric_or_constraint_is_documented(documented):
    found = [name for names, _ in entries(documented.__doc__, "Parameters") for name in names]
    assert found == list(inspect.signature(documented).parameters)
