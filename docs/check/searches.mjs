// What a reader may search for, and pages that have to be among the first twelve results.
export const SEARCHES = {
  "demographic parity": ["generated/api/fairconstrained.RateParityClassifier.html"],
  "80 % rule": ["guide/notions.html"],
  "disparate impact": ["guide/notions.html"],
  "gradient boosting": ["guide/boosted_trees.html"],
  multiclass: ["guide/several_classes.html"],
  difference_bound: ["guide/from_fairlearn.html"],
  "equal opportunity": ["generated/api/fairconstrained.RateParityClassifier.html"],
};
