"""Rules about nodes and their resources (D)."""
