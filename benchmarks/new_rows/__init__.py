"""Gaps on rows that no fit has seen, beside those of the training rows."""
