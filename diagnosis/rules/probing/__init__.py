"""Rules about what only a client can measure (H)."""
