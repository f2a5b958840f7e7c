"""Rules about what consumers do, or do not (B)."""
