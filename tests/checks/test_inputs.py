"""Columns as users pass them, before anything is known of them."""

import numpy as np

from fairconstrained.checks.inputs import without_none


def test_arguments_that_are_none_are_left_out_and_no_others():
    column = np.zeros(3)
    found = without_none(sensitive_features=None, sample_weight=column, strata=0, qid="", cv=False)
    assert found == {"sample_weight": column, "strata": 0, "qid": "", "cv": False}
