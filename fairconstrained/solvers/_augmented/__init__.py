"""The augmented Lagrangian, part by part: a start, and then outer iterations until a rule says stop.

- `multipliers`: the problem with its present surrogates, the multipliers of its components and the penalty.
- `tightening`: how closely the surrogates follow the exact metrics.
- `stopping`: whether another outer iteration is worth while.
- `iterates`: the present iterate, the best ones so far, and the points between and beyond them.
- `cold_start` and `warm_start`: where a run begins without and with multipliers.
- `outer_iterations`: the method of the loop, which has all of these and takes one outer iteration after the other.
"""
