"""Any model under any constraint: heads on boosted trees against other methods, on rows that no fit has seen."""
