"""Rules about what only a client measures (H)."""
