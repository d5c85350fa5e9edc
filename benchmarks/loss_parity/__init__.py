"""Networks under group-loss parity: the paper's experiment, and what `LossParityClassifier` promises.

A new data set, method, constraint or promise is one entry of `DATASETS`, `METHODS`, `CONSTRAINTS` or `PROMISES`.
"""
