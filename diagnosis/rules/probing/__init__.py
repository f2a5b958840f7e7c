"""Rules about what only a client feels (H)."""
