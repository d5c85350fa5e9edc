"""A hostile trial: random problems, bad inputs, interruptions and drop-in cases, judged apart from the package."""
