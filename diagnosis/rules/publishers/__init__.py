"""Rules about what publishers live through (A)."""
