"""How often certificates are wrong, how wide they are, and what a certified classifier costs."""
