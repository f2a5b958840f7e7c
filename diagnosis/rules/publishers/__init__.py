"""Rules about publishers (A)."""
