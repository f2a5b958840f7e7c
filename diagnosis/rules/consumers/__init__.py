"""Rules about consumers (B)."""
