"""Rules about nodes and what they run on (D)."""
