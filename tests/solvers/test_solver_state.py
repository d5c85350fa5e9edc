"""State that a solver leaves in a start, for a run that goes on from there."""

import numpy as np

from fairconstrained.problem import Start
from fairconstrained.solvers._base import solver_state


def test_a_solver_gets_states_of_its_own_kind_that_were_reached_with_its_data(make_data):
    data, others = make_data((6, 7)), make_data((7, 6))
    start = Start(np.zeros(2), fingerprint=data.fingerprint, solver_state="state")
    assert solver_state(start, str) == "state"
    assert solver_state(start, str, data) == "state"
    assert solver_state(start, str, others) is None
    assert solver_state(start, int, data) is None
    assert solver_state(None, str, data) is None
    assert solver_state(Start(np.zeros(2), solver_state="state"), str, others) == "state"  # of any data
