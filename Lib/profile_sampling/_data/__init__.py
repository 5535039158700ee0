"""What a profile is made of, and what can be computed from it."""
