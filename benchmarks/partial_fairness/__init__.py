"""The experiments of arXiv:2505.12530 (partial fairness), by our estimators and beside the published figures."""
