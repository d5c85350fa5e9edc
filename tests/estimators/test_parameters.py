"""Parameters are declared once, and every estimator documents and checks all of its own."""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

from fairconstrained import estimators
from fairconstrained.estimators.parameters import parameter, with_parameters

PUBLIC = [getattr(estimators, name) for name in estimators.__all__ if name != "BaseFairEstimator"]


def documented(cls, section):
    """Names in the order of the docstring, each with the first line of its entry."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", cls.__doc__, re.MULTILINE | re.DOTALL)
    lines = [line for line in found.group(1).splitlines() if re.match(r"\w", line)]
    return {name.strip(): line for line in lines for name in line.split(" : ")[0].split(",")}


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: cls.__name__)
def test_all_parameters_are_documented_in_the_order_of_the_signature(cls):
    parameters = dict(inspect.signature(cls).parameters)
    lines = documented(cls, "Parameters")
    assert list(lines) == list(parameters)
    for name, line in lines.items():
        if "default=" in line:
            assert eval(line.split("default=")[1]) == parameters[name].default, name
    assert set(cls().get_params(deep=False)) == set(parameters)
    assert set(cls._parameter_constraints) <= set(parameters)


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: cls.__name__)
def test_attributes_of_the_base_are_documented_once(cls):
    lines = documented(cls, "Attributes")
    assert {"status_", "constraint_values_", "prices_", "history_", "n_features_in_"} <= set(lines)
    section = cls.__doc__.split("\nAttributes\n")[1].split("\nReferences\n")[0]
    assert section.count("\nhistory_") + section.count(" history_") == 1


def test_only_the_first_parameter_is_positional():
    for cls in PUBLIC:
        first, *others = inspect.signature(cls).parameters.values()
        assert first.kind == first.POSITIONAL_OR_KEYWORD
        assert all(other.kind == other.KEYWORD_ONLY for other in others)


@with_parameters
class Base:
    """Has two parameters.

    Parameters
    ----------
    a : int, default=1
        The first.
    b : float, default=0.5
        The second,
        in two lines.

    Attributes
    ----------
    left_ : int
    """

    a: int = parameter(1, ["boolean"])
    b: float = parameter(0.5)


@with_parameters
class Derived(Base):
    """Has three.

    Parameters
    ----------
    c : str, default="x"
        Its own.

    Attributes
    ----------
    right_ : int

    Notes
    -----
    None.
    """

    c: str = parameter("x", [str], kw_only=False)
    b: float = parameter(2.5, check=np.isfinite)


def test_a_class_has_what_its_bases_declare():
    assert vars(Derived("y", a=3)) == {"a": 3, "b": 2.5, "c": "y"}
    assert list(inspect.signature(Derived).parameters) == ["c", "b", "a"]
    with pytest.raises(TypeError):
        Derived("y", 3)
    assert Derived._parameter_constraints == {"a": ["boolean"], "c": [str]}
    assert Derived._parameter_checks == {"b": np.isfinite}
    assert Derived.__doc__ == (
        'Has three.\n\nParameters\n----------\nc : str, default="x"\n    Its own.\n'
        "b : float, default=2.5\n    The second,\n    in two lines.\na : int, default=1\n    The first.\n\n"
        "Attributes\n----------\nright_ : int\nleft_ : int\n\nNotes\n-----\nNone."
    )


def test_clones_have_equal_parameters():
    for cls in PUBLIC:
        first = next(iter(inspect.signature(cls).parameters))
        model = cls(**{first: 0.07, "warm_start": True})
        assert clone(model).get_params() == model.get_params()
