"""Networks under group-loss parity: the paper's experiment, and what `LossParityClassifier` promises.

A new data set, method, constraint or promise is one file in the folder of that name; the docstring of the folder's
``__init__.py`` says what has to be in it. Files whose names begin with an underscore are not looked at.
"""
